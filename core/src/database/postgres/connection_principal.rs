//! Which principal a connection is set to: its role, and the settings that the policies read.
//!
//! Invariant: a statement runs only on a connection that is set to its principal. A connection remembers its principal,
//! so the next statement of the same principal costs no round trip. Statements bind the caller's id as well, so they
//! return no other caller's rows even if a proxy hands them to another server connection.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::{
    errors::translate,
    role_mode::{RESTRICTED_ROLE, RoleMode},
};
use crate::{
    database::principal::{Credential, Principal},
    error::Result,
};

/// The principal that a connection is set to.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(super) enum ConnectionPrincipal {
    Service,
    Anonymous,
    /// The hash of the session's access token.
    User(String),
}

impl ConnectionPrincipal {
    pub(super) fn is(&self, principal: &Principal) -> bool {
        match (self, principal) {
            (ConnectionPrincipal::Service, Principal::Service | Principal::Vouched(_))
            | (ConnectionPrincipal::Anonymous, Principal::Anonymous) => true,
            (ConnectionPrincipal::User(hash), Principal::User(credential)) => *hash == credential.access_hash,
            _ => false,
        }
    }
}

impl From<&Principal> for ConnectionPrincipal {
    fn from(principal: &Principal) -> ConnectionPrincipal {
        match principal {
            Principal::Service | Principal::Vouched(_) => ConnectionPrincipal::Service,
            Principal::Anonymous => ConnectionPrincipal::Anonymous,
            Principal::User(credential) => ConnectionPrincipal::User(credential.access_hash.clone()),
        }
    }
}

/// Sets a connection to `principal`, in one round trip.
pub(super) async fn set(
    connection: &mut PgConnection,
    principal: &Principal,
    role_mode: RoleMode,
) -> Result<ConnectionPrincipal> {
    let role = match (principal, role_mode) {
        (_, RoleMode::LoginOnly) => String::new(),
        (Principal::Service | Principal::Vouched(_), RoleMode::Restricted) => "RESET ROLE; ".to_owned(),
        (_, RoleMode::Restricted) => format!("SET ROLE {RESTRICTED_ROLE}; "),
    };
    let (caller, session) = match principal {
        // No session proves a vouched user to the database. Each statement binds the user, and its policies hold for them.
        Principal::Service | Principal::Vouched(_) => (String::new(), ""),
        Principal::Anonymous => ("anonymous".to_owned(), ""),
        Principal::User(Credential { user_id, access_hash, .. }) => {
            (user_id.hyphenated().to_string(), access_hash.as_str())
        }
    };
    // Safe to format: `caller` is a constant or a uuid, and `session` is a hash in hex.
    let sql = format!(
        "{role}SELECT set_config('townsquare.caller', '{caller}', false), \
         set_config('townsquare.session', '{session}', false)"
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map_err(translate)?;
    Ok(principal.into())
}
