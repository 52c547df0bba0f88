//! The terms with one typing error against each term, found once when the index is built.
//!
//! Invariant: the similar terms that are kept for a term are those that [`TermDictionary::fuzzy_matches`] finds for it with
//! one error, in the order of their ids, up to the limits of both; so keeping them changes no result. Two words with one
//! error between them become equal when each loses at most one letter, so they share a hash (symmetric deletion, Garbe
//! 2012).
//!
//! [`TermDictionary::fuzzy_matches`]: super::term_dictionary::TermDictionary::fuzzy_matches

use std::ops::RangeInclusive;

use super::{interner, term_dictionary::TermId};
use crate::{error::Result, large_buffer::large_buffer};

/// The most terms with the same hash that one of them is compared with; bounds the work in a hostile catalog.
const MAX_COMPARED: usize = 32;
/// The most similar terms of one term.
const MAX_SIMILAR: usize = 64;
/// The letters of a term whose similar terms are kept. Shorter ones have none; few longer ones are typed as one word.
const LETTERS: RangeInclusive<usize> = 5..=12;
/// In a larger dictionary, only terms of several apps have their similar terms kept. Most of the others are two words
/// written as one.
const SMALL_DICTIONARY: usize = 1 << 16;

pub(super) struct SimilarTerms {
    /// The start of each term's list in `lists`, or [`SimilarTerms::NOT_KEPT`].
    starts: Vec<u32>,
    /// Each list has its length before it. The first one is empty.
    lists: Vec<TermId>,
}

impl SimilarTerms {
    const NOT_KEPT: u32 = u32::MAX;
    const EMPTY: u32 = 0;

    /// Finds the similar terms of distinct terms in byte order, whose numbers of apps `apps` gives.
    ///
    /// # Errors
    /// `Unavailable` if the system has too little memory.
    pub(super) fn build(sorted: &[&str], apps: impl Fn(TermId) -> usize) -> Result<SimilarTerms> {
        let is_small = sorted.len() <= SMALL_DICTIONARY;
        let terms = || (0 as TermId..).zip(sorted).map(|(id, term)| (id, *term, letters(term)));
        let mut starts = vec![SimilarTerms::NOT_KEPT; sorted.len()];
        let mut hashes = HashFilter::new();
        for (id, term, length) in terms() {
            if LETTERS.contains(&length) && (is_small || apps(id) > 1) {
                starts[id as usize] = SimilarTerms::EMPTY;
                each_hash(term, |hash| hashes.insert(hash));
            }
        }
        // A key is a hash, and in its lower half the id of a term that has it.
        let mut keys = large_buffer(1 << 20)?;
        for (id, term, _) in terms().filter(|(.., length)| (LETTERS.start() - 1..=LETTERS.end() + 1).contains(length)) {
            each_hash(term, |hash| {
                if hashes.may_have(hash) {
                    keys.push(u64::from(hash) << 32 | u64::from(id));
                }
            });
        }
        keys.sort_unstable();
        let is_kept = |id: TermId| starts[id as usize] == SimilarTerms::EMPTY;
        let are_similar = |one: TermId, other: TermId| have_one_error(sorted[one as usize], sorted[other as usize]);
        let mut pairs = Vec::new();
        for group in keys.chunk_by(|one, other| one >> 32 == other >> 32) {
            for (place, &one) in group.iter().enumerate() {
                for &other in group[place + 1..].iter().take(MAX_COMPARED) {
                    let (one, other) = (one as TermId, other as TermId);
                    if (is_kept(one) || is_kept(other)) && are_similar(one, other) {
                        pairs.extend([(one, other), (other, one)].into_iter().filter(|(of, _)| is_kept(*of)));
                    }
                }
            }
        }
        drop(keys);
        pairs.sort_unstable();
        pairs.dedup();
        let mut lists = vec![0];
        for list in pairs.chunk_by(|one, other| one.0 == other.0) {
            let length = list.len().min(MAX_SIMILAR);
            starts[list[0].0 as usize] = lists.len() as u32;
            lists.push(length as u32);
            lists.extend(list[..length].iter().map(|(_, similar)| *similar));
        }
        Ok(SimilarTerms { starts, lists })
    }

    /// The terms with one error against a term; `None` if they are not kept.
    pub(super) fn of(&self, term: TermId) -> Option<&[TermId]> {
        let start = Some(self.starts[term as usize]).filter(|start| *start != SimilarTerms::NOT_KEPT)? as usize;
        let length = self.lists[start] as usize;
        Some(&self.lists[start + 1..][..length])
    }
}

/// The hashes of the terms whose similar terms are kept, one bit for those with the same first bits (a Bloom filter with
/// one function). It leaves out most of the other terms, which share no hash with them.
struct HashFilter(Vec<u64>);

impl HashFilter {
    const BITS: u32 = 23;

    fn new() -> HashFilter {
        HashFilter(vec![0; 1 << (HashFilter::BITS - u64::BITS.ilog2())])
    }

    fn insert(&mut self, hash: u32) {
        let (word, bit) = HashFilter::place(hash);
        self.0[word] |= bit;
    }

    /// False if the hash was certainly not inserted.
    fn may_have(&self, hash: u32) -> bool {
        let (word, bit) = HashFilter::place(hash);
        self.0[word] & bit != 0
    }

    fn place(hash: u32) -> (usize, u64) {
        let place = hash >> (u32::BITS - HashFilter::BITS);
        ((place / u64::BITS) as usize, 1 << (place % u64::BITS))
    }
}

/// The number of letters. Most terms are in ASCII, and counting characters takes longer.
fn letters(term: &str) -> usize {
    if term.is_ascii() { term.len() } else { term.chars().count() }
}

/// Calls `emit` with the hash of a term, and of the term without each of its letters.
fn each_hash(term: &str, mut emit: impl FnMut(u32)) {
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
    let same = common_bytes(one.chars(), other.chars());
    let (one, other) = (&one[same..], &other[same..]);
    let same = common_bytes(one.chars().rev(), other.chars().rev());
    let (mut one, mut other) = (one[..one.len() - same].chars(), other[..other.len() - same].chars());
    match (one.next(), one.next(), other.next(), other.next()) {
        (None, _, None, _) => false,
        (Some(a), Some(b), Some(c), Some(d)) => a == d && b == c && one.next().is_none() && other.next().is_none(),
        (_, second, _, other_second) => second.is_none() && other_second.is_none(),
    }
}

/// The length in bytes of the letters that both begin with.
fn common_bytes(one: impl Iterator<Item = char>, other: impl Iterator<Item = char>) -> usize {
    one.zip(other).take_while(|(letter, other)| letter == other).map(|(letter, _)| letter.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::{super::term_dictionary::TermDictionary, *};

    #[test]
    fn one_typing_error_is_recognised() {
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
    fn similar_terms_equal_the_fuzzy_matches_with_one_error() {
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
        terms.extend((11..16).map(|length| "a".repeat(length)));
        let sorted: Vec<&str> = terms.iter().filter(|term| !term.is_empty()).map(String::as_str).collect();
        let dictionary = TermDictionary::build(&sorted);
        let similar = SimilarTerms::build(&sorted, |_| 1).expect("a small dictionary");
        let mut found = 0;
        for (id, term) in (0..).zip(&sorted) {
            let expected: Vec<TermId> = dictionary.fuzzy_matches(term, 1).into_iter().map(|(term, _)| term).collect();
            match similar.of(id) {
                Some(similar) => assert_eq!(similar, expected, "{term}"),
                None => assert!(!LETTERS.contains(&term.chars().count()), "{term}"),
            }
            found += expected.len();
        }
        assert!(found > sorted.len(), "{found} pairs of {} terms", sorted.len());
    }

    #[test]
    fn the_lists_of_a_hostile_dictionary_are_bounded() {
        let terms: Vec<String> = ('一'..).take(20_000).map(|letter| format!("hostile{letter}")).collect();
        let sorted: Vec<&str> = terms.iter().map(String::as_str).collect();
        let similar = SimilarTerms::build(&sorted, |_| 1).expect("a small dictionary");
        let is_short = |id| similar.of(id).is_some_and(|similar| (1..=MAX_SIMILAR).contains(&similar.len()));
        assert!((0..20_000).all(is_short));
    }

    #[test]
    fn a_large_dictionary_keeps_lists_only_for_terms_of_several_apps() {
        let terms: Vec<String> = (100_000..200_000).map(|number| format!("{number}")).collect();
        let sorted: Vec<&str> = terms.iter().map(String::as_str).collect();
        let similar = SimilarTerms::build(&sorted, |id| if id == 23_456 { 2 } else { 1 }).expect("a dictionary");
        let found = similar.of(23_456).expect("a term of two apps");
        assert!(found.iter().any(|id| sorted[*id as usize] == "123546") && found.len() > 30, "{found:?}");
        assert_eq!((0..100_000).filter(|id| similar.of(*id).is_some()).count(), 1);
    }
}
