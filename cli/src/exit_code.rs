//! The exit codes of the command.

use std::io;

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
  3    there are findings (check, repair, move and import with --dry-run)
  4    not found
  5    denied
  75   not now: try again
  130  interrupted";

/// SQLSTATE `data_corrupted`.
const DATA_CORRUPTED: &str = "XX001";

/// The code for an error of the library.
pub(crate) fn of(error: &Error) -> u8 {
    let of_host = source_of_host(error).map(of_io);
    match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::Unauthorized | ErrorKind::Forbidden => DENIED,
        ErrorKind::Cancelled => INTERRUPTED,
        _ if is_of_damage(error) => FAILURE,
        _ if matches!(of_host, Some(NOT_FOUND | DENIED)) => of_host.unwrap_or(FAILURE),
        _ if is_denied_by_host(error) => DENIED,
        ErrorKind::Config | ErrorKind::InvalidInput | ErrorKind::FieldMissing => USAGE,
        _ if error.is_retryable() => TRY_AGAIN,
        _ => FAILURE,
    }
}

/// The code for an error of the file system or of a socket.
pub(crate) fn of_io(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        io::ErrorKind::PermissionDenied => DENIED,
        _ => FAILURE,
    }
}

/// The error of the host that caused an error of the library.
fn source_of_host(error: &Error) -> Option<&io::Error> {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref() {
            return Some(cause);
        }
        source = cause.source();
    }
    None
}

/// Whether the host denies a file. Some errors of the library have the reason of the host, or of SQLite, in their message only.
fn is_denied_by_host(error: &Error) -> bool {
    ["Permission denied (os error", "unable to open database file"].iter().any(|part| error.message().contains(part))
}

/// Whether a file of the database or of a backup is damaged. The library has the kind `Config` for a file that it cannot open.
pub(crate) fn is_of_damage(error: &Error) -> bool {
    let message = error.message();
    error.code() == Some(DATA_CORRUPTED)
        || error.kind() == ErrorKind::Config
            && ["damaged", "malformed", "not a SQLite database", "is not complete"]
                .iter()
                .any(|part| message.contains(part))
}

/// The process ends here.
#[allow(clippy::exit, reason = "a signal ends the command while other threads run")]
pub(crate) fn end_process(code: u8) -> ! {
    std::process::exit(i32::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_the_host_denies_and_a_damaged_one_have_codes_of_their_own() {
        for (kind, message, code) in [
            (ErrorKind::InvalidInput, "the target cannot be written: Permission denied (os error 13)", DENIED),
            (ErrorKind::Config, "Cannot use a.db as database: unable to open database file: a.db", DENIED),
            (ErrorKind::Config, "a.db is not a SQLite database", FAILURE),
            (ErrorKind::Config, "The backup a.db is damaged", FAILURE),
            (ErrorKind::InvalidInput, "the path is damaged", USAGE),
            (ErrorKind::Config, "Option catalog_tries is 1 to 10", USAGE),
            (ErrorKind::Unavailable, "The server does not answer", TRY_AGAIN),
            (ErrorKind::Cancelled, "The call was cancelled", INTERRUPTED),
        ] {
            assert_eq!(of(&Error::of_binding(kind, message, None)), code, "{message}");
        }
    }
}
