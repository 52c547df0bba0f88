//! The formats of exported rows: JSON lines, and CSV with one table.
//!
//! Invariant: a row that is written and read is the same row. In CSV an empty cell is NULL. A text that is empty or begins with a
//! backslash has one more backslash before it. JSON columns and lists are JSON text.

use std::path::Path;

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use townsquare::{
    rows::{RowColumn, RowTable, TableRow, ValueKind, tables},
    spaces::parse_json,
};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line, with `table` and `row`.
    Ndjson,
    /// The rows of one table, with the names of the columns as the first line.
    Csv,
}

impl Format {
    /// The format that is given; else CSV for a file with that ending.
    pub(crate) fn of(given: Option<Format>, file: &Path) -> Format {
        let is_csv = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        given.unwrap_or(if is_csv { Format::Csv } else { Format::Ndjson })
    }
}

/// Maps a table name of the command line to the name in the database and in exported rows.
pub(crate) fn database_name(name: &str) -> &str {
    if name == "space_registrations" { "spaceRegistrations" } else { name }
}

/// The table with a name of the command line.
pub(crate) fn table(name: &str) -> Result<RowTable, String> {
    let name = database_name(name);
    let mut tables = tables();
    let names: Vec<_> = tables.iter().map(|table| table.name).collect();
    let known = names.join(", ");
    let found = tables.iter().position(|table| table.name == name);
    found.map(|found| tables.swap_remove(found)).ok_or_else(|| format!("it is one of {known}"))
}

/// The cells of a row.
pub(crate) fn cells(table: &RowTable, row: &TableRow) -> Vec<String> {
    table.columns.iter().map(|column| cell(column, row.values.get(column.name))).collect()
}

fn cell(column: &RowColumn, value: Option<&Value>) -> String {
    match (column.kind, value) {
        (_, None) => String::new(),
        (ValueKind::Json, Some(value)) => value.to_string(),
        (_, Some(Value::Null)) => String::new(),
        (ValueKind::Text, Some(Value::String(text))) if text.is_empty() || text.starts_with('\\') => {
            format!("\\{text}")
        }
        (_, Some(Value::String(text))) => text.clone(),
        (_, Some(value)) => value.to_string(),
    }
}

/// Reads the cell of a column into a row. An error begins with the column.
pub(crate) fn read_cell(row: &mut Map<String, Value>, column: &RowColumn, cell: &str) -> Result<(), String> {
    let name = column.name;
    let value = match column.kind {
        // A JSON column that is NULL is left out of a row.
        ValueKind::Json if cell.is_empty() => return Ok(()),
        _ if cell.is_empty() => Value::Null,
        ValueKind::Json | ValueKind::Texts => parse_json(name, cell).map_err(|error| error.message().to_owned())?,
        ValueKind::Integer => json!(cell.parse::<i64>().map_err(|_| format!("{name} is no whole number"))?),
        ValueKind::Boolean => json!(cell.parse::<bool>().map_err(|_| format!("{name} is neither true nor false"))?),
        ValueKind::Text => json!(unescaped(name, cell)?),
        _ => json!(cell),
    };
    row.insert(name.to_owned(), value);
    Ok(())
}

fn unescaped<'c>(name: &str, cell: &'c str) -> Result<&'c str, String> {
    match cell.strip_prefix('\\') {
        None => Ok(cell),
        Some(rest) if rest.is_empty() || rest.starts_with('\\') => Ok(rest),
        Some(_) => Err(format!("{name} begins with one backslash: write two for a text that begins with one")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_is_written_and_read_is_the_same_value() {
        let spaces = table("spaces").expect("a table");
        let fidgets = table("fidgets").expect("a table");
        let of = |table: &RowTable, name: &str| *table.columns.iter().find(|column| column.name == name).expect("one");
        let (text, json) = (of(&spaces, "description"), of(&fidgets, "config"));
        for value in ["", "a", "\\", "\\\\", "\\a", "a\n\"b\",c", " ", "null"] {
            let mut row = Map::new();
            read_cell(&mut row, &text, &cell(&text, Some(&json!(value)))).expect("readable");
            assert_eq!(row["description"], value);
        }
        let mut row = Map::new();
        read_cell(&mut row, &text, &cell(&text, Some(&Value::Null))).expect("readable");
        assert_eq!(row["description"], Value::Null);
        for value in [json!(null), json!(""), json!({"a": [1.5, "\\"]})] {
            let mut row = Map::new();
            read_cell(&mut row, &json, &cell(&json, Some(&value))).expect("readable");
            assert_eq!(row["config"], value);
        }
        let mut row = Map::new();
        read_cell(&mut row, &json, &cell(&json, None)).expect("readable");
        assert!(row.is_empty(), "{row:?}");
    }

    #[test]
    fn a_cell_of_another_type_is_refused() {
        let spaces = table("spaces").expect("a table");
        let mut row = Map::new();
        let column = |name: &str| spaces.columns.iter().find(|column| column.name == name).expect("one");
        assert!(read_cell(&mut row, column("is_public"), "1").is_err());
        assert!(read_cell(&mut row, column("name"), "\\x").is_err());
        assert!(table("files").is_err() && table("space_registrations").is_ok());
    }
}
