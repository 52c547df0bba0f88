//! The tokenizer: splits a text into normalized words, the same way for documents and queries.
//!
//! Invariant: every word of a text as a query is also a token of the text as a document, so a text always finds itself.
//! A document yields [`TokenKind::Variant`] tokens besides: the parts of `DegenFans`, and `miniapp` for `mini-app`.
//! Scripts without spaces between words are split into overlapping pairs of characters; each emoji is a word.

use unicode_normalization::char::is_combining_mark;

use super::normalize::{push_lowercase, strip_accents};

/// The longest word in bytes; longer ones are truncated. The Levenshtein automaton has 64 bits.
pub(super) const LONGEST_WORD: usize = 60;
/// More words than this between two spaces (`a.b.c.d.e`) are a path or a host name, not a compound.
const MAX_COMPOUND_WORDS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A word between spaces or punctuation.
    Word,
    /// Two neighbouring characters of a script without spaces, or the only character of a run.
    IdeographPair,
    /// An emoji or another pictogram.
    Symbol,
    /// A part of a word (`fans` of `DegenFans`), or a compound of several (`miniapp` of `mini-app`).
    Variant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CharClass {
    Lower,
    Upper,
    Digit,
    Ideograph,
    Symbol,
    Apostrophe,
    Punctuation,
    Space,
}

pub(super) fn char_class(c: char) -> CharClass {
    match c {
        'a'..='z' => CharClass::Lower,
        'A'..='Z' => CharClass::Upper,
        '0'..='9' => CharClass::Digit,
        '\'' | '\u{2019}' | '\u{02BC}' => CharClass::Apostrophe,
        _ if c.is_ascii() => {
            if c.is_ascii_whitespace() {
                CharClass::Space
            } else {
                CharClass::Punctuation
            }
        }
        // Thai, Lao, Myanmar and Khmer; kana; Han with its extensions.
        '\u{0E00}'..='\u{0EFF}'
        | '\u{1000}'..='\u{109F}'
        | '\u{1780}'..='\u{17FF}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3041}'..='\u{30FA}'
        | '\u{30FC}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => CharClass::Ideograph,
        '\u{2190}'..='\u{23FF}' | '\u{2500}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}' => CharClass::Symbol,
        _ if c.is_whitespace() => CharClass::Space,
        _ if c.is_uppercase() => CharClass::Upper,
        _ if c.is_numeric() => CharClass::Digit,
        _ if c.is_alphabetic() || is_combining_mark(c) => CharClass::Lower,
        _ => CharClass::Punctuation,
    }
}

/// Calls `emit` for each token of `text`, in reading order; a part precedes its word, a compound follows its words.
pub(super) fn tokenize(text: &str, emit: impl FnMut(TokenKind, &str)) {
    let folded = strip_accents(text);
    let buffer = || String::with_capacity(LONGEST_WORD + 4);
    let mut tokenizer =
        Tokenizer { emit, compound: buffer(), words: 0, word: buffer(), part_start: 0, parts: 0, run: None };
    let mut characters = folded.chars().map(|c| (c, char_class(c))).peekable();
    let mut previous = CharClass::Space;
    while let Some((c, class)) = characters.next() {
        match class {
            CharClass::Lower | CharClass::Upper | CharClass::Digit => {
                tokenizer.end_run();
                let next_is_lower = matches!(characters.peek(), Some((_, CharClass::Lower)));
                let starts_part = class == CharClass::Upper
                    && (matches!(previous, CharClass::Lower | CharClass::Digit)
                        || (previous == CharClass::Upper && next_is_lower));
                if starts_part {
                    tokenizer.end_part();
                }
                tokenizer.push(c);
            }
            CharClass::Apostrophe => tokenizer.end_part(),
            CharClass::Punctuation => tokenizer.end_word(),
            CharClass::Space => tokenizer.end(),
            CharClass::Symbol => {
                tokenizer.end();
                tokenizer.symbol(c);
            }
            CharClass::Ideograph => tokenizer.ideograph(c),
        }
        previous = class;
    }
    tokenizer.end();
}

/// The normalized letters and digits of `text` without spaces and punctuation: the same for `DegenFans`, `degen fans`
/// and `Degen-Fans!`. Symbols are used only if there are no letters or digits.
pub(super) fn concatenate(text: &str) -> String {
    let (mut joined, mut symbols) = (String::with_capacity(LONGEST_WORD.min(text.len())), String::new());
    for c in strip_accents(text).chars() {
        match char_class(c) {
            CharClass::Lower | CharClass::Upper | CharClass::Digit | CharClass::Ideograph => {
                push_bounded(c, &mut joined);
            }
            CharClass::Symbol => push_bounded(c, &mut symbols),
            CharClass::Apostrophe | CharClass::Punctuation | CharClass::Space => {}
        }
    }
    if joined.is_empty() { symbols } else { joined }
}

#[inline]
fn push_bounded(c: char, out: &mut String) {
    if out.len() < LONGEST_WORD {
        push_lowercase(c, out);
    }
}

/// The text between two spaces, while it is split.
struct Tokenizer<F> {
    emit: F,
    /// The words since the last space, concatenated.
    compound: String,
    words: usize,
    word: String,
    /// The start of the current part in `word`.
    part_start: usize,
    parts: usize,
    /// The last character of a run of ideographs, and whether it is the only one so far.
    run: Option<(char, bool)>,
}

impl<F: FnMut(TokenKind, &str)> Tokenizer<F> {
    fn push(&mut self, c: char) {
        push_bounded(c, &mut self.word);
    }

    fn end_part(&mut self) {
        let part = self.word.get(self.part_start..).unwrap_or_default();
        if part.is_empty() {
            return;
        }
        // Single letters are no useful tokens: the i of iPod, the s of Dan's.
        if part.len() > 1 {
            (self.emit)(TokenKind::Variant, part);
        }
        self.part_start = self.word.len();
        self.parts += 1;
    }

    fn end_word(&mut self) {
        self.end_run();
        if self.word.is_empty() {
            return;
        }
        (self.emit)(TokenKind::Word, &self.word);
        if self.parts > 0 {
            self.end_part();
        }
        self.words += 1;
        if self.words <= MAX_COMPOUND_WORDS && self.compound.len() + self.word.len() <= LONGEST_WORD {
            self.compound.push_str(&self.word);
        } else {
            // Too long: no compound is emitted.
            self.words = usize::MAX / 2;
        }
        self.word.clear();
        (self.part_start, self.parts) = (0, 0);
    }

    fn end(&mut self) {
        self.end_word();
        if (2..=MAX_COMPOUND_WORDS).contains(&self.words) {
            (self.emit)(TokenKind::Variant, &self.compound);
        }
        self.compound.clear();
        self.words = 0;
    }

    fn symbol(&mut self, c: char) {
        (self.emit)(TokenKind::Symbol, c.encode_utf8(&mut [0; 4]));
    }

    fn ideograph(&mut self, c: char) {
        if self.run.is_none() {
            self.end();
        }
        if let Some((before, _)) = self.run {
            let mut pair = String::with_capacity(8);
            push_lowercase(before, &mut pair);
            push_lowercase(c, &mut pair);
            (self.emit)(TokenKind::IdeographPair, &pair);
        }
        self.run = Some((c, self.run.is_none()));
    }

    /// Emits the last character of a run as a token of its own, so that each character starts a token and is found as a
    /// prefix. It is a variant, which queries skip, unless it is the whole run.
    #[inline]
    fn end_run(&mut self) {
        if let Some((last, is_single)) = self.run.take() {
            let kind = if is_single { TokenKind::IdeographPair } else { TokenKind::Variant };
            (self.emit)(kind, last.encode_utf8(&mut [0; 4]));
        }
    }
}
