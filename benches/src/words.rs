//! Invented words, as frequent as the words of a language are.
//!
//! Invariant: a word follows from its rank alone, and the word of rank r is r times as rare as the first (Zipf). What
//! a search costs depends on how long the lists of its words are, so an even vocabulary would measure another thing.

use crate::random::Random;

/// Words of running text; the real catalog has 6,200 in 2,500 apps, and by Heaps' law about ten times that in 100,000.
const VOCABULARY: f64 = 60_000.0;

const OPENINGS: [&str; 32] = [
    "b", "br", "c", "ch", "cl", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "pl", "pr", "qu",
    "r", "s", "sh", "sl", "st", "t", "th", "tr", "v", "w", "z",
];
const VOWELS: [&str; 12] = ["a", "e", "i", "o", "u", "ai", "ea", "ee", "io", "oo", "ou", "y"];
const CLOSINGS: [&str; 16] = ["", "", "", "", "ck", "d", "l", "m", "n", "nd", "ng", "p", "r", "s", "t", "x"];

fn syllables(count: usize, random: &mut Random) -> String {
    let mut word = String::new();
    for _ in 0..count {
        word.push_str(random.pick(&OPENINGS));
        word.push_str(random.pick(&VOWELS));
    }
    word.push_str(random.pick(&CLOSINGS));
    word
}

/// The word of this rank, from 1; frequent words are short.
fn ranked(rank: usize) -> String {
    let count = match rank {
        0..100 => 1,
        100..5_000 => 2,
        _ => 3,
    };
    syllables(count, &mut Random::seeded(rank as u64))
}

/// A word of running text.
pub fn common(random: &mut Random) -> String {
    ranked(VOCABULARY.powf(random.fraction()) as usize)
}

/// A word of running text that is no filler: names are made of these.
pub fn telling(random: &mut Random) -> String {
    ranked(50 + VOCABULARY.powf(random.fraction()) as usize)
}

/// A word of nobody's vocabulary: two or three syllables.
pub fn invented(random: &mut Random) -> String {
    let count = 2 + random.below(2);
    syllables(count, random)
}

/// With a capital.
pub fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// So many words of running text.
pub fn text(words: usize, random: &mut Random) -> String {
    (0..words).map(|_| common(random)).collect::<Vec<_>>().join(" ")
}
