//! Sign-in: accounts, sessions, and who a handle acts for (SPEC 5.3, DESIGN 8).
//!
//! Invariant: a password is checked, and a session looked up, in the database each time; nothing in memory says by itself that
//! somebody is signed in. Passwords, tokens and hashes reach no error, no log and no `Debug`.

mod address;
mod claim;
mod hasher;
mod keeping;
mod seat;
mod sessions;
mod statements;
mod throttle;
mod token;

use std::{path::PathBuf, sync::Arc};

use serde_json::Value as Json;
use tokio::runtime::Handle;
use uuid::Uuid;

pub use self::claim::identity_claim;
pub(crate) use self::seat::Seat;
use self::{
    hasher::{Hasher, Permit, Verdict},
    keeping::SessionFile,
    sessions::{Admission, Sessions, invalid_credentials},
    statements::{self as sql, Account},
    throttle::Throttle,
};
use crate::{
    clock::Clock,
    database::{Principal, Scope, session_ended, session_expired},
    dispatch::Subscription,
    error::{During, Error, ErrorKind, Operation, Result},
    model::{AuthEvent, Session, User, UserPatch},
    policy::Caller,
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

/// What all handles of a client share.
pub(crate) struct Desk {
    /// The service's: what is asked here, passwords and tokens answer.
    scope: Scope,
    clock: Clock,
    sessions: Sessions,
    throttle: Throttle,
    hasher: Hasher,
    runtime: Handle,
    /// Where listeners are called.
    callbacks: Handle,
}

impl Desk {
    pub(crate) fn new(service: Scope, clock: Clock, runtime: Handle, callbacks: Handle) -> Desk {
        let sessions = Sessions::new(service.clone(), clock.clone());
        let throttle = Throttle::new(service.clone(), clock.clone());
        Desk { scope: service, clock, sessions, throttle, hasher: Hasher::new(runtime.clone()), runtime, callbacks }
    }

    /// The seat of a handle for one session.
    ///
    /// # Errors
    /// `Unauthorized` when the session has ended.
    pub(crate) async fn seat_of(&self, access_token: &str) -> Result<Arc<Seat>> {
        Ok(Arc::new(Seat::of(self.sessions.find(access_token).await?)))
    }
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
        let sign_up = async {
            let email = address::checked(email)?;
            address::check_password(password)?;
            let hash = self.desk.hasher.permit().await?.hash(password).await?;
            let now = self.desk.clock.now();
            let insert = self.desk.scope.write(move |transaction| {
                Box::pin(async move {
                    let values = [Uuid::new_v4().into(), email.into(), now.into()];
                    let user = transaction.fetch(&sql::INSERT_USER, &values, sql::user).await?.pop();
                    let user = user.ok_or_else(Error::not_found)?;
                    transaction.execute(&sql::INSERT_CREDENTIALS, &[user.id.into(), hash.into(), now.into()]).await?;
                    Ok(user)
                })
            });
            insert.await
        };
        sign_up.await.during(Operation::SignUp)
    }

    /// Signs in: the client acts as this user from here on, and its listeners hear `SIGNED_IN`. A session that it had
    /// goes on for whoever else has its tokens.
    ///
    /// # Errors
    /// `Unauthorized` for an unknown address and for a wrong password, in the same words and the same time; `RateLimited`,
    /// with the time to wait, for an address with too many failures.
    pub async fn sign_in(&self, email: &str, password: &str) -> Result<Session> {
        let sign_in = async {
            let session = self.desk.sign_in(email, password).await?;
            if !self.seat.is_fixed() {
                let _turn = self.seat.turn().await;
                self.take_new(&session, AuthEvent::SignedIn).await?;
            }
            Ok(session)
        };
        sign_in.await.during(Operation::SignIn)
    }

    /// Ends the session, for every handle and process that uses it. Nobody being signed in is fine.
    ///
    /// # Errors
    /// Those of the database alone.
    pub async fn sign_out(&self) -> Result<()> {
        let sign_out = async {
            let _turn = self.seat.turn().await;
            if let Some(session) = self.seat.session() {
                self.desk.sessions.end(&session.access_token).await?;
            }
            self.seat.leave();
            Ok(())
        };
        sign_out.await.during(Operation::SignOut)
    }

    /// The session, if there is one and it has not ended; an access token that is too old is refreshed first.
    ///
    /// # Errors
    /// Those of the database alone.
    pub async fn get_session(&self) -> Result<Option<Session>> {
        let get = async {
            let _turn = self.seat.turn().await;
            let Some(session) = self.seat.session() else { return Ok(None) };
            let current = if session.expires_at <= self.desk.clock.now() {
                self.renew(&session).await
            } else {
                let found = self.desk.sessions.find(&session.access_token).await;
                found.map(|found| Session { user: found.user, ..session })
            };
            match current {
                Err(error) if error.kind() == ErrorKind::Unauthorized => {
                    self.seat.leave();
                    Ok(None)
                }
                current => current.map(Some),
            }
        };
        get.await.during(Operation::GetSession)
    }

    /// New tokens for the handle's session; both old ones die. Listeners hear `TOKEN_REFRESHED`.
    ///
    /// # Errors
    /// `Unauthorized` when nobody is signed in or the session has ended.
    pub async fn refresh_session(&self) -> Result<Session> {
        let refresh = async {
            let _turn = self.seat.turn().await;
            let session = self.seat.session().ok_or_else(nobody)?;
            self.renew(&session).await
        };
        refresh.await.during(Operation::RefreshSession)
    }

    /// New tokens for the session of this refresh token, for servers: no handle changes, unless the session is its own.
    ///
    /// # Errors
    /// `Unauthorized` for a token that is none, has expired or was used before; the last also ends its session.
    pub async fn refresh_session_of(&self, refresh_token: &str) -> Result<Session> {
        let refresh = async {
            let _turn = self.seat.turn().await;
            match self.seat.session() {
                Some(own) if own.refresh_token == refresh_token => self.renew(&own).await,
                _ => self.desk.sessions.rotate(refresh_token).await,
            }
        };
        refresh.await.during(Operation::RefreshSession)
    }

    /// Takes up a session that was kept elsewhere: the client acts as its user from here on, with new tokens.
    ///
    /// # Errors
    /// `Unauthorized` for a refresh token that is none, has expired or was used before; `InvalidInput` on a handle whose
    /// caller is fixed.
    pub async fn set_session(&self, refresh_token: &str) -> Result<Session> {
        let set = async {
            if self.seat.is_fixed() {
                return Err(Error::invalid_input("This handle has a fixed caller; open a client, or use as_user"));
            }
            let _turn = self.seat.turn().await;
            let session = self.desk.sessions.rotate(refresh_token).await?;
            self.take_new(&session, AuthEvent::SignedIn).await?;
            Ok(session)
        };
        set.await.during(Operation::SetSession)
    }

    /// Changes the signed-in user's address or password, and ends all the user's other sessions. Listeners hear
    /// `USER_UPDATED`. A patch of nothing only checks the password.
    ///
    /// # Errors
    /// `Unauthorized` when nobody is signed in or the password is wrong, `RateLimited` after too many failures,
    /// `AlreadyExists` for an address that has an account, `InvalidInput` for a bad address or password.
    pub async fn update_user(&self, current_password: &str, patch: UserPatch) -> Result<User> {
        let update = async {
            let email = patch.email.as_deref().map(address::checked).transpose()?;
            patch.password.as_deref().map(address::check_password).transpose()?;
            let _turn = self.seat.turn().await;
            let (session, account, permit) = self.confirmed(current_password).await?;
            if patch == UserPatch::new() {
                return Ok(account.user);
            }
            let hash = match &patch.password {
                Some(password) => Some(permit.hash(password).await?),
                None => None,
            };
            drop(permit);
            let user = self.desk.change_account(&session, account, email, hash).await?;
            let session = Session { user: user.clone(), ..session };
            self.seat.take(&session, AuthEvent::UserUpdated)?;
            Ok(user)
        };
        update.await.during(Operation::UpdateUser)
    }

    /// Deletes one's own account, with everything that belongs to it: spaces, fidgets, sessions.
    ///
    /// # Errors
    /// As [`update_user`](Auth::update_user).
    pub async fn delete_own_user(&self, current_password: &str) -> Result<()> {
        let delete = async {
            let _turn = self.seat.turn().await;
            let (session, _, permit) = self.confirmed(current_password).await?;
            drop(permit);
            self.desk.delete_user(session.user.id).await?;
            self.seat.leave();
            Ok(())
        };
        delete.await.during(Operation::DeleteUser)
    }

    /// Deletes a user, with everything that belongs to it; the service only.
    ///
    /// # Errors
    /// `NotFound` for an unknown user; `Unauthorized` for nobody, `Forbidden` for a user.
    pub async fn delete_user(&self, user_id: Uuid) -> Result<()> {
        let delete = async {
            match self.seat.acting().principal().caller() {
                Caller::Service => self.desk.delete_user(user_id).await,
                Caller::Anonymous => Err(Error::permission_denied("users", true)),
                Caller::User(_) => Err(Error::permission_denied("users", false)),
            }
        };
        delete.await.during(Operation::DeleteUser)
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
        link.await.during(Operation::LinkIdentity)
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

    /// Takes up the session that was kept in a file when the client was last open.
    pub(crate) async fn restore(&self) -> Result<()> {
        let Some(kept) = self.seat.file().map(SessionFile::load).transpose()?.flatten() else { return Ok(()) };
        let restored = match self.desk.sessions.find(&kept.access_token).await {
            Ok(found) => Ok(Session { refresh_token: kept.refresh_token, ..found }),
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                self.desk.sessions.rotate(&kept.refresh_token).await
            }
            Err(error) => Err(error),
        };
        match restored {
            Ok(session) => {
                self.seat.take(&session, AuthEvent::SignedIn)?;
                self.renew_in_time(&session);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                self.seat.leave();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a new session the handle's, or ends it when that cannot be.
    async fn take_new(&self, session: &Session, event: AuthEvent) -> Result<()> {
        if let Err(error) = self.seat.take(session, event) {
            self.desk.sessions.end(&session.access_token).await?;
            return Err(error);
        }
        self.renew_in_time(session);
        Ok(())
    }

    /// New tokens for the handle's session. To be called in turn.
    async fn renew(&self, session: &Session) -> Result<Session> {
        // Of a handle made by `as_user` only the access token is known.
        if session.refresh_token.is_empty() {
            return Err(session_ended());
        }
        // Another process with the same file may have been first: its tokens are the ones that count.
        let kept = self.seat.file().map(SessionFile::load).transpose()?.flatten();
        let refresh_token = kept.map_or_else(|| session.refresh_token.clone(), |kept| kept.refresh_token);
        let renewed = self.desk.sessions.rotate(&refresh_token).await?;
        self.take_new(&renewed, AuthEvent::TokenRefreshed).await?;
        Ok(renewed)
    }

    /// Refreshes the session by itself shortly before its access token ends, as long as the handle is there.
    fn renew_in_time(&self, session: &Session) {
        let left = session.expires_at.duration_since(self.desk.clock.now()).unsigned_abs();
        let (seat, desk) = (Arc::downgrade(&self.seat), Arc::downgrade(&self.desk));
        let renewal = self.desk.runtime.spawn(async move {
            tokio::time::sleep(left.mul_f32(0.9)).await;
            let (Some(seat), Some(desk)) = (seat.upgrade(), desk.upgrade()) else { return };
            let auth = Auth { seat, desk };
            if let Err(error) = auth.refresh_session().await {
                tracing::warn!(%error, "the session could not be refreshed ahead of time");
            }
        });
        self.seat.set_renewal(renewal.abort_handle());
    }

    /// The signed-in user, and the hash of the access token that says so.
    fn signed_in(&self) -> Result<(Uuid, String)> {
        match &*self.seat.acting().principal() {
            Principal::User(pass) if pass.expires_at <= self.desk.clock.now() => Err(session_expired()),
            Principal::User(pass) => Ok((pass.user_id, pass.access_hash.clone())),
            Principal::Anonymous | Principal::Service => Err(nobody()),
        }
    }

    /// The signed-in user's session and account, after the password was given once more.
    async fn confirmed(&self, password: &str) -> Result<(Session, Account, Permit)> {
        self.signed_in()?;
        let session = self.seat.session().ok_or_else(nobody)?;
        // Whose session has ended hears that, not whether the password was right.
        self.desk.sessions.find(&session.access_token).await?;
        let account = self.desk.scope.fetch(&sql::GET_ACCOUNT, &[session.user.id.into()], sql::account).await?.pop();
        let address = account.as_ref().map_or(session.user.email.as_str(), |account| &account.user.email);
        let (verdict, permit) = self.desk.check(&token::hash(address), password, account.as_ref()).await?;
        match account {
            Some(account) if verdict != Verdict::Wrong => Ok((session, account, permit)),
            _ => Err(invalid_credentials()),
        }
    }
}

impl Desk {
    async fn sign_in(&self, email: &str, password: &str) -> Result<Session> {
        let email = address::normalised(email);
        let address_hash = token::hash(&email);
        // Answered at once: not even a turn is waited for.
        self.throttle.check(&address_hash).await?;
        // No address has a NUL in it, and PostgreSQL takes none.
        let known = if email.contains('\0') { "" } else { &email };
        let account = self.scope.fetch(&sql::GET_ACCOUNT_BY_EMAIL, &[known.into()], sql::account).await?.pop();
        let (verdict, permit) = self.check(&address_hash, password, account.as_ref()).await?;
        drop(permit);
        let renewed_hash = match verdict {
            Verdict::Wrong => None,
            Verdict::Right => Some(None),
            Verdict::RightAndRenewed(hash) => Some(Some(hash)),
        };
        let (Some(renewed_hash), Some(Account { user, password_hash })) = (renewed_hash, account) else {
            return Err(invalid_credentials());
        };
        let admission = Admission { user, password_hash, renewed_hash, address_hash };
        self.sessions.begin(admission).await?.ok_or_else(invalid_credentials)
    }

    /// Checks a password, and counts it when it is wrong. The count is looked at and added to while the permit is held, so no
    /// more guesses slip past it than there are permits.
    async fn check(&self, address_hash: &str, password: &str, account: Option<&Account>) -> Result<(Verdict, Permit)> {
        let permit = self.hasher.permit().await?;
        self.throttle.check(address_hash).await?;
        let kept = account.map(|account| account.password_hash.clone());
        let verdict = permit.verify(password, kept).await?;
        if verdict == Verdict::Wrong {
            self.throttle.failed(address_hash.to_owned()).await?;
        }
        Ok((verdict, permit))
    }

    /// Changes an account and ends its other sessions.
    async fn change_account(
        &self,
        session: &Session,
        account: Account,
        email: Option<String>,
        hash: Option<String>,
    ) -> Result<User> {
        let access_hash = token::hash(&session.access_token);
        let (id, now) = (account.user.id, self.clock.now());
        let change = self.scope.write(move |transaction| {
            Box::pin(async move {
                sessions::require(transaction, &access_hash).await?;
                if let Some(hash) = hash {
                    let values = [id.into(), account.password_hash.into(), hash.into(), now.into()];
                    if transaction.execute(&sql::SET_HASH, &values).await? == 0 {
                        // It was changed while it was being checked.
                        return Err(invalid_credentials());
                    }
                }
                let changed = match email {
                    Some(email) => {
                        let values = [id.into(), email.into(), now.into()];
                        transaction.fetch(&sql::UPDATE_EMAIL, &values, sql::user).await?
                    }
                    None => transaction.fetch(&sql::TOUCH_USER, &[id.into(), now.into()], sql::user).await?,
                };
                transaction.execute(&sql::END_OTHER_SESSIONS, &[id.into(), access_hash.into()]).await?;
                changed.into_iter().next().ok_or_else(session_ended)
            })
        });
        change.await
    }

    async fn delete_user(&self, id: Uuid) -> Result<()> {
        let deleted = self.scope.change(&sql::DELETE_USER, vec![id.into()], sql::id).await?;
        deleted.first().map(|_| ()).ok_or_else(Error::not_found)
    }
}

fn nobody() -> Error {
    Error::new(ErrorKind::Unauthorized, "Nobody is signed in")
}

/// Another user has linked this identity key.
fn taken() -> Error {
    Error::database(Some("23505"), ErrorKind::AlreadyExists, "")
}
