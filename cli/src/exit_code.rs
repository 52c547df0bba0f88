//! The exit codes of the command.

use townsquare::{Error, ErrorKind};

pub(crate) const SUCCESS: u8 = 0;
pub(crate) const FAILURE: u8 = 1;
/// The command line, the configuration or an argument is not valid.
pub(crate) const USAGE: u8 = 2;
/// `check` found something, or `repair` left something.
pub(crate) const FINDINGS: u8 = 3;
pub(crate) const NOT_FOUND: u8 = 4;
pub(crate) const DENIED: u8 = 5;
/// The same command may succeed later. `EX_TEMPFAIL` of sysexits.h.
pub(crate) const TRY_AGAIN: u8 = 75;
/// A signal ended the command. 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// What the codes mean, for the end of `--help`.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    done
  1    failed
  2    the command line or the configuration is not valid
  3    there are findings (check, repair, move --dry-run)
  4    not found
  5    denied
  75   not now: try again
  130  interrupted";

/// The code for an error of the library.
pub(crate) fn of(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::Unauthorized | ErrorKind::Forbidden => DENIED,
        ErrorKind::Config | ErrorKind::InvalidInput | ErrorKind::FieldMissing => USAGE,
        _ if error.is_retryable() => TRY_AGAIN,
        _ => FAILURE,
    }
}

/// The process ends here.
#[allow(clippy::exit, reason = "a signal ends the command while other threads run")]
pub(crate) fn end_process(code: u8) -> ! {
    std::process::exit(i32::from(code))
}
