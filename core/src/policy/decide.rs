//! Evaluates policies on rows in memory: for deleted rows, and for rows that only a change event carries.
//!
//! Invariant: the result equals that of the predicate's SQL on the same rows; a test compares both. As in SQL, a
//! comparison with a missing value is not true.

use std::borrow::Cow;

use serde_json::{Map, Value as Json};
use uuid::Uuid;

use super::{Predicate, Table};

/// A row as JSON: column name to value, ids as text.
pub(crate) type RowImage = Map<String, Json>;

/// Access to the rows that a policy relates a row to.
pub(crate) trait RelatedRows {
    /// The rows of `table` whose `column` holds `value`.
    fn related(&self, table: Table, column: &str, value: &str) -> Vec<Cow<'_, RowImage>>;
    /// Whether the user has linked the identity key.
    fn holds_key(&self, user: Uuid, key: &str) -> bool;
    /// Whether a space has the id, or a new space may have it.
    fn is_claimable(&self, id: &str) -> bool;
}

impl Predicate {
    /// Whether the predicate holds for the row; `user` is `None` for an anonymous caller.
    pub(crate) fn allows(&self, row: &RowImage, user: Option<Uuid>, rows: &dyn RelatedRows) -> bool {
        match self {
            Predicate::Everyone => true,
            Predicate::Nobody => false,
            Predicate::CallerIs(column) => {
                user.is_some_and(|user| text(row, column).is_some_and(|text| is_id(text, user)))
            }
            Predicate::IsTrue(column) | Predicate::IsTrueForPages(column) => {
                row.get(*column) == Some(&Json::Bool(true))
            }
            Predicate::CallerHoldsKey(column) => user.is_some_and(|user| {
                let keys = row.get(*column).and_then(Json::as_array).into_iter().flatten();
                keys.filter_map(Json::as_str).any(|key| rows.holds_key(user, key))
            }),
            Predicate::Related { column, table, key, predicate } => text(row, column).is_some_and(|value| {
                rows.related(*table, key, value).iter().any(|related| predicate.allows(related, user, rows))
            }),
            Predicate::IsNull(column) => row.get(*column).is_none_or(Json::is_null),
            Predicate::TextIs(column, constant) => text(row, column) == Some(constant),
            Predicate::TextIsNot(column, constant) => {
                text(row, column).is_some_and(|text| !text.eq_ignore_ascii_case(constant))
            }
            Predicate::CallerIsText(column) => {
                user.is_some_and(|user| text(row, column).is_some_and(|text| is_id(text, user)))
            }
            Predicate::CallerLinked(column) => {
                user.is_some_and(|user| text(row, column).is_some_and(|key| rows.holds_key(user, key)))
            }
            Predicate::IsClaimable(column) => text(row, column).is_some_and(|id| rows.is_claimable(id)),
            Predicate::AllOf(predicates) => predicates.iter().all(|predicate| predicate.allows(row, user, rows)),
            Predicate::AnyOf(predicates) => predicates.iter().any(|predicate| predicate.allows(row, user, rows)),
        }
    }
}

/// Whether `text` is the user's id.
pub(super) fn is_id(text: &str, user: Uuid) -> bool {
    text == user.hyphenated().encode_lower(&mut Uuid::encode_buffer())
}

fn text<'a>(row: &'a RowImage, column: &str) -> Option<&'a str> {
    row.get(column).and_then(Json::as_str)
}
