//! A histogram of times that threads fill without a lock.
//!
//! Invariant: a time is counted in one bucket. A snapshot that is taken meanwhile may lack the last times, and has no more in its
//! buckets than in its count.

use std::{
    array,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::{Histogram, of_count};

/// The bounds are 1, 2, 4, … microseconds up to 17 seconds. The last bucket has what is longer.
const BUCKETS: usize = 26;

/// How many times fell into each bucket, and their sum in nanoseconds.
pub(crate) struct AtomicHistogram {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

impl Default for AtomicHistogram {
    fn default() -> AtomicHistogram {
        AtomicHistogram { buckets: array::from_fn(|_| AtomicU64::new(0)), nanoseconds: AtomicU64::new(0) }
    }
}

impl AtomicHistogram {
    pub(crate) fn record(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanoseconds)].fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// `None` if nothing was recorded.
    pub(crate) fn snapshot(&self) -> Option<Histogram> {
        let sum = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
        let mut count = 0;
        let counts = self.buckets.each_ref().map(|bucket| {
            count += bucket.load(Ordering::Relaxed);
            count
        });
        let bounds = (0..BUCKETS - 1).map(|index| of_count(1 << index) / 1e6);
        (count > 0).then(|| Histogram { count, sum, buckets: bounds.zip(counts).collect() })
    }
}

/// The first bucket whose bound is not smaller.
fn bucket(nanoseconds: u64) -> usize {
    let microseconds = nanoseconds.div_ceil(1_000);
    let index = microseconds.saturating_sub(1).checked_ilog2().map_or(0, |log| log as usize + 1);
    index.min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_that_holds_it() {
        for (nanoseconds, expected) in [
            (0, 0),
            (1, 0),
            (1_000, 0),
            (1_001, 1),
            (2_000, 1),
            (2_001, 2),
            (4_000, 2),
            (1_000_000, 10),
            (u64::MAX, 25),
        ] {
            assert_eq!(bucket(nanoseconds), expected, "{nanoseconds} ns");
        }
    }

    #[test]
    fn a_snapshot_counts_upwards() {
        let histogram = AtomicHistogram::default();
        assert_eq!(histogram.snapshot(), None);
        for time in [1, 3, 1_000_000, 100_000_000] {
            histogram.record(Duration::from_micros(time));
        }
        let Histogram { count, sum, buckets } = histogram.snapshot().expect("values");
        assert_eq!((count, buckets.len(), buckets.last().map(|(_, count)| *count)), (4, BUCKETS - 1, Some(3)));
        assert!((sum - 101.000_004).abs() < 1e-9 && buckets.is_sorted(), "{sum} {buckets:?}");
        assert_eq!(buckets[..3], [(1e-6, 1), (2e-6, 1), (4e-6, 2)]);
    }
}
