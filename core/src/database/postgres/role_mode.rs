//! The PostgreSQL roles of a database: the service and the role of all other callers.
//!
//! Invariant: no connection is used on which row-level security would not hold, or that is not the service of its database.
//! The service is the owner of the schema `townsquare`: a property of the database, whichever role opened it last. Other
//! login roles are the service if they are members of the owner. The role of the callers belongs to one database, because
//! roles are cluster-wide: its name contains the database's oid.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use super::errors::translate;
use crate::error::{Error, Result};

/// The roles that a database and its connections use. Names are quoted for SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Roles {
    /// The owner of the schema `townsquare`; before it exists, the login role.
    pub(super) service: String,
    /// The role of the callers, which exists if `has_callers`.
    pub(super) callers: String,
    pub(super) has_callers: bool,
    pub(super) mode: RoleMode,
    /// The login role bypasses row-level security, as a superuser does.
    pub(super) login_bypasses: bool,
    /// The login role may create the role of the callers.
    pub(super) creates_roles: bool,
    /// The login role is another than the service.
    pub(super) is_member_of_service: bool,
}

/// Which roles statements run under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoleMode {
    /// Statements of the service run under the login role, statements of other callers under the role of the callers.
    Restricted,
    /// All statements run under the login role. Row-level security is forced on that role, and only a setting lifts it
    /// for the service.
    LoginOnly,
}

/// Reads all facts about the roles in one round trip.
const FACTS: &str = "SELECT 'townsquare_caller_' || database.oid AS callers,
        quote_ident(COALESCE(owner.rolname, login.rolname)) AS service,
        login.rolname::text AS login,
        pg_catalog.current_setting('session_replication_role') AS replication_role,
        COALESCE(owner.rolname <> login.rolname, false) AS is_member_of_service,
        COALESCE(pg_has_role(login.oid, owner.oid, 'USAGE'), true) AS is_service,
        login.rolsuper OR login.rolbypassrls AS login_bypasses,
        login.rolsuper OR login.rolcreaterole AS creates_roles,
        callers.oid IS NOT NULL AS has_callers,
        COALESCE(callers.rolsuper OR callers.rolbypassrls, false) AS callers_bypass,
        (SELECT string_agg(quote_ident(granted.rolname), ', ') FROM pg_catalog.pg_auth_members AS membership
            JOIN pg_catalog.pg_roles AS granted ON granted.oid = membership.roleid
            WHERE membership.member = callers.oid) AS roles_of_callers,
        COALESCE(pg_has_role(login.oid, callers.oid, CASE
            WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END), false) AS is_caller
    FROM pg_catalog.pg_database AS database
    JOIN pg_catalog.pg_roles AS login ON login.rolname = session_user
    LEFT JOIN pg_catalog.pg_namespace AS schema ON schema.nspname = 'townsquare'
    LEFT JOIN pg_catalog.pg_roles AS owner ON owner.oid = schema.nspowner
    LEFT JOIN pg_catalog.pg_roles AS callers ON callers.rolname = 'townsquare_caller_' || database.oid
    WHERE database.datname = current_database()";

impl Roles {
    /// The roles of a pool before its database is set up: the login role for every statement.
    pub(super) fn unknown() -> Roles {
        Roles {
            service: String::new(),
            callers: String::new(),
            has_callers: false,
            mode: RoleMode::LoginOnly,
            login_bypasses: false,
            creates_roles: false,
            is_member_of_service: false,
        }
    }

    /// Reads the roles of the connection's database.
    ///
    /// # Errors
    /// `Config` if the login role is not the service of the database, if the role of the callers has rights of its own,
    /// if row-level security could hold in neither mode, or if triggers would not run.
    pub(super) async fn read(connection: &mut PgConnection) -> Result<Roles> {
        let row = connection.fetch_one(FACTS).await.map_err(translate)?;
        let text = |column| row.try_get::<String, _>(column).map_err(translate);
        let is = |column| row.try_get::<bool, _>(column).map_err(translate);
        check_triggers(&text("replication_role")?)?;
        let (login, service, callers) = (text("login")?, text("service")?, text("callers")?);
        if !is("is_service")? {
            return Err(Error::config(format!(
                "Option database_url: the role {login:?} is not the service of this database: it does not have the rights \
                 of {service}, which owns the schema townsquare (GRANT {service} TO {login:?})"
            )));
        }
        let roles_of_callers: Option<String> = row.try_get("roles_of_callers").map_err(translate)?;
        if let Some(others) = roles_of_callers {
            return Err(Error::config(format!(
                "Option database_url: row-level security would not hold: the role {callers} is a member of {others} \
                 (REVOKE {others} FROM {callers})"
            )));
        }
        let (login_bypasses, callers_bypass) = (is("login_bypasses")?, is("callers_bypass")?);
        let creates_roles = is("creates_roles")?;
        let mode = match (is("is_caller")? && !callers_bypass, login_bypasses) {
            (true, _) => RoleMode::Restricted,
            (false, false) => RoleMode::LoginOnly,
            (false, true) if creates_roles && !callers_bypass => RoleMode::LoginOnly,
            (false, true) => return Err(cannot_restrict(&callers)),
        };
        Ok(Roles {
            has_callers: is("has_callers")? && !callers_bypass,
            mode,
            login_bypasses,
            creates_roles,
            is_member_of_service: is("is_member_of_service")?,
            service,
            callers,
        })
    }

    /// Whether the login role can and must create the role of the callers, or join it.
    pub(super) fn can_be_restricted(&self) -> bool {
        self.mode == RoleMode::LoginOnly && self.creates_roles
    }

    /// Creates the role of the callers and joins it, in the transaction of the caller. Does nothing if the login role lacks
    /// the right.
    ///
    /// # Errors
    /// `Config` if row-level security would not hold without it.
    pub(super) async fn restrict(self, connection: &mut PgConnection) -> Result<Roles> {
        if !self.can_be_restricted() {
            return Ok(self);
        }
        let callers = &self.callers;
        let create = if self.has_callers { String::new() } else { format!("CREATE ROLE {callers} NOLOGIN NOINHERIT;") };
        let sql = format!(
            "DO $$ BEGIN {create} GRANT {callers} TO SESSION_USER;
             EXCEPTION WHEN insufficient_privilege THEN NULL; END $$"
        );
        connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map_err(translate)?;
        let roles = Roles::read(connection).await?;
        if roles.mode == RoleMode::LoginOnly && roles.login_bypasses {
            return Err(cannot_restrict(&roles.callers));
        }
        Ok(roles)
    }

    /// The roles that policies apply to, as SQL.
    pub(super) fn of_policies(&self) -> String {
        if self.has_callers { format!("{}, {}", self.service, self.callers) } else { self.service.clone() }
    }
}

fn cannot_restrict(callers: &str) -> Error {
    Error::config(format!(
        "Option database_url: row-level security would not hold: the login role bypasses it and cannot SET ROLE to a role \
         {callers} that does not (CREATE ROLE {callers} NOLOGIN; GRANT {callers} TO the login role)"
    ))
}

/// Checks the setting `session_replication_role`. Only an administrator may change it, also for the role of the library.
///
/// # Errors
/// `Config` if it switches triggers off: changes would be missing in the change log.
pub(super) fn check_triggers(replication_role: &str) -> Result<()> {
    if replication_role == "origin" {
        return Ok(());
    }
    Err(Error::config(format!(
        "Option database_url: session_replication_role is {replication_role} for this role or database, so triggers do not \
         run (ALTER ROLE … RESET session_replication_role, or ALTER DATABASE)"
    )))
}
