//! PostgreSQL's SQL where the engines differ.

use crate::database::{page::Page, statement::Dialect};

pub(super) struct Postgresql;

impl Dialect for Postgresql {
    const OWN_TABLES: &'static str = "townsquare.";
    fn table(name: &str) -> String {
        format!("public.{name}")
    }

    // The check names no column, so the server evaluates it once, before it reads a row: an ended session is an error
    // also where no row matches.
    fn session_check(caller: &str) -> Option<String> {
        Some(format!("townsquare.admitted({caller})"))
    }

    fn parameter(number: usize) -> String {
        format!("${number}")
    }

    fn monotonic_updated_at(time: &str, old: &str) -> String {
        format!("GREATEST({time}, {old} + INTERVAL '1 microsecond')")
    }

    // The role of the callers may not read the column of keys. The row-level security policy decides.
    fn holds_key(_: &str, _: &str) -> String {
        "TRUE".to_owned()
    }

    fn linked(user: &str, column: &str) -> String {
        format!("townsquare.holds_key({user}, ARRAY[{column}])")
    }

    fn claimable(id: &str) -> String {
        format!("townsquare.is_claimable({id})")
    }

    fn has_address(column: &str, address: &str) -> String {
        // An adopted table may have addresses in mixed case. The server puts the body of the function in its place.
        format!("townsquare.has_address({column}, {address})")
    }

    fn any_of(list: &str) -> String {
        format!("= ANY ({list})")
    }

    fn has_path(table: &str, bucket: &str, paths: &str) -> String {
        format!(
            "EXISTS (SELECT 1 FROM {table} AS found WHERE found.bucket = {bucket} AND found.path {})",
            Postgresql::any_of(paths)
        )
    }

    // A cast of the ids to text would read every row. The length comes first, because it is cheap.
    fn uuid_of(column: &str) -> String {
        format!(
            "CASE WHEN length({column}) = 36 AND {column} ~ '^[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$' \
             THEN CAST({column} AS UUID) END"
        )
    }

    // The paths of files have the collation "C", and their segments too. An index serves comparisons with its own collation only.
    fn key_of(column: &str) -> String {
        format!("({column} COLLATE pg_catalog.\"default\")")
    }

    fn owner_usage(user: &str) -> String {
        format!("townsquare.owner_usage({user})")
    }

    fn space_fidgets(space: &str, most: &str) -> String {
        format!("townsquare.space_fidgets({space}, {most})")
    }

    fn page(page: &Page) -> String {
        page.before_the_join()
    }
}
