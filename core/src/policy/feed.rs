//! Who may see a row in the change feed (DESIGN 5).
//!
//! Invariant: a row is judged with its *context*, what the policy needs besides the row, as both were when the statement
//! ran. So a later change of a space does not change who sees what happened to its fidgets and files before.
//!
//! | table | context |
//! |---|---|
//! | fidgets | `owner_id` and `is_public` of the space; none if there is no such space |
//! | files | `access`, `first_segment` and `space_id` of the file; `holder`: the user who has linked the key `first_segment`, or null; `owner_id` and `is_public` of the space, or null |
//! | others | none |

use std::borrow::Cow;

use serde_json::Value as Json;
use uuid::Uuid;

use super::{
    Caller, Predicate, RowImage, Table,
    decide::{RelatedRows, is_id},
    listed,
};

/// Whether `caller` may see a row of the feed. The rule of lists holds, except that a user in `users` is shown to that
/// user alone.
pub(crate) fn may_see(table: Table, caller: Caller, row: &RowImage, context: Option<&RowImage>) -> bool {
    if caller == Caller::Service {
        return true;
    }
    let rule = match table {
        Table::Users => &Predicate::CallerIs("id"),
        _ => listed(table),
    };
    let row = match table {
        // The policy reads columns that `FileInfo` does not have.
        Table::Files => context,
        _ => Some(row),
    };
    row.is_some_and(|row| rule.allows(row, caller.id(), &Context(context)))
}

/// The rows that a row's context holds.
struct Context<'a>(Option<&'a RowImage>);

impl RelatedRows for Context<'_> {
    fn related(&self, table: Table, _column: &str, _value: &str) -> Vec<Cow<'_, RowImage>> {
        // The context of a fidget is its space. The context of a file has the columns of the space that the policy reads.
        if table == Table::Spaces { self.0.map(Cow::Borrowed).into_iter().collect() } else { Vec::new() }
    }

    fn holds_key(&self, user: Uuid, _key: &str) -> bool {
        let holder = self.0.and_then(|context| context.get("holder")).and_then(Json::as_str);
        holder.is_some_and(|holder| is_id(holder, user))
    }

    // Only an insert policy asks.
    fn is_claimable(&self, _id: &str) -> bool {
        false
    }
}
