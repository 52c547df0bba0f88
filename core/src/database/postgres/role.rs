//! For whom a connection works: its role, and the settings that the policies read.
//!
//! Invariant: a statement runs on a connection that works for its principal, or it does not run. The service works as the
//! role that logged in, everybody else as [`RESTRICTED`], which owns nothing and passes no policy by. Where that role
//! cannot be had, the role that logged in serves for both: row-level security is forced on it too, and lifted by a
//! setting alone. Connections keep what they were last told, so that a caller who comes back costs no round trip;
//! statements name the caller once more, so on one that a proxy has mixed up nobody finds another's rows.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::errors::translate;
use crate::{
    database::{Credential, Principal},
    error::Result,
};

/// The role of everybody but the service.
pub(super) const RESTRICTED: &str = "townsquare_caller";

/// Whether [`RESTRICTED`] can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Roles {
    /// The service has the role that logged in, others have [`RESTRICTED`].
    Two,
    /// The role that logged in, under forced policies.
    One,
}

/// For whom a connection was last told to work.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(super) enum Working {
    Service,
    Anonymous,
    /// For the session with this token's hash.
    User(String),
}

impl Working {
    /// Whether it is what this principal needs.
    pub(super) fn is_for(&self, principal: &Principal) -> bool {
        match (self, principal) {
            (Working::Service, Principal::Service) | (Working::Anonymous, Principal::Anonymous) => true,
            (Working::User(hash), Principal::User(credential)) => *hash == credential.access_hash,
            _ => false,
        }
    }

    fn of(principal: &Principal) -> Working {
        match principal {
            Principal::Service => Working::Service,
            Principal::Anonymous => Working::Anonymous,
            Principal::User(credential) => Working::User(credential.access_hash.clone()),
        }
    }
}

/// Tells a connection for whom it works from here on.
pub(super) async fn change(connection: &mut PgConnection, principal: &Principal, roles: Roles) -> Result<Working> {
    let role = match (principal, roles) {
        (_, Roles::One) => String::new(),
        (Principal::Service, Roles::Two) => "RESET ROLE; ".to_owned(),
        (_, Roles::Two) => format!("SET ROLE {RESTRICTED}; "),
    };
    let (caller, session) = match principal {
        Principal::Service => (String::new(), ""),
        Principal::Anonymous => ("anonymous".to_owned(), ""),
        Principal::User(Credential { user_id, access_hash, .. }) => {
            (user_id.hyphenated().to_string(), access_hash.as_str())
        }
    };
    // One batch, one round trip. Nothing in it is from outside: an id, and a hash in hex.
    let sql = format!(
        "{role}SELECT set_config('townsquare.caller', '{caller}', false), set_config('townsquare.session', '{session}', false)"
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map_err(translate)?;
    Ok(Working::of(principal))
}
