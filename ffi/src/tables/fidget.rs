//! Fidgets: the struct of a row, and lists of rows (SPEC 2.7).

use townsquare::spaces::Fidget;

use crate::boundary::{
    Handle, Memory, Record, RecordList, call_handle, free, handle, json, read, text, tsq_error, tsq_status, tsq_str,
    tsq_string,
};

/// A fidget: a widget placed in a space. A record (manual, RECORDS); freed with `tsq_fidget_free` where a call returns
/// it owned.
#[repr(C)]
pub struct tsq_fidget {
    /// Primary key: a UUID.
    pub id: tsq_str,
    /// The space that contains it: a UUID; may be absent.
    pub space_id: tsq_str,
    /// The kind of widget: the column `type`.
    pub kind: tsq_str,
    /// Settings, as JSON; may be absent.
    pub config: tsq_str,
    /// Position, as JSON; may be absent.
    pub position: tsq_str,
    /// Creation time, in microseconds.
    pub created_at: i64,
    /// Time of the last change, in microseconds; never goes back.
    pub updated_at: i64,
}

impl Record for tsq_fidget {
    type Source = Fidget;

    fn new(fidget: &Fidget, memory: &mut Memory) -> tsq_fidget {
        tsq_fidget {
            id: memory.id(fidget.id),
            space_id: memory.optional_id(fidget.space_id),
            kind: text::view(&fidget.kind),
            config: memory.optional_json(fidget.config.as_ref()),
            position: memory.optional_json(fidget.position.as_ref()),
            created_at: fidget.created_at.as_microsecond(),
            updated_at: fidget.updated_at.as_microsecond(),
        }
    }
}

/// A list of fidgets, oldest first unless the call says otherwise. Freed with `tsq_fidget_list_free` where a call
/// returns it owned; a view where it is a member of a space.
pub struct tsq_fidget_list {
    _opaque: [u8; 0],
}

impl Handle for tsq_fidget_list {
    type Value = RecordList<tsq_fidget>;
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
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(fidget, "fidget")?)) }
}

/// Frees a fidget that a call returned owned. Takes `fidget`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_free(fidget: *mut tsq_fidget) {
    // SAFETY: `fidget` is NULL or owned by the caller, by the manual.
    unsafe { free(fidget) }
}

/// The number of fidgets; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_list_len(list: *const tsq_fidget_list) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The fidget at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_list_at(list: *const tsq_fidget_list, index: usize) -> *const tsq_fidget {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of the objects of `tsq_fidget_json`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_list_json(
    list: *const tsq_fidget_list,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list that a call returned, with its fidgets. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_list_free(list: *mut tsq_fidget_list) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}
