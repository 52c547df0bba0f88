//! What a database knows of its object store, of a move into it and of its migrations, read before `open` changes anything.

use crate::model::{MigrationPlan, StoredObject};

/// The store, large files and buckets of a database. A new database has the default.
#[derive(Debug, Default)]
pub(crate) struct StoredFiles {
    /// The id of the object store; empty if there is none yet.
    pub(crate) store_id: String,
    /// A few of the files whose bytes are objects.
    pub(crate) objects: Vec<StoredObject>,
    /// The name and the access of each declared bucket.
    pub(crate) buckets: Vec<(String, String)>,
    /// The incarnation of the source of an unfinished move into the database.
    pub(crate) unfinished_move: Option<String>,
    /// For the target of a move; else empty.
    pub(crate) usage: Usage,
    /// Set if [`OpenOptions::is_plan`](super::OpenOptions::is_plan) is.
    pub(crate) plan: Option<MigrationPlan>,
}

/// Whether a database can be the target of a move.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Empty for a new database.
    pub(crate) incarnation: String,
    /// The tables with rows that a fresh database does not have.
    pub(crate) used_tables: Vec<String>,
}

/// The schema version with the tables of files.
pub(super) const FILES_SINCE: usize = 5;

/// The schema version with the mark of an unfinished move.
pub(super) const MOVES_SINCE: usize = 8;
