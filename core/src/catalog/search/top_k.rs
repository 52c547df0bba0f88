//! Ranking: the order of search results, and a collector of the best `k`.
//!
//! Invariant: [`Tier`] decides first, then the score, then the smaller document id, which is the trending order.

use std::{cmp::Reverse, collections::HashMap};

use super::analyzer::{Impact, NAME_PREFIX, WHOLE_NAME};
use super::postings::DocumentId;

/// How a document matches a query, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// The document has some words of the query.
    SomeWords,
    /// The document has all words of the query, some with a typing error.
    FuzzyWords,
    /// The document has the two words that an unknown word of the query consists of.
    SplitWord,
    /// The name starts with the query, with a typing error.
    FuzzyName,
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
    /// The query is the address of the app.
    Address,
}

/// The weight of a posting by how its term matches the word of the query, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExpansionWeight(u32);

impl ExpansionWeight {
    pub(super) const EXACT: ExpansionWeight = ExpansionWeight(100);
    pub(super) const COMPOUND: ExpansionWeight = ExpansionWeight(90);
    /// The plural of a word for its singular, and the reverse.
    pub(super) const INFLECTED: ExpansionWeight = ExpansionWeight(85);
    pub(super) const PREFIX: ExpansionWeight = ExpansionWeight(70);

    pub(super) fn fuzzy(errors: usize) -> ExpansionWeight {
        ExpansionWeight(if errors == 1 { 50 } else { 35 })
    }

    /// The weight of the terms that start with a misspelt word.
    pub(super) fn fuzzy_prefix(errors: usize) -> ExpansionWeight {
        ExpansionWeight(if errors == 1 { 40 } else { 28 })
    }

    pub(super) fn apply(self, impact: Impact) -> u32 {
        self.0 * u32::from(impact)
    }
}

/// The rank of a document in a result: the greater, the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    tier: Tier,
    score: u32,
    id: Reverse<DocumentId>,
}

impl Rank {
    pub(super) fn new(tier: Tier, score: u32, id: DocumentId) -> Rank {
        Rank { tier, score, id: Reverse(id) }
    }

    /// The rank for a query of one word: the impact of the posting determines the tier.
    pub(super) fn of_word(weight: ExpansionWeight, impact: Impact, id: DocumentId) -> Rank {
        match (weight, impact) {
            (ExpansionWeight::EXACT, WHOLE_NAME) => Rank::new(Tier::WholeName, 0, id),
            (ExpansionWeight::EXACT, NAME_PREFIX..) => Rank::new(Tier::NameWordPrefix, 0, id),
            (ExpansionWeight::PREFIX | ExpansionWeight::INFLECTED, NAME_PREFIX..) => Rank::new(Tier::NamePrefix, 0, id),
            _ => Rank::new(Tier::AllWords, weight.apply(impact), id),
        }
    }

    pub(super) fn document(self) -> DocumentId {
        self.id.0
    }

    pub(super) fn is_at_least(self, tier: Tier) -> bool {
        self.tier >= tier
    }

    pub(super) fn score(self) -> u32 {
        self.score
    }

    /// The rank of a match of a misspelt word, from its rank for the corrected word. The order of two ranks stays.
    pub(super) fn with_errors(self, errors: usize) -> Rank {
        if self.tier <= Tier::AllWords {
            return Rank { tier: Tier::FuzzyWords, score: self.score / (1 + errors as u32), ..self };
        }
        let score = (self.tier as u32) << 2 | (3 - errors.min(3) as u32);
        Rank { tier: Tier::FuzzyName, score, ..self }
    }
}

/// A collector with a greater limit collects every match and sorts at the end: inserting into a long sorted list is slow.
const MAX_SORTED: usize = 256;

/// Collects the `limit` best ranks, at most one for each document, or for each group of documents.
pub(super) struct TopK<'a> {
    limit: usize,
    /// Best first.
    ranks: Vec<Rank>,
    /// The ranks by group, for a limit over [`MAX_SORTED`].
    by_group: Option<HashMap<u32, Rank>>,
    best: Option<Rank>,
    /// The worst rank once the collector is full, or a floor: a new rank must exceed it.
    threshold: Option<Rank>,
    /// The number of the group of each document. Without groups each document is its own.
    groups: Option<&'a [u32]>,
    accept: &'a dyn Fn(DocumentId) -> bool,
}

impl<'a> TopK<'a> {
    /// `limit` must be at least 1. Collects documents that `accept` returns true for.
    pub(super) fn new(limit: usize, accept: &'a dyn Fn(DocumentId) -> bool) -> TopK<'a> {
        TopK {
            limit,
            ranks: Vec::with_capacity(limit.min(64) + 1),
            by_group: (limit > MAX_SORTED).then(HashMap::new),
            best: None,
            threshold: None,
            groups: None,
            accept,
        }
    }

    /// Collects the best document of each group. `groups` has the number of each document's group.
    pub(super) fn grouped(mut self, groups: Option<&'a [u32]>) -> TopK<'a> {
        self.groups = groups;
        self
    }

    /// Whether `rank` exceeds the threshold.
    pub(super) fn admits(&self, rank: Rank) -> bool {
        Some(rank) > self.threshold
    }

    /// From here on, collects only ranks over `floor`.
    pub(super) fn raise_floor(&mut self, floor: Rank) {
        self.threshold = self.threshold.max(Some(floor));
    }

    /// Lets every rank in again that the `limit` allows.
    pub(super) fn clear_floor(&mut self) {
        self.threshold = self.ranks.get(self.limit - 1).copied();
    }

    /// Drops the collected ranks under `floor`.
    pub(super) fn drop_under(&mut self, floor: Rank) {
        self.ranks.retain(|rank| *rank >= floor);
        if let Some(ranks) = &mut self.by_group {
            ranks.retain(|_, rank| *rank >= floor);
        }
    }

    /// Whether nothing but better ranks can enter. Never true of a collector that collects every match.
    pub(super) fn is_full(&self) -> bool {
        self.ranks.len() >= self.limit
    }

    pub(super) fn first(&self) -> Option<Rank> {
        self.best
    }

    /// Inserts `rank` if it exceeds the threshold and its document is accepted. A group keeps the best of its ranks.
    pub(super) fn offer(&mut self, rank: Rank) {
        if !self.admits(rank) {
            return;
        }
        let id = rank.document();
        let group = |id: DocumentId| self.groups.map_or(id, |groups| groups[id as usize]);
        let own = group(id);
        if let Some(by_group) = &mut self.by_group {
            let known = by_group.get(&own);
            if known.is_some_and(|known| *known >= rank) || !(self.accept)(id) {
                return;
            }
            by_group.insert(own, rank);
        } else {
            let known = self.ranks.iter().position(|other| group(other.document()) == own);
            if known.is_some_and(|at| self.ranks[at] >= rank) || !(self.accept)(id) {
                return;
            }
            if let Some(at) = known {
                self.ranks.remove(at);
            }
            let at = self.ranks.partition_point(|other| *other > rank);
            self.ranks.insert(at, rank);
            self.ranks.truncate(self.limit);
            if self.is_full() {
                self.threshold = self.threshold.max(self.ranks.last().copied());
            }
        }
        self.best = self.best.max(Some(rank));
    }

    /// The collected ranks, best first.
    pub(super) fn into_ranks(self) -> Vec<Rank> {
        let Some(by_group) = self.by_group else { return self.ranks };
        let mut ranks: Vec<Rank> = by_group.into_values().collect();
        ranks.sort_unstable_by(|one, other| other.cmp(one));
        ranks.truncate(self.limit);
        ranks
    }
}
