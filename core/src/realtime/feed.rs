//! One subscription: its position in the log and the few changes that wait for its consumer.
//!
//! Invariant: a feed is *live* or *behind*. The pump gives a live feed each matching change. When the consumer is slow and
//! the batch is full, the feed falls behind: then its consumer reads the log itself, from the feed's position, until it has
//! reached the pump's. Either way each entry after the position is judged once.

use std::{collections::VecDeque, sync::Arc, task::Waker};

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{
    caller::{FeedCaller, HandleCaller},
    view::{SharedChange, View},
};
use crate::{
    callbacks::PullQueue,
    database::{
        change_log::{EntryKey, EntryKind, LogEntry, LogPage, Position, session_of},
        session_ended,
    },
    error::{Error, Result},
    model::RowChange,
    policy::Caller,
};

/// The most changes that wait for a consumer.
const CAPACITY: usize = 64;

/// A subscription, a stream or a live query.
pub(super) struct Feed {
    pub(super) view: View,
    pub(super) caller: FeedIdentity,
    state: Mutex<FeedState>,
}

/// For whom a feed's changes are judged.
pub(super) enum FeedIdentity {
    /// The caller of a handle, as it changes. Up to the key `began_at`, it is `began_as`: a feed that replays the past
    /// judges it for the caller that it began with.
    Handle { handle: Arc<HandleCaller>, began_at: EntryKey, began_as: Caller },
    /// The caller that a live query began with. The query ends with the session.
    Fixed(FeedCaller, Arc<HandleCaller>),
}

struct FeedState {
    mode: Mode,
    batch: VecDeque<RowChange>,
    /// Why the feed ends after `batch`: `None` inside if the client closed or the program ended it.
    end: Option<Option<Error>>,
    consumer: Consumer,
    /// The next page, for a feed that reads a long log.
    read_ahead: Option<ReadAhead>,
    /// True from a wake of the consumer until it found nothing.
    is_awake: bool,
}

/// A page that is read while the consumer uses the page before.
pub(super) struct ReadAhead {
    /// The key after which the page begins.
    pub(super) after: EntryKey,
    /// The key of the pump when the read began: the page says whether more comes up to this key.
    pub(super) head: EntryKey,
    pub(super) page: JoinHandle<Result<LogPage>>,
}

impl ReadAhead {
    /// Waits for the page. Returns it with `head`.
    pub(super) async fn join(self) -> Result<(LogPage, EntryKey)> {
        let page = self.page.await.map_err(|_| Error::closed())??;
        Ok((page, self.head))
    }
}

/// How far the feed is.
enum Mode {
    /// The pump gives it the entries that the position includes.
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

/// Who is to be woken because a feed has something.
pub(super) enum Wake {
    Queue(PullQueue<RowChange>),
    Task(Waker),
}

/// What a consumer finds.
pub(super) enum Taken {
    Change(RowChange),
    Nothing,
    /// The consumer is to read the log after this position.
    Read(Position),
    Ended(Option<Error>),
}

impl Feed {
    pub(super) fn new(view: View, caller: FeedIdentity, position: Position) -> Feed {
        let state = FeedState {
            mode: Mode::Behind(position),
            batch: VecDeque::new(),
            end: None,
            consumer: Consumer::Nobody,
            read_ahead: None,
            is_awake: false,
        };
        Feed { view, caller, state: Mutex::new(state) }
    }

    /// Sets who takes the changes, and returns whether the consumer is to be woken. If the feed has been closed meanwhile, it
    /// closes the consumer.
    pub(super) fn set_consumer(&self, consumer: Consumer) -> Option<Wake> {
        let mut state = self.state.lock();
        state.consumer = consumer;
        if !matches!(state.end, Some(None)) {
            return state.wake();
        }
        drop(state);
        self.close();
        None
    }

    /// The handle that the feed belongs to.
    pub(super) fn handle(&self) -> &Arc<HandleCaller> {
        match &self.caller {
            FeedIdentity::Handle { handle, .. } | FeedIdentity::Fixed(_, handle) => handle,
        }
    }

    /// The session whose end ends the feed.
    pub(super) fn fixed_session(&self) -> Option<Uuid> {
        match &self.caller {
            FeedIdentity::Handle { .. } => None,
            FeedIdentity::Fixed(caller, _) => caller.session_id,
        }
    }

    /// Becomes live if the feed has reached the pump, which is at `head`. The caller holds the lock under which the pump
    /// moves.
    pub(super) fn go_live(&self, head: EntryKey) {
        let mut state = self.state.lock();
        if let Mode::Behind(position) = &state.mode
            && position.after >= head
        {
            state.mode = Mode::Live(position.clone());
        }
    }

    /// The key up to which the feed needs no entry any more, if it reads the log itself.
    pub(super) fn behind_at(&self) -> Option<EntryKey> {
        match &self.state.lock().mode {
            Mode::Live(_) => None,
            Mode::Behind(position) => Some(position.after),
        }
    }

    /// Gives an entry to a live feed. `before` is the key of the entry before it. Returns who is to be woken.
    pub(super) fn offer(&self, shared: &SharedChange<'_>, before: EntryKey) -> Option<Wake> {
        let key = shared.entry.key;
        let mut state = self.state.lock();
        let Mode::Live(position) = &state.mode else { return None };
        if state.end.is_some() || !position.includes(&key) {
            return None;
        }
        let change = self.view.change(shared, self.caller_at(key), position)?;
        if state.batch.len() >= CAPACITY {
            let position = Position { after: before.max(position.after), seen: position.seen.clone() };
            state.mode = Mode::Behind(position);
            return None;
        }
        state.batch.push_back(change);
        state.wake()
    }

    /// Ends the feed with `reason` after the changes that it has.
    pub(super) fn end_after_batch(&self, reason: Option<Error>) -> Option<Wake> {
        let mut state = self.state.lock();
        state.end.get_or_insert(reason);
        state.read_ahead = None;
        state.wake()
    }

    /// Ends the feed of a closed client or handle, and of a program that wants no more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.end = Some(None);
        state.batch.clear();
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
    pub(super) fn take(&self, waker: Option<&Waker>) -> Taken {
        let mut state = self.state.lock();
        if let Some(change) = state.batch.pop_front() {
            return Taken::Change(change);
        }
        if let Some(reason) = &state.end {
            return Taken::Ended(reason.clone());
        }
        if let Mode::Behind(position) = &state.mode {
            return Taken::Read(position.clone());
        }
        state.is_awake = false;
        if let (Consumer::Stream(registered), Some(waker)) = (&mut state.consumer, waker) {
            *registered = Some(waker.clone());
        }
        Taken::Nothing
    }

    /// Wakes the consumer.
    pub(super) fn wake(&self) -> Option<Wake> {
        self.state.lock().wake()
    }

    pub(super) fn set_read_ahead(&self, reading: ReadAhead) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.read_ahead = Some(reading);
        }
    }

    /// The page after `after`, if it is being read.
    pub(super) fn take_read_ahead(&self, after: EntryKey) -> Option<ReadAhead> {
        self.state.lock().read_ahead.take().filter(|reading| reading.after == after)
    }

    /// Lets the consumer be woken again, after a read that failed.
    pub(super) fn pause(&self) {
        self.state.lock().is_awake = false;
    }

    /// Takes over a page that the consumer read, up to the key `head` of the pump.
    pub(super) fn absorb(&self, page: &LogPage, incarnation: &str, head: EntryKey) {
        let mut state = self.state.lock();
        let Mode::Behind(position) = &state.mode else { return };
        let mut position = position.clone();
        for entry in page.entries.iter().take_while(|entry| entry.key <= head) {
            if !position.includes(&entry.key) {
                continue;
            }
            if self.is_ended_by(entry) {
                state.end.get_or_insert(Some(session_ended()));
                state.read_ahead = None;
                break;
            }
            if let Some(session_id) = session_of(entry).filter(|_| entry.kind == EntryKind::SessionEnded) {
                // The pump can have passed the entry before it knew the handle.
                self.handle().end_session(session_id, entry.key);
            }
            let caller = self.caller_at(entry.key);
            state.batch.extend(self.view.change(&SharedChange::new(entry, incarnation), caller, &position));
        }
        // The last page reaches the pump also if no entry has the pump's key.
        position.after = position.after.max(if page.is_last { head } else { page.end.min(head) });
        state.mode = Mode::Behind(position);
    }

    fn is_ended_by(&self, entry: &LogEntry) -> bool {
        let session_id = self.fixed_session();
        session_id.is_some() && entry.kind == EntryKind::SessionEnded && session_of(entry) == session_id
    }

    fn caller_at(&self, key: EntryKey) -> Caller {
        match &self.caller {
            FeedIdentity::Fixed(caller, _) => caller.caller,
            FeedIdentity::Handle { began_at, began_as, .. } if key <= *began_at => *began_as,
            FeedIdentity::Handle { handle, .. } => handle.at(key),
        }
    }

    /// Lets go of the consumer.
    pub(super) fn detach(&self) {
        // Dropped without the lock: it may be the last handle of the queue.
        let consumer = std::mem::replace(&mut self.state.lock().consumer, Consumer::Nobody);
        drop(consumer);
    }
}

impl FeedState {
    fn wake(&mut self) -> Option<Wake> {
        let has_nothing = self.batch.is_empty() && self.end.is_none() && matches!(self.mode, Mode::Live(_));
        if has_nothing || std::mem::replace(&mut self.is_awake, true) {
            return None;
        }
        match &mut self.consumer {
            Consumer::Queue(queue) => Some(Wake::Queue(queue.clone())),
            Consumer::Stream(waker) => {
                // The task looks again when it is polled.
                self.is_awake = false;
                waker.take().map(Wake::Task)
            }
            Consumer::Nobody => {
                self.is_awake = false;
                None
            }
        }
    }
}
