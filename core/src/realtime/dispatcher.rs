//! Runs the callbacks of many subscriptions on few threads.
//!
//! Invariant: a callback that takes long holds up no other subscription: while subscriptions wait, a standby thread looks
//! every millisecond whether the others make progress, and takes over if they do not.

use std::{collections::VecDeque, sync::Arc, thread, time::Duration};

use parking_lot::{Condvar, Mutex};

use super::subscription_state::WokenConsumer;
use crate::{callbacks::PullQueue, model::RowChange, threads::BlockingPool};

/// How long the standby thread waits for the others to finish one subscription.
const STANDBY_TIMEOUT: Duration = Duration::from_millis(1);

/// The subscriptions that have something for their callback.
#[derive(Clone)]
pub(super) struct CallbackDispatcher(Arc<DispatcherShared>);

struct DispatcherShared {
    pool: BlockingPool,
    /// More threads than these are not faster, unless a callback waits.
    max_workers: usize,
    state: Mutex<DispatcherState>,
    /// Notified when nothing is ready any more.
    drained: Condvar,
}

#[derive(Default)]
struct DispatcherState {
    ready: VecDeque<PullQueue<RowChange>>,
    workers: usize,
    has_standby: bool,
    /// The number of subscriptions served so far.
    served: u64,
}

impl CallbackDispatcher {
    pub(super) fn new(pool: BlockingPool) -> CallbackDispatcher {
        let max_workers = thread::available_parallelism().map_or(1, usize::from);
        CallbackDispatcher(Arc::new(DispatcherShared {
            pool,
            max_workers,
            state: Mutex::default(),
            drained: Condvar::new(),
        }))
    }

    /// Wakes tasks, and makes callbacks ready for [`run`](CallbackDispatcher::run).
    pub(super) fn add(&self, wakes: Vec<WokenConsumer>) {
        let mut tasks = Vec::new();
        let mut state = self.0.state.lock();
        for wake in wakes {
            match wake {
                WokenConsumer::Queue(queue) => state.ready.push_back(queue),
                WokenConsumer::Task(waker) => tasks.push(waker),
            }
        }
        drop(state);
        // Wakers are foreign code, which runs under no lock.
        tasks.into_iter().for_each(std::task::Waker::wake);
    }

    /// Runs callbacks on this thread until none is ready.
    pub(super) fn run(&self) {
        let mut state = self.0.state.lock();
        state.workers += 1;
        while let Some(queue) = state.ready.pop_front() {
            if !state.ready.is_empty() && !std::mem::replace(&mut state.has_standby, true) {
                let this = self.clone();
                if let Err(error) = self.0.pool.submit(move || this.stand_by()) {
                    tracing::debug!(%error, "callbacks have no second thread");
                    state.has_standby = false;
                }
            }
            drop(state);
            queue.run_here();
            state = self.0.state.lock();
            state.served += 1;
        }
        state.workers -= 1;
        drop(state);
        self.0.drained.notify_all();
    }

    /// Runs callbacks on a thread of the pool, if any is ready.
    pub(super) fn run_on_pool(&self) {
        if self.0.state.lock().ready.is_empty() {
            return;
        }
        let this = self.clone();
        if let Err(error) = self.0.pool.submit(move || this.run()) {
            tracing::debug!(%error, "callbacks wait for a thread");
        }
    }

    /// Waits while the workers make progress. Becomes a worker if they do not, or if there are few.
    fn stand_by(&self) {
        let mut state = self.0.state.lock();
        while !state.ready.is_empty() {
            let served = state.served;
            let is_needed = state.workers < self.0.max_workers
                || (self.0.drained.wait_for(&mut state, STANDBY_TIMEOUT).timed_out() && state.served == served);
            if is_needed && !state.ready.is_empty() {
                state.has_standby = false;
                drop(state);
                return self.run();
            }
        }
        state.has_standby = false;
    }
}
