//! The small language that policies are written in, and its SQL.
//!
//! Invariant: a predicate is a closed value without text from outside, so its SQL cannot be injected into; a caller
//! that is nobody is NULL there, and equals no row.

use std::fmt::Write;

use super::Table;

/// Which rows of a table pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predicate {
    Everyone,
    Nobody,
    /// The column holds the caller's id.
    CallerIs(&'static str),
    /// The column is true.
    IsTrue(&'static str),
    /// Some row of `table`, found by `key` equal to this row's `column`, passes.
    Related {
        column: &'static str,
        table: Table,
        key: &'static str,
        predicate: &'static Predicate,
    },
    AnyOf(&'static [Predicate]),
}

impl Predicate {
    /// The condition on the rows of `table`, where `caller` is the SQL of the caller's id.
    pub(crate) fn sql(&self, table: Table, caller: &str) -> String {
        let mut sql = String::new();
        self.write(&mut sql, &quoted(table.name()), caller, 0);
        sql
    }

    fn write(&self, sql: &mut String, row: &str, caller: &str, depth: usize) {
        // Writing to a String cannot fail.
        let _ = match self {
            Predicate::Everyone => write!(sql, "TRUE"),
            Predicate::Nobody => write!(sql, "FALSE"),
            Predicate::CallerIs(column) => write!(sql, "{row}.{} = {caller}", quoted(column)),
            Predicate::IsTrue(column) => write!(sql, "{row}.{} IS TRUE", quoted(column)),
            Predicate::Related { column, table, key, predicate } => {
                // An alias of its own: the outer statement may name the same table.
                let alias = format!("policy_{depth}");
                let _ = write!(
                    sql,
                    "EXISTS (SELECT 1 FROM {} AS {alias} WHERE {alias}.{} = {row}.{} AND ",
                    quoted(table.name()),
                    quoted(key),
                    quoted(column)
                );
                predicate.write(sql, &alias, caller, depth + 1);
                write!(sql, ")")
            }
            Predicate::AnyOf(predicates) => {
                for (place, predicate) in predicates.iter().enumerate() {
                    let _ = write!(sql, "{}", if place == 0 { "(" } else { " OR " });
                    predicate.write(sql, row, caller, depth);
                }
                write!(sql, ")")
            }
        };
    }
}

/// A name as SQL has it: in quotes where it is not all lower case.
fn quoted(name: &str) -> String {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) { format!("\"{name}\"") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Action, rule};

    #[test]
    fn a_rule_reads_as_sql() {
        assert_eq!(
            rule(Table::Spaces, Action::Select).sql(Table::Spaces, "?9"),
            "(spaces.owner_id = ?9 OR spaces.is_public IS TRUE)"
        );
        assert_eq!(
            rule(Table::SpaceRegistrations, Action::Insert).sql(Table::SpaceRegistrations, "?9"),
            "EXISTS (SELECT 1 FROM spaces AS policy_0 WHERE policy_0.id = \"spaceRegistrations\".\"spaceId\" \
             AND policy_0.owner_id = ?9)"
        );
    }

    #[test]
    fn only_the_service_writes_community_configs() {
        for action in [Action::Insert, Action::Update, Action::Delete] {
            assert_eq!(rule(Table::CommunityConfigs, action), &Predicate::Nobody);
        }
    }
}
