//! The exit codes of the command.

use std::io;

use townsquare::{Error, ErrorKind};

use crate::missing::is_missing;

pub(crate) const SUCCESS: u8 = 0;
pub(crate) const FAILURE: u8 = 1;
/// The command line, the configuration or the input is not valid.
pub(crate) const USAGE: u8 = 2;
/// `check` or `restore --verify` found something, `repair` left something, or a dry run tells of something.
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
  2    the command line, the configuration or the input is not valid
  3    there are findings (check, repair, restore; move and import with --dry-run)
  4    not found
  5    denied
  75   not now: try again
  130  interrupted";

/// SQLSTATE `data_corrupted` and `index_corrupted`.
const DAMAGE: [&str; 2] = ["XX001", "XX002"];

/// SQLSTATE `io_error`.
const IO_ERROR: &str = "58030";

/// The code for an error of the library.
pub(crate) fn of(error: &Error) -> u8 {
    let of_host = source_of_host(error).map(of_io);
    if is_missing(error) {
        return NOT_FOUND;
    }
    match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::Unauthorized | ErrorKind::Forbidden => DENIED,
        ErrorKind::Cancelled => INTERRUPTED,
        _ if is_of_damage(error) => FAILURE,
        _ if matches!(of_host, Some(NOT_FOUND | DENIED)) => of_host.unwrap_or(FAILURE),
        ErrorKind::Config if error.code() == Some(IO_ERROR) => FAILURE,
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
        // As the library's error of a full disk, which is worth another try.
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => TRY_AGAIN,
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

/// Whether a file of the database or of a backup is damaged. The library has the kind `Config` for a file that it cannot open.
pub(crate) fn is_of_damage(error: &Error) -> bool {
    error.code().is_some_and(|code| DAMAGE.contains(&code))
}

/// The process ends here.
#[allow(clippy::exit, reason = "a signal ends the command while other threads run")]
pub(crate) fn end_process(code: u8) -> ! {
    std::process::exit(i32::from(code))
}

#[cfg(test)]
mod tests {
    use townsquare::{Client, Config};

    use super::*;
    use crate::runtime::block_on;

    #[test]
    fn an_error_of_the_library_has_the_code_of_its_kind() {
        for (kind, code) in [
            (ErrorKind::InvalidInput, USAGE),
            (ErrorKind::Config, USAGE),
            (ErrorKind::Unavailable, TRY_AGAIN),
            (ErrorKind::Cancelled, INTERRUPTED),
            (ErrorKind::Internal, FAILURE),
            (ErrorKind::NotFound, NOT_FOUND),
            (ErrorKind::Forbidden, DENIED),
        ] {
            // The text of a message decides nothing.
            let message = "Permission denied (os error 13): the database is damaged, and there is no database";
            assert_eq!(of(&Error::of_binding(kind, message, None)), code, "{kind:?}");
        }
    }

    #[test]
    fn a_missing_database_and_a_damaged_one_have_codes_of_their_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = || {
            let config = Config::new().data_dir(folder.path()).migrate(false);
            block_on(Client::open(config)).expect("a runtime").expect_err("no database")
        };
        assert_eq!(of(&open()), NOT_FOUND);
        std::fs::write(folder.path().join("townsquare.db"), "x".repeat(9_000)).expect("a file");
        assert_eq!(of(&open()), FAILURE);
        let restored = Client::restore(folder.path().join("townsquare.db"), folder.path().join("other"));
        assert_eq!(of(&restored.expect_err("no backup")), FAILURE);
    }
}
