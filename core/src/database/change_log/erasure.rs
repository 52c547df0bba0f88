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

/// What differs between the engines in the statements.
pub(in crate::database) struct ErasureSql {
    pub(in crate::database) head: &'static str,
    /// The columns with the images of the row before and after an entry.
    pub(in crate::database) old: &'static str,
    pub(in crate::database) new: &'static str,
    /// A cheap condition that each entry of the user fulfils.
    pub(in crate::database) may_be_of_user: &'static str,
    /// Renders a text as the id of a row.
    pub(in crate::database) id: fn(&str) -> String,
    /// Renders an image without the columns that are erased.
    pub(in crate::database) erased: fn(&str) -> String,
    /// Whether the id of an entry is one of `$2`.
    pub(in crate::database) is_listed: &'static str,
    pub(in crate::database) recount: &'static str,
}

impl Erasure {
    pub(in crate::database) fn new(sql: &ErasureSql) -> Erasure {
        let ErasureSql { old, new, may_be_of_user, is_listed, .. } = sql;
        // An entry holds something of the user if it is about the user's row, or about a row that the user owned. No column of a row
        // has the name `(erased)`.
        let is_of_user = format!(
            "entry.kind IN ('insert', 'update', 'delete', 'visibility') AND {may_be_of_user} AND CASE entry.table_name
                WHEN 'users' THEN CAST($1 AS TEXT) IN ({old} ->> 'id', {new} ->> 'id')
                WHEN 'spaces' THEN CAST($1 AS TEXT) IN ({old} ->> 'owner_id', {new} ->> 'owner_id')
                WHEN 'fidgets' THEN CAST($1 AS TEXT) IN (entry.old_context ->> 'owner_id', entry.new_context ->> 'owner_id')
                WHEN 'files' THEN CAST($1 AS TEXT) IN ({old} ->> 'owner_id', {new} ->> 'owner_id',
                    entry.old_context ->> 'first_segment', entry.new_context ->> 'first_segment',
                    entry.old_context ->> 'holder', entry.new_context ->> 'holder')
             END AND COALESCE({new}, {old}) -> '(erased)' IS NULL"
        );
        // Under a policy PostgreSQL uses no condition with COALESCE for an index, because it does not count COALESCE as leakproof.
        let value = |column: &str| format!("((CASE WHEN {new} IS NULL THEN {old} ELSE {new} END) ->> '{column}')");
        // With OFFSET, PostgreSQL looks each row up in an index: it could else read all of a table into a hash table first.
        let has_no_row = |table: &str| {
            let id = (sql.id)(&value("id"));
            format!(
                "WHEN '{table}' THEN NOT EXISTS (SELECT 1 FROM {table} AS held WHERE held.id = {id} LIMIT 1 OFFSET 0)"
            )
        };
        let is_gone = format!(
            "CASE entry.table_name {} {} {} WHEN 'files' THEN NOT EXISTS (
                SELECT 1 FROM townsquare.files AS held WHERE held.bucket = {} AND held.path = {} LIMIT 1 OFFSET 0) END",
            has_no_row("users"),
            has_no_row("spaces"),
            has_no_row("fidgets"),
            value("bucket"),
            value("path")
        );
        let key = |image: &str| {
            format!(
                "CASE entry.table_name WHEN 'files' THEN ({image} ->> 'bucket') || '/' || ({image} ->> 'path')
                 ELSE entry.table_name || '/' || ({image} ->> 'id') END"
            )
        };
        let erase = |condition: &str| {
            Statement::made(format!(
                "UPDATE townsquare.changes AS entry SET {} = {}, {} = {} WHERE {condition} AND {is_of_user}",
                old.trim_start_matches("entry."),
                (sql.erased)(old),
                new.trim_start_matches("entry."),
                (sql.erased)(new)
            ))
        };
        Erasure {
            head: Statement::new(sql.head),
            began: Statement::made(format!(
                "SELECT COALESCE(max(entry.id), 0) FROM townsquare.changes AS entry
                 WHERE entry.table_name = 'users' AND entry.kind = 'insert' AND {new} ->> 'id' = CAST($1 AS TEXT)"
            )),
            find: Statement::made(format!(
                "SELECT entry.id, {is_gone}, {}, {} FROM townsquare.changes AS entry
                 WHERE entry.id >= $2 AND entry.id <= $3 AND {is_of_user} ORDER BY entry.id LIMIT $4",
                key(old),
                key(new)
            )),
            erase: erase(&format!("{is_listed} AND {is_gone}")),
            erase_deleted: erase(is_listed),
            erase_rest: erase(&format!("entry.id > $2 AND {is_gone}")),
            recount: Statement::new(sql.recount),
        }
    }
}
