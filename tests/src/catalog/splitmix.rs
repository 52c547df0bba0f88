//! SplitMix64, the random number generator of the invented catalogs and the benches' queries.
//!
//! Invariant: the sequence of a seed never changes, so that the benches' figures stay comparable between versions.
//! `fastrand` gives no such promise.

/// A sequence of numbers that follows from its seed.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// Starts the sequence of `seed`.
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    /// Returns the next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound.max(1) as u64) as usize
    }

    /// Returns one of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns true in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns a number from 0 (included) to 1 (excluded).
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_numbers() {
        assert_eq!(SplitMix(1).next_u64(), 0x910A_2DEC_8902_5CC1);
        let mut random = SplitMix::new(1);
        assert!((0..100).all(|_| random.below(7) < 7));
    }
}
