//! Plain SQL on a database under test, without the library, as another program would send it.
//!
//! Invariant: a value is text, or `None` for NULL; SPEC 2's booleans are `t` and `f` on both engines.

use std::{path::Path, time::Duration};

use parking_lot::Mutex;
use rusqlite::{fallible_iterator::FallibleIterator as _, types::ValueRef};
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, PgConnection, Row as _, ValueRef as _, postgres::PgConnectOptions,
};
use tokio::runtime::Runtime;

/// A row of a result.
pub type RawRow = Vec<Option<String>>;

/// A connection without the library.
pub struct RawConnection(Mutex<Engine>);

enum Engine {
    Sqlite(rusqlite::Connection),
    // Declared before its runtime, so that it is dropped first.
    Postgres(PgConnection, Runtime),
}

impl RawConnection {
    /// Opens a SQLite file, with foreign keys on.
    ///
    /// # Panics
    /// When it does not open.
    pub fn sqlite(file: &Path) -> RawConnection {
        let connection = rusqlite::Connection::open(file).expect("a file that SQLite opens");
        connection.busy_timeout(Duration::from_secs(10)).expect("a time-out");
        connection.execute_batch("PRAGMA foreign_keys = ON").expect("foreign keys");
        RawConnection(Mutex::new(Engine::Sqlite(connection)))
    }

    /// Connects to PostgreSQL.
    ///
    /// # Errors
    /// The server's or driver's message.
    pub fn postgres(url: &str) -> Result<RawConnection, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let options: PgConnectOptions = url.parse().map_err(|error: sqlx::Error| error.to_string())?;
        // Poolers refuse this start-up parameter.
        let options = options.extra_float_digits(None);
        let connection = runtime.block_on(PgConnection::connect_with(&options)).map_err(|error| error.to_string())?;
        Ok(RawConnection(Mutex::new(Engine::Postgres(connection, runtime))))
    }

    /// Runs statements; returns the rows of the last statement that has columns.
    ///
    /// # Errors
    /// The database's message.
    pub fn try_rows(&self, sql: &str) -> Result<Vec<RawRow>, String> {
        match &mut *self.0.lock() {
            Engine::Sqlite(connection) => sqlite_rows(connection, sql).map_err(|error| error.to_string()),
            Engine::Postgres(connection, runtime) => runtime.block_on(async {
                let query = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
                let rows = query.fetch_all(connection).await.map_err(|error| error.to_string())?;
                rows.iter().map(postgres_row).collect()
            }),
        }
    }

    /// Runs statements that must succeed; returns the rows of the last statement that has columns.
    ///
    /// # Panics
    /// With the database's message.
    pub fn rows(&self, sql: &str) -> Vec<RawRow> {
        self.try_rows(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs statements that must succeed.
    ///
    /// # Panics
    /// With the database's message.
    pub fn run(&self, sql: &str) {
        self.rows(sql);
    }

    /// Returns the first value of a query's first row; NULL is `NULL`.
    ///
    /// # Panics
    /// When there is no row.
    pub fn value(&self, sql: &str) -> String {
        let row = self.rows(sql).into_iter().next().unwrap_or_else(|| panic!("{sql}: no row"));
        row.into_iter().next().flatten().unwrap_or_else(|| "NULL".to_owned())
    }

    /// Counts the rows of a table; `from` may contain a WHERE clause.
    ///
    /// # Panics
    /// When there is no such table.
    pub fn count(&self, from: &str) -> usize {
        self.value(&format!("SELECT count(*) FROM {from}")).parse().expect("a count")
    }
}

fn sqlite_rows(connection: &rusqlite::Connection, sql: &str) -> rusqlite::Result<Vec<RawRow>> {
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

/// Whether a column of SPEC 2 is a boolean. SQLite stores booleans as integers.
fn is_boolean(column: &str) -> bool {
    column.starts_with("is_") || column == "custom_domain_authorized"
}

fn postgres_row(row: &sqlx::postgres::PgRow) -> Result<RawRow, String> {
    let value = |column: &sqlx::postgres::PgColumn| {
        let value = row.try_get_raw(column.ordinal()).map_err(|error| error.to_string())?;
        if value.is_null() {
            return Ok(None);
        }
        value.as_str().map(|text| Some(text.to_owned())).map_err(|error| error.to_string())
    };
    row.columns().iter().map(value).collect()
}

/// Quotes a text as a SQL literal.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
