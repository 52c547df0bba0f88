//! Which columns of another program's table fit those of SPEC 2.
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

/// The tables of SPEC 2. The rows of files are in a table of the library itself.
pub(super) fn tables() -> impl Iterator<Item = Table> {
    Table::ALL.into_iter().filter(|table| *table != Table::Files)
}

/// The columns that do not allow NULL.
pub(super) fn required(table: Table) -> &'static [&'static str] {
    match table {
        Table::CommunityConfigs => {
            &["id", "community_id", "brand_config", "assets_config", "community_config", "fidgets_config"]
        }
        Table::CommunityDomains => &["id", "community_id", "domain", "domain_type"],
        Table::SpaceRegistrations => &["spaceId", "spaceName", "spaceType"],
        Table::Users => &["id", "email"],
        Table::Spaces => &["id", "name"],
        Table::Fidgets => &["id", "type"],
        Table::Files => &[],
    }
}

/// Why the columns of a table do not fit, and what is different without harm.
pub(super) fn fits(table: Table, found: &[FoundColumn]) -> (Vec<String>, Vec<String>) {
    let (mut obstacles, mut remarks) = (Vec::new(), Vec::new());
    let (required, wanted, table) = (required(table), table.columns(), table.name());
    for wanted in wanted {
        let name = wanted.name;
        let Some(column) = found.iter().find(|column| column.name == name) else {
            obstacles.push(format!("{table}.{name} is missing"));
            continue;
        };
        if !holds(*wanted, &column.type_name) {
            obstacles.push(format!("{table}.{name} is {}, not {}", column.type_name, type_name(*wanted)));
        }
        match (required.contains(&name), column.is_required) {
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

/// Whether the column is text of at most 50 characters.
fn is_short(column: Column) -> bool {
    column.name == "community_id"
}

/// Whether a column of the type holds every value of `column`.
fn holds(column: Column, found: &str) -> bool {
    let length = |text: &str| text.strip_prefix("character varying(")?.strip_suffix(')')?.parse::<u32>().ok();
    match column.column_type {
        ColumnType::Text => {
            matches!(found, "text" | "character varying")
                || (is_short(column) && length(found).is_some_and(|length| length >= 50))
        }
        ColumnType::Integer => matches!(found, "integer" | "bigint"),
        _ => found == type_name(column),
    }
}

fn type_name(column: Column) -> &'static str {
    match column.column_type {
        ColumnType::Uuid => "uuid",
        ColumnType::Text if is_short(column) => "character varying(50)",
        ColumnType::Text => "text",
        ColumnType::Texts => "text[]",
        ColumnType::Json => "jsonb",
        ColumnType::Boolean => "boolean",
        ColumnType::Timestamp => "timestamp with time zone",
        ColumnType::Integer => "integer",
    }
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
            assert!(holds(column, good) && holds(column, type_name(column)) && !holds(column, bad), "{name}");
        }
    }

    #[test]
    fn the_required_columns_are_columns_of_their_tables() {
        for table in tables() {
            assert!(required(table).iter().all(|name| table.column(name).is_some()), "{}", table.name());
            assert!(table.key().iter().all(|name| required(table).contains(name)), "{}", table.name());
        }
    }
}
