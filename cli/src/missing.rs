//! The failures of commands that make no database and change no schema: the database is missing, or has an older schema.
//!
//! With the option `migrate=false` the library refuses both with the kind `Config`. The code tells them apart.

use townsquare::{Error, ErrorKind};

use crate::failure::Failure;

/// SQLSTATE `invalid_catalog_name`: there is no database, or one without tables.
const NO_DATABASE: &str = "3D000";

/// SQLSTATE `object_not_in_prerequisite_state`: the schema, the triggers or the policies are of another version.
const NOT_MIGRATED: &str = "55000";

const ADVICE: &str = "Name its folder with --data-dir or its server with --database-url; `townsquare serve` makes a new one. \
     If it was there before, make none: `townsquare restore` installs a backup.";

const ADVICE_FOR_SERVER: &str =
    "Correct the name in --database-url, or create the database on the server, for example with `createdb`.";

/// Whether an error of `open` means that there is no database, or one without tables.
pub(crate) fn is_missing(error: &Error) -> bool {
    error.kind() == ErrorKind::Config && error.code() == Some(NO_DATABASE)
}

/// Whether an error of `open` means that the database needs `migrate`.
fn is_outdated(error: &Error) -> bool {
    error.kind() == ErrorKind::Config && error.code() == Some(NOT_MIGRATED)
}

/// The failure of a command that changes no schema and makes no database.
pub(crate) fn failure(error: Error) -> Failure {
    if is_missing(&error) {
        // The reason is that the option `migrate` is false. A server that lacks the database refuses the connection in any case.
        let advice = if error.reason().is_some() { ADVICE } else { ADVICE_FOR_SERVER };
        return Failure::not_found(without_reason(&error), advice);
    }
    if is_outdated(&error) {
        return Failure::usage(
            format!("{}, and this command leaves the schema as it is", without_reason(&error)),
            "`townsquare migrate` brings the database to this version. Back it up before, with the version that made it.",
        );
    }
    error.into()
}

/// The message without its reason, which names an option that the command sets by itself.
fn without_reason(error: &Error) -> &str {
    let message = error.message();
    error.reason().and_then(|reason| message.strip_suffix(reason)?.strip_suffix(": ")).unwrap_or(message)
}
