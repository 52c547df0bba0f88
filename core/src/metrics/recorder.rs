//! What the recorder gets that the program has installed for the crate `metrics`: calls, callbacks and reads as they end, and
//! what a client is asked for, the gauges, when it is asked.
//!
//! Invariant: names, labels and units are those of [`DESCRIPTIONS`](super::DESCRIPTIONS).

use std::time::Duration;

use ::metrics::Label;

use super::{CALLBACK_SECONDS, MetricKind, Metrics, OPERATION_SECONDS, OPERATIONS, Outcome, Value};
use crate::error::Operation;

pub(super) fn count_operation(operation: Operation, outcome: Outcome, time: Duration) {
    ::metrics::counter!(OPERATIONS.name, "operation" => operation.name(), "outcome" => outcome.name()).increment(1);
    ::metrics::histogram!(OPERATION_SECONDS.name, "operation" => operation.name()).record(time.as_secs_f64());
}

pub(super) fn measure_callback(time: Duration) {
    ::metrics::histogram!(CALLBACK_SECONDS.name).record(time.as_secs_f64());
}

#[cfg(feature = "postgres")]
pub(crate) fn count_replica_read(answered_by: &'static str) {
    ::metrics::counter!(super::REPLICA_READS.name, "answered_by" => answered_by).increment(1);
}

/// Sets every gauge to its value in `metrics`.
pub(crate) fn set_gauges(metrics: &Metrics) {
    for (metric, samples) in metrics.iter().filter(|(metric, _)| metric.kind == MetricKind::Gauge) {
        for sample in samples {
            let Value::Number(number) = sample.value else { continue };
            let labels =
                metric.labels.iter().zip(&sample.labels).map(|(&name, &value)| Label::from_static_parts(name, value));
            ::metrics::gauge!(metric.name, labels.collect::<Vec<_>>()).set(number);
        }
    }
}
