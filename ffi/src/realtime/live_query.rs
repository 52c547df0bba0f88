//! Live queries: the rows now, and the stream of every change after them.

use std::sync::Arc;

use serde_json::Map;
use townsquare::{Json, realtime::LiveQuery};

use crate::{
    boundary::{Bell, Handle, free, handle, read, text, tsq_str},
    realtime::change_stream::{StreamState, tsq_change_stream},
};

/// The rows of a table, and every change after them. Owned, freed with `tsq_live_query_free`.
pub struct tsq_live_query {
    _opaque: [u8; 0],
}

/// The rows as JSON, and the stream.
pub(crate) struct LiveState {
    rows: Vec<String>,
    changes: Box<StreamState>,
}

impl Handle for tsq_live_query {
    type Value = LiveState;
}

impl LiveState {
    pub(crate) fn new(live: LiveQuery, bell: Option<Arc<Bell>>) -> LiveState {
        let json = |row: &Map<String, Json>| serde_json::to_string(row).expect("a JSON object is JSON");
        LiveState {
            rows: live.rows.iter().map(json).collect(),
            changes: Box::new(StreamState::new(live.changes, bell)),
        }
    }
}

/// Number of rows; 0 for NULL.
///
/// Borrows `live`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_live_query_len(live: *const tsq_live_query) -> usize {
    // SAFETY: `live` is NULL or live, by the manual.
    unsafe { read(live, |live| live.rows.len()) }
}

/// The row at `index` when the query began, as JSON: an object with a member for each column. Absent beyond the end.
///
/// Borrows `live`; returns a view that lives as long as `live`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_live_query_row_at(live: *const tsq_live_query, index: usize) -> tsq_str {
    // SAFETY: `live` is NULL or live, by the manual.
    unsafe { read(live, |live| text::optional_view(live.rows.get(index).map(String::as_str))) }
}

/// The changes after these rows. It ends with the caller's session. NULL for NULL.
///
/// Borrows `live`; returns a view that lives as long as `live`: do not free it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_live_query_changes(live: *const tsq_live_query) -> *mut tsq_change_stream {
    // SAFETY: `live` is NULL or live, by the manual.
    unsafe { read(live, |live| handle::view::<tsq_change_stream>(&live.changes).cast_mut()) }
}

/// Frees a live query, which ends its stream. Takes `live`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_live_query_free(live: *mut tsq_live_query) {
    // SAFETY: `live` is NULL or owned by the caller, by the manual.
    unsafe { free(live) }
}
