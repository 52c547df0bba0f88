//! Evaluation of a query of several words: the documents that have all of them, then those that have some.
//!
//! Invariant: the answer is that of scoring every document, unless the budget runs out; then it
//! is the best of those with the greatest impacts. It is `MaxScore` over lists in impact order: the rarest
//! word goes first, a document met is asked for the other words through the forward index, and a list is left
//! as soon as its next posting could not make it into the best, were all other words there at their most.

use std::{hint::black_box, ops::Range};

use super::fields::{Impact, WHOLE_NAME};
use super::heads::MANY;
use super::postings::{DocumentId, Place, Postings, Signature};
use super::query::{Expansion, Group};
use super::ranking::{Best, Closeness, Rank, Tier};
use super::vocabulary::Term;

/// What one search may meet, lists and documents, before it settles for what it has.
const MOST_FOR_ALL_WORDS: usize = 1 << 16;
const MOST_FOR_SOME_WORDS: usize = 1 << 12;
/// How many documents are fetched at a time: about as many as memory can be asked for at once.
const BATCH: usize = 16;

pub(super) struct Evaluation<'a> {
    postings: &'a Postings,
    /// The rarest first.
    words: Vec<Word>,
    /// Whether every word of the query stands for something.
    is_complete: bool,
}

/// A word of the query, as the postings have it.
struct Word {
    group: Group,
    /// Where the postings of each expansion are, and how close it is.
    places: Vec<(Range<Place>, Closeness)>,
    /// The most it can add to a score.
    most: u32,
    /// Where its places are, to pass over most documents without it unread.
    stretches: Signature,
    /// The stretches without which it adds at most `most_if_weak`.
    strong: Signature,
    most_if_weak: u32,
}

/// What an evaluation adds to as it goes.
struct Progress<'a> {
    tier: Tier,
    /// What may still be met.
    budget: usize,
    best: &'a mut Best,
    accept: &'a dyn Fn(DocumentId) -> bool,
}

impl Evaluation<'_> {
    /// Of a query of `words` words, of which `groups` stand for something.
    pub(super) fn new(postings: &Postings, mut groups: Vec<Group>, words: usize) -> Evaluation<'_> {
        let is_complete = groups.len() == words;
        groups.sort_by_key(|group| group.postings);
        let words = groups.into_iter().map(|group| Word::new(group, postings)).collect();
        Evaluation { postings, words, is_complete }
    }

    /// Documents with a word of each group: all of them are in the lists of the rarest.
    pub(super) fn all_words(&self, best: &mut Best, accept: &dyn Fn(DocumentId) -> bool) {
        if self.is_complete && !self.words.is_empty() {
            let mut progress = Progress { tier: Tier::AllWords, budget: MOST_FOR_ALL_WORDS, best, accept };
            self.drive(0, self.rest(0), &mut progress);
        }
    }

    /// Documents with a word of some group, group by group: what a rarer one had has been met, and before that
    /// what has all of them.
    pub(super) fn some_words(&self, best: &mut Best, accept: &dyn Fn(DocumentId) -> bool) {
        let mut progress = Progress { tier: Tier::SomeWords, budget: MOST_FOR_SOME_WORDS, best, accept };
        for driver in 0..self.words.len() {
            let mut rest = self.rest(driver);
            if driver == 0 && self.is_complete {
                // One of the others is missing, at least that which says the least.
                rest -= self.words[1..].iter().map(|word| word.most).min().unwrap_or_default();
            }
            match rest {
                0 => self.alone(driver, &mut progress),
                _ => self.drive(driver, rest, &mut progress),
            }
        }
    }

    /// The most that the words after `driver` can add.
    fn rest(&self, driver: usize) -> u32 {
        self.words[driver + 1..].iter().map(|word| word.most).sum()
    }

    /// Offers the documents of a word, where no other can add to it.
    fn alone(&self, driver: usize, progress: &mut Progress<'_>) {
        let Progress { tier, best, accept, .. } = progress;
        let group = &self.words[driver].group;
        for expansion in &group.expansions {
            for term in expansion.terms.clone() {
                let (ids, impacts) = self.postings.list(term);
                for (&id, &impact) in ids.iter().zip(impacts) {
                    let rank = Rank::new(*tier, group.rarity * expansion.closeness.strength(impact), id);
                    if !best.beats(rank) {
                        break;
                    }
                    best.offer(rank, *accept);
                }
            }
        }
    }

    /// Offers the documents of a word with what the words after it add, which is at most `rest`.
    fn drive(&self, driver: usize, rest: u32, progress: &mut Progress<'_>) {
        let group = &self.words[driver].group;
        let mut batch = [(0, 0); BATCH];
        let mut length = 0;
        for (expansion, (all_places, _)) in group.expansions.iter().zip(&self.words[driver].places) {
            let mut fetched = all_places.start;
            for term in expansion.terms.clone() {
                let (ids, impacts) = self.postings.list(term);
                let places = self.postings.places(&(term..term + 1));
                let (mut level, mut own) = (0, 0);
                for (place, (&id, &impact)) in places.zip(ids.iter().zip(impacts)) {
                    if place >= fetched {
                        fetched = all_places.end.min(place + BATCH as Place);
                        self.postings.fetch(place..fetched);
                    }
                    progress.budget = progress.budget.saturating_sub(1);
                    if impact != level {
                        (level, own) = (impact, group.rarity * expansion.closeness.strength(impact));
                        if progress.budget == 0 || !progress.best.beats(Rank::new(progress.tier, own + rest, id)) {
                            break;
                        }
                    }
                    // Written in any case and counted if it counts: no branch to guess wrong.
                    batch[length] = (id, own);
                    length += usize::from(self.may_rank(id, own, driver, progress));
                    if length == BATCH {
                        self.settle(&batch, driver, progress);
                        length = 0;
                    }
                }
                if progress.budget == 0 {
                    break;
                }
            }
        }
        self.settle(&batch[..length], driver, progress);
    }

    /// Whether the signature of a document leaves it a chance.
    fn may_rank(&self, id: DocumentId, own: u32, driver: usize, progress: &Progress<'_>) -> bool {
        let mut most = own;
        let mut has_all = true;
        for word in &self.words[driver + 1..] {
            let may_have = self.postings.may_have(id, &word.stretches);
            let may_be_strong = self.postings.may_have(id, &word.strong);
            most += u32::from(may_have) * if may_be_strong { word.most } else { word.most_if_weak };
            has_all &= may_have;
        }
        (has_all | (progress.tier != Tier::AllWords)) & progress.best.beats(Rank::new(progress.tier, most, id))
    }

    /// Offers documents of the driver's, each with what it adds to the score.
    fn settle(&self, batch: &[(DocumentId, u32)], driver: usize, progress: &mut Progress<'_>) {
        // All rows are asked of memory before the first is read, so that it is waited for once and not for each.
        for (id, _) in batch {
            let row = self.postings.row(*id);
            black_box([row.first().copied(), row.get(row.len() / 2).copied(), row.last().copied()]);
        }
        for (id, own) in batch {
            if let Some(others) = self.score(*id, driver + 1, progress.tier) {
                progress.best.offer(Rank::new(progress.tier, own + others, *id), progress.accept);
            }
        }
    }

    /// What the words of a document add up to, from the `first` on; nothing where all are wanted and one is missing.
    pub(super) fn score(&self, id: DocumentId, first: usize, tier: Tier) -> Option<u32> {
        let row = self.postings.row(id);
        let mut score = 0;
        for word in &self.words[first..] {
            let strongest = word.strongest(row, self.postings);
            if strongest == 0 && tier == Tier::AllWords {
                return None;
            }
            score += word.group.rarity * strongest;
        }
        Some(score)
    }
}

impl Word {
    fn new(group: Group, postings: &Postings) -> Word {
        let mut word = Word {
            places: Vec::with_capacity(group.expansions.len()),
            most: 0,
            stretches: Signature::default(),
            strong: Signature::default(),
            most_if_weak: 0,
            group,
        };
        for Expansion { terms, closeness } in &word.group.expansions {
            word.places.push((postings.places(terms), *closeness));
            let most = word.group.rarity * closeness.strength(greatest(terms, postings));
            word.most = word.most.max(most);
        }
        for (Expansion { terms, closeness }, (places, _)) in word.group.expansions.iter().zip(&word.places) {
            let stretches = postings.stretches(places);
            word.stretches.add_all(stretches);
            if terms.len() > 1 {
                word.strong.add_all(stretches);
                continue;
            }
            // The list of a common term has several stretches, each weaker than the one before.
            for (stretch, first) in postings.each_stretch(places) {
                let most = word.group.rarity * closeness.strength(postings.impact(first));
                if most > word.most / 2 {
                    word.strong.add(stretch);
                } else {
                    word.most_if_weak = word.most_if_weak.max(most);
                }
            }
        }
        word
    }

    /// The strongest that a row has of it; 0 of none.
    fn strongest(&self, row: &[Place], postings: &Postings) -> u32 {
        let mut strongest = 0;
        for (wanted, closeness) in &self.places {
            let first = row.partition_point(|place| *place < wanted.start);
            for place in row[first..].iter().take_while(|place| **place < wanted.end) {
                strongest = strongest.max(closeness.strength(postings.impact(*place)));
            }
        }
        strongest
    }
}

/// No impact of these terms is greater.
fn greatest(terms: &Range<Term>, postings: &Postings) -> Impact {
    let (_, impacts) = postings.lists(terms);
    let greatest = match terms.len() {
        1 => impacts.first(),
        _ if impacts.len() <= MANY => impacts.iter().max(),
        _ => Some(&WHOLE_NAME),
    };
    greatest.copied().unwrap_or_default()
}
