//! Evaluation of a query of several words: the documents that have all of them, then those that have some.
//!
//! Invariant: the answer is that of scoring every document, unless the budget runs out; then it
//! is the best of those with the greatest impacts. It is `MaxScore` over lists in impact order: the rarest
//! word goes first, a document met is scored for all words at once through the forward index, and a list is left
//! as soon as its next posting could not make it into the best, were all other words there at their most.

use super::fields::WHOLE_NAME;
use super::postings::{DocumentId, Postings, Signature};
use super::query::{Expansion, Group};
use super::ranking::{Best, Rank, Tier};

/// What one search may meet, lists and documents, before it settles for what it has.
const MOST_FOR_ALL_WORDS: usize = 1 << 16;
const MOST_FOR_SOME_WORDS: usize = 1 << 12;

pub(super) struct Evaluation<'a> {
    postings: &'a Postings,
    /// The rarest first.
    groups: Vec<Group>,
    /// The most each group can add to a score.
    most: Vec<u32>,
    /// Where in the vocabulary each group is, to pass over most documents without its words unread.
    stretches: Vec<Signature>,
}

impl Evaluation<'_> {
    pub(super) fn new(postings: &Postings, mut groups: Vec<Group>) -> Evaluation<'_> {
        groups.sort_by_key(|group| group.postings);
        let most = groups.iter().map(|group| most(group, postings)).collect();
        let stretches = |group: &Group| {
            group.expansions.iter().fold(0, |bits, expansion| bits | postings.stretches(&expansion.terms))
        };
        let stretches = groups.iter().map(stretches).collect();
        Evaluation { postings, groups, most, stretches }
    }

    /// Documents with a word of each group: all of them are in the lists of the rarest.
    pub(super) fn all_words(&self, best: &mut Best, accept: &dyn Fn(DocumentId) -> bool) {
        self.drive(0, Tier::AllWords, &mut MOST_FOR_ALL_WORDS.clone(), best, accept);
    }

    /// Documents with a word of some group, group by group: what a rarer one had has been met.
    pub(super) fn some_words(&self, best: &mut Best, accept: &dyn Fn(DocumentId) -> bool) {
        let mut budget = MOST_FOR_SOME_WORDS;
        for driver in 0..self.groups.len() {
            self.drive(driver, Tier::SomeWords, &mut budget, best, accept);
        }
    }

    fn drive(
        &self,
        driver: usize,
        tier: Tier,
        budget: &mut usize,
        best: &mut Best,
        accept: &dyn Fn(DocumentId) -> bool,
    ) {
        let group = &self.groups[driver];
        let most_of_rest: u32 = self.most[driver + 1..].iter().sum();
        for expansion in &group.expansions {
            for term in expansion.terms.clone() {
                let (ids, impacts) = self.postings.list(term);
                let (mut level, mut own) = (0, 0);
                for (&id, &impact) in ids.iter().zip(impacts) {
                    *budget = budget.saturating_sub(1);
                    if impact != level {
                        (level, own) = (impact, group.rarity * expansion.closeness.strength(impact));
                        if *budget == 0 || !best.beats(Rank::new(tier, own + most_of_rest, id)) {
                            break;
                        }
                    }
                    if self.may_rank(id, own, driver, tier, best)
                        && let Some(score) = self.score(id, tier)
                    {
                        best.offer(Rank::new(tier, score, id), accept);
                    }
                }
                if *budget == 0 {
                    return;
                }
            }
        }
    }

    /// Whether the signature of a document leaves it a chance.
    fn may_rank(&self, id: DocumentId, own: u32, driver: usize, tier: Tier, best: &Best) -> bool {
        let signature = self.postings.signature(id);
        let mut most = own;
        for (stretches, group_most) in self.stretches.iter().zip(&self.most).skip(driver + 1) {
            if signature & stretches != 0 {
                most += group_most;
            } else if tier == Tier::AllWords {
                return false;
            }
        }
        best.beats(Rank::new(tier, most, id))
    }

    /// What the words of a document add up to; nothing where all are wanted and one is missing.
    pub(super) fn score(&self, id: DocumentId, tier: Tier) -> Option<u32> {
        let (terms, impacts) = self.postings.document(id);
        let mut score = 0;
        // The rarest last: the document comes from its list most often, so another is what it may lack.
        for group in self.groups.iter().skip(1).chain(self.groups.first()) {
            let mut strongest = 0;
            for Expansion { terms: wanted, closeness } in &group.expansions {
                let first = terms.partition_point(|term| *term < wanted.start);
                for (term, impact) in terms[first..].iter().zip(&impacts[first..]) {
                    if *term >= wanted.end {
                        break;
                    }
                    strongest = strongest.max(closeness.strength(*impact));
                }
            }
            if strongest == 0 && tier == Tier::AllWords {
                return None;
            }
            score += group.rarity * strongest;
        }
        Some(score)
    }
}

fn most(group: &Group, postings: &Postings) -> u32 {
    let greatest = |expansion: &Expansion| match expansion.terms.len() {
        1 => postings.list(expansion.terms.start).1.first().copied().unwrap_or_default(),
        _ => WHOLE_NAME,
    };
    let strongest = group.expansions.iter().map(|expansion| expansion.closeness.strength(greatest(expansion))).max();
    group.rarity * strongest.unwrap_or_default()
}
