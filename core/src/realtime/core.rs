//! What the handles of a client share: the subscriptions, the readers of the log, and the retention.
//!
//! Invariant: the subscriptions are in two *lanes*. Each lane has one log reader, a job of the callback pool, which reads after
//! each commit and judges the entries for the subscriptions without a lock. The subscriptions with costly filters have a lane
//! of their own: an anonymous request chooses its filter, and ten thousand patterns on a long text delay only each other. The
//! watch for commits exists only while there are subscriptions.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::sync;

use super::{
    deletions::Deletions,
    lane::Lane,
    pruning::{self, LogUse},
    retry::ReadFailures,
    subscription_state::WokenConsumer,
    view::View,
};
use crate::{
    clock::Clock,
    database::{
        CurrentPrincipal, Database,
        change_log::{CommitWatch, CursorKey, RetentionLimits, TableSet},
    },
    error::{Error, ErrorKind, Result},
    model::RealtimeStats,
    policy::Table,
    threads::{BlockingPool, ProcessOwned, RuntimeHandle},
};

/// How long `close` waits for a thread that reads the log for a stream.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many threads read the log for streams that have fallen behind, in the lane of cheap filters and in the lane of costly ones.
const REPLAY_THREADS: [usize; 2] = [2, 1];

/// The change feed of a client.
pub(crate) struct RealtimeCore {
    pub(super) this: Weak<RealtimeCore>,
    pub(super) database: Database,
    pub(super) runtime: RuntimeHandle,
    /// Runs the log readers and the callbacks.
    pub(super) callbacks: BlockingPool,
    pub(super) clock: Clock,
    pub(super) limits: RetentionLimits,
    pub(super) lanes: [Lane; 2],
    pub(super) failures: ReadFailures,
    pub(super) watch: Mutex<Option<CommitWatch>>,
    /// Held while the watch starts or stops.
    pub(super) starting: sync::Mutex<()>,
    /// Whether a task is about to stop the watch.
    pub(super) is_watch_ending: AtomicBool,
    /// Whether a task ends the subscriptions with access tokens that expire.
    pub(super) watches_expiry: AtomicBool,
    /// Known once capture is on.
    pub(super) cursors: ArcSwapOption<CursorKey>,
    /// Of each table, for replays.
    pub(super) deletions: [sync::Mutex<Deletions>; Table::ALL.len()],
    is_closed: AtomicBool,
    /// The process that opened the client.
    process: ProcessOwned<()>,
}

impl RealtimeCore {
    pub(crate) fn new(
        database: Database,
        clock: Clock,
        limits: RetentionLimits,
        runtime: RuntimeHandle,
        callbacks: BlockingPool,
    ) -> Arc<RealtimeCore> {
        let core = Arc::new_cyclic(|this| RealtimeCore {
            this: Weak::clone(this),
            lanes: REPLAY_THREADS.map(|threads| {
                let replays = BlockingPool::for_readers("townsquare-read", threads, runtime.tokio.clone());
                Lane::new(database.pause_between_reads(), replays)
            }),
            failures: ReadFailures::default(),
            database,
            runtime,
            callbacks,
            clock,
            limits,
            watch: Mutex::default(),
            starting: sync::Mutex::default(),
            is_watch_ending: AtomicBool::new(false),
            watches_expiry: AtomicBool::new(false),
            cursors: ArcSwapOption::empty(),
            deletions: std::array::from_fn(|_| sync::Mutex::default()),
            is_closed: AtomicBool::new(false),
            process: ProcessOwned::new(()),
        });
        let this = Weak::clone(&core.this);
        let log_use = move || {
            this.upgrade().map(|core| LogUse {
                database: core.database.clone(),
                knows_capture: core.cursors.load().is_some(),
                needed_after: core.lanes.iter().filter_map(|lane| lane.registry.lock().needed_after()).min(),
            })
        };
        let this = Weak::clone(&core.this);
        let end_pruned = move |pruned| {
            let Some(core) = this.upgrade() else { return };
            for lane in &core.lanes {
                let woken = lane.registry.lock().end_pruned(pruned);
                core.wake(woken);
            }
        };
        core.runtime.spawn(pruning::run(limits, core.database.log_pressure(), log_use, end_pruned));
        core
    }

    /// # Errors
    /// `Closed` for a closed client or handle, and in a forked child.
    pub(super) fn check_open(&self, principal: &CurrentPrincipal) -> Result<()> {
        self.process.get()?;
        if self.is_closed() {
            return Err(Error::closed());
        }
        principal.check_open()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// True in a forked child of the process that opened the client.
    pub(super) fn is_inherited(&self) -> bool {
        self.process.is_inherited()
    }

    /// The lane of the subscriptions with a view.
    pub(super) fn lane(&self, view: &View) -> &Lane {
        &self.lanes[usize::from(view.filter.is_costly())]
    }

    /// Wakes tasks, and runs callbacks on the pool. The caller holds no lock: wakers are foreign code.
    pub(super) fn wake(&self, woken: impl IntoIterator<Item = WokenConsumer>) {
        let callbacks = WokenConsumer::wake_tasks(woken);
        // A closed pool drops the jobs: the client is closed.
        let _ = self.callbacks.submit_all(callbacks);
    }

    pub(crate) async fn stats(&self) -> Result<RealtimeStats> {
        let log = self.database.log_stats().await?;
        let (mut subscriptions, mut lag) = (0, log.lag);
        for lane in &self.lanes {
            let head = {
                let registry = lane.registry.lock();
                subscriptions += registry.len();
                registry.head
            };
            let Some(head) = head else { continue };
            let unread = match self.database.read_changes(head, TableSet::default()).await {
                // The log reader ends the subscriptions.
                Err(error) if error.kind() == ErrorKind::CursorExpired => None,
                unread => unread?.first_at,
            };
            if let Some(first_at) = unread {
                lag = lag.max(self.clock.now().duration_since(first_at).try_into().unwrap_or_default());
            }
        }
        Ok(RealtimeStats {
            subscriptions: subscriptions as u64,
            retained: log.retained,
            oldest: log.oldest,
            lag_seconds: lag.as_secs_f64(),
        })
    }

    /// Ends every subscription, and the watch for commits. Waits for the threads that read the log for streams.
    pub(crate) fn close(&self) {
        self.end(CLOSE_TIMEOUT);
    }

    fn end(&self, timeout: Duration) {
        self.is_closed.store(true, Ordering::Release);
        self.close_subscriptions(None);
        for lane in &self.lanes {
            lane.set_head(&mut lane.registry.lock(), None);
            lane.replays.close(timeout);
        }
        let watch = self.watch.lock().take();
        drop(watch);
    }

    /// Ends every subscription, or every one of a handle.
    pub(super) fn close_subscriptions(&self, of_handle: Option<&CurrentPrincipal>) {
        // Closing runs code of the program, under no lock.
        for lane in &self.lanes {
            let subscriptions = lane.registry.lock().subscriptions(of_handle);
            for subscription in subscriptions {
                subscription.close();
                self.unregister(&subscription);
            }
        }
    }
}

impl Drop for RealtimeCore {
    fn drop(&mut self) {
        if !self.is_inherited() {
            // Does not wait: the last handle may be dropped on a thread of a runtime.
            self.end(Duration::ZERO);
        }
    }
}
