//! Text normalization for documents and queries: accents removed, compatibility forms resolved, case folded.
//!
//! Invariant: spellings that differ only in case, accents, full width, ligatures or styled letters normalize to the
//! same bytes. Marks that make another letter (a Japanese voicing mark, an Indic vowel) are kept. A Hangul syllable
//! becomes its keystrokes, so that `하` and `한` are prefixes of `하나` while it is typed.
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
            'ٱ' => out.push('ا'),
            'ى' | 'ی' => out.push('ي'),
            'ک' => out.push('ك'),
            'ة' => out.push('ه'),
            hangul @ ('\u{1100}'..='\u{11FF}' | '가'..='힣') => push_jamo(hangul, out),
            // Lower-casing may add an accent: `İ` becomes `i` and a combining dot.
            other if is_accent(other) => {}
            other => out.push(other),
        }
    }
}

/// Appends the keystrokes of a Hangul syllable or letter: a compound letter has two (`ㅘ` is `ㅗㅏ`), and a consonant is the
/// same before and after the vowel. Other characters are appended unchanged.
fn push_jamo(hangul: char, out: &mut String) {
    const INITIALS: [&str; 19] = [
        "ㄱ", "ㄲ", "ㄴ", "ㄷ", "ㄸ", "ㄹ", "ㅁ", "ㅂ", "ㅃ", "ㅅ", "ㅆ", "ㅇ", "ㅈ", "ㅉ", "ㅊ", "ㅋ", "ㅌ", "ㅍ",
        "ㅎ",
    ];
    const VOWELS: [&str; 21] = [
        "ㅏ", "ㅐ", "ㅑ", "ㅒ", "ㅓ", "ㅔ", "ㅕ", "ㅖ", "ㅗ", "ㅗㅏ", "ㅗㅐ", "ㅗㅣ", "ㅛ", "ㅜ", "ㅜㅓ", "ㅜㅔ",
        "ㅜㅣ", "ㅠ", "ㅡ", "ㅡㅣ", "ㅣ",
    ];
    const FINALS: [&str; 28] = [
        "", "ㄱ", "ㄲ", "ㄱㅅ", "ㄴ", "ㄴㅈ", "ㄴㅎ", "ㄷ", "ㄹ", "ㄹㄱ", "ㄹㅁ", "ㄹㅂ", "ㄹㅅ", "ㄹㅌ", "ㄹㅍ",
        "ㄹㅎ", "ㅁ", "ㅂ", "ㅂㅅ", "ㅅ", "ㅆ", "ㅇ", "ㅈ", "ㅊ", "ㅋ", "ㅌ", "ㅍ", "ㅎ",
    ];
    let code = hangul as usize;
    match hangul {
        '가'..='힣' => {
            let index = code - '가' as usize;
            for part in [INITIALS[index / 588], VOWELS[index % 588 / 28], FINALS[index % 28]] {
                out.push_str(part);
            }
        }
        '\u{1100}'..='\u{1112}' => out.push_str(INITIALS[code - 0x1100]),
        '\u{1161}'..='\u{1175}' => out.push_str(VOWELS[code - 0x1161]),
        '\u{11A8}'..='\u{11C2}' => out.push_str(FINALS[code - 0x11A7]),
        other => out.push(other),
    }
}

/// True for combining marks that leave the letter the same, and for emoji joiners and variation selectors.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036F}' | '\u{0591}'..='\u{05C7}' | '\u{0640}' | '\u{064B}'..='\u{065F}' | '\u{0670}'
        | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{200B}'..='\u{200F}'
        | '\u{20D0}'..='\u{20FF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FE20}'..='\u{FE2F}'
        | '\u{00AD}' | '\u{2060}' | '\u{FEFF}' | '\u{1F3FB}'..='\u{1F3FF}')
}
