//! The SQL of accounts and sessions, each statement once for both engines. All of it runs as the service: who may do
//! what here is decided by passwords and tokens.

use uuid::Uuid;

use crate::{
    database::{Row, Statement},
    error::Result,
    model::User,
};

macro_rules! user {
    () => {
        "users.id, users.email, users.created_at, users.updated_at"
    };
}

/// An account: who it is, and the hash of the password.
pub(super) struct Account {
    pub(super) user: User,
    pub(super) password_hash: String,
}

/// A session as a refresh finds it.
pub(super) struct Found {
    pub(super) id: Uuid,
    pub(super) user: User,
    pub(super) refresh_expires_at: jiff::Timestamp,
}

pub(super) fn id(row: &Row<'_>) -> Result<Uuid> {
    row.get(0)
}

pub(super) fn user(row: &Row<'_>) -> Result<User> {
    Ok(User {
        id: row.get(0)?,
        email: row.get(1)?,
        // The columns have defaults and take NULL from others all the same.
        created_at: row.get_optional(2)?.unwrap_or_default(),
        updated_at: row.get_optional(3)?.unwrap_or_default(),
    })
}

pub(super) fn account(row: &Row<'_>) -> Result<Account> {
    Ok(Account { user: user(row)?, password_hash: row.get(4)? })
}

pub(super) fn user_until(row: &Row<'_>) -> Result<(User, jiff::Timestamp)> {
    Ok((user(row)?, row.get(4)?))
}

pub(super) fn found(row: &Row<'_>) -> Result<Found> {
    Ok(Found { user: user(row)?, refresh_expires_at: row.get(4)?, id: row.get(5)? })
}

pub(super) static INSERT_USER: Statement = Statement::new(
    "INSERT INTO users (id, email, created_at, updated_at) VALUES ($1, $2, $3, $3)
     RETURNING id, email, created_at, updated_at",
);

pub(super) static INSERT_CREDENTIALS: Statement =
    Statement::new("INSERT INTO townsquare.credentials (user_id, password_hash, updated_at) VALUES ($1, $2, $3)");

pub(super) static GET_ACCOUNT_BY_EMAIL: Statement = Statement::new(concat!(
    "SELECT ",
    user!(),
    ", kept.password_hash FROM users JOIN townsquare.credentials AS kept ON kept.user_id = users.id
     WHERE users.email = $1"
));

pub(super) static GET_ACCOUNT: Statement = Statement::new(concat!(
    "SELECT ",
    user!(),
    ", kept.password_hash FROM users JOIN townsquare.credentials AS kept ON kept.user_id = users.id
     WHERE users.id = $1"
));

pub(super) static INSERT_SESSION: Statement = Statement::new(
    "INSERT INTO townsquare.sessions
         (access_hash, id, user_id, refresh_hash, created_at, access_expires_at, refresh_expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)",
);

// Whatever relies on a password that was checked begins with this: it finds no row when the password was changed
// meanwhile, and holds off a change until the transaction ends.
pub(super) static RENEW_HASH: Statement =
    Statement::new("UPDATE townsquare.credentials SET password_hash = $3 WHERE user_id = $1 AND password_hash = $2");

/// The user of a session that stands, and when its access token ends.
pub(super) static GET_SESSION: Statement = Statement::new(concat!(
    "SELECT ",
    user!(),
    ", held.access_expires_at FROM townsquare.sessions AS held JOIN users ON users.id = held.user_id
     WHERE held.access_hash = $1"
));

pub(super) static FIND_BY_REFRESH: Statement = Statement::new(concat!(
    "SELECT ",
    user!(),
    ", held.refresh_expires_at, held.id
     FROM townsquare.sessions AS held JOIN users ON users.id = held.user_id WHERE held.refresh_hash = $1"
));

// The old hash is asked for again: of two that refresh at once, one comes too late.
pub(super) static ROTATE: Statement = Statement::new(
    "UPDATE townsquare.sessions
     SET access_hash = $2, refresh_hash = $3, access_expires_at = $4, refresh_expires_at = $5
     WHERE refresh_hash = $1",
);

pub(super) static SPEND: Statement =
    Statement::new("INSERT INTO townsquare.spent_tokens (refresh_hash, session_id, spent_at) VALUES ($1, $2, $3)");

pub(super) static SWEEP_SPENT: Statement = Statement::new("DELETE FROM townsquare.spent_tokens WHERE spent_at < $1");

pub(super) static END_REUSED: Statement = Statement::new(
    "DELETE FROM townsquare.sessions WHERE id IN (
         SELECT session_id FROM townsquare.spent_tokens WHERE refresh_hash = $1)",
);

// By any of its tokens: others may have been given since.
pub(super) static END_SESSION: Statement = Statement::new(
    "DELETE FROM townsquare.sessions WHERE access_hash = $1 OR refresh_hash = $2 OR id IN (
         SELECT session_id FROM townsquare.spent_tokens WHERE refresh_hash = $2)",
);

pub(super) static LOCK: Statement =
    Statement::new("UPDATE townsquare.credentials SET updated_at = updated_at WHERE user_id = $1");

pub(super) static END_OTHER_SESSIONS: Statement =
    Statement::new("DELETE FROM townsquare.sessions WHERE user_id = $1 AND access_hash <> $2");

pub(super) static SWEEP_SESSIONS: Statement =
    Statement::new("DELETE FROM townsquare.sessions WHERE refresh_expires_at < $1");

// Without an address the old one stays.
pub(super) static UPDATE_USER: Statement = Statement::new(
    "UPDATE users SET email = COALESCE($2, email), updated_at = {users.monotonic_updated_at $3} WHERE id = $1
     RETURNING id, email, created_at, updated_at",
);

pub(super) static SET_HASH: Statement =
    Statement::new("UPDATE townsquare.credentials SET password_hash = $2, updated_at = $3 WHERE user_id = $1");

pub(super) static DELETE_USER: Statement = Statement::new("DELETE FROM users WHERE id = $1");

pub(super) static LINK_IDENTITY: Statement = Statement::new(
    "INSERT INTO townsquare.identities (public_key, user_id, linked_at) VALUES ($1, $2, $3)
     ON CONFLICT (public_key) DO NOTHING",
);

pub(super) static GET_IDENTITY: Statement =
    Statement::new("SELECT user_id FROM townsquare.identities WHERE public_key = $1");
