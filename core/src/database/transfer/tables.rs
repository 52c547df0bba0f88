//! The tables that a move copies: names, columns, keys, and the statements that read and write their rows.
//!
//! Invariant: [`tables`] has every table of the library, with every column, except those that the tests below name with a reason.
//! The tests compare both lists with the catalog of a database.

use std::sync::LazyLock;

use crate::{
    database::statement::Statement,
    model::ColumnType::{self, Boolean, Integer, Json, Text, Timestamp, Uuid},
    policy::{Table, quoted},
};

/// The rows of a page.
pub(super) const PAGE: i64 = 256;

/// The rows that one statement writes. A page ends with statements for one row.
pub(super) const BATCH: usize = 32;

/// The keys that one statement looks for: those of a page.
pub(super) const LOOKUP: usize = 256;

/// The table of the files. The moved row of a file says whether the target keeps the bytes in the database.
pub(crate) const FILES: &str = "files";

/// The table of the ids of deleted spaces, which a trigger of `spaces` writes.
const FORMER_SPACES: &str = "former_spaces";

/// The columns of [`FILES`] that say where the bytes are. The target has other values in them than the source.
pub(super) const PLACE_OF_FILE: [&str; 2] = ["digest", "is_inline"];

/// A table that a move copies.
pub(crate) struct TransferTable {
    /// The name without the schema or the prefix of the library's own tables.
    pub(crate) name: &'static str,
    /// The name in the text of a statement.
    pub(super) in_template: String,
    /// Its place in [`tables`], which the first column of a page's row has.
    pub(super) index: usize,
    pub(super) columns: Vec<(&'static str, ColumnType)>,
    /// The columns of the primary key.
    pub(super) key: Vec<usize>,
    /// What the rows are about: it decides whether a move copies them.
    pub(super) contents: Contents,
    /// `$1` is the limit.
    pub(super) first: Statement,
    /// `$1` is the limit; the key of the last row of the page before follows.
    pub(super) after: Statement,
    /// The row with a key, as in a page.
    pub(super) one: Statement,
    /// The rows with [`LOOKUP`] keys, as in a page; fewer if they take too much memory.
    pub(super) many: Statement,
    pub(super) count: Statement,
    /// Writes one row, or replaces the row with its key.
    pub(super) put_one: Statement,
    /// Does what `put_one` does, for [`BATCH`] rows.
    pub(super) put_batch: Statement,
    /// Deletes the row with a key.
    pub(super) delete: Statement,
    pub(super) delete_all: Statement,
}

/// What the rows of a table are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contents {
    /// The data of the users. A target with a row is not empty.
    Users,
    /// The sessions of the users, which a move can leave behind.
    Sessions,
    /// Any client writes such rows when it opens. A move replaces those of the target.
    Client,
}

/// A table of the library itself: its name, what its rows are about, how many of its columns are the key, and its columns, the key
/// first.
type OwnTable = (&'static str, Contents, usize, &'static [(&'static str, ColumnType)]);

/// The tables of the library itself. A row comes after the rows that it references.
const OWN: [OwnTable; 14] = [
    (
        "credentials",
        Contents::Users,
        1,
        &[("user_id", Uuid), ("password_hash", Text), ("updated_at", Timestamp), ("url_generation", Integer)],
    ),
    (
        "sessions",
        Contents::Sessions,
        1,
        &[
            ("access_hash", Text),
            ("id", Uuid),
            ("user_id", Uuid),
            ("refresh_hash", Text),
            ("created_at", Timestamp),
            ("access_expires_at", Timestamp),
            ("refresh_expires_at", Timestamp),
        ],
    ),
    (
        "spent_tokens",
        Contents::Sessions,
        1,
        &[("refresh_hash", Text), ("session_id", Uuid), ("spent_at", Timestamp), ("nonce", Text)],
    ),
    (
        "failures",
        Contents::Users,
        1,
        &[("key_hash", Text), ("failures", Integer), ("decayed_at", Timestamp), ("last_at", Timestamp)],
    ),
    ("identities", Contents::Users, 1, &[("public_key", Text), ("user_id", Uuid), ("linked_at", Timestamp)]),
    ("verified_emails", Contents::Users, 1, &[("user_id", Uuid), ("email", Text), ("verified_at", Timestamp)]),
    (
        "mailed_tokens",
        Contents::Users,
        1,
        &[("token_hash", Text), ("purpose", Text), ("user_id", Uuid), ("email", Text), ("expires_at", Timestamp)],
    ),
    ("known_clients", Contents::Users, 1, &[("key_hash", Text), ("user_id", Uuid), ("last_at", Timestamp)]),
    ("buckets", Contents::Client, 1, &[("name", Text), ("access", Text)]),
    (FORMER_SPACES, Contents::Users, 1, &[("id", Uuid)]),
    (
        "catalog",
        Contents::Client,
        1,
        &[("source", Text), ("generation", Text), ("parts", Integer), ("fetched_at", Timestamp), ("header", Text)],
    ),
    (
        "catalog_parts",
        Contents::Client,
        2,
        &[("generation", Text), ("part", Integer), ("source", Text), ("records", Text), ("written_at", Timestamp)],
    ),
    (
        "catalog_lists",
        Contents::Client,
        2,
        &[
            ("source", Text),
            ("list", Text),
            ("fetched_at", Timestamp),
            ("content", Text),
            ("failures", Integer),
            ("retry_at", Timestamp),
            ("error", Text),
        ],
    ),
    (
        FILES,
        Contents::Users,
        2,
        &[
            ("bucket", Text),
            ("path", Text),
            ("access", Text),
            ("space_id", Uuid),
            ("first_segment", Text),
            ("owner_id", Uuid),
            ("size", Integer),
            ("content_type", Text),
            ("cache_control", Integer),
            ("etag", Text),
            ("metadata", Json),
            ("digest", Text),
            ("is_inline", Boolean),
            ("updated_at", Timestamp),
        ],
    ),
];

/// Every table that a move copies, in an order in which a row comes after the rows that it references.
pub(crate) fn tables() -> &'static [TransferTable] {
    static TABLES: LazyLock<Vec<TransferTable>> = LazyLock::new(|| {
        let records = Table::public().map(|table| {
            let columns = table.columns();
            let key = (0..columns.len()).filter(|index| columns[*index].is_key).collect();
            let columns = columns.iter().map(|column| (column.name, column.column_type)).collect();
            (table.name(), quoted(table.name()), Contents::Users, columns, key)
        });
        let own = OWN.map(|(name, contents, key, columns)| {
            (name, format!("townsquare.{name}"), contents, columns.to_vec(), (0..key).collect())
        });
        let tables = records.chain(own).enumerate();
        tables
            .map(|(index, (name, in_template, contents, columns, key))| {
                TransferTable::new(index, name, &in_template, contents, columns, key)
            })
            .collect()
    });
    &TABLES
}

/// The tables `of` a move, which are in the order of [`tables`], in an order in which no row is removed before the rows that refer to it. A space that
/// is removed leaves its id in [`FORMER_SPACES`], so that table is the last one.
pub(crate) fn in_order_of_removal(of: &[&'static TransferTable]) -> Vec<&'static TransferTable> {
    let (ids_of_deleted, others): (Vec<_>, Vec<_>) = of.iter().rev().partition(|table| table.name == FORMER_SPACES);
    others.into_iter().chain(ids_of_deleted).collect()
}

/// `count` parameters of a statement from the number `first` on.
pub(super) fn parameters(first: usize, count: usize) -> String {
    (first..first + count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

/// The statement that inserts `rows` rows. `columns` are quoted names.
pub(super) fn insert(table: &str, columns: &[String], rows: usize) -> String {
    let row = |row: usize| format!("({})", parameters(row * columns.len() + 1, columns.len()));
    let rows: Vec<_> = (0..rows).map(row).collect();
    format!("INSERT INTO {table} ({}) VALUES {}", columns.join(", "), rows.join(", "))
}

impl TransferTable {
    fn new(
        index: usize,
        name: &'static str,
        table: &str,
        contents: Contents,
        columns: Vec<(&'static str, ColumnType)>,
        key: Vec<usize>,
    ) -> TransferTable {
        let names: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
        let key_names: Vec<&str> = key.iter().map(|column| names[*column].as_str()).collect();
        let (all, key_list) = (names.join(", "), key_names.join(", "));
        // The alias is for the bytes of files alone.
        let content = match name {
            FILES => {
                ", CASE WHEN files.is_inline THEN (SELECT contents.content FROM townsquare.file_contents AS contents
                    WHERE contents.bucket = files.bucket AND contents.path = files.path) END"
            }
            _ => "",
        };
        let source = if name == FILES { format!("{table} AS files") } else { table.to_owned() };
        let page = |condition: &str| {
            Statement::made(format!(
                "SELECT {index}, {all}{content} FROM {source} {condition} ORDER BY {key_list} LIMIT $1"
            ))
            .ending_early()
        };
        let put = |rows: usize| {
            let insert = insert(table, &names, rows);
            let others = (0..names.len()).filter(|column| !key.contains(column));
            let assigned: Vec<_> = others.map(|column| format!("{0} = excluded.{0}", names[column])).collect();
            let action =
                if assigned.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", assigned.join(", ")) };
            Statement::made(format!("{insert} ON CONFLICT ({key_list}) DO {action}"))
        };
        let of_key = format!("({key_list}) = ({})", parameters(1, key.len()));
        // SQLite compares rows with a list of rows only if the list is a query.
        let of_keys = || match *key_names.as_slice() {
            [name] => format!("{name} IN ({})", parameters(1, LOOKUP)),
            _ => {
                let of_one = |number: usize| {
                    let parts = (1..).zip(&key_names).map(|(part, name)| {
                        let parameter = number * key_names.len() + part;
                        format!("{name} = ${parameter}")
                    });
                    format!("({})", parts.collect::<Vec<_>>().join(" AND "))
                };
                (0..LOOKUP).map(of_one).collect::<Vec<_>>().join(" OR ")
            }
        };
        TransferTable {
            name,
            in_template: table.to_owned(),
            index,
            contents,
            first: page(""),
            after: page(&format!("WHERE ({key_list}) > ({})", parameters(2, key.len()))),
            one: Statement::made(format!("SELECT {index}, {all}{content} FROM {source} WHERE {of_key}")),
            many: Statement::made(format!("SELECT {index}, {all}{content} FROM {source} WHERE {}", of_keys()))
                .ending_early(),
            count: Statement::made(format!("SELECT count(*) FROM {table}")),
            put_one: put(1),
            put_batch: put(BATCH),
            delete: Statement::made(format!("DELETE FROM {table} WHERE {of_key}")),
            delete_all: Statement::made(format!("DELETE FROM {table}")),
            columns,
            key,
        }
    }

    /// Whether the table is copied by a move that leaves the sessions behind.
    pub(crate) fn is_of_sessions(&self) -> bool {
        self.contents == Contents::Sessions
    }

    /// The place of a column.
    pub(super) fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|(name, _)| *name == column)
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::database::sqlite::new_schema;

    /// The tables of the library that are not copied row by row, with the reason.
    const NOT_MOVED: &[(&str, &str)] = &[
        ("migrations", "the target has its own migrations"),
        ("database", "the target has its own incarnation, keys, place and object store"),
        ("policies", "`open` creates the policies of the target"),
        ("leases", "leases end, and their holders are clients of the source"),
        ("changes", "cursors of the source are refused by the target, so its log begins empty"),
        ("feed", "it describes the log"),
        ("deleted_spaces", "it has rows during a transaction only"),
        ("ending_sessions", "it has rows during a transaction only"),
        ("file_contents", "the bytes are copied with the row of their file"),
        ("file_intents", "an unfinished write is no file"),
        ("file_outbox", "objects that no file needs are not copied"),
        ("unfinished_move", "it describes the move itself"),
        ("moved_away", "it describes the source"),
    ];

    /// The columns of each table of a new database, by the table's name without the prefix of the library's own tables.
    fn catalog() -> BTreeMap<String, BTreeSet<String>> {
        let database = new_schema();
        let sql =
            "SELECT tables.name, columns.name FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns
            WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'";
        let mut statement = database.prepare(sql).expect("the catalog");
        let rows =
            statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).expect("rows");
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (table, column) in rows.flatten() {
            let name = table.strip_prefix("townsquare_").unwrap_or(&table).to_owned();
            found.entry(name).or_default().insert(column);
        }
        found
    }

    #[test]
    fn every_table_is_moved_or_named_with_a_reason() {
        let known: BTreeSet<_> =
            tables().iter().map(|table| table.name).chain(NOT_MOVED.iter().map(|row| row.0)).collect();
        let found = catalog();
        let forgotten: Vec<_> = found.keys().filter(|name| !known.contains(name.as_str())).collect();
        assert!(forgotten.is_empty(), "decide whether a move copies them: {forgotten:?}");
        // SQLite has no table of policies.
        let missing: Vec<_> = known.iter().filter(|name| **name != "policies" && !found.contains_key(**name)).collect();
        assert!(missing.is_empty(), "there are no such tables: {missing:?}");
    }

    #[test]
    fn every_column_of_a_moved_table_is_moved() {
        let found = catalog();
        for table in tables() {
            let columns: BTreeSet<_> = table.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(Some(&columns), found.get(table.name), "{}", table.name);
        }
    }
}
