//! For whom statements run, and what proves it.
//!
//! Invariant: a user's statement runs only while the session that was shown still stands. The engine looks it up by
//! the hash of its token in the transaction of the statement itself, so a session that was ended, by whatever handle or
//! process, is over for the next call.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::{Mutex, MutexGuard};
use uuid::Uuid;

#[cfg(feature = "sqlite")]
use super::Statement;
use crate::{
    error::{Error, ErrorKind, Result},
    policy::Caller,
};

/// Who runs a statement.
pub(crate) enum Principal {
    /// Nobody.
    Anonymous,
    /// A signed-in user.
    User(Pass),
    /// Trusted code.
    Service,
}

/// What shows that a caller is a user.
pub(crate) struct Pass {
    pub(crate) user_id: Uuid,
    /// SHA-256 of the access token, in hex.
    pub(crate) access_hash: String,
    /// When the access token ends; a token never gets another end.
    pub(crate) expires_at: Timestamp,
}

/// Who a handle acts for just now: shared by its clones, changed by sign-in and sign-out.
#[derive(Clone)]
pub(crate) struct Acting(Arc<Inner>);

struct Inner {
    principal: ArcSwap<Principal>,
    turns: Mutex<()>,
    is_renewing: AtomicBool,
}

/// As long as this is there, statements of the handle wait: its session gets another token.
pub(crate) struct Renewing<'a>(&'a AtomicBool);

/// The sessions that stand: asked before anything that a user asks. (PostgreSQL asks by a function of its own.)
#[cfg(feature = "sqlite")]
pub(super) static SESSION: Statement = Statement::new("SELECT user_id FROM townsquare.sessions WHERE access_hash = $1");

impl Principal {
    /// As policies see it.
    pub(crate) fn caller(&self) -> Caller {
        match self {
            Principal::Anonymous => Caller::Anonymous,
            Principal::User(pass) => Caller::User(pass.user_id),
            Principal::Service => Caller::Service,
        }
    }

    /// Refuses a user whose access token is too old.
    pub(crate) fn check_expiry(&self, now: Timestamp) -> Result<()> {
        match self {
            Principal::User(pass) if pass.expires_at <= now => Err(session_expired()),
            Principal::Anonymous | Principal::User(_) | Principal::Service => Ok(()),
        }
    }
}

impl Acting {
    pub(crate) fn new(principal: Principal) -> Acting {
        let principal = ArcSwap::from_pointee(principal);
        Acting(Arc::new(Inner { principal, turns: Mutex::default(), is_renewing: AtomicBool::new(false) }))
    }

    pub(crate) fn principal(&self) -> Arc<Principal> {
        self.0.principal.load_full()
    }

    /// Waits until nobody else changes the session.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.0.turns.lock().await
    }

    /// To be held, in turn, while the session's token changes.
    pub(crate) fn renewing(&self) -> Renewing<'_> {
        self.0.is_renewing.store(true, Ordering::Release);
        Renewing(&self.0.is_renewing)
    }

    /// The principal of a statement that begins now: not one whose token is about to die.
    pub(super) async fn settled(&self) -> Arc<Principal> {
        if self.0.is_renewing.load(Ordering::Acquire) {
            drop(self.turn().await);
        }
        self.principal()
    }

    /// For a statement that found its session ended: the same user with a newer token, if there is one by now.
    pub(super) async fn successor<T>(&self, old: &Arc<Principal>, result: &Result<T>) -> Option<Arc<Principal>> {
        let is_ended = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unauthorized);
        if !is_ended || !matches!(**old, Principal::User(_)) {
            return None;
        }
        drop(self.turn().await);
        Some(self.principal()).filter(|new| !Arc::ptr_eq(new, old) && new.caller() == old.caller())
    }

    /// Everybody who shares this acts for `principal` from here on.
    pub(crate) fn change_to(&self, principal: Principal) {
        self.0.principal.store(Arc::new(principal));
    }
}

impl Drop for Renewing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The session was signed out, or its user is gone.
pub(crate) fn session_ended() -> Error {
    Error::new(ErrorKind::Unauthorized, "Session has ended")
}

/// The access token is too old; the refresh token may still get another.
pub(crate) fn session_expired() -> Error {
    Error::new(ErrorKind::Unauthorized, "Session has expired")
}
