//! The statements that erase a user from the change log.
//!
//! Invariant: they change images only. Keys and contexts stay, so that the feed can deliver the `DELETE` of the rows.

use crate::database::statement::Statement;

/// The statements of an engine for the user `$1`.
pub(in crate::database) struct Erasure {
    /// The entry of the insert of the user's row: every entry of the user comes after it. 0 if the log does not have it.
    pub(in crate::database) began: Statement,
    /// The ids of the next `$3` entries of the user from `$2` on.
    pub(in crate::database) next: Statement,
    /// Erases the entries with the ids `$2`.
    pub(in crate::database) erase: Statement,
    /// Erases the entries from `$2` on.
    pub(in crate::database) erase_rest: Statement,
    /// Lets whoever prunes count the whole log again: it has fewer bytes than were counted.
    pub(in crate::database) recount: Statement,
}
