//! Sign-in: accounts, sessions, and who a handle acts for (SPEC 5.3, DESIGN 8).
//!
//! Invariant: a password is checked, and a session looked up, in the database each time; nothing in memory says by itself that
//! somebody is signed in. What was begun is seen through, also when whoever asked for it goes away. Passwords, tokens and
//! hashes reach no error, no log and no `Debug`.

mod address;
mod claim;
mod current;
mod desk;
mod hasher;
mod keeping;
mod seat;
mod sessions;
mod statements;
mod throttle;
mod token;

use std::{path::PathBuf, sync::Arc};

use serde_json::Value as Json;
use uuid::Uuid;

pub use self::claim::identity_claim;
pub(crate) use self::{desk::Desk, seat::Seat};
use self::{keeping::SessionFile, statements as sql};
pub use crate::model::{AuthEvent, Session, User, UserPatch};
use crate::{
    callbacks::Subscription,
    error::{Error, ErrorKind, Operation, Result, WithOperation},
    policy::Table,
};

/// Accounts and sessions, as one handle has them.
///
/// The client that was opened, and its clones, become the user who signs in. A handle made by
/// [`as_user`](crate::Client::as_user) or [`as_service`](crate::Client::as_service) keeps its caller: there
/// [`sign_in`](Auth::sign_in) only makes a session, for a server to hand out.
///
/// A session that was ended elsewhere fails every call as `Unauthorized` until [`get_session`](Auth::get_session) finds
/// it gone, or somebody signs in or out here.
#[derive(Clone)]
pub struct Auth {
    seat: Arc<Seat>,
    desk: Arc<Desk>,
}

impl Auth {
    /// The handle that a client is opened with; nobody, until somebody signs in.
    pub(crate) fn open(desk: Arc<Desk>, session_file: Option<PathBuf>) -> Auth {
        Auth { seat: Arc::new(Seat::open(session_file.map(SessionFile::new))), desk }
    }

    /// The handle of trusted code.
    pub(crate) fn service(desk: Arc<Desk>) -> Auth {
        Auth { seat: Arc::new(Seat::service()), desk }
    }

    /// The handle of one session.
    pub(crate) fn seated(desk: Arc<Desk>, seat: Arc<Seat>) -> Auth {
        Auth { seat, desk }
    }

    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// Makes an account and returns its user; signs nobody in. The address is kept trimmed and in lower case.
    ///
    /// # Errors
    /// `AlreadyExists` for an address that has an account, `InvalidInput` for one that is none and for a password that is
    /// not 8 to 1,024 bytes long.
    pub async fn sign_up(&self, email: &str, password: &str) -> Result<User> {
        let (desk, email, password) = (Arc::clone(&self.desk), email.to_owned(), password.to_owned());
        self.desk
            .see_through(async move { desk.sign_up(&email, &password).await })
            .await
            .with_operation(Operation::SignUp)
    }

    /// Signs in: the client acts as this user from here on, and its listeners hear `SIGNED_IN`. A session that it had
    /// goes on for whoever else has its tokens.
    ///
    /// # Errors
    /// `Unauthorized` for an unknown address and for a wrong password, in the same words and the same time; `RateLimited`,
    /// with the time to wait, for an address with too many failures.
    pub async fn sign_in(&self, email: &str, password: &str) -> Result<Session> {
        let (auth, email, password) = (self.clone(), email.to_owned(), password.to_owned());
        self.desk
            .see_through(async move { auth.enter(&email, &password).await })
            .await
            .with_operation(Operation::SignIn)
    }

    /// Ends the session, for every handle and process that uses it. Nobody being signed in is fine.
    ///
    /// # Errors
    /// Those of the database alone.
    pub async fn sign_out(&self) -> Result<()> {
        let auth = self.clone();
        self.desk.see_through(async move { auth.end().await }).await.with_operation(Operation::SignOut)
    }

    /// The session, if there is one and it has not ended; an access token that is too old is refreshed first.
    ///
    /// # Errors
    /// Those of the database alone.
    pub async fn get_session(&self) -> Result<Option<Session>> {
        let auth = self.clone();
        self.desk.see_through(async move { auth.current().await }).await.with_operation(Operation::GetSession)
    }

    /// New tokens for the handle's session; both old ones die. Listeners hear `TOKEN_REFRESHED`.
    ///
    /// # Errors
    /// `Unauthorized` when nobody is signed in or the session has ended.
    pub async fn refresh_session(&self) -> Result<Session> {
        let auth = self.clone();
        self.desk.see_through(async move { auth.refresh().await }).await.with_operation(Operation::RefreshSession)
    }

    /// New tokens for the session of this refresh token, for servers: no handle changes, unless the session is its own.
    ///
    /// # Errors
    /// `Unauthorized` for a token that is none, has expired or was used before; the last also ends its session.
    pub async fn refresh_session_of(&self, refresh_token: &str) -> Result<Session> {
        let (auth, token) = (self.clone(), refresh_token.to_owned());
        self.desk
            .see_through(async move { auth.refresh_of(&token).await })
            .await
            .with_operation(Operation::RefreshSession)
    }

    /// Takes up a session that was kept elsewhere: the client acts as its user from here on, with new tokens.
    ///
    /// # Errors
    /// `Unauthorized` for a refresh token that is none, has expired or was used before; `InvalidInput` on a handle whose
    /// caller is fixed.
    pub async fn set_session(&self, refresh_token: &str) -> Result<Session> {
        let (auth, token) = (self.clone(), refresh_token.to_owned());
        self.desk.see_through(async move { auth.take_up(&token).await }).await.with_operation(Operation::SetSession)
    }

    /// Changes the signed-in user's address or password, and ends all the user's other sessions. Listeners hear
    /// `USER_UPDATED`. A patch of nothing only checks the password.
    ///
    /// # Errors
    /// `Unauthorized` when nobody is signed in or the password is wrong, `RateLimited` after too many failures,
    /// `AlreadyExists` for an address that has an account, `InvalidInput` for a bad address or password.
    pub async fn update_user(&self, current_password: &str, patch: UserPatch) -> Result<User> {
        let (auth, password) = (self.clone(), current_password.to_owned());
        self.desk
            .see_through(async move { auth.change(&password, patch).await })
            .await
            .with_operation(Operation::UpdateUser)
    }

    /// Deletes one's own account, with everything that belongs to it: spaces, fidgets, sessions.
    ///
    /// # Errors
    /// As [`update_user`](Auth::update_user).
    pub async fn delete_own_user(&self, current_password: &str) -> Result<()> {
        let (auth, password) = (self.clone(), current_password.to_owned());
        self.desk
            .see_through(async move { auth.delete_own(&password).await })
            .await
            .with_operation(Operation::DeleteUser)
    }

    /// Deletes a user, with everything that belongs to it; the service only.
    ///
    /// # Errors
    /// `NotFound` for an unknown user; `Unauthorized` for nobody, `Forbidden` for a user.
    pub async fn delete_user(&self, user_id: Uuid) -> Result<()> {
        let delete = async {
            self.seat.acting().principal().caller().require_service(Table::Users)?;
            self.desk.delete_user(user_id).await
        };
        delete.await.with_operation(Operation::DeleteUser)
    }

    /// Links an identity key to the signed-in user, by a claim of [`identity_claim`]. Once more is fine.
    ///
    /// # Errors
    /// `Unauthorized` when nobody is signed in, and for a claim that is wrong, another user's, older than five minutes or
    /// from the future; `AlreadyExists` for a key that another user has linked; `InvalidInput` for what is no claim.
    pub async fn link_identity(&self, claim: &Json) -> Result<()> {
        let link = async {
            let (user_id, access_hash) = self.signed_in()?;
            let now = self.desk.clock.now();
            let key = claim::verified(claim, user_id, now)?;
            let link = self.desk.scope.write(move |transaction| {
                Box::pin(async move {
                    sessions::require(transaction, &access_hash).await?;
                    let values = [key.as_str().into(), user_id.into(), now.into()];
                    transaction.execute(&sql::LINK_IDENTITY, &values).await?;
                    let holder = transaction.fetch(&sql::GET_IDENTITY, &[key.as_str().into()], sql::id).await?.pop();
                    if holder == Some(user_id) { Ok(()) } else { Err(taken()) }
                })
            });
            link.await
        };
        link.await.with_operation(Operation::LinkIdentity)
    }

    /// Has `callback` called with `INITIAL_SESSION` and the session there is, then with every event of this handle's
    /// session, in order, on a thread of the library's.
    pub fn on_auth_state_change(
        &self,
        mut callback: impl FnMut(AuthEvent, Option<Session>) + Send + 'static,
    ) -> Subscription {
        self.seat.listen(self.desk.callbacks.clone(), move |(event, session)| callback(event, session))
    }

    /// Drops the callbacks of a client that was closed: there is nothing to tell them any more, and they may hold the client.
    pub(crate) fn forget_listeners(&self) {
        self.seat.forget_listeners();
    }
}

fn nobody() -> Error {
    Error::new(ErrorKind::Unauthorized, "Nobody is signed in")
}

/// Another user has linked this identity key.
fn taken() -> Error {
    Error::database(Some("23505"), ErrorKind::AlreadyExists, "")
}
