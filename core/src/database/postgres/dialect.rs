//! PostgreSQL's spelling of what differs between the engines.

use crate::database::statement::Dialect;

pub(super) struct Postgresql;

impl Dialect for Postgresql {
    const OWN_TABLES: &'static str = "townsquare.";

    fn parameter(number: usize) -> String {
        format!("${number}")
    }

    fn later(time: &str) -> String {
        format!("GREATEST({time}, updated_at + INTERVAL '1 microsecond')")
    }
}
