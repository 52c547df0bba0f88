//! Sessions in the database: begun, found, rotated, ended.
//!
//! Invariant: a session has one pair of tokens that count. A refresh token is good once; one that comes back was copied
//! by somebody, and ends the session for both.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::{
    statements as sql,
    throttle::CLEAR,
    token::{self, Kind},
};
use crate::{
    clock::{Clock, earlier, later},
    database::{Scope, Transaction, session_ended},
    error::{Error, ErrorKind, Result},
    model::{Session, User},
};

/// How long an access token counts.
const ACCESS: Duration = Duration::from_secs(3_600);

/// How long a refresh token counts; each new one as long again.
const REFRESH: Duration = Duration::from_secs(30 * 86_400);

/// How much longer the row of a session stays: a clock that was ahead, and is set right, ends no session early.
const GRACE: Duration = Duration::from_secs(86_400);

/// The sessions of all users.
#[derive(Clone)]
pub(super) struct Sessions {
    scope: Scope,
    clock: Clock,
}

/// A new pair of tokens, and until when they count.
struct Pair {
    access_token: String,
    refresh_token: String,
    access_expires_at: Timestamp,
    refresh_expires_at: Timestamp,
}

/// What a refresh token led to. Not an error: that a session was ended must be committed.
enum Rotation {
    Done(User),
    Unknown,
}

/// What a sign-in has found to be right.
pub(super) struct Admission {
    pub(super) user: User,
    /// The hash that the password was checked against.
    pub(super) password_hash: String,
    /// What to keep instead.
    pub(super) renewed_hash: Option<String>,
    pub(super) address_hash: String,
}

impl Sessions {
    pub(super) fn new(scope: Scope, clock: Clock) -> Sessions {
        Sessions { scope, clock }
    }

    /// Begins a session; `None` when the password was changed, or the user deleted, while it was being checked.
    pub(super) async fn begin(&self, admission: Admission) -> Result<Option<Session>> {
        let now = self.clock.now();
        let pair = Pair::new(now)?;
        let Admission { user, password_hash, renewed_hash, address_hash } = admission;
        let values = vec![
            token::hash(&pair.access_token).into(),
            Uuid::new_v4().into(),
            user.id.into(),
            token::hash(&pair.refresh_token).into(),
            now.into(),
            pair.access_expires_at.into(),
            pair.refresh_expires_at.into(),
        ];
        let (id, swept) = (user.id, earlier(now, GRACE));
        let begin = self.scope.write(move |transaction| {
            Box::pin(async move {
                let renewed = renewed_hash.unwrap_or_else(|| password_hash.clone());
                let account = [id.into(), password_hash.into(), renewed.into()];
                if transaction.execute(&sql::RENEW_HASH, &account).await? == 0 {
                    return Ok(false);
                }
                transaction.execute(&sql::INSERT_SESSION, &values).await?;
                transaction.execute(&CLEAR, &[address_hash.into()]).await?;
                transaction.execute(&sql::SWEEP_SESSIONS, &[swept.into()]).await?;
                Ok(true)
            })
        });
        Ok(begin.await?.then(|| pair.session(user)))
    }

    /// The session that an access token stands for; its refresh token is not known.
    ///
    /// # Errors
    /// `Unauthorized` when it has ended or expired.
    pub(super) async fn find(&self, access_token: &str) -> Result<Session> {
        let hash = token::hash(access_token);
        let found = self.scope.fetch(&sql::GET_SESSION, &[hash.into()], sql::user_until).await?.pop();
        let (user, expires_at) = found.ok_or_else(session_ended)?;
        if expires_at <= self.clock.now() {
            return Err(crate::database::session_expired());
        }
        Ok(Session { access_token: access_token.to_owned(), refresh_token: String::new(), expires_at, user })
    }

    /// A new pair of tokens for a refresh token; the old pair dies.
    ///
    /// # Errors
    /// `Unauthorized` for a token that is none, has expired, or was used before, which also ends its session.
    pub(super) async fn rotate(&self, refresh_token: &str) -> Result<Session> {
        let now = self.clock.now();
        let pair = Pair::new(now)?;
        let old = token::hash(refresh_token);
        let new = [token::hash(&pair.access_token), token::hash(&pair.refresh_token)];
        let ends = (pair.access_expires_at, pair.refresh_expires_at);
        let rotate = self.scope.write(move |transaction| Box::pin(rotated(transaction, old, new, ends, now)));
        match rotate.await? {
            Rotation::Done(user) => Ok(pair.session(user)),
            Rotation::Unknown => Err(session_ended()),
        }
    }

    /// Ends a session, also when it was given other tokens since; one that has ended already is fine.
    pub(super) async fn end(&self, session: &Session) -> Result<()> {
        let values = vec![token::hash(&session.access_token).into(), token::hash(&session.refresh_token).into()];
        let end = self.scope.write(move |transaction| {
            Box::pin(async move { transaction.execute(&sql::END_SESSION, &values).await.map(drop) })
        });
        end.await
    }
}

async fn rotated(
    transaction: &mut Transaction<'_>,
    old: String,
    [access, refresh]: [String; 2],
    ends: (Timestamp, Timestamp),
    now: Timestamp,
) -> Result<Rotation> {
    let found = transaction.fetch(&sql::FIND_BY_REFRESH, &[old.as_str().into()], sql::found).await?.pop();
    let Some(found) = found.filter(|found| found.refresh_expires_at > now) else {
        transaction.execute(&sql::END_REUSED, &[old.into()]).await?;
        return Ok(Rotation::Unknown);
    };
    let values = [old.as_str().into(), access.into(), refresh.into(), ends.0.into(), ends.1.into()];
    if transaction.execute(&sql::ROTATE, &values).await? == 0 {
        // Somebody else has just used it: two hold this token.
        transaction.execute(&sql::END_REUSED, &[old.into()]).await?;
        return Ok(Rotation::Unknown);
    }
    transaction.execute(&sql::SPEND, &[old.into(), found.id.into(), now.into()]).await?;
    // By then it would have expired unspent.
    let expired = earlier(now, REFRESH + GRACE);
    transaction.execute(&sql::SWEEP_SPENT, &[expired.into()]).await?;
    Ok(Rotation::Done(found.user))
}

/// Makes sure that a session still stands, inside the transaction that relies on it.
pub(super) async fn require(transaction: &mut Transaction<'_>, access_hash: &str) -> Result<()> {
    let found = transaction.fetch(&sql::GET_SESSION, &[access_hash.into()], sql::user_until).await?;
    found.first().map(|_| ()).ok_or_else(session_ended)
}

/// SPEC 7's and DESIGN 8's words for an unknown address and for a wrong password.
pub(super) fn invalid_credentials() -> Error {
    Error::new(ErrorKind::Unauthorized, "Invalid login credentials")
}

impl Pair {
    fn new(now: Timestamp) -> Result<Pair> {
        Ok(Pair {
            access_token: token::new(Kind::Access)?,
            refresh_token: token::new(Kind::Refresh)?,
            access_expires_at: later(now, ACCESS),
            refresh_expires_at: later(now, REFRESH),
        })
    }

    fn session(self, user: User) -> Session {
        let Pair { access_token, refresh_token, access_expires_at, .. } = self;
        Session { access_token, refresh_token, expires_at: access_expires_at, user }
    }
}
