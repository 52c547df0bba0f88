//! The rows of another program's tables that break a rule of SPEC 2.
//!
//! Invariant: rows are counted and named by their keys. They are never changed, and their other values are in no message.

use sqlx::PgConnection;

use super::{
    super::query::tuples,
    rules::{CHECKS, keys},
};
use crate::{
    error::Result,
    model::ColumnType,
    policy::{EMAIL, REFERENCES, Table, quoted},
};

/// Says which keys several rows of the tables `found` have: the library could not tell those rows apart.
pub(super) async fn repeated_keys(connection: &mut PgConnection, found: &[String]) -> Result<Vec<String>> {
    let mut obstacles = Vec::new();
    // Addresses are in no message. Those that differ in case or not at all are found by another query.
    for (table, columns) in keys().filter(|(table, columns)| is_found(found, *table) && *columns != [EMAIL]) {
        let table = quoted(table.name());
        let quoted: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
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
            let columns = columns.join(" and ");
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
        let (key, table) = (quoted(table.key()[0]), quoted(table.name()));
        let sql = format!(
            "SELECT count(*), array_to_string((array_agg({key}::text ORDER BY {key}::text))[1:5], ', ', 'NULL')
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
fn rules(found: &[String]) -> Vec<(Table, String, String)> {
    let mut rules = Vec::new();
    let mut rule = |table: Table, condition: String, rule: String| {
        if is_found(found, table) {
            rules.push((table, condition, rule));
        }
    };
    for (table, _, condition) in CHECKS {
        rule(table, format!("NOT ({condition})"), condition.to_owned());
    }
    let columns = Table::public().flat_map(|table| table.columns().iter().map(move |column| (table, column)));
    // A later migration adds the others.
    for (table, column) in columns.filter(|(_, column)| column.since.is_none()) {
        let (name, in_sql) = (column.name, quoted(column.name));
        if let Some(most) = column.max_chars {
            rule(table, format!("char_length({in_sql}) > {most}"), format!("{name} VARCHAR({most})"));
        }
        if column.column_type == ColumnType::Integer {
            rule(table, format!("{in_sql} NOT BETWEEN -2147483648 AND 2147483647"), format!("{name} INTEGER"));
        }
        if column.is_required {
            rule(table, format!("{in_sql} IS NULL"), format!("{name} NOT NULL"));
        }
    }
    for (table, column, target, target_column) in REFERENCES {
        let (name, target_name) = (quoted(table.name()), quoted(target.name()));
        let is_missing = match is_found(found, target) {
            true => format!(
                " AND NOT EXISTS (SELECT 1 FROM public.{target_name} AS target
                    WHERE target.{target_column} = {name}.{column})"
            ),
            // The table is created empty.
            false => String::new(),
        };
        let rule_name = format!("{column} REFERENCES {target_name} ({target_column})");
        rule(table, format!("{column} IS NOT NULL{is_missing}"), rule_name);
    }
    rules
}

fn is_found(found: &[String], table: Table) -> bool {
    found.iter().any(|name| name == table.name())
}
