//! A Levenshtein automaton: accepts the words at most two typing errors away from a pattern.
//!
//! Invariant: a word is accepted with `e` errors exactly when `e` insertions, deletions, substitutions or
//! transpositions of letters turn it into the pattern (optimal string alignment distance). The automaton is
//! bit-parallel (Wu and Manber 1992, with an extra row for transpositions), so a query builds no tables. The crate
//! `levenshtein_automata` builds a table for each query; a search of the real catalog takes ten times as long with it.

/// The longest pattern in letters: a row has one bit for each letter and one for the start.
pub(super) const LONGEST_PATTERN: usize = 61;

pub(super) struct LevenshteinAutomaton {
    /// For each distinct letter, the positions of the pattern that have it, one bit each.
    positions: Vec<(char, u64)>,
    /// Bit `n` stands for the position after `n` letters; `allowed[e]` are the positions that may have `e` errors.
    allowed: [u64; 3],
    end: u64,
}

#[derive(Clone, Copy)]
pub(super) struct AutomatonState {
    /// The active positions with 0, 1 and 2 errors.
    rows: [u64; 3],
    /// The positions in the middle of a transposition, with 0 and 1 errors before it.
    transpositions: [u64; 2],
    /// The bits of a letter with an incomplete UTF-8 sequence, and the number of missing bytes.
    letter: u32,
    missing: u8,
}

impl LevenshteinAutomaton {
    /// Accepts words at most `max_errors` (1 or 2) from a pattern of at most [`LONGEST_PATTERN`] letters.
    pub(super) fn new(pattern: &str, max_errors: usize) -> LevenshteinAutomaton {
        let mut positions: Vec<(char, u64)> = Vec::new();
        let mut end = 1;
        for letter in pattern.chars().take(LONGEST_PATTERN) {
            end <<= 1;
            match positions.iter_mut().find(|(other, _)| *other == letter) {
                Some((_, bits)) => *bits |= end,
                None => positions.push((letter, end)),
            }
        }
        let all = (end << 1) - 1;
        LevenshteinAutomaton { positions, allowed: [all, all, if max_errors > 1 { all } else { 0 }], end }
    }

    pub(super) fn start(&self) -> AutomatonState {
        let rows = [1, 0b11 & self.allowed[1], 0b111 & self.allowed[2]];
        AutomatonState { rows, transpositions: [0; 2], letter: 0, missing: 0 }
    }

    /// The state after one more byte of UTF-8.
    pub(super) fn accept(&self, state: &AutomatonState, byte: u8) -> AutomatonState {
        let (letter, missing) = match byte {
            0xF0.. => (u32::from(byte & 0x07), 3),
            0xE0.. => (u32::from(byte & 0x0F), 2),
            0xC0.. => (u32::from(byte & 0x1F), 1),
            0x80.. => (state.letter << 6 | u32::from(byte & 0x3F), state.missing.saturating_sub(1)),
            _ => (u32::from(byte), 0),
        };
        if missing == 0 { self.step(state, letter) } else { AutomatonState { letter, missing, ..*state } }
    }

    /// The first bytes of the letters that may follow if all errors have been made: few, so that a traversal looks them up
    /// instead of trying every continuation. `None` if another error is allowed.
    pub(super) fn required_bytes(&self, state: &AutomatonState) -> Option<impl Iterator<Item = u8>> {
        let ([r0, r1, r2], [t0, t1]) = (state.rows, state.transpositions);
        let (before, row, transpositions) = if self.allowed[2] == 0 { (r0, r1, t0) } else { (r0 | r1 | t0, r2, t1) };
        if before != 0 || state.missing > 0 {
            return None;
        }
        // A transposition ends with the letter before its position.
        let next = row << 1 | transpositions >> 1;
        let letters = self.positions.iter().filter(move |(_, bits)| bits & next != 0);
        Some(letters.map(|(letter, _)| {
            let mut bytes = [0; 4];
            letter.encode_utf8(&mut bytes);
            bytes[0]
        }))
    }

    fn step(&self, state: &AutomatonState, letter: u32) -> AutomatonState {
        let same = self.positions.iter().find(|(other, _)| u32::from(*other) == letter).map_or(0, |(_, bits)| *bits);
        let [r0, r1, r2] = state.rows;
        let [t0, t1] = state.transpositions;
        let n0 = (r0 << 1) & same & self.allowed[0];
        let n1 = (((r1 << 1) & same) | r0 | (r0 << 1) | (n0 << 1) | (t0 & (same << 1))) & self.allowed[1];
        let n2 = (((r2 << 1) & same) | r1 | (r1 << 1) | (n1 << 1) | (t1 & (same << 1))) & self.allowed[2];
        // A transposition begins where the letter equals the pattern's letter after the next.
        let transpositions = [(r0 << 2) & same, (r1 << 2) & same];
        AutomatonState { rows: [n0, n1, n2], transpositions, letter: 0, missing: 0 }
    }

    /// The number of errors of an accepted word; `None` if `state` does not accept.
    pub(super) fn errors(&self, state: &AutomatonState) -> Option<usize> {
        state.rows.iter().position(|row| row & self.end != 0).filter(|_| state.missing == 0)
    }

    /// Whether some continuation may be accepted: a row or a transposition is active.
    pub(super) fn can_match(&self, state: &AutomatonState) -> bool {
        let transpositions = (state.transpositions[0] & self.allowed[1]) | (state.transpositions[1] & self.allowed[2]);
        state.rows[0] | state.rows[1] | state.rows[2] | transpositions != 0
    }
}
