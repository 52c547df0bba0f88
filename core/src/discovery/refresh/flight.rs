//! One refresh from take-off to landing.
//!
//! Invariant: however a flight ends (catalog taken, failure, panic, shutdown), its slot is freed and everybody who
//! waits for it wakes up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{Backoff, Catalog, Current};
use crate::{
    catalog::{CatalogData, CatalogSource, Listing, Snapshot, Timeframe, View},
    clock::Moment,
    discovery::store::Found,
    error::{Error, ErrorKind, Result},
};

/// What a flight is for.
pub(super) enum Task {
    /// A fresh catalog, from the database when another process has just put one there.
    Load,
    /// A fresh catalog from the source itself.
    Refresh { force: bool },
    /// Lists that were asked for the first time.
    Views(Vec<View>),
}

/// A flight that ended with a catalog.
#[derive(Clone)]
pub(super) struct Landing {
    /// Whether it was fetched from its source (and not found in the database).
    pub(super) fetched: bool,
    /// Why it is only the last one that the database had.
    fallen_back: Option<Error>,
}

/// `None` until the flight has landed.
pub(super) type Outcome = Option<Result<Landing>>;

/// A flight as those see it who wait for it.
pub(super) struct Flight {
    outcome: watch::Receiver<Outcome>,
    wishes: Arc<Wishes>,
    views: Vec<View>,
}

/// What callers who joined want besides.
#[derive(Default)]
struct Wishes {
    from_source: AtomicBool,
    force: AtomicBool,
}

/// The one who flies it.
pub(super) struct Pilot {
    task: Task,
    wishes: Arc<Wishes>,
    outcome: watch::Sender<Outcome>,
}

impl Flight {
    pub(super) fn new(task: Task) -> (Flight, Pilot) {
        let (sender, receiver) = watch::channel(None);
        let wishes = Arc::new(Wishes::default());
        let mut views = Vec::new();
        match &task {
            Task::Load => {}
            Task::Refresh { force } => wishes.urge(*force),
            Task::Views(wanted) => views.clone_from(wanted),
        }
        let pilot = Pilot { task, wishes: Arc::clone(&wishes), outcome: sender };
        (Flight { outcome: receiver, wishes, views }, pilot)
    }

    pub(super) fn outcome(&self) -> watch::Receiver<Outcome> {
        self.outcome.clone()
    }

    /// Asks for a catalog from the source, and to take even a collapsed one.
    pub(super) fn urge(&self, force: bool) {
        self.wishes.urge(force);
    }

    /// Whether it was started to fetch all of these lists.
    pub(super) fn fetches_all(&self, views: &[View]) -> bool {
        views.iter().all(|view| self.views.contains(view))
    }
}

impl Wishes {
    fn urge(&self, force: bool) {
        self.from_source.store(true, Ordering::Release);
        self.force.fetch_or(force, Ordering::AcqRel);
    }
}

/// Waits for a flight.
///
/// # Errors
/// Its failure; `Closed` when it was called off.
pub(super) async fn landed(mut outcome: watch::Receiver<Outcome>) -> Result<Landing> {
    match outcome.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().unwrap_or_else(|| Err(Error::closed())),
        Err(_) => Err(Error::closed()),
    }
}

impl Pilot {
    pub(super) async fn fly(self, catalog: Arc<Catalog>) {
        let (flown, wishes, views) = (Arc::clone(&catalog), Arc::clone(&self.wishes), self.views());
        // In a task of its own, whose panic is a result here.
        let work = tokio::spawn(async move {
            match views {
                None => flown.renewed(&wishes).await,
                Some(views) => flown.with_views(&views).await,
            }
        });
        let result = work.await.unwrap_or_else(|error| Err(unfinished(error)));
        catalog.land(&self.task, &result);
        // After the slot is free: who wakes up now may start the next flight.
        self.outcome.send_replace(Some(result));
    }
}

impl Pilot {
    fn views(&self) -> Option<Vec<View>> {
        match &self.task {
            Task::Views(views) => Some(views.clone()),
            Task::Load | Task::Refresh { .. } => None,
        }
    }
}

impl Catalog {
    /// Frees the slot and remembers how it went.
    fn land(&self, task: &Task, result: &Result<Landing>) {
        let now = self.clock.moment();
        let mut state = self.state.lock();
        state.flight = None;
        match (task, result) {
            (Task::Views(views), Ok(_)) => views.iter().for_each(|view| drop(state.views.remove(view))),
            (Task::Views(views), Err(error)) => {
                for view in views {
                    let mut backoff = state.views.get(view).map(|(backoff, _)| *backoff).unwrap_or_default();
                    backoff.fail(now, error);
                    state.views.insert(view.clone(), (backoff, error.clone()));
                }
            }
            (_, Ok(Landing { fallen_back: None, .. })) => {
                state.last_error = None;
                state.backoff = Backoff::default();
                state.views.clear();
            }
            (_, Err(error) | Ok(Landing { fallen_back: Some(error), .. })) => {
                tracing::warn!(%error, "the catalog could not be refreshed");
                state.backoff.fail(now, error);
                state.last_error = Some(error.clone());
            }
        }
    }

    /// A catalog that is fresh again, or at least the last one that the database has.
    async fn renewed(&self, wishes: &Wishes) -> Result<Landing> {
        let error = match self.fresh(wishes).await {
            Ok(landing) => return Ok(landing),
            Err(error) => error,
        };
        if self.current.load().is_none() {
            match self.store.load().await {
                Ok(Some(data)) => {
                    self.install(data, CatalogSource::Database, self.clock.moment()).await?;
                    // Readers have something to answer from now; only who asked for a fetch is told that it failed.
                    if !wishes.from_source.load(Ordering::Acquire) {
                        return Ok(Landing { fetched: false, fallen_back: Some(error) });
                    }
                }
                Ok(None) => {}
                Err(other) => tracing::warn!(error = %other, "the catalog kept in the database cannot be read"),
            }
        }
        Err(error)
    }

    async fn fresh(&self, wishes: &Wishes) -> Result<Landing> {
        if !self.upstream.is_remote() {
            return self.fetched(wishes).await;
        }
        let mut has_lease = false;
        while !wishes.from_source.load(Ordering::Acquire) {
            if let Some(data) = self.shared().await {
                let fresh_until = self.clock.moment().after(self.remaining(data.header.fetched_at));
                self.install(data, CatalogSource::Database, fresh_until).await?;
                return Ok(Landing { fetched: false, fallen_back: None });
            }
            // Without a database that can be written, every process is on its own.
            has_lease = self.store.take_lease(self.lease).await.unwrap_or(true);
            if has_lease {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let result = self.fetched(wishes).await;
        if has_lease && let Err(error) = self.store.end_lease().await {
            tracing::warn!(%error, "the lease on the catalog could not be given back");
        }
        result
    }

    /// The data that another process has fetched within the interval, if it is newer than ours.
    async fn shared(&self) -> Option<CatalogData> {
        let found = self.store.find().await.ok()??;
        let ours = self.current.load().as_ref().map(|current| current.snapshot.data().header.fetched_at);
        let is_newer = ours.is_none_or(|ours| found.fetched_at > ours);
        (is_newer && self.remaining(found.fetched_at) > Duration::ZERO).then_some(())?;
        self.store.load().await.ok()?
    }

    /// How long a catalog fetched then stays fresh. One from the future was written by a clock that was wrong.
    fn remaining(&self, fetched_at: Timestamp) -> Duration {
        let age = self.clock.now().duration_since(fetched_at);
        Duration::try_from(age).map_or(Duration::ZERO, |age| self.interval.saturating_sub(age))
    }

    /// Fetches the default order and every list that was used, takes them and keeps them in the database.
    async fn fetched(&self, wishes: &Wishes) -> Result<Landing> {
        let (started, fetched_at) = (self.clock.moment(), self.clock.now());
        let listing = self.fetch(&View::Order(Timeframe::default())).await?;
        let before = match self.current.load().as_ref() {
            Some(current) => current.snapshot.data().header.ranked,
            None => self.store.find().await.ok().flatten().as_ref().map_or(0, Found::ranked),
        };
        let after = listing.records.len();
        let force = wishes.force.load(Ordering::Acquire);
        if !force {
            refuse_collapse("catalog", before, after)?;
        }
        let mut data = CatalogData::new(listing, fetched_at, !self.upstream.is_remote());
        let lists = self.lists(self.views_in_use(&data)).await?;
        if !force {
            self.refuse_collapsed(&lists, after)?;
        }
        data.add(lists);
        let fresh_until = started.after(self.interval);
        let current = self.install(data, self.upstream.source(), fresh_until).await?;
        self.keep(current.snapshot.data()).await;
        Ok(Landing { fetched: true, fallen_back: None })
    }

    /// Fetches a list; what is in it as it was, is shared with the catalog in use.
    async fn fetch(&self, view: &View) -> Result<Listing> {
        let current = self.current.load_full();
        let empty =
            move || current.map_or_else(Listing::default, |current| Listing::after(&current.snapshot.data().records));
        let listing = self.catalog_thread.run(empty).await?;
        self.upstream.fetch(view, listing, &self.catalog_thread).await
    }

    /// The lists that were asked for since the last refresh.
    fn views_in_use(&self, next: &CatalogData) -> Vec<View> {
        let mut views = self.current.load().as_ref().map(|current| current.used.lock().clone()).unwrap_or_default();
        // Once rows name their networks themselves, nobody needs to ask for them.
        views.retain(|view| !(next.header.has_chains && matches!(view, View::Network(_))));
        views
    }

    async fn lists(&self, views: Vec<View>) -> Result<Vec<(View, Listing)>> {
        let mut lists = Vec::with_capacity(views.len());
        for view in views {
            let listing = self.fetch(&view).await?;
            lists.push((view, listing));
        }
        Ok(lists)
    }

    /// Every order has the same apps; a network's have at least not all gone at once.
    fn refuse_collapsed(&self, lists: &[(View, Listing)], ranked: usize) -> Result<()> {
        let current = self.current.load();
        for (view, listing) in lists {
            let after = listing.records.len();
            match view {
                View::Order(timeframe) => refuse_collapse(&format!("{timeframe} order"), ranked, after)?,
                View::Network(network) => {
                    let members = current.as_ref().map(|current| &current.snapshot.data().header.members);
                    let before = members.and_then(|members| members.get(network)).map_or(0, Vec::len);
                    refuse_collapse(&format!("list of {network}"), before, after)?;
                }
            }
        }
        Ok(())
    }

    /// The catalog in use with lists that it did not have.
    async fn with_views(&self, views: &[View]) -> Result<Landing> {
        let Some(current) = self.current.load_full() else { return Err(Error::closed()) };
        let have = current.snapshot.data().views();
        let missing = views.iter().filter(|view| !have.contains(view)).cloned().collect();
        let mut data = current.snapshot.data().clone();
        let lists = self.lists(missing).await?;
        self.refuse_collapsed(&lists, data.header.ranked)?;
        data.add(lists);
        let source = current.snapshot.source();
        let next = self.install(data, source, current.fresh_until).await?;
        next.used.lock().clone_from(&current.used.lock());
        self.keep(next.snapshot.data()).await;
        Ok(Landing { fetched: true, fallen_back: None })
    }

    /// Makes an data the one in use.
    async fn install(&self, data: CatalogData, source: CatalogSource, fresh_until: Moment) -> Result<Arc<Current>> {
        let snapshot = self.catalog_thread.run(move || Snapshot::build(data, source)).await?;
        let current = Arc::new(Current { snapshot, fresh_until, used: Mutex::default() });
        self.check_open()?;
        self.current.store(Some(Arc::clone(&current)));
        Ok(current)
    }

    async fn keep(&self, data: &CatalogData) {
        // The catalog in memory is good; that it could not be kept is for the log, not for the reader.
        if let Err(error) = self.store.save(data).await {
            tracing::warn!(%error, "the catalog could not be kept in the database");
        }
    }
}

fn unfinished(error: tokio::task::JoinError) -> Error {
    if error.is_cancelled() {
        Error::closed()
    } else {
        Error::new(ErrorKind::Internal, "The refresh of the catalog panicked").caused_by(error)
    }
}

fn refuse_collapse(what: &str, before: usize, after: usize) -> Result<()> {
    if !has_collapsed(before, after) {
        return Ok(());
    }
    Err(Error::unavailable(format!(
        "The {what} fell from {before} to {after} apps; the old one is kept, a forced refresh takes the new one"
    )))
}

/// Whether a catalog has lost so much at once that it is rather an accident upstream than the truth.
fn has_collapsed(before: usize, after: usize) -> bool {
    const WORTH_GUARDING: usize = 50;
    (before > 0 && after == 0) || (before >= WORTH_GUARDING && after * 2 < before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fall_under_half_of_fifty_or_to_nothing_is_a_collapse() {
        assert!(has_collapsed(691, 99) && has_collapsed(50, 24) && has_collapsed(3, 0));
        assert!(!has_collapsed(50, 25) && !has_collapsed(49, 1) && !has_collapsed(0, 0));
    }
}
