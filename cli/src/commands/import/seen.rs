//! The unique values of the rows that were read so far.
//!
//! Invariant: a value takes 16 bytes and the room of a hash table, whatever its length.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use serde_json::{Map, Value};
use townsquare::{
    Uuid,
    rows::{RowTable, ValueKind},
};

/// Digests of table, columns and values.
#[derive(Debug, Default)]
pub(super) struct Seen(HashSet<u128>);

impl Seen {
    /// Adds the unique values of a row. Returns the columns of a value that an earlier row has.
    pub(super) fn add(&mut self, table: &RowTable, row: &Map<String, Value>) -> Option<String> {
        let mut repeated = None;
        for places in &table.unique {
            let columns = places.iter().map(|place| &table.columns[*place]);
            let values = columns.clone().map(|column| {
                let text = row.get(column.name)?.as_str()?;
                // A UUID has several spellings, and so has an address.
                let id = Uuid::try_parse(text).ok().filter(|_| column.kind == ValueKind::Uuid);
                let other = || if column.name == "email" { text.to_lowercase() } else { text.to_owned() };
                Some(id.map_or_else(other, |id| id.to_string()))
            });
            // NULL equals nothing, and what is no text is refused later.
            let Some(values) = values.collect::<Option<Vec<String>>>() else { continue };
            let names: Vec<_> = columns.map(|column| column.name).collect();
            if !self.0.insert(digest(table.name, &names, &values)) {
                repeated.get_or_insert_with(|| names.join(" and "));
            }
        }
        repeated
    }

    /// Whether a row of a table has the value in a column that is unique by itself.
    pub(super) fn has(&self, table: &RowTable, value: &str) -> bool {
        let single = table.unique.iter().filter(|places| places.len() == 1);
        let mut names = single.map(|places| table.columns[places[0]].name);
        names.any(|name| self.0.contains(&digest(table.name, &[name], &[value.to_owned()])))
    }
}

fn digest(table: &str, columns: &[&str], values: &[String]) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, table, columns, values).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
