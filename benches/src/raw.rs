//! Plain rusqlite, the floor of the table benches on SQLite.
//!
//! Invariant: it reads the same columns of the same rows as the library, with prepared statements, into the same types:
//! parsed ids and times, owned texts.

use std::path::Path;

use rusqlite::{Connection, Row, config::DbConfig, params};
use townsquare::{Timestamp, Uuid};

/// A row with the types of the library's records.
#[derive(Debug)]
pub struct RawSpace {
    /// Primary key.
    pub id: Uuid,
    /// Display name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// The owner's user id.
    pub owner_id: Option<Uuid>,
    /// Whether everyone may see it.
    pub is_public: bool,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// The owner's id and address, in a page of public spaces.
    pub owner: Option<(Uuid, String)>,
}

/// Opens a connection with SQLite's defaults, for reading.
///
/// # Panics
/// When the file does not open.
pub fn reader(file: &Path) -> Connection {
    open(file)
}

/// Opens a connection whose plans do not depend on bound values, as the library's do not: with a bound LIMIT SQLite
/// would prepare the page's statement again at every call.
fn open(file: &Path) -> Connection {
    let connection = Connection::open(file).expect("opens");
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).expect("SQLite has the option");
    connection
}

/// Opens a connection with the settings of the library's writer.
///
/// # Panics
/// When the file does not open.
pub fn writer(file: &Path) -> Connection {
    let connection = open(file);
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16384;
             PRAGMA wal_autocheckpoint = 8000",
        )
        .expect("pragmas");
    connection
}

/// The floor of `get_space`.
///
/// # Panics
/// When there is no such space.
pub fn get_space(connection: &Connection, id: &Uuid) -> RawSpace {
    let sql = "SELECT id, name, description, owner_id, is_public, created_at, updated_at FROM spaces WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).expect("prepares");
    statement.query_row([id.to_string()], space).expect("a row")
}

/// The floor of `get_public_spaces(20, 0)`.
///
/// # Panics
/// When the table is gone.
pub fn get_public_spaces(connection: &Connection) -> Vec<RawSpace> {
    let sql = "SELECT spaces.id, spaces.name, spaces.description, spaces.owner_id, spaces.is_public, spaces.created_at,
            spaces.updated_at, users.id, users.email
        FROM spaces LEFT JOIN users ON users.id = spaces.owner_id WHERE spaces.is_public = true
        ORDER BY spaces.created_at DESC, spaces.id LIMIT ?1 OFFSET ?2";
    let mut statement = connection.prepare_cached(sql).expect("prepares");
    let rows = statement.query_map([20, 0], public_space);
    rows.expect("runs").map(|row| row.expect("a row")).collect()
}

/// The floor of `get_public_spaces_after(20, …)`.
///
/// # Panics
/// When the table is gone.
pub fn get_public_spaces_after(connection: &Connection, created_at: Timestamp, id: &Uuid) -> Vec<RawSpace> {
    let sql = "SELECT spaces.id, spaces.name, spaces.description, spaces.owner_id, spaces.is_public, spaces.created_at,
            spaces.updated_at, users.id, users.email
        FROM spaces LEFT JOIN users ON users.id = spaces.owner_id
        WHERE spaces.is_public = true AND spaces.created_at <= ?1 AND (spaces.created_at < ?1 OR spaces.id > ?2)
        ORDER BY spaces.created_at DESC, spaces.id LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).expect("prepares");
    let rows = statement.query_map(params![format!("{created_at:.6}"), id.to_string(), 20], public_space);
    rows.expect("runs").map(|row| row.expect("a row")).collect()
}

fn public_space(row: &Row<'_>) -> rusqlite::Result<RawSpace> {
    let owner = row.get_ref(7)?.as_str_or_null()?.map(uuid);
    let owner = owner.map(|id| Ok::<_, rusqlite::Error>((id, row.get(8)?))).transpose()?;
    Ok(RawSpace { owner, ..space(row)? })
}

fn space(row: &Row<'_>) -> rusqlite::Result<RawSpace> {
    Ok(RawSpace {
        id: uuid(row.get_ref(0)?.as_str()?),
        name: row.get(1)?,
        description: row.get(2)?,
        owner_id: row.get_ref(3)?.as_str_or_null()?.map(uuid),
        is_public: row.get(4)?,
        created_at: time(row.get_ref(5)?.as_str()?),
        updated_at: time(row.get_ref(6)?.as_str()?),
        owner: None,
    })
}

fn uuid(text: &str) -> Uuid {
    text.parse().expect("a UUID")
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

/// The floor of `create_space`.
///
/// # Panics
/// When the disk is full.
pub fn create_space(connection: &Connection) -> RawSpace {
    let sql = "INSERT INTO spaces (id, name, description, owner_id, is_public, created_at, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
        RETURNING id, name, description, owner_id, is_public, created_at, updated_at";
    let mut statement = connection.prepare_cached(sql).expect("prepares");
    let now = format!("{:.6}", Timestamp::now());
    let values = params![Uuid::new_v4().to_string(), "A space", None::<String>, None::<String>, false, now];
    statement.query_row(values, space).expect("a row")
}

/// The floor of `update_space`.
///
/// # Panics
/// When the disk is full.
pub fn update_space(connection: &Connection, id: &Uuid) -> RawSpace {
    let sql = "UPDATE spaces SET description = ?2, updated_at = ?3 WHERE id = ?1
        RETURNING id, name, description, owner_id, is_public, created_at, updated_at";
    let mut statement = connection.prepare_cached(sql).expect("prepares");
    let now = format!("{:.6}", Timestamp::now());
    statement.query_row(params![id.to_string(), "Another text", now], space).expect("a row")
}
