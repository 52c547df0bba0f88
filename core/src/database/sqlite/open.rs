//! Opening a SQLite file: whose it is, how it is set up, how far it is migrated.
//!
//! Invariant: a file that is no database, not ours or newer than this library is refused before anything is written
//! to it. All looking is done through SQLite: closing a descriptor of our own would drop the locks that another
//! client of this process holds on the file.

use std::{fs, path::Path, time::Duration};

use rusqlite::{ErrorCode, OpenFlags, ffi};

use super::{connection::Connection, errors::translate, migrate};
use crate::{
    clock::Clock,
    config::Durability,
    database::OpenOptions,
    error::{Error, Result},
};

/// `PRAGMA application_id` of our files: "twsq".
const APPLICATION_ID: i64 = 0x7477_7371;

/// The database in a folder of ours.
pub(super) const FILE_NAME: &str = "townsquare.db";

/// Older ones can lose a WAL that is being reset.
const OLDEST_SQLITE: i32 = 3_051_003;

/// The connection that writes, to a database that is there and current.
pub(super) fn writer(file: &Path, folder: Option<&Path>, options: &OpenOptions) -> Result<Connection> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        let found = rusqlite::version();
        return Err(Error::config(format!("SQLite {found} is linked; townsquare needs 3.51.3 or newer")));
    }
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| {
            Error::config(format!("Option data_dir: cannot create {}: {error}", folder.display())).caused_by(error)
        })?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = rusqlite::Connection::open_with_flags(file, flags)?;
        connection.busy_timeout(options.busy_timeout)?;
        Ok(connection)
    };
    let mut connection = open().map_err(|error| unusable(file, error))?;
    recognise(&connection).map_err(|refusal| refusal.into_error(file))?;
    set_up(&connection, options).map_err(|error| unusable(file, error))?;
    migrate::run(&mut connection, APPLICATION_ID, &options.clock)?;
    connection.set_prepared_statement_cache_capacity(Connection::STATEMENTS);
    Ok(Connection(connection))
}

/// A connection that can only read.
pub(super) fn reader(file: &Path, busy_timeout: Duration) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = rusqlite::Connection::open_with_flags(file, flags)?;
        connection.busy_timeout(busy_timeout)?;
        // With SQLite's own page cache of 2 MiB: many readers stay small, and a larger one gained nothing when measured.
        connection.execute_batch("PRAGMA query_only = ON;")?;
        connection.set_prepared_statement_cache_capacity(Connection::STATEMENTS);
        Ok(connection)
    };
    open().map(Connection).map_err(translate)
}

/// Why a file is left alone.
enum Refusal {
    NoDatabase,
    Foreign,
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Refusal {
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Refusal::NoDatabase,
            _ => Refusal::Sqlite(error),
        }
    }
}

impl Refusal {
    fn into_error(self, file: &Path) -> Error {
        let name = file.display();
        match self {
            Refusal::NoDatabase => Error::config(format!("{name} is not a SQLite database")),
            Refusal::Foreign => Error::config(format!("{name} is a SQLite database of another program")),
            Refusal::Sqlite(error) => unusable(file, error),
        }
    }
}

/// Refuses a file that is not one of our databases.
pub(super) fn recognise_ours(connection: &rusqlite::Connection, file: &Path) -> Result<()> {
    let id = connection.query_row("PRAGMA application_id", [], |row| row.get::<_, i64>(0)).map_err(Refusal::from);
    match id {
        Ok(APPLICATION_ID) => Ok(()),
        Ok(_) => Err(Refusal::Foreign.into_error(file)),
        Err(refusal) => Err(refusal.into_error(file)),
    }
}

/// Whether the file is empty or ours.
fn recognise(connection: &rusqlite::Connection) -> Result<(), Refusal> {
    // Both from one moment: another process may be setting the file up just now.
    let moment = connection.unchecked_transaction()?;
    let objects: i64 = moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let id: i64 = moment.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if id == APPLICATION_ID {
        return Ok(());
    }
    if id == 0 && objects == 0 { Ok(()) } else { Err(Refusal::Foreign) }
}

fn set_up(connection: &rusqlite::Connection, options: &OpenOptions) -> rusqlite::Result<()> {
    // Changing to WAL does not wait for a lock as other statements do: several first openers meet here.
    let clock = Clock::default();
    let deadline = clock.moment().after(options.busy_timeout);
    let mode: String = loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && clock.moment() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => break result?,
        }
    };
    if mode != "wal" {
        return Err(rusqlite::Error::SqliteFailure(
            ffi::Error::new(ffi::SQLITE_CANTOPEN),
            Some(format!("its file system does not support WAL (journal mode {mode})")),
        ));
    }
    let synchronous = match options.durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous};
         PRAGMA foreign_keys = ON;
         PRAGMA cache_size = -16384;
         PRAGMA wal_autocheckpoint = 8000;
         PRAGMA trusted_schema = OFF;"
    ))
}

fn unusable(file: &Path, error: rusqlite::Error) -> Error {
    let error = translate(error);
    Error::config(format!("Cannot use {} as database: {}", file.display(), error.message())).because_of(error)
}
