//! Figures of the last minutes, measured in the background, for the plots.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::sleep;
use townsquare::{
    Client,
    metrics::{Metrics, Value},
};

/// The time between measurements.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);

/// The most measurements that are kept: those of ten minutes.
pub(super) const MOST_SAMPLES: usize = 120;

/// The number of [`SERIES`].
const COUNT: usize = SERIES.len();

/// What is plotted: name and unit.
pub(super) const SERIES: [(&str, &str); 9] = [
    ("Calls", "/s"),
    ("Failed calls", "/s"),
    ("Mean call time", "ms"),
    ("Calls that run", ""),
    ("Busy connections", ""),
    ("Jobs that wait", ""),
    ("Writes that wait", ""),
    ("Changes kept", ""),
    ("Lag of the feed", "s"),
];

/// The values of all series at one time. `None`: not measured.
pub(super) type Sample = [Option<f64>; COUNT];

/// Sums since the start. The calls of the measurement itself are left out.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    calls: f64,
    failed: f64,
    timed: f64,
    seconds: f64,
}

impl Totals {
    fn of(metrics: &Metrics) -> Totals {
        let mut totals = Totals::default();
        for (metric, samples) in metrics.iter() {
            for sample in samples.iter().filter(|sample| !matches!(sample.labels.first(), Some(&"metrics"))) {
                match (metric.name, &sample.value) {
                    ("townsquare_operations_total", Value::Number(count)) => {
                        totals.calls += count;
                        if sample.labels.get(1) != Some(&"ok") {
                            totals.failed += count;
                        }
                    }
                    ("townsquare_operation_seconds", Value::Histogram(times)) => {
                        #[allow(clippy::cast_precision_loss, reason = "a count beyond 2^53 is not reached")]
                        let count = times.count as f64;
                        totals.timed += count;
                        totals.seconds += times.sum;
                    }
                    _ => {}
                }
            }
        }
        totals
    }
}

#[derive(Debug, Default)]
pub(super) struct Samples(Mutex<VecDeque<Sample>>);

impl Samples {
    /// Measures until the client is closed.
    pub(super) async fn measure(&self, client: &Client) {
        let mut before: Option<Totals> = None;
        while let Ok(metrics) = client.metrics().await {
            let totals = Totals::of(&metrics);
            if let Some(before) = before {
                let sample = sample(&metrics, &before, &totals);
                let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                samples.push_back(sample);
                if samples.len() > MOST_SAMPLES {
                    samples.pop_front();
                }
            }
            before = Some(totals);
            sleep(INTERVAL).await;
        }
    }

    /// The samples, the oldest first.
    pub(super) fn all(&self) -> Vec<Sample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }
}

fn sample(metrics: &Metrics, before: &Totals, now: &Totals) -> Sample {
    let number = |name: &str, labels: &[(&str, &str)]| match metrics.get(name, labels) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    let waiting = ["callbacks", "blocking"].map(|pool| number("townsquare_jobs_waiting", &[("pool", pool)]));
    let (timed, seconds) = (now.timed - before.timed, now.seconds - before.seconds);
    [
        Some((now.calls - before.calls) / INTERVAL.as_secs_f64()),
        Some((now.failed - before.failed) / INTERVAL.as_secs_f64()),
        (timed > 0.0).then(|| seconds / timed * 1_000.0),
        number("townsquare_operations_running", &[]),
        number("townsquare_database_connections", &[("state", "busy")]),
        Some(waiting.into_iter().flatten().sum()),
        number("townsquare_database_writes_waiting", &[]),
        number("townsquare_feed_retained", &[]),
        number("townsquare_feed_lag_seconds", &[]),
    ]
}
