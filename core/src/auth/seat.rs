//! What one handle knows of its caller: the session, who is to be told when it changes, and the file it is kept in.
//!
//! Invariant: the session, whom statements run for, and what listeners heard last say the same, but for a moment. Changes
//! take turns ([`Seat::turn`]), so listeners hear of them in the order in which they happened.

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::MutexGuard, task::AbortHandle};

use super::{keeping::SessionFile, token};
use crate::{
    callbacks::{CallbackQueue, Subscription},
    database::{Acting, Pass, Principal},
    error::Result,
    model::{AuthEvent, Session},
};

/// The caller of a handle and its clones.
pub(crate) struct Seat {
    acting: Acting,
    /// Of the service and of `as_user`, who stay who they are: whom a sign-in does not change.
    is_fixed: bool,
    state: Mutex<State>,
    file: Option<SessionFile>,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    listeners: Vec<CallbackQueue<(AuthEvent, Option<Session>)>>,
    /// What will refresh the session before its access token ends.
    renewal: Option<AbortHandle>,
}

impl Seat {
    /// A handle that nobody has signed in on.
    pub(super) fn open(file: Option<SessionFile>) -> Seat {
        Seat::new(Principal::Anonymous, false, None, file)
    }

    /// A handle of trusted code.
    pub(super) fn service() -> Seat {
        Seat::new(Principal::Service, true, None, None)
    }

    /// A handle of one session, for a server with many users.
    pub(super) fn of(session: Session) -> Seat {
        Seat::new(Principal::User(pass(&session)), true, Some(session), None)
    }

    fn new(principal: Principal, is_fixed: bool, session: Option<Session>, file: Option<SessionFile>) -> Seat {
        let state = Mutex::new(State { session, ..State::default() });
        Seat { acting: Acting::new(principal), is_fixed, state, file }
    }

    /// For whom its statements run.
    pub(crate) fn acting(&self) -> &Acting {
        &self.acting
    }

    pub(super) fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    pub(super) fn session(&self) -> Option<Session> {
        self.state.lock().session.clone()
    }

    pub(super) fn file(&self) -> Option<&SessionFile> {
        self.file.as_ref()
    }

    /// Waits until nobody else changes the session.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.acting.turn().await
    }

    /// Writes a session's tokens to the file, where there is one.
    pub(super) fn keep(&self, session: &Session) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.save(session))
    }

    /// From here on this is the session; listeners hear `event`.
    pub(super) fn take(&self, session: &Session, event: AuthEvent) {
        let mut state = self.state.lock();
        self.acting.change_to(Principal::User(pass(session)));
        state.session = Some(session.clone());
        state.tell(event);
    }

    /// From here on nobody is signed in. A fixed handle keeps its caller, for whom nothing will run any more.
    pub(super) fn leave(&self) {
        if let (Some(file), Some(session)) = (&self.file, self.session())
            && let Err(error) = file.remove(&session.refresh_token)
        {
            tracing::error!(%error, "a session that has ended is still kept");
        }
        let mut state = self.state.lock();
        if !self.is_fixed {
            self.acting.change_to(Principal::Anonymous);
        }
        if let Some(renewal) = state.renewal.take() {
            renewal.abort();
        }
        if state.session.take().is_some() {
            state.tell(AuthEvent::SignedOut);
        }
    }

    /// Has `callback` told of the session there is, then of every change.
    pub(super) fn listen(
        &self,
        runtime: Handle,
        callback: impl FnMut((AuthEvent, Option<Session>)) + Send + 'static,
    ) -> Subscription {
        let queue = CallbackQueue::new(runtime, callback);
        let subscription = queue.subscription();
        let mut state = self.state.lock();
        queue.post((AuthEvent::InitialSession, state.session.clone()));
        state.listeners.push(queue);
        subscription
    }

    /// Drops every callback; one that is running is dropped when it returns.
    pub(super) fn forget_listeners(&self) {
        // Outside the lock: dropping a callback runs code of its owner's.
        let listeners = std::mem::take(&mut self.state.lock().listeners);
        drop(listeners);
    }

    /// Replaces what will refresh the session.
    pub(super) fn set_renewal(&self, renewal: AbortHandle) {
        if let Some(old) = self.state.lock().renewal.replace(renewal) {
            old.abort();
        }
    }
}

impl State {
    fn tell(&mut self, event: AuthEvent) {
        self.listeners.retain(|listener| !listener.is_cancelled());
        for listener in &self.listeners {
            listener.post((event, self.session.clone()));
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(renewal) = self.state.get_mut().renewal.take() {
            renewal.abort();
        }
    }
}

/// What shows statements that the session's user is calling.
fn pass(session: &Session) -> Pass {
    Pass { user_id: session.user.id, access_hash: token::hash(&session.access_token), expires_at: session.expires_at }
}
