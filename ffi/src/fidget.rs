//! One fidget: its row, with its JSON as text.
//!
//! Invariant: a record is complete when it is made: reading it is a view and allocates nothing.

use serde::Serialize;
use townsquare::Fidget;

use crate::{
    boundary::{free, produce, read},
    error::tsq_error,
    handle::{self, Handle},
    id::{self, Id},
    json_text,
    status::tsq_status,
    text::{self, tsq_str, tsq_string},
};

/// One fidget, a widget placed in a space. Owned where a call returns it by itself, and then ended with
/// `tsq_fidget_free`; else a view into its list. All that is read from it lives as long as the fidget or the list.
pub struct tsq_fidget {
    _opaque: [u8; 0],
}

impl Handle for tsq_fidget {
    type Value = FidgetRecord;
}

/// The value behind a [`tsq_fidget`]; as JSON, the core's record.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct FidgetRecord {
    fidget: Fidget,
    #[serde(skip)]
    id: Id,
    #[serde(skip)]
    space_id: Option<Id>,
    #[serde(skip)]
    config: Option<Box<str>>,
    #[serde(skip)]
    position: Option<Box<str>>,
}

impl FidgetRecord {
    /// The records of a list.
    pub(crate) fn list(rows: Vec<Fidget>) -> Vec<FidgetRecord> {
        rows.into_iter().map(FidgetRecord::from).collect()
    }
}

impl From<Fidget> for FidgetRecord {
    fn from(fidget: Fidget) -> FidgetRecord {
        FidgetRecord {
            id: fidget.id.into(),
            space_id: fidget.space_id.map(Id::from),
            config: fidget.config.as_ref().map(json_text::written),
            position: fidget.position.as_ref().map(json_text::written),
            fidget,
        }
    }
}

/// The fidget's id: a UUID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_id(fidget: *const tsq_fidget) -> tsq_str {
    // SAFETY: `fidget` is NULL or live, by the manual.
    unsafe { read(fidget, |record| record.id.view()) }
}

/// The space it is in: a UUID; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_space_id(fidget: *const tsq_fidget) -> tsq_str {
    // SAFETY: `fidget` is NULL or live, by the manual.
    unsafe { read(fidget, |record| id::optional_view(record.space_id.as_ref())) }
}

/// What kind of widget it is: the column `type`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_kind(fidget: *const tsq_fidget) -> tsq_str {
    // SAFETY: `fidget` is NULL or live, by the manual.
    unsafe { read(fidget, |record| text::view(&record.fidget.kind)) }
}

/// Its settings, as JSON text; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_config(fidget: *const tsq_fidget) -> tsq_str {
    // SAFETY: `fidget` is NULL or live, by the manual.
    unsafe { read(fidget, |record| text::optional_view(record.config.as_deref())) }
}

/// Where it is, as JSON text; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_position(fidget: *const tsq_fidget) -> tsq_str {
    // SAFETY: `fidget` is NULL or live, by the manual.
    unsafe { read(fidget, |record| text::optional_view(record.position.as_deref())) }
}

/// When it was made: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_created_at(fidget: *const tsq_fidget) -> i64 {
    // SAFETY: `fidget` is NULL or live, by the manual.
    unsafe { read(fidget, |record| record.fidget.created_at.as_microsecond()) }
}

/// When it last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_updated_at(fidget: *const tsq_fidget) -> i64 {
    // SAFETY: `fidget` is NULL or live, by the manual.
    unsafe { read(fidget, |record| record.fidget.updated_at.as_microsecond()) }
}

/// The fidget as a JSON object: its columns by their names.
///
/// Borrows `fidget`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_json(
    fidget: *const tsq_fidget,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(fidget, "fidget")?)) }
}

/// Ends a fidget that a call returned by itself. Takes `fidget`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_free(fidget: *mut tsq_fidget) {
    // SAFETY: `fidget` is NULL or owned by the caller, by the manual.
    unsafe { free(fidget) }
}
