//! SQLite's SQL where the engines differ.

use crate::database::statement::Dialect;

pub(super) struct SqliteDialect;

impl Dialect for SqliteDialect {
    const OWN_TABLES: &'static str = "townsquare_";

    fn table(name: &str) -> String {
        name.to_owned()
    }

    // `Connection` checks the session in a statement of its own.
    fn session_check(_: &str) -> Option<String> {
        None
    }

    fn parameter(number: usize) -> String {
        format!("?{number}")
    }

    fn monotonic_updated_at(time: &str, old: &str) -> String {
        // Times are text of fixed width and compare as text. SQLite's time functions have no microseconds, so this
        // increments the last six digits, and adds a second when all six are nines.
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

    fn linked(user: &str, column: &str) -> String {
        format!(
            "EXISTS (SELECT 1 FROM townsquare_identities AS linked WHERE linked.public_key = {column} \
             AND linked.user_id = {user})"
        )
    }

    fn has_address(column: &str, address: &str) -> String {
        // Other programs may have stored addresses in mixed case. A functional index finds them.
        format!("lower({column}) = {address}")
    }

    fn any_of(list: &str) -> String {
        format!("IN (SELECT value FROM json_each({list}))")
    }

    fn has_path(table: &str, bucket: &str, paths: &str) -> String {
        // A join, because for IN (SELECT …) SQLite builds a temporary table, which costs as much as an insert.
        format!(
            "EXISTS (SELECT 1 FROM json_each({paths}) AS one CROSS JOIN {table} AS found \
             WHERE found.bucket = {bucket} AND found.path = one.value)"
        )
    }
}

#[cfg(test)]
mod tests;
