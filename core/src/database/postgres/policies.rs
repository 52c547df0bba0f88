//! The policies as PostgreSQL's own: made from the rules of `policy`, forced on every public table.
//!
//! Invariant: a database that opened enforces the rules of this library by itself, also on statements that it did not write.
//! A connection on which they would not hold is refused; policies that somebody has changed are made anew at the next open.

use std::fmt::Write;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use super::{
    dialect::Postgresql,
    errors::translate,
    migrate::not_permitted,
    role::{RESTRICTED, Roles},
};
use crate::{
    database::statement::Dialect as _,
    error::{Error, Result},
    policy::{Action, Predicate, SqlContext, Table, quoted, rule, updatable},
};

/// What policies compare with: an id from the connection's settings, NULL for nobody.
const CALLER: &str = "(SELECT townsquare.caller_id())";

/// What is asked of the role that logged in, in one round trip.
const STANDING: &str = "SELECT me.rolsuper OR me.rolbypassrls AS bypasses,
        me.rolsuper OR me.rolcreaterole AS makes_roles,
        other.oid IS NOT NULL AS exists,
        COALESCE(other.rolsuper OR other.rolbypassrls, false) AS other_bypasses,
        COALESCE(pg_has_role(session_user, other.oid, CASE
            WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END), false) AS is_member
    FROM pg_catalog.pg_roles AS me LEFT JOIN pg_catalog.pg_roles AS other ON other.rolname = 'townsquare_caller'
    WHERE me.rolname = current_user";

/// What the database holds of policies, as a hash: a row of its own catalogs that changes by hand changes it.
const STATE: &str = "(SELECT encode(sha256(convert_to(COALESCE(string_agg(concat_ws(',', class.relname,
        class.relrowsecurity, class.relforcerowsecurity, policy.polname, policy.polcmd, policy.polpermissive,
        policy.polroles, policy.polqual, policy.polwithcheck), ';' ORDER BY class.relname, policy.polname), ''),
        'UTF8')), 'hex')
    FROM pg_catalog.pg_class AS class LEFT JOIN pg_catalog.pg_policy AS policy ON policy.polrelid = class.oid
    WHERE class.relnamespace = 'public'::regnamespace AND class.relkind = 'r')";

struct Standing {
    bypasses: bool,
    makes_roles: bool,
    exists: bool,
    other_bypasses: bool,
    is_member: bool,
}

/// Which roles this connection can have; makes the restricted one where it is missing and may be made.
pub(super) async fn roles(connection: &mut PgConnection) -> Result<Roles> {
    let mut found = standing(connection).await?;
    if !found.is_member && found.makes_roles {
        make_role(connection, found.exists).await?;
        found = standing(connection).await?;
    }
    match found {
        Standing { is_member: true, other_bypasses: false, .. } => Ok(Roles::Two),
        Standing { bypasses: false, .. } => Ok(Roles::One),
        _ => Err(Error::config(format!(
            "Option database_url: row-level security would not hold: the role that logs in passes it by, and there is no \
             role {RESTRICTED} to change to that does not (CREATE ROLE {RESTRICTED} NOLOGIN; GRANT {RESTRICTED} TO it)"
        ))),
    }
}

async fn standing(connection: &mut PgConnection) -> Result<Standing> {
    let row = connection.fetch_one(STANDING).await.map_err(translate)?;
    let is = |column| row.try_get::<bool, _>(column).map_err(translate);
    Ok(Standing {
        bypasses: is("bypasses")?,
        makes_roles: is("makes_roles")?,
        exists: is("exists")?,
        other_bypasses: is("other_bypasses")?,
        is_member: is("is_member")?,
    })
}

/// Makes the restricted role and joins it. Roles are the cluster's: another database may be making it just now.
async fn make_role(connection: &mut PgConnection, exists: bool) -> Result<()> {
    let create = if exists { "" } else { "CREATE ROLE townsquare_caller NOLOGIN NOINHERIT;" };
    // A role that we may not join leaves us with the one we have: `roles` decides what that is worth.
    let sql = format!(
        "DO $$ BEGIN {create} GRANT townsquare_caller TO SESSION_USER;
         EXCEPTION WHEN duplicate_object OR unique_violation THEN
             BEGIN GRANT townsquare_caller TO SESSION_USER; EXCEPTION WHEN insufficient_privilege THEN NULL; END;
         WHEN insufficient_privilege THEN NULL; END $$"
    );
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map(drop).map_err(translate)
}

/// Brings the policies up to the rules of this library, inside the transaction of the caller. Cheap when they are.
pub(super) async fn apply(connection: &mut PgConnection, roles: Roles) -> Result<()> {
    let sql = script(roles);
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.clone()))).await.map_err(not_permitted)?;
    let keep = format!("UPDATE townsquare.policies SET script = $1::text || {STATE}");
    sqlx::query(AssertSqlSafe(keep)).bind(sql).execute(&mut *connection).await.map(drop).map_err(translate)
}

/// Whether the database has the policies of this library's rules as they were made, and the grants that these roles need.
pub(super) async fn are_current(connection: &mut PgConnection, roles: Roles) -> Result<bool> {
    let asked = format!("SELECT script IN ($1::text || {STATE}, $2::text || {STATE}) FROM townsquare.policies");
    let kept = sqlx::query(AssertSqlSafe(asked)).bind(script(roles)).bind(script(Roles::Two));
    kept.fetch_one(connection).await.map_err(translate)?.try_get(0).map_err(translate)
}

/// Everything about policies, from nothing or from those of an older version.
fn script(roles: Roles) -> String {
    // Texts of policies name tables as the statements do.
    let mut sql = String::from("SET LOCAL search_path = public;\n");
    for table in Table::ALL {
        write_policies(&mut sql, table);
    }
    if roles == Roles::Two {
        let _ = writeln!(sql, "GRANT USAGE ON SCHEMA public, townsquare TO {RESTRICTED};");
        for table in Table::ALL {
            write_grants(&mut sql, table);
        }
    }
    sql
}

fn write_policies(sql: &mut String, table: Table) {
    let name = format!("public.{}", quoted(table.name()));
    let _ = writeln!(
        sql,
        "ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;
         ALTER TABLE {name} FORCE ROW LEVEL SECURITY;
         DROP POLICY IF EXISTS townsquare_service ON {name};
         CREATE POLICY townsquare_service ON {name} TO CURRENT_USER USING ((SELECT townsquare.is_service()));"
    );
    for action in Action::ALL {
        let policy = format!("townsquare_{action}");
        let _ = writeln!(sql, "DROP POLICY IF EXISTS {policy} ON {name};");
        let predicate = rule(table, action);
        if *predicate == Predicate::Nobody {
            continue;
        }
        let condition = predicate.sql(table, SqlContext { caller: CALLER, holds_key: Postgresql::holds_key });
        let clause = if action == Action::Insert { "WITH CHECK" } else { "USING" };
        let _ = writeln!(sql, "CREATE POLICY {policy} ON {name} FOR {action} {clause} ({condition});");
    }
}

fn write_grants(sql: &mut String, table: Table) {
    let name = format!("public.{}", quoted(table.name()));
    let _ = writeln!(sql, "REVOKE ALL ON {name} FROM {RESTRICTED};");
    for action in Action::ALL.into_iter().filter(|action| *rule(table, *action) != Predicate::Nobody) {
        let columns = match (action, updatable(table)) {
            (Action::Update, Some(columns)) => format!(" ({})", columns.join(", ")),
            _ => String::new(),
        };
        let _ = writeln!(sql, "GRANT {action}{columns} ON {name} TO {RESTRICTED};");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_a_policy_and_what_is_nobodys_is_not_even_granted() {
        let sql = script(Roles::Two);
        for needed in [
            "CREATE POLICY townsquare_select ON public.spaces FOR select USING \
             ((spaces.owner_id = (SELECT townsquare.caller_id()) OR spaces.is_public IS TRUE));",
            "GRANT update (navigation_config, updated_at) ON public.community_configs TO townsquare_caller;",
            "ALTER TABLE public.\"spaceRegistrations\" FORCE ROW LEVEL SECURITY;",
        ] {
            assert!(sql.contains(needed), "{needed}\n{sql}");
        }
        assert!(!sql.contains("GRANT insert ON public.users"));
        assert!(!script(Roles::One).contains(RESTRICTED));
    }
}
