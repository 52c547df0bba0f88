//! Metrics: what a client has counted and measured since it was opened. [`Client::metrics`](crate::Client::metrics) returns them.
//!
//! Invariant: [`DESCRIPTIONS`] lists every metric once, with its labels and its unit. The value of a label is the name of an
//! operation, a kind of error or a fixed word, and never a text of a user.

mod counts;
mod histogram;
#[cfg(feature = "metrics")]
pub(crate) mod recorder;
mod text;

use std::{collections::BTreeMap, time::Duration};

pub(crate) use self::{
    counts::{OperationCounts, Outcome},
    histogram::AtomicHistogram,
};

/// What a metric is.
///
/// ```
/// use townsquare::metrics::{DESCRIPTIONS, MetricKind};
///
/// let counters = DESCRIPTIONS.iter().filter(|metric| metric.kind == MetricKind::Counter);
/// assert!(counters.clone().all(|metric| metric.name.ends_with("_total")));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// A number that only grows while the client is open.
    Counter,
    /// A number as it is now.
    Gauge,
    /// How many values were at most as large as each bound.
    Histogram,
}

/// Declares the metrics: constant, name, kind, unit, labels and meaning.
macro_rules! metrics {
    ($($constant:ident, $name:literal, $kind:ident, $unit:literal, [$($label:literal),*], $about:literal;)*) => {
        $(pub(crate) const $constant: Description = Description {
            name: $name,
            kind: MetricKind::$kind,
            unit: $unit,
            labels: &[$($label),*],
            about: $about,
        };)*

        /// Every metric: its name, kind, unit, labels and meaning.
        ///
        /// ```
        /// for metric in townsquare::metrics::DESCRIPTIONS {
        ///     println!("{} ({}): {}", metric.name, metric.unit, metric.about);
        /// }
        /// ```
        pub const DESCRIPTIONS: &[Description] = &[$($constant),*];
    };
}

metrics! {
    OPERATIONS, "townsquare_operations_total", Counter, "calls", ["operation", "outcome"],
        "calls of an operation that have ended, by outcome: `ok`, the kind of the error, or `dropped` if the program dropped the future";
    OPERATION_SECONDS, "townsquare_operation_seconds", Histogram, "seconds", ["operation"],
        "time from the first poll of an operation to its end";
    OPERATIONS_RUNNING, "townsquare_operations_running", Gauge, "calls", [], "calls that run, the one that reads the metrics among them";
    CALLBACK_SECONDS, "townsquare_callback_seconds", Histogram, "seconds", [],
        "time that a callback of the program took for one event";
    JOBS_WAITING, "townsquare_jobs_waiting", Gauge, "jobs", ["pool"],
        "jobs that wait for a thread: `callbacks` for the program, `blocking` for files and SQLite";
    CONNECTIONS, "townsquare_database_connections", Gauge, "connections", ["state"],
        "connections to the database, `busy` and `idle`. On SQLite those that read";
    WRITES_WAITING, "townsquare_database_writes_waiting", Gauge, "transactions", [],
        "transactions that wait for the writer of SQLite";
    REPLICA_READS, "townsquare_replica_reads_total", Counter, "reads", ["answered_by"],
        "reads that the replica may answer, by the server that did: `replica` or `primary`";
    STAGED_BYTES, "townsquare_staged_bytes", Gauge, "bytes", [], "bytes of large uploads that are not finished";
    CATALOG_APPS, "townsquare_catalog_apps", Gauge, "apps", [], "mini apps in the catalog";
    CATALOG_AGE, "townsquare_catalog_age_seconds", Gauge, "seconds", [], "time since the catalog was fetched";
    CATALOG_STALE, "townsquare_catalog_stale", Gauge, "0 or 1", [], "1 if the catalog is older than it should be";
    SUBSCRIPTIONS, "townsquare_feed_subscriptions", Gauge, "subscriptions", [],
        "subscriptions, streams and live queries of this client";
    RETAINED, "townsquare_feed_retained", Gauge, "changes", [], "changes that the change log keeps";
    FEED_LAG, "townsquare_feed_lag_seconds", Gauge, "seconds", [], "age of the oldest change that was not delivered";
}

/// What is known about a metric before it is measured.
///
/// ```
/// let metric = &townsquare::metrics::DESCRIPTIONS[0];
/// assert_eq!((metric.name, metric.labels), ("townsquare_operations_total", &["operation", "outcome"][..]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The name, as Prometheus has it.
    pub name: &'static str,
    /// What the metric is.
    pub kind: MetricKind,
    /// The unit of the values.
    pub unit: &'static str,
    /// The names of the labels of each sample.
    pub labels: &'static [&'static str],
    /// What is measured.
    pub about: &'static str,
}

/// The metrics of a client at one moment.
///
/// # Examples
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
/// use townsquare::metrics::Value;
///
/// client.spaces().get_public_spaces(20, 0)?;
/// let metrics = client.metrics()?;
/// let labels = [("operation", "get_public_spaces"), ("outcome", "ok")];
/// assert_eq!(metrics.get("townsquare_operations_total", &labels), Some(&Value::Number(1.0)));
/// println!("{}", metrics.to_prometheus());
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics(BTreeMap<&'static str, (Description, Vec<Sample>)>);

/// A value of a metric, for one value of each of its labels.
///
/// ```
/// # fn example(metrics: &townsquare::metrics::Metrics) {
/// for (metric, samples) in metrics.iter() {
///     for sample in samples {
///         println!("{} {:?}: {:?}", metric.name, sample.labels, sample.value);
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// The values of the labels, in the order of [`Description::labels`].
    pub labels: Vec<&'static str>,
    /// What was counted or measured.
    pub value: Value,
}

/// What was counted or measured.
///
/// ```
/// use townsquare::metrics::Value;
///
/// let number = |value: &Value| match value {
///     Value::Number(number) => *number,
///     Value::Histogram(histogram) => histogram.sum,
/// };
/// assert_eq!(number(&Value::Number(2.0)), 2.0);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a counter or a gauge.
    Number(f64),
    /// Of a histogram.
    Histogram(Histogram),
}

/// The values of a histogram.
///
/// ```
/// # fn example(histogram: &townsquare::metrics::Histogram) {
/// let mean = histogram.sum / histogram.count as f64;
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Histogram {
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Upper bounds, and how many values were at most as large. Values above the last bound are in `count` only.
    pub buckets: Vec<(f64, u64)>,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        Metrics(BTreeMap::new())
    }

    pub(crate) fn add(&mut self, metric: Description, labels: &[&'static str], value: Value) {
        debug_assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
        let sample = Sample { labels: labels.to_vec(), value };
        self.0.entry(metric.name).or_insert_with(|| (metric, Vec::new())).1.push(sample);
    }

    /// Adds a number that has no labels.
    pub(crate) fn add_number(&mut self, metric: Description, number: f64) {
        self.add(metric, &[], Value::Number(number));
    }

    /// Every metric that has a value, by name, with its samples.
    pub fn iter(&self) -> impl Iterator<Item = (&Description, &[Sample])> {
        self.0.values().map(|(metric, samples)| (metric, samples.as_slice()))
    }

    /// The value of the metric `name` with these labels. `None` if nothing was counted or measured.
    ///
    /// ```
    /// # fn example(metrics: &townsquare::metrics::Metrics) {
    /// let apps = metrics.get("townsquare_catalog_apps", &[]);
    /// # }
    /// ```
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<&Value> {
        let (metric, samples) = self.0.get(name)?;
        let of_labels = |sample: &&Sample| {
            let mut pairs = metric.labels.iter().zip(&sample.labels);
            labels.len() == metric.labels.len() && pairs.all(|(label, value)| labels.contains(&(label, value)))
        };
        samples.iter().find(of_labels).map(|sample| &sample.value)
    }
}

/// Records the time that a callback of the program took.
pub(crate) fn measure_callback(times: &AtomicHistogram, time: Duration) {
    times.record(time);
    #[cfg(feature = "metrics")]
    recorder::measure_callback(time);
}

/// A count as the value of a metric.
#[allow(clippy::cast_precision_loss, reason = "a count beyond 2^53 is not reached")]
pub(crate) const fn of_count(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_listed_once_and_its_name_has_its_unit() {
        let mut names: Vec<_> = DESCRIPTIONS.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), DESCRIPTIONS.len());
        for metric in DESCRIPTIONS {
            assert_eq!(metric.unit == "seconds", metric.name.ends_with("_seconds"), "{}", metric.name);
            assert_eq!(metric.kind == MetricKind::Counter, metric.name.ends_with("_total"), "{}", metric.name);
        }
    }
}
