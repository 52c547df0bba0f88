//! Invented words with the frequencies of a natural language.
//!
//! Invariant: a word follows from its rank alone, and frequency is inversely proportional to rank (Zipf's law). The cost
//! of a search depends on the lengths of its posting lists, so a uniform vocabulary would measure something else.

use super::splitmix::SplitMix;

/// Number of distinct words. The real catalog has 6,200 in 2,500 apps; by Heaps' law 100,000 apps have about ten times that.
const VOCABULARY: f64 = 60_000.0;

const OPENINGS: [&str; 32] = [
    "b", "br", "c", "ch", "cl", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "pl", "pr", "qu",
    "r", "s", "sh", "sl", "st", "t", "th", "tr", "v", "w", "z",
];
const VOWELS: [&str; 12] = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "oo", "ou", "y"];
const CLOSINGS: [&str; 16] = ["", "", "", "", "ck", "d", "l", "m", "n", "nd", "ng", "p", "r", "s", "t", "x"];

fn syllables(count: usize, random: &mut SplitMix) -> String {
    let mut word = String::new();
    for _ in 0..count {
        word.push_str(random.pick(&OPENINGS));
        word.push_str(random.pick(&VOWELS));
    }
    word.push_str(random.pick(&CLOSINGS));
    word
}

/// Returns the word of a rank, counted from 1. Frequent words are short.
fn ranked(rank: usize) -> String {
    let count = match rank {
        0..100 => 1,
        100..5_000 => 2,
        _ => 3,
    };
    syllables(count, &mut SplitMix::new(rank as u64))
}

/// Returns a word of running text.
pub(super) fn common(random: &mut SplitMix) -> String {
    ranked(VOCABULARY.powf(random.fraction()) as usize)
}

/// Returns a word of running text that is not one of the 50 most frequent; names are made of these.
pub(super) fn distinctive(random: &mut SplitMix) -> String {
    ranked(50 + VOCABULARY.powf(random.fraction()) as usize)
}

/// Returns an invented word of two or three syllables.
pub(super) fn invented(random: &mut SplitMix) -> String {
    let count = 2 + random.below(2);
    syllables(count, random)
}

/// Returns `word` with its first letter in upper case.
pub(super) fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Returns `words` words of running text.
pub(super) fn text(words: usize, random: &mut SplitMix) -> String {
    (0..words).map(|_| common(random)).collect::<Vec<_>>().join(" ")
}
