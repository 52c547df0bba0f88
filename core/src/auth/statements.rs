//! The SQL of accounts and sessions, and the readers of its rows. Every statement runs as the service: passwords and
//! tokens decide here what a caller may do, not policies.

use jiff::Timestamp;
use uuid::Uuid;

use crate::{
    database::{KeyPages, Row, Statement, key_pages, record},
    error::Result,
    model::User,
};

macro_rules! user_columns {
    () => {
        "users.id, users.email, users.created_at, users.updated_at,
         (SELECT verified.verified_at FROM townsquare.verified_emails AS verified
          WHERE verified.user_id = users.id AND verified.email = users.email)"
    };
}

/// A user with the hash of the user's password.
#[derive(Clone)]
pub(super) struct Account {
    pub(super) user: User,
    pub(super) password_hash: String,
}

/// The session that a refresh token belongs to.
pub(super) struct RefreshRow {
    pub(super) session_id: Uuid,
    pub(super) user: User,
    pub(super) refresh_expires_at: Timestamp,
}

/// A spent refresh token with its session.
pub(super) struct SpentRow {
    pub(super) session_id: Uuid,
    pub(super) user: User,
    pub(super) access_expires_at: Timestamp,
    /// The hash of the session's current refresh token.
    pub(super) refresh_hash: String,
    pub(super) nonce: String,
    pub(super) spent_at: Timestamp,
}

pub(super) fn id(row: &Row<'_>) -> Result<Uuid> {
    row.get(0)
}

pub(super) fn optional_text(row: &Row<'_>) -> Result<Option<String>> {
    row.get_optional(0)
}

pub(super) fn text(row: &Row<'_>) -> Result<String> {
    row.get(0)
}

pub(super) fn user(row: &Row<'_>) -> Result<User> {
    record(row)
}

/// A user of a list; `None` for a row to leave out.
pub(super) fn listed_user(row: &Row<'_>) -> Result<Option<User>> {
    Ok(row.readable(user))
}

pub(super) fn account(row: &Row<'_>) -> Result<Account> {
    Ok(Account { user: user(row)?, password_hash: row.get(5)? })
}

/// Reads the user of a session, when the session's access token expires, and the session's id.
pub(super) fn session(row: &Row<'_>) -> Result<(User, Timestamp, Uuid)> {
    Ok((user(row)?, row.get(5)?, row.get(6)?))
}

pub(super) fn refresh_row(row: &Row<'_>) -> Result<RefreshRow> {
    Ok(RefreshRow { user: user(row)?, refresh_expires_at: row.get(5)?, session_id: row.get(6)? })
}

pub(super) fn spent_row(row: &Row<'_>) -> Result<SpentRow> {
    Ok(SpentRow {
        user: user(row)?,
        access_expires_at: row.get(5)?,
        session_id: row.get(6)?,
        refresh_hash: row.get(7)?,
        nonce: row.get(8)?,
        spent_at: row.get(9)?,
    })
}

/// Inserts nothing if a user has the address in another spelling.
pub(super) static INSERT_USER: Statement = Statement::new(
    "INSERT INTO users (id, email, created_at, updated_at) SELECT $1, $2, $3, $3
     WHERE NOT EXISTS (SELECT 1 FROM users WHERE {users.has_address $2})",
);

// A user whom another program inserted has no credentials yet. A new password ends the signed URLs of the user.
pub(super) static SET_CREDENTIALS: Statement = Statement::new(
    "INSERT INTO townsquare.credentials AS credentials (user_id, password_hash, updated_at) VALUES ($1, $2, $3)
     ON CONFLICT (user_id) DO UPDATE SET password_hash = excluded.password_hash, updated_at = excluded.updated_at,
         url_generation = credentials.url_generation + 1",
);

// Keeps the password of a user who has one.
pub(super) static INSERT_CREDENTIALS: Statement = Statement::new(
    "INSERT INTO townsquare.credentials (user_id, password_hash, updated_at) VALUES ($1, $2, $3)
     ON CONFLICT (user_id) DO NOTHING",
);

// The highest cost of a bcrypt hash, two digits. An index has the same conditions.
pub(super) static GET_BCRYPT_COST: Statement = Statement::new(
    "SELECT substr(password_hash, 5, 2) FROM townsquare.credentials WHERE substr(password_hash, 2, 1) = '2'
     ORDER BY substr(password_hash, 5, 2) DESC LIMIT 1",
);

pub(super) static GET_USER: Statement =
    Statement::new(concat!("SELECT ", user_columns!(), " FROM users WHERE users.id = $1"));

pub(super) static LIST_USERS: KeyPages = key_pages!("users", "users.id", user_columns!());

// The last row is used, so the normal spelling is found if there are several.
pub(super) static FIND_USER: Statement = Statement::new(concat!(
    "SELECT ",
    user_columns!(),
    " FROM users WHERE {users.has_address $1} ORDER BY users.email = $1"
));

// Another user with the address, in any spelling.
pub(super) static GET_OTHER_USER: Statement =
    Statement::new("SELECT users.id FROM users WHERE {users.has_address $1} AND users.id <> $2");

pub(super) static GET_ACCOUNT_BY_EMAIL: Statement = Statement::new(concat!(
    "SELECT ",
    user_columns!(),
    ", credentials.password_hash FROM users JOIN townsquare.credentials AS credentials ON credentials.user_id = users.id
     WHERE {users.has_address $1} ORDER BY users.email = $1"
));

pub(super) static GET_ACCOUNT: Statement = Statement::new(concat!(
    "SELECT ",
    user_columns!(),
    ", credentials.password_hash FROM users JOIN townsquare.credentials AS credentials ON credentials.user_id = users.id
     WHERE users.id = $1"
));

pub(super) static INSERT_SESSION: Statement = Statement::new(
    "INSERT INTO townsquare.sessions
         (access_hash, id, user_id, refresh_hash, created_at, access_expires_at, refresh_expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)",
);

// Each transaction that relies on a checked password runs this first. It changes no row if the password was changed since
// the check; otherwise it locks the account's row until the transaction ends.
pub(super) static REPLACE_PASSWORD_HASH: Statement =
    Statement::new("UPDATE townsquare.credentials SET password_hash = $3 WHERE user_id = $1 AND password_hash = $2");

pub(super) static GET_SESSION: Statement = Statement::new(concat!(
    "SELECT ",
    user_columns!(),
    ", sessions.access_expires_at, sessions.id FROM townsquare.sessions AS sessions JOIN users ON users.id = sessions.user_id
     WHERE sessions.access_hash = $1"
));

pub(super) static GET_SESSION_BY_REFRESH_TOKEN: Statement = Statement::new(concat!(
    "SELECT ",
    user_columns!(),
    ", sessions.refresh_expires_at, sessions.id
     FROM townsquare.sessions AS sessions JOIN users ON users.id = sessions.user_id WHERE sessions.refresh_hash = $1"
));

// Of two concurrent refreshes with one token, the second changes no row.
pub(super) static REPLACE_TOKENS: Statement = Statement::new(
    "UPDATE townsquare.sessions
     SET access_hash = $2, refresh_hash = $3, access_expires_at = $4, refresh_expires_at = $5
     WHERE refresh_hash = $1",
);

pub(super) static INSERT_SPENT_TOKEN: Statement = Statement::new(
    "INSERT INTO townsquare.spent_tokens (refresh_hash, session_id, spent_at, nonce) VALUES ($1, $2, $3, $4)",
);

// The session of a spent refresh token that has a nonce, so that its successor can be made again.
pub(super) static GET_SPENT_TOKEN: Statement = Statement::new(concat!(
    "SELECT ",
    user_columns!(),
    ", sessions.access_expires_at, sessions.id, sessions.refresh_hash, spent.nonce, spent.spent_at
     FROM townsquare.spent_tokens AS spent JOIN townsquare.sessions AS sessions ON sessions.id = spent.session_id
     JOIN users ON users.id = sessions.user_id WHERE spent.refresh_hash = $1 AND spent.nonce IS NOT NULL"
));

pub(super) static DELETE_OLD_SPENT_TOKENS: Statement =
    Statement::new("DELETE FROM townsquare.spent_tokens WHERE spent_at < $1");

/// The spent tokens that a session keeps: more than an honest program spends in their lifetime.
pub(super) const MAX_SPENT_TOKENS: usize = 1_000;

/// Deletes the oldest spent tokens of the session `$1` that are more than `$2`.
pub(super) static DELETE_SURPLUS_SPENT_TOKENS: Statement = Statement::new(
    "DELETE FROM townsquare.spent_tokens WHERE refresh_hash IN (
         SELECT refresh_hash FROM townsquare.spent_tokens WHERE session_id = $1 ORDER BY spent_at DESC LIMIT 100 OFFSET $2)",
);

pub(super) static DELETE_SESSION_OF_SPENT_TOKEN: Statement = Statement::new(
    "DELETE FROM townsquare.sessions WHERE id IN (
         SELECT session_id FROM townsquare.spent_tokens WHERE refresh_hash = $1)",
);

// Finds the session also by a spent refresh token: another process may have refreshed the session since. A subquery with one
// value, because PostgreSQL uses no index for `OR id IN (SELECT …)`.
pub(super) static DELETE_SESSION: Statement = Statement::new(
    "DELETE FROM townsquare.sessions WHERE access_hash = $1 OR refresh_hash = $2 OR id = (
         SELECT session_id FROM townsquare.spent_tokens WHERE refresh_hash = $2)
     RETURNING id",
);

pub(super) static LOCK_ACCOUNT: Statement =
    Statement::new("UPDATE townsquare.credentials SET updated_at = updated_at WHERE user_id = $1");

// Ends the signed URLs of a user, and locks the account.
pub(super) static RAISE_URL_GENERATION: Statement =
    Statement::new("UPDATE townsquare.credentials SET url_generation = url_generation + 1 WHERE user_id = $1");

// For a new password, which replaces the tokens of the session: first the old refresh token becomes a spent one.
pub(super) static SPEND_OWN_TOKEN: Statement = Statement::new(
    "INSERT INTO townsquare.spent_tokens (refresh_hash, session_id, spent_at)
     SELECT refresh_hash, id, $2 FROM townsquare.sessions WHERE access_hash = $1",
);

pub(super) static REPLACE_OWN_TOKENS: Statement = Statement::new(
    "UPDATE townsquare.sessions
     SET access_hash = $2, refresh_hash = $3, access_expires_at = $4, refresh_expires_at = $5
     WHERE access_hash = $1",
);

pub(super) static DELETE_ALL_SESSIONS: Statement = Statement::new("DELETE FROM townsquare.sessions WHERE user_id = $1");

/// The sessions of a user that have not ended, for the service.
pub(super) static LIST_SESSIONS: Statement = Statement::new(
    "SELECT sessions.id, sessions.created_at, sessions.access_expires_at, sessions.refresh_expires_at
     FROM townsquare.sessions AS sessions WHERE sessions.user_id = $1 AND sessions.refresh_expires_at > $2
     ORDER BY sessions.created_at DESC, sessions.id",
)
.within_memory();

/// Ends a session of a user that has not expired.
pub(super) static END_SESSION: Statement = Statement::new(
    "DELETE FROM townsquare.sessions WHERE user_id = $1 AND id = $2 AND refresh_expires_at > $3 RETURNING id",
);

/// The expired sessions of a user. The rows of other users stay: see [`DELETE_EXPIRED_SESSIONS`].
pub(super) static DELETE_EXPIRED_SESSIONS_OF: Statement =
    Statement::new("DELETE FROM townsquare.sessions WHERE user_id = $1 AND refresh_expires_at <= $2");

pub(super) static DELETE_OTHER_SESSIONS: Statement =
    Statement::new("DELETE FROM townsquare.sessions WHERE user_id = $1 AND access_hash <> $2");

/// The sessions that a user keeps: more than a person has devices.
pub(super) const MAX_SESSIONS: usize = 1_000;

/// Ends the oldest sessions of the user `$1` that are more than `$2`, but not the session `$3`, also if the clock was set back.
pub(super) static DELETE_SURPLUS_SESSIONS: Statement = Statement::new(
    "DELETE FROM townsquare.sessions WHERE id <> $3 AND id IN (
         SELECT id FROM townsquare.sessions WHERE user_id = $1 ORDER BY created_at DESC, id LIMIT 100 OFFSET $2)",
);

pub(super) static DELETE_EXPIRED_SESSIONS: Statement =
    Statement::new("DELETE FROM townsquare.sessions WHERE refresh_expires_at < $1");

// A NULL address keeps the old one.
pub(super) static UPDATE_USER: Statement = Statement::new(
    "UPDATE users SET email = COALESCE($2, email), updated_at = {users.monotonic_updated_at $3} WHERE id = $1",
);

pub(super) static DELETE_USER: Statement = Statement::new("DELETE FROM users WHERE id = $1");

pub(super) static GET_KNOWN_CLIENT: Statement =
    Statement::new("SELECT user_id FROM townsquare.known_clients WHERE key_hash = $1 AND last_at >= $2");

pub(super) static SAVE_KNOWN_CLIENT: Statement = Statement::new(
    "INSERT INTO townsquare.known_clients (key_hash, user_id, last_at) VALUES ($1, $2, $3)
     ON CONFLICT (key_hash) DO UPDATE SET user_id = excluded.user_id, last_at = excluded.last_at",
);

pub(super) static DELETE_OLD_KNOWN_CLIENTS: Statement =
    Statement::new("DELETE FROM townsquare.known_clients WHERE last_at < $1");

pub(super) static DELETE_KNOWN_CLIENTS: Statement =
    Statement::new("DELETE FROM townsquare.known_clients WHERE user_id = $1");

pub(super) static LINK_IDENTITY: Statement = Statement::new(
    "INSERT INTO townsquare.identities (public_key, user_id, linked_at) VALUES ($1, $2, $3)
     ON CONFLICT (public_key) DO NOTHING",
);

pub(super) static GET_IDENTITY: Statement =
    Statement::new("SELECT user_id FROM townsquare.identities WHERE public_key = $1");

/// The number of identity keys of the user `$1`, at most `$2`.
pub(super) static COUNT_IDENTITIES: Statement =
    Statement::new("SELECT count(*) FROM (SELECT 1 FROM townsquare.identities WHERE user_id = $1 LIMIT $2) AS linked");

pub(super) static UNLINK_IDENTITY: Statement =
    Statement::new("DELETE FROM townsquare.identities WHERE public_key = $1 AND user_id = $2");

// One row for each key; one row with NULL for a session whose user has no key; no row for a session that has ended.
pub(super) static GET_IDENTITIES: Statement = Statement::new(
    "SELECT identities.public_key FROM townsquare.sessions AS sessions
     LEFT JOIN townsquare.identities AS identities ON identities.user_id = sessions.user_id
     WHERE sessions.access_hash = $1 ORDER BY identities.linked_at, identities.public_key",
);

pub(super) static GET_IDENTITIES_OF: Statement =
    Statement::new("SELECT public_key FROM townsquare.identities WHERE user_id = $1 ORDER BY linked_at, public_key");

pub(super) static GET_INCARNATION: Statement = Statement::new("SELECT incarnation FROM townsquare.database");

pub(super) static INSERT_MAILED_TOKEN: Statement = Statement::new(
    "INSERT INTO townsquare.mailed_tokens (token_hash, purpose, user_id, email, expires_at)
     VALUES ($1, $2, $3, $4, $5)",
);

pub(super) static DELETE_EXPIRED_MAILED_TOKENS: Statement =
    Statement::new("DELETE FROM townsquare.mailed_tokens WHERE expires_at <= $1");

// A token is void when its user has another address by now.
pub(super) static GET_MAILED_TOKEN: Statement = Statement::new(
    "SELECT tokens.user_id FROM townsquare.mailed_tokens AS tokens
     JOIN users ON users.id = tokens.user_id AND users.email = tokens.email
     WHERE tokens.token_hash = $1 AND tokens.purpose = $2 AND tokens.expires_at > $3",
);

// Of two concurrent uses of one token, the second changes no row.
pub(super) static DELETE_MAILED_TOKEN: Statement =
    Statement::new("DELETE FROM townsquare.mailed_tokens WHERE token_hash = $1");

pub(super) static DELETE_MAILED_TOKENS_OF_PURPOSE: Statement =
    Statement::new("DELETE FROM townsquare.mailed_tokens WHERE user_id = $1 AND purpose = $2");

pub(super) static DELETE_MAILED_TOKENS: Statement =
    Statement::new("DELETE FROM townsquare.mailed_tokens WHERE user_id = $1");

pub(super) static SET_VERIFIED_EMAIL: Statement = Statement::new(
    "INSERT INTO townsquare.verified_emails (user_id, email, verified_at) SELECT id, email, $2 FROM users WHERE id = $1
     ON CONFLICT (user_id) DO UPDATE SET email = excluded.email, verified_at = excluded.verified_at",
);

pub(super) static DELETE_VERIFIED_EMAIL: Statement =
    Statement::new("DELETE FROM townsquare.verified_emails WHERE user_id = $1");

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::database::query_plan;

    #[test]
    fn addresses_and_costs_are_found_by_indexes() {
        for (statement, index) in [
            (&FIND_USER, "townsquare_users_lower_email"),
            (&GET_ACCOUNT_BY_EMAIL, "townsquare_users_lower_email"),
            (&GET_OTHER_USER, "townsquare_users_lower_email"),
            (&INSERT_USER, "townsquare_users_lower_email"),
            (&GET_BCRYPT_COST, "townsquare_credentials_bcrypt_cost"),
        ] {
            let plan = query_plan(statement).join("\n");
            assert!(plan.contains(index), "{plan}");
        }
    }
}
