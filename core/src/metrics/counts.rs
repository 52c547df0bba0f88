//! The counts of the operations of a client.
//!
//! Invariant: no lock. A call that has begun ends once: as `ok`, with the kind of its error, or dropped.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

#[cfg(feature = "metrics")]
use super::recorder;
use super::{AtomicHistogram, Metrics, OPERATION_SECONDS, OPERATIONS, OPERATIONS_RUNNING, Value, of_count};
use crate::error::{ErrorKind, Operation};

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    Failed(ErrorKind),
    /// The program dropped its future.
    Dropped,
}

/// The outcomes: `ok`, `dropped` and the kinds.
const OUTCOMES: usize = 2 + ErrorKind::ALL.len();

impl Outcome {
    /// The value of the label, and of the field of the span.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed(kind) => kind.as_str(),
            Outcome::Dropped => "dropped",
        }
    }

    fn index(self) -> usize {
        match self {
            Outcome::Ok => 0,
            Outcome::Dropped => 1,
            Outcome::Failed(kind) => 2 + kind as usize,
        }
    }

    fn all() -> impl Iterator<Item = Outcome> {
        [Outcome::Ok, Outcome::Dropped].into_iter().chain(ErrorKind::ALL.map(Outcome::Failed))
    }
}

/// What is counted for each operation.
#[derive(Default)]
struct Count {
    outcomes: [AtomicU64; OUTCOMES],
    times: AtomicHistogram,
}

/// The counts of a client since it was opened.
pub(crate) struct OperationCounts {
    counts: Box<[Count]>,
    begun: AtomicU64,
}

impl Default for OperationCounts {
    fn default() -> OperationCounts {
        OperationCounts { counts: Operation::ALL.iter().map(|_| Count::default()).collect(), begun: AtomicU64::new(0) }
    }
}

impl OperationCounts {
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, operation: Operation, outcome: Outcome, time: Duration) {
        let count = &self.counts[operation as usize];
        count.outcomes[outcome.index()].fetch_add(1, Ordering::Relaxed);
        count.times.record(time);
        #[cfg(feature = "metrics")]
        recorder::count_operation(operation, outcome, time);
    }

    pub(crate) fn add_to(&self, metrics: &mut Metrics) {
        let mut ended = 0;
        for (operation, count) in Operation::ALL.iter().zip(&self.counts) {
            for outcome in Outcome::all() {
                let number = count.outcomes[outcome.index()].load(Ordering::Relaxed);
                ended += number;
                if number > 0 {
                    metrics.add(OPERATIONS, &[operation.name(), outcome.name()], Value::Number(of_count(number)));
                }
            }
            if let Some(times) = count.times.snapshot() {
                metrics.add(OPERATION_SECONDS, &[operation.name()], Value::Histogram(times));
            }
        }
        // Read last: a call that ended meanwhile had begun.
        let running = self.begun.load(Ordering::Relaxed).saturating_sub(ended);
        metrics.add_number(OPERATIONS_RUNNING, of_count(running));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_a_count_of_its_own() {
        let mut indices: Vec<_> = Outcome::all().map(Outcome::index).collect();
        indices.sort_unstable();
        assert!(indices.into_iter().eq(0..OUTCOMES));
        assert!(Operation::ALL.iter().enumerate().all(|(index, operation)| *operation as usize == index));
    }

    #[test]
    fn calls_are_counted_by_operation_and_outcome() {
        let counts = OperationCounts::default();
        for outcome in [Outcome::Ok, Outcome::Ok, Outcome::Failed(ErrorKind::NotFound), Outcome::Dropped] {
            counts.begin();
            counts.end(Operation::GetSpace, outcome, Duration::from_micros(5));
        }
        counts.begin();
        let mut metrics = Metrics::new();
        counts.add_to(&mut metrics);
        let number = |outcome| metrics.get(OPERATIONS.name, &[("operation", "get_space"), ("outcome", outcome)]);
        assert_eq!(number("ok"), Some(&Value::Number(2.0)));
        assert_eq!((number("not_found"), number("dropped")), (Some(&Value::Number(1.0)), Some(&Value::Number(1.0))));
        assert_eq!(number("closed"), None);
        assert_eq!(metrics.get(OPERATIONS_RUNNING.name, &[]), Some(&Value::Number(1.0)));
        let times = metrics.get(OPERATION_SECONDS.name, &[("operation", "get_space")]);
        assert!(matches!(times, Some(Value::Histogram(times)) if times.count == 4), "{times:?}");
    }
}
