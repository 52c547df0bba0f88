//! The check of a PostgreSQL database: roles, migrations, tables, indexes, triggers, policies, the server and the clock.
//!
//! Invariant: it only reads, in transactions that are read only, and takes no lock that a writer waits for. What `open` checks is
//! checked by the same functions. Each statement has the server's time limit.

mod replication;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sqlx::PgConnection;

use super::{
    Postgres,
    connection::{attempt::Retries, principal::Lifetime},
    end, errors,
    migrate::{self, SchemaState},
    policies,
    query::{execute_batch, tuples},
    role_mode::Roles,
    setup::CLOCK_TOLERANCE,
};
use crate::{
    clock::Clock,
    database::{
        migration::{self, POSTGRES as MIGRATIONS},
        principal::Principal,
        transaction::Effect,
    },
    error::{Error, ErrorKind, Result},
    model::{CheckDepth, FindingCode, Findings},
    policy::Table,
};

/// The blocks of a table that a full check reads in one statement. A statement that takes too long, or meets damage, is repeated
/// with fewer.
const BLOCKS: i64 = 1_024;

/// By how much the blocks are fewer then.
const FEWER: i64 = 8;

/// The age of the oldest transaction id at which autovacuum should have frozen it long ago. PostgreSQL stops writes at 2^31.
const OLD_TRANSACTION_IDS: i64 = 1_500_000_000;

/// The SQLSTATE of a statement that took longer than its limit.
const QUERY_CANCELED: &str = "57014";

/// What the server says of itself and of the database.
const SERVER: &str = "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.age(database.datfrozenxid)::bigint,
        COALESCE(stats.checksum_failures, 0),
        CAST(EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000 AS BIGINT)
    FROM pg_catalog.pg_database AS database
    LEFT JOIN pg_catalog.pg_stat_database AS stats ON stats.datid = database.oid
    WHERE database.datname = pg_catalog.current_database()";

/// The names of `$1` that no relation has.
const MISSING: &str = "SELECT name FROM unnest($1::text[]) AS wanted (name) WHERE to_regclass(name) IS NULL";

/// The columns `$2` that the tables `$1` do not have. A missing table has a finding of its own.
const MISSING_COLUMNS: &str =
    "SELECT wanted.name, wanted.column_name FROM unnest($1::text[], $2::text[]) AS wanted (name, column_name)
    WHERE to_regclass(wanted.name) IS NOT NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute
        WHERE attrelid = to_regclass(wanted.name) AND attname = wanted.column_name AND NOT attisdropped)";

/// The indexes of the tables `$1` that are not valid.
const INVALID_INDEXES: &str = "SELECT indexrelid::regclass::text, name FROM unnest($1::text[]) AS wanted (name)
    JOIN pg_catalog.pg_index ON indrelid = to_regclass(name) WHERE NOT indisvalid";

/// The indexes of the tables `$1` that sort by a collation which has another version now.
const OUTDATED_COLLATIONS: &str = "SELECT DISTINCT indexrelid::regclass::text, name, collname::text
    FROM unnest($1::text[]) AS wanted (name)
    JOIN pg_catalog.pg_index ON indrelid = to_regclass(name)
    CROSS JOIN LATERAL unnest(indcollation) AS sorted (by)
    JOIN pg_catalog.pg_collation AS own ON own.oid = sorted.by
    WHERE collversion <> pg_catalog.pg_collation_actual_version(own.oid)
    ORDER BY 1";

/// The indexes of the tables `$1` that sort by the collation of the database, if that has another version now. PostgreSQL knows its
/// version from 15 on.
const OUTDATED_DEFAULT: &str = "SELECT DISTINCT indexrelid::regclass::text, name, 'default'
    FROM unnest($1::text[]) AS wanted (name)
    JOIN pg_catalog.pg_index ON indrelid = to_regclass(name)
    JOIN pg_catalog.pg_database ON datname = pg_catalog.current_database()
    WHERE 'pg_catalog.default'::regcollation = ANY (indcollation)
        AND datcollversion <> pg_catalog.pg_database_collation_actual_version(pg_database.oid)
    ORDER BY 1";

/// The first version of PostgreSQL with a version of the collation of a database.
const WITH_DEFAULT_VERSION: i32 = 150_000;

/// The triggers `$2` of the tables `$1` that are missing or switched off.
const MISSING_TRIGGERS: &str =
    "SELECT wanted.trigger, wanted.name FROM unnest($1::text[], $2::text[]) AS wanted (name, trigger)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = to_regclass(wanted.name)
        AND tgname = wanted.trigger AND tgenabled <> 'D')";

/// The triggers of the change log on the tables `$1` that are switched on or off as the feed is.
const CAPTURE_TRIGGERS: &str = "SELECT name, ARRAY(SELECT tgname::text FROM pg_catalog.pg_trigger
        WHERE tgrelid = to_regclass(name) AND tgname LIKE 'townsquare\\_capture%'
        AND (tgenabled <> 'D') = (SELECT is_on FROM townsquare.feed))
    FROM unnest($1::text[]) AS wanted (name)";

/// The tables with one row, which nothing can do without, that have none.
const WITHOUT_ROW: &str = "SELECT 'townsquare.database' WHERE NOT EXISTS (SELECT FROM townsquare.database)
    UNION ALL SELECT 'townsquare.feed' WHERE NOT EXISTS (SELECT FROM townsquare.feed)";

impl Postgres {
    /// Adds what is wrong with the database.
    pub(in crate::database) async fn inspect(&self, depth: CheckDepth, findings: &mut Findings) -> Result<()> {
        if self.pool.lifetime == Lifetime::Transaction {
            let message = "The connections are used as behind a pooler in transaction mode.";
            findings.add(FindingCode::PoolerTransaction, message);
        }
        let inspect = async {
            let mut connection = self.begin(&Principal::Service, Effect::Reads, &Retries::new()).await?;
            let inspected = inspect(&mut connection, &self.pool.shared().clock, findings).await;
            end(connection, inspected, Effect::Reads).await
        };
        self.within_deadline(inspect).await?;
        if depth == CheckDepth::Full {
            for table in tables() {
                self.read_table(&table, findings).await?;
            }
        }
        Ok(())
    }

    /// Runs `work` in the runtime of the client.
    ///
    /// # Errors
    /// `Unavailable` (57014) if it takes longer than an operation may; else those of `work`.
    pub(super) async fn within_deadline<T>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.in_runtime(async {
            let answered = self.pool.shared().timeout(self.deadline(), work).await;
            answered.unwrap_or_else(|_| Err(errors::past_deadline(self.pool.shared().options.operation_timeout)))
        })
        .await
    }

    /// Reads every byte of a table.
    async fn read_table(&self, table: &str, findings: &mut Findings) -> Result<()> {
        let (mut from, mut blocks) = (0, BLOCKS);
        loop {
            let read = async {
                let mut connection = self.begin(&Principal::Service, Effect::Reads, &Retries::new()).await?;
                let read = read_blocks(&mut connection, table, from, blocks).await;
                end(connection, read, Effect::Reads).await
            };
            match self.within_deadline(read).await {
                Ok(size) if from + blocks >= size => return Ok(()),
                Ok(_) => from += blocks,
                // The table has a finding of its own.
                Err(error) if error.kind() == ErrorKind::TableMissing => return Ok(()),
                Err(error) if blocks > 1 && (error.code() == Some(QUERY_CANCELED) || error.is_damage()) => {
                    blocks = (blocks / FEWER).max(1);
                }
                Err(error) if error.is_damage() => {
                    let message = format!("The rows in block {from} of the table {table} cannot be read.");
                    findings.add(FindingCode::DatabaseDamaged, message);
                    from += blocks;
                    blocks = BLOCKS;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Reads all columns of the rows in some blocks of a table. Returns how many blocks the table has.
async fn read_blocks(connection: &mut PgConnection, table: &str, from: i64, blocks: i64) -> Result<i64> {
    // The text of a row has every byte of it, also of values that are stored apart.
    let sql = format!(
        "SELECT pg_relation_size(to_regclass('{table}')) / current_setting('block_size')::bigint,
            (SELECT COALESCE(sum(octet_length(whole::text)), 0)::bigint FROM {table} AS whole
             WHERE whole.ctid >= '({from},0)' AND whole.ctid < '({},0)')",
        from + blocks
    );
    let sizes: Vec<(i64, i64)> = tuples(connection, sql, &[]).await?;
    sizes.into_iter().map(|(size, _)| size).next().ok_or_else(Error::not_found)
}

/// Checks everything but the bytes, in the transaction of the caller.
async fn inspect(connection: &mut PgConnection, clock: &Clock, findings: &mut Findings) -> Result<()> {
    execute_batch(connection, "SET TRANSACTION READ ONLY").await?;
    inspect_server(connection, clock, findings).await?;
    let missing: Vec<(String,)> = tuples(connection, MISSING, &[&tables()]).await?;
    for (table,) in &missing {
        findings.add(FindingCode::TableMissing, format!("The table {table} is missing."));
    }
    // The other statements name these tables.
    if !missing.is_empty() {
        return Ok(());
    }
    for (table,) in tuples::<(String,)>(connection, WITHOUT_ROW, &[]).await? {
        findings.add(FindingCode::BookkeepingMissing, format!("The table {table} has no row."));
    }
    let applied = migrate::applied(connection).await?;
    if !migration::inspect(MIGRATIONS, &applied, findings) {
        return Ok(());
    }
    inspect_objects(connection, findings).await?;
    let roles = match Roles::read(connection).await {
        Err(error) if error.kind() == ErrorKind::Config => {
            findings.add(FindingCode::RoleUnsafe, format!("{}.", without_option(&error)));
            return Ok(());
        }
        roles => roles?,
    };
    if let Err(error) = policies::foreign::check(connection, &roles).await {
        match error.kind() {
            ErrorKind::Config => findings.add(FindingCode::PolicyForeign, format!("{}.", without_option(&error))),
            _ => return Err(error),
        }
    }
    if migrate::state(connection).await.is_ok_and(|state| state == SchemaState::Current) {
        inspect_rules(connection, &roles, findings).await?;
    }
    Ok(())
}

async fn inspect_server(connection: &mut PgConnection, clock: &Clock, findings: &mut Findings) -> Result<()> {
    let own = clock.of_machine();
    let asked = own.now();
    let rows: Vec<(bool, i64, i64, i64)> = tuples(connection, SERVER, &[]).await?;
    let answered = own.now();
    let Some((is_standby, age, checksum_failures, micros)) = rows.into_iter().next() else {
        return Ok(());
    };
    if is_standby {
        findings.add(FindingCode::ServerReadOnly, "The PostgreSQL server is in recovery.");
    } else {
        replication::inspect(connection, findings).await?;
    }
    if age > OLD_TRANSACTION_IDS {
        let message = format!("The oldest transaction id of the database is {age} transactions old.");
        findings.add(FindingCode::TransactionIdsLow, message);
    }
    if checksum_failures > 0 {
        let message = format!("The server has found {checksum_failures} blocks of the database with a wrong checksum.");
        findings.add(FindingCode::DatabaseDamaged, message);
    }
    // The server read its time between the question and the answer.
    let time = Timestamp::from_microsecond(micros).unwrap_or(asked);
    let ahead = asked.duration_since(time).max(time.duration_since(answered));
    if ahead > CLOCK_TOLERANCE {
        let direction = if asked > time { "ahead of" } else { "behind" };
        let seconds = ahead.as_secs();
        let message = format!("The clock of this machine is {seconds} s {direction} the clock of the server.");
        findings.add(FindingCode::ClockDiffers, message);
    }
    Ok(())
}

/// Looks for the columns of SPEC 2, and for the indexes and the triggers of migrations.
async fn inspect_objects(connection: &mut PgConnection, findings: &mut Findings) -> Result<()> {
    let columns = Table::public().flat_map(|table| {
        table.columns().iter().map(move |column| (format!("public.\"{}\"", table.name()), column.name.to_owned()))
    });
    let (names, columns): (Vec<String>, Vec<String>) = columns.unzip();
    for (table, column) in tuples::<(String, String)>(connection, MISSING_COLUMNS, &[&names, &columns]).await? {
        let message = format!("The table {table} has no column {column}.");
        findings.add(FindingCode::TableChanged, message);
    }
    let invalid: Vec<(String, String)> = tuples(connection, INVALID_INDEXES, &[&tables()]).await?;
    for (index, table) in invalid {
        findings.add(FindingCode::IndexMissing, format!("The index {index} of the table {table} is not valid."));
    }
    inspect_collations(connection, findings).await?;
    // An adopted database may have the indexes of the public tables under other names.
    let indexes: BTreeMap<String, String> = MIGRATIONS
        .iter()
        .filter(|migration| migration.name != migrate::TABLES)
        .flat_map(|migration| declared(migration.sql, "INDEX"))
        .map(|(index, table)| (format!("{}.{index}", table.split('.').next().unwrap_or_default()), table))
        .collect();
    let names: Vec<String> = indexes.keys().cloned().collect();
    for (index,) in tuples::<(String,)>(connection, MISSING, &[&names]).await? {
        let message = format!("The index {index} of the table {} is missing.", indexes[&index]);
        findings.add(FindingCode::IndexMissing, message);
    }
    let triggers: BTreeSet<_> = MIGRATIONS.iter().flat_map(|migration| declared(migration.sql, "TRIGGER")).collect();
    let (names, tables): (Vec<String>, Vec<String>) = triggers.into_iter().unzip();
    let missing: Vec<(String, String)> = tuples(connection, MISSING_TRIGGERS, &[&tables, &names]).await?;
    for (trigger, table) in missing {
        let message = format!("The trigger {trigger} of the table {table} is missing or switched off.");
        findings.add(FindingCode::TriggerChanged, message);
    }
    Ok(())
}

async fn inspect_collations(connection: &mut PgConnection, findings: &mut Findings) -> Result<()> {
    let version: Vec<(i32,)> = tuples(connection, "SELECT current_setting('server_version_num')::int", &[]).await?;
    let has_default = version.iter().any(|(version,)| *version >= WITH_DEFAULT_VERSION);
    for sql in [OUTDATED_COLLATIONS].into_iter().chain(has_default.then_some(OUTDATED_DEFAULT)) {
        for (index, table, collation) in tuples::<(String, String, String)>(connection, sql, &[&tables()]).await? {
            let message = format!(
                "The index {index} of the table {table} was built with another version of the collation {collation}."
            );
            findings.add(FindingCode::CollationChanged, message);
        }
    }
    Ok(())
}

/// Compares the policies, grants, functions and the triggers of the change log with those of this library.
async fn inspect_rules(connection: &mut PgConnection, roles: &Roles, findings: &mut Findings) -> Result<()> {
    let wanted = policies::capture_triggers();
    let tables: Vec<String> = wanted.keys().cloned().collect();
    let found: Vec<(String, Vec<String>)> = tuples(connection, CAPTURE_TRIGGERS, &[&tables]).await?;
    let mut differ = BTreeSet::new();
    for (table, triggers) in found {
        if wanted.get(&table).is_none_or(|wanted| *wanted != triggers.into_iter().collect()) {
            let message = format!("The triggers of the table {table} that write the change log are not complete.");
            findings.add(FindingCode::TriggerChanged, message);
            differ.insert(table);
        }
    }
    for policies::OutdatedPart { name: part, .. } in policies::outdated(connection, roles).await? {
        // One cause, one finding.
        if differ.contains(&part) {
            continue;
        }
        let (code, what) = policies::finding_of(&part);
        let verb = if code == FindingCode::PolicyChanged { "are" } else { "is" };
        let those = if verb == "are" { "those" } else { "the one" };
        findings.add(code, format!("{what} {verb} not {those} of this library."));
    }
    Ok(())
}

/// The tables of this library, by their qualified names.
fn tables() -> Vec<String> {
    let of_script = |sql: &'static str| {
        sql.lines().filter_map(|line| {
            let name = line.strip_prefix("CREATE TABLE ").or_else(|| line.strip_prefix("CREATE UNLOGGED TABLE "))?;
            name.split_whitespace().next().map(str::to_owned)
        })
    };
    MIGRATIONS
        .iter()
        .flat_map(|migration| of_script(migration.sql))
        .chain(["townsquare.migrations".to_owned()])
        .collect()
}

/// The indexes or triggers that a script creates, with their tables. Each begins a line, which names its table.
fn declared(sql: &str, kind: &'static str) -> impl Iterator<Item = (String, String)> {
    sql.lines().filter_map(move |line| {
        let name = line.strip_prefix("CREATE ")?.trim_start_matches("UNIQUE ").strip_prefix(kind)?.trim_start();
        let name = name.strip_prefix("IF NOT EXISTS ").unwrap_or(name);
        let (name, rest) = name.split_once(' ')?;
        let table = rest.split_once("ON ")?.1.split_whitespace().next()?;
        Some((name.to_owned(), table.to_owned()))
    })
}

/// The message of an error of `open`, without the option that it names.
fn without_option(error: &Error) -> &str {
    error.message().strip_prefix("Option database_url: ").unwrap_or(error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_say_which_tables_indexes_and_triggers_there_are() {
        let tables = tables();
        for table in ["public.spaces", "public.\"spaceRegistrations\"", "townsquare.deleted_spaces", "townsquare.feed"]
        {
            assert!(tables.iter().any(|name| name == table), "{table}: {tables:?}");
        }
        let scripts =
            |word: &str| MIGRATIONS.iter().map(|migration| migration.sql.matches(word).count()).sum::<usize>();
        assert_eq!(tables.len(), scripts("\nCREATE TABLE ") + scripts("\nCREATE UNLOGGED TABLE ") + 1);
        let all = |kind| MIGRATIONS.iter().flat_map(|migration| declared(migration.sql, kind)).collect::<Vec<_>>();
        assert_eq!(all("INDEX").len(), scripts("\nCREATE INDEX ") + scripts("\nCREATE UNIQUE INDEX "));
        assert_eq!(all("TRIGGER").len(), scripts("\nCREATE TRIGGER "));
        let owner = ("townsquare_space_owner".to_owned(), "public.spaces".to_owned());
        assert!(all("TRIGGER").contains(&owner), "{:?}", all("TRIGGER"));
        for (_, table) in all("INDEX").into_iter().chain(all("TRIGGER")) {
            assert!(tables.contains(&table), "{table}");
        }
    }
}
