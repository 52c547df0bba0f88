//! Sign-in, accounts and sessions (SPEC 5.3, DESIGN 8).
//!
//! Invariant: every password is checked and every session looked up in the database; no state in memory proves that a
//! user is signed in. An operation on accounts or sessions runs to completion even if the caller drops its future.
//! Passwords, tokens and hashes never reach an error, a log or a `Debug`.

mod accounts;
mod email_address;
mod identity_claim;
mod password;
mod rate_limit;
mod session_file;
mod session_state;
mod session_store;
mod statements;
mod token;

use std::{fmt, path::PathBuf, sync::Arc};

use serde_json::Value as Json;
use uuid::Uuid;

pub(crate) use self::accounts::Accounts;
pub use self::identity_claim::identity_claim;
use self::{session_file::SessionFile, session_state::SessionState};
pub use crate::model::{AuthEvent, Session, User, UserPatch};
use crate::{
    callbacks::Subscription,
    database::CurrentPrincipal,
    error::{self, Error, ErrorKind, Operation, Result},
    policy::Table,
};

/// Accounts, and the session of one handle.
///
/// A client starts anonymous. [`sign_in`](Auth::sign_in) makes the client and its clones act as the user. A handle made by
/// [`as_user`](crate::Client::as_user) or [`as_service`](crate::Client::as_service) has a fixed caller: there `sign_in`
/// creates a session without changing the caller, for a server that passes the session on.
///
/// After another handle or process has ended the session, calls fail as `Unauthorized` until the next
/// [`get_session`](Auth::get_session), `sign_in` or [`sign_out`](Auth::sign_out) on this handle.
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
}

impl Auth {
    /// The `Auth` of a client's own handle, anonymous at first.
    pub(crate) fn anonymous(accounts: Arc<Accounts>, session_file: Option<PathBuf>) -> Auth {
        let state = SessionState::anonymous(Arc::clone(&accounts), session_file.map(SessionFile::new));
        Auth { accounts, state: Arc::new(state) }
    }

    /// The `Auth` of an `as_service` handle.
    pub(crate) fn service(accounts: Arc<Accounts>) -> Auth {
        let state = SessionState::service(Arc::clone(&accounts));
        Auth { accounts, state: Arc::new(state) }
    }

    /// The `Auth` of an `as_user` handle.
    ///
    /// # Errors
    /// `Unauthorized` when the session has ended or the access token has expired.
    pub(crate) async fn as_user(accounts: Arc<Accounts>, access_token: &str) -> Result<Auth> {
        let state = SessionState::as_user(Arc::clone(&accounts), access_token).await?;
        Ok(Auth { accounts, state: Arc::new(state) })
    }

    /// The principal that the handle's statements run for.
    pub(crate) fn principal(&self) -> &CurrentPrincipal {
        self.state.principal()
    }

    /// Makes the session of the session file the handle's session, if there is one and it has not ended.
    pub(crate) async fn restore_session(&self) -> Result<()> {
        self.state.restore_session().await
    }

    /// Drops the callbacks of a closed handle: they get no further events, and may hold the client.
    pub(crate) fn drop_listeners(&self) {
        self.state.drop_listeners();
    }

    /// Creates an account and returns its user. Does not sign in. The address is stored trimmed and in lower case.
    ///
    /// # Errors
    /// `AlreadyExists` for an address that has an account; `InvalidInput` for a malformed address, and for a password that
    /// is not 8 to 1,024 bytes long.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// let user = client.auth().sign_up(" Ann@Town.example", "correct horse battery")?;
    /// assert_eq!(user.email, "ann@town.example");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn sign_up(&self, email: &str, password: &str) -> Result<User> {
        let (auth, email, password) = (self.clone(), email.to_owned(), password.to_owned());
        let work = async move { auth.accounts.sign_up(&email, &password).await };
        self.run_to_completion(Operation::SignUp, work).await
    }

    /// Signs in: creates a session, makes the client act as its user, and sends `SIGNED_IN` to listeners. A session that
    /// the client had before stays valid for other holders of its tokens.
    ///
    /// # Errors
    /// `Unauthorized` for an unknown address and for a wrong password, after the same time and with the same message;
    /// `RateLimited`, with the time to wait, after too many failures for the address.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use townsquare::ErrorKind;
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    ///
    /// match client.auth().sign_in("ann@town.example", "correct horse battery") {
    ///     Ok(session) => println!("Signed in until {}", session.expires_at),
    ///     Err(error) if error.kind() == ErrorKind::RateLimited => println!("Wait {:?}", error.retry_after()),
    ///     Err(error) => println!("{error}"),
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn sign_in(&self, email: &str, password: &str) -> Result<Session> {
        let (auth, email, password) = (self.clone(), email.to_owned(), password.to_owned());
        let work = async move {
            let session = auth.accounts.sign_in(&email, &password).await?;
            auth.state.sign_in(&session).await?;
            Ok(session)
        };
        self.run_to_completion(Operation::SignIn, work).await
    }

    /// Ends the session for every handle and process that uses it, and sends `SIGNED_OUT` to listeners. Succeeds when no
    /// user is signed in.
    ///
    /// # Errors
    /// Only those of the database.
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
        let auth = self.clone();
        self.run_to_completion(Operation::SignOut, async move {
            auth.state.sign_out().await.map_err(Error::of_idempotent_call)
        })
        .await
    }

    /// Returns the session, or `None` when no user is signed in or the session has ended. Refreshes the session first if
    /// its access token has expired.
    ///
    /// # Errors
    /// Only those of the database.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// match client.auth().get_session()? {
    ///     Some(session) => println!("Signed in as {}", session.user.email),
    ///     None => println!("Anonymous"),
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn get_session(&self) -> Result<Option<Session>> {
        let auth = self.clone();
        self.run_to_completion(Operation::GetSession, async move { auth.state.get_session().await }).await
    }

    /// Replaces both tokens of the handle's session, which invalidates the old ones, and sends `TOKEN_REFRESHED` to
    /// listeners. The library also does this by itself before the access token expires.
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
    /// session.
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
    /// # Errors
    /// `Unauthorized` when no user is signed in or the password is wrong; `RateLimited` after too many failures;
    /// `AlreadyExists` for an address that has an account; `InvalidInput` for a malformed address and for a password that
    /// is not 8 to 1,024 bytes long.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use townsquare::auth::UserPatch;
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    ///
    /// let user = client.auth().update_user("correct horse battery", UserPatch::new().email("ann@new.example"))?;
    /// assert_eq!(user.email, "ann@new.example");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn update_user(&self, current_password: &str, patch: UserPatch) -> Result<User> {
        let (auth, password) = (self.clone(), current_password.to_owned());
        let work = async move {
            let patch = accounts::validated(patch)?;
            let is_empty = patch == UserPatch::new();
            let _lock = auth.principal().lock_session().await;
            let session = auth.state.require_session()?;
            let user = auth.accounts.update_user(&session, &password, patch).await?;
            if !is_empty {
                auth.state.update_user(session, user.clone());
            }
            Ok(user)
        };
        self.run_to_completion(Operation::UpdateUser, work).await
    }

    /// Deletes the signed-in user's account with everything that belongs to it: spaces, fidgets and sessions. Sends
    /// `SIGNED_OUT` to listeners.
    ///
    /// # Errors
    /// `Unauthorized` when no user is signed in or the password is wrong; `RateLimited` after too many failures.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// client.auth().delete_own_user("correct horse battery")?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn delete_own_user(&self, current_password: &str) -> Result<()> {
        let (auth, password) = (self.clone(), current_password.to_owned());
        let work = async move {
            let _lock = auth.principal().lock_session().await;
            let session = auth.state.require_session()?;
            auth.accounts.delete_own_user(&session, &password).await?;
            auth.state.clear();
            Ok(())
        };
        self.run_to_completion(Operation::DeleteUser, work).await
    }

    /// Deletes a user with everything that belongs to it: spaces, fidgets and sessions. Only the service may do this.
    ///
    /// # Errors
    /// `NotFound` for an unknown user; `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// let user = client.auth().sign_up("ann@town.example", "correct horse battery")?;
    /// client.as_service().auth().delete_user(user.id)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn delete_user(&self, user_id: Uuid) -> Result<()> {
        let work = async {
            self.principal().check_open()?;
            self.principal().principal().caller().require_service(Table::Users)?;
            self.accounts.delete_user(user_id).await
        };
        error::operation(Operation::DeleteUser, work).await
    }

    /// Links an identity key to the signed-in user. `claim` is made by [`identity_claim`]. Succeeds when the user has
    /// already linked the key.
    ///
    /// # Errors
    /// `Unauthorized` when no user is signed in, and for a claim with a wrong signature, for another user, older than five
    /// minutes or more than a minute in the future; `AlreadyExists` for a key that another user has linked; `InvalidInput`
    /// for a malformed claim.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use townsquare::{Timestamp, auth::identity_claim};
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// # let private_key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    ///
    /// let session = client.auth().sign_in("ann@town.example", "correct horse battery")?;
    /// let claim = identity_claim(session.user.id, private_key, Timestamp::now())?;
    /// client.auth().link_identity(&claim)?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn link_identity(&self, claim: &Json) -> Result<()> {
        let work = async {
            self.principal().check_open()?;
            let credential = self.state.credential()?;
            let public_key = identity_claim::verify(claim, credential.user_id, self.accounts.clock().now())?;
            self.accounts.link_identity(credential, public_key).await
        };
        error::operation(Operation::LinkIdentity, work).await
    }

    /// Calls `callback` with `INITIAL_SESSION` and the current session, then with every event of this handle's session, in
    /// order, on a thread of the library. The callback may call the library, block and panic.
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

    /// Runs `work` as a task of the client's runtime. The task completes even if the caller drops this future, so that the
    /// handle learns of every change of its session, failures are counted, and the session lock is released.
    async fn run_to_completion<T: Send + 'static>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let joined = async {
            self.principal().check_open()?;
            let task = self.accounts.runtime().spawn(work);
            task.await.unwrap_or_else(|error| {
                Err(if error.is_cancelled() {
                    Error::closed()
                } else {
                    // Drops the panic's message, which may quote a secret.
                    Error::new(ErrorKind::Internal, "the operation panicked")
                })
            })
        };
        error::operation(operation, joined).await
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").finish_non_exhaustive()
    }
}
