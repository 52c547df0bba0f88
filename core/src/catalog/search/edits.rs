//! An automaton over the letters of a word that accepts what is at most two typing errors away.
//!
//! Invariant: a word is accepted at `e` errors exactly when `e` inserted, deleted, replaced or swapped
//! letters make it the pattern (optimal string alignment). Rows of bits simulate it (Wu and Manber 1992, with
//! a row for swaps), so a query builds no tables, and a step is a dozen operations.

/// The bits of a row are the letters of the pattern, and one for its start.
pub(super) const LONGEST_PATTERN: usize = 61;

pub(super) struct Edits {
    ascii: [u64; 128],
    others: Vec<(char, u64)>,
    /// Bit `n` is the state after `n` letters; `allowed[e]` are the states that may have `e` errors.
    allowed: [u64; 3],
    end: u64,
}

#[derive(Clone, Copy)]
pub(super) struct State {
    rows: [u64; 3],
    swaps: [u64; 2],
    /// A letter whose UTF-8 bytes have not all been read: its bits so far, and the bytes missing.
    letter: u32,
    missing: u8,
}

impl Edits {
    /// What is `most` (1 or 2) errors away from a word of at most [`LONGEST_PATTERN`] letters.
    pub(super) fn new(pattern: impl Iterator<Item = char>, most: usize) -> Edits {
        let mut ascii = [0; 128];
        let mut others: Vec<(char, u64)> = Vec::new();
        let mut length = 0;
        for letter in pattern.take(LONGEST_PATTERN) {
            length += 1;
            let bit = 1_u64 << length;
            if letter.is_ascii() {
                ascii[letter as usize] |= bit;
            } else if let Some((_, bits)) = others.iter_mut().find(|(other, _)| *other == letter) {
                *bits |= bit;
            } else {
                others.push((letter, bit));
            }
        }
        let all = (1_u64 << (length + 1)) - 1;
        Edits { ascii, others, allowed: [all, all, if most > 1 { all } else { 0 }], end: 1 << length }
    }

    /// The same, but the second error comes only after the letter `pivot`.
    pub(super) fn with_one_before(mut self, pivot: usize) -> Edits {
        self.allowed[2] &= !((1_u64 << pivot) - 1);
        self
    }

    /// The errors of an accepted word.
    pub(super) fn errors(&self, state: &State) -> Option<usize> {
        state.rows.iter().position(|row| row & self.end != 0).filter(|_| state.missing == 0)
    }

    fn step(&self, state: &State, letter: Option<char>) -> State {
        let same = match letter {
            Some(c) if c.is_ascii() => self.ascii[c as usize],
            Some(c) => self.others.iter().find(|(other, _)| *other == c).map_or(0, |(_, bits)| *bits),
            None => 0,
        };
        let [r0, r1, r2] = state.rows;
        let [s0, s1] = state.swaps;
        let n0 = (r0 << 1) & same & self.allowed[0];
        let n1 = (((r1 << 1) & same) | r0 | (r0 << 1) | (n0 << 1) | (s0 & (same << 1))) & self.allowed[1];
        let n2 = (((r2 << 1) & same) | r1 | (r1 << 1) | (n1 << 1) | (s1 & (same << 1))) & self.allowed[2];
        // A swap is under way where the letter after the next one came first.
        State { rows: [n0, n1, n2], swaps: [(r0 << 2) & same, (r1 << 2) & same], letter: 0, missing: 0 }
    }

    pub(super) fn start(&self) -> State {
        let rows = [1, 0b11 & self.allowed[1], 0b111 & self.allowed[2]];
        State { rows, swaps: [0; 2], letter: 0, missing: 0 }
    }

    /// Whether some continuation may be accepted. A swap under way survives rows that all died.
    pub(super) fn can_match(&self, state: &State) -> bool {
        let swaps = (state.swaps[0] & self.allowed[1]) | (state.swaps[1] & self.allowed[2]);
        state.rows[0] | state.rows[1] | state.rows[2] | swaps != 0
    }

    /// The state after one more byte of UTF-8.
    pub(super) fn accept(&self, state: &State, byte: u8) -> State {
        if byte.is_ascii() {
            return self.step(state, Some(char::from(byte)));
        }
        let (letter, missing) = match byte {
            0xF0.. => (u32::from(byte & 0x07), 3),
            0xE0.. => (u32::from(byte & 0x0F), 2),
            0xC0.. => (u32::from(byte & 0x1F), 1),
            _ => (state.letter << 6 | u32::from(byte & 0x3F), state.missing.saturating_sub(1)),
        };
        if missing == 0 { self.step(state, char::from_u32(letter)) } else { State { letter, missing, ..*state } }
    }
}
