//! The statements that erase a user from the change log.
//!
//! Invariant: they change images only. Keys and contexts stay, so that the feed can deliver the `DELETE` of the rows.

use crate::database::statement::Statement;

/// The statements of an engine for the user `$1`.
pub(in crate::database) struct Erasure {
    /// The id up to which every entry is committed: a later read finds no new entry with a smaller one.
    pub(in crate::database) head: Statement,
    /// The entry of the insert of the user's row: every entry of the user comes after it. 0 if the log does not have it.
    pub(in crate::database) began: Statement,
    /// The first `$4` entries of the user from `$2` to `$3`: the id, whether no row has the key, and the keys of the row before and
    /// after the entry.
    pub(in crate::database) find: Statement,
    /// Erases those of the entries with the ids `$2` whose rows are gone.
    pub(in crate::database) erase: Statement,
    /// Erases the entries with the ids `$2`.
    pub(in crate::database) erase_deleted: Statement,
    /// Erases those of the entries after `$2` whose rows are gone.
    pub(in crate::database) erase_rest: Statement,
    /// Lets whoever prunes count the whole log again: it has fewer bytes than were counted.
    pub(in crate::database) recount: Statement,
}
