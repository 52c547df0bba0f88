//! JSON that another program stored and that the library cannot read: the feed delivers null in its place, and no change is
//! lost.

use serde_json::Value;
use townsquare::{
    Uuid,
    realtime::{ChangeRequest, EventType, LiveRequest, RowChange},
};
use townsquare_tests::{
    on_both_engines,
    test_database::{Engine, TestDatabase},
};

use super::fixture::{Recorder, next, stream};

/// A table's JSON columns, its other columns with their values in SQL, and the column that names a row.
type JsonTable = (&'static str, &'static [&'static str], Vec<(&'static str, String)>, &'static str);

fn tables(space: Uuid) -> [JsonTable; 3] {
    let text = |value: &str| format!("'{value}'");
    let community =
        ["brand_config", "assets_config", "community_config", "fidgets_config", "navigation_config", "ui_config"]
            .as_slice();
    let file = [
        ("bucket", text("assets")),
        ("path", text("row")),
        ("access", text("public")),
        ("first_segment", text("row")),
        ("size", "1".to_owned()),
        ("content_type", text("text/plain")),
        ("cache_control", "0".to_owned()),
        ("etag", text("e")),
        ("is_inline", "true".to_owned()),
        ("updated_at", text("2026-01-02T03:04:05.678901Z")),
    ];
    [
        ("community_configs", community, vec![("community_id", text("row"))], "community_id"),
        (
            "fidgets",
            &["config", "position"],
            vec![("space_id", text(&space.to_string())), ("type", text("row"))],
            "type",
        ),
        ("files", &["metadata"], file.into(), "path"),
    ]
}

/// Valid JSON for the engine that serde_json refuses.
fn unreadable(engine: Engine) -> Vec<String> {
    let mut values = vec!["1e999".to_owned(), format!("{}{}", "[".repeat(130), "]".repeat(130))];
    // jsonb refuses half of a surrogate pair by itself.
    if engine == Engine::Sqlite {
        values.push(r#"{"a":"\ud800"}"#.to_owned());
    }
    values
}

/// The JSON columns of a table, all with `{}` but `column`, which has `value`.
fn json_values(columns: &[&'static str], column: &str, value: &str) -> Vec<(&'static str, String)> {
    let value_of = |name: &str| if name == column { format!("'{value}'") } else { "'{}'".to_owned() };
    columns.iter().map(|name| (*name, value_of(name))).collect()
}

/// `table` as SQL names it.
fn sql_name(db: &TestDatabase, table: &str) -> String {
    match (table, db.engine) {
        ("files", Engine::Sqlite) => "townsquare_files".to_owned(),
        ("files", Engine::Postgres) => "townsquare.files".to_owned(),
        _ => table.to_owned(),
    }
}

/// The event, and the value of `column` in the old and the new row.
fn seen(change: &RowChange, column: &str) -> (EventType, Option<Value>, Option<Value>) {
    let value =
        |row: &Option<std::sync::Arc<serde_json::Map<String, Value>>>| row.as_ref().map(|row| row[column].clone());
    (change.event_type, value(&change.old), value(&change.new))
}

on_both_engines! {
    fn a_json_value_that_cannot_be_read_is_null_and_no_change_is_lost(db: &TestDatabase) {
        let space = db.space().id;
        let client = &db.service;
        for (table, columns, others, key) in tables(space) {
            let name = sql_name(db, table);
            for column in columns {
                for value in unreadable(db.engine) {
                    let request = || ChangeRequest::table(table);
                    let cursor = db.service.realtime().cursor().expect("a cursor");
                    let (mut changes, recorder) = (stream(&db.service, request()), Recorder::subscribe(&db.service, request()));

                    let mut values = others.clone();
                    values.extend(json_values(columns, column, &value));
                    let (names, literals): (Vec<_>, Vec<_>) = values.into_iter().unzip();
                    db.raw.run(&format!("INSERT INTO {name} ({}) VALUES ({})", names.join(", "), literals.join(", ")));
                    let rows = client.realtime().live(LiveRequest::table(table)).expect("a live query").rows;
                    let row = rows.iter().find(|row| row[key] == "row").expect("the row is in the live query");
                    assert_eq!(row[*column], Value::Null, "{table}.{column}");
                    db.raw.run(&format!("UPDATE {name} SET {column} = '1' WHERE {key} = 'row'"));
                    db.raw.run(&format!("UPDATE {name} SET {column} = '{value}' WHERE {key} = 'row'"));
                    db.raw.run(&format!("DELETE FROM {name} WHERE {key} = 'row'"));

                    let (null, one) = (Some(Value::Null), Some(Value::from(1)));
                    let expected = [
                        (EventType::Insert, None, null.clone()),
                        (EventType::Update, null.clone(), one.clone()),
                        (EventType::Update, one, null.clone()),
                        (EventType::Delete, null, None),
                    ];
                    let streamed: Vec<_> = (0..4).map(|_| seen(&next(&mut changes), column)).collect();
                    assert_eq!(streamed, expected, "{table}.{column}, {value:.20}");
                    recorder.wait_for(4);
                    let called: Vec<_> = recorder.changes().iter().map(|change| seen(change, column)).collect();
                    assert_eq!(called, expected, "{table}.{column}, {value:.20}");
                    let mut replay = stream(&db.service, request().since(cursor));
                    let replayed: Vec<_> = (0..4).map(|_| seen(&next(&mut replay), column)).collect();
                    assert_eq!(replayed, expected, "{table}.{column}, {value:.20}");
                    recorder.subscription.unsubscribe();
                }
            }
        }
    }
}
