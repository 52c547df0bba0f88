//! Which principal a connection is set to: its role, and the settings that the policies read.
//!
//! Invariant: a statement runs only on a connection that is set to its principal. A connection remembers its principal,
//! so the next statement of the same principal costs no round trip. Statements bind the caller's id as well: on a
//! connection with another user's session they fail.

use std::time::Duration;

use sqlx::{PgConnection, postgres::PgRow};

use super::{
    errors::translate,
    role_mode::{RoleMode, Roles},
};
use crate::{database::principal::Principal, error::Result};

/// The principal that a connection is set to.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(super) enum ConnectionPrincipal {
    /// A new connection: the settings are those of the login role.
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

/// Sets role, caller, session, search path and time limit in one round trip, and returns the id of the server process. The hash of the session is a parameter, because the text
/// of a statement stands in logs and in `pg_stat_activity`.
macro_rules! set_principal {
    ($is_local:literal $(, $more:literal)*) => {
        concat!(
            "SELECT pg_backend_pid(), set_config('role', $1, ",
            $is_local,
            "), set_config('townsquare.caller', $2, ",
            $is_local,
            "), set_config('townsquare.session', $3, ",
            $is_local,
            "), set_config('search_path', 'pg_catalog, public', ",
            $is_local,
            "), set_config('statement_timeout', $4, ",
            $is_local,
            ")"
            $(, $more)*
        )
    };
}

impl ConnectionPrincipal {
    pub(super) fn is(&self, principal: &Principal) -> bool {
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

/// Sets a new connection of a session as [`set_principal`] does, and makes the server probe the connection after a minute
/// without traffic: so it ends processes whose client is gone, and routers keep the connection. The driver gives no access
/// to its socket, so the client cannot probe by itself; the deadline of each operation ends calls to a server that is gone.
const SET_NEW: &str = set_principal!(
    "false",
    ", set_config('tcp_keepalives_idle', '60', false), set_config('tcp_keepalives_interval', '10', false)",
    ", set_config('tcp_keepalives_count', '6', false)"
);

/// Sets a connection to `principal`, in one round trip. Returns a row with the id of the server process.
pub(super) async fn set(
    connection: &mut PgConnection,
    principal: &Principal,
    roles: &Roles,
    lifetime: Lifetime,
    is_new: bool,
    timeout: Duration,
) -> Result<PgRow> {
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
        Lifetime::Transaction => set_principal!("true"),
    };
    let timeout = timeout.as_millis().max(1).to_string();
    let query = sqlx::query(sql).bind(role).bind(caller).bind(session).bind(timeout);
    // A new connection runs this statement once.
    query.persistent(lifetime == Lifetime::Session && !is_new).fetch_one(connection).await.map_err(translate)
}
