//! A string interner for the terms of an index under construction.
//!
//! Invariant: terms are numbered from 0 in the order of their first occurrence. The text lies in one arena and the hash
//! table is our own: a `HashMap<String, u32>` takes half of the build time for allocations and SipHash.

pub(super) struct TermInterner {
    text: String,
    /// The end of each term in `text`.
    ends: Vec<u32>,
    /// Open addressing, at most half full. A slot is (term number + 1, hash); 0 marks a free slot.
    slots: Vec<(u32, u32)>,
}

impl TermInterner {
    pub(super) fn new() -> TermInterner {
        TermInterner { text: String::new(), ends: Vec::new(), slots: vec![(0, 0); 1 << 10] }
    }

    /// The number of `term`, which is added if it is new.
    pub(super) fn intern(&mut self, term: &str) -> u32 {
        let hash = hash(term);
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let (number @ 1.., other) = self.slots[slot] {
            if other == hash && self.term(number - 1) == term {
                return number - 1;
            }
            slot = (slot + 1) & mask;
        }
        let number = self.ends.len() as u32;
        self.slots[slot] = (number + 1, hash);
        self.text.push_str(term);
        self.ends.push(self.text.len() as u32);
        if self.ends.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    /// The terms in byte order, and for each number the rank of its term in that order.
    pub(super) fn sorted(&self) -> (Vec<&str>, Vec<u32>) {
        let mut order: Vec<(&str, u32)> =
            (0..self.ends.len() as u32).map(|number| (self.term(number), number)).collect();
        order.sort_unstable();
        let mut ranks = vec![0; order.len()];
        for (rank, (_, number)) in (0..).zip(&order) {
            ranks[*number as usize] = rank;
        }
        (order.into_iter().map(|(term, _)| term).collect(), ranks)
    }

    pub(super) fn term(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[number] as usize]
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let old = std::mem::replace(&mut self.slots, vec![(0, 0); mask + 1]);
        for (number, hash) in old.into_iter().filter(|(number, _)| *number > 0) {
            let mut slot = hash as usize & mask;
            while self.slots[slot].0 > 0 {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = (number, hash);
        }
    }
}

/// A fast multiply-and-fold hash, not keyed: a hostile catalog can at worst slow down a build with collisions.
pub(super) fn hash(text: &str) -> u32 {
    const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = text.len() as u64;
    for chunk in text.as_bytes().chunks(8) {
        let mut block = [0; 8];
        block[..chunk.len()].copy_from_slice(chunk);
        let product = u128::from(state ^ u64::from_le_bytes(block)) * u128::from(PRIME);
        state = product as u64 ^ (product >> 64) as u64;
    }
    (state ^ state >> 32) as u32
}
