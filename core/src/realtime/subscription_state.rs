//! One subscription: its position in the log and the few changes that wait for its consumer.
//!
//! Invariant: a subscription is *live* or *behind*. The log reader gives a live subscription each matching change. When the
//! consumer is slow and the batch is full, the subscription falls behind: then its consumer reads the log itself, from the
//! subscription's position, until it has reached the log reader's. Either way each entry after the position is judged once, and
//! under no lock.
//!
//! What waits for a consumer is bounded in bytes: a batch, and on PostgreSQL a page that was read ahead. A change that is too
//! large for the batch of a live subscription waits in the log.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Waker,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    caller::{HandleCaller, SessionCaller},
    view::{PendingChange, SharedChange, View},
};
use crate::{
    callbacks::PullQueue,
    database::{
        CurrentPrincipal, Principal,
        change_log::{CursorKey, EntryKey, EntryKind, LogEntry, LogPage, LogPoint, OutlinedRow, Position, session_of},
        session_ended, session_expired,
    },
    error::{Error, Result},
    model::RowChange,
    policy::{Caller, RowKey, may_see},
};

/// The most changes that wait for the consumer of a live subscription.
const CAPACITY: usize = 64;

/// The most memory of these changes.
const CAPACITY_BYTES: usize = 512 << 10;

/// A subscription, a stream or a live query.
pub(super) struct SubscriptionState {
    pub(super) view: View,
    pub(super) caller: SubscriptionCaller,
    /// The end of the log when a subscription with a cursor began. Entries before it are also judged by the current rows.
    replays_to: Option<Position>,
    /// How often the registry had ended every subscription when this one was added.
    ends_before: AtomicU64,
    state: Mutex<SubscriptionProgress>,
}

/// For whom a subscription's changes are judged.
pub(super) enum SubscriptionCaller {
    /// The caller of a client's own handle, as it signs in and out. Up to the key `began_at`, it is `began_as`: a subscription
    /// judges older entries for the caller that it began with.
    Handle { handle: Arc<HandleCaller>, began_at: EntryKey, began_as: Caller },
    /// The caller that the subscription began with: the caller of a live query, of an `as_user` or `as_service` handle, or of a
    /// request. The subscription ends when the handle may no longer act for the caller's session.
    Fixed(SessionCaller, CurrentPrincipal),
}

struct SubscriptionProgress {
    mode: Mode,
    batch: VecDeque<PendingChange>,
    /// The memory of `batch`.
    batch_bytes: usize,
    /// Why the subscription ends after `batch`: `None` inside if the client closed or the program ended it.
    end: Option<Option<Error>>,
    /// Whether the client or the program has ended it.
    is_closed: bool,
    consumer: Consumer,
    /// The next page, for a subscription that reads a long log.
    read_ahead: Option<ReadAhead>,
    /// True from a wake of the consumer until it found nothing.
    is_awake: bool,
}

/// A page that is read while the consumer uses the page before.
pub(super) struct ReadAhead {
    /// The point after which the page begins.
    pub(super) after: LogPoint,
    /// Where the log reader was when the read began: the page says whether more comes up to this point.
    pub(super) head: LogPoint,
    pub(super) page: JoinHandle<Result<LogPage>>,
}

impl ReadAhead {
    /// Waits for the page. Returns it with `head`.
    pub(super) async fn join(self) -> Result<(LogPage, LogPoint)> {
        let page = self.page.await.map_err(|_| Error::closed())??;
        Ok((page, self.head))
    }
}

/// How far the subscription is.
enum Mode {
    /// The log reader gives it the entries that the position includes.
    Live(Position),
    /// The consumer reads the entries after the position.
    Behind(Position),
}

/// Who takes the changes.
pub(super) enum Consumer {
    /// A callback.
    Queue(PullQueue<RowChange>),
    /// A stream, with the waker of the task that waits in it.
    Stream(Option<Waker>),
    /// None yet, or none any more.
    Nobody,
}

/// Who is to be woken because a subscription has something.
pub(super) enum WokenConsumer {
    Queue(PullQueue<RowChange>),
    Task(Waker),
}

/// What a consumer finds.
pub(super) enum NextForConsumer {
    Change(RowChange),
    Nothing,
    /// The consumer is to read the log after this position.
    Read(Position),
    Ended(Option<Error>),
}

impl SubscriptionState {
    /// `replays_to` is the end of the log for a subscription that begins with a cursor.
    pub(super) fn new(
        view: View,
        caller: SubscriptionCaller,
        position: Position,
        replays_to: Option<Position>,
    ) -> SubscriptionState {
        let state = SubscriptionProgress {
            mode: Mode::Behind(position),
            batch: VecDeque::new(),
            batch_bytes: 0,
            end: None,
            is_closed: false,
            consumer: Consumer::Nobody,
            read_ahead: None,
            is_awake: false,
        };
        SubscriptionState { view, caller, replays_to, ends_before: AtomicU64::new(0), state: Mutex::new(state) }
    }

    /// Notes how often the registry has ended every subscription, when it adds this one. The registry's lock guards it.
    pub(super) fn note_ends(&self, ends: u64) {
        self.ends_before.store(ends, Ordering::Relaxed);
    }

    /// Whether the subscription was added after the registry had ended every subscription for the last of `ends` times.
    pub(super) fn was_added_after(&self, ends: u64) -> bool {
        self.ends_before.load(Ordering::Relaxed) == ends
    }

    /// Sets who takes the changes, and returns whether the consumer is to be woken. If the subscription has been closed
    /// meanwhile, it closes the consumer.
    pub(super) fn set_consumer(&self, consumer: Consumer) -> Option<WokenConsumer> {
        let mut state = self.state.lock();
        state.consumer = consumer;
        if !state.is_closed {
            return state.wake();
        }
        drop(state);
        self.close();
        None
    }

    /// The principal of the handle that the subscription belongs to.
    pub(super) fn principal(&self) -> &CurrentPrincipal {
        match &self.caller {
            SubscriptionCaller::Handle { handle, .. } => handle.principal(),
            SubscriptionCaller::Fixed(_, principal) => principal,
        }
    }

    /// The caller that the subscription follows.
    pub(super) fn handle(&self) -> Option<&Arc<HandleCaller>> {
        match &self.caller {
            SubscriptionCaller::Handle { handle, .. } => Some(handle),
            SubscriptionCaller::Fixed(..) => None,
        }
    }

    /// The session whose end ends the subscription.
    pub(super) fn fixed_session(&self) -> Option<Uuid> {
        match &self.caller {
            SubscriptionCaller::Handle { .. } => None,
            SubscriptionCaller::Fixed(caller, _) => caller.session_id,
        }
    }

    /// When the access token with which the subscription acts expires; `None` if it has ended or needs none.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        let session_id = self.fixed_session()?;
        match &*self.principal().principal() {
            Principal::User(credential) if credential.session_id == session_id && !self.has_ended() => {
                Some(credential.expires_at)
            }
            _ => None,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Ends the subscription if its access token has expired.
    pub(super) fn end_if_expired(&self, now: Timestamp) -> Option<WokenConsumer> {
        let has_expired = self.expires_at().is_some_and(|expires_at| expires_at <= now);
        has_expired.then(|| self.end_after_batch(Some(session_expired())))?
    }

    /// Becomes live if the subscription has reached the log reader, which is at `head`. The caller holds the lock under which the
    /// log reader moves.
    pub(super) fn go_live(&self, head: EntryKey) {
        let mut state = self.state.lock();
        if let Mode::Behind(position) = &state.mode
            && position.after >= head
        {
            state.mode = Mode::Live(position.clone());
        }
    }

    /// The key up to which the subscription needs no entry any more, if it reads the log itself.
    pub(super) fn behind_at(&self) -> Option<EntryKey> {
        match &self.state.lock().mode {
            Mode::Live(_) => None,
            Mode::Behind(position) => Some(position.after),
        }
    }

    /// Gives an entry to a live subscription. `before` is the point before it. Returns who is to be woken. The log reader alone
    /// calls this, one entry after another, so a live subscription stays as it is while the entry is judged, or it ends.
    pub(super) fn offer(&self, shared: &SharedChange<'_>, before: LogPoint) -> Option<WokenConsumer> {
        let key = shared.entry.key;
        let position = self.state.lock().live_position(key)?;
        let behind = |position: &Position| {
            Mode::Behind(Position { seen: position.seen.clone(), ..before.max(position.point()).into() })
        };
        if self.replays(key) {
            // The consumer reads the entry, with the current row.
            let mut state = self.state.lock();
            state.live_position(key)?;
            state.mode = behind(&position);
            return state.wake();
        }
        let change = self.view.change(shared, self.caller_at(key), &position)?;
        let size = change.size();
        let mut state = self.state.lock();
        state.live_position(key)?;
        if state.batch.len() >= CAPACITY || state.batch_bytes + size > CAPACITY_BYTES {
            state.mode = behind(&position);
        } else {
            state.batch_bytes += size;
            state.batch.push_back(change);
        }
        state.wake()
    }

    /// Ends the subscription with `reason` after the changes that it has.
    pub(super) fn end_after_batch(&self, reason: Option<Error>) -> Option<WokenConsumer> {
        let mut state = self.state.lock();
        state.end.get_or_insert(reason);
        state.read_ahead = None;
        state.wake()
    }

    /// Ends the subscription of a closed client or handle, and of a program that wants no more. A reason why it has ended before
    /// stays.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.end.get_or_insert(None);
        state.is_closed = true;
        state.batch.clear();
        state.batch_bytes = 0;
        state.read_ahead = None;
        let consumer = std::mem::replace(&mut state.consumer, Consumer::Nobody);
        drop(state);
        match consumer {
            Consumer::Queue(queue) => queue.close(),
            Consumer::Stream(Some(waker)) => waker.wake(),
            Consumer::Stream(None) | Consumer::Nobody => {}
        }
    }

    /// Takes the next change that waits. If there is nothing, keeps `waker` for a stream.
    pub(super) fn take(&self, waker: Option<&Waker>) -> NextForConsumer {
        let mut state = self.state.lock();
        if let Some(change) = state.batch.pop_front() {
            state.batch_bytes -= change.size();
            drop(state);
            return NextForConsumer::Change(change.into_change());
        }
        if let Some(reason) = &state.end {
            return NextForConsumer::Ended(reason.clone());
        }
        if let Mode::Behind(position) = &state.mode {
            return NextForConsumer::Read(position.clone());
        }
        state.is_awake = false;
        if let (Consumer::Stream(registered), Some(waker)) = (&mut state.consumer, waker) {
            *registered = Some(waker.clone());
        }
        NextForConsumer::Nothing
    }

    /// Wakes the consumer.
    pub(super) fn wake(&self) -> Option<WokenConsumer> {
        self.state.lock().wake()
    }

    pub(super) fn set_read_ahead(&self, reading: ReadAhead) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.read_ahead = Some(reading);
        }
    }

    /// The page after `after`, if it is being read.
    pub(super) fn take_read_ahead(&self, after: LogPoint) -> Option<ReadAhead> {
        self.state.lock().read_ahead.take().filter(|reading| reading.after == after)
    }

    /// Lets the consumer be woken again, after a read that failed.
    pub(super) fn pause(&self) {
        self.state.lock().is_awake = false;
    }

    /// Whether the entry with this key was written before the subscription began, and its caller is not the service.
    fn replays(&self, key: EntryKey) -> bool {
        self.replays_to.as_ref().is_some_and(|end| !end.includes(&key)) && self.caller_at(key) != Caller::Service
    }

    /// The keys of the rows that the subscription has to look up in the tables before it takes over the page.
    pub(super) fn replayed_rows(&self, page: &LogPage) -> Vec<RowKey> {
        let entries = page.entries.iter().filter(|entry| entry.table == self.view.table && self.replays(entry.key));
        let mut keys: Vec<_> = entries.filter_map(LogEntry::row_key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Whether the caller may only learn the key of the entry's row: the subscription replays the entry, and the row is deleted
    /// or hidden from the caller. Another row may have the key of a deleted one. `rows` are the rows of
    /// [`replayed_rows`](SubscriptionState::replayed_rows) that exist.
    fn is_gone(&self, entry: &LogEntry, caller: Caller, rows: &HashMap<RowKey, OutlinedRow>) -> bool {
        if !self.replays(entry.key) {
            return false;
        }
        let is_shown = |row: &OutlinedRow| {
            entry.key.id > row.last_deletion && may_see(entry.table, caller, &row.image, row.context.as_ref())
        };
        entry.kind == EntryKind::Delete || !entry.row_key().and_then(|key| rows.get(&key)).is_some_and(is_shown)
    }

    /// Takes over a page that the consumer read, up to the point `head` of the log reader. `rows` are the rows of
    /// [`replayed_rows`](SubscriptionState::replayed_rows) that exist. The consumer alone calls this.
    pub(super) fn absorb(
        &self,
        page: &LogPage,
        cursors: &CursorKey,
        head: LogPoint,
        rows: &HashMap<RowKey, OutlinedRow>,
    ) {
        let Some(mut position) = self.state.lock().position_behind() else { return };
        let (mut changes, mut end_reason) = (Vec::new(), None);
        for entry in page.entries.iter().take_while(|entry| entry.key <= head.after) {
            if !position.includes(&entry.key) {
                continue;
            }
            if self.is_ended_by(entry) {
                end_reason = Some(session_ended());
                break;
            }
            if let Some(session_id) = session_of(entry).filter(|_| entry.kind == EntryKind::SessionEnded) {
                // The log reader can have passed the entry before it knew the handle.
                if let Some(handle) = self.handle() {
                    handle.end_session(session_id, entry.key);
                }
            }
            if entry.table != self.view.table {
                continue;
            }
            let caller = self.caller_at(entry.key);
            let shared = if self.is_gone(entry, caller, rows) {
                SharedChange::of_gone_row(entry, cursors)
            } else {
                SharedChange::new(entry, cursors)
            };
            changes.extend(shared.and_then(|shared| self.view.change(&shared, caller, &position)));
        }
        // The last page reaches the log reader also if no entry has the log reader's key.
        let end = if page.is_last { head } else { page.end.min(head) };
        position = Position { seen: position.seen.take(), ..position.point().max(end).into() };
        let mut state = self.state.lock();
        if state.end.is_some() {
            return;
        }
        state.batch_bytes += changes.iter().map(PendingChange::size).sum::<usize>();
        state.batch.extend(changes);
        state.mode = Mode::Behind(position);
        if let Some(reason) = end_reason {
            state.end = Some(Some(reason));
            state.read_ahead = None;
        }
    }

    fn is_ended_by(&self, entry: &LogEntry) -> bool {
        let session_id = self.fixed_session();
        session_id.is_some() && entry.kind == EntryKind::SessionEnded && session_of(entry) == session_id
    }

    fn caller_at(&self, key: EntryKey) -> Caller {
        match &self.caller {
            SubscriptionCaller::Fixed(caller, _) => caller.caller,
            SubscriptionCaller::Handle { began_at, began_as, .. } if key <= *began_at => *began_as,
            SubscriptionCaller::Handle { handle, .. } => handle.at(key),
        }
    }

    /// Lets go of the consumer.
    pub(super) fn detach(&self) {
        // Dropped without the lock: it may be the last handle of the queue.
        let consumer = std::mem::replace(&mut self.state.lock().consumer, Consumer::Nobody);
        drop(consumer);
    }
}

impl SubscriptionProgress {
    /// The position of a live subscription that gets the entry with this key.
    fn live_position(&self, key: EntryKey) -> Option<Position> {
        match &self.mode {
            Mode::Live(position) if self.end.is_none() && position.includes(&key) => Some(position.clone()),
            Mode::Live(_) | Mode::Behind(_) => None,
        }
    }

    /// The position of a subscription that reads the log itself, unless it has ended.
    fn position_behind(&self) -> Option<Position> {
        match &self.mode {
            Mode::Behind(position) if self.end.is_none() => Some(position.clone()),
            Mode::Live(_) | Mode::Behind(_) => None,
        }
    }

    fn wake(&mut self) -> Option<WokenConsumer> {
        let has_nothing = self.batch.is_empty() && self.end.is_none() && matches!(self.mode, Mode::Live(_));
        if has_nothing || std::mem::replace(&mut self.is_awake, true) {
            return None;
        }
        match &mut self.consumer {
            Consumer::Queue(queue) => Some(WokenConsumer::Queue(queue.clone())),
            Consumer::Stream(waker) => {
                // The task looks again when it is polled.
                self.is_awake = false;
                waker.take().map(WokenConsumer::Task)
            }
            Consumer::Nobody => {
                self.is_awake = false;
                None
            }
        }
    }
}
