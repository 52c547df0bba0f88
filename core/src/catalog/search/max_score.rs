//! `MaxScore` evaluation of a query of several words: documents with all words, then documents with some.
//!
//! Invariant: the result equals that of scoring every document, unless the budget runs out; then it contains only
//! documents from the postings scanned so far, which have the greatest impacts. Posting lists are in impact order. The
//! group with the fewest postings is the driver: its postings are scanned, and the forward index gives the scores of
//! the other groups for each document. A scan stops at the first posting that cannot enter the top k even with the
//! maximal score of every other group.
//!
//! Documents are prefetched. Without that, at 100,000 apps a query of two words takes 1.1 times as long at the median and
//! twice as long at p90 (benches/README.md).

use std::{hint::black_box, ops::Range};

use super::analyzer::{Impact, WHOLE_NAME};
use super::postings::{BlockSet, DocumentId, PostingIndex, Postings};
use super::prefix_cache::CACHE_THRESHOLD;
use super::query::{Expansion, TermGroup};
use super::term_dictionary::TermId;
use super::top_k::{ExpansionWeight, Rank, Tier, TopK};

/// Approximate limits of the postings that `scan_with_others` scans, per search: for documents with all words, and for
/// documents with some.
const ALL_WORDS_BUDGET: usize = 1 << 16;
const SOME_WORDS_BUDGET: usize = 1 << 12;
/// The number of documents prefetched at a time: about as many as the CPU can load in parallel.
const BATCH: usize = 16;

/// The evaluation of one query: its term groups with the upper bounds of their scores.
pub(super) struct MaxScore<'a> {
    postings: &'a Postings,
    /// The required groups by number of postings, fewest first; then the others.
    groups: Vec<ScoredGroup>,
    /// The number of required groups.
    required: usize,
    /// Whether every required word of the query has a group.
    is_complete: bool,
}

/// A term group with the upper bounds of its scores.
struct ScoredGroup {
    group: TermGroup,
    /// The postings of each expansion, and its weight.
    postings: Vec<(Range<PostingIndex>, ExpansionWeight)>,
    /// The maximal score.
    max_score: u32,
    /// The blocks (fixed-size runs of the posting array; see `postings`) that contain the group's postings.
    blocks: BlockSet,
    /// The blocks whose score may exceed `max_weak_score`.
    strong_blocks: BlockSet,
    /// The maximal score in the blocks outside `strong_blocks`.
    max_weak_score: u32,
}

/// The state of one evaluation.
struct Accumulator<'a, 'top> {
    tier: Tier,
    /// The number of postings that may still be scanned.
    budget: usize,
    top: &'a mut TopK<'top>,
}

impl MaxScore<'_> {
    /// Prepares the evaluation of a query with these groups. A document with all words has `words` of them.
    pub(super) fn new(postings: &Postings, mut groups: Vec<TermGroup>, words: usize) -> MaxScore<'_> {
        groups.sort_by_key(|group| (!group.is_required, group.postings));
        let required = groups.iter().filter(|group| group.is_required).count();
        let groups = groups.into_iter().map(|group| ScoredGroup::new(group, postings)).collect();
        MaxScore { postings, groups, required, is_complete: required == words }
    }

    /// Adds the documents with a term of each required group: all of them are in the posting lists of the first group.
    pub(super) fn add_all_words(&self, tier: Tier, top: &mut TopK<'_>) {
        if self.is_complete && self.required > 0 {
            let mut accumulator = Accumulator { tier, budget: ALL_WORDS_BUDGET, top };
            self.scan_with_others(0, self.max_score_after(0), &mut accumulator);
        }
    }

    /// Adds the documents with a term of some required group. These groups are drivers in turn; documents of earlier drivers, and
    /// documents with all words, have been offered before.
    pub(super) fn add_some_words(&self, top: &mut TopK<'_>) {
        let mut accumulator = Accumulator { tier: Tier::SomeWords, budget: SOME_WORDS_BUDGET, top };
        for driver in 0..self.required {
            let mut max_other = self.max_score_after(driver);
            if driver == 0 && self.is_complete {
                // A document with all words has been offered before, so here at least one other group does not match.
                max_other -=
                    self.groups[1..self.required].iter().map(|group| group.max_score).min().unwrap_or_default();
            }
            match max_other {
                0 => self.scan_alone(driver, &mut accumulator),
                _ => self.scan_with_others(driver, max_other, &mut accumulator),
            }
        }
    }

    /// The sum of the maximal scores of the groups after `driver`.
    fn max_score_after(&self, driver: usize) -> u32 {
        self.groups[driver + 1..].iter().map(|group| group.max_score).sum()
    }

    /// Offers the documents of the driver when no other group can add to their scores.
    fn scan_alone(&self, driver: usize, accumulator: &mut Accumulator<'_, '_>) {
        let Accumulator { tier, top, .. } = accumulator;
        let group = &self.groups[driver].group;
        for expansion in &group.expansions {
            for term in expansion.terms.clone() {
                let (ids, impacts) = self.postings.list(term);
                for (&id, &impact) in ids.iter().zip(impacts) {
                    let rank = Rank::new(*tier, group.idf * expansion.weight.apply(impact), id);
                    if !top.admits(rank) {
                        break;
                    }
                    top.offer(rank);
                }
            }
        }
    }

    /// Offers the documents of the driver with the scores of the groups after it, which are at most `max_other`.
    fn scan_with_others(&self, driver: usize, max_other: u32, accumulator: &mut Accumulator<'_, '_>) {
        let group = &self.groups[driver].group;
        let mut batch = [(0, 0); BATCH];
        let mut length = 0;
        for (expansion, (all_postings, _)) in group.expansions.iter().zip(&self.groups[driver].postings) {
            let mut prefetched = all_postings.start;
            for term in expansion.terms.clone() {
                let (ids, impacts) = self.postings.list(term);
                let range = self.postings.range(&(term..term + 1));
                let (mut last_impact, mut own_score) = (0, 0);
                for (posting, (&id, &impact)) in range.zip(ids.iter().zip(impacts)) {
                    if posting >= prefetched {
                        prefetched = all_postings.end.min(posting + BATCH as PostingIndex);
                        self.postings.prefetch_headers(posting..prefetched);
                    }
                    accumulator.budget = accumulator.budget.saturating_sub(1);
                    if impact != last_impact {
                        (last_impact, own_score) = (impact, group.idf * expansion.weight.apply(impact));
                        let max_rank = Rank::new(accumulator.tier, own_score + max_other, id);
                        if accumulator.budget == 0 || !accumulator.top.admits(max_rank) {
                            break;
                        }
                    }
                    // Written unconditionally and counted only if needed: avoids a branch that the CPU mispredicts.
                    batch[length] = (id, own_score);
                    length += usize::from(self.may_enter(id, own_score, driver, accumulator));
                    if length == BATCH {
                        self.offer_batch(&batch, driver, accumulator);
                        length = 0;
                    }
                }
                if accumulator.budget == 0 {
                    break;
                }
            }
        }
        self.offer_batch(&batch[..length], driver, accumulator);
    }

    /// False if the blocks of a document show that it cannot enter the top k.
    fn may_enter(&self, id: DocumentId, own_score: u32, driver: usize, accumulator: &Accumulator<'_, '_>) -> bool {
        let mut max_score = own_score;
        let mut may_have_all = true;
        for group in &self.groups[driver + 1..] {
            let may_have = self.postings.may_have(id, &group.blocks);
            let may_be_strong = self.postings.may_have(id, &group.strong_blocks);
            max_score += u32::from(may_have) * if may_be_strong { group.max_score } else { group.max_weak_score };
            may_have_all &= may_have | !group.group.is_required;
        }
        let max_rank = Rank::new(accumulator.tier, max_score, id);
        (may_have_all | (accumulator.tier == Tier::SomeWords)) & accumulator.top.admits(max_rank)
    }

    /// Offers documents of the driver, each with its score from the driver.
    fn offer_batch(&self, batch: &[(DocumentId, u32)], driver: usize, accumulator: &mut Accumulator<'_, '_>) {
        // Touches all rows before reading the first, so that the CPU loads them in parallel.
        for (id, _) in batch {
            let row = self.postings.row(*id);
            black_box([row.first().copied(), row.get(row.len() / 2).copied(), row.last().copied()]);
        }
        for (id, own_score) in batch {
            if let Some(other_score) = self.score(*id, driver + 1, accumulator.tier) {
                let rank = Rank::new(accumulator.tier, own_score + other_score, *id);
                accumulator.top.offer(rank);
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
    fn new(group: TermGroup, postings: &Postings) -> ScoredGroup {
        let mut scored = ScoredGroup {
            postings: Vec::with_capacity(group.expansions.len()),
            max_score: 0,
            blocks: BlockSet::default(),
            strong_blocks: BlockSet::default(),
            max_weak_score: 0,
            group,
        };
        for Expansion { terms, weight } in &scored.group.expansions {
            scored.postings.push((postings.range(terms), *weight));
            let max_score = scored.group.idf * weight.apply(max_impact(terms, postings));
            scored.max_score = scored.max_score.max(max_score);
        }
        for (Expansion { terms, weight }, (range, _)) in scored.group.expansions.iter().zip(&scored.postings) {
            let blocks = postings.blocks(range);
            scored.blocks.insert_all(blocks);
            if terms.len() > 1 {
                scored.strong_blocks.insert_all(blocks);
                continue;
            }
            // The list of a common term fills several blocks, with falling impacts.
            for (block, first) in postings.each_block(range) {
                let max_score = scored.group.idf * weight.apply(postings.impact(first));
                if max_score > scored.max_score / 2 {
                    scored.strong_blocks.insert(block);
                } else {
                    scored.max_weak_score = scored.max_weak_score.max(max_score);
                }
            }
        }
        scored
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
        _ if impacts.len() <= CACHE_THRESHOLD => impacts.iter().max(),
        _ => Some(&WHOLE_NAME),
    };
    greatest.copied().unwrap_or_default()
}
