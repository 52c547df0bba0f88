//! The SQL of files; see `database/statement.rs` for the templates.
//!
//! `NewFile::values` gives the values `$1` to `$17` of a write. An INSERT selects its values from a subquery with the
//! alias `files`, so that the policy can read the new row.

use crate::database::Statement;
pub(super) use crate::database::{DELETE_CONTENT, PUT_CONTENT};

/// The columns of a file, in the order of `FileInfo`.
macro_rules! columns {
    () => {
        "files.bucket, files.path, files.size, files.content_type, files.cache_control, files.etag, files.metadata,
         files.owner_id, files.updated_at"
    };
}

/// The new row, as a subquery.
macro_rules! new_row {
    () => {
        "(SELECT $1 AS bucket, $2 AS path, $3 AS access, $4 AS space_id, $5 AS first_segment, $6 AS owner_id, $7 AS size,
          $8 AS content_type, $9 AS cache_control, $10 AS etag, $11 AS metadata, $12 AS updated_at) AS files"
    };
}

/// The condition that no file has the path of a folder of the new file, and none is inside its path.
macro_rules! name_is_free {
    () => {
        "NOT {has_path townsquare.files $1 $13}
         AND NOT {has_path townsquare.file_intents $1 $13}
         AND NOT EXISTS (SELECT 1 FROM townsquare.files AS inside
            WHERE inside.bucket = $1 AND inside.path >= $14 AND inside.path < $15)
         AND NOT EXISTS (SELECT 1 FROM townsquare.file_intents AS inside
            WHERE inside.bucket = $1 AND inside.path >= $14 AND inside.path < $15)"
    };
}

/// The condition that no object is being written to the path of the new file, or moved from there.
macro_rules! no_intent {
    () => {
        "NOT EXISTS (SELECT 1 FROM townsquare.file_intents AS intent
            WHERE intent.bucket = $1 AND (intent.path = $2 OR intent.moved_from = $2))"
    };
}

/// The condition that a file exists if `if_match` names its version.
macro_rules! exists_if_matched {
    () => {
        "($17 IS NULL OR $17 = '' OR EXISTS (SELECT 1 FROM townsquare.files AS old WHERE old.bucket = $1 AND old.path = $2))"
    };
}

/// Writes the row of an inline file. An inline row that replaces an object's keeps the digest until the next write, so that
/// the writer learns of the object.
pub(super) static PUT_INLINE: Statement = Statement::new(concat!(
    "INSERT INTO townsquare.files AS files (bucket, path, access, space_id, first_segment, owner_id, size, content_type,
        cache_control, etag, metadata, updated_at, is_inline)
     SELECT files.bucket, files.path, files.access, files.space_id, files.first_segment, files.owner_id, files.size,
        files.content_type, files.cache_control, files.etag, files.metadata, files.updated_at, TRUE
     FROM ",
    new_row!(),
    " WHERE {files.insert} AND ",
    name_is_free!(),
    " AND ",
    no_intent!(),
    " AND ",
    exists_if_matched!(),
    " ON CONFLICT (bucket, path) DO UPDATE SET owner_id = excluded.owner_id, size = excluded.size,
        content_type = excluded.content_type, cache_control = excluded.cache_control, etag = excluded.etag,
        metadata = excluded.metadata, updated_at = {files.monotonic_updated_at excluded.updated_at},
        digest = CASE WHEN files.is_inline THEN NULL ELSE files.digest END, is_inline = TRUE
     WHERE {files.update} AND $16 AND ($17 IS NULL OR files.etag = $17)
     RETURNING updated_at, digest IS NOT NULL"
));

/// Begins to write an object: `$18` digest, `$19` staged bytes, `$20` and `$21` path and etag of the source of a move.
pub(super) static PUT_INTENT: Statement = Statement::new(concat!(
    "INSERT INTO townsquare.file_intents (bucket, path, access, space_id, first_segment, owner_id, size, content_type,
        cache_control, etag, metadata, created_at, digest, staged, moved_from, moved_etag, base_etag)
     SELECT files.bucket, files.path, files.access, files.space_id, files.first_segment, files.owner_id, files.size,
        files.content_type, files.cache_control, files.etag, files.metadata, files.updated_at, $18, $19, $20, $21,
        COALESCE((SELECT old.etag FROM townsquare.files AS old WHERE old.bucket = $1 AND old.path = $2), '')
     FROM ",
    new_row!(),
    " WHERE {files.insert} AND ",
    name_is_free!(),
    " AND ",
    exists_if_matched!(),
    " AND (NOT EXISTS (SELECT 1 FROM townsquare.files AS old WHERE old.bucket = $1 AND old.path = $2)
        OR EXISTS (SELECT 1 FROM townsquare.files AS files WHERE files.bucket = $1 AND files.path = $2
            AND {files.update} AND $16 AND ($17 IS NULL OR files.etag = $17)))
     ON CONFLICT (bucket, path) DO NOTHING
     RETURNING base_etag"
));

/// Whether the caller may add a file with this bucket, access, space, first segment and owner.
pub(super) static CHECK_WRITE: Statement = Statement::new(
    "SELECT 1 FROM (SELECT $1 AS bucket, $2 AS access, $3 AS space_id, $4 AS first_segment, $5 AS owner_id) AS files
     WHERE {files.insert}",
);

/// The version of a file, and whether the caller may change it.
pub(super) static EXISTING: Statement = Statement::new(
    "SELECT files.etag, {files.update} FROM townsquare.files AS files WHERE files.bucket = $1 AND files.path = $2",
);

/// When this version of a file was written.
pub(super) static TIME_OF_VERSION: Statement =
    Statement::new("SELECT updated_at FROM townsquare.files WHERE bucket = $1 AND path = $2 AND etag = $3");

/// Whether a file has the path of a folder (`$2`), or lies inside the path (from `$3` to before `$4`).
pub(super) static NAME_IS_TAKEN: Statement = Statement::new(
    "SELECT 1 WHERE {has_path townsquare.files $1 $2}
        OR EXISTS (SELECT 1 FROM townsquare.files AS inside
            WHERE inside.bucket = $1 AND inside.path >= $3 AND inside.path < $4)
        OR {has_path townsquare.file_intents $1 $2}
        OR EXISTS (SELECT 1 FROM townsquare.file_intents AS inside
            WHERE inside.bucket = $1 AND inside.path >= $3 AND inside.path < $4)",
);

/// Makes an intent the row of its file: `$3` its etag, `$4` the version before, `$5` whether any other version may be replaced.
pub(super) static FINISH_INTENT: Statement = Statement::new(
    "INSERT INTO townsquare.files AS files (bucket, path, access, space_id, first_segment, owner_id, size, content_type,
        cache_control, etag, metadata, updated_at, digest, is_inline)
     SELECT intent.bucket, intent.path, intent.access, intent.space_id, intent.first_segment,
        (SELECT users.id FROM users WHERE users.id = intent.owner_id), intent.size, intent.content_type,
        intent.cache_control, intent.etag, intent.metadata, intent.created_at, intent.digest, FALSE
     FROM townsquare.file_intents AS intent
     WHERE intent.bucket = $1 AND intent.path = $2 AND intent.etag = $3 AND ($5 OR $4 = ''
        OR EXISTS (SELECT 1 FROM townsquare.files AS old WHERE old.bucket = $1 AND old.path = $2 AND old.etag = $4))
     ON CONFLICT (bucket, path) DO UPDATE SET owner_id = excluded.owner_id, size = excluded.size,
        content_type = excluded.content_type, cache_control = excluded.cache_control, etag = excluded.etag,
        metadata = excluded.metadata, updated_at = {files.monotonic_updated_at excluded.updated_at},
        digest = excluded.digest, is_inline = FALSE
     WHERE $5 OR files.etag = $4
     RETURNING updated_at",
);

/// Deletes the intent with the etag `$3`.
pub(super) static DELETE_INTENT: Statement =
    Statement::new("DELETE FROM townsquare.file_intents WHERE bucket = $1 AND path = $2 AND etag = $3");

/// The paths from `$2` to before `$3` with a new upload of the user `$4` that is not finished. `$5`: with any user's.
pub(super) static NEW_UPLOADS: Statement = Statement::new(
    "SELECT path FROM townsquare.file_intents WHERE bucket = $1 AND path >= $2 AND path < $3
        AND base_etag = '' AND moved_from IS NULL AND ($5 OR owner_id = $4) ORDER BY path",
);

/// Deletes the intent of a new upload of the user `$3`. `$4`: of any user. Returns the name of its staged bytes for [`END_UPLOAD`].
pub(super) static CANCEL_UPLOAD: Statement = Statement::new(
    "DELETE FROM townsquare.file_intents
     WHERE bucket = $1 AND path = $2 AND base_etag = '' AND moved_from IS NULL AND ($4 OR owner_id = $3)
     RETURNING staged",
);

pub(super) static FIND_INTENT: Statement = Statement::new(
    "SELECT etag, size, digest, staged, base_etag, moved_from, moved_etag, is_revoked, created_at, owner_id
     FROM townsquare.file_intents WHERE bucket = $1 AND path = $2",
);

pub(super) static ADD_TO_OUTBOX: Statement = Statement::new(
    "INSERT INTO townsquare.file_outbox (bucket, path) VALUES ($1, $2) ON CONFLICT (bucket, path) DO NOTHING",
);

/// Does what [`ADD_TO_OUTBOX`] does, for an ended upload with the staged bytes `$3`. The triggers of migration 0012 do the same.
pub(super) static END_UPLOAD: Statement = Statement::new(
    "INSERT INTO townsquare.file_outbox AS outbox (bucket, path, staged) VALUES ($1, $2, $3)
     ON CONFLICT (bucket, path) DO UPDATE SET staged = COALESCE(outbox.staged, excluded.staged)",
);

/// The name of the staged bytes, if the entry is of an ended upload.
pub(super) static FIND_IN_OUTBOX: Statement =
    Statement::new("SELECT staged FROM townsquare.file_outbox WHERE bucket = $1 AND path = $2");

/// The paths in the outbox that are folders of a path (`$2`), or lie inside it (from `$3` to before `$4`), and the path itself (`$5`)
/// after an ended upload.
pub(super) static OVERLAPPING_OUTBOX: Statement = Statement::new(
    "SELECT outbox.bucket, outbox.path FROM townsquare.file_outbox AS outbox WHERE outbox.bucket = $1 AND outbox.path {any $2}
     UNION ALL SELECT outbox.bucket, outbox.path FROM townsquare.file_outbox AS outbox
        WHERE outbox.bucket = $1 AND outbox.path >= $3 AND outbox.path < $4
     UNION ALL SELECT outbox.bucket, outbox.path FROM townsquare.file_outbox AS outbox
        WHERE outbox.bucket = $1 AND outbox.path = $5 AND outbox.staged IS NOT NULL",
);

pub(super) static DELETE_FROM_OUTBOX: Statement =
    Statement::new("DELETE FROM townsquare.file_outbox WHERE bucket = $1 AND path = $2");

/// Deletes an entry unless it names other staged bytes than `$3` by now: an upload was ended meanwhile.
pub(super) static DELETE_KNOWN_FROM_OUTBOX: Statement = Statement::new(
    "DELETE FROM townsquare.file_outbox WHERE bucket = $1 AND path = $2 AND staged IS NOT DISTINCT FROM $3",
);

/// Forgets the staged bytes `$3`, which are discarded.
pub(super) static CLEAR_STAGED: Statement =
    Statement::new("UPDATE townsquare.file_outbox SET staged = NULL WHERE bucket = $1 AND path = $2 AND staged = $3");

/// The paths of intents and of the outbox after the path `$2` of the bucket `$1`.
pub(super) static PENDING: Statement = Statement::new(
    "SELECT bucket, path FROM townsquare.file_intents WHERE bucket > $1 OR (bucket = $1 AND path > $2)
     UNION SELECT bucket, path FROM townsquare.file_outbox WHERE bucket > $1 OR (bucket = $1 AND path > $2)
     ORDER BY bucket, path LIMIT $3",
);

/// A file with its inline bytes, and whether its object is being written.
pub(super) static GET: Statement = Statement::new(concat!(
    "SELECT ",
    columns!(),
    ", files.is_inline,
        CASE WHEN files.is_inline THEN (SELECT contents.content FROM townsquare.file_contents AS contents
            WHERE contents.bucket = files.bucket AND contents.path = files.path) END,
        CASE WHEN files.is_inline THEN FALSE ELSE EXISTS (SELECT 1 FROM townsquare.file_intents AS intent
            WHERE intent.bucket = files.bucket AND intent.path = files.path) END
     FROM townsquare.files AS files
     WHERE files.bucket = $1 AND files.path = $2 AND {files.select}"
));

pub(super) static STAT: Statement = Statement::new(concat!(
    "SELECT ",
    columns!(),
    " FROM townsquare.files AS files WHERE files.bucket = $1 AND files.path = $2 AND {files.select}"
));

/// The version of a file, and whether its object is being written.
pub(super) static VERSION: Statement = Statement::new(
    "SELECT files.etag, EXISTS (SELECT 1 FROM townsquare.file_intents AS intent
        WHERE intent.bucket = files.bucket AND intent.path = files.path)
     FROM townsquare.files AS files WHERE files.bucket = $1 AND files.path = $2 AND {files.select}",
);

/// The files from `$2` to before `$3`.
pub(super) static LIST_FROM: Statement = Statement::new(concat!(
    "SELECT ",
    columns!(),
    " FROM townsquare.files AS files
     WHERE files.bucket = $1 AND files.path >= $2 AND files.path < $3 AND {files.listed} ORDER BY files.path LIMIT $4"
));

/// The files after `$2` to before `$3`.
pub(super) static LIST_AFTER: Statement = Statement::new(concat!(
    "SELECT ",
    columns!(),
    " FROM townsquare.files AS files
     WHERE files.bucket = $1 AND files.path > $2 AND files.path < $3 AND {files.listed} ORDER BY files.path LIMIT $4"
));

/// What follows the paths of the folder of a path. '0' is the character after '/'. A path in no folder with the length of an id is
/// followed by the next path.
macro_rules! after_folder {
    () => {
        "CASE WHEN length(folders.path) = 36 OR substr(folders.path, 37, 1) = '/' THEN substr(folders.path, 1, 36) || '0'
             ELSE folders.path END"
    };
}

/// The folders with a file from `$1` to before `$2`, at most the first `$3`: those of spaces that the caller sees, and, if there are as
/// many, the place after the last one. It goes from folder to folder in the index: a join of spaces and files would read both tables,
/// and without OFFSET PostgreSQL could read all spaces into a hash table. Under a policy PostgreSQL finds a space by a column, and by no
/// cast of one, so `places` computes the ids. Without a folder, the statement checks no session.
pub(super) static FOLDERS_OF_SPACES: Statement = Statement::new(concat!(
    "WITH RECURSIVE folders (path, number) AS (
        SELECT (SELECT files.path FROM townsquare.files AS files
            WHERE files.bucket = 'spaces' AND files.path >= $1 AND files.path < $2 ORDER BY files.path LIMIT 1), CAST(1 AS BIGINT)
        UNION ALL
        SELECT (SELECT files.path FROM townsquare.files AS files
            WHERE files.bucket = 'spaces' AND files.path < $2 AND files.path > ",
    after_folder!(),
    " ORDER BY files.path LIMIT 1), folders.number + 1 FROM folders WHERE folders.number < $3 AND folders.path IS NOT NULL
     ), places (segment, space_id, following, number) AS (
        SELECT segments.segment, {uuid_of segments.segment}, segments.following, segments.number FROM (
            SELECT CASE WHEN length(folders.path) = 36 OR substr(folders.path, 37, 1) = '/' THEN substr(folders.path, 1, 36) END
                AS segment, ",
    after_folder!(),
    " AS following, folders.number FROM folders WHERE folders.path IS NOT NULL
        ) AS segments
     )
     SELECT places.segment, TRUE FROM places
        WHERE EXISTS (SELECT 1 FROM spaces WHERE spaces.id = places.space_id AND {spaces.select} LIMIT 1 OFFSET 0)
     UNION ALL SELECT places.following, FALSE FROM places WHERE places.number = $3",
));

/// The identity keys that a user has linked.
pub(super) static LINKED_KEYS: Statement = Statement::new(
    "SELECT identities.public_key FROM townsquare.identities AS identities WHERE identities.user_id = $1",
);

pub(super) static COUNT: Statement = Statement::new("SELECT count(*) FROM townsquare.files AS files");

/// The files of a bucket after `$2` whose bytes are objects.
pub(super) static LIST_OBJECTS: Statement = Statement::new(
    "SELECT files.bucket, files.path, files.size, files.etag, COALESCE(files.digest, '') FROM townsquare.files AS files
     WHERE files.bucket = $1 AND files.path > $2 AND NOT files.is_inline ORDER BY files.path LIMIT $3",
);

/// The files whose bytes are objects.
pub(super) static ALL_OBJECTS: Statement = Statement::new(
    "SELECT files.bucket, files.path, files.size, files.etag, COALESCE(files.digest, '') FROM townsquare.files AS files
     WHERE NOT files.is_inline ORDER BY files.bucket, files.path",
);

/// The next files after the bucket `$1` and the path `$2` whose bytes are in the database: at most 256, and as many as have
/// 4 MiB before the last one.
pub(super) static INLINE_AFTER: Statement = Statement::new(
    "SELECT files.bucket, files.path, files.size, contents.content FROM (
        SELECT next.bucket, next.path, next.size,
            sum(next.size) OVER (ORDER BY next.bucket, next.path) - next.size AS bytes_before
        FROM (SELECT files.bucket, files.path, files.size FROM townsquare.files AS files
            WHERE (files.bucket, files.path) > ($1, $2) AND files.is_inline
            ORDER BY files.bucket, files.path LIMIT 256) AS next
     ) AS files
     LEFT JOIN townsquare.file_contents AS contents ON contents.bucket = files.bucket AND contents.path = files.path
     WHERE files.bytes_before < 4194304 ORDER BY files.bucket, files.path",
);

/// Deletes a file if `$3` is NULL or its version. `$4`: also if it is an object.
pub(super) static DELETE: Statement = Statement::new(
    "DELETE FROM townsquare.files AS files WHERE files.bucket = $1 AND files.path = $2
        AND ($3 IS NULL OR files.etag = $3) AND (files.is_inline OR $4) AND {files.delete}
     RETURNING is_inline",
);

/// Deletes the files with one of the paths `$2` that are inline, or have one of the paths `$3`.
pub(super) static DELETE_PAGE: Statement = Statement::new(
    "DELETE FROM townsquare.files AS files WHERE files.bucket = $1 AND files.path {any $2}
        AND (files.is_inline OR files.path {any $3}) AND {files.delete}
     RETURNING path",
);

/// The files with one of the paths `$2` that the caller sees: the path, whether it is an object, whether the caller may delete it.
pub(super) static FIND_DELETABLE: Statement = Statement::new(
    "SELECT files.path, NOT files.is_inline, {files.delete} FROM townsquare.files AS files
     WHERE files.bucket = $1 AND files.path {any $2} AND {files.select} ORDER BY files.path",
);

/// Gives the version `$3` of an object the version `$4`, size `$5` and digest `$6` of its bytes.
pub(super) static ADOPT_OBJECT: Statement = Statement::new(
    "UPDATE townsquare.files AS files SET etag = $4, size = $5, digest = $6, updated_at = {files.monotonic_updated_at $7}
     WHERE files.bucket = $1 AND files.path = $2 AND files.etag = $3 AND NOT files.is_inline
     RETURNING path",
);

/// The digest of the version `$3` of an object.
pub(super) static DIGEST: Statement = Statement::new(
    "SELECT files.digest FROM townsquare.files AS files
     WHERE files.bucket = $1 AND files.path = $2 AND files.etag = $3 AND NOT files.is_inline",
);

/// The paths of the unfinished writes that a write of the path `$2` waits for: its own, and the targets of moves from it.
pub(super) static FIND_UNFINISHED: Statement =
    Statement::new("SELECT path FROM townsquare.file_intents WHERE bucket = $1 AND (path = $2 OR moved_from = $2)");

/// Whether the caller may delete this version of a file.
pub(super) static CHECK_DELETE: Statement = Statement::new(
    "SELECT 1 FROM townsquare.files AS files
     WHERE files.bucket = $1 AND files.path = $2 AND files.etag = $3 AND {files.delete}",
);

/// Deletes a file that a write replaces.
pub(super) static DELETE_REPLACED: Statement = Statement::new(
    "DELETE FROM townsquare.files AS files WHERE files.bucket = $1 AND files.path = $2 AND {files.update}
     RETURNING is_inline, updated_at",
);

/// Moves the version `$3` of an inline file to the path `$4`.
pub(super) static MOVE_INLINE: Statement = Statement::new(
    "UPDATE townsquare.files AS files SET path = $4, space_id = $5, first_segment = $6, etag = $7,
        updated_at = {files.monotonic_updated_at $8}
     WHERE files.bucket = $1 AND files.path = $2 AND files.etag = $3 AND files.is_inline AND {files.delete}
     RETURNING bucket, path, size, content_type, cache_control, etag, metadata, owner_id, updated_at",
);

/// Whether an object belongs to a row or to an intent.
pub(super) static OBJECT_IS_USED: Statement = Statement::new(
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM townsquare.files AS files
            WHERE files.bucket = $1 AND files.path = $2 AND NOT files.is_inline)
        OR EXISTS (SELECT 1 FROM townsquare.file_intents AS intent WHERE intent.bucket = $1 AND intent.path = $2)",
);

/// Deletes contents without a row, which only a program without foreign keys can leave.
pub(super) static DELETE_STRAY_CONTENTS: Statement = Statement::new(
    "DELETE FROM townsquare.file_contents AS contents WHERE NOT EXISTS (SELECT 1 FROM townsquare.files AS files
        WHERE files.bucket = contents.bucket AND files.path = contents.path)",
);

pub(super) static DECLARE_BUCKET: Statement =
    Statement::new("INSERT INTO townsquare.buckets (name, access) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING");

pub(super) static LIST_BUCKETS: Statement = Statement::new("SELECT name, access FROM townsquare.buckets ORDER BY name");

pub(super) static FIND_BUCKET: Statement = Statement::new("SELECT access FROM townsquare.buckets WHERE name = $1");

/// The id of the object store, and whether it is this database's own.
pub(super) static GET_STORE: Statement = Statement::new("SELECT store_id, owns_store FROM townsquare.database");

/// Records the id `$1` of the database's own object store, if it is `$2` before.
pub(super) static SET_STORE: Statement = Statement::new(
    "UPDATE townsquare.database SET store_id = $1, owns_store = TRUE WHERE store_id = $2 RETURNING store_id",
);

/// A few files whose bytes are objects.
pub(super) static FIRST_OBJECTS: Statement = Statement::new(
    "SELECT files.bucket, files.path, files.size, files.etag, COALESCE(files.digest, '') FROM townsquare.files AS files
     WHERE NOT files.is_inline ORDER BY files.bucket, files.path LIMIT 10",
);

/// Whether an object belongs to a row, to an intent, or to a file that was deleted and whose object is about to go.
pub(super) static OBJECT_IS_KNOWN: Statement = Statement::new(
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM townsquare.files AS files
            WHERE files.bucket = $1 AND files.path = $2 AND NOT files.is_inline)
        OR EXISTS (SELECT 1 FROM townsquare.file_intents AS intent WHERE intent.bucket = $1 AND intent.path = $2)
        OR EXISTS (SELECT 1 FROM townsquare.file_outbox AS outbox WHERE outbox.bucket = $1 AND outbox.path = $2)",
);

/// The intents after the path `$2` of the bucket `$1` that began at `$3` or before.
pub(super) static OLD_INTENTS: Statement = Statement::new(
    "SELECT bucket, path FROM townsquare.file_intents WHERE (bucket > $1 OR (bucket = $1 AND path > $2)) AND created_at <= $3
     ORDER BY bucket, path LIMIT $4",
);

/// The next files after the bucket `$1` and the path `$2` whose bytes are in the database, with the number of these bytes.
pub(super) static INLINE_SIZES_AFTER: Statement = Statement::new(
    "SELECT files.bucket, files.path, files.size, files.is_inline, CAST(octet_length(contents.content) AS BIGINT) FROM (
        SELECT next.bucket, next.path, next.size, next.is_inline FROM townsquare.files AS next
        WHERE (next.bucket, next.path) > ($1, $2) ORDER BY next.bucket, next.path LIMIT $3
     ) AS files
     LEFT JOIN townsquare.file_contents AS contents ON contents.bucket = files.bucket AND contents.path = files.path
     ORDER BY files.bucket, files.path",
);
