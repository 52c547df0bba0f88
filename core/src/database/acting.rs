//! For whom statements run, and what proves it.
//!
//! Invariant: a user's statement runs only while the session that was shown still stands. The engine looks it up by
//! the hash of its token in the transaction of the statement itself, so a session that was ended, by whatever handle or
//! process, is over for the next call.

use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use uuid::Uuid;

#[cfg(feature = "sqlite")]
use super::Statement;
use crate::{
    error::{Error, ErrorKind},
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
pub(crate) struct Acting(Arc<ArcSwap<Principal>>);

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
}

impl Acting {
    pub(crate) fn new(principal: Principal) -> Acting {
        Acting(Arc::new(ArcSwap::from_pointee(principal)))
    }

    pub(crate) fn principal(&self) -> Arc<Principal> {
        self.0.load_full()
    }

    /// Everybody who shares this acts for `principal` from here on.
    pub(crate) fn change_to(&self, principal: Principal) {
        self.0.store(Arc::new(principal));
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
