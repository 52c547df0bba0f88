//! What a move copies, and what it has copied.
//!
//! Invariant: zeroed options copy everything.

use std::{mem::MaybeUninit, time::Duration};

use townsquare::{MoveOptions, MoveReport};

use crate::boundary::{
    Failure, Memory, Record, call_handle, change, free, handle, input, inputs, json, text, tsq_error, tsq_status,
    tsq_str, tsq_string,
};

/// What `tsq_client_move_to` copies. Zeroed, and for NULL, everything: `tsq_move_options options = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_move_options {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// Whether the sessions stay behind, so that the users sign in again; any non-zero byte is true.
    pub without_sessions: MaybeUninit<bool>,
    /// If not 0, others may write the source meanwhile. At the end their writes wait for the last copy and comparison, at most this
    /// long, in milliseconds; then the source takes no writes any more (25006). Choose less than the `busy_timeout` (SQLite) or
    /// `operation_timeout` (PostgreSQL) of the writers and of the source. `tsq_client_reopen_for_writes` allows writes again.
    pub follow_ms: u64,
}

inputs!(tsq_move_options: follow_ms);

/// The core's options; the defaults for NULL.
///
/// # Safety
/// `options` is NULL or an input as for [`input::input`].
pub(crate) unsafe fn read(options: *const tsq_move_options) -> Result<MoveOptions, Failure> {
    // SAFETY: the caller's promise, passed on.
    let read = unsafe { input::optional_input(options, "options", |options| Ok(options.read())) };
    Ok(read?.unwrap_or_default())
}

impl tsq_move_options {
    /// # Safety
    /// All members are initialised.
    unsafe fn read(&self) -> MoveOptions {
        // SAFETY: the caller's promise, passed on.
        let copied = MoveOptions::new().sessions(unsafe { !change::boolean(self.without_sessions) });
        match self.follow_ms {
            0 => copied,
            longest => copied.follow(Duration::from_millis(longest)),
        }
    }
}

/// The number of rows of a table. This struct does not grow.
#[repr(C)]
pub struct tsq_table_rows {
    /// The name. The tables of the library itself have no prefix: `credentials`, `sessions`, ….
    pub name: tsq_str,
    /// Number of its rows.
    pub rows: u64,
}

/// What `tsq_client_move_to` has copied, as it was verified. A record (manual, RECORDS); freed with `tsq_move_report_free`.
#[repr(C)]
pub struct tsq_move_report {
    /// The tables by name: an array.
    pub tables: *const tsq_table_rows,
    /// Number of the tables.
    pub tables_len: usize,
    /// Number of the files.
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// How long the call took, in seconds.
    pub seconds: f64,
    /// Whether the call continued a move that an earlier call had begun.
    pub resumed: bool,
}

impl Record for tsq_move_report {
    type Source = MoveReport;

    fn new(report: &MoveReport, memory: &mut Memory) -> tsq_move_report {
        let rows = |(name, rows): (&String, &u64)| tsq_table_rows { name: text::view(name), rows: *rows };
        let tables: Vec<_> = report.rows.iter().map(rows).collect();
        tsq_move_report {
            tables_len: tables.len(),
            tables: memory.array(tables),
            files: report.files,
            bytes: report.bytes,
            seconds: report.seconds,
            resumed: report.resumed,
        }
    }
}

/// The report as a JSON object: `files`, `bytes`, `seconds`, `resumed`, and `rows`, an object with the number of rows by table.
///
/// Borrows `report`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_move_report_json(
    report: *const tsq_move_report,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(report, "report")?)) }
}

/// Frees a report. Takes `report`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_move_report_free(report: *mut tsq_move_report) {
    // SAFETY: `report` is NULL or owned by the caller, by the manual.
    unsafe { free(report) }
}
