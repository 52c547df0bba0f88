//! What a repair of the file store did and found.

use townsquare::storage::RepairReport;

use crate::boundary::{
    Memory, Record, call_handle, free, handle, json, text, tsq_error, tsq_status, tsq_str, tsq_string,
};

/// What `tsq_storage_repair` did and found. A record (manual, RECORDS); freed with `tsq_repair_report_free`.
#[repr(C)]
pub struct tsq_repair_report {
    /// Unfinished writes and deletes that were finished or undone, and files of a remote store that got the version of
    /// their object.
    pub finished: u64,
    /// Bytes without a row that were removed.
    pub orphans_removed: u64,
    /// Rows that were removed because their bytes had vanished.
    pub rows_removed: u64,
    /// `BUCKET/PATH` of each file with bytes of another size or version than its row says: an array. They stay, and are never
    /// served.
    pub mismatched: *const tsq_str,
    /// Number of these files.
    pub mismatched_len: usize,
}

impl Record for tsq_repair_report {
    type Source = RepairReport;

    fn new(report: &RepairReport, memory: &mut Memory) -> tsq_repair_report {
        let mismatched: Vec<_> = report.mismatched.iter().map(|path| text::view(path)).collect();
        tsq_repair_report {
            finished: report.finished,
            orphans_removed: report.orphans_removed,
            rows_removed: report.rows_removed,
            mismatched_len: mismatched.len(),
            mismatched: memory.array(mismatched),
        }
    }
}

/// The report as a JSON object: the members of the struct by their names.
///
/// Borrows `report`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_repair_report_json(
    report: *const tsq_repair_report,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(report, "report")?)) }
}

/// Frees a report. Takes `report`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_repair_report_free(report: *mut tsq_repair_report) {
    // SAFETY: `report` is NULL or owned by the caller, by the manual.
    unsafe { free(report) }
}
