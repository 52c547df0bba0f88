//! Policies decided on rows at hand, without a database: for rows that are gone, or that only a change carries.
//!
//! Invariant: the answer is the one that the predicate's SQL gives on the same rows; a test holds them together. Like SQL's,
//! a comparison with a value that is missing is not true.

use serde_json::{Map, Value as Json};
use uuid::Uuid;

use super::{Predicate, Table};

/// A row as JSON: column to value, ids as text.
pub(crate) type Image = Map<String, Json>;

/// The rows around the one that is decided on.
pub(crate) trait Surroundings {
    /// The rows of `table` whose `column` holds `value`.
    fn related(&self, table: Table, column: &str, value: &str) -> Vec<Image>;
    /// Whether a user has linked an identity key.
    fn holds_key(&self, user: Uuid, key: &str) -> bool;
}

impl Predicate {
    /// Whether a row passes for a user, or for nobody.
    pub(crate) fn admits(&self, row: &Image, user: Option<Uuid>, around: &dyn Surroundings) -> bool {
        match self {
            Predicate::Everyone => true,
            Predicate::Nobody => false,
            Predicate::CallerIs(column) => user.is_some_and(|user| text(row, column) == Some(&user.to_string())),
            Predicate::IsTrue(column) => row.get(*column) == Some(&Json::Bool(true)),
            Predicate::CallerHoldsKey(column) => user.is_some_and(|user| {
                let keys = row.get(*column).and_then(Json::as_array).into_iter().flatten();
                keys.filter_map(Json::as_str).any(|key| around.holds_key(user, key))
            }),
            Predicate::Related { column, table, key, predicate } => text(row, column).is_some_and(|value| {
                around.related(*table, key, value).iter().any(|related| predicate.admits(related, user, around))
            }),
            Predicate::AnyOf(predicates) => predicates.iter().any(|predicate| predicate.admits(row, user, around)),
        }
    }
}

fn text<'a>(row: &'a Image, column: &str) -> Option<&'a str> {
    row.get(column).and_then(Json::as_str)
}
