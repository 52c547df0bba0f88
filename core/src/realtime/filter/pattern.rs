//! The patterns of `like` and `ilike`: `%` and `*` stand for any text, `_` for one character, and a backslash takes the next
//! character literally.
//!
//! Invariant: the time of a match is linear in the length of the text, whatever the pattern. Each segment between two `%` is
//! searched once, in the text after the segment before it: the leftmost place leaves the most text for the others, so no
//! search goes back. A literal segment is found by the standard library's search, which is linear (two-way). A segment with
//! `_` is found by an automaton with a bit for each of its characters (Shift-And), so a character of the text costs
//! a fixed number of steps.

use std::borrow::Cow;

/// The largest number of characters. The automaton of a segment has as many bits.
const MAX_CHARACTERS: usize = 256;

/// A pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    folds_case: bool,
    /// What the text starts with.
    first: Segment,
    /// What follows, with any text before each of them. The last one ends the text.
    others: Vec<Segment>,
}

/// The part of a pattern between two `%`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    /// With at least one `_`, here `None`.
    Mixed(Vec<Option<char>>, Automaton),
}

/// Searches a segment with `_`. Bit `n` of a state says that the last `n + 1` characters of the text fit the first `n + 1`
/// of the segment.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Automaton {
    /// The places that each character of the segment fits, in the order of the characters.
    places: Vec<(char, Bits)>,
    /// The places that every other character fits: the places of `_`.
    any: Bits,
    /// The number of characters.
    length: usize,
}

/// A bit for each character of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bits([u64; MAX_CHARACTERS / 64]);

impl Pattern {
    /// Reads a pattern; `None` if it is too long or ends with an unescaped backslash.
    pub(super) fn parse(text: &str, folds_case: bool) -> Option<Pattern> {
        if text.chars().count() > MAX_CHARACTERS {
            return None;
        }
        let text = if folds_case { folded(text) } else { Cow::Borrowed(text) };
        let mut segments = Vec::new();
        let mut segment = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '%' | '*' => segments.push(Segment::new(std::mem::take(&mut segment))),
                '_' => segment.push(None),
                '\\' => segment.push(Some(characters.next()?)),
                other => segment.push(Some(other)),
            }
        }
        segments.push(Segment::new(segment));
        let others = segments.split_off(1);
        Some(Pattern { folds_case, first: segments.pop()?, others })
    }

    /// Whether the whole text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text = if self.folds_case { folded(text) } else { Cow::Borrowed(text) };
        let Some(rest) = self.first.after_prefix(&text) else { return false };
        let Some((last, middle)) = self.others.split_last() else { return rest.is_empty() };
        let Some(mut rest) = last.before_suffix(rest) else { return false };
        // The leftmost place of each segment leaves the most text for the segments after it.
        for segment in middle {
            let Some(after) = segment.after_leftmost(rest) else { return false };
            rest = after;
        }
        true
    }
}

impl Segment {
    fn new(pieces: Vec<Option<char>>) -> Segment {
        let literal: Option<String> = pieces.iter().copied().collect();
        literal.map_or_else(|| Segment::mixed(pieces), Segment::Literal)
    }

    fn mixed(pieces: Vec<Option<char>>) -> Segment {
        let automaton = Automaton::new(&pieces);
        Segment::Mixed(pieces, automaton)
    }

    /// The text after this segment, if the text starts with it.
    fn after_prefix<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Segment::Literal(literal) => text.strip_prefix(literal.as_str()),
            Segment::Mixed(pieces, _) => {
                let mut characters = text.chars();
                let fits = pieces.iter().all(|piece| fits(*piece, characters.next()));
                fits.then_some(characters.as_str())
            }
        }
    }

    /// The text before this segment, if the text ends with it.
    fn before_suffix<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Segment::Literal(literal) => text.strip_suffix(literal.as_str()),
            Segment::Mixed(pieces, _) => {
                let mut characters = text.chars();
                let fits = pieces.iter().rev().all(|piece| fits(*piece, characters.next_back()));
                fits.then_some(characters.as_str())
            }
        }
    }

    /// The text after the leftmost place of this segment.
    fn after_leftmost<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Segment::Literal(literal) => text.split_once(literal.as_str()).map(|(_, after)| after),
            Segment::Mixed(_, automaton) => automaton.after_leftmost(text),
        }
    }
}

impl Automaton {
    fn new(pieces: &[Option<char>]) -> Automaton {
        let mut any = Bits::default();
        pieces.iter().enumerate().filter(|(_, piece)| piece.is_none()).for_each(|(place, _)| any.set(place));
        let mut characters: Vec<char> = pieces.iter().copied().flatten().collect();
        characters.sort_unstable();
        characters.dedup();
        let places_of = |character: char| {
            let mut places = any;
            let fitting = pieces.iter().enumerate().filter(|(_, piece)| **piece == Some(character));
            fitting.for_each(|(place, _)| places.set(place));
            (character, places)
        };
        Automaton { places: characters.into_iter().map(places_of).collect(), any, length: pieces.len() }
    }

    /// Returns the text after the leftmost place of the segment; `None` if the text does not contain it.
    fn after_leftmost<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut state = Bits::default();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            let found = self.places.binary_search_by_key(&character, |(known, _)| *known);
            state = state.next().and(found.map_or(self.any, |index| self.places[index].1));
            if state.has(self.length - 1) {
                return Some(characters.as_str());
            }
        }
        None
    }
}

impl Bits {
    fn set(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    fn has(self, place: usize) -> bool {
        self.0[place / 64] & (1 << (place % 64)) != 0
    }

    /// Each bit moves to the next place, and the first one is set.
    fn next(self) -> Bits {
        let mut carry = 1;
        Bits(self.0.map(|word| {
            let moved = word << 1 | carry;
            carry = word >> 63;
            moved
        }))
    }

    fn and(self, other: Bits) -> Bits {
        Bits(std::array::from_fn(|index| self.0[index] & other.0[index]))
    }
}

fn fits(piece: Option<char>, character: Option<char>) -> bool {
    character.is_some_and(|character| piece.is_none_or(|piece| piece == character))
}

/// Folds the case of each character, so that `Σ`, `σ` and `ς` are one.
fn folded(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(folded_character).collect())
}

/// Unicode's simple case folding. A character stays as it is if its other case is several characters (`ß`, `İ`).
fn folded_character(character: char) -> char {
    match character {
        // Upper case of the dotless i is `I`, but the two do not fold to each other.
        'ı' => 'ı',
        other => {
            let upper = single(other.to_uppercase()).unwrap_or(other);
            single(upper.to_lowercase()).unwrap_or(upper)
        }
    }
}

fn single(mut characters: impl Iterator<Item = char>) -> Option<char> {
    let first = characters.next();
    first.filter(|_| characters.next().is_none())
}
