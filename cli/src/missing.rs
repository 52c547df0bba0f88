//! The failures of commands that make no database and change no schema: the database is missing, or has an older schema.
//!
//! With the option `migrate=false` the library refuses both with the kind `Config`. Its message tells them apart.

use townsquare::{Error, ErrorKind};

use crate::failure::Failure;

/// How the library begins the refusal.
const REFUSAL: &str = "Option migrate is false, and ";

/// Why the library refuses to open a database without changing it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal<'e> {
    /// There is no database, or one without tables. The text names it.
    Missing(&'e str),
    /// The schema, the triggers or the policies are of another version.
    Outdated(&'e str),
}

/// Why the error refuses a database; `None` for an error of another sort.
pub(crate) fn refusal(error: &Error) -> Option<Refusal<'_>> {
    if error.kind() != ErrorKind::Config {
        return None;
    }
    let reason = error.message().split_once(REFUSAL)?.1;
    if let Some(path) = reason.strip_prefix("there is no database ") {
        return Some(Refusal::Missing(path));
    }
    let has_no_tables = reason.contains(" needs the migrations 0001_");
    if has_no_tables || reason.starts_with("a database in memory") {
        return Some(Refusal::Missing(""));
    }
    Some(Refusal::Outdated(reason))
}

/// The failure of a command that changes no schema and makes no database.
pub(crate) fn failure(error: Error) -> Failure {
    match refusal(&error) {
        Some(Refusal::Missing("")) => Failure::not_found("There is no townsquare in the database", ADVICE),
        Some(Refusal::Missing(path)) => Failure::not_found(format!("There is no database {path}"), ADVICE),
        Some(Refusal::Outdated(reason)) => Failure::usage(
            format!("This command leaves the schema as it is, and {reason}"),
            "`townsquare serve` brings the database to this version. Back it up before, with the version that made it.",
        ),
        None => error.into(),
    }
}

const ADVICE: &str =
    "Name its folder with --data-dir or its server with --database-url; `townsquare serve` makes a new one.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_without_tables_is_missing_and_one_with_some_is_outdated() {
        let error = |reason: &str| Error::of_binding(ErrorKind::Config, format!("{REFUSAL}{reason}"), None);
        for (reason, expected) in [
            ("there is no database /srv/town.db", Refusal::Missing("/srv/town.db")),
            ("a database in memory is always new", Refusal::Missing("")),
            ("the database needs the migrations 0001_catalog, 0002_tables", Refusal::Missing("")),
            ("the database needs the migrations 0009_x", Refusal::Outdated("the database needs the migrations 0009_x")),
        ] {
            assert_eq!(refusal(&error(reason)), Some(expected));
        }
        assert_eq!(refusal(&Error::of_binding(ErrorKind::Config, "Option catalog_tries is 1 to 10", None)), None);
    }
}
