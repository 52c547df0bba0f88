//! Reads what a SQLite database knows of its object store, before `open` migrates it.

use rusqlite::{Connection, Row};

use super::errors::translate;
use crate::{
    database::stored_files::{FILES_SINCE, StoredFiles, StoredObject},
    error::Result,
};

/// Reads from a database at the schema version `version`.
pub(super) fn read(connection: &Connection, version: usize) -> Result<StoredFiles> {
    if version < FILES_SINCE {
        return Ok(StoredFiles::default());
    }
    read_rows(connection).map_err(translate)
}

fn read_rows(connection: &Connection) -> rusqlite::Result<StoredFiles> {
    let store_id = connection.query_row("SELECT store_id FROM townsquare_database", [], |row| row.get(0))?;
    let object = |row: &Row<'_>| {
        Ok(StoredObject { bucket: row.get(0)?, path: row.get(1)?, size: row.get::<_, i64>(2)?.unsigned_abs() })
    };
    let mut objects = connection.prepare(
        "SELECT bucket, path, size FROM townsquare_files WHERE NOT is_inline ORDER BY bucket, path LIMIT 10",
    )?;
    let objects = objects.query_map([], object)?.collect::<rusqlite::Result<_>>()?;
    let mut buckets = connection.prepare("SELECT name, access FROM townsquare_buckets ORDER BY name")?;
    let buckets = buckets.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    Ok(StoredFiles { store_id, objects, buckets })
}
