//! Rows that another program writes (DESIGN 3): its SQLite may be old, and its values may have another form.
//!
//! The other program is Python's module `sqlite3`. Before SQLite 3.41, `json_valid(NULL)` is 0 and not NULL.

use std::process::Command;

use serde_json::json;
use townsquare::spaces::{NewFidget, NewSpace};
use townsquare_tests::{on_engine, skip::skip, test_database::TestDatabase};

const ID: &str = "6f2c1f4e-7d1a-4a53-9d55-0c1f3a4b5c6d";

/// Runs `program` with the file's path in `sys.argv[1]`; `None` and a skip without an old SQLite.
fn with_old_sqlite(db: &TestDatabase, program: &str) -> Option<String> {
    let version = Command::new("python3").args(["-c", "import sqlite3; print(sqlite3.sqlite_version)"]).output();
    let version = version.ok().filter(|output| output.status.success());
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let minor =
        version.as_deref().and_then(|version| version.strip_prefix("3.")?.split('.').next()?.parse::<u32>().ok());
    if minor.is_none_or(|minor| minor >= 41) {
        skip(&format!("rows of an SQLite before 3.41: Python's is {version:?}"));
        return None;
    }
    let output = Command::new("python3").args(["-c", program]).arg(db.file()).output().expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

const INSERT_NULLS: &str = "
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=20)
database.execute('PRAGMA foreign_keys = ON')
assert database.execute('SELECT json_valid(NULL)').fetchone() == (0,)
with database:
    space = database.execute(\"INSERT INTO spaces (name, is_public) VALUES ('by hand', 1) RETURNING id\").fetchone()[0]
    database.execute(\"INSERT INTO fidgets (space_id, type) VALUES (?, 'clock')\", [space])
    database.execute(\"INSERT INTO fidgets (space_id, type, config, position) VALUES (?, 'map', NULL, '{}')\", [space])
    database.execute(\"INSERT INTO community_configs (community_id, brand_config, assets_config, community_config, \"
                     \"fidgets_config) VALUES ('town', '{}', '{}', '{}', '{}')\")
for statement in (
    \"INSERT INTO fidgets (space_id, type, config) VALUES (NULL, 'clock', 'no JSON')\",
    \"INSERT INTO spaces (id, name) VALUES ('6F2C1F4E-7D1A-4A53-9D55-0C1F3A4B5C6D', 'x')\",
    \"INSERT INTO spaces (name, created_at) VALUES ('x', '2024-01-01 00:00:00')\",
    \"INSERT INTO community_configs (community_id, brand_config, assets_config, community_config, fidgets_config, \"
    \"ui_config) VALUES ('bad', '{}', '{}', '{}', '{}', 'no JSON')\",
):
    try:
        database.execute(statement)
    except sqlite3.IntegrityError as error:
        assert 'CHECK' in str(error), error
    else:
        raise AssertionError(statement)
print(database.execute('PRAGMA integrity_check').fetchall())
";

fn insert_space(column: &str, value: &str) -> String {
    format!("INSERT INTO spaces (name, {column}) VALUES ('x', {value})")
}

on_engine! { Sqlite in sqlite;
    fn null_in_a_json_column_by_an_old_shell_is_accepted(db: &TestDatabase) {
        let Some(checked) = with_old_sqlite(db, INSERT_NULLS) else { return };
        assert_eq!(checked.trim(), "[('ok',)]");
        let spaces = db.client.spaces().get_public_spaces(10, 0).expect("readable");
        let fidgets = db.client.fidgets().get_space_fidgets(spaces[0].space.id).expect("readable");
        let configs: Vec<_> = fidgets.iter().map(|fidget| (fidget.config.clone(), fidget.position.clone())).collect();
        assert!(configs.contains(&(None, None)) && configs.contains(&(None, Some(json!({})))), "{configs:?}");
        db.client.communities().get_active_community_config("town").expect("readable").expect("there");
        db.service.fidgets().create_fidget(spaces[0].space.id, NewFidget::of_type("x")).expect("and writable");
    }

    fn a_malformed_uuid_is_refused(db: &TestDatabase) {
        for bad in [
            "'6F2C1F4E-7D1A-4A53-9D55-0C1F3A4B5C6D'", "'6f2c1f4e7d1a4a539d550c1f3a4b5c6d'", "''", "'x'",
            "'6f2c1f4e-7d1a-4a53-9d55-0c1f3a4b5c6g'", "'6f2c1f4e-7d1a-4a53-9d55-0c1f3a4b5c6d '",
            "'6f2c1f4e-7d1a-4a53-9d55-0c1f3a4b5c--'", "zeroblob(36)", "7",
        ] {
            for column in ["id", "owner_id"] {
                let error = db.raw.try_rows(&insert_space(column, bad)).expect_err(bad);
                assert!(error.contains("CHECK"), "{column} {bad}: {error}");
            }
        }
        db.raw.run(&insert_space("id", &format!("'{ID}'")));
        db.raw.try_rows(&format!("UPDATE spaces SET id = upper(id) WHERE id = '{ID}'")).expect_err("an update as well");
        db.raw.try_rows(r#"INSERT INTO "spaceRegistrations" ("spaceId", "spaceName", "spaceType") VALUES ('x', 'x', 'profile')"#)
            .expect_err("no uuid");
    }

    fn a_malformed_time_is_refused(db: &TestDatabase) {
        for bad in [
            "'2024-01-01'", "'2024-01-01 00:00:00.000000Z'", "'2024-01-01T00:00:00Z'", "'2024-01-01T00:00:00.000Z'",
            "'2024-01-01T00:00:00.000000+00:00'", "'2024-13-01T00:00:00.000000Z'", "'2024-02-30T00:00:00.000000Z'",
            "'2024-01-01T24:00:00.000000Z'", "'2024-01-01T00:60:00.000000Z'", "'infinity'", "''", "0", "1704067200",
            "zeroblob(27)",
        ] {
            for column in ["created_at", "updated_at"] {
                let error = db.raw.try_rows(&insert_space(column, bad)).expect_err(bad);
                assert!(error.contains("CHECK"), "{column} {bad}: {error}");
            }
        }
        for good in ["'2024-02-29T23:59:59.999999Z'", "'0001-01-01T00:00:00.000000Z'", "'9999-12-31T23:59:59.999999Z'", "NULL"] {
            db.raw.run(&insert_space("created_at", good));
        }
        let service = &db.service;
        assert_eq!(service.spaces().create_space(NewSpace::named("x")).map(|space| space.name).ok().as_deref(), Some("x"));
    }
}
