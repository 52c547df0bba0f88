//! Highlights: the texts of an app with the words that match a query.

use townsquare::discovery::Highlight;

use crate::boundary::{
    Handle, Memory, Record, RecordList, call_handle, free, handle, json, read, text, tsq_error, tsq_status, tsq_str,
    tsq_string,
};

/// A part of a text in characters (Unicode code points), from `start` up to `end`. This struct does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_range {
    /// The first character.
    pub start: usize,
    /// The character after the last.
    pub end: usize,
}

impl From<&(usize, usize)> for tsq_range {
    fn from((start, end): &(usize, usize)) -> tsq_range {
        tsq_range { start: *start, end: *end }
    }
}

/// A text of an app that matches a query. A record (manual, RECORDS).
#[repr(C)]
pub struct tsq_highlight {
    /// The field: `name`, `tags`, `category`, `subtitle`, `tagline`, `author_display_name`, `author_username`,
    /// `description` or `domain`.
    pub field: tsq_str,
    /// The whole text of the field; of `tags`, one tag.
    pub text: tsq_str,
    /// The matched words, in order.
    pub matches: *const tsq_range,
    /// Number of matched words.
    pub matches_len: usize,
}

impl Record for tsq_highlight {
    type Source = Highlight;

    fn new(highlight: &Highlight, memory: &mut Memory) -> tsq_highlight {
        let matches: Vec<tsq_range> = highlight.matches.iter().map(tsq_range::from).collect();
        tsq_highlight {
            field: text::view(highlight.field),
            text: text::view(&highlight.text),
            matches_len: matches.len(),
            matches: memory.array(matches),
        }
    }
}

/// A list of highlights, the name first. Owned, freed with `tsq_highlights_free`.
pub struct tsq_highlights {
    _opaque: [u8; 0],
}

impl Handle for tsq_highlights {
    type Value = RecordList<tsq_highlight>;
}

/// The number of highlights, the name first; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_highlights_len(list: *const tsq_highlights) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The item at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_highlights_at(list: *const tsq_highlights, index: usize) -> *const tsq_highlight {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of objects: `field`, `text` and `matches`, an array of `[start, end]`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_highlights_json(
    list: *const tsq_highlights,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its items. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_highlights_free(list: *mut tsq_highlights) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}
