//! Ranking: what makes one answer better than another, and the best few kept.
//!
//! Invariant: a higher [`Tier`] is always before a lower one, whatever the words weigh; within a tier the
//! score decides, then the smaller id, which is the trending order. One `u64` holds all three, so
//! comparing answers is comparing numbers.

use super::fields::{Impact, OPENING, WHOLE_NAME};
use super::postings::DocumentId;

/// Why a document is an answer, the weakest reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    SomeWords,
    AllWords,
    NameStarts,
    /// The name starts with the query, and a word ends there.
    NameStartsWithWord,
    WholeName,
    /// The same name, down to its punctuation.
    NameAsTyped,
}

/// How a word of the query became a term: what share of an impact it is worth, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closeness(u32);

impl Closeness {
    pub(super) const EXACT: Closeness = Closeness(100);
    pub(super) const COMPOUND: Closeness = Closeness(90);
    pub(super) const PREFIX: Closeness = Closeness(70);

    pub(super) fn misspelt(errors: usize) -> Closeness {
        Closeness(if errors == 1 { 50 } else { 35 })
    }

    pub(super) fn strength(self, impact: Impact) -> u32 {
        self.0 * u32::from(impact)
    }
}

/// The rank of a document, greater is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u64);

impl Rank {
    pub(super) fn new(tier: Tier, score: u32, id: DocumentId) -> Rank {
        const MOST: u32 = (1 << 28) - 1;
        Rank(u64::from((tier as u32) << 28 | score.min(MOST)) << 32 | u64::from(DocumentId::MAX - id))
    }

    /// For a query of one word: the tier is read off the impact.
    pub(super) fn of_word(closeness: Closeness, impact: Impact, id: DocumentId) -> Rank {
        match (closeness, impact) {
            (Closeness::EXACT, WHOLE_NAME) => Rank::new(Tier::WholeName, 0, id),
            (Closeness::EXACT, OPENING..) => Rank::new(Tier::NameStartsWithWord, 0, id),
            (Closeness::PREFIX, OPENING..) => Rank::new(Tier::NameStarts, 0, id),
            _ => Rank::new(Tier::AllWords, closeness.strength(impact), id),
        }
    }

    pub(super) fn document(self) -> DocumentId {
        DocumentId::MAX - self.0 as u32
    }

    pub(super) fn is_at_least(self, tier: Tier) -> bool {
        self.0 >> 60 >= tier as u64
    }
}

/// The best `limit` documents so far, each once.
pub(super) struct Best {
    limit: usize,
    /// The best first.
    ranks: Vec<Rank>,
    /// What a newcomer has to beat.
    floor: Rank,
}

impl Best {
    /// `limit` must be at least 1.
    pub(super) fn new(limit: usize) -> Best {
        Best { limit, ranks: Vec::with_capacity(limit.min(64) + 1), floor: Rank(0) }
    }

    pub(super) fn beats(&self, rank: Rank) -> bool {
        rank > self.floor
    }

    pub(super) fn is_full(&self) -> bool {
        self.ranks.len() >= self.limit
    }

    pub(super) fn first(&self) -> Option<Rank> {
        self.ranks.first().copied()
    }

    /// Takes `rank` in where it belongs, if it is among the best and `accept` agrees. A document keeps
    /// the better of two ranks.
    pub(super) fn offer(&mut self, rank: Rank, accept: &dyn Fn(DocumentId) -> bool) {
        if !self.beats(rank) {
            return;
        }
        let id = rank.document();
        if let Some(place) = self.ranks.iter().position(|other| other.document() == id) {
            if self.ranks[place] >= rank {
                return;
            }
            self.ranks.remove(place);
        } else if !accept(id) {
            return;
        }
        let place = self.ranks.partition_point(|other| *other > rank);
        self.ranks.insert(place, rank);
        self.ranks.truncate(self.limit);
        if self.is_full() {
            self.floor = self.ranks[self.limit - 1];
        }
    }

    pub(super) fn into_ranks(self) -> Vec<Rank> {
        self.ranks
    }
}
