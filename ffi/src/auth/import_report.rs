//! What an import of password hashes did.

use townsquare::auth::ImportReport;

use crate::boundary::{Memory, Record, call_handle, free, handle, json, tsq_error, tsq_status, tsq_string};

/// What `tsq_auth_import_credentials` did. A record (manual, RECORDS); freed with `tsq_import_report_free`.
#[repr(C)]
pub struct tsq_import_report {
    /// Users who had no password and have the imported one.
    pub imported: u64,
    /// Users who had a password, which stays.
    pub unchanged: u64,
}

impl Record for tsq_import_report {
    type Source = ImportReport;

    fn new(report: &ImportReport, _: &mut Memory) -> tsq_import_report {
        tsq_import_report { imported: report.imported, unchanged: report.unchanged }
    }
}

/// The report as a JSON object: the members of the struct by their names.
///
/// Borrows `report`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_import_report_json(
    report: *const tsq_import_report,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(report, "report")?)) }
}

/// Frees a report. Takes `report`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_import_report_free(report: *mut tsq_import_report) {
    // SAFETY: `report` is NULL or owned by the caller, by the manual.
    unsafe { free(report) }
}
