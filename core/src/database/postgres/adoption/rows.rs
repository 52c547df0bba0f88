//! The rows of another program's tables that break a rule of SPEC 2.
//!
//! Invariant: rows are counted and named by their keys. They are never changed, and their other values are in no message.

use sqlx::PgConnection;

use super::{
    super::query::tuples,
    columns::tables,
    rules::{CHECKS, KEYS, REFERENCES},
};
use crate::{error::Result, model::ColumnType, policy::quoted};

/// Says which keys several rows of the tables `found` have: the library could not tell those rows apart.
pub(super) async fn repeated_keys(connection: &mut PgConnection, found: &[String]) -> Result<Vec<String>> {
    let mut obstacles = Vec::new();
    // Addresses are in no message. Those that differ in case or not at all are found by another query.
    let keys = KEYS.iter().filter(|(table, columns, _)| is_found(found, table) && *columns != "email");
    for (table, columns, _) in keys {
        let quoted: Vec<String> = columns.split(',').map(|column| format!("\"{column}\"")).collect();
        let is_set: Vec<String> = quoted.iter().map(|column| format!("{column} IS NOT NULL")).collect();
        let sql = format!(
            "SELECT concat_ws(' ', {list}) FROM public.{table} WHERE {} GROUP BY {list} HAVING count(*) > 1
             ORDER BY 1 LIMIT 5",
            is_set.join(" AND "),
            list = quoted.join(", ")
        );
        let rows: Vec<(String,)> = tuples(connection, sql, &[]).await?;
        let values: Vec<String> = rows.into_iter().map(|(values,)| values).collect();
        if !values.is_empty() {
            let columns = columns.replace(',', " and ");
            obstacles.push(format!("several rows of {table} have the same {columns}: {}", values.join(", ")));
        }
    }
    Ok(obstacles)
}

/// A rule that rows of a table break.
pub(super) struct BrokenRule {
    table: String,
    rule: String,
    rows: i64,
    /// The keys of a few of the rows.
    keys: String,
}

impl BrokenRule {
    /// The sentence of an adoption, which leaves the rows as they are.
    pub(super) fn remark(&self) -> String {
        let BrokenRule { table, rule, rows, keys } = self;
        format!("rows of {table} that break the rule {rule} stay as they are: {rows}, such as {keys}")
    }

    /// The sentence of a copy, whose target refuses the rows.
    pub(super) fn obstacle(&self) -> String {
        let BrokenRule { table, rule, rows, keys } = self;
        format!("rows of {table} break the rule {rule}: {rows}, such as {keys}")
    }
}

/// Finds the rules that rows of the tables `found` break.
pub(super) async fn broken_rows(connection: &mut PgConnection, found: &[String]) -> Result<Vec<BrokenRule>> {
    let mut all = Vec::new();
    for (table, condition, rule) in rules(found) {
        let key = tables().find(|known| quoted(known.name()) == table).map_or("id", |known| known.key()[0]);
        let sql = format!(
            "SELECT count(*), array_to_string((array_agg(\"{key}\"::text ORDER BY \"{key}\"::text))[1:5], ', ', 'NULL')
             FROM public.{table} WHERE {condition}"
        );
        let broken: Vec<(i64, Option<String>)> = tuples(connection, sql, &[]).await?;
        for (count, keys) in broken.into_iter().filter(|(count, _)| *count > 0) {
            let (table, rule) = (table.clone(), rule.clone());
            all.push(BrokenRule { table, rule, rows: count, keys: keys.unwrap_or_default() });
        }
    }
    Ok(all)
}

/// The rules of the tables `found`: table, condition of the rows that break it, and what messages call it.
fn rules(found: &[String]) -> Vec<(String, String, String)> {
    let mut rules = Vec::new();
    let mut rule = |table: &str, condition: String, rule: String| {
        if is_found(found, table) {
            rules.push((table.to_owned(), condition, rule));
        }
    };
    for (table, _, condition) in CHECKS {
        rule(table, format!("NOT ({condition})"), condition.to_owned());
    }
    let columns = tables().flat_map(|table| table.columns().iter().map(move |column| (table, column)));
    // A later migration adds the others.
    for (table, column) in columns.filter(|(_, column)| column.since.is_none()) {
        let (table, name) = (quoted(table.name()), column.name);
        if let Some(most) = column.max_chars {
            rule(&table, format!("char_length(\"{name}\") > {most}"), format!("{name} VARCHAR({most})"));
        }
        if column.column_type == ColumnType::Integer {
            rule(&table, format!("\"{name}\" NOT BETWEEN -2147483648 AND 2147483647"), format!("{name} INTEGER"));
        }
        if column.is_required {
            rule(&table, format!("\"{name}\" IS NULL"), format!("{name} NOT NULL"));
        }
    }
    for (table, column, target) in REFERENCES {
        let (target_table, target_column) = target.split_once(" (").unwrap_or((target, "id)"));
        let target_column = target_column.trim_end_matches(')');
        let is_missing = match is_found(found, target_table) {
            true => format!(
                " AND NOT EXISTS (SELECT 1 FROM public.{target_table} AS target
                    WHERE target.{target_column} = {table}.{column})"
            ),
            // The table is created empty.
            false => String::new(),
        };
        rule(table, format!("{column} IS NOT NULL{is_missing}"), format!("{column} REFERENCES {target}"));
    }
    rules
}

/// Whether a table, which may be in quotes, is one of `found`.
fn is_found(found: &[String], table: &str) -> bool {
    found.iter().any(|name| name == table.trim_matches('"'))
}
