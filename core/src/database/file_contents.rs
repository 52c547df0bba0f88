//! The bytes of small files, for uploads and for moves.

use super::Statement;

/// Writes the bytes `$3` of a file, or replaces them.
pub(crate) static PUT_CONTENT: Statement = Statement::new(
    "INSERT INTO townsquare.file_contents (bucket, path, content) VALUES ($1, $2, $3)
     ON CONFLICT (bucket, path) DO UPDATE SET content = excluded.content",
);

/// Deletes the bytes of a file.
pub(crate) static DELETE_CONTENT: Statement =
    Statement::new("DELETE FROM townsquare.file_contents WHERE bucket = $1 AND path = $2");
