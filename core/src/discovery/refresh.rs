//! The catalog's life: loaded once, renewed behind its readers, one refresh at a time.
//!
//! Invariant: at most one *flight* (a refresh, or the fetch of a list asked for the first time) is under way in a
//! client, and everybody who needs its outcome waits for that one. A flight ends by replacing the snapshot or by
//! leaving it and remembering why.

mod flight;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::watch};
use uuid::Uuid;

use self::flight::{Flight, Task};
use super::store::Store;
use crate::{
    catalog::{
        CatalogData, CatalogSource, DiscoveryStats, Listing, Selection, Snapshot, Timeframe, View, known_network,
    },
    catalog_thread::CatalogThread,
    clock::{Clock, Moment},
    database::Scope,
    error::{Error, Result},
    upstream::Upstream,
};

/// The catalog of a client with everything that keeps it fresh.
pub(super) struct Catalog {
    current: ArcSwapOption<Current>,
    state: Mutex<State>,
    is_closed: AtomicBool,
    upstream: Upstream,
    store: Store,
    /// Reads, builds and writes catalogs.
    catalog_thread: Arc<CatalogThread>,
    interval: Duration,
    /// How long other processes leave a fetch to the one that is at it.
    lease: Duration,
    clock: Clock,
    runtime: Handle,
}

/// The snapshot in use.
pub(super) struct Current {
    pub(super) snapshot: Snapshot,
    fresh_until: Moment,
    /// The lists that were asked for since the snapshot was taken: a refresh renews these and drops the rest.
    used: Mutex<Vec<View>>,
}

#[derive(Default)]
struct State {
    flight: Option<Flight>,
    /// Why the last refresh failed.
    last_error: Option<Error>,
    /// When reads may start a refresh again, and how long the next failure makes them wait.
    backoff: Backoff,
    /// The same for lists that could not be fetched.
    views: HashMap<View, (Backoff, Error)>,
}

/// A wait that doubles with every failure.
#[derive(Clone, Copy, Default)]
struct Backoff {
    until: Option<Moment>,
    failures: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(300);
    /// An upstream that names a longer wait than this is asked again nevertheless.
    const LONGEST_NAMED: Duration = Duration::from_secs(3_600);

    fn fail(&mut self, now: Moment, error: &Error) {
        let doubled = Backoff::FIRST.saturating_mul(1 << self.failures.min(16)).min(Backoff::LONGEST);
        self.failures += 1;
        let named = error.retry_after().unwrap_or_default().min(Backoff::LONGEST_NAMED);
        self.until = Some(now.after(doubled.max(named)));
    }

    fn holds(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

impl Catalog {
    pub(super) fn new(
        upstream: Upstream,
        interval: Duration,
        lease: Duration,
        database: Scope,
        clock: Clock,
        runtime: Handle,
    ) -> Arc<Catalog> {
        let catalog_thread = Arc::new(CatalogThread::default());
        let store = Store {
            database,
            source: upstream.name().into(),
            clock: clock.clone(),
            catalog_thread: Arc::clone(&catalog_thread),
            holder: Uuid::new_v4(),
        };
        // Without a key the catalog is empty and stays so: no call, no error (SPEC 1.5).
        let nothing = (!upstream.is_reachable()).then(|| {
            let data = CatalogData::new(Listing::default(), clock.now(), true);
            let snapshot = Snapshot::build(data, CatalogSource::None);
            Arc::new(Current { snapshot, fresh_until: clock.moment(), used: Mutex::default() })
        });
        Arc::new(Catalog {
            current: ArcSwapOption::new(nothing),
            state: Mutex::default(),
            is_closed: AtomicBool::new(false),
            upstream,
            store,
            catalog_thread,
            interval,
            lease,
            clock,
            runtime,
        })
    }

    /// The snapshot that serves these lists: what is there, or what the first reader waits for.
    pub(super) async fn serving(self: &Arc<Self>, timeframe: Timeframe, selection: &Selection) -> Result<Arc<Current>> {
        loop {
            self.check_open()?;
            let Some(current) = self.current.load_full() else {
                self.first().await?;
                continue;
            };
            if self.upstream.is_reachable() && self.clock.moment() >= current.fresh_until {
                self.renew();
            }
            let missing = current.snapshot.missing(timeframe, selection);
            if missing.is_empty() {
                current.note_use(timeframe, selection);
                return Ok(current);
            }
            // A word that nobody knows is refused before anything is paid for.
            current.snapshot.filter(selection)?;
            if let Err(error) = self.fetch_views(missing).await {
                let still_missing = current.snapshot.missing(Timeframe::default(), selection);
                // Without its order a timeframe is answered in the default one; who runs on a network cannot be guessed.
                return if still_missing.is_empty() { Ok(current) } else { Err(error) };
            }
        }
    }

    /// Waits for the first catalog.
    async fn first(self: &Arc<Self>) -> Result<()> {
        let outcome = {
            let mut state = self.state.lock();
            match (&state.flight, &state.last_error) {
                (Some(flight), _) => flight.outcome(),
                (None, Some(error)) if state.backoff.holds(self.clock.moment()) => return Err(error.clone()),
                (None, _) => self.start(&mut state, Task::Load),
            }
        };
        flight::landed(outcome).await.map(drop)
    }

    /// Starts a refresh behind the readers, unless one is under way or the last failure was just now.
    fn renew(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.flight.is_none() && !state.backoff.holds(self.clock.moment()) {
            self.start(&mut state, Task::Load);
        }
    }

    /// Waits for lists that were never asked for.
    async fn fetch_views(self: &Arc<Self>, views: Vec<View>) -> Result<()> {
        let (outcome, is_ours) = {
            let mut state = self.state.lock();
            let now = self.clock.moment();
            let failed = views.iter().filter_map(|view| state.views.get(view));
            if let Some((_, error)) = failed.into_iter().find(|(backoff, _)| backoff.holds(now)) {
                return Err(error.clone());
            }
            match &state.flight {
                Some(flight) => (flight.outcome(), flight.fetches_all(&views)),
                None => (self.start(&mut state, Task::Views(views)), true),
            }
        };
        match flight::landed(outcome).await {
            // It was about something else: the caller looks again, and finds its lists or comes back for them.
            _ if !is_ours => self.check_open(),
            landing => landing.map(drop),
        }
    }

    /// Fetches now; joins a fetch that is under way.
    pub(super) async fn refresh(self: &Arc<Self>, force: bool) -> Result<()> {
        loop {
            self.check_open()?;
            if !self.upstream.is_reachable() {
                return Ok(());
            }
            let (outcome, is_mine) = {
                let mut state = self.state.lock();
                match &state.flight {
                    Some(flight) => {
                        flight.urge(force);
                        (flight.outcome(), false)
                    }
                    None => (self.start(&mut state, Task::Refresh { force }), true),
                }
            };
            match flight::landed(outcome).await {
                Ok(landing) if landing.fetched || is_mine => return Ok(()),
                // It was decided before this call could say what it wants.
                Err(_) if force && !is_mine => {}
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn stats(&self) -> Result<DiscoveryStats> {
        self.check_open()?;
        let current = self.current.load();
        let state = self.state.lock();
        let last_error = state.last_error.as_ref().or_else(|| state.views.values().map(|(_, error)| error).next());
        let mut stats = DiscoveryStats {
            total: 0,
            received: 0,
            skipped: 0,
            duplicates: 0,
            has_api_key: self.upstream.is_remote(),
            source: CatalogSource::None,
            fetched_at: None,
            is_stale: last_error.is_some(),
            is_refreshing: state.flight.is_some(),
            last_error: last_error.map(|error| error.message().to_owned()),
        };
        if let Some(current) = &*current
            && self.upstream.is_reachable()
        {
            let header = &current.snapshot.data().header;
            stats.total = current.snapshot.len();
            stats.received = header.received;
            stats.skipped = header.skipped;
            stats.duplicates = header.duplicates;
            stats.source = current.snapshot.source();
            stats.fetched_at = Some(header.fetched_at);
            stats.is_stale |= self.clock.moment() >= current.fresh_until;
        }
        Ok(stats)
    }

    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        // A flight under way ends with the runtime, and with it the wait of everybody who hoped for it.
        self.state.lock().flight = None;
        self.current.store(None);
        self.catalog_thread.close();
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }

    /// Puts a flight under way.
    fn start(self: &Arc<Self>, state: &mut State, task: Task) -> watch::Receiver<flight::Outcome> {
        let (flight, pilot) = Flight::new(task);
        let outcome = flight.outcome();
        state.flight = Some(flight);
        self.runtime.spawn(pilot.fly(Arc::clone(self)));
        outcome
    }
}

impl Current {
    fn note_use(&self, timeframe: Timeframe, selection: &Selection) {
        // The common read uses no list but the default order, and takes no lock.
        let header = &self.snapshot.data().header;
        if header.has_one_order || (timeframe == Timeframe::default() && selection.networks.is_empty()) {
            return;
        }
        let order = (timeframe != Timeframe::default()).then_some(View::Order(timeframe));
        let networks = selection.networks.iter().filter_map(|name| known_network(name.trim()));
        let networks = networks.filter(|name| header.members.contains_key(*name));
        let views = order.into_iter().chain(networks.map(|name| View::Network(name.into())));
        let mut used = self.used.lock();
        for view in views {
            if !used.contains(&view) {
                used.push(view);
            }
        }
    }
}
