//! Numbers and texts in one shared text: the text most asked for, a head of numbers, then the other texts, end to end.
//!
//! Invariant: what a [`Packer`] took, an [`Unpacker`] gives back in the same order. A number is written in digits of
//! six bits, each an ASCII character, so the whole is text and a part of it is a slice: nothing is copied and nothing
//! checked again. One allocation holds what would be two dozen, and a length takes one byte or two.

use std::sync::Arc;

/// A digit's value, and the mark of a digit that others follow.
const VALUE: u8 = 0b11_1111;
const MORE: u8 = 0b100_0000;

/// Takes numbers and texts.
pub(super) struct Packer {
    head: String,
    texts: String,
}

impl Packer {
    pub(super) fn new() -> Packer {
        // What a usual app needs; a larger one grows.
        Packer { head: String::with_capacity(128), texts: String::with_capacity(1024) }
    }

    pub(super) fn number(&mut self, number: u64) {
        write(&mut self.head, number);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.texts.push_str(text);
    }

    pub(super) fn list(&mut self, texts: &[impl AsRef<str>]) {
        self.number(texts.len() as u64);
        texts.iter().for_each(|text| self.text(text.as_ref()));
    }

    /// All of it, with `first` in front.
    pub(super) fn finish(self, first: &str) -> Arc<str> {
        let mut packed = String::with_capacity(first.len() + self.head.len() + self.texts.len() + 4);
        write(&mut packed, first.len() as u64);
        packed.push_str(first);
        write(&mut packed, self.head.len() as u64);
        packed.push_str(&self.head);
        packed.push_str(&self.texts);
        packed.into()
    }
}

/// Gives numbers and texts back, in the order they were packed.
#[derive(Clone, Copy, Default)]
pub(super) struct Unpacker<'a> {
    head: &'a [u8],
    texts: &'a str,
}

impl<'a> Unpacker<'a> {
    pub(super) fn new(packed: &'a str) -> Unpacker<'a> {
        let (_, packed) = split(packed);
        let (head, texts) = split(packed);
        Unpacker { head: head.as_bytes(), texts }
    }

    /// The text in front, found by one number.
    #[inline]
    pub(super) fn first(packed: &str) -> &str {
        split(packed).0
    }

    pub(super) fn number(&mut self) -> u64 {
        read(&mut self.head)
    }

    pub(super) fn text(&mut self) -> &'a str {
        let length = self.number() as usize;
        let (text, rest) = self.texts.split_at(length);
        self.texts = rest;
        text
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

/// A text behind its length, and what follows.
#[inline]
fn split(packed: &str) -> (&str, &str) {
    let mut rest = packed.as_bytes();
    let length = read(&mut rest) as usize;
    packed[packed.len() - rest.len()..].split_at(length)
}

fn write(into: &mut String, mut number: u64) {
    while number > u64::from(VALUE) {
        into.push(char::from(number as u8 & VALUE | MORE));
        number >>= VALUE.count_ones();
    }
    into.push(char::from(number as u8));
}

/// The number that `digits` starts with; they go on behind it.
#[inline]
fn read(digits: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&digit, rest)) = digits.split_first() {
        *digits = rest;
        number |= u64::from(digit & VALUE) << shift;
        shift += VALUE.count_ones();
        if digit & MORE == 0 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out_in_order() {
        let numbers = [0, 1, 63, 64, 4095, 4096, 1_700_000_000, u64::MAX];
        let long = "ö".repeat(70_000);
        let texts = ["", "a", "\0", "日本", &long];
        let mut packer = Packer::new();
        for number in numbers {
            packer.number(number);
        }
        texts.iter().for_each(|text| packer.text(text));
        packer.list(&texts);
        let packed = packer.finish(&long);
        assert_eq!(Unpacker::first(&packed), long);
        let mut unpacker = Unpacker::new(&packed);
        assert_eq!(numbers.map(|_| unpacker.number()), numbers);
        unpacker.skip_texts(2);
        assert_eq!([unpacker.text(), unpacker.text(), unpacker.text()], texts[2..]);
        assert_eq!(unpacker.number(), texts.len() as u64);
        assert_eq!(texts.map(|_| unpacker.text()), texts);
    }
}
