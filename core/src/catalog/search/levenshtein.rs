//! A Levenshtein automaton: accepts the words at most two typing errors away from a pattern.
//!
//! Invariant: a word is accepted with `e` errors exactly when `e` insertions, deletions, substitutions or
//! transpositions of letters turn it into the pattern (optimal string alignment distance). The automaton is
//! bit-parallel (Wu and Manber 1992, with an extra row for transpositions): a query builds no tables, and a step
//! takes a dozen operations.

/// The longest pattern in letters: a row has one bit for each letter and one for the start.
pub(super) const LONGEST_PATTERN: usize = 61;

pub(super) struct LevenshteinAutomaton {
    /// For each ASCII letter, the positions of the pattern that have it, one bit each.
    ascii: [u64; 128],
    /// The same for the other letters of the pattern.
    others: Vec<(char, u64)>,
    /// Bit `n` stands for the position after `n` letters; `allowed[e]` are the positions that may have `e` errors.
    allowed: [u64; 3],
    end: u64,
    /// The letters of a pattern of ASCII letters; empty for any other.
    pattern: Vec<u8>,
}

#[derive(Clone, Copy)]
pub(super) struct AutomatonState {
    /// The active positions with 0, 1 and 2 errors.
    rows: [u64; 3],
    /// The positions in the middle of a transposition, with 0 and 1 errors before it.
    transpositions: [u64; 2],
    /// The bits of a letter whose UTF-8 sequence is incomplete, and the number of missing bytes.
    letter: u32,
    missing: u8,
}

impl LevenshteinAutomaton {
    /// Accepts words at most `max_errors` (1 or 2) from a pattern of at most [`LONGEST_PATTERN`] letters.
    pub(super) fn new(pattern: impl Iterator<Item = char>, max_errors: usize) -> LevenshteinAutomaton {
        let mut ascii = [0; 128];
        let mut others: Vec<(char, u64)> = Vec::new();
        let mut length = 0;
        let mut bytes = Vec::new();
        for letter in pattern.take(LONGEST_PATTERN) {
            length += 1;
            let bit = 1_u64 << length;
            bytes.extend(u8::try_from(letter).ok().filter(u8::is_ascii));
            if letter.is_ascii() {
                ascii[letter as usize] |= bit;
            } else if let Some((_, bits)) = others.iter_mut().find(|(other, _)| *other == letter) {
                *bits |= bit;
            } else {
                others.push((letter, bit));
            }
        }
        let all = (1_u64 << (length + 1)) - 1;
        LevenshteinAutomaton {
            ascii,
            others,
            allowed: [all, all, if max_errors > 1 { all } else { 0 }],
            end: 1 << length,
            pattern: if bytes.len() == length { bytes } else { Vec::new() },
        }
    }

    /// Allows the second error only after the letter `pivot` of the pattern.
    pub(super) fn second_error_after(mut self, pivot: usize) -> LevenshteinAutomaton {
        self.allowed[2] &= !((1_u64 << pivot) - 1);
        self
    }

    /// The number of errors of an accepted word; `None` if `state` does not accept.
    pub(super) fn errors(&self, state: &AutomatonState) -> Option<usize> {
        state.rows.iter().position(|row| row & self.end != 0).filter(|_| state.missing == 0)
    }

    /// Whether the pattern has ASCII letters only.
    pub(super) fn is_ascii(&self) -> bool {
        !self.pattern.is_empty()
    }

    /// The bytes that may follow if all errors have been made: few, so that a traversal looks them up instead of trying
    /// every continuation. `None` if another error is allowed, or the pattern has letters other than ASCII.
    pub(super) fn required_bytes(&self, state: &AutomatonState) -> Option<impl Iterator<Item = u8> + '_> {
        let is_double = self.allowed[2] != 0;
        let [r0, r1, r2] = state.rows;
        let [t0, t1] = state.transpositions;
        let has_errors_left = r0 != 0 || (is_double && (r1 | t0) != 0);
        if has_errors_left || self.pattern.is_empty() || state.missing > 0 {
            return None;
        }
        let (row, transpositions) = if is_double { (r2, t1) } else { (r1, t0) };
        // The letter after position n is the pattern's letter n; a transposition ends with the letter before the last.
        let mut next = row & (self.end - 1) | transpositions >> 2;
        let mut seen = 0_u128;
        Some(std::iter::from_fn(move || {
            while next != 0 {
                let byte = *self.pattern.get(next.trailing_zeros() as usize)?;
                next &= next - 1;
                if seen & 1 << byte == 0 {
                    seen |= 1 << byte;
                    return Some(byte);
                }
            }
            None
        }))
    }

    fn step(&self, state: &AutomatonState, letter: Option<char>) -> AutomatonState {
        let same = match letter {
            Some(c) if c.is_ascii() => self.ascii[c as usize],
            Some(c) => self.others.iter().find(|(other, _)| *other == c).map_or(0, |(_, bits)| *bits),
            None => 0,
        };
        let [r0, r1, r2] = state.rows;
        let [t0, t1] = state.transpositions;
        let n0 = (r0 << 1) & same & self.allowed[0];
        let n1 = (((r1 << 1) & same) | r0 | (r0 << 1) | (n0 << 1) | (t0 & (same << 1))) & self.allowed[1];
        let n2 = (((r2 << 1) & same) | r1 | (r1 << 1) | (n1 << 1) | (t1 & (same << 1))) & self.allowed[2];
        // A transposition begins where the letter equals the pattern's letter after the next.
        let transpositions = [(r0 << 2) & same, (r1 << 2) & same];
        AutomatonState { rows: [n0, n1, n2], transpositions, letter: 0, missing: 0 }
    }

    pub(super) fn start(&self) -> AutomatonState {
        let rows = [1, 0b11 & self.allowed[1], 0b111 & self.allowed[2]];
        AutomatonState { rows, transpositions: [0; 2], letter: 0, missing: 0 }
    }

    /// Whether some continuation may be accepted: a row or a transposition is active.
    pub(super) fn can_match(&self, state: &AutomatonState) -> bool {
        let transpositions = (state.transpositions[0] & self.allowed[1]) | (state.transpositions[1] & self.allowed[2]);
        state.rows[0] | state.rows[1] | state.rows[2] | transpositions != 0
    }

    /// The state after one more byte of UTF-8.
    pub(super) fn accept(&self, state: &AutomatonState, byte: u8) -> AutomatonState {
        if byte.is_ascii() {
            return self.step(state, Some(char::from(byte)));
        }
        let (letter, missing) = match byte {
            0xF0.. => (u32::from(byte & 0x07), 3),
            0xE0.. => (u32::from(byte & 0x0F), 2),
            0xC0.. => (u32::from(byte & 0x1F), 1),
            _ => (state.letter << 6 | u32::from(byte & 0x3F), state.missing.saturating_sub(1)),
        };
        if missing == 0 {
            self.step(state, char::from_u32(letter))
        } else {
            AutomatonState { letter, missing, ..*state }
        }
    }
}
