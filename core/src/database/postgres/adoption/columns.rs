//! Which columns of another program's table fit the columns of SPEC 2.
//!
//! Invariant: a column fits when it can hold every value that SPEC allows, and each of its values can be read.

use crate::{
    model::ColumnType,
    policy::{Column, Table},
};

/// A column that exists.
pub(super) struct FoundColumn {
    pub(super) name: String,
    /// As PostgreSQL writes it: `character varying(50)`.
    pub(super) type_name: String,
    pub(super) is_required: bool,
    pub(super) has_default: bool,
}

/// Why the columns of a table do not fit, and what is different without harm.
pub(super) fn fits(table: Table, found: &[FoundColumn]) -> (Vec<String>, Vec<String>) {
    let (mut obstacles, mut remarks) = (Vec::new(), Vec::new());
    let (wanted, table) = (table.columns(), table.name());
    for wanted in wanted {
        let name = wanted.name;
        let Some(column) = found.iter().find(|column| column.name == name) else {
            match wanted.since {
                None => obstacles.push(format!("{table}.{name} is missing")),
                Some(_) => remarks.push(format!("{table}.{name} is missing and is created")),
            }
            continue;
        };
        if !holds(*wanted, &column.type_name) {
            obstacles.push(format!("{table}.{name} is {}, not {}", column.type_name, type_name(*wanted)));
        }
        match (wanted.is_required, column.is_required) {
            (true, false) => remarks.push(format!("{table}.{name} allows NULL; rows with NULL are left out of lists")),
            // The library never stores a time or a flag that is NULL.
            (false, true) if matches!(wanted.column_type, ColumnType::Timestamp | ColumnType::Boolean) => {}
            (false, true) => obstacles.push(format!("{table}.{name} does not allow NULL")),
            _ => {}
        }
    }
    for column in found.iter().filter(|column| !wanted.iter().any(|wanted| wanted.name == column.name)) {
        let name = &column.name;
        if column.is_required && !column.has_default {
            obstacles.push(format!("{table}.{name} is a further column that requires a value and has no default"));
        } else {
            remarks.push(format!("{table}.{name} is a further column, which the library leaves alone"));
        }
    }
    (obstacles, remarks)
}

/// Whether a column of the type holds every value of `column`.
fn holds(column: Column, found: &str) -> bool {
    let length = |text: &str| text.strip_prefix("character varying(")?.strip_suffix(')')?.parse::<u32>().ok();
    match column.column_type {
        ColumnType::Text => {
            matches!(found, "text" | "character varying")
                || column.max_chars.is_some_and(|most| length(found).is_some_and(|length| length >= most))
        }
        ColumnType::Integer => matches!(found, "integer" | "bigint"),
        _ => found == type_name(column),
    }
}

fn type_name(column: Column) -> String {
    let name = match (column.column_type, column.max_chars) {
        (ColumnType::Text, Some(most)) => return format!("character varying({most})"),
        (ColumnType::Text, None) => "text",
        (ColumnType::Uuid, _) => "uuid",
        (ColumnType::Texts, _) => "text[]",
        (ColumnType::Json, _) => "jsonb",
        (ColumnType::Boolean, _) => "boolean",
        (ColumnType::Timestamp, _) => "timestamp with time zone",
        (ColumnType::Integer, _) => "integer",
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_fits_when_it_holds_every_value() {
        for (table, name, good, bad) in [
            (Table::SpaceRegistrations, "fid", "bigint", "text"),
            (Table::CommunityDomains, "community_id", "character varying(80)", "character varying(40)"),
            (Table::Spaces, "name", "character varying", "character varying(9000)"),
            (Table::Spaces, "created_at", "timestamp with time zone", "timestamp without time zone"),
            (Table::Fidgets, "config", "jsonb", "json"),
        ] {
            let column = table.column(name).expect("a column");
            assert!(holds(column, good) && holds(column, &type_name(column)) && !holds(column, bad), "{name}");
        }
    }

    #[test]
    fn a_column_of_a_key_allows_no_null() {
        for table in Table::public() {
            let keys = table.columns().iter().filter(|column| column.is_key);
            assert!(keys.clone().count() == table.key().len() && keys.clone().all(|key| key.is_required), "{table:?}");
        }
    }
}
