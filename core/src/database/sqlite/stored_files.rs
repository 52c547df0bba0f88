//! Reads what a SQLite database knows of its object store: before `open` migrates it, and for a backup and a restore.

use rusqlite::{Connection, Row};

use super::{dialect::SqliteDialect, errors::translate};
use crate::{
    database::{
        stored_files::{FILES_SINCE, MOVES_SINCE, StoredFiles, Usage},
        transfer::USED_TABLES,
    },
    error::Result,
    model::StoredObject,
    policy::Caller,
};

/// The files read before `open`: enough to tell whether a store has them.
const SAMPLE: i64 = 10;

/// Reads from a database at the schema version `version`.
pub(super) fn read(connection: &Connection, version: usize) -> Result<StoredFiles> {
    if version < FILES_SINCE {
        return Ok(StoredFiles::default());
    }
    read_rows(connection, version >= MOVES_SINCE).map_err(translate)
}

/// Reads whether the database can be the target of a move.
pub(super) fn read_usage(connection: &Connection) -> Result<Usage> {
    let read = || {
        let incarnation =
            connection.query_row("SELECT incarnation FROM townsquare_database", [], |row| row.get::<_, String>(0))?;
        let mut used = connection.prepare(USED_TABLES.for_sqlite::<SqliteDialect>(Caller::Service).sql)?;
        let used_tables = used.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(Usage { incarnation, used_tables })
    };
    read().map_err(translate)
}

fn read_rows(connection: &Connection, has_moves: bool) -> rusqlite::Result<StoredFiles> {
    let store_id = connection.query_row("SELECT store_id FROM townsquare_database", [], |row| row.get(0))?;
    let objects = stored_objects(connection, SAMPLE)?;
    let mut buckets = connection.prepare("SELECT name, access FROM townsquare_buckets ORDER BY name")?;
    let buckets = buckets.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let mut unfinished_move = None;
    if has_moves {
        let mut moves = connection.prepare("SELECT source FROM townsquare_unfinished_move")?;
        unfinished_move = moves.query_map([], |row| row.get(0))?.next().transpose()?;
    }
    Ok(StoredFiles { store_id, objects, buckets, unfinished_move, usage: Usage::default(), plan: None })
}

/// The first files whose bytes are objects: at most `limit`, or all with -1.
pub(super) fn stored_objects(database: &Connection, limit: i64) -> rusqlite::Result<Vec<StoredObject>> {
    let mut statement = database.prepare(
        "SELECT bucket, path, size, etag, coalesce(digest, '') FROM townsquare_files WHERE NOT is_inline
         ORDER BY bucket, path LIMIT ?1",
    )?;
    let read = |row: &Row<'_>| {
        let size: i64 = row.get(2)?;
        let (bucket, path, size) = (row.get(0)?, row.get(1)?, size.unsigned_abs());
        Ok(StoredObject { bucket, path, size, etag: row.get(3)?, digest: row.get(4)? })
    };
    statement.query_map([limit], read)?.collect()
}
