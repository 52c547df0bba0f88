//! Live queries: the rows now, and every change after them.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::stream::ChangeStream;

/// The rows of a table, and the changes after them: the result of [`Realtime::live`](super::Realtime::live).
#[derive(Debug)]
#[non_exhaustive]
pub struct LiveQuery {
    /// The rows when the query began, in the form of [`RowChange::new`](super::RowChange::new).
    pub rows: Vec<Arc<Map<String, Value>>>,
    /// Every change after them. It keeps the caller that the query began with, and ends with `Unauthorized` when that
    /// caller's session ends.
    pub changes: ChangeStream,
}
