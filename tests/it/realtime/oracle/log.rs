//! The change log as plain SQL reads it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value};
use townsquare::Uuid;
use townsquare_tests::test_database::{Engine, TestDatabase};

/// A row as JSON.
pub(super) type Image = Map<String, Value>;

/// An entry, with its values in the form that subscribers get.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: i64,
    pub(super) table: String,
    pub(super) kind: String,
    pub(super) old: Option<Image>,
    pub(super) new: Option<Image>,
    pub(super) old_context: Option<Image>,
    pub(super) new_context: Option<Image>,
    pub(super) at: String,
}

pub(super) struct Log(pub(super) Vec<Entry>);

fn number(db: &TestDatabase, sqlite: &str, postgres: &str) -> i64 {
    let sql = if db.engine == Engine::Sqlite { sqlite } else { postgres };
    db.raw.value(sql).parse().expect("an id")
}

/// The largest id up to which no entry is still to be committed.
pub(super) fn settled_id(db: &TestDatabase) -> i64 {
    number(db, "SELECT coalesce(max(id), 0) FROM townsquare_changes", "SELECT townsquare.settled_id()")
}

/// The largest id that an entry has, committed or not.
pub(super) fn last_id(db: &TestDatabase) -> i64 {
    let last = "SELECT last FROM townsquare.feed_head()";
    number(db, "SELECT coalesce(max(id), 0) FROM townsquare_changes", last)
}

/// The session that a user began last.
pub(super) fn newest_session(db: &TestDatabase, user: Uuid) -> Uuid {
    // The clock of the tests stands still, so `created_at` does not tell.
    let sql = match db.engine {
        Engine::Sqlite => format!(
            "SELECT json_extract(new, '$.session_id') FROM townsquare_changes
             WHERE kind = 'session_started' AND json_extract(new, '$.user_id') = '{user}' ORDER BY id DESC LIMIT 1"
        ),
        Engine::Postgres => format!(
            "SELECT new_row ->> 'session_id' FROM townsquare.changes
             WHERE kind = 'session_started' AND new_row ->> 'user_id' = '{user}' ORDER BY id DESC LIMIT 1"
        ),
    };
    db.raw.value(&sql).parse().expect("an id")
}

/// Reads an image: booleans of SQLite as booleans, times in UTC with six decimal places.
fn image(text: Option<&String>) -> Option<Image> {
    let mut image: Image = serde_json::from_str(text?).expect("an image");
    for (column, value) in &mut image {
        let normal = match value {
            Value::Number(flag) if column.starts_with("is_") || column == "custom_domain_authorized" => {
                Value::Bool(flag.as_i64() != Some(0))
            }
            Value::String(time) if column.ends_with("_at") || column == "timestamp" => {
                Value::String(format!("{:.6}", time.parse::<Timestamp>().expect("a time")))
            }
            _ => continue,
        };
        *value = normal;
    }
    Some(image)
}

/// Gives the old image of an update the large columns that did not change: its key `=` lists them, the new image has them.
fn complete(old: &mut Option<Image>, new: Option<&Image>) {
    let (Some(old), Some(new)) = (old, new) else { return };
    let unchanged = old.remove("=");
    for name in unchanged.iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str) {
        old.insert(name.to_owned(), new[name].clone());
    }
}

impl Log {
    pub(super) fn read(db: &TestDatabase) -> Log {
        let sql = match db.engine {
            Engine::Sqlite => {
                "SELECT id, table_name, kind, old, new, old_context, new_context, at FROM townsquare_changes ORDER BY id"
            }
            Engine::Postgres => {
                "SELECT id, table_name, kind, old_row, new_row, old_context, new_context,
                     to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')
                 FROM townsquare.changes ORDER BY id"
            }
        };
        let entries = db.raw.rows(sql).into_iter().map(|row| {
            let text = |column: usize| row[column].clone().expect("a value");
            let (mut old, new) = (image(row[3].as_ref()), image(row[4].as_ref()));
            complete(&mut old, new.as_ref());
            let kind = text(2);
            Entry {
                id: text(0).parse().expect("an id"),
                table: text(1),
                old: if kind == "visibility" { new.clone() } else { old },
                new,
                kind,
                old_context: image(row[5].as_ref()),
                new_context: image(row[6].as_ref()),
                at: text(7),
            }
        });
        Log(entries.collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Checks that the entries, applied in their order to empty tables, give the tables, and that each entry's old row is the
    /// row at its place.
    pub(super) fn assert_mirrors_the_tables(&self, db: &TestDatabase) {
        let mut rows: BTreeMap<(&str, String), &Image> = BTreeMap::new();
        for entry in self.0.iter().filter(|entry| !entry.kind.starts_with("session")) {
            if let Some(old) = &entry.old {
                let found = rows.remove(&(&entry.table, id_of(&entry.table, old)));
                assert_eq!(found, Some(old), "{entry:?} does not follow the entries before it");
            }
            if let Some(new) = &entry.new {
                let replaced = rows.insert((&entry.table, id_of(&entry.table, new)), new);
                assert_eq!(replaced, None, "{entry:?} does not follow the entries before it");
            }
        }
        for (table, column) in
            [("users", "email"), ("spaces", "name"), ("fidgets", "type"), ("community_configs", "admin_email")]
        {
            let mirrored = rows.iter().filter(|((of, _), _)| *of == table);
            let mirrored: Vec<_> =
                mirrored.map(|((_, id), row)| vec![Some(id.clone()), text_of(row, column)]).collect();
            let order = if db.engine == Engine::Sqlite { "id" } else { "id::text COLLATE \"C\"" };
            let found = db.raw.rows(&format!("SELECT id, {column} FROM {table} ORDER BY {order}"));
            assert_eq!(mirrored, found, "the log does not mirror {table}");
        }
        let mirrored = rows.iter().filter(|((of, _), _)| *of == "files");
        let mirrored: Vec<_> = mirrored.map(|((_, id), row)| vec![Some(id.clone()), text_of(row, "etag")]).collect();
        let files = if db.engine == Engine::Sqlite { "townsquare_files" } else { "townsquare.files" };
        let found = db.raw.rows(&format!("SELECT bucket || ' ' || path, etag FROM {files} ORDER BY bucket, path"));
        assert_eq!(mirrored, found, "the log does not mirror files");
    }
}

/// The columns of the primary key.
pub(super) fn key_of(table: &str, image: &Image) -> Image {
    let names: &[&str] = if table == "files" { &["bucket", "path"] } else { &["id"] };
    names.iter().map(|name| ((*name).to_owned(), image[*name].clone())).collect()
}

/// The primary key as one text.
fn id_of(table: &str, image: &Image) -> String {
    let key = key_of(table, image);
    key.values().map(|value| value.as_str().expect("a text")).collect::<Vec<_>>().join(" ")
}

fn text_of(image: &Image, column: &str) -> Option<String> {
    image[column].as_str().map(str::to_owned)
}
