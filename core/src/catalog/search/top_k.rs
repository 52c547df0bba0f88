//! Ranking: the order of search results, and a collector of the best `k`.
//!
//! Invariant: [`Tier`] decides first, then the score, then the smaller document id, which is the trending order. One
//! `u64` holds all three, so comparing two ranks compares two numbers.

use super::analyzer::{Impact, NAME_PREFIX, WHOLE_NAME};
use super::postings::DocumentId;

/// How a document matches a query, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// The document has some words of the query.
    SomeWords,
    /// The document has all words of the query.
    AllWords,
    /// The name starts with the query.
    NamePrefix,
    /// The name starts with the query, which ends at a word boundary.
    NameWordPrefix,
    /// The name equals the query without spaces and punctuation.
    WholeName,
    /// The name equals the query with its spaces and punctuation.
    ExactName,
}

/// The weight of a posting by how its term matches the word of the query, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExpansionWeight(u32);

impl ExpansionWeight {
    pub(super) const EXACT: ExpansionWeight = ExpansionWeight(100);
    pub(super) const COMPOUND: ExpansionWeight = ExpansionWeight(90);
    pub(super) const PREFIX: ExpansionWeight = ExpansionWeight(70);

    pub(super) fn fuzzy(errors: usize) -> ExpansionWeight {
        ExpansionWeight(if errors == 1 { 50 } else { 35 })
    }

    pub(super) fn apply(self, impact: Impact) -> u32 {
        self.0 * u32::from(impact)
    }
}

/// The rank of a document in a result: the greater, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u64);

impl Rank {
    pub(super) fn new(tier: Tier, score: u32, id: DocumentId) -> Rank {
        const MAX_SCORE: u32 = (1 << 28) - 1;
        Rank(u64::from((tier as u32) << 28 | score.min(MAX_SCORE)) << 32 | u64::from(DocumentId::MAX - id))
    }

    /// The rank for a query of one word: the impact of the posting determines the tier.
    pub(super) fn of_word(weight: ExpansionWeight, impact: Impact, id: DocumentId) -> Rank {
        match (weight, impact) {
            (ExpansionWeight::EXACT, WHOLE_NAME) => Rank::new(Tier::WholeName, 0, id),
            (ExpansionWeight::EXACT, NAME_PREFIX..) => Rank::new(Tier::NameWordPrefix, 0, id),
            (ExpansionWeight::PREFIX, NAME_PREFIX..) => Rank::new(Tier::NamePrefix, 0, id),
            _ => Rank::new(Tier::AllWords, weight.apply(impact), id),
        }
    }

    pub(super) fn document(self) -> DocumentId {
        DocumentId::MAX - self.0 as u32
    }

    pub(super) fn is_at_least(self, tier: Tier) -> bool {
        self.0 >> 60 >= tier as u64
    }
}

/// Collects the `limit` best ranks, at most one for each document.
pub(super) struct TopK {
    limit: usize,
    /// Best first.
    ranks: Vec<Rank>,
    /// The worst rank once the collector is full: a new rank must exceed it.
    threshold: Rank,
}

impl TopK {
    /// `limit` must be at least 1.
    pub(super) fn new(limit: usize) -> TopK {
        TopK { limit, ranks: Vec::with_capacity(limit.min(64) + 1), threshold: Rank(0) }
    }

    /// Whether `rank` exceeds the threshold.
    pub(super) fn admits(&self, rank: Rank) -> bool {
        rank > self.threshold
    }

    pub(super) fn is_full(&self) -> bool {
        self.ranks.len() >= self.limit
    }

    pub(super) fn first(&self) -> Option<Rank> {
        self.ranks.first().copied()
    }

    /// Inserts `rank` if it exceeds the threshold and `accept` returns true for its document. A document keeps the
    /// better of two ranks.
    pub(super) fn offer(&mut self, rank: Rank, accept: &dyn Fn(DocumentId) -> bool) {
        if !self.admits(rank) {
            return;
        }
        let id = rank.document();
        if let Some(at) = self.ranks.iter().position(|other| other.document() == id) {
            if self.ranks[at] >= rank {
                return;
            }
            self.ranks.remove(at);
        } else if !accept(id) {
            return;
        }
        let at = self.ranks.partition_point(|other| *other > rank);
        self.ranks.insert(at, rank);
        self.ranks.truncate(self.limit);
        if self.is_full() {
            self.threshold = self.ranks[self.limit - 1];
        }
    }

    pub(super) fn into_ranks(self) -> Vec<Rank> {
        self.ranks
    }
}
