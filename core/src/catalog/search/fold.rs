//! Folding: text as people write it to text as the index compares it.
//!
//! Invariant: two spellings that a reader takes for the same word (case, accents, full width,
//! ligatures, styled letters) fold to the same bytes; letters that make another word (a Japanese
//! voicing mark, a Hangul syllable, an Indic vowel) stay apart. Folding happens in two steps because
//! `DegenFans` can only be split while its capitals are still there.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Compatibility forms resolved and accents dropped; the case is kept.
pub(super) fn without_marks(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    // NFKD spells the signs of ownership as letters: `Reborn™` would become the word `reborntm`.
    let spelled = text.chars().map(|c| if matches!(c, '™' | '℠' | '©' | '®') { ' ' } else { c });
    // NFC afterwards puts Hangul syllables and voiced kana together again.
    Cow::Owned(spelled.nfkd().filter(|&c| !is_accent(c)).nfc().collect())
}

/// Appends `letter` in lower case, with the letters that Unicode does not decompose spelled out.
#[inline]
pub(super) fn push_lower(letter: char, out: &mut String) {
    if letter.is_ascii() {
        out.push(letter.to_ascii_lowercase());
        return;
    }
    for lower in letter.to_lowercase() {
        match lower {
            'ß' => out.push_str("ss"),
            'æ' => out.push_str("ae"),
            'œ' => out.push_str("oe"),
            'þ' => out.push_str("th"),
            'ø' => out.push('o'),
            'ł' => out.push('l'),
            'đ' | 'ð' => out.push('d'),
            'ħ' => out.push('h'),
            'ı' => out.push('i'),
            'ς' => out.push('σ'),
            // What lower-casing itself adds (İ is i and a dot) is an accent like any other.
            other if is_accent(other) => {}
            other => out.push(other),
        }
    }
}

/// Marks that decorate a letter of the same word, and the joiners and selectors of emoji.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036F}' | '\u{0591}'..='\u{05C7}' | '\u{064B}'..='\u{0652}'
        | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{200B}'..='\u{200F}'
        | '\u{20D0}'..='\u{20FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FE20}'..='\u{FE2F}'
        | '\u{00AD}' | '\u{2060}' | '\u{FEFF}' | '\u{1F3FB}'..='\u{1F3FF}')
}
