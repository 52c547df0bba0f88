//! Plain rusqlite and `std::fs`, the floor of the storage bench.
//!
//! Invariant: a write has the library's durability: a transaction that is synced, and a file that is synced, renamed and
//! listed in a synced folder. A read gives the same columns in the same types.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::Path,
};

use rusqlite::{Connection, Row, params};
use townsquare::{Timestamp, Uuid};

/// A row with the types of `FileInfo`.
#[derive(Debug)]
pub struct RawFile {
    /// The bucket.
    pub bucket: String,
    /// The path in the bucket.
    pub path: String,
    /// The size in bytes.
    pub size: i64,
    /// The media type.
    pub content_type: String,
    /// How long a cache may keep the file, in seconds.
    pub cache_control: u32,
    /// The version.
    pub etag: String,
    /// Names and values of the uploader.
    pub metadata: BTreeMap<String, String>,
    /// The user who wrote the file.
    pub owner_id: Option<Uuid>,
    /// When the file was last written.
    pub updated_at: Timestamp,
}

const INSERT_FILE: &str = "INSERT INTO townsquare_files (bucket, path, access, space_id, first_segment, owner_id, size,
        content_type, cache_control, etag, metadata, updated_at, digest, is_inline)
    VALUES ('assets', ?1, 'public', NULL, ?2, NULL, ?3, 'application/octet-stream', 3600, ?4, '{}', ?5, NULL, ?6)";

/// Inserts the row of a file of the bucket `assets`, and its bytes if they are inline, in one durable transaction.
///
/// # Panics
/// When the disk is full.
pub fn insert_file(connection: &Connection, path: &str, size: usize, inline: Option<&[u8]>) {
    let run = |sql: &str| connection.prepare_cached(sql).and_then(|mut it| it.execute([])).expect("runs");
    run("BEGIN IMMEDIATE");
    let segment = path.split('/').next().unwrap_or_default();
    let (etag, now) = (Uuid::new_v4().simple().to_string(), format!("{:.6}", Timestamp::now()));
    let values = params![path, segment, size as i64, etag, now, inline.is_some()];
    connection.prepare_cached(INSERT_FILE).and_then(|mut it| it.execute(values)).expect("a row");
    if let Some(content) = inline {
        let sql = "INSERT INTO townsquare_file_contents (bucket, path, content) VALUES ('assets', ?1, ?2)";
        connection.prepare_cached(sql).and_then(|mut it| it.execute(params![path, content])).expect("a row");
    }
    run("COMMIT");
}

/// Reads the row of a file and its inline bytes.
///
/// # Panics
/// When there is no such file.
pub fn get_inline(connection: &Connection, path: &str) -> (RawFile, Vec<u8>) {
    let sql = "SELECT files.bucket, files.path, files.size, files.content_type, files.cache_control, files.etag,
            files.metadata, files.owner_id, files.updated_at, contents.content
        FROM townsquare_files AS files JOIN townsquare_file_contents AS contents
            ON contents.bucket = files.bucket AND contents.path = files.path
        WHERE files.bucket = 'assets' AND files.path = ?1";
    let mut statement = connection.prepare_cached(sql).expect("prepares");
    statement.query_row([path], |row| Ok((file(row)?, row.get(9)?))).expect("a row")
}

/// Reads the row of a file.
///
/// # Panics
/// When there is no such file.
pub fn get_row(connection: &Connection, path: &str) -> RawFile {
    let sql = "SELECT bucket, path, size, content_type, cache_control, etag, metadata, owner_id, updated_at
        FROM townsquare_files WHERE bucket = 'assets' AND path = ?1";
    connection.prepare_cached(sql).and_then(|mut statement| statement.query_row([path], file)).expect("a row")
}

/// Reads the 1,000 rows after `after`.
///
/// # Panics
/// When the table is gone.
pub fn list(connection: &Connection, after: &str) -> Vec<RawFile> {
    let sql = "SELECT bucket, path, size, content_type, cache_control, etag, metadata, owner_id, updated_at
        FROM townsquare_files WHERE bucket = 'assets' AND path > ?1 ORDER BY path LIMIT 1000";
    let mut statement = connection.prepare_cached(sql).expect("prepares");
    statement.query_map([after], file).and_then(Iterator::collect).expect("a page")
}

/// Inserts `count` rows of files in the bucket `assets`, in a hundred folders, without bytes.
///
/// # Panics
/// When the disk is full.
pub fn fill(connection: &Connection, count: usize) {
    let sql = "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?1)
        INSERT INTO townsquare_files (bucket, path, access, first_segment, size, content_type, cache_control, etag, metadata,
            updated_at, is_inline)
        SELECT 'assets', printf('folder-%02d/file-%06d.png', n % 100, n), 'public', printf('folder-%02d', n % 100), 4096,
            'image/png', 3600, printf('%032x', n), '{}', '2026-01-02T03:04:05.678901Z', 1
        FROM numbers";
    connection.execute(sql, [count as i64]).expect("rows");
}

/// Inserts `count` rows of files in the bucket `private`, without bytes: 1,000 of each owner, one of whom is `own`.
///
/// # Panics
/// When the disk is full.
pub fn fill_private(connection: &Connection, count: usize, own: &str) {
    let sql = "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < ?1),
        owners (n, owner) AS (SELECT n, CASE n / 1000 WHEN 1 THEN ?2 ELSE printf('%064x', n / 1000) END FROM numbers)
        INSERT INTO townsquare_files (bucket, path, access, first_segment, size, content_type, cache_control, etag, metadata,
            updated_at, is_inline)
        SELECT 'private', printf('%s/file-%06d', owner, n), 'private', owner, 4096, 'image/png', 3600, printf('%032x', n),
            '{}', '2026-01-02T03:04:05.678901Z', 1
        FROM owners";
    connection.execute(sql, (count as i64, own)).expect("rows");
}

fn file(row: &Row<'_>) -> rusqlite::Result<RawFile> {
    let owner = row.get_ref(7)?.as_str_or_null()?;
    Ok(RawFile {
        bucket: row.get(0)?,
        path: row.get(1)?,
        size: row.get(2)?,
        content_type: row.get(3)?,
        cache_control: row.get(4)?,
        etag: row.get(5)?,
        metadata: serde_json::from_str(row.get_ref(6)?.as_str()?).expect("an object"),
        owner_id: owner.map(|id| id.parse().expect("a UUID")),
        updated_at: row.get_ref(8)?.as_str()?.parse().expect("a time"),
    })
}

/// Writes a file of `folder`: under another name first, synced, renamed, and the folder synced.
///
/// # Panics
/// When the disk is full.
pub fn write_file(folder: &Path, name: &str, data: &[u8]) {
    let temporary = folder.join("temporary");
    let mut file = File::create(&temporary).expect("created");
    file.write_all(data).and_then(|()| file.sync_all()).expect("written");
    fs::rename(&temporary, folder.join(name)).expect("renamed");
    File::open(folder).and_then(|folder| folder.sync_all()).expect("synced");
}
