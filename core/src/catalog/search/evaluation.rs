//! The evaluation of a query of several words: documents with all words, then documents with some.
//!
//! Invariant: the result equals that of scoring every document, unless the budget runs out; then it contains only
//! documents from the postings scanned so far, which have the greatest impacts. The group with the fewest postings is
//! the driver: its postings are scanned in the order of their impacts, and the forward index gives the scores of the
//! other groups for each document. A scan stops at the first posting that cannot enter the top k even with the maximal
//! score of every other group (`MaxScore`, Turtle and Flood 1995).

use std::ops::Range;

use super::analyzer::{Impact, WHOLE_NAME};
use super::postings::{DocumentId, PostingIndex, Postings};
use super::query::TermGroup;
use super::term_dictionary::TermId;
use super::top_k::{ExpansionWeight, Rank, Tier, TopK};

/// The most documents looked up in the forward index per search: for documents with all words, and for those with some.
const ALL_WORDS_BUDGET: usize = 1 << 14;
const SOME_WORDS_BUDGET: usize = 1 << 12;
/// The most postings whose impacts are read for the maximal impact of a prefix.
const MAX_READ: usize = 1 << 10;

/// The evaluation of one query: its term groups with the upper bounds of their scores.
pub(super) struct Evaluation<'a> {
    postings: &'a Postings,
    /// The required groups by number of postings, fewest first; then the others.
    groups: Vec<ScoredGroup>,
    /// The number of required groups.
    required: usize,
    /// Whether every required word of the query has a group.
    is_complete: bool,
}

/// A term group with the upper bound of its scores.
struct ScoredGroup {
    group: TermGroup,
    /// The postings of each expansion, and its weight.
    postings: Vec<(Range<PostingIndex>, ExpansionWeight)>,
    max_score: u32,
}

impl Evaluation<'_> {
    /// Prepares the evaluation of a query with these groups. A document with all words has `words` of them.
    pub(super) fn new(postings: &Postings, mut groups: Vec<TermGroup>, words: usize) -> Evaluation<'_> {
        groups.sort_by_key(|group| (!group.is_required, group.postings));
        let required = groups.iter().filter(|group| group.is_required).count();
        let groups = groups.into_iter().map(|group| ScoredGroup::new(group, postings)).collect();
        Evaluation { postings, groups, required, is_complete: required == words }
    }

    /// Adds the documents with a term of each required group: all of them are in the posting lists of the first group.
    pub(super) fn add_all_words(&self, tier: Tier, top: &mut TopK<'_>) {
        if self.is_complete && self.required > 0 {
            self.scan(0, self.max_score_after(0), tier, &mut { ALL_WORDS_BUDGET }, top);
        }
    }

    /// Adds the documents with a term of some required group. These groups are drivers in turn; documents of earlier
    /// drivers, and documents with all words, have been offered before.
    pub(super) fn add_some_words(&self, top: &mut TopK<'_>) {
        let mut budget = SOME_WORDS_BUDGET;
        for driver in 0..self.required {
            let mut max_other = self.max_score_after(driver);
            if driver == 0 && self.is_complete {
                // A document with all words has been offered before, so here at least one other group does not match.
                max_other -=
                    self.groups[1..self.required].iter().map(|group| group.max_score).min().unwrap_or_default();
            }
            self.scan(driver, max_other, Tier::SomeWords, &mut budget, top);
        }
    }

    /// The sum of the maximal scores of the groups after `driver`.
    fn max_score_after(&self, driver: usize) -> u32 {
        self.groups[driver + 1..].iter().map(|group| group.max_score).sum()
    }

    /// Offers the documents of the driver with the scores of the groups after it, which are at most `max_other`.
    fn scan(&self, driver: usize, max_other: u32, tier: Tier, budget: &mut usize, top: &mut TopK<'_>) {
        let group = &self.groups[driver].group;
        for expansion in &group.expansions {
            for term in expansion.terms.clone() {
                let (ids, impacts) = self.postings.list(term);
                for (&id, &impact) in ids.iter().zip(impacts) {
                    let own_score = group.idf * expansion.weight.apply(impact);
                    if !top.admits(Rank::new(tier, own_score + max_other, id)) {
                        break;
                    }
                    // Where no other group can add to the score, the document is not looked up.
                    let other_score = match (max_other, *budget) {
                        (0, _) => Some(0),
                        (_, 0) => return,
                        _ => {
                            *budget -= 1;
                            self.score(id, driver + 1, tier)
                        }
                    };
                    if let Some(other_score) = other_score {
                        top.offer(Rank::new(tier, own_score + other_score, id));
                    }
                }
            }
        }
    }

    /// The score of a document from the groups `first..`; `None` if `tier` needs all required groups and one is missing.
    pub(super) fn score(&self, id: DocumentId, first: usize, tier: Tier) -> Option<u32> {
        let row = self.postings.row(id);
        let mut score = 0;
        for group in &self.groups[first..] {
            let best = group.best_weighted_impact(row, self.postings);
            if best == 0 && group.group.is_required && tier != Tier::SomeWords {
                return None;
            }
            score += group.group.idf * best;
        }
        Some(score)
    }
}

impl ScoredGroup {
    fn new(group: TermGroup, all: &Postings) -> ScoredGroup {
        let postings =
            group.expansions.iter().map(|expansion| (all.range(&expansion.terms), expansion.weight)).collect();
        let max_scores =
            group.expansions.iter().map(|expansion| expansion.weight.apply(max_impact(&expansion.terms, all)));
        let max_score = group.idf * max_scores.max().unwrap_or_default();
        ScoredGroup { group, postings, max_score }
    }

    /// The greatest weighted impact of the group's postings in a row; 0 if there is none.
    fn best_weighted_impact(&self, row: &[PostingIndex], postings: &Postings) -> u32 {
        let mut best = 0;
        for (range, weight) in &self.postings {
            let first = row.partition_point(|posting| *posting < range.start);
            for posting in row[first..].iter().take_while(|posting| **posting < range.end) {
                best = best.max(weight.apply(postings.impact(*posting)));
            }
        }
        best
    }
}

/// An upper bound of the impacts of some terms.
fn max_impact(terms: &Range<TermId>, postings: &Postings) -> Impact {
    let (_, impacts) = postings.lists(terms);
    let greatest = match terms.len() {
        1 => impacts.first(),
        _ if impacts.len() <= MAX_READ => impacts.iter().max(),
        _ => Some(&WHOLE_NAME),
    };
    greatest.copied().unwrap_or_default()
}
