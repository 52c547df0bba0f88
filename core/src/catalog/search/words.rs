//! The tokenizer: folded words out of a text, the same way for documents and for queries.
//!
//! Invariant: each word a query yields for a text is also yielded when that text is indexed, so a
//! text always finds itself. Documents yield more: the parts of `DegenFans`, and `miniapp` for
//! `mini-app`, so that either spelling finds the other. Scripts written without spaces have no words
//! to cut, so they are indexed as overlapping pairs of characters; each emoji is a word.

use unicode_normalization::char::is_combining_mark;

use super::fold::{push_lower, without_marks};

/// Longer words are cut: nobody types them, and the edit automaton counts in 64 bits.
const LONGEST_WORD: usize = 60;
/// A chunk of more words than this (`a.b.c.d.e`) is a path or a host, not a compound.
const MOST_COMPOUND_WORDS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word as written between spaces and punctuation.
    Word,
    /// Two neighbours of a text without spaces; a lone one where the run has no more.
    Ideographs,
    Symbol,
    /// A piece of a word (`fans` of `DegenFans`), or several joined (`miniapp` of `mini-app`).
    Alternative,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Ideograph,
    Symbol,
    Apostrophe,
    Punctuation,
    Space,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' => Class::Lower,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Digit,
        '\'' | '\u{2019}' | '\u{02BC}' => Class::Apostrophe,
        _ if c.is_ascii() => {
            if c.is_ascii_whitespace() {
                Class::Space
            } else {
                Class::Punctuation
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
        | '\u{20000}'..='\u{3FFFF}' => Class::Ideograph,
        '\u{2190}'..='\u{23FF}' | '\u{2500}'..='\u{2BFF}' | '\u{1F000}'..='\u{1FAFF}' => Class::Symbol,
        _ if c.is_whitespace() => Class::Space,
        _ if c.is_uppercase() => Class::Upper,
        _ if c.is_numeric() => Class::Digit,
        _ if c.is_alphabetic() || is_combining_mark(c) => Class::Lower,
        _ => Class::Punctuation,
    }
}

/// Calls `emit` for each word of `text`, in reading order; a part comes before its word, a compound after its words.
pub(super) fn each_word(text: &str, emit: impl FnMut(Kind, &str)) {
    let folded = without_marks(text);
    let buffer = || String::with_capacity(LONGEST_WORD + 4);
    let mut chunk = Chunk { emit, compound: buffer(), words: 0, word: buffer(), part: 0, parts: 0, run: None };
    let mut letters = folded.chars().map(|c| (c, class(c))).peekable();
    let mut previous = Class::Space;
    while let Some((c, kind)) = letters.next() {
        match kind {
            Class::Lower | Class::Upper | Class::Digit => {
                chunk.end_run();
                let next_is_lower = matches!(letters.peek(), Some((_, Class::Lower)));
                let hump = kind == Class::Upper
                    && (matches!(previous, Class::Lower | Class::Digit) || (previous == Class::Upper && next_is_lower));
                if hump {
                    chunk.end_part();
                }
                chunk.push(c);
            }
            Class::Apostrophe => chunk.end_part(),
            Class::Punctuation => chunk.end_word(),
            Class::Space => chunk.end(),
            Class::Symbol => {
                chunk.end();
                chunk.symbol(c);
            }
            Class::Ideograph => chunk.ideograph(c),
        }
        previous = kind;
    }
    chunk.end();
}

/// The words of `text` run together, which is what two spellings of one name have in common:
/// `DegenFans`, `degen fans` and `Degen-Fans!`. Symbols count only where there is nothing else.
pub(super) fn run_together(text: &str) -> String {
    let (mut joined, mut symbols) = (String::with_capacity(LONGEST_WORD.min(text.len())), String::new());
    for c in without_marks(text).chars() {
        match class(c) {
            Class::Lower | Class::Upper | Class::Digit | Class::Ideograph => push_bounded(c, &mut joined),
            Class::Symbol => push_bounded(c, &mut symbols),
            Class::Apostrophe | Class::Punctuation | Class::Space => {}
        }
    }
    if joined.is_empty() { symbols } else { joined }
}

#[inline]
fn push_bounded(c: char, out: &mut String) {
    if out.len() < LONGEST_WORD {
        push_lower(c, out);
    }
}

/// What stands between two spaces, while it is read.
struct Chunk<F> {
    emit: F,
    compound: String,
    words: usize,
    word: String,
    /// Where in `word` its current part starts.
    part: usize,
    parts: usize,
    run: Option<(char, bool)>,
}

impl<F: FnMut(Kind, &str)> Chunk<F> {
    fn push(&mut self, c: char) {
        push_bounded(c, &mut self.word);
    }

    fn end_part(&mut self) {
        let part = self.word.get(self.part..).unwrap_or_default();
        if part.is_empty() {
            return;
        }
        // One letter says nothing on its own: the i of iPod, the s of Dan's.
        if part.len() > 1 {
            (self.emit)(Kind::Alternative, part);
        }
        self.part = self.word.len();
        self.parts += 1;
    }

    fn end_word(&mut self) {
        self.end_run();
        if self.word.is_empty() {
            return;
        }
        (self.emit)(Kind::Word, &self.word);
        if self.parts > 0 {
            self.end_part();
        }
        self.words += 1;
        if self.words <= MOST_COMPOUND_WORDS && self.compound.len() + self.word.len() <= LONGEST_WORD {
            self.compound.push_str(&self.word);
        } else {
            self.words = usize::MAX / 2;
        }
        self.word.clear();
        (self.part, self.parts) = (0, 0);
    }

    fn end(&mut self) {
        self.end_word();
        if (2..=MOST_COMPOUND_WORDS).contains(&self.words) {
            (self.emit)(Kind::Alternative, &self.compound);
        }
        self.compound.clear();
        self.words = 0;
    }

    fn symbol(&mut self, c: char) {
        (self.emit)(Kind::Symbol, c.encode_utf8(&mut [0; 4]));
    }

    fn ideograph(&mut self, c: char) {
        if self.run.is_none() {
            self.end();
        }
        if let Some((before, _)) = self.run {
            let mut pair = String::with_capacity(8);
            push_lower(before, &mut pair);
            push_lower(c, &mut pair);
            (self.emit)(Kind::Ideographs, &pair);
        }
        self.run = Some((c, self.run.is_none()));
    }

    /// The last character starts no pair, so it is a word of its own: each character then starts
    /// one, and a prefix finds it. A query asks for it only when there is nothing else of the run.
    #[inline]
    fn end_run(&mut self) {
        if let Some((last, alone)) = self.run.take() {
            let kind = if alone { Kind::Ideographs } else { Kind::Alternative };
            (self.emit)(kind, last.encode_utf8(&mut [0; 4]));
        }
    }
}
