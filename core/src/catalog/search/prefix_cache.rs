//! The prefix cache: the best documents for each prefix with too many postings to scan per query.
//!
//! Invariant: a cached list holds the first ranks that [`scan_prefix`] would give for its prefix, best first, so using
//! the cache changes no result. The index build fills it for every prefix with more than [`CACHE_THRESHOLD`] postings.

use std::collections::HashMap;

use super::postings::Postings;
use super::term_dictionary::{PrefixMatch, TermId};
use super::top_k::{ExpansionWeight, Rank, TopK};

/// The most postings that a query scans in a few microseconds.
pub(super) const CACHE_THRESHOLD: usize = 1024;
/// The ranks cached for a prefix. A longer result, or one that a filter shortens, scans the posting lists.
const CACHED_RANKS: usize = 64;

pub(super) struct PrefixCache {
    /// The key is the range of terms with the prefix, and whether the prefix itself is a term (it then ranks higher).
    ranks: HashMap<(TermId, TermId, bool), Box<[Rank]>>,
}

impl PrefixCache {
    /// Walks the prefixes of `sorted`, the terms in byte order, from short to long.
    pub(super) fn build(sorted: &[&str], postings: &Postings) -> PrefixCache {
        let mut ranks = HashMap::new();
        let mut ranges = vec![(0..postings.terms(), 0)];
        while let Some((range, depth)) = ranges.pop() {
            // All terms of the range share `depth` bytes; a term of exactly that length sorts first.
            let is_term = sorted[range.clone()].first().is_some_and(|term| term.len() == depth);
            let matched = PrefixMatch { terms: range.start as TermId..range.end as TermId, is_term };
            if postings.count(&matched.terms) <= CACHE_THRESHOLD {
                continue;
            }
            if depth > 0 {
                let mut top = TopK::new(CACHED_RANKS, &|_| true);
                scan_prefix(&matched, 0, postings, &mut top);
                let key = (matched.terms.start, matched.terms.end, is_term);
                ranks.insert(key, top.into_ranks().into_boxed_slice());
            }
            let mut start = range.start + usize::from(is_term);
            while start < range.end {
                let byte = sorted[start].as_bytes()[depth];
                let end = start + sorted[start..range.end].partition_point(|term| term.as_bytes()[depth] == byte);
                ranges.push((start..end, depth + 1));
                start = end;
            }
        }
        PrefixCache { ranks }
    }

    pub(super) fn get(&self, matched: &PrefixMatch) -> Option<&[Rank]> {
        self.ranks.get(&(matched.terms.start, matched.terms.end, matched.is_term)).map(AsRef::as_ref)
    }

    /// Whether a cached list holds every match of its prefix.
    pub(super) fn is_complete(ranks: &[Rank]) -> bool {
        ranks.len() < CACHED_RANKS
    }
}

/// Offers every document with a term that starts with the prefix, which has `errors` typing errors. Reads the posting
/// lists.
pub(super) fn scan_prefix(matched: &PrefixMatch, errors: usize, postings: &Postings, top: &mut TopK<'_>) {
    let mut terms = matched.terms.clone();
    let rank = |weight, impact, id| {
        let rank = Rank::of_word(weight, impact, id);
        if errors == 0 { rank } else { rank.with_errors(errors) }
    };
    if matched.is_term {
        let (ids, impacts) = postings.list(terms.start);
        for (&id, &impact) in ids.iter().zip(impacts) {
            let rank = rank(ExpansionWeight::EXACT, impact, id);
            // A posting list is sorted by rank: once one is too low, so are the rest.
            if !top.admits(rank) {
                break;
            }
            top.offer(rank);
        }
        terms.start += 1;
    }
    let (ids, impacts) = postings.lists(&terms);
    for (&id, &impact) in ids.iter().zip(impacts) {
        top.offer(rank(ExpansionWeight::PREFIX, impact, id));
    }
}
