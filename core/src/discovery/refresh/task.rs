//! One refresh: what it is for, and a handle for the callers that wait for it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    catalog::ListKey,
    error::{Error, Result},
};

/// A handle to the running refresh, shared by all callers that wait for it.
#[derive(Clone)]
pub(super) struct RefreshTask {
    pub(super) request: Arc<RefreshRequest>,
    pub(super) outcome: watch::Receiver<Option<Result<RefreshOutcome>>>,
}

/// What a refresh is for. Callers that join a running refresh may set its flags.
#[derive(Default)]
pub(super) struct RefreshRequest {
    /// Further lists to add to the catalog in use; empty for a refresh of the whole catalog.
    pub(super) lists: Vec<ListKey>,
    /// The time of the last call that wants the main list fetched after it. Without one, a fresh catalog in the database
    /// will do.
    since: Mutex<Option<Timestamp>>,
    /// Fetch although the source failed a moment ago.
    ignores_backoff: AtomicBool,
    /// Accept a collapsed catalog.
    force: AtomicBool,
    /// Set when the main list has been fetched: later calls do not join.
    has_fetched: AtomicBool,
}

/// Who asks for a fetch of the main list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::discovery) enum FetchMode {
    /// A caller over HTTP: respects the backoff.
    Polite,
    /// The host.
    Now,
    /// The host, who accepts a collapsed catalog.
    Force,
}

#[derive(Clone)]
pub(super) struct RefreshOutcome {
    /// Whether the main list was fetched after the calls that asked for it, by this process or another.
    pub(super) is_fetched: bool,
}

impl RefreshRequest {
    /// A request for further lists.
    pub(super) fn of_lists(lists: Vec<ListKey>) -> RefreshRequest {
        RefreshRequest { lists, ..RefreshRequest::default() }
    }

    /// Asks for a fetch that begins after `now`.
    pub(super) fn fetch_since(&self, now: Timestamp, mode: FetchMode) {
        let mut since = self.since.lock();
        *since = (*since).max(Some(now));
        self.ignores_backoff.fetch_or(mode != FetchMode::Polite, Ordering::AcqRel);
        self.force.fetch_or(mode == FetchMode::Force, Ordering::AcqRel);
    }

    pub(super) fn since(&self) -> Option<Timestamp> {
        *self.since.lock()
    }

    pub(super) fn ignores_backoff(&self) -> bool {
        self.ignores_backoff.load(Ordering::Acquire)
    }

    pub(super) fn is_forced(&self) -> bool {
        self.force.load(Ordering::Acquire)
    }

    pub(super) fn end_main_fetch(&self) {
        self.has_fetched.store(true, Ordering::Release);
    }

    /// Whether the task refreshes the main list.
    pub(super) fn is_main(&self) -> bool {
        self.lists.is_empty()
    }

    /// Whether the task will fetch the main list, or is fetching it.
    pub(super) fn can_be_joined(&self) -> bool {
        self.is_main() && !self.has_fetched.load(Ordering::Acquire)
    }
}

impl RefreshTask {
    /// Waits until the refresh ends.
    ///
    /// # Errors
    /// The error of the refresh; `Closed` if the client is closed first.
    pub(super) async fn wait(mut self) -> Result<RefreshOutcome> {
        match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(|| Err(Error::closed())),
            Err(_) => Err(Error::closed()),
        }
    }
}
