//! The triggers that write the change log: made from `capture.sql` and the columns of the tables.
//!
//! Invariant: after `open` the database has the triggers of this library and no others of this name, unless a newer library
//! migrated it.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
    sync::LazyLock,
};

use rusqlite::Connection;

use crate::{
    database::statement::replace_braces,
    model::ColumnType,
    policy::{Column, Table},
};

/// How the names of the triggers begin.
const PREFIX: &str = "townsquare_change_";

const CREATE: &str = "CREATE TRIGGER ";

/// Triggers by name: the SQL as SQLite stores it.
type Triggers = BTreeMap<String, String>;

/// The tables with triggers of their own.
const OWN: [Table; 4] = [Table::Users, Table::Spaces, Table::Fidgets, Table::Files];

/// The triggers with their tables.
static TRIGGERS: LazyLock<Vec<(String, String, String)>> = LazyLock::new(|| {
    let of_tables = |statement: &str| -> Vec<String> {
        let others = Table::ALL.into_iter().filter(|table| !OWN.contains(table));
        match statement.contains("TABLE") {
            true => others.map(|table| statement.replace("TABLE", table.name())).collect(),
            false => vec![statement.to_owned()],
        }
    };
    let statements = include_str!("capture.sql").split(CREATE).skip(1).flat_map(of_tables);
    let triggers = statements.filter_map(|statement| {
        let (body, _) = statement.rsplit_once("\nEND;")?;
        let (name, rest) = body.split_once(' ')?;
        let table = rest.split_once(" ON ")?.1.split_whitespace().next()?.trim_matches('"');
        Some((table.to_owned(), name.to_owned(), format!("{CREATE}{}\nEND", expand(body))))
    });
    triggers.collect()
});

/// Whether the database has the triggers of this library.
pub(super) fn is_installed(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(installed(connection)? == wanted(connection)?)
}

/// Makes the triggers and drops what else has such a name.
pub(super) fn install(connection: &Connection) -> rusqlite::Result<()> {
    let (installed, wanted) = (installed(connection)?, wanted(connection)?);
    for name in installed.iter().filter(|(name, sql)| wanted.get(*name) != Some(sql)).map(|(name, _)| name) {
        connection.execute_batch(&format!("DROP TRIGGER \"{}\"", name.replace('"', "\"\"")))?;
    }
    for (_, sql) in wanted.iter().filter(|(name, sql)| installed.get(*name) != Some(sql)) {
        connection.execute_batch(sql)?;
    }
    Ok(())
}

/// The triggers of this library for the tables that exist. Calls that need a table which another program has dropped fail.
fn wanted(connection: &Connection) -> rusqlite::Result<Triggers> {
    let mut tables = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    let tables = tables.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<HashSet<String>>>()?;
    let triggers = TRIGGERS.iter().filter(|(table, ..)| tables.contains(table));
    Ok(triggers.map(|(_, name, sql)| (name.clone(), sql.clone())).collect())
}

/// The triggers of the database whose names begin with [`PREFIX`].
fn installed(connection: &Connection) -> rusqlite::Result<Triggers> {
    let select = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, ?1) = ?2";
    let mut triggers = connection.prepare(select)?;
    let triggers = triggers.query_map((PREFIX.len() as i64, PREFIX), |row| Ok((row.get(0)?, row.get(1)?)))?;
    triggers.collect()
}

/// Puts SQL in place of what stands in braces.
fn expand(template: &str) -> String {
    replace_braces(template, |placeholder| {
        let words: Vec<&str> = placeholder.splitn(3, [' ', '\n']).collect();
        let expanded = match *words.as_slice() {
            ["on"] => Some("(SELECT is_on FROM townsquare_feed)".to_owned()),
            ["old", table] => Table::from_name(table).map(old_image_sql),
            ["differs", table] => Table::from_name(table).map(differs_sql),
            ["context", "spaces", row] => Some(space_context_sql(row)),
            ["context", table, row] => Table::from_name(table).and_then(|table| match row.split_once(',') {
                None => context_sql(table, row),
                Some((row, space)) => Some(file_context_sql(row, space.split_once(',')?)),
            }),
            [table, row] => Table::from_name(table).map(|table| image_sql(table, row)),
            _ => None,
        };
        // What is unknown stays, and the statement fails.
        expanded.unwrap_or_else(|| format!("{{{placeholder}}}"))
    })
}

/// The SQL of the image of a row.
pub(super) fn image_sql(table: Table, row: &str) -> String {
    object_sql(table.columns().iter().copied(), row)
}

/// The SQL of a JSON object with columns of a row.
pub(super) fn object_sql(columns: impl Iterator<Item = Column>, row: &str) -> String {
    let columns = columns.map(|column| format!("'{}', {}", column.name, column_sql(column, value_sql(column, row))));
    format!("json_object({})", columns.collect::<Vec<_>>().join(", "))
}

/// The SQL of the image of OLD without large columns that NEW has unchanged.
fn old_image_sql(table: Table) -> String {
    let (mut unchanged, mut columns) = (Vec::new(), String::new());
    for column in table.columns() {
        let (mut value, name) = (value_sql(*column, "OLD"), column.name);
        if column.is_large {
            let is_unchanged = format!("length(OLD.\"{name}\") > 1000 AND OLD.\"{name}\" IS NEW.\"{name}\"");
            unchanged.push(format!("CASE WHEN {is_unchanged} THEN '{name}' END"));
            value = format!("CASE WHEN {is_unchanged} THEN NULL ELSE {value} END");
        }
        // Writing to a String cannot fail.
        let _ = write!(columns, ", '{name}', {}", column_sql(*column, value));
    }
    match unchanged.is_empty() {
        true => image_sql(table, "OLD"),
        false => format!("json_object('=', json_array({}){columns})", unchanged.join(", ")),
    }
}

/// The SQL of a column's value. CAST makes a text of a BLOB, which JSON cannot hold.
fn value_sql(column: Column, row: &str) -> String {
    let value = format!("{row}.\"{}\"", column.name);
    match column.column_type {
        ColumnType::Integer | ColumnType::Boolean => value,
        _ => format!("CAST({value} AS TEXT)"),
    }
}

/// The SQL of a value as it stands in an image.
fn column_sql(column: Column, value: String) -> String {
    match column.column_type {
        ColumnType::Json | ColumnType::Texts => format!("json({value})"),
        _ => value,
    }
}

/// The SQL of the context of a row; `None` for a table whose policy reads the row alone.
pub(super) fn context_sql(table: Table, row: &str) -> Option<String> {
    let space = |sql: &str| format!("(SELECT {sql} FROM spaces AS space WHERE space.id = {row}.space_id)");
    match table {
        Table::Fidgets => Some(space(&space_context_sql("space"))),
        Table::Files => {
            Some(file_context_sql(row, (&space("CAST(space.owner_id AS TEXT)"), &space("space.is_public"))))
        }
        _ => None,
    }
}

/// The SQL of the context that the fidgets of a space have.
fn space_context_sql(space: &str) -> String {
    format!("json_object('owner_id', CAST({space}.owner_id AS TEXT), 'is_public', {space}.is_public)")
}

/// The SQL of the context of a file, given the SQL of the owner and of the visibility of its space.
fn file_context_sql(row: &str, (owner_id, is_public): (&str, &str)) -> String {
    format!(
        "json_object('access', {row}.access, 'first_segment', {row}.first_segment, \
         'holder', (SELECT user_id FROM townsquare_identities WHERE public_key = {row}.first_segment), \
         'space_id', CAST({row}.space_id AS TEXT), 'owner_id', {owner_id}, 'is_public', {is_public})"
    )
}

/// The SQL that tells whether columns differ between OLD and NEW, apart from the key.
fn differs_sql(table: Table) -> String {
    let columns = table.columns().iter().filter(|column| !table.key().contains(&column.name));
    let differ = columns.map(|Column { name, .. }| format!("OLD.\"{name}\" IS NOT NEW.\"{name}\""));
    format!("({})", differ.collect::<Vec<_>>().join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::Clock, database::sqlite::migrate};

    #[test]
    fn nothing_in_braces_stays() {
        assert!(TRIGGERS.len() > 25 && TRIGGERS.iter().all(|(.., sql)| !sql.contains(['{', '}'])));
        assert!(TRIGGERS.iter().all(|(_, name, _)| name.starts_with(PREFIX)));
        assert_eq!(expand("a {on} {no such} {files"), "a (SELECT is_on FROM townsquare_feed) {no such} {files");
    }

    #[test]
    fn every_table_has_a_trigger_for_each_kind_of_change() {
        for table in Table::ALL {
            for (kind, image) in [
                ("insert", image_sql(table, "NEW")),
                ("update", old_image_sql(table)),
                ("delete", image_sql(table, "OLD")),
            ] {
                let begins = format!("('{}', '{kind}', {image}", table.name());
                assert!(TRIGGERS.iter().any(|(.., sql)| sql.contains(&begins)), "{begins}");
            }
        }
    }

    #[test]
    fn the_triggers_are_installed_once_and_others_of_the_name_go() {
        let mut connection = Connection::open_in_memory().expect("a database");
        migrate::run(&mut connection, 0, &Clock::default()).expect("the migrations");
        assert!(is_installed(&connection).expect("read"));
        let foreign = "CREATE TRIGGER of_the_host AFTER INSERT ON users BEGIN SELECT 1; END;";
        let changes = "DROP TRIGGER townsquare_change_users_insert;
             DROP TRIGGER townsquare_change_spaces_update;
             CREATE TRIGGER townsquare_change_spaces_update AFTER UPDATE ON spaces BEGIN SELECT 1; END;
             CREATE TRIGGER \"townsquare_change_\"\"\" AFTER UPDATE ON spaces BEGIN SELECT 1; END;";
        connection.execute_batch(&format!("{foreign}{changes}")).expect("changed");
        assert!(!is_installed(&connection).expect("read"));
        install(&connection).expect("repaired");
        assert!(is_installed(&connection).expect("read"));
        let count = "SELECT count(*) FROM sqlite_schema WHERE name = 'of_the_host'";
        assert_eq!(connection.query_row(count, [], |row| row.get::<_, i64>(0)), Ok(1));
        connection.execute_batch("DROP TABLE fidgets").expect("dropped");
        assert!(is_installed(&connection).expect("read"), "a table that is not there has no triggers");
    }
}
