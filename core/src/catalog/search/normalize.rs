//! Text normalization for documents and queries: accents removed, compatibility forms resolved, case folded.
//!
//! Invariant: spellings that differ only in case, accents, full width, ligatures or styled letters normalize to the
//! same bytes. Marks that make another letter (a Japanese voicing mark, a Hangul syllable, an Indic vowel) are kept.
//! There are two steps because the tokenizer splits `DegenFans` at its capitals, between them.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Step one: resolves compatibility forms and removes accents; keeps the case.
pub(super) fn strip_accents(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    // NFKD turns these symbols into letters: `Reborn™` would become the word `reborntm`.
    let spelled = text.chars().map(|c| if matches!(c, '™' | '℠' | '©' | '®') { ' ' } else { c });
    // NFC afterwards puts Hangul syllables and voiced kana concatenated again.
    Cow::Owned(spelled.nfkd().filter(|&c| !is_accent(c)).nfc().collect())
}

/// Step two: appends `letter` in lower case. Letters without a Unicode decomposition are replaced (`ß` by `ss`).
#[inline]
pub(super) fn push_lowercase(letter: char, out: &mut String) {
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
            // Lower-casing may add an accent: `İ` becomes `i` and a combining dot.
            other if is_accent(other) => {}
            other => out.push(other),
        }
    }
}

/// True for combining marks that leave the letter the same, and for emoji joiners and variation selectors.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036F}' | '\u{0591}'..='\u{05C7}' | '\u{064B}'..='\u{0652}'
        | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{200B}'..='\u{200F}'
        | '\u{20D0}'..='\u{20FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FE20}'..='\u{FE2F}'
        | '\u{00AD}' | '\u{2060}' | '\u{FEFF}' | '\u{1F3FB}'..='\u{1F3FF}')
}
