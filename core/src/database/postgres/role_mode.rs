//! Detects which PostgreSQL roles the statements of a caller can run under.
//!
//! Invariant: no connection is used on which row-level security would not hold. If the login role bypasses row-level
//! security and cannot `SET ROLE` to one that does not, opening the database fails.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use super::errors::translate;
use crate::error::{Error, Result};

/// The role of every caller but the service. It owns nothing and does not bypass row-level security.
pub(super) const RESTRICTED_ROLE: &str = "townsquare_caller";

/// Which roles statements run under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoleMode {
    /// Statements of the service run under the login role, statements of other callers under [`RESTRICTED_ROLE`].
    Restricted,
    /// All statements run under the login role. Row-level security is forced on that role, and only a setting lifts it
    /// for the service.
    LoginOnly,
}

/// What the login role and [`RESTRICTED_ROLE`] may do.
struct RoleCapabilities {
    /// The login role bypasses row-level security.
    login_bypasses: bool,
    /// The login role may create roles.
    creates_roles: bool,
    restricted_exists: bool,
    restricted_bypasses: bool,
    /// The login role may `SET ROLE` to the restricted one.
    is_member: bool,
}

/// Reads [`RoleCapabilities`] in one round trip.
const CAPABILITIES: &str = "SELECT login.rolsuper OR login.rolbypassrls AS login_bypasses,
        login.rolsuper OR login.rolcreaterole AS creates_roles,
        restricted.oid IS NOT NULL AS restricted_exists,
        COALESCE(restricted.rolsuper OR restricted.rolbypassrls, false) AS restricted_bypasses,
        COALESCE(pg_has_role(session_user, restricted.oid, CASE
            WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END), false) AS is_member
    FROM pg_catalog.pg_roles AS login
    LEFT JOIN pg_catalog.pg_roles AS restricted ON restricted.rolname = 'townsquare_caller'
    WHERE login.rolname = current_user";

/// Returns the role mode of this connection. Creates the restricted role if it is missing and the login
/// role may create roles.
///
/// # Errors
/// `Config` if row-level security would hold in neither mode.
pub(super) async fn detect(connection: &mut PgConnection) -> Result<RoleMode> {
    let mut capabilities = read_capabilities(connection).await?;
    if !capabilities.is_member && capabilities.creates_roles {
        join_restricted_role(connection, capabilities.restricted_exists).await?;
        capabilities = read_capabilities(connection).await?;
    }
    match capabilities {
        RoleCapabilities { is_member: true, restricted_bypasses: false, .. } => Ok(RoleMode::Restricted),
        RoleCapabilities { login_bypasses: false, .. } => Ok(RoleMode::LoginOnly),
        _ => Err(Error::config(format!(
            "Option database_url: row-level security would not hold: the login role bypasses it and cannot SET ROLE to \
             a role {RESTRICTED_ROLE} that does not (CREATE ROLE {RESTRICTED_ROLE} NOLOGIN; GRANT {RESTRICTED_ROLE} TO \
             the login role)"
        ))),
    }
}

async fn read_capabilities(connection: &mut PgConnection) -> Result<RoleCapabilities> {
    let row = connection.fetch_one(CAPABILITIES).await.map_err(translate)?;
    let get = |column| row.try_get::<bool, _>(column).map_err(translate);
    Ok(RoleCapabilities {
        login_bypasses: get("login_bypasses")?,
        creates_roles: get("creates_roles")?,
        restricted_exists: get("restricted_exists")?,
        restricted_bypasses: get("restricted_bypasses")?,
        is_member: get("is_member")?,
    })
}

/// Creates the restricted role unless it `exists`, and grants it to the login role. Does nothing if the login role
/// lacks the right.
async fn join_restricted_role(connection: &mut PgConnection, exists: bool) -> Result<()> {
    let create = if exists { "" } else { "CREATE ROLE townsquare_caller NOLOGIN NOINHERIT;" };
    // Roles belong to the whole cluster: a client of another database may create the role at the same time.
    let sql = format!(
        "DO $$ BEGIN {create} GRANT townsquare_caller TO SESSION_USER;
         EXCEPTION WHEN duplicate_object OR unique_violation THEN
             BEGIN GRANT townsquare_caller TO SESSION_USER; EXCEPTION WHEN insufficient_privilege THEN NULL; END;
         WHEN insufficient_privilege THEN NULL; END $$"
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map(drop).map_err(translate)
}
