//! What the handles of a client share: the subscriptions, the log reader, which reads after each commit, and the retention.
//!
//! Invariant: the subscriptions are in two *lanes*. One thread at a time is the log reader of a lane, on the callback pool. It
//! reads the log and judges the entries for the subscriptions without a lock. The subscriptions with costly filters have a lane
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
    caller::{HandleCaller, SessionCaller},
    deletions::Deletions,
    dispatcher::CallbackDispatcher,
    log_reader::ChangeLogReader,
    pruning::{self, PruningNeeds},
    registry::Registry,
    request::Capture,
    subscription_state::{Consumer, SubscriptionCaller, SubscriptionState, WokenConsumer},
    view::View,
};
use crate::{
    clock::Clock,
    database::{
        CurrentPrincipal, Database,
        change_log::{
            CommitWatch, CurrentRow, CursorKey, EntryKind, LogPoint, RetentionLimits, TableSet, capture_is_off,
            session_of,
        },
    },
    error::{Error, ErrorKind, Result},
    model::RealtimeStats,
    policy::{RowImage, Table},
    threads::{BlockingPool, RuntimeHandle, wait},
};

/// How long after a failure the log is read again.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(100);

/// How often the access tokens of subscriptions are checked. A change of a row checks them, too.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long the watch for commits outlives the last subscription: a program that subscribes again soon finds it running.
const WATCH_IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// How many streams that have fallen behind read a page of the log at a time, in the lane of cheap filters and in the lane of costly
/// ones. The others wait in line: a thousand requests that continue from an old cursor take no more threads than these.
const READERS: [usize; 2] = [2, 1];

/// Subscriptions that one log reader serves. A lane without subscriptions does not read the log.
pub(super) struct Lane {
    pub(super) registry: Mutex<Registry>,
    /// The turns of the streams that read a page.
    pub(super) readers: Arc<sync::Semaphore>,
    reader: ChangeLogReader,
    /// Whether the registry has a head.
    is_active: AtomicBool,
}

impl Lane {
    fn new(pause: Duration, readers: usize) -> Lane {
        Lane {
            registry: Mutex::default(),
            readers: Arc::new(sync::Semaphore::new(readers)),
            reader: ChangeLogReader::new(pause),
            is_active: AtomicBool::new(false),
        }
    }

    pub(super) fn set_head(&self, registry: &mut Registry, head: Option<LogPoint>) {
        registry.head = head;
        self.is_active.store(head.is_some(), Ordering::Release);
    }
}

/// The change feed of a client.
pub(crate) struct RealtimeCore {
    pub(super) this: Weak<RealtimeCore>,
    pub(super) database: Database,
    pub(super) runtime: RuntimeHandle,
    pub(super) callbacks: BlockingPool,
    pub(super) clock: Clock,
    pub(super) dispatcher: CallbackDispatcher,
    pub(super) lanes: [Lane; 2],
    watch: Mutex<Option<CommitWatch>>,
    /// Held while the watch starts or stops.
    starting: sync::Mutex<()>,
    /// Whether a task is about to stop the watch.
    is_lingering: AtomicBool,
    /// Whether a task ends the subscriptions with access tokens that expire.
    watches_expiry: AtomicBool,
    /// Known once capture is on.
    pub(super) cursors: ArcSwapOption<CursorKey>,
    /// Of each table, for replays.
    pub(super) deletions: [sync::Mutex<Deletions>; Table::ALL.len()],
    is_closed: AtomicBool,
    /// The process that opened the client.
    process: u32,
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
            lanes: READERS.map(|readers| Lane::new(database.pause_between_reads(), readers)),
            database,
            runtime,
            dispatcher: CallbackDispatcher::new(callbacks.clone()),
            callbacks,
            clock,
            watch: Mutex::default(),
            starting: sync::Mutex::default(),
            is_lingering: AtomicBool::new(false),
            watches_expiry: AtomicBool::new(false),
            cursors: ArcSwapOption::empty(),
            deletions: std::array::from_fn(|_| sync::Mutex::default()),
            is_closed: AtomicBool::new(false),
            process: std::process::id(),
        });
        let this = Weak::clone(&core.this);
        let needs = move || {
            this.upgrade().map(|core| PruningNeeds {
                database: core.database.clone(),
                knows_capture: core.cursors.load().is_some(),
                after: core.lanes.iter().filter_map(|lane| lane.registry.lock().needed_after()).min(),
            })
        };
        core.runtime.spawn(pruning::run(limits, needs));
        core
    }

    /// # Errors
    /// `Closed` for a closed client or handle, and in a forked child.
    pub(super) fn check_open(&self, principal: &CurrentPrincipal) -> Result<()> {
        if self.is_inherited() {
            return Err(Error::inherited());
        }
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        principal.check_open()
    }

    /// The lane of the subscriptions with a view.
    pub(super) fn lane(&self, view: &View) -> &Lane {
        &self.lanes[usize::from(view.filter.is_costly())]
    }

    /// Adds a stream.
    pub(super) async fn stream(
        &self,
        principal: &CurrentPrincipal,
        view: View,
        since: Option<&str>,
        capture: Capture,
    ) -> Result<Arc<SubscriptionState>> {
        let subscription = self.new_subscription(principal, view, since, capture).await?;
        self.register(&subscription).await?;
        subscription.set_consumer(Consumer::Stream(None));
        Ok(subscription)
    }

    /// Reads the rows of a view as the caller sees them now, and adds a stream of the changes after them.
    pub(super) async fn live(
        &self,
        principal: &CurrentPrincipal,
        view: View,
    ) -> Result<(Vec<RowImage>, Arc<SubscriptionState>)> {
        self.check_open(principal)?;
        let caller = SessionCaller::of(&principal.principal());
        self.capture(Capture::SwitchOn).await?;
        self.ensure_watch(self.lane(&view)).await?;
        let shown = view.clone();
        let shows = move |row: &CurrentRow| shown.shows_current(caller.caller, row);
        let (mut rows, position) = self.database.rows_and_position(view.table, view.filter.equality(), shows).await?;
        self.require_session(principal, caller).await?;
        rows.iter_mut().for_each(|row| view.table.hide_columns(caller.caller, row));
        let subscription = Arc::new(SubscriptionState::new(
            view,
            SubscriptionCaller::Fixed(caller, principal.clone()),
            position,
            None,
        ));
        self.register(&subscription).await?;
        subscription.set_consumer(Consumer::Stream(None));
        Ok((rows, subscription))
    }

    pub(super) async fn new_subscription(
        &self,
        principal: &CurrentPrincipal,
        view: View,
        since: Option<&str>,
        capture: Capture,
    ) -> Result<Arc<SubscriptionState>> {
        self.check_open(principal)?;
        let cursors = self.capture(capture).await?;
        let lane = self.lane(&view);
        self.ensure_watch(lane).await?;
        let head = self.database.head().await?;
        let began_at = head.after;
        let (position, replays_to) = match since {
            Some(cursor) => (self.database.position_of(cursor, &cursors).await?, Some(head)),
            None => (head, None),
        };
        let followed = (!principal.has_fixed_caller()).then(|| {
            let known = lane.registry.lock().handle_caller(principal);
            known.unwrap_or_else(|| Arc::new(HandleCaller::new(principal.clone())))
        });
        // After the head is known: a session that ends later has its entry after the head.
        let began_as = SessionCaller::of(&principal.principal());
        self.require_session(principal, began_as).await?;
        let caller = match followed {
            Some(handle) => SubscriptionCaller::Handle { handle, began_at, began_as: began_as.caller },
            None => SubscriptionCaller::Fixed(began_as, principal.clone()),
        };
        Ok(Arc::new(SubscriptionState::new(view, caller, position, replays_to)))
    }

    /// # Errors
    /// `Unauthorized` if the handle may no longer act for the caller's session.
    async fn require_session(&self, handle: &CurrentPrincipal, caller: SessionCaller) -> Result<()> {
        match caller.session_id {
            Some(session_id) => self.database.check_session(handle, session_id).await,
            None => Ok(()),
        }
    }

    /// Ends a subscription if its handle may no longer act for its session. Returns true if the subscription continues.
    ///
    /// # Errors
    /// Those of the database, but not `Unauthorized`.
    pub(super) async fn keeps_session(
        &self,
        subscription: &Arc<SubscriptionState>,
        wakes: &mut Vec<WokenConsumer>,
    ) -> Result<bool> {
        let Some(session_id) = subscription.fixed_session() else { return Ok(true) };
        match self.database.check_session(subscription.principal(), session_id).await {
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                wakes.extend(subscription.end_after_batch(Some(error)));
                Ok(false)
            }
            checked => checked.map(|()| true),
        }
    }

    /// Adds a subscription to the registry. From here on it misses nothing.
    pub(super) async fn register(&self, subscription: &Arc<SubscriptionState>) -> Result<()> {
        let lane = self.lane(&subscription.view);
        loop {
            self.ensure_watch(lane).await?;
            let mut registry = lane.registry.lock();
            if self.is_closed.load(Ordering::Acquire) {
                drop(registry);
                subscription.close();
                return Err(Error::closed());
            }
            // The watch can have been stopped meanwhile.
            let Some(head) = registry.head else { continue };
            registry.add(subscription, head.after);
            if registry.has_sessions() && !self.watches_expiry.swap(true, Ordering::AcqRel) {
                self.runtime.spawn(end_expired_subscriptions(Weak::clone(&self.this)));
            }
            break;
        }
        // A handle that was closed meanwhile has ended its subscriptions before this one was added.
        if subscription.principal().is_closed() {
            subscription.close();
            self.unregister(subscription);
        }
        Ok(())
    }

    /// Removes a subscription.
    pub(super) fn unregister(&self, subscription: &Arc<SubscriptionState>) {
        subscription.detach();
        let mut registry = self.lane(&subscription.view).registry.lock();
        let is_last = registry.remove(subscription) && registry.len() == 0;
        drop(registry);
        if is_last && !self.is_closed.load(Ordering::Acquire) && !self.is_lingering.swap(true, Ordering::AcqRel) {
            self.runtime.spawn(stop_unused_watch(Weak::clone(&self.this)));
        }
    }

    /// Starts to watch for commits, if nobody does, and to read the log for a lane.
    async fn ensure_watch(&self, lane: &Lane) -> Result<()> {
        if lane.is_active.load(Ordering::Acquire) {
            return Ok(());
        }
        let _starting = self.starting.lock().await;
        if lane.is_active.load(Ordering::Acquire) {
            return Ok(());
        }
        let is_watched = self.watch.lock().is_some();
        let watch = if is_watched {
            None
        } else {
            let this = Weak::clone(&self.this);
            let on_commit = move || {
                if let Some(core) = this.upgrade() {
                    core.signal();
                }
            };
            Some(self.database.watch_commits(Arc::new(on_commit)).await?)
        };
        // After the watch has begun: a commit after this position is signalled.
        let head = self.database.head().await?;
        let mut registry = lane.registry.lock();
        if self.is_closed.load(Ordering::Acquire) {
            drop(registry);
            return Err(Error::closed());
        }
        if let Some(watch) = watch {
            *self.watch.lock() = Some(watch);
        }
        lane.set_head(&mut registry, Some(head.point()));
        Ok(())
    }

    /// Makes a thread read the log for each lane.
    fn signal(&self) {
        for (index, lane) in self.lanes.iter().enumerate() {
            if lane.is_active.load(Ordering::Acquire) {
                self.signal_lane(index);
            }
        }
    }

    fn signal_lane(&self, index: usize) {
        let lane = &self.lanes[index];
        if !lane.reader.signal() {
            return;
        }
        let this = Weak::clone(&self.this);
        let read = move || {
            if let Some(core) = this.upgrade() {
                core.run_reader(index);
            }
        };
        if let Err(error) = self.callbacks.submit(read) {
            lane.reader.stop();
            if error.kind() != ErrorKind::Closed {
                tracing::error!(%error, "the change feed has no thread");
                self.signal_later(index);
            }
        }
    }

    /// Makes a thread read the log for a lane after a while.
    fn signal_later(&self, index: usize) {
        let this = Weak::clone(&self.this);
        self.runtime.spawn(async move {
            tokio::time::sleep(RETRY_AFTER).await;
            if let Some(core) = this.upgrade() {
                core.signal_lane(index);
            }
        });
    }

    /// Reads the log until nothing is new, then runs callbacks.
    fn run_reader(&self, index: usize) {
        let lane = &self.lanes[index];
        loop {
            lane.reader.begin();
            let mut wakes = Vec::new();
            let read = self.read_page(lane, &mut wakes);
            // Also if the page could not be delivered: these subscriptions are not woken again.
            self.dispatcher.add(wakes);
            match read {
                Ok(true) if lane.reader.finish() => break,
                Ok(_) => self.dispatcher.run_on_pool(),
                Err(error) => {
                    lane.reader.stop();
                    if error.kind() != ErrorKind::Closed {
                        tracing::warn!(%error, "the change log could not be read; the change feed tries again");
                        self.signal_later(index);
                    }
                    break;
                }
            }
        }
        // The last page's callbacks run on this thread: that saves a change of threads. Another one reads the log meanwhile.
        self.dispatcher.run();
    }

    /// Reads one page and gives it to the subscriptions. Returns true if nothing comes after it. Appends whom to wake to `wakes`,
    /// also if it fails.
    fn read_page(&self, lane: &Lane, wakes: &mut Vec<WokenConsumer>) -> Result<bool> {
        let (head, tables) = {
            let registry = lane.registry.lock();
            let Some(head) = registry.head else { return Ok(true) };
            (head, registry.tables())
        };
        let cursors = wait(self.cursors())?;
        let page = match wait(self.database.read_changes(head, tables)) {
            Err(error) if error.kind() == ErrorKind::CursorExpired => {
                // Another process has pruned entries that the subscriptions have not read. Or another server with another history
                // has taken over; it may have another incarnation, or capture off.
                tracing::warn!(%error, "the change feed ends its subscriptions");
                let (is_on, cursors) = wait(self.database.capture_state())?;
                self.cursors.store(Some(Arc::new(cursors)));
                if is_on {
                    let head = wait(self.database.head())?.point();
                    self.end_all(lane, &error, Some(head));
                } else {
                    self.end_all(lane, &capture_is_off(), None);
                }
                return Ok(false);
            }
            page => page?,
        };
        if page.end == head {
            return Ok(true);
        }
        let head = head.after;
        // After the page was read: its entries were committed before a later change of a caller.
        let changed = lane.registry.lock().changed_handles();
        for handle in &changed {
            handle.follow(head, |session_id| wait(self.database.session_entries(session_id, head)))?;
        }
        // Before the page is delivered: changes after a rotation of tokens are only for handles with the new tokens.
        let rotated = page.entries.iter().filter(|entry| entry.kind == EntryKind::SessionRotated);
        let subscriptions = lane.registry.lock().subscriptions_of_sessions(rotated.filter_map(session_of));
        for subscription in subscriptions {
            wait(self.keeps_session(&subscription, wakes))?;
        }
        let mut registry = lane.registry.lock();
        if registry.head.is_none_or(|now| now.after != head) || !tables.contains_all(registry.tables()) {
            // The lane was idle meanwhile and begins elsewhere, or a subscription of another table has joined, and the page can
            // lack rows for it.
            return Ok(false);
        }
        registry.end_expired(self.clock.now(), wakes);
        changed.iter().for_each(|handle| registry.watch_sessions(handle));
        let dispatch = registry.begin_dispatch(&page);
        drop(registry);
        if let Some(dispatch) = dispatch {
            dispatch.run(&page, &cursors, &lane.registry, wakes);
            lane.registry.lock().end_dispatch();
        }
        if page.is_last {
            lane.reader.has_read(page.count);
        }
        Ok(page.is_last)
    }

    /// Wakes tasks, and runs callbacks on the pool.
    pub(super) fn deliver(&self, wakes: Vec<WokenConsumer>) {
        if !wakes.is_empty() {
            self.dispatcher.add(wakes);
            self.dispatcher.run_on_pool();
        }
    }

    /// True in a forked child of the process that opened the client.
    pub(super) fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }

    pub(super) async fn stats(&self) -> Result<RealtimeStats> {
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

    /// Ends the subscriptions of one handle.
    pub(crate) fn close_handle(&self, principal: &CurrentPrincipal) {
        self.close_subscriptions(Some(principal));
    }

    /// Ends every subscription, and the watch for commits.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.close_subscriptions(None);
        for lane in &self.lanes {
            lane.set_head(&mut lane.registry.lock(), None);
        }
        let watch = self.watch.lock().take();
        drop(watch);
    }

    fn close_subscriptions(&self, of_handle: Option<&CurrentPrincipal>) {
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
            self.close();
        }
    }
}

/// Ends subscriptions when their access tokens expire, as long as there are subscriptions with sessions.
async fn end_expired_subscriptions(core: Weak<RealtimeCore>) {
    loop {
        tokio::time::sleep(EXPIRY_INTERVAL).await;
        let Some(core) = core.upgrade() else { return };
        let mut wakes = Vec::new();
        let mut registries = core.lanes.each_ref().map(|lane| lane.registry.lock());
        registries.iter_mut().for_each(|registry| registry.end_expired(core.clock.now(), &mut wakes));
        let is_needed = registries.iter().any(|registry| registry.has_sessions());
        if !is_needed {
            // Under the registries' locks: a subscription that is added later starts another task.
            core.watches_expiry.store(false, Ordering::Release);
        }
        drop(registries);
        core.deliver(wakes);
        if !is_needed {
            return;
        }
    }
}

/// After [`WATCH_IDLE_TIMEOUT`], stops reading the log for lanes without subscriptions. If no lane has subscriptions, also stops
/// the watch for commits.
async fn stop_unused_watch(core: Weak<RealtimeCore>) {
    tokio::time::sleep(WATCH_IDLE_TIMEOUT).await;
    let Some(core) = core.upgrade() else { return };
    core.is_lingering.store(false, Ordering::Release);
    let _starting = core.starting.lock().await;
    let mut is_used = false;
    for lane in &core.lanes {
        let mut registry = lane.registry.lock();
        if registry.len() == 0 {
            lane.set_head(&mut registry, None);
        } else {
            is_used = true;
        }
    }
    if !is_used {
        let watch = core.watch.lock().take();
        // The end of a watch may wait for a thread.
        if let Err(error) = core.runtime.blocking.submit(move || drop(watch)) {
            tracing::debug!(%error, "the watch for commits was stopped on the calling thread");
        }
    }
}
