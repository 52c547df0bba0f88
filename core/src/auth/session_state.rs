//! The session of one handle: its principal, its listeners, its file and its refresh timer.
//!
//! Invariant: session, principal and the last event sent to listeners agree. After a call learns that the session has ended, the
//! handle has no session but keeps its principal, so that no call goes on as anonymous unnoticed. Every change holds the session
//! lock ([`CurrentPrincipal::lock_session`]), so listeners get events in the order of the changes. A new session is written to
//! the session file before it takes effect; the file is removed only while it holds the session that ended. Tokens are
//! replaced under the lock of the session file, which gets the new tokens first. A refresh that failed is repeated with the
//! same nonce, because the database may have the new tokens already.

mod stored;

use std::sync::Arc;

use tokio::task::AbortHandle;

use super::{
    accounts::Accounts,
    session_file::{SessionFile, StoredSession, StoredTokens},
    session_store::{Nonce, TokenPair},
    token,
};
use crate::{
    callbacks::{Listener, Subscription},
    database::{Credential, CurrentPrincipal, Principal, session_ended, session_expired},
    error::{Error, ErrorKind, Result},
    model::{AuthEvent, Session, SignOutScope, User},
    threads::{DetachedWork, sync::Mutex},
};

/// The session of a handle and its clones.
pub(crate) struct SessionState {
    accounts: Arc<Accounts>,
    principal: CurrentPrincipal,
    file: Option<SessionFile>,
    current: Mutex<CurrentSession>,
    /// Operations whose callers have dropped their futures. Calls that change the session wait for them.
    pub(super) detached: DetachedWork<()>,
}

#[derive(Default)]
struct CurrentSession {
    session: Option<Session>,
    /// The session that a call found ended, until `get_session`, a sign-in or a sign-out. It may go on with tokens that the
    /// handle does not have.
    ended: Option<Session>,
    listeners: Vec<Listener<(AuthEvent, Option<Session>)>>,
    /// Refreshes the session before its access token expires.
    refresh_timer: Option<RefreshTimer>,
    /// The refresh token that the last refresh used, and the nonce of that refresh.
    last_refresh: Option<(String, Nonce)>,
}

/// The task that waits for the time of the next refresh. Dropping it ends the task.
struct RefreshTimer(AbortHandle);

impl Drop for RefreshTimer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SessionState {
    /// The state of a client's own handle, anonymous at first.
    pub(super) fn anonymous(accounts: Arc<Accounts>, file: Option<SessionFile>) -> Arc<SessionState> {
        let (principal, current) = (accounts.scope.signed_out_handle(), Mutex::default());
        let state = Arc::new(SessionState { accounts, principal, file, current, detached: DetachedWork::default() });
        state.reload_when_refused();
        state
    }

    /// The state of an `as_service` or `as_anonymous` handle.
    pub(super) fn fixed(accounts: Arc<Accounts>, principal: Principal) -> SessionState {
        let (principal, current) = (accounts.scope.handle_of(principal), Mutex::default());
        SessionState { accounts, principal, file: None, current, detached: DetachedWork::default() }
    }

    /// The state of an `as_user` handle.
    ///
    /// # Errors
    /// `Unauthorized` when the session has ended or the access token has expired.
    pub(super) async fn as_user(accounts: Arc<Accounts>, access_token: &str) -> Result<SessionState> {
        let session = accounts.sessions.get_session(access_token).await?;
        let principal = accounts.scope.handle_of(Principal::User(credential(&session)));
        let current = Mutex::new(CurrentSession { session: Some(session), ..CurrentSession::default() });
        Ok(SessionState { accounts, principal, file: None, current, detached: DetachedWork::default() })
    }

    pub(super) fn principal(&self) -> &CurrentPrincipal {
        &self.principal
    }

    /// Makes `session` the handle's session. Does nothing on a handle with a fixed caller.
    pub(super) async fn sign_in(self: &Arc<Self>, session: &Session) -> Result<()> {
        if self.principal.has_fixed_caller() {
            return Ok(());
        }
        let _lock = self.principal.lock_session().await;
        self.adopt(session).await
    }

    /// Ends the sessions of `scope`, if there is a session.
    pub(super) async fn sign_out(self: &Arc<Self>, scope: SignOutScope) -> Result<()> {
        let _lock = self.principal.lock_session().await;
        let ended = self.current.lock().ended.clone();
        if let Some(session) = self.session().or(ended) {
            let sessions = &self.accounts.sessions;
            if scope == SignOutScope::Local {
                sessions.sign_out(&session).await?;
            } else if self.has_ended() {
                return Err(session_ended());
            } else {
                let session = self.current_session(session).await?;
                sessions.sign_out_all(&session, scope == SignOutScope::Others).await?;
            }
        }
        if scope != SignOutScope::Others {
            self.clear().await;
        }
        Ok(())
    }

    /// Returns the session, after a refresh if its access token has expired; `None` when it has ended.
    pub(super) async fn get_session(self: &Arc<Self>) -> Result<Option<Session>> {
        let _lock = self.principal.lock_session().await;
        let Some(session) = self.session() else {
            self.clear().await;
            return Ok(None);
        };
        match self.current_session(session).await {
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                self.clear().await;
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    /// Replaces the tokens of the handle's session.
    pub(super) async fn refresh_session(self: &Arc<Self>) -> Result<Session> {
        let _lock = self.principal.lock_session().await;
        let session = self.session().ok_or_else(|| self.no_session())?;
        if session.refresh_token.is_empty() {
            let message = "This handle knows only the access token; refresh the session where it began";
            return Err(Error::new(ErrorKind::Unauthorized, message));
        }
        self.refresh_locked(&session).await
    }

    /// Replaces the tokens of the session that `refresh_token` belongs to, which may be the handle's own.
    pub(super) async fn refresh_session_of(self: &Arc<Self>, refresh_token: &str) -> Result<Session> {
        let own = || self.session().filter(|session| session.refresh_token == refresh_token);
        if own().is_some() {
            let _lock = self.principal.lock_session().await;
            // The session may have changed while this call waited for the lock.
            if let Some(session) = own() {
                return self.refresh_locked(&session).await;
            }
        }
        self.accounts.sessions.refresh_session(refresh_token).await
    }

    /// Replaces the tokens of the session that `refresh_token` belongs to, and makes it the handle's session.
    pub(super) async fn set_session(self: &Arc<Self>, refresh_token: &str) -> Result<Session> {
        if self.principal.has_fixed_caller() {
            return Err(Error::invalid_input("This handle has a fixed caller; open a client, or use as_user"));
        }
        let _lock = self.principal.lock_session().await;
        // Before the token is used, because it can be used once.
        let _file_lock = self.lock_file().await?;
        let session = self.accounts.sessions.refresh_session(refresh_token).await?;
        self.adopt_saved(&session, self.save(&session)).await?;
        Ok(session)
    }

    /// Makes the session of the session file the handle's session, if it has not ended. Takes no session lock, because
    /// no other code can use the client before it is open.
    pub(super) async fn restore_session(self: &Arc<Self>) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if file.load()?.is_none() {
            return Ok(());
        }
        let _file_lock = file.lock().await?;
        // Reads again: another process may have replaced the tokens while this one waited for the lock.
        let Some(stored) = self.stored_session().await? else { return Ok(()) };
        let tokens = &stored.tokens;
        let restored = match self.accounts.sessions.get_session(&tokens.access_token).await {
            Err(error) if error.kind() == ErrorKind::Unauthorized => self.replace_tokens(&tokens.refresh_token).await,
            found => {
                let session = Session { refresh_token: tokens.refresh_token.clone(), ..found? };
                // The file stays as it is: the database may still be about to commit an interrupted refresh.
                self.use_tokens(&session, AuthEvent::SignedIn);
                return Ok(());
            }
        };
        match restored {
            Ok(session) => self.adopt_saved(&session, self.save(&session)).await,
            Err(error) if error.kind() == ErrorKind::Unauthorized => file.remove(&tokens.refresh_token),
            Err(error) => Err(error),
        }
    }

    /// Calls `callback` with the current session now, and with every change from here on.
    pub(super) fn on_auth_state_change(
        self: &Arc<Self>,
        callback: impl FnMut((AuthEvent, Option<Session>)) + Send + 'static,
    ) -> Subscription {
        let listener = Listener::new(self.accounts.callbacks.clone(), callback);
        let subscription = listener.subscription();
        // Handles without listeners do without: a server makes one for each request.
        self.reload_when_refused();
        let mut current = self.current.lock();
        // `close` marks the handle as closed before it drops the listeners under this lock.
        if self.principal.is_closed() {
            return subscription;
        }
        listener.notify((AuthEvent::InitialSession, current.session.clone()));
        let ended: Vec<_> = current.listeners.extract_if(.., |listener| listener.has_ended()).collect();
        current.listeners.push(listener);
        // Dropped after the lock was released: dropping a callback runs code of the program.
        drop(current);
        drop(ended);
        subscription
    }

    /// Drops every callback; a running one is dropped when it returns.
    pub(super) fn drop_listeners(&self) {
        // Drop the callbacks after releasing the lock, because their destructors run the embedding program's code.
        let listeners = std::mem::take(&mut self.current.lock().listeners);
        drop(listeners);
    }

    /// Returns the user's credential, after a refresh if the access token has expired. The caller does not hold the session lock.
    ///
    /// # Errors
    /// `Unauthorized` when no user is signed in, or when the access token has expired and the handle cannot replace it.
    pub(super) async fn credential(&self) -> Result<Credential> {
        self.principal.check_open()?;
        match &*self.principal.valid_principal(self.accounts.clock.now()).await? {
            Principal::User(credential) => Ok(credential.clone()),
            Principal::Anonymous | Principal::Vouched(_) | Principal::Service => Err(not_signed_in()),
        }
    }

    /// Calls `attempt` with the user's credential. Calls it again whenever the credential was replaced in the meantime and
    /// the database no longer accepts the old one.
    pub(super) async fn with_credential<T, F: Future<Output = Result<T>>>(
        &self,
        attempt: impl Fn(Credential) -> F,
    ) -> Result<T> {
        loop {
            let principal = self.principal.principal();
            let error = match attempt(self.credential().await?).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            self.principal.renewed_principal(&principal, error).await?;
        }
    }

    /// Returns the session of the signed-in user as the database has it, after a refresh if its access token has expired. The caller
    /// holds the session lock.
    ///
    /// # Errors
    /// `Unauthorized` when no user is signed in, the session has ended, or the access token has expired and the handle cannot replace
    /// it.
    pub(super) async fn require_session(self: &Arc<Self>) -> Result<Session> {
        self.principal.check_open()?;
        let session = self.session().ok_or_else(|| self.no_session())?;
        self.current_session(session).await
    }

    /// Makes `session`, which has a changed user and perhaps new tokens, the handle's session. The caller holds the
    /// session lock and, for new tokens, the lock of the session file.
    pub(super) fn update_user(self: &Arc<Self>, session: &Session) {
        let has_new_tokens = self.session().is_none_or(|own| own.access_token != session.access_token);
        if has_new_tokens {
            self.save_new_tokens(session);
        }
        self.replace(session, AuthEvent::UserUpdated);
        if has_new_tokens && !self.principal.has_fixed_caller() {
            self.start_refresh_timer(session);
        }
    }

    /// Replaces the user of the handle's session, if the session is that user's.
    pub(super) async fn replace_own_user(&self, user: &User) {
        let _lock = self.principal.lock_session().await;
        if let Some(session) = self.session().filter(|session| session.user.id == user.id) {
            self.replace(&Session { user: user.clone(), ..session }, AuthEvent::UserUpdated);
        }
    }

    /// Becomes anonymous, and sends `SIGNED_OUT` if there is a session. A handle with a fixed caller keeps it; its statements fail
    /// from here on, because the session has ended. The caller holds the session lock.
    pub(super) async fn clear(&self) {
        // Otherwise the file of a sign-in of another process could be removed. Without the lock the session ends, too.
        let _file_lock = self.lock_file().await;
        self.end_session(!self.principal.has_fixed_caller());
    }

    /// Drops the session, which has ended, and sends `SIGNED_OUT`. The principal stays: until `get_session`, a sign-in or a
    /// sign-out, statements fail. The caller holds the session lock.
    fn drop_ended_session(&self) {
        self.end_session(false);
    }

    fn end_session(&self, becomes_anonymous: bool) {
        if let (Some(file), Some(session)) = (&self.file, self.session())
            && let Err(error) = file.remove(&session.refresh_token)
        {
            tracing::error!(%error, "the session file of a session that has ended could not be removed");
        }
        let mut current = self.current.lock();
        if becomes_anonymous && !matches!(*self.principal.principal(), Principal::Anonymous) {
            self.principal.set(Principal::Anonymous);
        }
        current.refresh_timer = None;
        if becomes_anonymous {
            current.ended = None;
        }
        if let Some(session) = current.session.take() {
            current.ended = (!becomes_anonymous).then_some(session);
            current.notify(AuthEvent::SignedOut);
        }
    }

    /// Whether the handle acts for a session that has ended.
    fn has_ended(&self) -> bool {
        self.current.lock().ended.is_some()
    }

    /// The error for an operation of a signed-in user on a handle without a session.
    fn no_session(&self) -> Error {
        if self.has_ended() { session_ended() } else { not_signed_in() }
    }

    fn session(&self) -> Option<Session> {
        self.current.lock().session.clone()
    }

    /// Saves a new session and makes it the handle's session. If the session cannot be saved, ends the session. The caller holds the
    /// session lock.
    async fn adopt(self: &Arc<Self>, session: &Session) -> Result<()> {
        let locked = self.lock_file().await;
        self.adopt_saved(session, locked.and_then(|_lock| self.save(session))).await
    }

    /// Does what [`adopt`](SessionState::adopt) does after the session was saved, or could not be.
    async fn adopt_saved(self: &Arc<Self>, session: &Session, saved: Result<()>) -> Result<()> {
        if let Err(error) = saved {
            if let Err(error) = self.accounts.sessions.sign_out(session).await {
                tracing::error!(%error, "a session that could not be saved stays valid until it expires");
            }
            return Err(error);
        }
        self.use_tokens(session, AuthEvent::SignedIn);
        Ok(())
    }

    /// Returns the handle's session as the database has it, after a refresh if its access token has expired. The caller
    /// holds the session lock.
    async fn current_session(self: &Arc<Self>, session: Session) -> Result<Session> {
        if session.expires_at <= self.accounts.clock.now() {
            self.refresh_locked(&session).await
        } else {
            self.reload(session).await
        }
    }

    /// Looks the session up in the database. If another process with the same session file has refreshed it, takes over
    /// its tokens. If a refresh by this handle has failed and may have replaced the tokens, repeats the refresh. If the session
    /// has ended, drops it.
    async fn reload(self: &Arc<Self>, session: Session) -> Result<Session> {
        match self.accounts.sessions.get_session(&session.access_token).await {
            Ok(found) => Ok(Session { user: found.user, ..session }),
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                // The other process may have replaced the tokens in the database and not yet in the file.
                let _file_lock = self.lock_file().await?;
                if let Some(stored) = self.newer_stored_session(&session).await? {
                    return self.take_over(stored, &session).await;
                }
                if self.last_nonce(&session.refresh_token).is_some() {
                    return self.refresh_with(&session.refresh_token).await;
                }
                // A session with an expired access token may be refreshed.
                if session.expires_at > self.accounts.clock.now() {
                    // A standby that answers for a lost primary may not have the session yet.
                    if self.accounts.sessions.exists(&session.access_token).await? {
                        return Ok(session);
                    }
                    self.drop_ended_session();
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a statement whose access token has expired, or that the database refuses because the session has ended, refresh or
    /// reload the session and try again. Does nothing if statements do that already.
    fn reload_when_refused(self: &Arc<Self>) {
        let state = Arc::downgrade(self);
        self.principal.set_reload(Box::new(move || {
            let Some(state) = state.upgrade() else { return Box::pin(std::future::ready(Ok(()))) };
            // A task: it completes even if the caller of the statement leaves, and the caller needs no runtime.
            let reload = state.accounts.runtime.clone().spawn(async move {
                let _lock = state.principal.lock_session().await;
                let Some(session) = state.session() else { return Ok(()) };
                match state.current_session(session).await {
                    // The statement has an error of its own for that.
                    Err(error) if error.kind() == ErrorKind::Unauthorized => Ok(()),
                    reloaded => reloaded.map(drop),
                }
            });
            // Without a result, the runtime of the client has ended.
            Box::pin(async move { reload.await.unwrap_or(Ok(())) })
        }));
    }

    /// Replaces the tokens of the handle's session. If another process has replaced them since, takes over its tokens. The
    /// caller holds the session lock.
    async fn refresh_locked(self: &Arc<Self>, session: &Session) -> Result<Session> {
        // An `as_user` handle knows only the access token.
        if session.refresh_token.is_empty() {
            return Err(session_expired());
        }
        let _file_lock = self.lock_file().await?;
        match self.newer_stored_session(session).await? {
            Some(stored) => self.take_over(stored, session).await,
            None => self.refresh_with(&session.refresh_token).await,
        }
    }

    /// Makes the tokens that another process has saved the handle's, and replaces them if they have expired. The caller
    /// holds the session lock and the lock of the file.
    async fn take_over(self: &Arc<Self>, stored: StoredSession, own: &Session) -> Result<Session> {
        let StoredTokens { access_token, refresh_token } = stored.tokens;
        let found = match self.accounts.sessions.get_session(&access_token).await {
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                return match self.try_refresh_with(&refresh_token).await {
                    // The file had another session of the user, which has ended.
                    Err(error) if error.kind() == ErrorKind::Unauthorized => {
                        self.refresh_with(&own.refresh_token).await
                    }
                    refreshed => refreshed,
                };
            }
            found => found?,
        };
        let session = Session { refresh_token, ..found };
        self.use_tokens(&session, AuthEvent::TokenRefreshed);
        Ok(session)
    }

    /// Replaces the tokens of the handle's session by means of its refresh token. If the session has ended, drops it. The caller
    /// holds the session lock and the lock of the file.
    async fn refresh_with(self: &Arc<Self>, refresh_token: &str) -> Result<Session> {
        self.try_refresh_with(refresh_token).await.inspect_err(|error| {
            if error.kind() == ErrorKind::Unauthorized {
                self.drop_ended_session();
            }
        })
    }

    /// Does what [`refresh_with`](SessionState::refresh_with) does, and keeps a session that has ended.
    async fn try_refresh_with(self: &Arc<Self>, refresh_token: &str) -> Result<Session> {
        let _guard = self.principal.start_refresh();
        let mut refresh_token = refresh_token.to_owned();
        loop {
            let session = self.replace_tokens(&refresh_token).await?;
            self.save_new_tokens(&session);
            self.use_tokens(&session, AuthEvent::TokenRefreshed);
            // A repeated refresh returns the tokens of the first one, which may be so old that they have expired.
            if session.expires_at > self.accounts.clock.now() {
                return Ok(session);
            }
            refresh_token = session.refresh_token;
        }
    }

    /// Replaces the tokens of the session that `refresh_token` belongs to in the database. The caller holds the lock of the
    /// file.
    async fn replace_tokens(&self, refresh_token: &str) -> Result<Session> {
        let nonce = match self.last_nonce(refresh_token) {
            Some(nonce) => nonce,
            None => Nonce::new()?,
        };
        self.current.lock().last_refresh = Some((refresh_token.to_owned(), nonce.clone()));
        self.save_pending(refresh_token, &TokenPair::successor(refresh_token, &nonce, self.accounts.clock.now()));
        self.accounts.sessions.replace_tokens(refresh_token, nonce).await
    }

    /// The nonce of a refresh by this handle that used `refresh_token` and may have failed.
    fn last_nonce(&self, refresh_token: &str) -> Option<Nonce> {
        let current = self.current.lock();
        current.last_refresh.as_ref().filter(|(used, _)| used == refresh_token).map(|(_, nonce)| nonce.clone())
    }

    /// Makes the new tokens of a session that changes its password, and saves them as pending. `refresh_token` is the old token.
    /// The caller holds the lock of the file.
    pub(super) fn prepare_tokens(&self, refresh_token: &str) -> Result<TokenPair> {
        let tokens = TokenPair::new(self.accounts.clock.now())?;
        self.save_pending(refresh_token, &tokens);
        Ok(tokens)
    }

    /// Makes `session`, which has new tokens, the handle's session, and sends `event`.
    fn use_tokens(self: &Arc<Self>, session: &Session, event: AuthEvent) {
        self.replace(session, event);
        self.start_refresh_timer(session);
    }

    /// Makes `session` the handle's session and sends `event`.
    fn replace(&self, session: &Session, event: AuthEvent) {
        let mut current = self.current.lock();
        self.principal.set(Principal::User(credential(session)));
        current.session = Some(session.clone());
        current.ended = None;
        current.notify(event);
    }

    /// Starts a timer that refreshes the session when 90% of its access token's lifetime is over. The timer does not
    /// keep the handle alive.
    fn start_refresh_timer(self: &Arc<Self>, session: &Session) {
        let left = session.expires_at.duration_since(self.accounts.clock.now()).unsigned_abs();
        let state = Arc::downgrade(self);
        let timer = self.accounts.runtime.spawn(async move {
            tokio::time::sleep(left.mul_f32(0.9)).await;
            let Some(state) = state.upgrade() else { return };
            // In a second task, because the refresh aborts this timer when it replaces it.
            state.accounts.runtime.clone().spawn(async move {
                if let Err(error) = state.refresh_session().await {
                    tracing::warn!(%error, "the session could not be refreshed before its access token expires");
                }
            });
        });
        self.current.lock().refresh_timer = Some(RefreshTimer(timer.abort_handle()));
    }
}

impl CurrentSession {
    /// Sends `event` with the session to every listener. Drops none that has ended: the caller holds the lock, and dropping a callback
    /// runs code of the program.
    fn notify(&self, event: AuthEvent) {
        for listener in self.listeners.iter().filter(|listener| !listener.has_ended()) {
            listener.notify((event, self.session.clone()));
        }
    }
}

fn credential(session: &Session) -> Credential {
    Credential {
        user_id: session.user.id,
        session_id: session.id,
        access_hash: token::hash(&session.access_token),
        expires_at: session.expires_at,
    }
}

/// The error for an operation of a signed-in user on a handle without one.
fn not_signed_in() -> Error {
    Error::new(ErrorKind::Unauthorized, "Nobody is signed in")
}

#[cfg(all(test, shuttle))]
mod schedules;
