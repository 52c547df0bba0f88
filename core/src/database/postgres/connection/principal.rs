//! Which principal a connection is set to: its role, and the settings that the policies read.
//!
//! Invariant: a statement runs only on a connection that is set to its principal. A connection remembers its principal,
//! so the next statement of the same principal costs no round trip. Statements bind the caller's id as well: on a
//! connection with another user's session they fail.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::{PgConnection, Row as _};

use super::super::{
    errors::translate,
    role_mode::{RoleMode, Roles, check_triggers},
    types::Time,
};
use crate::{database::principal::Principal, error::Result};

/// The principal that a connection is set to.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(in crate::database) enum ConnectionPrincipal {
    /// A new connection, with the settings of the login role.
    Unset,
    Service,
    /// The service, in statements that bind a user.
    Vouched,
    Anonymous,
    /// The hash of the session's access token.
    User(String),
}

/// How long a connection belongs to the client, with its settings and prepared statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::database) enum Lifetime {
    /// Until the client closes it.
    Session,
    /// Until the transaction ends: a pooler then gives the server process to another client.
    Transaction,
}

/// A call of `set_config` in a list of columns.
macro_rules! set {
    ($is_local:literal, $name:literal = $value:literal) => {
        concat!(", pg_catalog.set_config('", $name, "', ", $value, ", ", $is_local, ")")
    };
}

/// Sets role, caller, session, search path and time limit in one round trip. Returns the id of the server process, whether
/// the server is in recovery, the setting that [`check_triggers`] reads, and the server's time. The hash of the session is a
/// parameter, because the text of a statement stands in logs and in `pg_stat_activity`.
macro_rules! set_principal {
    ($is_local:literal $(, $name:literal = $value:literal)*) => {
        concat!(
            "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(), ",
            "pg_catalog.current_setting('session_replication_role'), pg_catalog.clock_timestamp()",
            set!($is_local, "role" = "$1"),
            set!($is_local, "townsquare.caller" = "$2"),
            set!($is_local, "townsquare.session" = "$3"),
            set!($is_local, "search_path" = "'pg_catalog, public'"),
            set!($is_local, "statement_timeout" = "$4")
            $(, set!($is_local, $name = $value))*
        )
    };
}

/// Does what [`set_principal`] does, and pins the settings that decide what a statement means, whatever the server, the
/// database or the role sets: policies hold, a backslash in a string is a character, bytes in JSON are hexadecimal, and a
/// commit that was answered is on the disk. The time limits of the client are the only ones.
macro_rules! set_all {
    ($is_local:literal $(, $name:literal = $value:literal)*) => {
        set_principal!(
            $is_local,
            "row_security" = "'on'",
            "standard_conforming_strings" = "'on'",
            "bytea_output" = "'hex'",
            "lock_timeout" = "'0'",
            "synchronous_commit" =
                "pg_catalog.replace(pg_catalog.current_setting('synchronous_commit'), 'off', 'on')",
            "idle_in_transaction_session_timeout" = "$4"
            $(, $name = $value)*
        )
    };
}

/// What the server says about itself when a connection is set to a principal.
pub(in crate::database) struct ServerState {
    /// The id of the server process.
    pub(in crate::database) process: i32,
    /// The server is a standby.
    pub(in crate::database) is_in_recovery: bool,
    /// The server's time.
    pub(in crate::database) time: Timestamp,
}

impl ConnectionPrincipal {
    pub(in crate::database) fn is(&self, principal: &Principal) -> bool {
        match (self, principal) {
            (ConnectionPrincipal::Service, Principal::Service)
            | (ConnectionPrincipal::Vouched, Principal::Vouched(_))
            | (ConnectionPrincipal::Anonymous, Principal::Anonymous) => true,
            (ConnectionPrincipal::User(hash), Principal::User(credential)) => *hash == credential.access_hash,
            _ => false,
        }
    }
}

impl From<&Principal> for ConnectionPrincipal {
    fn from(principal: &Principal) -> ConnectionPrincipal {
        match principal {
            Principal::Service => ConnectionPrincipal::Service,
            Principal::Vouched(_) => ConnectionPrincipal::Vouched,
            Principal::Anonymous => ConnectionPrincipal::Anonymous,
            Principal::User(credential) => ConnectionPrincipal::User(credential.access_hash.clone()),
        }
    }
}

/// Sets a new connection of a session as [`set_all`] does. Pins the isolation level of statements outside of transaction
/// blocks, and makes the server probe the connection after a minute without traffic: so it ends processes whose client is
/// gone, and routers keep the connection. The driver gives no access to its socket, so the client cannot probe by itself;
/// the deadline of each operation ends calls to a server that is gone.
const SET_NEW: &str = set_all!(
    "false",
    "default_transaction_isolation" = "'read committed'",
    "tcp_keepalives_idle" = "'60'",
    "tcp_keepalives_interval" = "'10'",
    "tcp_keepalives_count" = "'6'"
);

/// Sets a connection to `principal`, in one round trip.
///
/// # Errors
/// `Config` if the triggers of the tables would not run.
pub(in crate::database::postgres) async fn set(
    connection: &mut PgConnection,
    principal: &Principal,
    roles: &Roles,
    lifetime: Lifetime,
    is_new: bool,
    timeout: Duration,
) -> Result<ServerState> {
    let (caller, session) = match principal {
        Principal::Service => ("", ""),
        // No session proves a vouched user to the database. Each statement binds the user, and its policies hold for them.
        Principal::Vouched(_) => ("", "vouched"),
        Principal::Anonymous => ("anonymous", ""),
        Principal::User(credential) => ("user", credential.access_hash.as_str()),
    };
    let role = if caller.is_empty() || roles.mode == RoleMode::LoginOnly { "none" } else { &roles.callers };
    let sql = match lifetime {
        Lifetime::Session if is_new => SET_NEW,
        Lifetime::Session => set_principal!("false"),
        Lifetime::Transaction => set_all!("true"),
    };
    let timeout = timeout.as_millis().max(1).to_string();
    let query = sqlx::query(sql).bind(role).bind(caller).bind(session).bind(timeout);
    // A new connection runs this statement once.
    let query = query.persistent(lifetime == Lifetime::Session && !is_new);
    let row = query.fetch_one(connection).await.map_err(translate)?;
    check_triggers(row.try_get(2).map_err(translate)?)?;
    let (process, is_in_recovery) = (row.try_get(0).map_err(translate)?, row.try_get(1).map_err(translate)?);
    let time: Time = row.try_get(3).map_err(translate)?;
    // A server does not run at a time that is out of range.
    let time = time.into_timestamp().unwrap_or_else(|limit| limit);
    Ok(ServerState { process, is_in_recovery, time })
}
