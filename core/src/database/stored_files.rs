//! What a database knows of its object store, read before `open` changes anything.

use crate::model::StoredObject;

/// The store, large files and buckets of a database. A new database has the default.
#[derive(Debug, Default)]
pub(crate) struct StoredFiles {
    /// The id of the object store; empty if there is none yet.
    pub(crate) store_id: String,
    /// A few of the files whose bytes are objects.
    pub(crate) objects: Vec<StoredObject>,
    /// The name and the access of each declared bucket.
    pub(crate) buckets: Vec<(String, String)>,
}

/// The schema version with the tables of files.
pub(super) const FILES_SINCE: usize = 5;
