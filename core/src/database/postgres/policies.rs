//! PostgreSQL's row-level security policies, generated from the rules of `policy` and forced on every public table.
//!
//! Invariant: an opened database enforces the rules of this library by itself, also for statements of other programs.
//! Policies that another program has changed are created again at the next open.

use std::fmt::Write;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use super::{
    dialect::Postgresql,
    errors::{cannot_set_up, translate},
    role_mode::{RESTRICTED_ROLE, RoleMode},
};
use crate::{
    database::statement::Dialect as _,
    error::Result,
    policy::{Action, Predicate, SqlContext, Table, quoted, rule, updatable},
};

/// The user id that policies compare with, from the connection's settings; NULL for an anonymous caller.
const CALLER: &str = "(SELECT townsquare.caller_id())";

const CONTEXT: SqlContext<'static> =
    SqlContext { caller: CALLER, holds_key: Postgresql::holds_key, linked: Postgresql::linked };

/// A hash of the policies in the system catalogs. It changes if another program changes a policy.
const CATALOG_HASH: &str = "(SELECT encode(sha256(convert_to(COALESCE(string_agg(concat_ws(',', class.relname,
        class.relrowsecurity, class.relforcerowsecurity, policy.polname, policy.polcmd, policy.polpermissive,
        policy.polroles, policy.polqual, policy.polwithcheck), ';' ORDER BY class.relname, policy.polname), ''),
        'UTF8')), 'hex')
    FROM pg_catalog.pg_class AS class LEFT JOIN pg_catalog.pg_policy AS policy ON policy.polrelid = class.oid
    WHERE class.relnamespace IN ('public'::regnamespace, 'townsquare'::regnamespace) AND class.relkind = 'r')";

/// Creates the policies and grants of this library's rules, in the transaction of the caller.
pub(super) async fn apply(connection: &mut PgConnection, role_mode: RoleMode) -> Result<()> {
    let sql = script(role_mode);
    connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.clone()))).await.map_err(cannot_set_up)?;
    let update = format!("UPDATE townsquare.policies SET script = $1::text || {CATALOG_HASH}");
    sqlx::query(AssertSqlSafe(update)).bind(sql).execute(&mut *connection).await.map(drop).map_err(translate)
}

/// True if the database has the policies of this library's rules, unchanged since `apply` created them, and the grants
/// that `role_mode` needs. The grants of [`RoleMode::Restricted`] satisfy both modes.
pub(super) async fn are_current(connection: &mut PgConnection, role_mode: RoleMode) -> Result<bool> {
    let compare =
        format!("SELECT script IN ($1::text || {CATALOG_HASH}, $2::text || {CATALOG_HASH}) FROM townsquare.policies");
    let query = sqlx::query(AssertSqlSafe(compare)).bind(script(role_mode)).bind(script(RoleMode::Restricted));
    query.fetch_one(connection).await.map_err(translate)?.try_get(0).map_err(translate)
}

/// The SQL that creates all policies and grants. It replaces those of an older version.
fn script(role_mode: RoleMode) -> String {
    // The policy conditions name tables without a schema.
    let mut sql = String::from("SET LOCAL search_path = public;\n");
    for table in Table::ALL {
        write_policies(&mut sql, table);
    }
    write_file_policies(&mut sql);
    if role_mode == RoleMode::Restricted {
        let _ = writeln!(sql, "GRANT USAGE ON SCHEMA public, townsquare TO {RESTRICTED_ROLE};");
        for table in Table::ALL {
            write_grants(&mut sql, table);
        }
        for name in ["townsquare.file_contents", "townsquare.file_intents"] {
            let _ = writeln!(sql, "REVOKE ALL ON {name} FROM {RESTRICTED_ROLE};");
            let _ = writeln!(sql, "GRANT select, insert, update, delete ON {name} TO {RESTRICTED_ROLE};");
        }
    }
    sql
}

fn write_policies(sql: &mut String, table: Table) {
    let name = format!("{}.{}", table.schema(), quoted(table.name()));
    write_service_policy(sql, &name);
    for action in Action::ALL {
        let predicate = rule(table, action);
        let condition = predicate.sql(table, CONTEXT);
        write_policy(sql, &name, action, (*predicate != Predicate::Nobody).then_some(condition));
    }
}

/// Writes the policies of the tables that belong to files: whoever may select or change a file may select or change its
/// content and its intent.
fn write_file_policies(sql: &mut String) {
    write_service_policy(sql, "townsquare.file_contents");
    write_service_policy(sql, "townsquare.file_intents");
    for action in Action::ALL {
        let predicate = rule(Table::Files, action);
        let of_content = format!(
            "EXISTS (SELECT 1 FROM townsquare.files AS files
                WHERE files.bucket = file_contents.bucket AND files.path = file_contents.path AND {})",
            predicate.sql(Table::Files, CONTEXT)
        );
        write_policy(sql, "townsquare.file_contents", action, Some(of_content));
        let of_intent = predicate.sql_of_row("file_intents", CONTEXT);
        write_policy(sql, "townsquare.file_intents", action, Some(of_intent));
    }
}

/// Turns row-level security on, with a policy for the service.
fn write_service_policy(sql: &mut String, name: &str) {
    let _ = writeln!(
        sql,
        "ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;
         ALTER TABLE {name} FORCE ROW LEVEL SECURITY;
         DROP POLICY IF EXISTS townsquare_service ON {name};
         CREATE POLICY townsquare_service ON {name} TO CURRENT_USER USING ((SELECT townsquare.is_service()));"
    );
}

/// Replaces a policy; `None` removes it.
fn write_policy(sql: &mut String, name: &str, action: Action, condition: Option<String>) {
    let policy = format!("townsquare_{action}");
    let _ = writeln!(sql, "DROP POLICY IF EXISTS {policy} ON {name};");
    if let Some(condition) = condition {
        let clause = if action == Action::Insert { "WITH CHECK" } else { "USING" };
        let _ = writeln!(sql, "CREATE POLICY {policy} ON {name} FOR {action} {clause} ({condition});");
    }
}

fn write_grants(sql: &mut String, table: Table) {
    let name = format!("{}.{}", table.schema(), quoted(table.name()));
    let _ = writeln!(sql, "REVOKE ALL ON {name} FROM {RESTRICTED_ROLE};");
    for action in Action::ALL.into_iter().filter(|action| *rule(table, *action) != Predicate::Nobody) {
        let columns = match (action, updatable(table)) {
            (Action::Update, Some(columns)) => format!(" ({})", columns.join(", ")),
            _ => String::new(),
        };
        let _ = writeln!(sql, "GRANT {action}{columns} ON {name} TO {RESTRICTED_ROLE};");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_becomes_a_policy_and_an_action_without_a_rule_is_not_granted() {
        let sql = script(RoleMode::Restricted);
        for needed in [
            "CREATE POLICY townsquare_select ON public.spaces FOR select USING \
             ((spaces.owner_id = (SELECT townsquare.caller_id()) OR spaces.is_public IS TRUE));",
            "GRANT update (navigation_config, updated_at) ON public.community_configs TO townsquare_caller;",
            "ALTER TABLE public.\"spaceRegistrations\" FORCE ROW LEVEL SECURITY;",
        ] {
            assert!(sql.contains(needed), "{needed}\n{sql}");
        }
        assert!(!sql.contains("GRANT insert ON public.users"));
        assert!(!script(RoleMode::LoginOnly).contains(RESTRICTED_ROLE));
    }
}
