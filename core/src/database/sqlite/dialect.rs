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

    fn claimable(id: &str) -> String {
        // '0' is the character after '/'.
        let file = |table: &str| {
            format!(
                "EXISTS (SELECT 1 FROM {table} AS claim WHERE claim.bucket = 'spaces' AND claim.path >= {id} \
                 AND claim.path < {id} || '0' AND claim.first_segment = {id})"
            )
        };
        format!(
            "(EXISTS (SELECT 1 FROM spaces AS taken WHERE taken.id = {id}) OR NOT (\
             EXISTS (SELECT 1 FROM \"spaceRegistrations\" AS claim WHERE claim.\"spaceId\" = {id}) \
             OR EXISTS (SELECT 1 FROM townsquare_former_spaces AS claim WHERE claim.id = {id}) OR {} OR {}))",
            file("townsquare_files"),
            file("townsquare_file_intents")
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

    // Ids are text.
    fn uuid_of(column: &str) -> String {
        column.to_owned()
    }

    fn key_of(column: &str) -> String {
        column.to_owned()
    }

    // As the function townsquare.owner_usage of PostgreSQL.
    fn owner_usage(user: &str) -> String {
        format!(
            "(SELECT (SELECT count(*) FROM spaces WHERE owner_id = {user}) AS spaces, \
             coalesce(sum(of_file.files), 0) AS files, coalesce(sum(of_file.bytes), 0) AS bytes FROM ( \
             SELECT 1 AS files, files.size AS bytes FROM townsquare_files AS files WHERE files.owner_id = {user} \
             UNION ALL SELECT old.size IS NULL, max(intent.size - coalesce(old.size, 0), 0) \
             FROM townsquare_file_intents AS intent LEFT JOIN townsquare_files AS old \
             ON old.bucket = intent.bucket AND old.path = intent.path AND old.owner_id = intent.owner_id \
             WHERE intent.owner_id = {user} AND intent.moved_from IS NULL) AS of_file)"
        )
    }

    // As the function townsquare.space_fidgets of PostgreSQL.
    fn space_fidgets(space: &str, most: &str) -> String {
        format!("(SELECT count(*) AS fidgets FROM (SELECT 1 FROM fidgets WHERE space_id = {space} LIMIT {most}))")
    }
}

#[cfg(test)]
mod tests;
