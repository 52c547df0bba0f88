//! One subscription: its position in the log and the few changes that wait for its consumer.
//!
//! Invariant: a subscription is *live* or *behind*. The log reader gives a live subscription each matching change. When the
//! consumer is slow and the batch is full, the subscription falls behind: then its consumer reads the log itself, from the
//! subscription's position, until it has reached the log reader's. Either way an entry after the position is judged under no lock,
//! and delivered once.
//!
//! A subscription that began while the log reader was behind is *ahead* of it. The log reader gives it changes, too, but a failover
//! may have lost entries before its start. So its consumer gets none of them before the log reader has reached the position and the
//! consumer has checked that the log still has what the position stands on.
//!
//! What waits for a consumer is bounded in bytes. A change that is too large for the batch of a live subscription waits in the
//! log.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Waker,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use uuid::Uuid;

use super::{
    caller::{CallerTimeline, SessionCaller},
    pending_change::PendingChange,
    view::{SharedChange, View},
};
use crate::{
    callbacks::PullQueue,
    database::{
        CurrentPrincipal, Principal,
        change_log::{self, EntryKey, LogPoint, Position},
        session_expired,
    },
    error::{Error, Result},
    model::RowChange,
    policy::Caller,
    threads::Job,
};

/// The most changes that wait for the consumer of a live subscription.
const CAPACITY: usize = 64;

/// The most memory of these changes.
const CAPACITY_BYTES: usize = 512 << 10;

/// A subscription, a stream or a live query.
pub(super) struct SubscriptionState {
    pub(super) view: View,
    /// The principal of the handle that the subscription belongs to.
    pub(super) handle: CurrentPrincipal,
    /// The caller that the subscription began with.
    began_as: SessionCaller,
    follows: Option<FollowedHandle>,
    /// The end of the log when a subscription with a cursor began. Entries before it are also judged by the current rows.
    replays_to: Option<Position>,
    /// The position of [`until`](super::ChangeRequest::until).
    ends_at: Option<Position>,
    state: Mutex<SubscriptionProgress>,
}

/// The caller of a client's own handle, as it signs in and out. A subscription without one keeps the caller that it began with,
/// and ends when the handle may no longer act for that caller's session: a live query, and a subscription of an `as_user` or
/// `as_service` handle or of a request.
pub(super) struct FollowedHandle {
    pub(super) timeline: Arc<CallerTimeline>,
    /// Entries up to this key are judged for the caller that the subscription began with.
    pub(super) after: EntryKey,
}

struct SubscriptionProgress {
    mode: Mode,
    batch: VecDeque<PendingChange>,
    /// The memory of `batch`.
    batch_bytes: usize,
    /// The number of the last changes of `batch` that wait for the check of the position.
    unchecked: usize,
    /// Whether the registry has it in its list of subscriptions that are ahead.
    is_listed: bool,
    /// Why the subscription ends after `batch`: `None` inside if the client closed or the program ended it.
    end: Option<Option<Error>>,
    /// Whether the client or the program has ended it.
    is_closed: bool,
    consumer: Consumer,
    /// Whether a thread reads the log for a stream.
    is_reading: bool,
}

/// How far the subscription is.
enum Mode {
    /// The log reader, which was at this point or has passed it, gives it the entries after the point.
    Live(LogPoint),
    /// The consumer reads the entries after the position.
    Behind(Position),
    /// The log reader has not reached the position. It gives the subscription the entries that the position includes.
    Ahead(Position),
    /// The log reader has reached the position, and the consumer is to check it. Otherwise as `Ahead`.
    Unchecked(Position),
}

/// The consumer of the changes.
pub(super) enum Consumer {
    /// A callback.
    Queue(PullQueue<RowChange>),
    /// A stream, with the waker of the task that waits in it.
    Stream(Option<Waker>),
    /// None yet, or none any more.
    Nobody,
}

/// A consumer that is to be woken because its subscription has something. The caller holds no lock when it does so.
pub(super) enum WokenConsumer {
    /// A job of the callback pool.
    Callback(Job),
    Task(Waker),
}

/// What a consumer finds.
pub(super) enum NextForConsumer {
    Change(RowChange),
    Nothing,
    /// The consumer is to read the log after this position, or to check the position.
    Read(Position),
    Ended(Option<Error>),
}

impl WokenConsumer {
    /// Wakes the tasks. Returns the jobs of the callback pool.
    pub(super) fn wake_tasks(woken: impl IntoIterator<Item = WokenConsumer>) -> Vec<Job> {
        let mut jobs = Vec::new();
        for consumer in woken {
            match consumer {
                WokenConsumer::Callback(job) => jobs.push(job),
                WokenConsumer::Task(waker) => wake_task(waker),
            }
        }
        jobs
    }
}

/// Wakes a task of the program. Its waker is foreign code, which may panic.
fn wake_task(waker: Waker) {
    if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
        tracing::error!("the waker of a stream panicked");
    }
}

impl SubscriptionState {
    /// `replays_to` is the end of the log for a subscription that begins with a cursor.
    pub(super) fn new(
        view: View,
        handle: CurrentPrincipal,
        began_as: SessionCaller,
        follows: Option<FollowedHandle>,
        position: Position,
        replays_to: Option<Position>,
    ) -> SubscriptionState {
        let state = SubscriptionProgress {
            mode: Mode::Behind(position),
            batch: VecDeque::new(),
            batch_bytes: 0,
            unchecked: 0,
            is_listed: false,
            end: None,
            is_closed: false,
            consumer: Consumer::Nobody,
            is_reading: false,
        };
        SubscriptionState { view, handle, began_as, follows, replays_to, ends_at: None, state: Mutex::new(state) }
    }

    /// Makes the subscription end at a position.
    pub(super) fn ending_at(self, ends_at: Option<Position>) -> SubscriptionState {
        SubscriptionState { ends_at, ..self }
    }

    /// Whether the subscription ends at a position.
    pub(super) fn has_end(&self) -> bool {
        self.ends_at.is_some()
    }

    /// Whether the subscription waits for the log reader to reach its position, or the one at which it ends.
    pub(super) fn awaits_reader(&self) -> bool {
        let state = self.state.lock();
        let awaits = match state.mode {
            Mode::Live(_) => self.has_end(),
            Mode::Ahead(_) => true,
            Mode::Behind(_) | Mode::Unchecked(_) => false,
        };
        awaits && state.end.is_none()
    }

    /// Whether the entry is after the position at which the subscription ends.
    pub(super) fn is_after_end(&self, key: &EntryKey) -> bool {
        self.ends_at.as_ref().is_some_and(|end| end.includes(key))
    }

    /// Ends the subscription after the changes that it has if it has every entry up to its end. The log reader has given away the
    /// entries up to `given`. The caller holds the lock under which the log reader moves.
    pub(super) fn end_if_reached(&self, given: EntryKey) -> Option<WokenConsumer> {
        let end = self.ends_at.as_ref()?;
        let mut state = self.state.lock();
        let reached = match &state.mode {
            // It has what is before the point at which it joined the log reader.
            Mode::Live(point) => given.max(point.after),
            Mode::Behind(position) | Mode::Ahead(position) | Mode::Unchecked(position) => position.after,
        };
        if !end.is_reached_by(reached) {
            return None;
        }
        state.end.get_or_insert(None);
        state.wake()
    }

    /// Sets the consumer. Returns it if it is to be woken, and what `consumer` returns beside it.
    ///
    /// # Errors
    /// `Closed` if the client or the handle has been closed since the subscription began. Then `consumer` is not called: a consumer
    /// that is made and ended here would run code of the program inside its own call.
    pub(super) fn set_consumer<T>(
        &self,
        consumer: impl FnOnce() -> (Consumer, T),
    ) -> Result<(Option<WokenConsumer>, T)> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Error::closed());
        }
        let (consumer, other) = consumer();
        state.consumer = consumer;
        Ok((state.wake(), other))
    }

    /// The timeline of the caller that the subscription follows.
    pub(super) fn timeline(&self) -> Option<&Arc<CallerTimeline>> {
        self.follows.as_ref().map(|handle| &handle.timeline)
    }

    /// The caller that policies use for this entry.
    pub(super) fn caller_at(&self, key: EntryKey) -> Caller {
        match &self.follows {
            Some(handle) if key > handle.after => handle.timeline.at(key),
            _ => self.began_as.caller,
        }
    }

    /// The session with which the subscription ends.
    pub(super) fn fixed_session(&self) -> Option<Uuid> {
        self.began_as.session_id.filter(|_| self.follows.is_none())
    }

    /// When the access token with which the subscription acts expires; `None` if it has ended or needs none.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        let session_id = self.fixed_session()?;
        match &*self.handle.principal() {
            Principal::User(credential) if credential.session_id == session_id && !self.has_ended() => {
                Some(credential.expires_at)
            }
            _ => None,
        }
    }

    /// Whether the entry with this key was written before the subscription began, and its caller is not the service.
    pub(super) fn replays(&self, key: EntryKey) -> bool {
        self.replays_to.as_ref().is_some_and(|end| !end.includes(&key)) && self.caller_at(key) != Caller::Service
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Ends the subscription if its access token has expired.
    pub(super) fn end_if_expired(&self, now: Timestamp) -> Option<WokenConsumer> {
        let has_expired = self.expires_at().is_some_and(|expires_at| expires_at <= now);
        has_expired.then(|| self.end_after_batch(Some(session_expired())))?
    }

    /// Joins the log reader, which is at `head`: a subscription that has reached it becomes live, and one that is ahead of it waits.
    /// Returns whether it is to be listed among those that wait. The caller holds the lock under which the log reader moves.
    pub(super) fn join(&self, head: LogPoint) -> bool {
        let mut state = self.state.lock();
        let Mode::Behind(position) = &state.mode else { return false };
        if position.is_at(head) {
            state.mode = Mode::Live(head);
        } else if position.is_ahead_of(head.after) {
            state.mode = Mode::Ahead(position.clone());
            return !std::mem::replace(&mut state.is_listed, true);
        }
        false
    }

    /// Looks whether a subscription that waits for the log reader, which is at `head`, still has to wait. If the log reader has
    /// reached it, it becomes live, or its consumer checks the position. With `last_id`, the log reader has read the log to its end,
    /// where no id is larger. Then the consumer reads the log, too, if it has a change already, of a transaction that was open at the
    /// start, and if the log ends before the position: a failover may have lost entries. Appends the consumer to `woken` if it is to
    /// be woken. The caller holds the lock under which the log reader moves.
    pub(super) fn still_waits(&self, head: LogPoint, last_id: Option<i64>, woken: &mut Vec<WokenConsumer>) -> bool {
        let mut state = self.state.lock();
        state.is_listed = false;
        let Mode::Ahead(position) = &state.mode else { return false };
        if position.is_at(head) {
            state.mode = Mode::Live(head);
        } else if position.is_reached_by(head.after) {
            state.mode = Mode::Unchecked(position.clone());
        } else if last_id.is_some_and(|last_id| state.unchecked > 0 || position.last_id() > last_id) {
            state.read_from_position();
        } else {
            state.is_listed = state.end.is_none();
            return state.is_listed;
        }
        woken.extend(state.wake());
        false
    }

    /// Whether the consumer is to check the position.
    pub(super) fn is_unchecked(&self) -> bool {
        matches!(self.state.lock().mode, Mode::Unchecked(_))
    }

    /// The log has what the position stands on: the subscription is live, and its consumer gets what the log reader has given it.
    pub(super) fn approve(&self) {
        let mut state = self.state.lock();
        if let Mode::Unchecked(position) = &state.mode {
            state.mode = Mode::Live(position.point());
            state.unchecked = 0;
        }
    }

    /// Makes the consumer read the log from the subscription's position. Does nothing for a live subscription, and returns false.
    /// Appends the consumer to `woken` if it is to be woken.
    pub(super) fn read_log_unless_live(&self, woken: &mut Vec<WokenConsumer>) -> bool {
        let mut state = self.state.lock();
        if matches!(state.mode, Mode::Live(_)) {
            return false;
        }
        state.read_from_position();
        woken.extend(state.wake());
        true
    }

    /// The position from which a subscription may have to read the log itself; `None` for a live one, and for one that has ended.
    pub(super) fn own_position(&self) -> Option<Position> {
        self.state.lock().own_position().cloned()
    }

    /// Ends a subscription that may have to read the log itself if it needs an entry up to the id `pruned`, which the log no longer has.
    /// Returns the consumer if it is to be woken.
    pub(super) fn end_if_pruned(&self, pruned: i64) -> Option<WokenConsumer> {
        let mut state = self.state.lock();
        if state.own_position()?.needed_after().id >= pruned {
            return None;
        }
        state.end = Some(Some(change_log::pruned()));
        state.wake()
    }

    /// Gives an entry to a subscription that is not behind. `before` is the point before it. Returns the consumer if it is to be
    /// woken. The log reader alone calls this, one entry after another: while the entry is judged, the subscription can end or be
    /// approved, and does not fall behind.
    pub(super) fn offer(&self, shared: &SharedChange<'_>, before: LogPoint) -> Option<WokenConsumer> {
        let key = shared.entry.key;
        if self.is_after_end(&key) {
            return None;
        }
        let position = self.state.lock().position_for(key)?;
        // For a replayed entry, the consumer reads it, with the current row.
        let change = match self.replays(key) {
            true => None,
            false => Some(self.view.change(shared, self.caller_at(key), &position)?),
        };
        let mut state = self.state.lock();
        state.position_for(key)?;
        match change {
            Some(change) if state.batch.len() < CAPACITY && state.batch_bytes + change.size() <= CAPACITY_BYTES => {
                state.push(change);
                if !matches!(state.mode, Mode::Live(_)) {
                    state.unchecked += 1;
                }
            }
            _ if matches!(state.mode, Mode::Live(_)) => state.mode = Mode::Behind(before.into()),
            _ => state.read_from_position(),
        }
        state.wake()
    }

    /// Adds the changes of the pages that the consumer has read up to `position`. With an `end`, the subscription ends after them.
    pub(super) fn add_read(&self, changes: Vec<PendingChange>, position: Position, end: Option<Error>) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            changes.into_iter().for_each(|change| state.push(change));
            state.mode = Mode::Behind(position);
            state.end = end.map(Some);
        }
    }

    /// Notes that the read for a consumer has ended. Returns the consumer if it is to be woken.
    pub(super) fn end_read(&self) -> Option<WokenConsumer> {
        let mut state = self.state.lock();
        state.is_reading = false;
        state.wake()
    }

    /// Ends the subscription with `reason` after the changes that it has.
    pub(super) fn end_after_batch(&self, reason: Option<Error>) -> Option<WokenConsumer> {
        let mut state = self.state.lock();
        state.end.get_or_insert(reason);
        state.wake()
    }

    /// Ends the subscription of a closed client or handle, and of a program that wants no more. A reason why it has ended before
    /// stays.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.end.get_or_insert(None);
        state.is_closed = true;
        state.batch.clear();
        (state.batch_bytes, state.unchecked) = (0, 0);
        let consumer = std::mem::replace(&mut state.consumer, Consumer::Nobody);
        drop(state);
        match consumer {
            Consumer::Queue(queue) => queue.close(),
            Consumer::Stream(Some(waker)) => wake_task(waker),
            Consumer::Stream(None) | Consumer::Nobody => {}
        }
    }

    /// Lets go of the consumer.
    pub(super) fn detach(&self) {
        // Dropped without the lock: it may be the last handle of the queue.
        let consumer = std::mem::replace(&mut self.state.lock().consumer, Consumer::Nobody);
        drop(consumer);
    }

    /// Takes the next change that waits. If there is none, or if a thread reads the log for a stream, keeps the stream's `waker`.
    pub(super) fn take(&self, waker: Option<&Waker>) -> NextForConsumer {
        let mut state = self.state.lock();
        if state.has_change()
            && let Some(change) = state.batch.pop_front()
        {
            state.batch_bytes -= change.size();
            drop(state);
            return NextForConsumer::Change(change.into_change());
        }
        if let Some(reason) = &state.end {
            return NextForConsumer::Ended(reason.clone());
        }
        if let (Consumer::Stream(registered), Some(waker)) = (&mut state.consumer, waker) {
            *registered = Some(waker.clone());
        }
        match &state.mode {
            Mode::Behind(position) | Mode::Unchecked(position) if !state.is_reading => {
                let position = position.clone();
                state.is_reading = waker.is_some();
                NextForConsumer::Read(position)
            }
            _ => NextForConsumer::Nothing,
        }
    }
}

impl SubscriptionProgress {
    /// The position of a subscription to which the log reader gives the entry with this key.
    fn position_for(&self, key: EntryKey) -> Option<Position> {
        let position = match &self.mode {
            Mode::Live(point) => (*point).into(),
            Mode::Ahead(position) | Mode::Unchecked(position) => position.clone(),
            Mode::Behind(_) => return None,
        };
        (self.end.is_none() && position.includes(&key)).then_some(position)
    }

    /// The position from which a subscription may have to read the log itself.
    fn own_position(&self) -> Option<&Position> {
        match &self.mode {
            Mode::Behind(position) | Mode::Ahead(position) | Mode::Unchecked(position) if self.end.is_none() => {
                Some(position)
            }
            _ => None,
        }
    }

    /// Makes the consumer read the log from the position, and drops the changes that it would get twice.
    fn read_from_position(&mut self) {
        if let Mode::Ahead(position) | Mode::Unchecked(position) = &self.mode {
            self.mode = Mode::Behind(position.clone());
            let dropped = self.batch.drain(self.batch.len() - self.unchecked..);
            self.batch_bytes -= dropped.map(|change| change.size()).sum::<usize>();
            self.unchecked = 0;
        }
    }

    /// Whether the batch has a change that the consumer may get.
    fn has_change(&self) -> bool {
        self.batch.len() > self.unchecked
    }

    fn push(&mut self, change: PendingChange) {
        self.batch_bytes += change.size();
        self.batch.push_back(change);
    }

    fn wake(&mut self) -> Option<WokenConsumer> {
        let is_to_read = matches!(self.mode, Mode::Behind(_) | Mode::Unchecked(_));
        if !self.has_change() && self.end.is_none() && !is_to_read {
            return None;
        }
        match &mut self.consumer {
            Consumer::Queue(queue) => queue.delivery_job().map(WokenConsumer::Callback),
            // The task looks again when it is polled.
            Consumer::Stream(waker) => waker.take().map(WokenConsumer::Task),
            Consumer::Nobody => None,
        }
    }
}
