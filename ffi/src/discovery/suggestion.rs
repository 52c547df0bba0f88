//! Suggestions for a search box.

use serde::Serialize;
use townsquare::discovery::{MiniApp, Suggestion};

use crate::{
    boundary::{
        Handle, Memory, Nested, Record, RecordList, call_handle, free, handle, json, read, text, tsq_error, tsq_status,
        tsq_str, tsq_string,
    },
    discovery::{highlight::tsq_range, mini_app::tsq_mini_app},
};

/// A suggestion. A record (manual, RECORDS).
#[repr(C)]
pub struct tsq_suggestion {
    /// The app: a view that lives as long as the list.
    pub app: *const tsq_mini_app,
    /// The text to show: the app's name.
    pub text: tsq_str,
    /// The parts of `text` that the input matches, in order; none if it matches another text of the app.
    pub matches: *const tsq_range,
    /// Number of parts.
    pub matches_len: usize,
}

/// The core's suggestion.
#[derive(Serialize)]
pub(crate) struct SuggestionRow {
    app: Nested<MiniApp>,
    text: String,
    matches: Vec<(usize, usize)>,
}

impl From<Suggestion> for SuggestionRow {
    fn from(suggestion: Suggestion) -> SuggestionRow {
        SuggestionRow { app: suggestion.app.into(), text: suggestion.text, matches: suggestion.matches }
    }
}

impl Record for tsq_suggestion {
    type Source = SuggestionRow;

    fn new(row: &SuggestionRow, memory: &mut Memory) -> tsq_suggestion {
        let matches: Vec<tsq_range> = row.matches.iter().map(tsq_range::from).collect();
        tsq_suggestion {
            app: row.app.view(),
            text: text::view(&row.text),
            matches_len: matches.len(),
            matches: memory.array(matches),
        }
    }
}

/// A list of suggestions, best first. Owned, freed with `tsq_suggestions_free`.
pub struct tsq_suggestions {
    _opaque: [u8; 0],
}

impl Handle for tsq_suggestions {
    type Value = RecordList<tsq_suggestion>;
}

/// The number of suggestions, best first; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_suggestions_len(list: *const tsq_suggestions) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The item at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_suggestions_at(list: *const tsq_suggestions, index: usize) -> *const tsq_suggestion {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of objects: `app`, `text` and `matches`, an array of `[start, end]`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_suggestions_json(
    list: *const tsq_suggestions,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its items. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_suggestions_free(list: *mut tsq_suggestions) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}
