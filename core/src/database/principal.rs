//! The principal of a statement: anonymous, the user of a session, or the service.
//!
//! Invariant: a user's statement runs only while the user's session exists. The engine looks the session up by the hash
//! of its access token in the statement's own transaction, so a session that any handle or process ends stops the next
//! call. A [`Principal::Vouched`] needs no session: the policies judge its user all the same. Each of its transactions looks up
//! that the generation of the user's URLs is still that of the URL.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::{Mutex, MutexGuard};
use uuid::Uuid;

#[cfg(feature = "sqlite")]
use super::Statement;
use super::written::Written;
use crate::{
    error::{Error, ErrorKind, Result},
    metrics::OperationCounts,
    policy::{Caller, Table},
    threads::sync::{
        self,
        atomic::{AtomicBool, Ordering},
    },
};

/// The caller of a statement together with its proof. It has no `Debug`, because a credential is a secret.
pub(crate) enum Principal {
    Anonymous,
    User(Credential),
    /// A user without a session, the signer of a signed URL: the library itself has checked the signature.
    Vouched(Signer),
    /// Trusted code, not subject to policies.
    Service,
}

/// The signer of a signed URL.
#[derive(Clone, Copy)]
pub(crate) struct Signer {
    pub(crate) user_id: Uuid,
    /// The generation of the user's URLs when the signature was checked.
    pub(crate) generation: i64,
}

/// The proof that a caller is a user: the session's access token, as its hash.
#[derive(Clone)]
pub(crate) struct Credential {
    pub(crate) user_id: Uuid,
    /// Stays when the tokens of the session are replaced.
    pub(crate) session_id: Uuid,
    /// SHA-256 of the access token, in hex.
    pub(crate) access_hash: String,
    /// When the access token expires. The expiry of a token never changes.
    pub(crate) expires_at: Timestamp,
}

/// The current principal of a handle. Clones share it; sign-in, refresh and sign-out replace it. After
/// [`close`](CurrentPrincipal::close), and after the database is closed, no statement runs for it.
#[derive(Clone)]
pub(crate) struct CurrentPrincipal(Arc<PrincipalState>);

struct PrincipalState {
    principal: ArcSwap<Principal>,
    /// The principals that were set last, the current one at the end.
    recent: sync::Mutex<VecDeque<Arc<Principal>>>,
    session_lock: Mutex<()>,
    is_refreshing: AtomicBool,
    has_fixed_caller: bool,
    is_closed: AtomicBool,
    seen: Written,
    shared: Arc<SharedByHandles>,
    reload: OnceLock<Reload>,
}

/// What the handles on one database share.
#[derive(Default)]
pub(crate) struct SharedByHandles {
    /// Whether the database is closed.
    pub(super) is_closed: AtomicBool,
    /// What the handles have written, for the reads of all of them on a replica.
    pub(super) written: Written,
    pub(crate) counts: OperationCounts,
}

/// The most principals of a handle that are remembered for the change feed, which may look at them late.
const MAX_RECENT: usize = 64;

/// Replaces the principal if another process has refreshed its session, or if its access token has expired and can be replaced. Fails
/// if the database does.
pub(crate) type Reload = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send + Sync>;

/// While this guard exists, new statements of the handle wait for the session lock, because the session's access token
/// is being replaced.
pub(crate) struct RefreshGuard<'a>(&'a AtomicBool);

/// Finds the user of a session; SQLite runs it before each statement of a user. PostgreSQL has a function for it.
#[cfg(feature = "sqlite")]
pub(super) static SESSION: Statement = Statement::new("SELECT user_id FROM townsquare.sessions WHERE access_hash = $1");

/// Finds the signer of a URL, while the user's URLs have this generation.
#[cfg(feature = "sqlite")]
pub(super) static SIGNER: Statement =
    Statement::new("SELECT user_id FROM townsquare.credentials WHERE user_id = $1 AND url_generation = $2");

impl Principal {
    /// Returns the caller that policies are evaluated for.
    pub(crate) fn caller(&self) -> Caller {
        match self {
            Principal::Anonymous => Caller::Anonymous,
            Principal::User(credential) => Caller::User(credential.user_id),
            Principal::Vouched(signer) => Caller::User(signer.user_id),
            Principal::Service => Caller::Service,
        }
    }

    /// Checks the expiry of the access token.
    ///
    /// # Errors
    /// `Unauthorized` for a user whose access token has expired at `now`.
    fn check_expiry(&self, now: Timestamp) -> Result<()> {
        match self {
            Principal::User(credential) if credential.expires_at <= now => Err(session_expired()),
            Principal::Anonymous | Principal::User(_) | Principal::Vouched(_) | Principal::Service => Ok(()),
        }
    }
}

impl AsRef<CurrentPrincipal> for CurrentPrincipal {
    fn as_ref(&self) -> &CurrentPrincipal {
        self
    }
}

impl CurrentPrincipal {
    /// The principal of a handle with a fixed caller, on the database that `shared` belongs to.
    pub(crate) fn new(principal: Principal, shared: Arc<SharedByHandles>) -> CurrentPrincipal {
        CurrentPrincipal::of_caller(principal, true, shared)
    }

    /// The principal of a handle whose caller is anonymous until a sign-in.
    pub(crate) fn signed_out(shared: Arc<SharedByHandles>) -> CurrentPrincipal {
        CurrentPrincipal::of_caller(Principal::Anonymous, false, shared)
    }

    fn of_caller(principal: Principal, has_fixed_caller: bool, shared: Arc<SharedByHandles>) -> CurrentPrincipal {
        let principal = ArcSwap::from_pointee(principal);
        CurrentPrincipal(Arc::new(PrincipalState {
            principal,
            recent: sync::Mutex::default(),
            session_lock: Mutex::default(),
            is_refreshing: AtomicBool::new(false),
            has_fixed_caller,
            is_closed: AtomicBool::new(false),
            seen: Written::default(),
            shared,
            reload: OnceLock::new(),
        }))
    }

    /// The counts of the operations of every handle on the database.
    pub(crate) fn counts(&self) -> &OperationCounts {
        &self.0.shared.counts
    }

    /// What the handle has read on the primary, and what it was told that others have written.
    pub(crate) fn seen(&self) -> &Written {
        &self.0.seen
    }

    /// What the handles on the database have written.
    pub(super) fn written(&self) -> &Written {
        &self.0.shared.written
    }

    /// Whether this is the current principal of the same handle as `other`.
    pub(crate) fn is_of_same_handle(&self, other: &CurrentPrincipal) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// True for `as_service`, `as_anonymous` and `as_user` handles, and for requests: signing in does not change their caller.
    pub(crate) fn has_fixed_caller(&self) -> bool {
        self.0.has_fixed_caller
    }

    /// Closes the handle: later calls fail with `Closed`, calls that run complete.
    pub(crate) fn close(&self) {
        self.0.is_closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::Acquire)
    }

    /// # Errors
    /// `Closed` after [`close`](CurrentPrincipal::close), and after the database is closed.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.0.shared.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        if self.is_closed() { Err(Error::handle_closed()) } else { Ok(()) }
    }

    /// Refuses every caller but the service, before any row is read.
    ///
    /// # Errors
    /// `Closed` on a closed handle; `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    pub(crate) fn require_service(&self, table: Table) -> Result<()> {
        self.check_open()?;
        self.principal().caller().require_service(table)
    }

    /// Returns the principal as it is, even while a refresh is replacing its access token.
    pub(crate) fn principal(&self) -> Arc<Principal> {
        self.0.principal.load_full()
    }

    /// Returns the principal. Waits for a refresh that is under way to finish.
    async fn load(&self) -> Arc<Principal> {
        if self.0.is_refreshing.load(Ordering::Acquire) {
            drop(self.lock_session().await);
        }
        self.principal()
    }

    /// Returns the principal for a new statement at `now`. Waits for a refresh that is under way. Refreshes the session if its access
    /// token has expired: no timer did, because the computer slept or the clock was set. The caller does not hold the session lock.
    ///
    /// # Errors
    /// `Unauthorized` if the access token has expired and the handle cannot replace it; those of the refresh.
    pub(crate) async fn valid_principal(&self, now: Timestamp) -> Result<Arc<Principal>> {
        let principal = self.load().await;
        match principal.check_expiry(now) {
            Ok(()) => Ok(principal),
            Err(expired) => self.renewed_principal(&principal, expired).await,
        }
    }

    /// Returns the principal to retry a statement with, if `error` says that the session of `old` has ended or its access token has
    /// expired, and the same user has a newer access token by now: this handle or another process with the same session file has
    /// refreshed the session. The caller does not hold the session lock.
    ///
    /// # Errors
    /// `error` if there is none; those of the database.
    pub(crate) async fn renewed_principal(&self, old: &Arc<Principal>, error: Error) -> Result<Arc<Principal>> {
        if error.kind() != ErrorKind::Unauthorized || !matches!(**old, Principal::User(_)) {
            return Err(error);
        }
        drop(self.lock_session().await);
        if Arc::ptr_eq(&self.principal(), old) {
            let Some(reload) = self.0.reload.get() else { return Err(error) };
            reload().await?;
        }
        let new = self.principal();
        if Arc::ptr_eq(&new, old) || new.caller() != old.caller() { Err(error) } else { Ok(new) }
    }

    /// Sets the function that looks for other tokens when the database refuses the handle's, or when they have expired. The first one
    /// stays.
    pub(crate) fn set_reload(&self, reload: Reload) {
        let _ = self.0.reload.set(reload);
    }

    /// Locks the handle's session: changes of the session run one at a time, in the order of their calls.
    pub(crate) async fn lock_session(&self) -> MutexGuard<'_, ()> {
        self.0.session_lock.lock().await
    }

    /// Starts a refresh of the session. The caller holds the session lock for as long as it holds the guard.
    pub(crate) fn start_refresh(&self) -> RefreshGuard<'_> {
        self.0.is_refreshing.store(true, Ordering::Release);
        RefreshGuard(&self.0.is_refreshing)
    }

    /// Replaces the principal for every clone.
    pub(crate) fn set(&self, principal: Principal) {
        let principal = Arc::new(principal);
        let mut recent = self.0.recent.lock();
        let oldest = if recent.len() >= MAX_RECENT { recent.pop_front() } else { None };
        recent.push_back(Arc::clone(&principal));
        self.0.principal.store(principal);
        drop(recent);
        drop(oldest);
    }

    /// The principals that were set after `known`, in their order; at most the last [`MAX_RECENT`].
    pub(crate) fn set_since(&self, known: &Arc<Principal>) -> Vec<Arc<Principal>> {
        let recent = self.0.recent.lock();
        let first = recent.iter().rposition(|principal| Arc::ptr_eq(principal, known)).map_or(0, |index| index + 1);
        recent.range(first..).cloned().collect()
    }
}

impl Drop for RefreshGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The error for a session that was ended, replaced by a refresh, or deleted with its user.
pub(crate) fn session_ended() -> Error {
    Error::new(ErrorKind::Unauthorized, "Session has ended")
}

/// The error for an expired access token; the session's refresh token may still be valid.
pub(crate) fn session_expired() -> Error {
    Error::new(ErrorKind::Unauthorized, "Session has expired")
}
