//! The sessions of all users, in the database.
//!
//! Invariant: a session has one valid pair of tokens. A refresh token works once. A second use within [`REPEAT`] repeats the
//! refresh, because its reply may have been lost: it returns the same new tokens, unless they have been replaced since. Any
//! other second use means that the token was copied, and ends the session.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::{
    rate_limit::{self, CountKey},
    statements as sql,
    token::{self, TokenKind},
};
use crate::{
    clock::{Clock, earlier, later},
    database::{Scope, Transaction, Value, session_ended, session_expired},
    error::{Error, ErrorKind, Result},
    model::{Session, User},
};

/// How long an access token is valid.
pub(super) const ACCESS: Duration = Duration::from_secs(3_600);

/// How long a refresh token is valid. Each refresh starts this time anew.
const REFRESH: Duration = Duration::from_secs(30 * 86_400);

/// How long a refresh can be repeated. The clocks of two processes may differ as much.
const REPEAT: Duration = Duration::from_secs(10);

/// How long an expired session keeps its row, so that a clock that runs ahead for a while deletes no valid session.
const GRACE: Duration = Duration::from_secs(86_400);

/// How long a client is known after the last sign-in from it.
pub(super) const KNOWN: Duration = Duration::from_secs(180 * 86_400);

/// Creates, finds, refreshes and ends sessions.
#[derive(Clone)]
pub(super) struct SessionStore {
    scope: Scope,
    clock: Clock,
}

/// A new pair of tokens and the times at which they expire. It has no `Debug`, because tokens are secrets.
#[derive(Clone)]
pub(super) struct TokenPair {
    pub(super) access_token: String,
    pub(super) refresh_token: String,
    access_expires_at: Timestamp,
    refresh_expires_at: Timestamp,
}

/// The random part of the new tokens of a refresh. Repeating a refresh with the same nonce gives the same tokens.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Nonce(String);

/// A login with a correct password.
pub(super) struct VerifiedLogin {
    pub(super) user: User,
    /// The hash that the password was checked against.
    pub(super) password_hash: String,
    /// The hash to store in its place, if its parameters are outdated.
    pub(super) new_password_hash: Option<String>,
    /// The rate limit of sign-ins with the address.
    pub(super) count_key: Option<CountKey>,
    /// The key of the client and the address. The sign-in stores it, so that the client is known from then on.
    pub(super) known_client: Option<CountKey>,
}

impl SessionStore {
    pub(super) fn new(scope: Scope, clock: Clock) -> SessionStore {
        SessionStore { scope, clock }
    }

    /// Creates a session. Returns `None` when the stored hash was replaced, or the user deleted, since the password was
    /// checked.
    pub(super) async fn sign_in(&self, login: VerifiedLogin) -> Result<Option<Session>> {
        let now = self.clock.now();
        let tokens = TokenPair::new(now)?;
        let VerifiedLogin { user, password_hash, new_password_hash, count_key, known_client } = login;
        let user_id = user.id;
        let insert = self.scope.write(move |transaction| {
            Box::pin(async move {
                let new_hash = new_password_hash.as_deref().unwrap_or(&password_hash);
                if !replace_hash(transaction, user_id, &password_hash, new_hash).await? {
                    return Ok(None);
                }
                let session_id = tokens.insert_session(transaction, user_id, now).await?;
                if let Some(count_key) = &count_key {
                    rate_limit::clear(transaction, count_key).await?;
                }
                if let Some(known) = &known_client {
                    let values = [known.hash().into(), user_id.into(), now.into()];
                    transaction.execute(&sql::SAVE_KNOWN_CLIENT, &values).await?;
                    let old = [earlier(now, KNOWN).into()];
                    transaction.execute(&sql::DELETE_OLD_KNOWN_CLIENTS, &old).await?;
                }
                transaction.execute(&sql::DELETE_EXPIRED_SESSIONS, &[earlier(now, GRACE).into()]).await?;
                // Sign-ins in a loop must not fill the disk.
                let surplus = [user_id.into(), (sql::MAX_SESSIONS as i64).into(), session_id.into()];
                transaction.execute(&sql::DELETE_SURPLUS_SESSIONS, &surplus).await?;
                Ok(Some((tokens, session_id)))
            })
        });
        Ok(insert.await?.map(|(tokens, session_id)| tokens.into_session(session_id, user)))
    }

    /// Finds the session of an access token. Its `refresh_token` is empty: the database has only the hash.
    ///
    /// # Errors
    /// `Unauthorized` when the session has ended or the access token has expired.
    pub(super) async fn get_session(&self, access_token: &str) -> Result<Session> {
        let values = [token::hash(access_token).into()];
        let found = self.scope.fetch_optional(&sql::GET_SESSION, &values, sql::session).await?;
        let (user, expires_at, id) = found.ok_or_else(session_ended)?;
        if expires_at <= self.clock.now() {
            return Err(session_expired());
        }
        Ok(Session { id, access_token: access_token.to_owned(), refresh_token: String::new(), expires_at, user })
    }

    /// Whether the session of an access token exists, by a server that must know it.
    ///
    /// # Errors
    /// `Unavailable` if no server that accepts writes can be reached.
    pub(super) async fn exists(&self, access_token: &str) -> Result<bool> {
        let values = [token::hash(access_token).into()];
        let found = self.scope.fetch_optional_on_primary(&sql::GET_SESSION, &values, sql::session).await?;
        Ok(found.is_some())
    }

    /// Returns true if a session has this refresh token. A spent token is not the session's any more.
    pub(super) async fn has_refresh_token(&self, refresh_token: &str) -> Result<bool> {
        let values = [token::hash(refresh_token).into()];
        let found = self.scope.fetch_optional(&sql::GET_SESSION_BY_REFRESH_TOKEN, &values, sql::refresh_row).await?;
        Ok(found.is_some())
    }

    /// Replaces both tokens of the session that a refresh token belongs to.
    ///
    /// # Errors
    /// `Unauthorized` for an unknown or expired refresh token, and for a spent one, which also ends its session.
    pub(super) async fn refresh_session(&self, refresh_token: &str) -> Result<Session> {
        self.replace_tokens(refresh_token, Nonce::new()?).await
    }

    /// Does what [`refresh_session`](SessionStore::refresh_session) does, with a nonce that the caller has made. A call with
    /// the nonce of an earlier call repeats that call, however long ago it was.
    pub(super) async fn replace_tokens(&self, refresh_token: &str, nonce: Nonce) -> Result<Session> {
        let now = self.clock.now();
        let (old_token, old_hash) = (refresh_token.to_owned(), token::hash(refresh_token));
        let tokens = TokenPair::successor(refresh_token, &nonce, now);
        let values = tokens.replacing(&old_hash);
        let refresh = self.scope.write_idempotent(move |transaction| {
            Box::pin(async move {
                let key = [old_hash.as_str().into()];
                let row =
                    transaction.fetch_optional(&sql::GET_SESSION_BY_REFRESH_TOKEN, &key, sql::refresh_row).await?;
                if let Some(row) = row.filter(|row| row.refresh_expires_at > now)
                    && transaction.execute(&sql::REPLACE_TOKENS, &values).await? > 0
                {
                    let spent = [old_hash.as_str().into(), row.session_id.into(), now.into(), nonce.0.as_str().into()];
                    transaction.execute(&sql::INSERT_SPENT_TOKEN, &spent).await?;
                    // A token spent before this time would have expired by now.
                    let old = earlier(now, REFRESH + GRACE);
                    transaction.execute(&sql::DELETE_OLD_SPENT_TOKENS, &[old.into()]).await?;
                    // Refreshes in a loop must not fill the disk.
                    let surplus = [row.session_id.into(), (sql::MAX_SPENT_TOKENS as i64).into()];
                    transaction.execute(&sql::DELETE_SURPLUS_SPENT_TOKENS, &surplus).await?;
                    return Ok(Some(tokens.into_session(row.session_id, row.user)));
                }
                let spent = transaction.fetch_optional(&sql::GET_SPENT_TOKEN, &key, sql::spent_row).await?;
                if let Some(session) = spent.and_then(|spent| repeated_refresh(spent, &old_token, &nonce, now)) {
                    return Ok(Some(session));
                }
                transaction.execute(&sql::DELETE_SESSION_OF_SPENT_TOKEN, &key).await?;
                // Not an error: an error would undo the deletion.
                Ok(None)
            })
        });
        refresh.await?.ok_or_else(session_ended)
    }

    /// Ends a session, even if it has other tokens by now. Succeeds for a session that has already ended.
    pub(super) async fn sign_out(&self, session: &Session) -> Result<()> {
        let values = vec![token::hash(&session.access_token).into(), token::hash(&session.refresh_token).into()];
        self.scope.execute_idempotent(&sql::DELETE_SESSION, values, sql::id).await.map(drop)
    }

    /// Ends every session of the user of `session` and the user's signed URLs, or every other session.
    ///
    /// # Errors
    /// `Unauthorized` when `session` has ended; then no session ends.
    pub(super) async fn sign_out_all(&self, session: &Session, keeps_own: bool) -> Result<()> {
        let (user_id, access_hash) = (session.user.id, token::hash(&session.access_token));
        let delete = self.scope.write(move |transaction| {
            Box::pin(async move {
                // First, so that a concurrent sign-in creates its session either before this deletion or after it.
                let lock = if keeps_own { &sql::LOCK_ACCOUNT } else { &sql::RAISE_URL_GENERATION };
                transaction.execute(lock, &[user_id.into()]).await?;
                require_session(transaction, &access_hash).await?;
                match keeps_own {
                    true => {
                        transaction.execute(&sql::DELETE_OTHER_SESSIONS, &[user_id.into(), access_hash.into()]).await
                    }
                    false => transaction.execute(&sql::DELETE_ALL_SESSIONS, &[user_id.into()]).await,
                }
            })
        });
        delete.await.map(drop)
    }
}

/// Returns the session after the refresh that spent a refresh token, if a call with `nonce` at `now` repeats that refresh.
/// `None` if it does not, and if the session has got other tokens since.
fn repeated_refresh(spent: sql::SpentRow, refresh_token: &str, nonce: &Nonce, now: Timestamp) -> Option<Session> {
    let is_recent = now.duration_since(spent.spent_at).unsigned_abs() <= REPEAT;
    (is_recent || spent.nonce == nonce.0).then_some(())?;
    let tokens = TokenPair::successor(refresh_token, &Nonce(spent.nonce), now);
    (token::hash(&tokens.refresh_token) == spent.refresh_hash).then_some(())?;
    let tokens = TokenPair { access_expires_at: spent.access_expires_at, ..tokens };
    Some(tokens.into_session(spent.session_id, spent.user))
}

/// Checks inside a transaction that a session still exists.
///
/// # Errors
/// `Unauthorized` when it has ended.
pub(super) async fn require_session(transaction: &mut Transaction<'_>, access_hash: &str) -> Result<()> {
    let found = transaction.fetch_optional(&sql::GET_SESSION, &[access_hash.into()], sql::session).await?;
    found.map(drop).ok_or_else(session_ended)
}

/// Checks inside a transaction that the hash a password was checked against is still stored. Locks the account until the
/// transaction ends. Returns false when the hash was replaced, or the user deleted, since the check.
pub(super) async fn confirm_password(
    transaction: &mut Transaction<'_>,
    user_id: Uuid,
    password_hash: &str,
) -> Result<bool> {
    replace_hash(transaction, user_id, password_hash, password_hash).await
}

/// Replaces a user's hash if it is still `password_hash`, and locks the account until the transaction ends. Returns whether
/// it was.
async fn replace_hash(
    transaction: &mut Transaction<'_>,
    user_id: Uuid,
    password_hash: &str,
    new_hash: &str,
) -> Result<bool> {
    let values = [user_id.into(), password_hash.into(), new_hash.into()];
    Ok(transaction.execute(&sql::REPLACE_PASSWORD_HASH, &values).await? > 0)
}

/// The error for an unknown address and for a wrong password, in the same words (DESIGN 8).
pub(super) fn invalid_credentials() -> Error {
    Error::new(ErrorKind::Unauthorized, "Invalid login credentials")
}

impl Nonce {
    pub(super) fn new() -> Result<Nonce> {
        Ok(Nonce(hex::encode(token::random::<32>()?)))
    }
}

impl TokenPair {
    pub(super) fn new(now: Timestamp) -> Result<TokenPair> {
        Ok(TokenPair::of(token::new(TokenKind::Access)?, token::new(TokenKind::Refresh)?, now))
    }

    /// Makes the tokens that replace `refresh_token` and its access token.
    pub(super) fn successor(refresh_token: &str, nonce: &Nonce, now: Timestamp) -> TokenPair {
        let make = |kind| token::successor(kind, refresh_token, &nonce.0);
        TokenPair::of(make(TokenKind::Access), make(TokenKind::Refresh), now)
    }

    fn of(access_token: String, refresh_token: String, now: Timestamp) -> TokenPair {
        let (access_expires_at, refresh_expires_at) = (later(now, ACCESS), later(now, REFRESH));
        TokenPair { access_token, refresh_token, access_expires_at, refresh_expires_at }
    }

    /// Creates a session with these tokens and returns its id.
    pub(super) async fn insert_session(
        &self,
        transaction: &mut Transaction<'_>,
        user_id: Uuid,
        now: Timestamp,
    ) -> Result<Uuid> {
        let session_id = Uuid::new_v4();
        let values = [
            token::hash(&self.access_token).into(),
            session_id.into(),
            user_id.into(),
            token::hash(&self.refresh_token).into(),
            now.into(),
            self.access_expires_at.into(),
            self.refresh_expires_at.into(),
        ];
        transaction.execute(&sql::INSERT_SESSION, &values).await?;
        Ok(session_id)
    }

    /// Gives these tokens to the session with the access token `access_hash`. Its old tokens become invalid.
    ///
    /// # Errors
    /// `Unauthorized` when the session has ended.
    pub(super) async fn replace(
        &self,
        transaction: &mut Transaction<'_>,
        access_hash: &str,
        now: Timestamp,
    ) -> Result<()> {
        transaction.execute(&sql::SPEND_OWN_TOKEN, &[access_hash.into(), now.into()]).await?;
        match transaction.execute(&sql::REPLACE_OWN_TOKENS, &self.replacing(access_hash)).await? {
            0 => Err(session_ended()),
            _ => Ok(()),
        }
    }

    /// The values of a statement that gives these tokens to the session with a token of `old_hash`.
    fn replacing(&self, old_hash: &str) -> [Value<'static>; 5] {
        [
            old_hash.to_owned().into(),
            token::hash(&self.access_token).into(),
            token::hash(&self.refresh_token).into(),
            self.access_expires_at.into(),
            self.refresh_expires_at.into(),
        ]
    }

    pub(super) fn into_session(self, id: Uuid, user: User) -> Session {
        let TokenPair { access_token, refresh_token, access_expires_at, .. } = self;
        Session { id, access_token, refresh_token, expires_at: access_expires_at, user }
    }
}
