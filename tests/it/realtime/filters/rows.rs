//! The rows of the filter oracle: for each table its columns with two values each, and how to write them by plain SQL.

use serde_json::{Map, Value};
use townsquare_tests::{
    raw_sql::quoted,
    test_database::{Engine, TestDatabase},
};

use super::RowVersion;

pub(super) const TABLES: [&str; 7] =
    ["community_configs", "community_domains", "spaceRegistrations", "users", "spaces", "fidgets", "files"];

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Uuid,
    Text,
    Integer,
    Boolean,
    Time,
    Json,
    Texts,
}

/// A column with two values, as texts; for lists of texts, JSON.
pub(super) struct ColumnValues {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) values: [&'static str; 2],
    pub(super) is_nullable: bool,
}

/// The versions of one row of a table.
pub(super) struct TableRows {
    pub(super) table: &'static str,
    pub(super) columns: Vec<ColumnValues>,
    /// The SQL condition under which an anonymous caller sees the row.
    pub(super) visible_to_all: &'static str,
    /// Columns that anonymous callers may not read.
    hidden: &'static [&'static str],
    /// Whether a change of the key is delivered as a deletion and an insertion.
    is_moved_by_a_new_key: bool,
    /// Columns that the feed does not deliver, with their values.
    others: &'static [(&'static str, &'static str)],
}

/// Two ids with the same order as texts and as bytes.
const IDS: [&str; 2] = ["0f8fad5b-d9cb-469f-a165-70867728950e", "f47ac10b-58cc-4372-a567-0e02b2c3d479"];
/// By code point the first is before the second, in most languages after it.
const TEXTS: [&str; 2] = ["Plain", "b%_*\"\\,().&='é\u{1F600}"];
/// Two integers that are different as integers and equal as floating-point numbers.
const LARGE: [&str; 2] = ["9007199254740992", "9007199254740993"];
const SMALL: [&str; 2] = ["10", "-3"];
const TIMES: [&str; 2] = ["2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.600000Z"];

const OWNERS: [&str; 2] = ["11111111-1111-4111-8111-111111111111", "eeeeeeee-eeee-4eee-8eee-eeeeeeeeeeee"];
const COMMUNITIES: [&str; 2] = ["Ash", "birch"];

fn column(name: &'static str, kind: Kind, values: [&'static str; 2]) -> ColumnValues {
    ColumnValues { name, kind, values, is_nullable: false }
}

fn nullable(name: &'static str, kind: Kind, values: [&'static str; 2]) -> ColumnValues {
    ColumnValues { is_nullable: true, ..column(name, kind, values) }
}

fn json(name: &'static str) -> ColumnValues {
    column(name, Kind::Json, [r#"{"a":[1,null]}"#, "\"text\""])
}

/// The rows of a table.
pub(super) fn of(table: &'static str) -> TableRows {
    use Kind::{Boolean, Integer, Json, Text, Texts, Time, Uuid};
    let time = |name| nullable(name, Time, TIMES);
    let text = |name| nullable(name, Text, TEXTS);
    let object = |name| ColumnValues { is_nullable: true, ..json(name) };
    let flag = |name| nullable(name, Boolean, ["true", "false"]);
    let columns = match table {
        "community_configs" => vec![
            column("id", Uuid, IDS),
            column("community_id", Text, TEXTS),
            time("updated_at"),
            json("brand_config"),
            json("assets_config"),
            json("community_config"),
            json("fidgets_config"),
            object("navigation_config"),
            object("ui_config"),
            nullable("admin_identity_public_keys", Texts, [r#"["k"]"#, "[]"]),
            flag("is_published"),
            flag("custom_domain_authorized"),
            text("admin_email"),
        ],
        "community_domains" => vec![
            column("id", Uuid, IDS),
            column("community_id", Text, COMMUNITIES),
            column("domain", Text, TEXTS),
            column("domain_type", Text, ["blank_subdomain", "custom"]),
            time("created_at"),
            time("updated_at"),
        ],
        "spaceRegistrations" => vec![
            column("spaceId", Uuid, IDS),
            nullable("fid", Integer, SMALL),
            column("spaceName", Text, TEXTS),
            column("spaceType", Text, ["navPage", "profile"]),
            text("identityPublicKey"),
            text("signature"),
            time("timestamp"),
        ],
        "users" => {
            vec![column("id", Uuid, IDS), column("email", Text, TEXTS), time("created_at"), time("updated_at")]
        }
        "spaces" => vec![
            column("id", Uuid, IDS),
            column("name", Text, TEXTS),
            text("description"),
            nullable("owner_id", Uuid, OWNERS),
            flag("is_public"),
            time("created_at"),
            time("updated_at"),
        ],
        "fidgets" => vec![
            column("id", Uuid, IDS),
            // The spaces have the ids of their owners.
            nullable("space_id", Uuid, OWNERS),
            column("type", Text, TEXTS),
            object("config"),
            object("position"),
            time("created_at"),
            time("updated_at"),
        ],
        "files" => vec![
            column("bucket", Text, ["Assets", "photos"]),
            column("path", Text, TEXTS),
            column("size", Integer, LARGE),
            column("content_type", Text, TEXTS),
            column("cache_control", Integer, SMALL),
            column("etag", Text, TEXTS),
            column("metadata", Json, [r#"{"a":1}"#, "{}"]),
            nullable("owner_id", Uuid, OWNERS),
            column("updated_at", Time, TIMES),
        ],
        other => panic!("no rows of {other}"),
    };
    let (visible_to_all, hidden): (_, &[&str]) = match table {
        "community_configs" => {
            ("is_published", &["admin_email", "admin_identity_public_keys", "custom_domain_authorized"])
        }
        "users" => ("1 = 0", &[]),
        "spaces" => ("is_public", &[]),
        // The spaces are public.
        "fidgets" => ("space_id IS NOT NULL", &[]),
        _ => ("1 = 1", &[]),
    };
    let is_files = table == "files";
    let others: &[_] = if is_files { &[("access", "'public'"), ("is_inline", "true")] } else { &[] };
    TableRows { table, columns, visible_to_all, hidden, is_moved_by_a_new_key: is_files, others }
}

impl TableRows {
    /// Whether an anonymous caller may use the column in a filter.
    pub(super) fn is_filtered_by_anonymous(&self, column: &str) -> bool {
        !self.hidden.contains(&column)
    }

    /// Whether an update is delivered as a deletion and an insertion. Versions of the row other than the second have one key.
    pub(super) fn is_move(&self, before: Option<RowVersion>, after: Option<RowVersion>) -> bool {
        let is_second = |version: Option<RowVersion>| version == Some(RowVersion::Second);
        self.is_moved_by_a_new_key && is_second(before) != is_second(after)
    }

    /// The table in SQL.
    pub(super) fn name(&self, engine: Engine) -> String {
        match (self.table, engine) {
            ("files", Engine::Sqlite) => "townsquare_files".to_owned(),
            ("files", Engine::Postgres) => "townsquare.files".to_owned(),
            (table, _) => format!("\"{table}\""),
        }
    }

    /// The SQL condition of the row, among those that other rows reference.
    pub(super) fn is_own(&self) -> String {
        let key = &self.columns[0];
        format!("\"{}\" IN ('{}', '{}')", key.name, key.values[0], key.values[1])
    }

    /// Of the rows of a live query, those that are not referenced by others.
    pub(super) fn own<'a>(&self, rows: &'a [Map<String, Value>]) -> Vec<&'a Map<String, Value>> {
        let key = &self.columns[0];
        rows.iter().filter(|row| row[key.name].as_str().is_some_and(|id| key.values.contains(&id))).collect()
    }

    /// Writes the rows that the table references.
    pub(super) fn write_referenced(&self, db: &TestDatabase) {
        let [one, two] = OWNERS;
        match self.table {
            "community_domains" => {
                for community in COMMUNITIES {
                    db.community(community);
                }
            }
            "spaces" | "fidgets" | "files" => {
                for owner in OWNERS {
                    let values = format!("('{owner}', '{owner}') ON CONFLICT (id) DO NOTHING");
                    db.raw.run(&format!("INSERT INTO users (id, email) VALUES {values}"));
                }
            }
            _ => {}
        }
        if self.table == "files" && db.engine == Engine::Postgres {
            db.raw.run("INSERT INTO townsquare.buckets VALUES ('Assets', 'public'), ('photos', 'public') ON CONFLICT DO NOTHING");
        }
        if self.table == "fidgets" {
            db.raw.run(&format!(
                "INSERT INTO spaces (id, name, is_public) VALUES ('{one}', 'a', true), ('{two}', 'b', true)"
            ));
        }
    }

    /// Changes the row from one version to another.
    pub(super) fn write(&self, db: &TestDatabase, before: Option<RowVersion>, after: Option<RowVersion>) {
        let table = self.name(db.engine);
        // The first segment of a path without a slash is the path.
        let path = || self.columns.iter().filter(|column| column.name == "path");
        let columns = || {
            let names = self.columns.iter().map(|column| format!("\"{}\"", column.name));
            names.chain(path().map(|_| "first_segment".to_owned()))
        };
        let values = |version| self.columns.iter().chain(path()).map(move |column| column.literal(db.engine, version));
        db.raw.run(&match (before, after) {
            (None, None) => return,
            (None, Some(after)) => {
                let (names, literals): (Vec<_>, Vec<_>) =
                    self.others.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).unzip();
                let names: Vec<_> = columns().chain(names).collect();
                let values: Vec<_> = values(after).chain(literals).collect();
                format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), values.join(", "))
            }
            (Some(_), Some(after)) => {
                let set: Vec<_> =
                    columns().zip(values(after)).map(|(name, value)| format!("{name} = {value}")).collect();
                format!("UPDATE {table} SET {} WHERE {}", set.join(", "), self.is_own())
            }
            (Some(_), None) => format!("DELETE FROM {table} WHERE {}", self.is_own()),
        });
    }
}

impl ColumnValues {
    /// The column's value in a version of the row, as SQL.
    fn literal(&self, engine: Engine, version: RowVersion) -> String {
        let value = match version {
            RowVersion::Nulls if self.is_nullable => return "NULL".to_owned(),
            RowVersion::First | RowVersion::Nulls => self.values[0],
            RowVersion::Second => self.values[1],
        };
        match self.kind {
            Kind::Integer | Kind::Boolean => value.to_owned(),
            Kind::Texts if engine == Engine::Postgres => quoted(&value.replace('[', "{").replace(']', "}")),
            Kind::Uuid | Kind::Text | Kind::Time | Kind::Json | Kind::Texts => quoted(value),
        }
    }
}
