//! The words of a text with their places, for highlights.
//!
//! Invariant: a word's letters are those that the tokenizer gives, and its place is in characters of the text as written.

use unicode_normalization::char::is_combining_mark;

use super::{
    normalize::{push_lowercase, strip_accents},
    tokenizer::{CharClass, char_class},
};

/// A word of a text. A character of a script without spaces, and a symbol, is a word of its own.
pub(super) struct TextWord {
    /// In normalized spelling.
    pub(super) letters: String,
    /// The first character, and the one after the last.
    pub(super) start: usize,
    pub(super) end: usize,
    /// For each written character, the end of its letters in `letters`, and the place after the character.
    ends: Vec<(usize, usize)>,
    /// The starts of the word's parts, in `letters` and in characters: `Degen` and `Fans` of `DegenFans`.
    parts: Vec<(usize, usize)>,
}

impl TextWord {
    fn new(start: usize) -> TextWord {
        TextWord { letters: String::new(), start, end: start, ends: Vec::new(), parts: Vec::new() }
    }

    /// The place of `typed` in the word or in one of its parts: all of it, or with `is_prefix` its beginning. With `is_whole`
    /// the place of the whole word.
    pub(super) fn prefix_range(&self, typed: &str, is_prefix: bool, is_whole: bool) -> Option<(usize, usize)> {
        if typed.is_empty() {
            return None;
        }
        self.parts.iter().find_map(|&(at, start)| {
            let rest = self.letters.get(at..)?.strip_prefix(typed)?;
            let next = self.parts.iter().find(|(other, _)| *other > at);
            let is_end = rest.is_empty() || next.is_some_and(|(next, _)| *next == at + typed.len());
            if !is_prefix && !is_end {
                return None;
            }
            if is_whole {
                return Some((self.start, self.end));
            }
            let end = self.ends.iter().find(|(end, _)| *end >= at + typed.len()).map_or(self.end, |(_, place)| *place);
            Some((start, end))
        })
    }

    pub(super) fn is_joined_to(&self, next: &TextWord) -> bool {
        self.end == next.start
    }

    fn push(&mut self, letters: &str, end: usize) {
        self.letters.push_str(letters);
        self.end = end;
        self.ends.push((self.letters.len(), end));
    }
}

/// Splits a text like the tokenizer does.
pub(super) fn words_of(text: &str) -> Vec<TextWord> {
    let mut words = Vec::new();
    let mut word: Option<TextWord> = None;
    let mut previous = CharClass::Space;
    let characters: Vec<char> = text.chars().collect();
    let mut place = 0;
    while place < characters.len() {
        // A character with the marks behind it is normalized as a whole.
        let start = place;
        place += 1;
        while characters.get(place).is_some_and(|&mark| is_combining_mark(mark) || is_final_jamo(mark)) {
            place += 1;
        }
        let written: String = characters[start..place].iter().collect();
        let stripped = strip_accents(&written);
        let Some(first) = stripped.chars().next() else {
            // A mark alone belongs to the word before it.
            if let Some(word) = &mut word {
                word.push("", place);
            }
            continue;
        };
        let class = char_class(first);
        let mut letters = String::new();
        stripped.chars().for_each(|letter| push_lowercase(letter, &mut letters));
        match class {
            CharClass::Lower | CharClass::Upper | CharClass::Digit => {
                let word = word.get_or_insert_with(|| TextWord::new(start));
                let next_is_lower = characters.get(place).is_some_and(|&next| char_class(next) == CharClass::Lower);
                let starts_part = class == CharClass::Upper
                    && (matches!(previous, CharClass::Lower | CharClass::Digit)
                        || (previous == CharClass::Upper && next_is_lower));
                if word.parts.is_empty() || starts_part || previous == CharClass::Apostrophe {
                    word.parts.push((word.letters.len(), start));
                }
                word.push(&letters, place);
            }
            CharClass::Apostrophe => {}
            CharClass::Punctuation | CharClass::Space => words.extend(word.take()),
            CharClass::Ideograph | CharClass::Symbol => {
                words.extend(word.take());
                let mut single = TextWord::new(start);
                single.parts.push((0, start));
                single.push(&letters, place);
                words.push(single);
            }
        }
        previous = class;
    }
    words.extend(word);
    words
}

/// A vowel or a final consonant of a Hangul syllable that is written letter by letter.
fn is_final_jamo(c: char) -> bool {
    matches!(c, '\u{1160}'..='\u{11FF}')
}
