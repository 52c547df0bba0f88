//! SQLite's spelling of what differs between the engines.

use crate::database::statement::Dialect;

pub(super) struct SqliteDialect;

impl Dialect for SqliteDialect {
    const OWN_TABLES: &'static str = "townsquare_";
    const ADMITTED: Option<&'static str> = None;

    fn parameter(number: usize) -> String {
        format!("?{number}")
    }

    fn later(time: &str, old: &str) -> String {
        // Times are text of fixed width, so they compare as text. SQLite's own functions know no microseconds: the
        // last six digits are counted up here, and carried into the seconds when they are all nines.
        format!(
            "CASE WHEN {time} > {old} OR {old} IS NULL THEN {time} \
             WHEN substr({old}, 21, 6) < '999999' THEN \
             substr({old}, 1, 20) || printf('%06d', CAST(substr({old}, 21, 6) AS INTEGER) + 1) || 'Z' \
             ELSE strftime('%Y-%m-%dT%H:%M:%S.000000Z', {old}, '+1 second') END"
        )
    }

    fn holds_key(user: &str, column: &str) -> String {
        format!(
            "EXISTS (SELECT 1 FROM townsquare_identities AS linked WHERE linked.user_id = {user} \
             AND linked.public_key IN (SELECT value FROM json_each({column})))"
        )
    }
}

#[cfg(test)]
mod tests;
