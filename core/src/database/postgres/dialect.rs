//! PostgreSQL's spelling of what differs between the engines.

use crate::database::statement::Dialect;

pub(super) struct Postgresql;

impl Dialect for Postgresql {
    const OWN_TABLES: &'static str = "townsquare.";

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
