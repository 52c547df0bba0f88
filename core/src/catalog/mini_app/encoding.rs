//! A compact encoding of a record in one string: the name, a header of numbers, then all other texts end to end.
//!
//! Invariant: [`Decoder`] returns what [`Encoder`] was given, in the same order. A number is written in base 64, one
//! ASCII character a digit, so the encoding is valid UTF-8 and a text is a slice of it: decoding copies and validates
//! nothing. A record takes one allocation instead of two dozen, and a length takes one or two bytes.

use std::sync::Arc;

/// The value bits of a digit, and the bit that says that another digit follows.
const VALUE: u8 = 0b11_1111;
const CONTINUES: u8 = 0b100_0000;

/// Writes numbers and texts.
pub(super) struct Encoder {
    header: String,
    texts: String,
}

impl Encoder {
    pub(super) fn new() -> Encoder {
        // Large enough for most apps.
        Encoder { header: String::with_capacity(128), texts: String::with_capacity(1024) }
    }

    pub(super) fn number(&mut self, number: u64) {
        write_number(&mut self.header, number);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.texts.push_str(text);
    }

    pub(super) fn list(&mut self, texts: &[impl AsRef<str>]) {
        self.number(texts.len() as u64);
        texts.iter().for_each(|text| self.text(text.as_ref()));
    }

    /// Returns the encoding, with `name` in front.
    pub(super) fn finish(self, name: &str) -> Arc<str> {
        let mut encoded = String::with_capacity(name.len() + self.header.len() + self.texts.len() + 4);
        write_number(&mut encoded, name.len() as u64);
        encoded.push_str(name);
        write_number(&mut encoded, self.header.len() as u64);
        encoded.push_str(&self.header);
        encoded.push_str(&self.texts);
        encoded.into()
    }
}

/// Reads numbers and texts in the order in which they were written.
#[derive(Clone, Copy, Default)]
pub(super) struct Decoder<'a> {
    header: &'a [u8],
    texts: &'a str,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(encoded: &'a str) -> Decoder<'a> {
        let (_, rest) = split_text(encoded);
        let (header, texts) = split_text(rest);
        Decoder { header: header.as_bytes(), texts }
    }

    /// The name, without decoding the rest.
    #[inline]
    pub(super) fn name(encoded: &str) -> &str {
        split_text(encoded).0
    }

    pub(super) fn number(&mut self) -> u64 {
        read_number(&mut self.header)
    }

    pub(super) fn text(&mut self) -> &'a str {
        let length = self.number() as usize;
        let (text, rest) = self.texts.split_at(length);
        self.texts = rest;
        text
    }

    /// An absent text is encoded as an empty one.
    pub(super) fn optional_text(&mut self) -> Option<&'a str> {
        Some(self.text()).filter(|text| !text.is_empty())
    }

    pub(super) fn skip_numbers(&mut self, count: usize) {
        for _ in 0..count {
            self.number();
        }
    }

    pub(super) fn skip_texts(&mut self, count: usize) {
        let length: u64 = (0..count).map(|_| self.number()).sum();
        self.texts = &self.texts[length as usize..];
    }
}

/// Splits off a text that is preceded by its length.
#[inline]
fn split_text(encoded: &str) -> (&str, &str) {
    let mut rest = encoded.as_bytes();
    let length = read_number(&mut rest) as usize;
    encoded[encoded.len() - rest.len()..].split_at(length)
}

fn write_number(out: &mut String, mut number: u64) {
    while number > u64::from(VALUE) {
        out.push(char::from(number as u8 & VALUE | CONTINUES));
        number >>= VALUE.count_ones();
    }
    out.push(char::from(number as u8));
}

/// Reads a number and advances `digits` past it.
#[inline]
fn read_number(digits: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&digit, rest)) = digits.split_first() {
        *digits = rest;
        number |= u64::from(digit & VALUE) << shift;
        shift += VALUE.count_ones();
        if digit & CONTINUES == 0 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_decode_in_the_order_of_encoding() {
        let numbers = [0, 1, 63, 64, 4095, 4096, 1_700_000_000, u64::MAX];
        let long = "ö".repeat(70_000);
        let texts = ["", "a", "\0", "日本", &long];
        let mut encoder = Encoder::new();
        for number in numbers {
            encoder.number(number);
        }
        texts.iter().for_each(|text| encoder.text(text));
        encoder.list(&texts);
        let encoded = encoder.finish(&long);
        assert_eq!(Decoder::name(&encoded), long);
        let mut decoder = Decoder::new(&encoded);
        assert_eq!(numbers.map(|_| decoder.number()), numbers);
        decoder.skip_texts(2);
        assert_eq!([decoder.text(), decoder.text(), decoder.text()], texts[2..]);
        assert_eq!(decoder.number(), texts.len() as u64);
        assert_eq!(texts.map(|_| decoder.text()), texts);
    }
}
