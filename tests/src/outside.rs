//! A database as other programs see it: plain SQL, past the library.
//!
//! Invariant: a value comes as text, or as `None` for NULL; SPEC 2's booleans are `t` and `f` on both engines.

use std::{path::Path, time::Duration};

use parking_lot::Mutex;
use rusqlite::{fallible_iterator::FallibleIterator as _, types::ValueRef};
use sqlx::{AssertSqlSafe, Column as _, Connection as _, PgConnection, Row as _, ValueRef as _};
use tokio::runtime::Runtime;

/// One row of a result.
pub type Line = Vec<Option<String>>;

/// A connection of another program's.
pub struct Outside(Mutex<Engine>);

enum Engine {
    Sqlite(rusqlite::Connection),
    // The connection is dropped inside its runtime: it stands first.
    Postgres(PgConnection, Runtime),
}

impl Outside {
    /// Opens a SQLite file, with foreign keys on.
    ///
    /// # Panics
    /// When it does not open.
    pub fn sqlite(file: &Path) -> Outside {
        let connection = rusqlite::Connection::open(file).expect("a file that SQLite opens");
        connection.busy_timeout(Duration::from_secs(10)).expect("a time-out");
        connection.execute_batch("PRAGMA foreign_keys = ON").expect("foreign keys");
        Outside(Mutex::new(Engine::Sqlite(connection)))
    }

    /// Connects to PostgreSQL.
    ///
    /// # Errors
    /// The server's or the driver's words.
    pub fn postgres(url: &str) -> Result<Outside, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let connection = runtime.block_on(PgConnection::connect(url)).map_err(|error| error.to_string())?;
        Ok(Outside(Mutex::new(Engine::Postgres(connection, runtime))))
    }

    /// Runs statements; the rows of the last one that has any.
    ///
    /// # Errors
    /// The database's words.
    pub fn try_rows(&self, sql: &str) -> Result<Vec<Line>, String> {
        match &mut *self.0.lock() {
            Engine::Sqlite(connection) => sqlite_rows(connection, sql).map_err(|error| error.to_string()),
            Engine::Postgres(connection, runtime) => runtime.block_on(async {
                let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
                let rows = query.fetch_all(connection).await.map_err(|error| error.to_string())?;
                rows.iter().map(postgres_line).collect()
            }),
        }
    }

    /// The same where it must work.
    ///
    /// # Panics
    /// With the database's words.
    pub fn rows(&self, sql: &str) -> Vec<Line> {
        self.try_rows(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs statements for their effect.
    ///
    /// # Panics
    /// With the database's words.
    pub fn run(&self, sql: &str) {
        self.rows(sql);
    }

    /// The one value that a query gives; NULL is `NULL`.
    ///
    /// # Panics
    /// When it gives none.
    pub fn value(&self, sql: &str) -> String {
        let row = self.rows(sql).into_iter().next().unwrap_or_else(|| panic!("{sql}: no row"));
        row.into_iter().next().flatten().unwrap_or_else(|| "NULL".to_owned())
    }

    /// How many rows a table has, with a condition or none.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn count(&self, from: &str) -> usize {
        self.value(&format!("SELECT count(*) FROM {from}")).parse().expect("a count")
    }
}

fn sqlite_rows(connection: &rusqlite::Connection, sql: &str) -> rusqlite::Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut batch = rusqlite::Batch::new(connection, sql);
    while let Some(mut statement) = batch.next()? {
        let columns: Vec<bool> = statement.column_names().iter().map(|name| is_boolean(name)).collect();
        let mut rows = statement.query(())?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let line = columns.iter().enumerate().map(|(place, boolean)| {
                Ok(match row.get_ref(place)? {
                    ValueRef::Null => None,
                    ValueRef::Integer(number) if *boolean => Some(if number == 0 { "f" } else { "t" }.to_owned()),
                    ValueRef::Integer(number) => Some(number.to_string()),
                    ValueRef::Real(number) => Some(number.to_string()),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                })
            });
            found.push(line.collect::<rusqlite::Result<_>>()?);
        }
        if !columns.is_empty() {
            lines = found;
        }
    }
    Ok(lines)
}

/// SQLite has no booleans of its own: the columns of SPEC 2 that are, by name.
fn is_boolean(column: &str) -> bool {
    column.starts_with("is_") || column == "custom_domain_authorized"
}

fn postgres_line(row: &sqlx::postgres::PgRow) -> Result<Line, String> {
    let value = |column: &sqlx::postgres::PgColumn| {
        let value = row.try_get_raw(column.ordinal()).map_err(|error| error.to_string())?;
        if value.is_null() {
            return Ok(None);
        }
        value.as_str().map(|text| Some(text.to_owned())).map_err(|error| error.to_string())
    };
    row.columns().iter().map(value).collect()
}

/// A text as SQL writes it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
