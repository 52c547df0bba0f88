//! What the handles of a client share: the feeds, the pump that reads the log after each commit, and the retention.
//!
//! Invariant: one thread at a time pumps, on the callback pool. It reads the log without a lock and gives the entries to the
//! feeds under the registry's. The watch for commits exists only while there are feeds.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync, task::JoinHandle};

use super::{
    caller::{FeedCaller, HandleCaller},
    delivery::Delivery,
    feed::{Consumer, Feed, FeedIdentity, ReadAhead, Wake},
    pruning::{self, Needs},
    pump::Pump,
    registry::Registry,
    view::View,
};
use crate::{
    clock::Clock,
    database::{
        CurrentPrincipal, Database,
        change_log::{CommitWatch, CurrentRow, EntryKey, PAGE, Position, RetentionLimits},
        session_ended,
    },
    error::{Error, ErrorKind, Result},
    model::RealtimeStats,
    threads::{BlockingPool, RuntimeHandle, wait},
};

/// How long after a failure the log is read again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// How long the watch for commits outlives the last feed: a program that subscribes again soon finds it running.
const LINGER: Duration = Duration::from_secs(1);

/// The change feed of a client.
pub(crate) struct RealtimeCore {
    this: Weak<RealtimeCore>,
    pub(super) database: Database,
    runtime: RuntimeHandle,
    pub(super) callbacks: BlockingPool,
    pub(super) clock: Clock,
    delivery: Delivery,
    registry: Mutex<Registry>,
    watch: Mutex<Option<CommitWatch>>,
    /// Held while the watch starts or stops.
    starting: sync::Mutex<()>,
    /// Whether a task is about to stop the watch.
    is_lingering: AtomicBool,
    pump: Pump,
    /// Known once capture is on.
    incarnation: OnceLock<Arc<str>>,
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
            pump: Pump::new(database.pause_between_reads()),
            database,
            runtime,
            delivery: Delivery::new(callbacks.clone()),
            callbacks,
            clock,
            registry: Mutex::default(),
            watch: Mutex::default(),
            starting: sync::Mutex::default(),
            is_lingering: AtomicBool::new(false),
            incarnation: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            process: std::process::id(),
        });
        let this = Weak::clone(&core.this);
        let needs = move || {
            this.upgrade().map(|core| Needs {
                database: core.database.clone(),
                knows_capture: core.incarnation.get().is_some(),
                after: core.registry.lock().needed_after(),
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

    /// Switches capture on. Returns the incarnation id.
    pub(super) async fn capture(&self) -> Result<Arc<str>> {
        if let Some(incarnation) = self.incarnation.get() {
            return Ok(Arc::clone(incarnation));
        }
        let incarnation = self.database.start_capture().await?;
        Ok(Arc::clone(self.incarnation.get_or_init(|| incarnation)))
    }

    /// Adds a stream.
    pub(super) async fn stream(
        &self,
        principal: &CurrentPrincipal,
        view: View,
        since: Option<&str>,
    ) -> Result<Arc<Feed>> {
        let feed = self.new_feed(principal, view, since).await?;
        self.register(&feed).await?;
        feed.set_consumer(Consumer::Stream(None));
        Ok(feed)
    }

    /// Reads the rows of a view as the caller sees them now, and adds a stream of the changes after them.
    pub(super) async fn live(&self, principal: &CurrentPrincipal, view: View) -> Result<(Vec<CurrentRow>, Arc<Feed>)> {
        self.check_open(principal)?;
        let caller = FeedCaller::of(&principal.principal());
        self.capture().await?;
        self.ensure_watch().await?;
        let (mut rows, position) = self.database.rows_and_position(view.table, view.filter.equality()).await?;
        self.require_session(caller).await?;
        rows.retain(|row| view.shows(caller.caller, &row.image, row.context.as_ref()));
        let handle = Arc::new(HandleCaller::new(principal.clone()));
        let feed = Feed::new(view, FeedIdentity::Fixed(caller, handle), position);
        let feed = Arc::new(feed);
        self.register(&feed).await?;
        feed.set_consumer(Consumer::Stream(None));
        Ok((rows, feed))
    }

    pub(super) async fn new_feed(
        &self,
        principal: &CurrentPrincipal,
        view: View,
        since: Option<&str>,
    ) -> Result<Arc<Feed>> {
        self.check_open(principal)?;
        let incarnation = self.capture().await?;
        self.ensure_watch().await?;
        let head = self.database.head().await?;
        let began_at = head.after;
        let position = match since {
            Some(cursor) => self.database.position_of(cursor, &incarnation).await?,
            None => head,
        };
        let known = self.registry.lock().handle_caller(principal);
        let handle = known.unwrap_or_else(|| Arc::new(HandleCaller::new(principal.clone())));
        // After the head is known: a session that ends later has its entry after the head.
        let began_as = FeedCaller::of(&principal.principal());
        self.require_session(began_as).await?;
        let caller = FeedIdentity::Handle { handle, began_at, began_as: began_as.caller };
        Ok(Arc::new(Feed::new(view, caller, position)))
    }

    /// # Errors
    /// `Unauthorized` if the caller's session has ended.
    async fn require_session(&self, caller: FeedCaller) -> Result<()> {
        match caller.session_id {
            Some(session_id) if !self.database.has_session(session_id).await? => Err(session_ended()),
            _ => Ok(()),
        }
    }

    /// Adds a feed to the registry. From here on it misses nothing.
    pub(super) async fn register(&self, feed: &Arc<Feed>) -> Result<()> {
        loop {
            self.ensure_watch().await?;
            let mut registry = self.registry.lock();
            if self.is_closed.load(Ordering::Acquire) {
                drop(registry);
                feed.close();
                return Err(Error::closed());
            }
            // The watch can have been stopped meanwhile.
            let Some(head) = registry.head else { continue };
            registry.add(feed, head);
            break;
        }
        // A handle that was closed meanwhile has ended its feeds before this one was added.
        if feed.handle().principal().is_closed() {
            feed.close();
            self.unregister(feed);
        }
        Ok(())
    }

    /// Removes a feed.
    pub(super) fn unregister(&self, feed: &Arc<Feed>) {
        feed.detach();
        let mut registry = self.registry.lock();
        let is_last = registry.remove(feed) && registry.len() == 0;
        drop(registry);
        if is_last && !self.is_closed.load(Ordering::Acquire) && !self.is_lingering.swap(true, Ordering::AcqRel) {
            self.runtime.spawn(stop_unused_watch(Weak::clone(&self.this)));
        }
    }

    /// Starts to watch for commits, if nobody does.
    async fn ensure_watch(&self) -> Result<()> {
        if self.registry.lock().head.is_some() {
            return Ok(());
        }
        let _starting = self.starting.lock().await;
        if self.registry.lock().head.is_some() {
            return Ok(());
        }
        let this = Weak::clone(&self.this);
        let on_commit = move || {
            if let Some(core) = this.upgrade() {
                core.signal();
            }
        };
        let watch = self.database.watch_commits(Arc::new(on_commit)).await?;
        // After the watch has begun: a commit after this position is signalled.
        let head = self.database.head().await?;
        let mut registry = self.registry.lock();
        if self.is_closed.load(Ordering::Acquire) {
            drop(registry);
            return Err(Error::closed());
        }
        *self.watch.lock() = Some(watch);
        registry.head = Some(head.after);
        Ok(())
    }

    /// Makes a thread read the log.
    fn signal(&self) {
        if !self.pump.signal() {
            return;
        }
        let this = Weak::clone(&self.this);
        let pump = move || {
            if let Some(core) = this.upgrade() {
                core.run_pump();
            }
        };
        if let Err(error) = self.callbacks.submit(pump) {
            self.pump.stop();
            if error.kind() != ErrorKind::Closed {
                tracing::error!(%error, "the change feed has no thread");
                self.signal_later();
            }
        }
    }

    /// Makes a thread read the log after a while.
    fn signal_later(&self) {
        let this = Weak::clone(&self.this);
        self.runtime.spawn(async move {
            tokio::time::sleep(RETRY_AFTER).await;
            if let Some(core) = this.upgrade() {
                core.signal();
            }
        });
    }

    /// Reads the log until nothing is new, then runs callbacks.
    fn run_pump(&self) {
        loop {
            self.pump.begin();
            match self.pump_page() {
                Ok(true) if self.pump.finish() => break,
                Ok(_) => self.delivery.run_on_pool(),
                Err(error) => {
                    self.pump.stop();
                    if error.kind() != ErrorKind::Closed {
                        tracing::warn!(%error, "the change log could not be read; the feed tries again");
                        self.signal_later();
                    }
                    break;
                }
            }
        }
        // The last page's callbacks run on this thread: that saves a change of threads. Another one pumps meanwhile.
        self.delivery.run();
    }

    /// Reads one page and gives it to the feeds. Returns true if nothing comes after it.
    fn pump_page(&self) -> Result<bool> {
        let Some(head) = self.registry.lock().head else { return Ok(true) };
        let mut wakes = Vec::new();
        let page = match wait(self.database.read_changes(head, PAGE)) {
            Err(error) if error.kind() == ErrorKind::CursorExpired => {
                // Another process has pruned what the feeds had not yet got.
                let head = wait(self.database.head())?.after;
                let mut registry = self.registry.lock();
                registry.end_all(&error, &mut wakes);
                registry.head = registry.head.map(|_| head);
                drop(registry);
                self.delivery.add(wakes);
                return Ok(false);
            }
            page => page?,
        };
        if page.end == head {
            return Ok(true);
        }
        // After the page was read: its entries were committed before a later change of a caller.
        let changed = self.registry.lock().changed_handles();
        for handle in &changed {
            handle.follow(head, |session_id| wait(self.database.session_entries(session_id, head)))?;
        }
        let incarnation = self.incarnation.get().map_or("", |incarnation| &**incarnation);
        let mut registry = self.registry.lock();
        changed.iter().for_each(|handle| registry.watch_sessions(handle));
        registry.dispatch(&page, incarnation, &mut wakes);
        drop(registry);
        self.delivery.add(wakes);
        if page.is_last {
            self.pump.has_read(page.entries.len());
        }
        Ok(page.is_last)
    }

    /// Wakes tasks, and runs callbacks on the pool.
    pub(super) fn deliver(&self, wakes: Vec<Wake>) {
        if !wakes.is_empty() {
            self.delivery.add(wakes);
            self.delivery.run_on_pool();
        }
    }

    /// Reads a page for a feed that has fallen behind. Makes the feed live if the page reaches the pump.
    pub(super) async fn read_behind(&self, feed: &Arc<Feed>, position: Position) -> Result<()> {
        let Some(head) = self.registry.lock().head else { return Err(Error::closed()) };
        if position.after < head {
            let (page, head) = match feed.take_read_ahead(position.after) {
                Some(reading) => reading.join().await?,
                None => (self.database.read_changes_up_to(position.after, head).await?, head),
            };
            if !page.is_last && page.end < head {
                self.read_ahead(feed, page.end, head);
            }
            let incarnation = self.incarnation.get().map_or("", |incarnation| &**incarnation);
            feed.absorb(&page, incarnation, head);
        }
        let registry = self.registry.lock();
        if let Some(head) = registry.head {
            feed.go_live(head);
        }
        Ok(())
    }

    /// Starts to read the page after `after`, while the feed's consumer uses the page before. On SQLite a read waits for nobody,
    /// so it is no faster on another thread.
    fn read_ahead(&self, feed: &Feed, after: EntryKey, head: EntryKey) {
        if self.database.is_embedded() {
            return;
        }
        let this = Weak::clone(&self.this);
        let page = self.runtime.spawn(async move {
            let core = this.upgrade().ok_or_else(Error::closed)?;
            core.database.read_changes_up_to(after, head).await
        });
        feed.set_read_ahead(ReadAhead { after, head, page });
    }

    /// Reads a page for a stream that has fallen behind, on the client's runtime. Tries again after a failure.
    pub(super) fn spawn_read(&self, feed: &Arc<Feed>, position: Position) -> JoinHandle<()> {
        let (this, feed) = (Weak::clone(&self.this), Arc::clone(feed));
        self.runtime.spawn(async move {
            while let Some(core) = this.upgrade() {
                match core.read_behind(&feed, position.clone()).await {
                    Ok(()) => return,
                    Err(error) if error.kind() == ErrorKind::CursorExpired => {
                        feed.end_after_batch(Some(error));
                        return;
                    }
                    Err(error) if error.kind() == ErrorKind::Closed => return feed.close(),
                    Err(error) => {
                        tracing::warn!(%error, "the change log could not be read for a slow stream; it tries again");
                    }
                }
                drop(core);
                tokio::time::sleep(RETRY_AFTER).await;
            }
        })
    }

    /// True in a forked child of the process that opened the client.
    pub(super) fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }

    /// Lets a feed read the log again after a while, or ends it if the log no longer has what it needs.
    pub(super) fn retry_later(&self, feed: &Arc<Feed>, error: &Error) {
        match error.kind() {
            ErrorKind::CursorExpired => {
                let wake = feed.end_after_batch(Some(error.clone()));
                self.deliver(wake.into_iter().collect());
            }
            ErrorKind::Closed => {}
            _ => {
                tracing::warn!(%error, "the change log could not be read for a slow subscription; it tries again");
                let (this, feed) = (Weak::clone(&self.this), Arc::downgrade(feed));
                self.runtime.spawn(async move {
                    tokio::time::sleep(RETRY_AFTER).await;
                    if let (Some(core), Some(feed)) = (this.upgrade(), feed.upgrade()) {
                        core.deliver(feed.wake().into_iter().collect());
                    }
                });
            }
        }
    }

    pub(super) async fn stats(&self) -> Result<RealtimeStats> {
        let log = self.database.log_stats().await?;
        let (subscriptions, head) = {
            let registry = self.registry.lock();
            (registry.len(), registry.head)
        };
        let mut lag = log.lag;
        if let Some(head) = head {
            let unread = self.database.read_changes(head, 1).await?;
            if let Some(entry) = unread.entries.first() {
                lag = lag.max(self.clock.now().duration_since(entry.at).try_into().unwrap_or_default());
            }
        }
        Ok(RealtimeStats {
            subscriptions: subscriptions as u64,
            retained: log.retained,
            oldest: log.oldest,
            lag_seconds: lag.as_secs_f64(),
        })
    }

    /// Ends the feeds of one handle.
    pub(crate) fn close_handle(&self, principal: &CurrentPrincipal) {
        self.close_feeds(Some(principal));
    }

    /// Ends every feed, and the watch for commits.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.close_feeds(None);
        self.registry.lock().head = None;
        let watch = self.watch.lock().take();
        drop(watch);
    }

    fn close_feeds(&self, of_handle: Option<&CurrentPrincipal>) {
        // Closing runs code of the program, under no lock.
        let feeds = self.registry.lock().feeds(of_handle);
        for feed in feeds {
            feed.close();
            self.unregister(&feed);
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

/// Stops the watch for commits if there is no feed any more after [`LINGER`].
async fn stop_unused_watch(core: Weak<RealtimeCore>) {
    tokio::time::sleep(LINGER).await;
    let Some(core) = core.upgrade() else { return };
    core.is_lingering.store(false, Ordering::Release);
    let _starting = core.starting.lock().await;
    let mut registry = core.registry.lock();
    if registry.len() == 0 {
        registry.head = None;
        drop(registry);
        let watch = core.watch.lock().take();
        // The end of a watch may wait for a thread.
        if let Err(error) = core.runtime.blocking.submit(move || drop(watch)) {
            tracing::debug!(%error, "the watch for commits was stopped on the calling thread");
        }
    }
}
