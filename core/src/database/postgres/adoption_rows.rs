//! The rows of another program's tables that break a rule of SPEC 2.
//!
//! Invariant: rows are counted and named by their keys. They are never changed, and their other values are in no message.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use super::{
    adoption_columns::{required, tables},
    adoption_rules::{CHECKS, KEYS, REFERENCES},
    errors::translate,
};
use crate::{error::Result, policy::quoted};

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
        let rows = connection.fetch_all(AssertSqlSafe(sql)).await.map_err(translate)?;
        let values = rows.iter().map(|row| row.try_get::<String, _>(0)).collect::<Result<Vec<_>, _>>();
        let values = values.map_err(translate)?;
        if !values.is_empty() {
            let columns = columns.replace(',', " and ");
            obstacles.push(format!("several rows of {table} have the same {columns}: {}", values.join(", ")));
        }
    }
    Ok(obstacles)
}

/// Says which rows of the tables `found` break a rule. They stay.
pub(super) async fn broken_rows(connection: &mut PgConnection, found: &[String]) -> Result<Vec<String>> {
    let mut remarks = Vec::new();
    for (table, condition, rule) in rules(found) {
        let key = tables().find(|known| quoted(known.name()) == table).map_or("id", |known| known.key()[0]);
        let sql = format!(
            "SELECT count(*), array_to_string((array_agg(\"{key}\"::text ORDER BY \"{key}\"::text))[1:5], ', ', 'NULL')
             FROM public.{table} WHERE {condition}"
        );
        let row = connection.fetch_one(AssertSqlSafe(sql)).await.map_err(translate)?;
        let (count, keys): (i64, Option<String>) =
            (row.try_get(0).map_err(translate)?, row.try_get(1).map_err(translate)?);
        if count > 0 {
            let keys = keys.unwrap_or_default();
            remarks
                .push(format!("rows of {table} that break the rule {rule} stay as they are: {count}, such as {keys}"));
        }
    }
    Ok(remarks)
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
    for table in ["community_configs", "community_domains"] {
        rule(table, "char_length(community_id) > 50".to_owned(), "community_id VARCHAR(50)".to_owned());
    }
    let registrations = "\"spaceRegistrations\"";
    rule(registrations, "fid NOT BETWEEN -2147483648 AND 2147483647".to_owned(), "fid INTEGER".to_owned());
    for table in tables() {
        for column in required(table) {
            rule(&quoted(table.name()), format!("\"{column}\" IS NULL"), format!("{column} NOT NULL"));
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
