//! The predicates that policies consist of, and their SQL.
//!
//! Invariant: a predicate holds constants of this library only, so its SQL contains no text from outside. An anonymous
//! caller is NULL in the SQL and equals no row.

use std::fmt::Write;

use super::Table;

/// A condition on the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Predicate {
    /// Every row, for every caller.
    Everyone,
    /// No row, for any caller but the service.
    Nobody,
    /// The column holds the caller's id.
    CallerIs(&'static str),
    /// The column is true.
    IsTrue(&'static str),
    /// The column is true, in a form that PostgreSQL expects nearly every row to meet. For the plain form it knows the share
    /// of rows, and multiplies it with the share of a statement that tests the same column. A page of public rows then looks so
    /// short that the server sorts all of them.
    IsTrueForPages(&'static str),
    /// The column, a list of texts, contains an identity key that the caller has linked.
    CallerHoldsKey(&'static str),
    /// `predicate` holds for a row of `table` whose `key` equals this row's `column`.
    Related { column: &'static str, table: Table, key: &'static str, predicate: &'static Predicate },
    /// The column is NULL.
    IsNull(&'static str),
    /// The column holds the text.
    TextIs(&'static str, &'static str),
    /// The column holds another text, in whatever case of ASCII letters. (The text is in lower case.)
    TextIsNot(&'static str, &'static str),
    /// The column holds the caller's id as text.
    CallerIsText(&'static str),
    /// The column holds an identity key that the caller has linked.
    CallerLinked(&'static str),
    /// The column holds the id of a space that exists, or one that a new space may have: it is not registered, no file is in
    /// its folder, and no deleted space had it. (With the id of a space that exists, an insert fails by the key.)
    IsClaimable(&'static str),
    /// All of the predicates hold.
    AllOf(&'static [Predicate]),
    /// At least one of the predicates holds.
    AnyOf(&'static [Predicate]),
}

/// The engine's SQL that a predicate refers to.
#[derive(Clone, Copy)]
pub(crate) struct SqlContext<'a> {
    /// The caller's id; NULL for an anonymous caller.
    pub(crate) caller: &'a str,
    /// The condition that a user (first argument) has linked one of the keys in a column (second argument).
    pub(crate) holds_key: fn(&str, &str) -> String,
    /// The condition that a user (first argument) has linked the key in a column (second argument).
    pub(crate) linked: fn(&str, &str) -> String,
    /// The condition that a space has the id in a column, or that a new space may have it.
    pub(crate) claimable: fn(&str) -> String,
}

impl Predicate {
    /// The SQL condition on the rows of `table`.
    pub(crate) fn sql(&self, table: Table, context: SqlContext<'_>) -> String {
        self.sql_of_row(&quoted(table.name()), context)
    }

    /// The SQL condition on the rows that are called `row`.
    pub(crate) fn sql_of_row(&self, row: &str, context: SqlContext<'_>) -> String {
        let mut sql = String::new();
        self.write(&mut sql, row, context, 0);
        sql
    }

    fn write(&self, sql: &mut String, row: &str, context: SqlContext<'_>, depth: usize) {
        // Writing to a String cannot fail.
        let _ = match self {
            Predicate::Everyone => write!(sql, "TRUE"),
            Predicate::Nobody => write!(sql, "FALSE"),
            Predicate::CallerIs(column) => write!(sql, "{row}.{} = {}", quoted(column), context.caller),
            Predicate::IsTrue(column) => write!(sql, "{row}.{} IS TRUE", quoted(column)),
            Predicate::IsTrueForPages(column) => {
                write!(sql, "NULLIF({row}.{}, FALSE) IS NOT NULL", quoted(column))
            }
            Predicate::CallerHoldsKey(column) => {
                write!(sql, "{}", (context.holds_key)(context.caller, &format!("{row}.{}", quoted(column))))
            }
            Predicate::Related { column, table, key, predicate } => {
                // The alias keeps this table apart from the same table in the outer statement.
                let alias = format!("policy_{depth}");
                let table = quoted(table.name());
                let (key, column) = (format!("{alias}.{}", quoted(key)), format!("{row}.{}", quoted(column)));
                // The redundant conditions make PostgreSQL look the row up in an index. Without them it expects a row of a user
                // with many rows soon, whoever the user is, and reads the table from its start: all of it for a new owner among
                // few. And where it expects to ask for many rows, it reads all of the table into a hash table first.
                let _ = write!(
                    sql,
                    "EXISTS (SELECT 1 FROM {table} AS {alias} WHERE {key} = {column} AND {key} >= {column} \
                     AND {key} <= {column} AND "
                );
                predicate.write(sql, &alias, context, depth + 1);
                write!(sql, ")")
            }
            Predicate::IsNull(column) => write!(sql, "{row}.{} IS NULL", quoted(column)),
            Predicate::TextIs(column, text) => write!(sql, "{row}.{} = '{text}'", quoted(column)),
            Predicate::TextIsNot(column, text) => write!(sql, "lower({row}.{}) <> '{text}'", quoted(column)),
            Predicate::CallerIsText(column) => {
                write!(sql, "{row}.{} = CAST({} AS TEXT)", quoted(column), context.caller)
            }
            Predicate::CallerLinked(column) => {
                write!(sql, "{}", (context.linked)(context.caller, &format!("{row}.{}", quoted(column))))
            }
            Predicate::IsClaimable(column) => {
                write!(sql, "{}", (context.claimable)(&format!("{row}.{}", quoted(column))))
            }
            Predicate::AllOf(predicates) | Predicate::AnyOf(predicates) => {
                let operator = if matches!(self, Predicate::AllOf(_)) { " AND " } else { " OR " };
                for (index, predicate) in predicates.iter().enumerate() {
                    let _ = write!(sql, "{}", if index == 0 { "(" } else { operator });
                    predicate.write(sql, row, context, depth);
                }
                write!(sql, ")")
            }
        };
    }
}

/// A name in SQL: quoted if it contains upper case.
pub(crate) fn quoted(name: &str) -> String {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) { format!("\"{name}\"") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Action, rule, updatable};

    const CONTEXT: SqlContext<'static> = SqlContext {
        caller: "?9",
        holds_key: |caller, column| format!("holds({caller}, {column})"),
        linked: |caller, column| format!("linked({caller}, {column})"),
        claimable: |column| format!("claimable({column})"),
    };

    #[test]
    fn a_rule_renders_as_sql() {
        assert_eq!(
            rule(Table::Spaces, Action::Select).sql(Table::Spaces, CONTEXT),
            "(spaces.owner_id = ?9 OR NULLIF(spaces.is_public, FALSE) IS NOT NULL)"
        );
        assert_eq!(
            rule(Table::Spaces, Action::Insert).sql(Table::Spaces, CONTEXT),
            "(spaces.owner_id = ?9 AND claimable(spaces.id))"
        );
        assert_eq!(
            rule(Table::SpaceRegistrations, Action::Insert).sql(Table::SpaceRegistrations, CONTEXT),
            "(EXISTS (SELECT 1 FROM spaces AS policy_0 WHERE policy_0.id = \"spaceRegistrations\".\"spaceId\" \
             AND policy_0.id >= \"spaceRegistrations\".\"spaceId\" AND policy_0.id <= \"spaceRegistrations\".\"spaceId\" \
             AND policy_0.owner_id = ?9) AND \"spaceRegistrations\".fid IS NULL \
             AND \"spaceRegistrations\".signature IS NULL \
             AND (\"spaceRegistrations\".\"identityPublicKey\" IS NULL \
             OR linked(?9, \"spaceRegistrations\".\"identityPublicKey\")))"
        );
    }

    #[test]
    fn callers_other_than_the_service_do_not_change_the_id_of_a_space() {
        let columns = updatable(Table::Spaces).expect("a list");
        assert!(columns.len() + 1 == Table::Spaces.columns().len() && !columns.contains(&"id"), "{columns:?}");
    }

    #[test]
    fn callers_other_than_the_service_update_only_the_navigation_of_community_configs() {
        for action in [Action::Insert, Action::Delete] {
            assert_eq!(rule(Table::CommunityConfigs, action), &Predicate::Nobody);
        }
        let update = rule(Table::CommunityConfigs, Action::Update).sql(Table::CommunityConfigs, CONTEXT);
        let is_published = "community_configs.is_published IS TRUE";
        assert_eq!(update, format!("({is_published} AND holds(?9, community_configs.admin_identity_public_keys))"));
        assert_eq!(updatable(Table::CommunityConfigs), Some(vec!["navigation_config", "updated_at"]));
    }
}
