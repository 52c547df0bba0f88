//! How values, errors and callbacks cross to C, and which process a handle belongs to.
//!
//! Invariant: a body of a C function runs behind a guard of [`guard`] or [`call`], so that no panic and no NULL gets through.

pub(crate) mod text;

pub(crate) mod version;

pub(crate) mod failure;

pub(crate) mod forks;

pub(crate) mod handle;

pub(crate) mod status;

pub(crate) mod guard;

pub(crate) mod string;

pub(crate) mod buffer;

pub(crate) mod error;

pub(crate) mod call;

pub(crate) mod argument;

pub(crate) mod input;

pub(crate) mod change;

pub(crate) mod record;

pub(crate) mod callback;

pub(crate) mod bell;

pub(crate) mod progress;

pub(crate) use self::{
    argument::Destination,
    bell::Bell,
    buffer::tsq_buffer,
    call::{call_count, call_handle, call_optional_handle, call_unit, call_wanted_handle},
    callback::{Callback, Subscribing, tsq_destroy},
    change::{tsq_bool_change, tsq_str_change, tsq_strs_change},
    error::{ErrorReport, tsq_error},
    failure::Failure,
    forks::ProcessOwned,
    guard::{Safe, answer, free, read, read_optional},
    handle::Handle,
    input::{Input, inputs},
    progress::{ReadCallback, WriteCallback, tsq_progress_callback, tsq_read_callback, tsq_write_callback},
    record::{Memory, Nested, OwnedRecord, Record, RecordList, list, record},
    status::tsq_status,
    string::{json, tsq_string},
    text::{Terminated, tsq_bytes, tsq_str},
};
