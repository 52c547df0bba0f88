//! Heads: the best documents for each prefix that has too many postings to look through.
//!
//! Invariant: a head holds what looking through the lists of its range would give, best first, so using one
//! changes no answer. Computed for every range of more than [`MANY`] postings, which are few: they nest,
//! and what a prefix of one letter costs is paid once, when the index is built.

use std::collections::HashMap;

use super::postings::Postings;
use super::ranking::{Best, Closeness, Rank};
use super::vocabulary::{Spelling, Term};

/// Fewer postings than this are looked through in a few microseconds.
pub(super) const MANY: usize = 1024;
/// How long a head is; a longer answer, or one that a filter thins out, looks through the lists.
const LENGTH: usize = 64;

pub(super) struct Heads {
    /// By range, and by whether the prefix is itself a term, which is then better than the rest.
    heads: HashMap<(Term, Term, bool), Box<[Rank]>>,
}

impl Heads {
    pub(super) fn build(sorted: &[&str], postings: &Postings) -> Heads {
        let mut heads = HashMap::new();
        let mut ranges = vec![(0..postings.terms(), 0)];
        while let Some((range, depth)) = ranges.pop() {
            // All terms of the range share `depth` bytes; the one that ends there comes first.
            let is_term = sorted[range.clone()].first().is_some_and(|term| term.len() == depth);
            let spelling = Spelling { range: range.start as Term..range.end as Term, is_term };
            if postings.count(&spelling.range) <= MANY {
                continue;
            }
            if depth > 0 {
                let mut best = Best::new(LENGTH);
                look_through(&spelling, postings, &mut best, &|_| true);
                let key = (spelling.range.start, spelling.range.end, is_term);
                heads.insert(key, best.into_ranks().into_boxed_slice());
            }
            let mut start = range.start + usize::from(is_term);
            while start < range.end {
                let byte = sorted[start].as_bytes()[depth];
                let end = start + sorted[start..range.end].partition_point(|term| term.as_bytes()[depth] == byte);
                ranges.push((start..end, depth + 1));
                start = end;
            }
        }
        Heads { heads }
    }

    pub(super) fn get(&self, spelling: &Spelling) -> Option<&[Rank]> {
        self.heads.get(&(spelling.range.start, spelling.range.end, spelling.is_term)).map(AsRef::as_ref)
    }

    pub(super) fn is_whole(head: &[Rank]) -> bool {
        head.len() < LENGTH
    }
}

/// Offers every document that has a word with this prefix.
pub(super) fn look_through(spelling: &Spelling, postings: &Postings, best: &mut Best, accept: &dyn Fn(u32) -> bool) {
    let mut rest = spelling.range.clone();
    if spelling.is_term {
        let (ids, impacts) = postings.list(rest.start);
        for (&id, &impact) in ids.iter().zip(impacts) {
            let rank = Rank::of_word(Closeness::EXACT, impact, id);
            // Sorted: no later one is better, unless a filter turns this one away.
            if !best.beats(rank) {
                break;
            }
            best.offer(rank, accept);
        }
        rest.start += 1;
    }
    let (ids, impacts) = postings.lists(&rest);
    for (&id, &impact) in ids.iter().zip(impacts) {
        best.offer(Rank::of_word(Closeness::PREFIX, impact, id), accept);
    }
}
