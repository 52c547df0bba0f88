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
    /// The column, a list of texts, names an identity key that the caller has linked.
    CallerHoldsKey(&'static str),
    /// Some row of `table`, found by `key` equal to this row's `column`, passes.
    Related {
        column: &'static str,
        table: Table,
        key: &'static str,
        predicate: &'static Predicate,
    },
    AnyOf(&'static [Predicate]),
}

/// What a predicate's SQL is made with, for one engine and place.
#[derive(Clone, Copy)]
pub(crate) struct Spell<'a> {
    /// The SQL of the caller's id; NULL there is nobody.
    pub(crate) caller: &'a str,
    /// The SQL of whether the user (first) has linked one of the keys in a column (second).
    pub(crate) holds_key: fn(&str, &str) -> String,
}

impl Predicate {
    /// The condition on the rows of `table`.
    pub(crate) fn sql(&self, table: Table, spell: Spell<'_>) -> String {
        let mut sql = String::new();
        self.write(&mut sql, &quoted(table.name()), spell, 0);
        sql
    }

    fn write(&self, sql: &mut String, row: &str, spell: Spell<'_>, depth: usize) {
        // Writing to a String cannot fail.
        let _ = match self {
            Predicate::Everyone => write!(sql, "TRUE"),
            Predicate::Nobody => write!(sql, "FALSE"),
            Predicate::CallerIs(column) => write!(sql, "{row}.{} = {}", quoted(column), spell.caller),
            Predicate::IsTrue(column) => write!(sql, "{row}.{} IS TRUE", quoted(column)),
            Predicate::CallerHoldsKey(column) => {
                write!(sql, "{}", (spell.holds_key)(spell.caller, &format!("{row}.{}", quoted(column))))
            }
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
                predicate.write(sql, &alias, spell, depth + 1);
                write!(sql, ")")
            }
            Predicate::AnyOf(predicates) => {
                for (place, predicate) in predicates.iter().enumerate() {
                    let _ = write!(sql, "{}", if place == 0 { "(" } else { " OR " });
                    predicate.write(sql, row, spell, depth);
                }
                write!(sql, ")")
            }
        };
    }
}

/// A name as SQL has it: in quotes where it is not all lower case.
pub(crate) fn quoted(name: &str) -> String {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) { format!("\"{name}\"") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Action, rule, updatable};

    const SPELL: Spell<'static> =
        Spell { caller: "?9", holds_key: |caller, column| format!("holds({caller}, {column})") };

    #[test]
    fn a_rule_reads_as_sql() {
        assert_eq!(
            rule(Table::Spaces, Action::Select).sql(Table::Spaces, SPELL),
            "(spaces.owner_id = ?9 OR spaces.is_public IS TRUE)"
        );
        assert_eq!(
            rule(Table::SpaceRegistrations, Action::Insert).sql(Table::SpaceRegistrations, SPELL),
            "EXISTS (SELECT 1 FROM spaces AS policy_0 WHERE policy_0.id = \"spaceRegistrations\".\"spaceId\" \
             AND policy_0.owner_id = ?9)"
        );
    }

    #[test]
    fn only_the_service_writes_community_configs_but_for_the_navigation() {
        for action in [Action::Insert, Action::Delete] {
            assert_eq!(rule(Table::CommunityConfigs, action), &Predicate::Nobody);
        }
        let update = rule(Table::CommunityConfigs, Action::Update).sql(Table::CommunityConfigs, SPELL);
        assert_eq!(update, "holds(?9, community_configs.admin_identity_public_keys)");
        assert_eq!(updatable(Table::CommunityConfigs), Some(["navigation_config", "updated_at"].as_slice()));
    }
}
