//! One refresh: the demand of its callers, and a handle for the callers that wait for it.

use std::sync::Arc;

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
    pub(super) outcome: watch::Receiver<Option<Result<()>>>,
}

/// The lists that a refresh fetches, and what its callers demand. Callers that join the refresh change its demand, until its
/// stage forbids that.
#[derive(Default)]
pub(super) struct RefreshRequest {
    /// Further lists to add to the catalog in use; empty for a refresh of the whole catalog.
    pub(super) lists: Vec<ListKey>,
    demand: Mutex<Demand>,
}

/// What the callers of a refresh of the main list demand.
#[derive(Clone, Copy, Default)]
pub(super) struct Demand {
    /// The time of the last call that demands a later fetch of the main list. Without such a call, a fresh catalog in the
    /// database satisfies the refresh.
    pub(super) since: Option<Timestamp>,
    /// Fetch although the source failed a moment ago.
    pub(super) ignores_backoff: bool,
    /// Accept a collapsed catalog.
    pub(super) is_forced: bool,
    stage: Stage,
}

/// How far the refresh of the main list is.
#[derive(Clone, Copy, Default)]
enum Stage {
    /// It has not begun to fetch the main list.
    #[default]
    Open,
    /// It began the fetch of this number.
    Fetching(u64),
    /// It ended without a fetch, or its fetch has ended.
    Decided,
}

/// The caller of a fetch of the main list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::discovery) enum FetchMode {
    /// A caller over HTTP: respects the backoff.
    Polite,
    /// The host.
    Now,
    /// The host, who accepts a collapsed catalog.
    Force,
}

impl RefreshRequest {
    /// A request for further lists.
    pub(super) fn of_lists(lists: Vec<ListKey>) -> RefreshRequest {
        RefreshRequest { lists, ..RefreshRequest::default() }
    }

    /// Asks for a main list that is fetched after `since`. `last_fetch` is the number of the last fetch that had begun when the
    /// caller called. Returns false if the caller has to wait for another refresh: the fetch of this one began before the call.
    pub(super) fn join(&self, since: Timestamp, last_fetch: u64, mode: FetchMode) -> bool {
        let mut demand = self.demand.lock();
        let is_joined = match demand.stage {
            Stage::Open => self.is_main(),
            Stage::Fetching(number) => match mode {
                // A caller over HTTP wants a young catalog and causes no second fetch.
                FetchMode::Polite => true,
                FetchMode::Now => number > last_fetch,
                FetchMode::Force => number > last_fetch && demand.is_forced,
            },
            Stage::Decided => false,
        };
        if is_joined {
            demand.since = demand.since.max(Some(since));
            demand.ignores_backoff |= mode != FetchMode::Polite;
            demand.is_forced |= mode == FetchMode::Force;
        }
        is_joined
    }

    pub(super) fn demand(&self) -> Demand {
        *self.demand.lock()
    }

    /// Begins the fetch with this number. Returns the demand; no later caller changes its `is_forced`.
    pub(super) fn begin_fetch(&self, number: u64) -> Demand {
        let mut demand = self.demand.lock();
        demand.stage = Stage::Fetching(number);
        *demand
    }

    /// Ends the refresh of the main list without a further fetch, if that satisfies the callers who have joined: no later caller
    /// joins. Returns whether it does.
    pub(super) fn end_if(&self, satisfies: impl FnOnce(&Demand) -> bool) -> bool {
        let mut demand = self.demand.lock();
        let is_satisfied = satisfies(&demand);
        if is_satisfied {
            demand.stage = Stage::Decided;
        }
        is_satisfied
    }

    /// Whether the task refreshes the main list.
    pub(super) fn is_main(&self) -> bool {
        self.lists.is_empty()
    }
}

impl RefreshTask {
    /// Waits until the refresh ends.
    ///
    /// # Errors
    /// The error of the refresh; `Closed` if the client is closed first.
    pub(super) async fn wait(mut self) -> Result<()> {
        match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(|| Err(Error::closed())),
            Err(_) => Err(Error::closed()),
        }
    }
}
