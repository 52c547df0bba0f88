//! PostgreSQL's spelling of what differs between the engines.

use crate::database::statement::Dialect;

pub(super) struct Postgresql;

impl Dialect for Postgresql {
    const OWN_TABLES: &'static str = "townsquare.";
    // It names no column, so the server asks it once, before it looks at any row: a session that is over is an error also
    // where there is no row to find.
    const ADMITTED: Option<&'static str> = Some("townsquare.admitted()");

    fn parameter(number: usize) -> String {
        format!("${number}")
    }

    fn later(time: &str, old: &str) -> String {
        format!("GREATEST({time}, {old} + INTERVAL '1 microsecond')")
    }

    fn holds_key(user: &str, column: &str) -> String {
        format!("townsquare.holds_key({user}, {column})")
    }
}
