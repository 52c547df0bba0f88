//! Adopts a database that has the tables of SPEC 2 but was not made by this library (DESIGN 3a). A copy of such tables has the same
//! check.
//!
//! Invariant: every difference is found before anything is changed, and rows are never changed. What other clients of the
//! database could do, they still can.

mod columns;
mod rows;
mod rules;

use std::fmt::Write;

use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use self::{
    columns::{FoundColumn, fits},
    rows::{BrokenRule, broken_rows, repeated_keys},
    rules::{CHECKS, keys},
};
use super::{
    errors::cannot_set_up,
    policies::foreign,
    query::{tuples, value},
    role_mode::Roles,
};
use crate::{
    error::{Error, Result},
    policy::{REFERENCES, Table, quoted},
};

/// The statements of the migration that creates the tables. Here each does nothing if its object exists.
const CREATE_TABLES: &str = include_str!("../../../migrations/postgres/0002_tables.sql");

/// The relations with the names of the tables, and their columns.
const FOUND: &str = "SELECT class.relname::text, class.relkind::text, quote_ident(pg_get_userbyid(class.relowner)),
        pg_has_role(session_user, class.relowner, 'USAGE'), COALESCE(column_.attname::text, ''),
        COALESCE(format_type(column_.atttypid, column_.atttypmod), ''), COALESCE(column_.attnotnull, false),
        COALESCE(column_.atthasdef OR column_.attidentity <> '', false)
    FROM pg_catalog.pg_class AS class
    LEFT JOIN pg_catalog.pg_attribute AS column_
        ON column_.attrelid = class.oid AND column_.attnum > 0 AND NOT column_.attisdropped
    WHERE class.relnamespace = 'public'::regnamespace AND class.relkind <> 'i' AND class.relkind <> 'S'
        AND class.relname = ANY ($1)
    ORDER BY class.relname, column_.attnum";

/// Selects each table, whether it has row-level security, and the other roles that would lose rows by it. Forced row-level
/// security binds the owner, too.
const LOSING_ROLES: &str =
    "SELECT class.oid::regclass AS name, class.relname::text AS plain_name, class.relrowsecurity,
        (SELECT string_agg(quote_ident(role.rolname), ', ' ORDER BY role.rolname) FROM pg_catalog.pg_roles AS role
            WHERE role.rolname <> session_user AND (role.oid = class.relowner AND NOT class.relforcerowsecurity
                OR NOT class.relrowsecurity AND role.oid IN (SELECT grantee FROM aclexplode(class.relacl)
                    UNION SELECT grantee FROM pg_catalog.pg_attribute, aclexplode(attacl) WHERE attrelid = class.oid))
        ) AS roles
    FROM pg_catalog.pg_class AS class
    WHERE class.relnamespace = 'public'::regnamespace AND class.relkind IN ('r', 'p') AND class.relname IN (";

/// A row of [`FOUND`]: the relation, its kind, its owner, whether the login role has the owner's rights; and a column, its
/// type, whether it is required and whether it has a default.
type FoundRow = (String, String, String, bool, String, String, bool, bool);

/// How a database differs from SPEC 2.
#[derive(Default)]
pub(super) struct Differences {
    /// The tables that exist.
    found: Vec<String>,
    /// Why the tables do not fit.
    obstacles: Vec<String>,
    /// What adopting changes, and what stays different.
    remarks: Vec<String>,
}

/// What becomes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The library uses them in their place.
    Adopt,
    /// Their rows are copied to another database, which has every rule.
    Copy,
}

/// Compares the tables of a database with SPEC 2, for a copy of their rows. Returns the tables that exist, and why their rows cannot
/// be copied.
pub(super) async fn check_copy(connection: &mut PgConnection) -> Result<(Vec<String>, Vec<String>)> {
    let mut differences = Differences::read(connection, Purpose::Copy).await?;
    if differences.obstacles.is_empty() {
        differences.compare_rows(connection).await?;
        let broken = broken_rows(connection, &differences.found).await?;
        differences.obstacles.extend(broken.iter().map(BrokenRule::obstacle));
    }
    Ok((differences.found, differences.obstacles))
}

/// Compares the tables of a database without the schema `townsquare`.
///
/// # Errors
/// `Config` if there are such tables and `adopt` is off, if they do not fit, and if policies or rights of other programs would
/// change what callers see. The message lists every difference.
pub(super) async fn check(connection: &mut PgConnection, roles: &Roles, adopt: bool) -> Result<Differences> {
    let mut differences = Differences::read(connection, Purpose::Adopt).await?;
    if differences.found.is_empty() {
        return Ok(differences);
    }
    if differences.obstacles.is_empty() {
        differences.compare_rows(connection).await?;
        differences.note_rows(connection).await?;
    }
    if differences.obstacles.is_empty() {
        foreign::check(connection, roles).await?;
        differences.note_row_security(connection).await?;
    }
    let tables = differences.found.join(", ");
    let list = |lines: &[String]| lines.iter().map(|line| format!("\n- {line}")).collect::<String>();
    if !differences.obstacles.is_empty() {
        return Err(Error::config(format!(
            "Option database_url: the tables {tables} already exist, were not made by this library, and do not fit:{}",
            list(&differences.obstacles)
        )));
    }
    if !adopt {
        return Err(Error::config(format!(
            "Option database_url: the tables {tables} already exist and were not made by this library. They fit: the option \
             adopt would take them.{}",
            list(&differences.remarks)
        )));
    }
    Ok(differences)
}

impl Differences {
    /// Whether there is something to adopt.
    pub(super) fn has_tables(&self) -> bool {
        !self.found.is_empty()
    }

    async fn read(connection: &mut PgConnection, purpose: Purpose) -> Result<Differences> {
        let names: Vec<String> = Table::public().map(|table| table.name().to_owned()).collect();
        let rows: Vec<FoundRow> = tuples(connection, FOUND, &[&names]).await?;
        let mut differences = Differences::default();
        let mut missing = Vec::new();
        for table in Table::public() {
            let name = table.name();
            let of_table = || rows.iter().filter(move |row| row.0 == name);
            let Some((_, kind, owner, has_rights, ..)) = of_table().next() else {
                missing.push(name);
                continue;
            };
            differences.found.push(name.to_owned());
            if !matches!(kind.as_str(), "r" | "p") {
                differences.obstacles.push(format!("{name} is no table"));
                continue;
            }
            if !has_rights && purpose == Purpose::Adopt {
                differences.obstacles.push(format!("{name} belongs to the role {owner}, whose rights are needed"));
            }
            let column = |(.., name, type_name, is_required, has_default): &FoundRow| FoundColumn {
                name: name.clone(),
                type_name: type_name.clone(),
                // A copy writes no row of the table.
                is_required: *is_required && purpose == Purpose::Adopt,
                has_default: *has_default || purpose == Purpose::Copy,
            };
            let found: Vec<FoundColumn> = of_table().map(column).collect();
            let (obstacles, remarks) = fits(table, &found);
            differences.obstacles.extend(obstacles);
            differences.remarks.extend(remarks);
        }
        if !missing.is_empty() {
            differences.remarks.push(format!("these tables are missing and are created: {}", missing.join(", ")));
        }
        Ok(differences)
    }

    /// Says where row-level security is switched on, and who keeps their rows.
    async fn note_row_security(&mut self, connection: &mut PgConnection) -> Result<()> {
        let sql = format!("SELECT plain_name, relrowsecurity, roles FROM ({}) AS losing", losing_roles());
        let rows: Vec<(String, bool, Option<String>)> = tuples(connection, sql, &[]).await?;
        for (table, has_row_security, roles) in rows {
            let kept =
                roles.map(|roles| format!("the policy kept_by_adoption keeps what {roles} could see and change"));
            match (has_row_security, kept) {
                (false, kept) => {
                    let kept = kept.unwrap_or_else(|| "no other role had rights".to_owned());
                    self.remarks.push(format!("row-level security is switched on for {table}; {kept}"));
                }
                (true, Some(kept)) => {
                    self.remarks
                        .push(format!("row-level security of {table} binds the owner of the table, too; {kept}"));
                }
                (true, None) => {}
            }
        }
        Ok(())
    }

    /// Finds rows that the library could not tell apart.
    async fn compare_rows(&mut self, connection: &mut PgConnection) -> Result<()> {
        self.obstacles.extend(repeated_keys(connection, &self.found).await?);
        if !self.found.iter().any(|table| table == "users") {
            return Ok(());
        }
        let doubles = "SELECT string_agg(id::text, ', ' ORDER BY id) FROM public.users
            GROUP BY lower(email) HAVING count(*) > 1 ORDER BY 1 LIMIT 20";
        for (users,) in tuples::<(String,)>(connection, doubles, &[]).await? {
            self.obstacles.push(format!("the addresses of these users differ only in case: {users}"));
        }
        Ok(())
    }

    /// Notes the rows that break a rule, and the rights that operators should know of.
    async fn note_rows(&mut self, connection: &mut PgConnection) -> Result<()> {
        let broken = broken_rows(connection, &self.found).await?;
        self.remarks.extend(broken.iter().map(BrokenRule::remark));
        if !self.found.iter().any(|table| table == "users") {
            return Ok(());
        }
        let readers = "SELECT string_agg(quote_ident(rolname), ', ' ORDER BY rolname) FROM pg_catalog.pg_roles
            WHERE NOT rolsuper AND rolname NOT LIKE 'pg\\_%' AND rolname <> session_user
            AND has_column_privilege(oid, 'public.users'::regclass, 'email', 'SELECT')";
        if let Some(readers) = value::<Option<String>>(connection, readers).await? {
            self.remarks.push(format!("these roles may read users.email, as far as policies let them: {readers}"));
        }
        let references = "SELECT string_agg(DISTINCT confrelid::regclass::text, ', ') FROM pg_catalog.pg_constraint
            WHERE conrelid = 'public.users'::regclass AND contype = 'f'";
        if let Some(others) = value::<Option<String>>(connection, references).await? {
            self.remarks
                .push(format!("users references {others}: sign-up fails for users that {others} does not have"));
        }
        Ok(())
    }

    /// Adds what is missing, in the transaction of the caller. Runs in place of the migration that creates the tables.
    ///
    /// # Errors
    /// `Config` if rows break a key.
    pub(super) async fn adopt(&self, connection: &mut PgConnection) -> Result<()> {
        for remark in &self.remarks {
            tracing::warn!("adopting the database: {remark}");
        }
        let mut sql = keep_rights();
        // First, because the tables that are created refer to them.
        for (table, columns) in keys() {
            write_key(&mut sql, table, columns);
        }
        let create = CREATE_TABLES
            .replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ")
            .replace("CREATE INDEX ", "CREATE INDEX IF NOT EXISTS ");
        sql.push_str(&create);
        for (table, column, target, target_column) in REFERENCES {
            let (table, target) = (quoted(table.name()), quoted(target.name()));
            let _ = write!(
                sql,
                "DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_constraint AS known
                    JOIN pg_catalog.pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
                    WHERE conrelid = 'public.{table}'::regclass AND contype = 'f' AND attname = '{column}'
                    AND confrelid = 'public.{target}'::regclass)
                 THEN ALTER TABLE public.{table} ADD FOREIGN KEY ({column}) REFERENCES public.{target} ({target_column})
                    ON DELETE CASCADE NOT VALID; END IF; END $$;\n"
            );
        }
        for (table, name, condition) in CHECKS {
            let table = quoted(table.name());
            // An earlier adoption may have added it.
            let _ = writeln!(
                sql,
                "ALTER TABLE public.{table} DROP CONSTRAINT IF EXISTS {name},
                    ADD CONSTRAINT {name} CHECK ({condition}) NOT VALID;"
            );
        }
        connection.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.map(drop).map_err(cannot_set_up)
    }
}

fn losing_roles() -> String {
    let names: Vec<String> = Table::public().map(|table| format!("'{}'", table.name())).collect();
    format!("{LOSING_ROLES}{}) ORDER BY class.relname", names.join(", "))
}

/// The library switches row-level security on and forces it. The roles that had rights keep what they saw by a policy.
fn keep_rights() -> String {
    format!(
        "DO $$ DECLARE found RECORD; BEGIN
            FOR found IN {} LOOP
                IF found.roles IS NOT NULL THEN
                    EXECUTE format('DROP POLICY IF EXISTS kept_by_adoption ON %1$s;
                        CREATE POLICY kept_by_adoption ON %1$s TO %2$s USING (true) WITH CHECK (true)',
                        found.name, found.roles);
                END IF;
            END LOOP;
         END $$;\n",
        losing_roles()
    )
}

/// Creates a unique index on a table that exists, unless it has one on exactly these columns.
fn write_key(sql: &mut String, table: Table, columns: &[&str]) {
    let name = format!("{}_{}_adopted", table.name(), columns.join("_"));
    let quoted_columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let mut sorted = columns.to_vec();
    sorted.sort_unstable();
    let table = quoted(table.name());
    let _ = write!(
        sql,
        "DO $$ BEGIN IF to_regclass('public.{table}') IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_index AS known
            WHERE indrelid = to_regclass('public.{table}') AND indisunique AND indpred IS NULL AND indexprs IS NULL
            AND (SELECT string_agg(attname, ',' ORDER BY attname COLLATE \"C\") FROM pg_catalog.pg_attribute
                WHERE attrelid = indrelid AND attnum = ANY (indkey)) = '{}')
         THEN CREATE UNIQUE INDEX \"{name}\" ON public.{table} ({}); END IF; END $$;\n",
        sorted.join(","),
        quoted_columns.join(", ")
    );
}
