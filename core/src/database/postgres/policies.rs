//! The access rules of a database and its change log: row-level security policies, grants, the triggers that write the log, and
//! the functions that these call.
//!
//! Invariant: an opened database enforces the rules of this library by itself, also for statements of other programs. The
//! rules consist of parts (`policies/scripts.rs`). The database records for each part the script that created it and a hash of
//! what the system catalogs say about it; `open` creates a part again if either differs, and touches no other part or table.

mod capture;
pub(super) mod foreign;
mod scripts;

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _, postgres::PgRow};

use self::scripts::{FUNCTIONS, Part, SCHEMA, function_names, parts};
use super::{
    errors::{cannot_set_up, translate},
    query::value,
    role_mode::Roles,
};
use crate::{
    error::{Error, Result},
    model::FindingCode,
};

/// The part whose script is empty: the functions of migrations, which `open` cannot create again.
const MIGRATED: &str = "functions of migrations";

/// What the system catalogs say about each part: its flags, policies, rights of PUBLIC and of the callers (`$1`), triggers
/// and functions, which `$4` names. (The part of the schema has the rights of functions.) The rights of other roles are none of
/// the library's business.
const STATE: &str = "WITH grantees (role) AS (SELECT 0::oid UNION SELECT oid FROM pg_catalog.pg_roles WHERE rolname = $1),
 found (name, state) AS (
    SELECT quote_ident(schema.nspname) || '.' || quote_ident(class.relname), concat_ws(';',
        class.relkind, class.relowner::regrole, class.relrowsecurity, class.relforcerowsecurity,
        (SELECT string_agg(concat_ws(',', polname, polcmd, polpermissive, polroles, polqual, polwithcheck), ';'
            ORDER BY polname) FROM pg_catalog.pg_policy WHERE polrelid = class.oid),
        (SELECT string_agg(concat_ws(',', grantee, privilege_type, is_grantable), ';' ORDER BY grantee, privilege_type)
            FROM aclexplode(class.relacl) WHERE grantee IN (SELECT role FROM grantees)),
        (SELECT string_agg(concat_ws(',', attname, grantee, privilege_type), ';' ORDER BY attname, grantee, privilege_type)
            FROM pg_catalog.pg_attribute, aclexplode(attacl)
            WHERE attrelid = class.oid AND grantee IN (SELECT role FROM grantees)),
        (SELECT string_agg(concat_ws(',', tgenabled, tgfoid, encode(tgargs, 'hex')), ';')
            FROM pg_catalog.pg_trigger WHERE tgrelid = class.oid AND tgname = 'townsquare_protect_columns'),
        (SELECT string_agg(pg_get_triggerdef(oid), ';' ORDER BY tgname)
            FROM pg_catalog.pg_trigger WHERE tgrelid = class.oid AND tgname LIKE 'townsquare\\_capture%'))
    FROM pg_catalog.pg_class AS class JOIN pg_catalog.pg_namespace AS schema ON schema.oid = class.relnamespace
    WHERE schema.nspname IN ('public', 'townsquare') AND class.relkind IN ('r', 'p', 'v', 'm', 'f')
  UNION ALL
    SELECT CASE WHEN proname = ANY ($4) THEN 'functions' ELSE 'functions of migrations' END,
        string_agg(concat_ws(',', procedure.oid::regprocedure, proowner = nspowner, prosecdef, provolatile, proconfig, prosrc), ';'
            ORDER BY procedure.oid::regprocedure::text)
    FROM pg_catalog.pg_proc AS procedure, pg_catalog.pg_namespace AS own
    WHERE own.nspname = 'townsquare' AND prokind IN ('f', 'p') AND (pronamespace = own.oid
        OR procedure.oid = to_regprocedure('public.get_active_community_config(character varying)'))
    GROUP BY 1
  UNION ALL
    SELECT 'schema', concat_ws(';',
        (SELECT string_agg(concat_ws(',', grantee, privilege_type), ';' ORDER BY grantee, privilege_type)
            FROM aclexplode(schema.nspacl) WHERE grantee IN (SELECT role FROM grantees)),
        (SELECT string_agg(concat_ws(',', relname, grantee, privilege_type), ';'
                ORDER BY relname, grantee, privilege_type)
            FROM pg_catalog.pg_class, aclexplode(relacl)
            WHERE relnamespace = schema.oid AND grantee IN (SELECT role FROM grantees)
            AND relname NOT IN ('files', 'file_contents', 'file_intents')),
        (SELECT string_agg(concat_ws(',', routine.oid::regprocedure, grantee), ';'
                ORDER BY routine.oid::regprocedure::text, grantee)
            FROM pg_catalog.pg_proc AS routine, aclexplode(COALESCE(proacl, acldefault('f', proowner)))
            WHERE pronamespace = schema.oid AND grantee IN (SELECT role FROM grantees)))
    FROM pg_catalog.pg_namespace AS schema WHERE nspname = 'townsquare'
 ),
 current (name, script) AS (
    SELECT wanted.name, wanted.script || encode(sha256(convert_to(COALESCE(found.state, ''), 'UTF8')), 'hex')
    FROM unnest($2::text[], $3::text[]) AS wanted (name, script) LEFT JOIN found ON found.name = wanted.name
 )";

/// The code of the finding that the part with this name was changed, and what the finding calls the part.
pub(super) fn finding_of(part: &str) -> (FindingCode, String) {
    match part {
        SCHEMA => (FindingCode::PolicyChanged, "The grants of the schema townsquare".to_owned()),
        FUNCTIONS | MIGRATED => {
            (FindingCode::FunctionChanged, format!("A function of the schema townsquare (of the {part})"))
        }
        _ if capture::tables_without_policies().any(|table| table == part) => {
            (FindingCode::TriggerChanged, format!("A trigger of the table {part}"))
        }
        _ => (FindingCode::PolicyChanged, format!("The policies, grants or triggers of the table {part}")),
    }
}

/// The names of the triggers that write the change log, by the qualified names of their tables.
pub(super) fn capture_triggers() -> BTreeMap<String, BTreeSet<String>> {
    capture::trigger_names().collect()
}

/// A part that differs from this library's rules.
pub(super) struct OutdatedPart {
    pub(super) name: String,
    /// Whether this library created the part, and another program changed it.
    was_changed: bool,
}

/// The parts that differ from this library's rules.
pub(super) async fn outdated(connection: &mut PgConnection, roles: &Roles) -> Result<Vec<OutdatedPart>> {
    // A record ends with the 64 digits of the hash of the state.
    let sql = format!(
        "{STATE} SELECT current.name, left(known.script, -64) IS NOT DISTINCT FROM left(current.script, -64)
         FROM current LEFT JOIN townsquare.policies AS known ON known.name = current.name
         WHERE known.script IS DISTINCT FROM current.script"
    );
    let rows = with_parts(connection, sql, roles, &wanted(roles)).await?;
    let part = |row: &PgRow| Ok(OutdatedPart { name: row.try_get(0)?, was_changed: row.try_get(1)? });
    rows.iter().map(part).collect::<sqlx::Result<_>>().map_err(translate)
}

/// Checks the functions of migrations, before migrations of this transaction may change them.
///
/// # Errors
/// `Config` if another program has replaced one.
pub(super) async fn check_functions(connection: &mut PgConnection, roles: &Roles) -> Result<()> {
    let exists: bool = value(connection, "SELECT to_regclass('townsquare.policies') IS NOT NULL").await?;
    let sql = format!(
        "{STATE} SELECT 1 FROM current JOIN townsquare.policies AS known ON known.name = current.name
         WHERE known.script <> current.script"
    );
    if exists && !with_parts(connection, sql, roles, &[migrated()]).await?.is_empty() {
        return Err(Error::config(
            "Option database_url: a function of the schema townsquare was changed by another program; restore the \
             schema townsquare from a backup",
        ));
    }
    Ok(())
}

/// Creates the parts of the rules that are outdated, in the transaction of the caller.
///
/// # Errors
/// `Config` if policies or grants of other programs would change what callers see, and if the login role lacks a right.
pub(super) async fn apply(connection: &mut PgConnection, roles: &Roles) -> Result<()> {
    let outdated = outdated(connection, roles).await?;
    for part in outdated.iter().filter(|part| part.was_changed) {
        tracing::warn!(part = part.name, "another program has changed access rules, and they are created again");
    }
    let tables_with_others = foreign::check(connection, roles).await?;
    // The part of the schema revokes rights that the parts of tables grant.
    let is_outdated = |part: &Part| outdated.iter().any(|other| other.name == part.name || other.name == SCHEMA);
    for part in parts(roles, &tables_with_others).into_iter().filter(is_outdated) {
        connection.execute(sqlx::raw_sql(AssertSqlSafe(part.script))).await.map_err(cannot_set_up)?;
    }
    let record = format!(
        "{STATE} INSERT INTO townsquare.policies (name, script) SELECT name, script FROM current
         ON CONFLICT (name) DO UPDATE SET script = excluded.script WHERE policies.script <> excluded.script"
    );
    with_parts(connection, record, roles, &wanted(roles)).await.map(drop)
}

/// The parts to compare. Their scripts are those for tables without policies of other programs: a hash says whether a
/// table has some.
fn wanted(roles: &Roles) -> Vec<Part> {
    let mut wanted = parts(roles, &[]);
    wanted.push(migrated());
    wanted
}

fn migrated() -> Part {
    Part { name: MIGRATED.to_owned(), script: String::new() }
}

/// Runs a statement that begins with [`STATE`] for these parts.
async fn with_parts(connection: &mut PgConnection, sql: String, roles: &Roles, parts: &[Part]) -> Result<Vec<PgRow>> {
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    let scripts: Vec<&str> = parts.iter().map(|part| part.script.as_str()).collect();
    let functions = function_names();
    let query = sqlx::query(AssertSqlSafe(sql)).bind(&roles.callers).bind(names).bind(scripts).bind(functions);
    query.persistent(false).fetch_all(connection).await.map_err(translate)
}
