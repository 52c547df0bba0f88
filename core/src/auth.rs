//! Sign-in, accounts and sessions.
//!
//! Invariant: every password is checked and every session looked up in the database; no state in memory proves that a
//! user is signed in. An operation on accounts or sessions runs to completion even if the caller drops its future; only a
//! caller that waits for its turn to hash a password leaves the queue and changes nothing.
//! Passwords, tokens and hashes never reach an error, a log or a `Debug`.

mod accounts;
mod delete_user;
mod email_address;
mod find_users;
mod identities;
mod identity_claim;
mod import;
mod mailed_token;
mod password;
mod password_hash;
mod rate_limit;
mod recovery;
mod session_file;
mod session_state;
mod session_store;
mod statements;
mod token;
mod user_sessions;

use std::{path::PathBuf, sync::Arc};

use uuid::Uuid;

pub(crate) use self::accounts::{AccountOptions, Accounts};
pub(crate) use self::email_address::normal as normal_address;
pub use self::identity_claim::identity_claim;
#[cfg(feature = "postgres")]
pub(crate) use self::password_hash::is_usable as is_usable_hash;
use self::{
    password::{HashPermit, PermitRequest},
    rate_limit::CountKey,
    session_file::SessionFile,
    session_state::SessionState,
};
pub use crate::model::{AuthEvent, ImportReport, NewCredential, Session, SessionInfo, SignOutScope, User, UserPatch};
use crate::{
    callbacks::Subscription,
    client_key::ClientKey,
    database::{CurrentPrincipal, Principal, call},
    error::{Error, Operation, Result},
    policy::Table,
};

/// Accounts, and the session of one handle.
///
/// Most examples use the [blocking client](crate::blocking::Client). With the async one, add `.await` to each call.
///
/// A client starts anonymous. [`sign_in`](Auth::sign_in) makes the client and its clones act as the user. A handle made by
/// [`as_user`](crate::Client::as_user) or [`as_service`](crate::Client::as_service) has a fixed caller: there `sign_in`
/// creates a session without changing the caller, for a server that passes the session on.
///
/// After another handle or process has ended the session, calls fail as `Unauthorized` until the next
/// [`get_session`](Auth::get_session), `sign_in` or [`sign_out`](Auth::sign_out) on this handle. The first of these calls sends
/// `SIGNED_OUT` to listeners.
///
/// # Examples
///
/// ```no_run
/// use townsquare::{Config, blocking::Client};
///
/// let client = Client::open(Config::new().data_dir("town"))?;
/// client.auth().sign_up("ann@town.example", "correct horse battery")?;
/// client.auth().sign_in("ann@town.example", "correct horse battery")?;
/// // The client acts as Ann from here on.
/// client.auth().sign_out()?;
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Clone)]
pub struct Auth {
    accounts: Arc<Accounts>,
    state: Arc<SessionState>,
    /// The client key that failures and password checks are counted for.
    client: Option<ClientKey>,
}

impl Auth {
    /// The `Auth` of a client's own handle, anonymous at first.
    pub(crate) fn anonymous(accounts: Arc<Accounts>, session_file: Option<PathBuf>) -> Auth {
        let state = SessionState::anonymous(Arc::clone(&accounts), session_file.map(SessionFile::new));
        Auth { accounts, state, client: None }
    }

    /// The `Auth` of an `as_service` or `as_anonymous` handle.
    pub(crate) fn fixed(accounts: Arc<Accounts>, principal: Principal) -> Auth {
        let state = SessionState::fixed(Arc::clone(&accounts), principal);
        Auth { accounts, state: Arc::new(state), client: None }
    }

    /// The `Auth` of an `as_user` handle.
    ///
    /// # Errors
    /// `Unauthorized` when the session has ended or the access token has expired.
    pub(crate) async fn as_user(accounts: Arc<Accounts>, access_token: &str) -> Result<Auth> {
        let state = SessionState::as_user(Arc::clone(&accounts), access_token).await?;
        Ok(Auth { accounts, state: Arc::new(state), client: None })
    }

    /// The principal that the handle's statements run for.
    pub(crate) fn principal(&self) -> &CurrentPrincipal {
        self.state.principal()
    }

    /// Returns a handle of the same session with the limits of `client`.
    pub(crate) fn for_client(&self, client: Option<ClientKey>) -> Auth {
        Auth { client, ..self.clone() }
    }

    /// The client key that failures and password checks are counted for.
    pub(crate) fn client(&self) -> Option<ClientKey> {
        self.client
    }

    /// Makes the session of the session file the handle's session, if there is one and it has not ended.
    pub(crate) async fn restore_session(&self) -> Result<()> {
        self.state.restore_session().await
    }

    /// Frees the memory that hashes of a closed client have used.
    pub(crate) fn free_memory(&self) {
        self.accounts.hasher.free_memory();
    }

    /// Drops the callbacks of a closed handle: they get no further events, and may hold the client.
    pub(crate) fn drop_listeners(&self) {
        self.state.drop_listeners();
    }

    /// Creates an account and returns its user. Does not sign in. The address is stored trimmed and in lower case.
    ///
    /// The error for an address that has an account tells the caller that the account exists. The library does not check that the
    /// address receives mail: see [`create_verification_token`](Auth::create_verification_token).
    ///
    /// # Errors
    /// - `AlreadyExists` for an address that has an account.
    /// - `InvalidInput` for a malformed address, and for a password that is not 8 to 1,024 bytes long.
    /// - `RateLimited`, with the time to wait, beyond the option [`sign_up_limit`](crate::Config::sign_up_limit), and when too
    ///   many password checks are waiting.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// let user = client.auth().sign_up(" Ann@Town.example", "correct horse")?;
    /// assert_eq!(user.email, "ann@town.example");
    /// assert!(client.auth().get_session()?.is_none()); // nobody is signed in yet
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::ErrorKind;
    ///
    /// client.auth().sign_up("ann@town.example", "correct horse")?;
    /// let error = client.auth().sign_up("ANN@town.example", "battery staple").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    /// let error = client.auth().sign_up("bob@town.example", "short").unwrap_err();
    /// assert_eq!(error.to_string(), "Sign up failed: password is 8 to 1024 bytes long");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn sign_up(&self, email: &str, password: &str) -> Result<User> {
        let prepare = async {
            let email = email_address::validated(email)?;
            password::check_length(password)?;
            self.accounts.rate_limit.check_sign_ups().await?;
            Ok((email, None))
        };
        let (accounts, password) = (Arc::clone(&self.accounts), password.to_owned());
        let work = |permit, email| async move { accounts.sign_up(permit, email, &password).await };
        self.hash(Operation::SignUp, prepare, work).await
    }

    /// Signs in: creates a session, makes the client act as its user, and sends `SIGNED_IN` to listeners. A session that
    /// the client had before stays valid for other holders of its tokens.
    ///
    /// On a client that many users share, this changes the caller of all of them. A server calls
    /// [`create_session`](Auth::create_session) instead, on a handle of [`with_client_key`](crate::Client::with_client_key).
    /// Then each client has limits of its own before the limits of the address: 50 failures, one of which is forgotten every
    /// minute, and 8 password checks at the same time. A client from which the user has signed in within the last 180 days is
    /// not kept waiting by the failures of others.
    ///
    /// # Errors
    /// - `Unauthorized` for an unknown address and for a wrong password, after the same time and with the same message.
    /// - `RateLimited`, with the time to wait, after too many failures for the address, and when too many password checks are
    ///   waiting. After ten failures the wait is 30 seconds; each further failure doubles it, up to 15 minutes. After the wait,
    ///   one failure is forgotten every 15 minutes; a sign-in forgets all.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// client.auth().sign_up("ann@town.example", "correct horse")?;
    /// let session = client.auth().sign_in("ann@town.example", "correct horse")?;
    /// assert_eq!(client.auth().get_session()?, Some(session));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::ErrorKind;
    ///
    /// match client.auth().sign_in("ann@town.example", "a wrong password") {
    ///     Ok(session) => println!("Signed in until {}", session.expires_at),
    ///     Err(error) if error.kind() == ErrorKind::RateLimited => println!("Wait {:?}", error.retry_after()),
    ///     Err(error) => assert_eq!(error.to_string(), "Sign in failed: Invalid login credentials"),
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn sign_in(&self, email: &str, password: &str) -> Result<Session> {
        let (auth, address, password) = (self.clone(), email.to_owned(), password.to_owned());
        let work = |permit, ()| async move {
            let session = auth.accounts.sign_in(permit, &address, &password, auth.client).await?;
            auth.state.sign_in(&session).await?;
            Ok(session)
        };
        let prepare = async {
            self.state.detached.wait(|()| true).await;
            Ok(((), self.accounts.check_sign_in(email, self.client).await?))
        };
        self.hash(Operation::SignIn, prepare, work).await
    }

    /// Creates a session and returns it, for a server that passes the session on to the user of a request. The caller of the
    /// handle does not change, and listeners get no event.
    ///
    /// # Errors
    /// As [`sign_in`](Auth::sign_in).
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// client.auth().sign_up("ann@town.example", "correct horse")?;
    /// let request = client.with_client_key("203.0.113.7"); // the address of the peer
    /// let session = request.auth().create_session("ann@town.example", "correct horse")?;
    /// println!("Set-Cookie: session={}", session.access_token);
    /// assert!(client.auth().get_session()?.is_none());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn create_session(&self, email: &str, password: &str) -> Result<Session> {
        let (auth, address, password) = (self.clone(), email.to_owned(), password.to_owned());
        let work = |permit, ()| async move { auth.accounts.sign_in(permit, &address, &password, auth.client).await };
        let prepare = async { Ok(((), self.accounts.check_sign_in(email, self.client).await?)) };
        self.hash(Operation::SignIn, prepare, work).await
    }

    /// Ends the session for every handle and process that uses it, and sends `SIGNED_OUT` to listeners. Succeeds when no
    /// user is signed in.
    ///
    /// # Errors
    /// Only errors of the database.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// client.auth().sign_out()?;
    /// assert!(client.auth().get_session()?.is_none());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn sign_out(&self) -> Result<()> {
        self.sign_out_scope(SignOutScope::Local).await
    }

    /// Ends the sessions that `scope` names: the handle's session ([`sign_out`](Auth::sign_out)), the user's other
    /// sessions, or all of them. Does nothing when no user is signed in.
    ///
    /// # Errors
    /// `Unauthorized` for [`Others`](SignOutScope::Others) and [`Global`](SignOutScope::Global) when the handle's session
    /// has ended. Then no session ends.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use townsquare::auth::SignOutScope;
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    ///
    /// client.auth().sign_out_scope(SignOutScope::Others)?;
    /// assert!(client.auth().get_session()?.is_some());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn sign_out_scope(&self, scope: SignOutScope) -> Result<()> {
        let auth = self.clone();
        self.run_to_completion(Operation::SignOut, async move {
            auth.state.sign_out(scope).await.map_err(Error::of_idempotent_call)
        })
        .await
    }

    /// Returns the session, or `None` when no user is signed in or the session has ended. Refreshes the session first if
    /// its access token has expired.
    ///
    /// This reads the database: another process may have ended the session. After a `None` the client is anonymous.
    ///
    /// # Errors
    /// Only errors of the database.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// let session = client.auth().get_session()?;
    /// assert_eq!(session.unwrap().user.email, "ann@town.example");
    ///
    /// client.auth().sign_out()?;
    /// assert!(client.auth().get_session()?.is_none());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn get_session(&self) -> Result<Option<Session>> {
        let auth = self.clone();
        self.run_to_completion(Operation::GetSession, async move { auth.state.get_session().await }).await
    }

    /// Replaces both tokens of the handle's session, which invalidates the old ones, and sends `TOKEN_REFRESHED` to
    /// listeners. The library also does this by itself before the access token expires, and at a call after that.
    ///
    /// # Errors
    /// `Unauthorized` when no user is signed in or the session has ended.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// let session = client.auth().refresh_session()?;
    /// println!("Valid until {}", session.expires_at);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn refresh_session(&self) -> Result<Session> {
        let auth = self.clone();
        self.run_to_completion(Operation::RefreshSession, async move { auth.state.refresh_session().await }).await
    }

    /// Replaces both tokens of the session that `refresh_token` belongs to, for servers. Changes a handle only if the
    /// session is the handle's own.
    ///
    /// # Errors
    /// `Unauthorized` for an unknown or expired refresh token, and for one that was used before, which also ends its
    /// session. After a lost reply the call may be repeated: for 10 s the same refresh token gives the same new tokens, as
    /// long as these were not used in turn.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// # let refresh_token = "tsr_0123";
    /// let session = client.as_service().auth().refresh_session_of(refresh_token)?;
    /// let user = client.as_user(&session.access_token)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn refresh_session_of(&self, refresh_token: &str) -> Result<Session> {
        let (auth, token) = (self.clone(), refresh_token.to_owned());
        let work = async move { auth.state.refresh_session_of(&token).await };
        self.run_to_completion(Operation::RefreshSession, work).await
    }

    /// Signs in by the refresh token of a session that the program stored: replaces the session's tokens, makes the client
    /// act as its user, and sends `SIGNED_IN` to listeners.
    ///
    /// # Errors
    /// `Unauthorized` as [`refresh_session_of`](Auth::refresh_session_of); `InvalidInput` on a handle with a fixed caller.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// # let stored_refresh_token = "tsr_0123";
    /// let session = client.auth().set_session(stored_refresh_token)?;
    /// // The stored token is spent: store the new one in its place.
    /// let stored_refresh_token = session.refresh_token;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn set_session(&self, refresh_token: &str) -> Result<Session> {
        let (auth, token) = (self.clone(), refresh_token.to_owned());
        self.run_to_completion(Operation::SetSession, async move { auth.state.set_session(&token).await }).await
    }

    /// Changes the signed-in user's address or password, ends all other sessions of the user, and sends `USER_UPDATED` to
    /// listeners. An empty patch only checks the password.
    ///
    /// A new password also replaces both tokens of this session, so that a copy of the old ones is worth nothing: a program that
    /// stores the refresh token stores the new one, which listeners and [`get_session`](Auth::get_session) have, also on a
    /// handle of [`as_user`](crate::Client::as_user). A new address voids mailed tokens and the verification of the old one.
    ///
    /// # Errors
    /// - `Unauthorized` when no user is signed in or the password is wrong.
    /// - `RateLimited` after too many wrong passwords in sessions of this user, which failed sign-ins do not count towards, and
    ///   when too many password checks are waiting.
    /// - `AlreadyExists` for an address that has an account.
    /// - `InvalidInput` for a malformed address and for a password that is not 8 to 1,024 bytes long.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::auth::UserPatch;
    ///
    /// let user = client.auth().update_user("correct horse", UserPatch::new().email("ann@new.example"))?;
    /// assert_eq!(user.email, "ann@new.example");
    /// client.auth().update_user("correct horse", UserPatch::new().password("battery staple"))?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn update_user(&self, current_password: &str, patch: UserPatch) -> Result<User> {
        let prepare = async {
            let patch = accounts::validated(patch)?;
            let account = self.accounts.check_user(self.state.credential().await?.user_id).await?;
            Ok((patch, account))
        };
        let (auth, password) = (self.clone(), current_password.to_owned());
        let work = |permit: HashPermit, patch| async move {
            let _lock = auth.principal().lock_session().await;
            let session = auth.state.require_session().await?;
            if patch == UserPatch::new() {
                return auth.accounts.confirm_user(permit, &session, &password).await;
            }
            let change = auth.accounts.confirm_change(&permit, &session, &password, patch).await?;
            let replaces_tokens = change.replaces_tokens();
            let _file_lock = if replaces_tokens { auth.state.lock_file().await? } else { None };
            let _guard = replaces_tokens.then(|| auth.principal().start_refresh());
            let tokens = replaces_tokens.then(|| auth.state.prepare_tokens(&session.refresh_token)).transpose()?;
            let session = auth.accounts.update_user(permit, &session, &password, change, tokens).await?;
            auth.state.update_user(&session);
            Ok(session.user)
        };
        self.hash(Operation::UpdateUser, prepare, work).await
    }

    /// Sets a user's password and ends every session of the user. Only the service may do this.
    ///
    /// # Errors
    /// `NotFound` for an unknown user; `InvalidInput` for a password that is not 8 to 1,024 bytes long; `Unauthorized`
    /// for an anonymous caller, `Forbidden` for a user; `RateLimited` when too many password checks are waiting.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// let service = client.as_service();
    /// if let Some(user) = service.auth().find_user("ann@town.example")? {
    ///     service.auth().set_password(user.id, "a better passphrase")?;
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn set_password(&self, user_id: Uuid, password: &str) -> Result<()> {
        let prepare = async {
            self.require_service()?;
            password::check_length(password)?;
            self.accounts.require_user(user_id).await?;
            Ok(((), None))
        };
        let (accounts, password) = (Arc::clone(&self.accounts), password.to_owned());
        let work = |permit, ()| async move { accounts.set_password(permit, user_id, &password).await };
        self.hash(Operation::SetPassword, prepare, work).await
    }

    /// Calls `callback` with `INITIAL_SESSION` and the current session, then with every event of this handle's session, in
    /// order, on a thread of the library. The callback may call the library, block and panic. At most 1,024 events wait for
    /// it; one that falls further behind misses the oldest of them, and always gets the last one.
    ///
    /// If the session ends elsewhere, `SIGNED_OUT` comes once: when a call or the refresh by the library finds the session gone. A
    /// handle without calls learns it at its next refresh, within an hour; one of [`as_user`](crate::Client::as_user), which has no
    /// refresh, only by a call.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// let subscription = client.auth().on_auth_state_change(|event, session| {
    ///     let user = session.map_or("anonymous".to_owned(), |session| session.user.email);
    ///     println!("{}: {user}", event.as_str());
    /// });
    /// subscription.unsubscribe();
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn on_auth_state_change(
        &self,
        mut callback: impl FnMut(AuthEvent, Option<Session>) + Send + 'static,
    ) -> Subscription {
        self.state.on_auth_state_change(move |(event, session)| callback(event, session))
    }

    /// # Errors
    /// `Closed` on a closed handle; `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    fn require_service(&self) -> Result<()> {
        self.principal().require_service(Table::Users)
    }

    /// Runs `work` if the caller is the service.
    async fn run_as_service<T>(&self, operation: Operation, work: impl Future<Output = Result<T>>) -> Result<T> {
        let work = async {
            self.require_service()?;
            work.await
        };
        call(self.principal(), operation, work).await
    }

    /// Runs an operation that hashes a password: see [`with_permit`](Auth::with_permit).
    async fn hash<P, T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        operation: Operation,
        prepare: impl Future<Output = Result<(P, Option<CountKey>)>>,
        work: impl FnOnce(HashPermit, P) -> F,
    ) -> Result<T> {
        call(self.principal(), operation, self.with_permit(prepare, work)).await
    }

    /// Runs `prepare`, waits for a hash permit, then runs `work` to completion with the permit and the result of `prepare`.
    /// `prepare` also returns the account if the caller is known to it. A caller that drops the future before `work` begins
    /// leaves the queue.
    async fn with_permit<P, T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        prepare: impl Future<Output = Result<(P, Option<CountKey>)>>,
        work: impl FnOnce(HashPermit, P) -> F,
    ) -> Result<T> {
        self.principal().check_open()?;
        let (prepared, known_account) = prepare.await?;
        let caller = PermitRequest { client: self.client, known_account };
        let permit = self.accounts.hasher.permit(caller).await?;
        self.complete(work(permit, prepared)).await
    }

    /// Runs an operation to completion: see [`complete`](Auth::complete).
    async fn run_to_completion<T: Send + 'static>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let work = async {
            self.state.detached.wait(|()| true).await;
            self.complete(work).await
        };
        call(self.principal(), operation, work).await
    }

    /// Runs `work` as a task of the client's runtime. The task completes even if the caller drops this future, so that the
    /// handle learns of every change of its session, failures are counted, and the session lock is released.
    async fn complete<T: Send + 'static>(&self, work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
        self.principal().check_open()?;
        self.accounts.runtime.complete_in_order(&self.state.detached, vec![()], Box::pin(work)).await
    }
}

crate::model::opaque!(Auth);
