//! The metrics of a client: what it has counted, and what its parts say at this moment.
//!
//! Invariant: the values are of the client, not of a caller: every handle returns the same.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::Client;
use crate::{
    database::call,
    error::{Operation, Result},
    metrics::{
        AtomicHistogram, CALLBACK_SECONDS, CATALOG_AGE, CATALOG_APPS, CATALOG_STALE, CONNECTIONS, FEED_LAG,
        JOBS_WAITING, Metrics, REPLICA_READS, RETAINED, STAGED_BYTES, SUBSCRIPTIONS, Value, WRITES_WAITING, of_count,
    },
};

/// The longest time that the database is asked for the state of the change feed.
const FEED_TIMEOUT: Duration = Duration::from_secs(2);

impl Client {
    /// Returns what the client has counted and measured since it was opened: calls by operation and outcome, their times, the times
    /// of callbacks, queues, connections, and the state of the catalog and of the change feed.
    /// [`DESCRIPTIONS`](crate::metrics::DESCRIPTIONS) lists the metrics. Counting takes no lock. Every handle of a client returns
    /// the same. The figures are for the program: no endpoint shows them.
    ///
    /// The database is asked for the state of the change feed. If it does not answer within 2 s, the metrics of the feed are left out.
    ///
    /// With the feature `metrics`, the recorder that the program has installed for the crate
    /// [`metrics`](https://docs.rs/metrics) gets the same: calls, callbacks and reads on a replica when they end, and the gauges at each
    /// call of this method. So call it before the recorder is read. The clients of a process share the recorder: calls add up, and a gauge has
    /// the value of the client that was asked last.
    ///
    /// # Errors
    /// `Closed` on a closed client.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::metrics::Value;
    ///
    /// for (metric, samples) in client.metrics()?.iter() {
    ///     for sample in samples {
    ///         match &sample.value {
    ///             Value::Number(number) => println!("{} {:?} {number} {}", metric.name, sample.labels, metric.unit),
    ///             Value::Histogram(times) => println!("{} {:?} {} times", metric.name, sample.labels, times.count),
    ///         }
    ///     }
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn metrics(&self) -> Result<Metrics> {
        call(self.0.auth.principal(), Operation::Metrics, self.measure()).await
    }

    async fn measure(&self) -> Result<Metrics> {
        let principal = self.0.auth.principal();
        let core = &self.0.core;
        let mut metrics = Metrics::new();
        principal.counts().add_to(&mut metrics);

        let (blocking, callbacks) = (&core.runtime.handle().blocking, core.runtime.callbacks());
        if let Some(times) = callbacks.callback_times().and_then(AtomicHistogram::snapshot) {
            metrics.add(CALLBACK_SECONDS, &[], Value::Histogram(times));
        }
        for (pool, waiting) in [("callbacks", callbacks.waiting()), ("blocking", blocking.waiting())] {
            metrics.add(JOBS_WAITING, &[pool], Value::Number(of_count(waiting as u64)));
        }

        let load = core.database.load()?;
        for (state, count) in [("busy", load.busy), ("idle", load.idle)] {
            metrics.add(CONNECTIONS, &[state], Value::Number(of_count(count as u64)));
        }
        if let Some(waiting) = load.writes_waiting {
            metrics.add_number(WRITES_WAITING, of_count(waiting as u64));
        }
        for (server, reads) in load.replica_reads {
            metrics.add(REPLICA_READS, &[server], Value::Number(of_count(reads)));
        }
        metrics.add_number(STAGED_BYTES, of_count(core.storage.staged_bytes()));

        let catalog = core.discovery.stats()?;
        metrics.add_number(CATALOG_APPS, of_count(catalog.total as u64));
        metrics.add_number(CATALOG_STALE, if catalog.is_stale { 1.0 } else { 0.0 });
        if let Some(fetched_at) = catalog.fetched_at {
            metrics.add_number(CATALOG_AGE, core.clock.now().duration_since(fetched_at).as_secs_f64());
        }

        let realtime = Arc::clone(&core.realtime);
        // On the runtime, which has the timer.
        let asked = core.runtime.handle().spawn(async move { timeout(FEED_TIMEOUT, realtime.stats()).await });
        if let Ok(Ok(Ok(feed))) = asked.await {
            metrics.add_number(SUBSCRIPTIONS, of_count(feed.subscriptions));
            metrics.add_number(RETAINED, of_count(feed.retained));
            metrics.add_number(FEED_LAG, feed.lag_seconds);
        }
        #[cfg(feature = "metrics")]
        crate::metrics::recorder::set_gauges(&metrics);
        Ok(metrics)
    }
}
