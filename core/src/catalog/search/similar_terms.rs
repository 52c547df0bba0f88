//! The terms with one typing error against each term, found once when the index is built.
//!
//! Invariant: the similar terms of a term are those that [`TermDictionary::fuzzy_matches`] finds for it with one error, in
//! the order of their ids. So a query of a word that is a term walks no automaton. Two words with one error between them
//! become equal when each loses at most one letter, so they share a hash (symmetric deletion, Garbe 2012).
//!
//! [`TermDictionary::fuzzy_matches`]: super::term_dictionary::TermDictionary::fuzzy_matches

use super::{
    interner,
    levenshtein::LONGEST_PATTERN,
    term_dictionary::{TermId, allowed_errors},
};
use crate::{error::Result, large_buffer::large_buffer};

/// The most terms with the same hash that one of them is compared with; bounds the work in a hostile catalog.
const MAX_COMPARED: usize = 32;
/// The most similar terms kept for one term.
const MAX_SIMILAR: usize = 64;
/// The fewest letters of a term that is similar to another one.
const MIN_LETTERS: usize = 4;
/// An estimate of the letters of a term. `build` uses it to size its buffer.
const MEAN_LETTERS: usize = 9;

pub(super) struct SimilarTerms {
    /// The start of each term's list, then the end of the last one.
    starts: Vec<u32>,
    terms: Vec<TermId>,
}

impl SimilarTerms {
    /// Finds the similar terms of distinct terms in byte order.
    ///
    /// # Errors
    /// `Unavailable` if the system has too little memory.
    pub(super) fn build(sorted: &[&str]) -> Result<SimilarTerms> {
        let mut keys = large_buffer(sorted.len() * (MEAN_LETTERS + 1))?;
        for (id, term) in (0_u64..).zip(sorted) {
            each_hash(term, |hash| keys.push(u64::from(hash) << 32 | id));
        }
        keys.sort_unstable();
        let term = |key: u64| sorted[key as TermId as usize];
        let mut pairs = Vec::new();
        for group in keys.chunk_by(|one, other| one >> 32 == other >> 32) {
            for (place, &one) in group.iter().enumerate() {
                for &other in group[place + 1..].iter().take(MAX_COMPARED) {
                    if have_one_error(term(one), term(other)) {
                        pairs.extend([(one as TermId, other as TermId), (other as TermId, one as TermId)]);
                    }
                }
            }
        }
        drop(keys);
        pairs.retain(|(of, _)| allowed_errors(sorted[*of as usize]) > 0);
        pairs.sort_unstable();
        pairs.dedup();
        let (mut starts, mut terms) = (Vec::with_capacity(sorted.len() + 1), Vec::with_capacity(pairs.len()));
        let mut rest = pairs.as_slice();
        for id in 0..sorted.len() as TermId {
            starts.push(terms.len() as u32);
            let (own, others) = rest.split_at(rest.partition_point(|(of, _)| *of == id));
            terms.extend(own.iter().map(|(_, similar)| *similar).take(MAX_SIMILAR));
            rest = others;
        }
        starts.push(terms.len() as u32);
        Ok(SimilarTerms { starts, terms })
    }

    /// The terms with one error against a term.
    pub(super) fn of(&self, term: TermId) -> &[TermId] {
        let term = term as usize;
        &self.terms[self.starts[term] as usize..self.starts[term + 1] as usize]
    }
}

/// Calls `emit` with the hash of a term, and of the term without each of its letters. Terms that have no similar ones have
/// no hash.
fn each_hash(term: &str, mut emit: impl FnMut(u32)) {
    if !(MIN_LETTERS..=LONGEST_PATTERN + 1).contains(&term.chars().count()) {
        return;
    }
    emit(interner::hash(term));
    let mut shorter = String::with_capacity(term.len());
    for (at, letter) in term.char_indices() {
        shorter.clear();
        shorter.push_str(&term[..at]);
        shorter.push_str(&term[at + letter.len_utf8()..]);
        emit(interner::hash(&shorter));
    }
}

/// Whether one insertion, deletion, substitution or transposition of letters turns one word into the other.
fn have_one_error(one: &str, other: &str) -> bool {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum::<usize>();
    let (one, other) = (&one[same..], &other[same..]);
    let same = one
        .chars()
        .rev()
        .zip(other.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum::<usize>();
    let (mut one, mut other) = (one[..one.len() - same].chars(), other[..other.len() - same].chars());
    match (one.next(), one.next(), other.next(), other.next()) {
        (None, _, None, _) => false,
        (Some(a), Some(b), Some(c), Some(d)) => a == d && b == c && one.next().is_none() && other.next().is_none(),
        (_, second, _, other_second) => second.is_none() && other_second.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::term_dictionary::TermDictionary, *};

    #[test]
    fn words_with_one_error_are_told_from_others() {
        for (one, other) in [
            ("chess", "chess1"),
            ("chess", "chss"),
            ("chess", "chesz"),
            ("chess", "hcess"),
            ("chess", "chesss"),
            ("aab", "ab"),
            ("naïve", "naive"),
            ("한글", "한골"),
        ] {
            assert!(have_one_error(one, other) && have_one_error(other, one), "{one} {other}");
        }
        for (one, other) in [("chess", "chess"), ("chess", "chs"), ("chess", "hcsse"), ("abcd", "cbad"), ("abc", "cab")]
        {
            assert!(!have_one_error(one, other) && !have_one_error(other, one), "{one} {other}");
        }
    }

    #[test]
    fn the_similar_terms_are_those_that_a_search_finds() {
        let stems = ["chess", "wallet", "naïve", "한글하나둘셋", "abcde", "five5", "four", "tree"];
        let mut terms = std::collections::BTreeSet::new();
        for stem in stems {
            let letters: Vec<char> = stem.chars().collect();
            for at in 0..=letters.len() {
                let mut longer = letters.clone();
                longer.insert(at, 'x');
                terms.insert(longer.iter().collect::<String>());
                let mut shorter = letters.clone();
                shorter.truncate(at);
                terms.insert(shorter.into_iter().chain(letters.iter().skip(at + 1).copied()).collect());
                let mut swapped = letters.clone();
                swapped.swap(at.min(letters.len() - 1), at.saturating_sub(1));
                terms.insert(swapped.into_iter().collect());
            }
        }
        terms.extend(["a".repeat(61), "a".repeat(62), "a".repeat(63)]);
        let sorted: Vec<&str> = terms.iter().filter(|term| !term.is_empty()).map(String::as_str).collect();
        let dictionary = TermDictionary::build(&sorted);
        let similar = SimilarTerms::build(&sorted).expect("a small dictionary");
        let mut found = 0;
        for (id, term) in (0..).zip(&sorted) {
            let expected: Vec<TermId> = dictionary.fuzzy_matches(term, 1).into_iter().map(|(term, _)| term).collect();
            assert_eq!(similar.of(id), expected, "{term}");
            found += expected.len();
        }
        assert!(found > sorted.len(), "{found} pairs of {} terms", sorted.len());
    }

    #[test]
    fn a_hostile_dictionary_has_short_lists() {
        let terms: Vec<String> = ('一'..).take(20_000).map(|letter| format!("hostile{letter}")).collect();
        let sorted: Vec<&str> = terms.iter().map(String::as_str).collect();
        let similar = SimilarTerms::build(&sorted).expect("a small dictionary");
        assert!((0..sorted.len()).all(|id| (1..=MAX_SIMILAR).contains(&similar.of(id as TermId).len())));
    }
}
