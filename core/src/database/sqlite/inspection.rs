//! The check of a SQLite database: pages, references, tables, indexes, triggers, migrations, and the clock.
//!
//! Invariant: it only reads, on connections for reading, and no writer waits for it, except that of a database in memory. A quick
//! check reads one table in a transaction, so that the write-ahead log can be emptied between two tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use super::{Sqlite, cancellable::cancellable, errors::translate, file_id::beside, migrate};
use crate::{
    clock::{Clock, earlier},
    database::migration::{self, SQLITE as MIGRATIONS},
    error::{Error, ErrorKind, Result},
    model::{CheckDepth, FindingCode, Findings},
    policy::quoted,
};

/// The bytes of the write-ahead log beyond which something holds it up: twice the size to which a checkpoint shrinks it.
const LARGE_LOG: u64 = 128 << 20;

/// How far the clock may be behind a time in the database: clocks are set back by a little.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(60);

/// The table with the bytes of small files. `repair` removes those of no file.
const CONTENTS: &str = "townsquare_file_contents";

/// The tables with one row, which nothing can do without.
const SINGLE_ROWS: [&str; 2] = ["townsquare_database", "townsquare_feed"];

/// The latest times that are found without reading a table.
const LATEST: &str = "SELECT max(at) FROM (
    SELECT max(applied_at) AS at FROM townsquare_migrations
    UNION ALL SELECT at FROM (SELECT at FROM townsquare_changes ORDER BY id DESC LIMIT 1)
    UNION ALL SELECT max(created_at) FROM spaces WHERE is_public = true)";

/// What SQLite records of a table, an index or a trigger.
#[derive(PartialEq, Eq)]
struct SchemaObject {
    table: String,
    sql: String,
}

/// The objects of a schema by kind and name: `table`, `index` or `trigger`.
type Schema = BTreeMap<(String, String), SchemaObject>;

impl Sqlite {
    /// Adds what is wrong with the database.
    pub(in crate::database) async fn inspect(
        self: &Arc<Self>,
        depth: CheckDepth,
        findings: &mut Findings,
    ) -> Result<()> {
        let (this, mut own) = (Arc::clone(self), std::mem::take(findings));
        let inspect = move || {
            let inspected = this.inspect_all(depth, &mut own);
            (own, inspected)
        };
        let inspected;
        (*findings, inspected) = self.pool.run(inspect).await?;
        inspected
    }

    /// Does what [`inspect`](Sqlite::inspect) does. Blocks the thread.
    fn inspect_all(self: &Arc<Self>, depth: CheckDepth, findings: &mut Findings) -> Result<()> {
        if self.readers.files.check().is_err() {
            let message = "The database file or its write-ahead log was removed or replaced while it was open.";
            findings.add(FindingCode::DatabaseReplaced, message);
            return Ok(());
        }
        self.inspect_log_file(findings);
        for table in self.read(|connection| inspect_schema(connection, &self.clock, findings))? {
            self.inspect_table(&table, depth, findings)?;
        }
        // In one statement, which alone finds damage of the list of free pages.
        if depth == CheckDepth::Full { self.damage("PRAGMA integrity_check", findings) } else { Ok(()) }
    }

    /// Runs `work` on a connection of the pool. The work ends early if the client is closed.
    ///
    /// # Errors
    /// `Closed`; else those of `work`.
    fn read<T>(self: &Arc<Self>, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let this = Arc::clone(self);
        self.readers.with_connection(|connection| {
            cancellable(&connection.0, move || this.readers.is_closed(), || work(&connection.0))
        })
    }

    fn inspect_log_file(&self, findings: &mut Findings) {
        let Some(file) = &self.file else { return };
        // The size alone: a descriptor of a file that SQLite uses must not be closed.
        let size = std::fs::metadata(beside(file, "-wal")).map_or(0, |metadata| metadata.len());
        if size > LARGE_LOG {
            let message = format!("The write-ahead log of the database has {} MiB.", size >> 20);
            findings.add(FindingCode::WalLarge, message);
        }
    }

    /// Checks a table by itself.
    fn inspect_table(self: &Arc<Self>, table: &str, depth: CheckDepth, findings: &mut Findings) -> Result<()> {
        let name = quoted(table);
        // A full check covers every table in one statement. SQLite takes a number for a limit.
        if depth == CheckDepth::Quick && table.parse::<i64>().is_err() {
            self.damage(&format!("PRAGMA quick_check({name})"), findings)?;
        }
        let broken = |connection: &Connection| {
            let mut counts = BTreeMap::<String, u64>::new();
            let mut statement = connection.prepare(&format!("PRAGMA foreign_key_check({name})"))?;
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                *counts.entry(row.get(2)?).or_default() += 1;
            }
            Ok(counts)
        };
        match self.read(|connection| broken(connection).map_err(translate)) {
            Ok(counts) => {
                for (target, count) in counts {
                    match table {
                        CONTENTS => {
                            let message = format!("The database has the bytes of {count} small files without a row.");
                            findings.add(FindingCode::StrayContent, message);
                        }
                        _ => {
                            let message = format!("{count} rows of {table} name rows of {target} that do not exist.");
                            findings.add(FindingCode::ReferenceBroken, message);
                        }
                    }
                }
                Ok(())
            }
            Err(error) => damaged(error, &format!("The references of the table {table}"), findings),
        }
    }

    /// Runs a check of SQLite, which returns `ok` or a line for each fault.
    fn damage(self: &Arc<Self>, check: &str, findings: &mut Findings) -> Result<()> {
        let lines = |connection: &Connection| {
            let mut statement = connection.prepare(check)?;
            statement.raw_query().mapped(|row| row.get::<_, String>(0)).collect::<rusqlite::Result<Vec<_>>>()
        };
        match self.read(|connection| lines(connection).map_err(translate)) {
            Ok(lines) => {
                for line in lines.iter().filter(|line| *line != "ok") {
                    let line = line.replace('\n', " ");
                    findings.add(FindingCode::DatabaseDamaged, format!("SQLite finds: {line}."));
                }
                Ok(())
            }
            Err(error) => damaged(error, "A part of the database", findings),
        }
    }
}

/// Adds the finding of a read that met a damaged page.
///
/// # Errors
/// Every other error.
fn damaged(error: Error, what: &str, findings: &mut Findings) -> Result<()> {
    if !error.is_damage() {
        return Err(error);
    }
    findings.add(FindingCode::DatabaseDamaged, format!("{what} cannot be read: {}.", error.message()));
    Ok(())
}

/// Compares the schema with that of a new database, and the migrations with those of this library. Returns the names of the
/// tables.
fn inspect_schema(connection: &Connection, clock: &Clock, findings: &mut Findings) -> Result<BTreeSet<String>> {
    let schema = read_schema(connection).map_err(translate)?;
    let tables: BTreeSet<String> =
        schema.keys().filter(|(kind, _)| kind == "table").map(|(_, name)| name.clone()).collect();
    let applied = migrate::applied(connection).map_err(translate)?;
    if migration::inspect(MIGRATIONS, &applied, findings) {
        compare_schemas(&schema, &new_schema(clock)?, findings);
    }
    for table in SINGLE_ROWS.into_iter().filter(|table| tables.contains(*table)) {
        let row = connection.query_row(&format!("SELECT 1 FROM {table}"), [], |_| Ok(())).optional();
        if row.map_err(translate)?.is_none() {
            findings.add(FindingCode::BookkeepingMissing, format!("The table {table} has no row."));
        }
    }
    inspect_clock(connection, clock, findings)?;
    Ok(tables)
}

/// The schema of a new database.
fn new_schema(clock: &Clock) -> Result<Schema> {
    let mut new = Connection::open_in_memory().map_err(translate)?;
    migrate::run(&mut new, 0, clock)?;
    read_schema(&new).map_err(translate)
}

fn read_schema(connection: &Connection) -> rusqlite::Result<Schema> {
    // SQLite makes what has a name of its own, and indexes without SQL.
    let select = "SELECT type, name, tbl_name, sql FROM sqlite_schema
        WHERE type IN ('table', 'index', 'trigger') AND sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = connection.prepare(select)?;
    let objects = statement
        .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), SchemaObject { table: row.get(2)?, sql: row.get(3)? })))?;
    objects.collect()
}

fn compare_schemas(found: &Schema, wanted: &Schema, findings: &mut Findings) {
    let has_table = |table: &str| found.contains_key(&("table".to_owned(), table.to_owned()));
    for (object, SchemaObject { table, sql }) in wanted {
        let (kind, name) = (object.0.as_str(), object.1.as_str());
        let is_missing = match found.get(object) {
            None => true,
            // Its columns depend on the library that made it.
            Some(_) if name == "townsquare_migrations" => continue,
            Some(found) if found.sql == *sql => continue,
            Some(_) => false,
        };
        // Whoever drops a table drops its indexes and triggers.
        if kind != "table" && !has_table(table) {
            continue;
        }
        let code = match kind {
            "table" if is_missing => FindingCode::TableMissing,
            "table" => FindingCode::TableChanged,
            "index" => FindingCode::IndexMissing,
            _ => FindingCode::TriggerChanged,
        };
        let of_table = if kind == "table" { String::new() } else { format!(" of the table {table}") };
        let state = if is_missing { "is missing" } else { "is not the one of this library" };
        findings.add(code, format!("The {kind} {name}{of_table} {state}."));
    }
}

fn inspect_clock(connection: &Connection, clock: &Clock, findings: &mut Findings) -> Result<()> {
    let latest = match connection.query_row(LATEST, [], |row| row.get::<_, Option<String>>(0)).map_err(translate) {
        // The table has a finding of its own.
        Err(error) if error.kind() == ErrorKind::TableMissing => return Ok(()),
        latest => latest?.and_then(|text| text.parse::<Timestamp>().ok()),
    };
    let now = clock.now();
    if let Some(latest) = latest.filter(|latest| earlier(*latest, CLOCK_TOLERANCE) > now) {
        let seconds = latest.duration_since(now).as_secs();
        findings.add(FindingCode::ClockBehind, format!("The clock is {seconds} s behind a time in the database."));
    }
    Ok(())
}
