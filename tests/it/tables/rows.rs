//! Export and import of rows (`Client::export_rows`, `Client::import_rows`): the same rows come out and go in, on both engines.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use townsquare::{
    Error, ErrorKind, Operation, Uuid,
    blocking::Client,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
    realtime::{ChangeRequest, EventType},
    rows::{ImportOptions, RowImportReport, RowProblemKind, TableRow, tables},
    spaces::{Change, NewFidget, NewSpace, Space, SpacePatch},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{Engine, TestDatabase, required},
};

const PASSWORD: &str = "correct horse";
const HOSTILE: [&str; 9] = [
    "'; DROP TABLE spaces; --",
    "\"quoted\" $1 {spaces.row} %s ?1",
    "\\",
    "\\x00 \\' \\N",
    "",
    "Ünï—🦀\u{202e}\n\r\t",
    "null",
    "[1,2]",
    "' OR 1=1; DELETE FROM users WHERE 'a'='a",
];

type Row = Map<String, Json>;

/// Adds rows to every table, with each hostile text in every column that takes text.
fn fill(db: &TestDatabase) {
    let service = &db.service;
    let ann = service.auth().sign_up("ann@town.example", PASSWORD).expect("signed up");
    // An address that no new account may have.
    let hara = service.auth().sign_up("hara@town.example", PASSWORD).expect("signed up");
    db.raw.run(&format!("UPDATE users SET email = 'o''hara+\"x\"@town.example' WHERE id = '{}'", hara.id));
    for (number, text) in HOSTILE.into_iter().enumerate() {
        let id = if text.is_empty() { "empty".to_owned() } else { text.to_owned() };
        let json = json!({ text: [text, null, 1.5, 1e30, u64::MAX, {"": {}}] });
        let mut patch: CommunityPatch = required();
        patch.brand_config = Change::Set(json.clone());
        patch.assets_config = Change::Set(Json::Null);
        patch.community_config = Change::Set(json!(text));
        patch.navigation_config = if number == 0 { Change::Set(Json::Null) } else { Change::Clear };
        patch.ui_config = Change::Set(json.clone());
        patch.admin_identity_public_keys = Change::Set(vec![text.to_owned(), "é'\"\\{},".to_owned()]);
        patch.admin_email = Change::Set(text.to_owned());
        patch.is_published = Change::Set(number % 2 == 0);
        service.communities().save_community_config(&id, patch).expect("saved");
        let domain = format!("x{number}';--.example");
        service.communities().save_community_domain(&id, &domain, DomainType::ALL[number % 2]).expect("saved");
        let mut registration = NewRegistration::new(Uuid::new_v4(), text, SpaceType::ALL[number % 5]);
        registration.fid = (number > 0).then(|| [i32::MIN, i32::MAX, -1][number % 3]);
        registration.identity_public_key = Some(text.to_owned());
        registration.signature = (number % 2 == 0).then(|| text.to_owned());
        service.communities().register_space(registration).expect("registered");
        let space = NewSpace::named(text).description(text);
        let space = if number % 2 == 0 { space.owned_by(ann.id).public() } else { space };
        let space = service.spaces().create_space(space).expect("created");
        let mut fidget = NewFidget::of_type(text);
        (fidget.config, fidget.position) = (Some(json), (number % 2 == 0).then_some(Json::Null));
        service.fidgets().create_fidget(space.id, fidget).expect("created");
    }
    // A space without a description, and one that has changed.
    let space = service.spaces().create_space(NewSpace::named("plain")).expect("created");
    service.spaces().update_space(space.id, SpacePatch::new().name("changed")).expect("changed");
}

fn export(client: &Client, tables: &[&str]) -> Vec<TableRow> {
    client.export_rows(tables).expect("begun").collect::<Result<_, _>>().expect("exported")
}

fn rows_of(client: &Client, table: &str) -> Vec<Row> {
    export(client, &[table]).into_iter().map(|row| row.values).collect()
}

fn import(client: &Client, table: &str, rows: Vec<Row>) -> Result<RowImportReport, Error> {
    client.import_rows(table, rows, ImportOptions::new())
}

fn dry_run(client: &Client, table: &str, rows: Vec<Row>) -> RowImportReport {
    client.import_rows(table, rows, ImportOptions::new().dry_run()).expect("checked")
}

/// A row of `spaces`.
fn space_row(id: Uuid) -> Row {
    row(json!({
        "id": id, "name": "Harbor", "description": null, "owner_id": null, "is_public": true,
        "created_at": "2026-01-02T03:04:05.123456Z", "updated_at": "2026-01-02T03:04:05.123457Z"
    }))
}

fn row(object: Json) -> Row {
    match object {
        Json::Object(row) => row,
        other => panic!("{other} is no object"),
    }
}

fn with(mut row: Row, column: &str, value: Json) -> Row {
    row.insert(column.to_owned(), value);
    row
}

/// The rows as the calls for single tables read them.
fn read_by_callers(service: &Client) -> [Json; 6] {
    let communities = service.communities();
    let spaces = service.spaces().list_spaces(1_000, None).expect("listed");
    let fidgets = |space: &Space| json!(service.fidgets().get_space_fidgets(space.id).expect("listed"));
    [
        spaces.iter().map(fidgets).collect(),
        json!(spaces),
        json!(service.auth().list_users(1_000, None).expect("listed")),
        json!(communities.list_community_configs(1_000, None).expect("listed")),
        json!(communities.list_community_domains(1_000, None).expect("listed")),
        json!(communities.list_space_registrations(1_000, None).expect("listed")),
    ]
}

fn other_engine(engine: Engine) -> Engine {
    match engine {
        Engine::Sqlite => Engine::Postgres,
        Engine::Postgres => Engine::Sqlite,
    }
}

/// The rows of the database without the library: table by table, in the engine's own text.
fn count_all(db: &TestDatabase) -> BTreeMap<&'static str, usize> {
    tables().iter().map(|table| (table.name, db.raw.count(&format!("\"{}\"", table.name)))).collect()
}

on_both_engines! {
    fn rows_that_are_exported_and_imported_elsewhere_are_equal(db: &TestDatabase) {
        fill(db);
        let exported = export(&db.service, &[]);
        let numbers = count_all(db);
        assert_eq!(exported.len(), numbers.values().sum::<usize>());
        for engine in [db.engine, other_engine(db.engine)] {
            let Some(target) = TestDatabase::on(engine) else { continue };
            for table in tables() {
                let rows: Vec<_> = exported.iter().filter(|row| row.table == table.name).collect();
                assert_eq!(rows.len(), numbers[table.name], "{}", table.name);
                let rows: Vec<_> = rows.into_iter().map(|row| row.values.clone()).collect();
                let report = import(&target.service, table.name, rows.clone()).expect("imported");
                assert_eq!((report.inserted, report.unchanged), (rows.len() as u64, 0), "{}", table.name);
                let again = import(&target.service, table.name, rows.clone()).expect("imported");
                assert_eq!((again.inserted, again.unchanged), (0, rows.len() as u64), "{}", table.name);
            }
            assert_eq!(export(&target.service, &[]), exported);
            assert_eq!(read_by_callers(&target.service), read_by_callers(&db.service));
            assert_eq!(count_all(&target), numbers);
        }
    }

    fn an_export_is_of_the_moment_at_which_it_began(db: &TestDatabase) {
        let spaces: Vec<_> = (0..700).map(|number| NewSpace::named(number.to_string())).collect();
        let created = db.service.spaces().create_spaces(spaces).expect("created");
        let mut export = db.service.export_rows(&["spaces", "fidgets"]).expect("begun");
        let first = export.next().expect("a row").expect("exported");
        for space in &created {
            db.service.spaces().delete_space(space.id).expect("deleted");
        }
        let late = db.service.spaces().create_space(NewSpace::named("late")).expect("created");
        db.fidget(late.id, "late");
        let rest: Vec<_> = export.collect::<Result<_, _>>().expect("exported");
        let ids: Vec<Uuid> = std::iter::once(&first).chain(&rest)
            .map(|row| row.values["id"].as_str().expect("text").parse().expect("an id")).collect();
        let mut expected: Vec<_> = created.iter().map(|space| space.id).collect();
        expected.sort_unstable();
        assert_eq!(ids, expected, "every row once, in the order of the ids");
        assert_eq!(rows_of(&db.service, "spaces").len(), 1);
    }

    fn an_export_without_rows_is_empty(db: &TestDatabase) {
        assert_eq!(export(&db.service, &[]), []);
        for unknown in ["files", "Spaces", "townsquare_sessions", "credentials", "", "spaces; DROP TABLE spaces"] {
            let error = assert_kind(ErrorKind::InvalidInput, db.service.export_rows(&[unknown]).map(drop));
            assert_eq!(error.operation(), Some(Operation::ExportRows));
            assert_kind(ErrorKind::InvalidInput, import(&db.service, unknown, Vec::new()));
        }
        assert_eq!(import(&db.service, "spaces", Vec::new()).expect("nothing"), RowImportReport::default());
    }

    fn an_export_has_no_secret(db: &TestDatabase) {
        fill(db);
        let session = db.client.auth().create_session("ann@town.example", PASSWORD).expect("a session");
        let text = serde_json::to_string(&export(&db.service, &[])).expect("JSON");
        assert!(text.contains("ann@town.example"));
        for secret in [PASSWORD, &session.access_token, &session.refresh_token, "argon2", "hash"] {
            assert!(!text.contains(secret), "{secret}");
        }
    }

    fn other_callers_neither_export_nor_import(db: &TestDatabase) {
        db.client.auth().sign_up("ann@town.example", PASSWORD).expect("signed up");
        let session = db.client.auth().create_session("ann@town.example", PASSWORD).expect("a session");
        let ann = db.client.as_user(&session.access_token).expect("a handle");
        let own = with(space_row(Uuid::new_v4()), "owner_id", json!(session.user.id));
        for (client, kind) in [(&db.client, ErrorKind::Unauthorized), (&db.client.as_anonymous(), ErrorKind::Unauthorized),
            (&ann, ErrorKind::Forbidden)]
        {
            for table in tables() {
                let error = assert_kind(kind, client.export_rows(&[table.name]).map(drop));
                assert!(error.explanation().starts_with("Use as_service()"), "{error}");
                assert_kind(kind, import(client, table.name, Vec::new()));
            }
            assert_kind(kind, import(client, "spaces", vec![own.clone()]));
            assert_kind(kind, client.import_rows("spaces", vec![own.clone()], ImportOptions::new().dry_run()));
            assert_kind(kind, client.export_rows(&["nothing"]).map(drop));
        }
        assert_eq!(db.raw.count("spaces"), 0);
        // An export that has begun ends with its handle.
        let service = db.client.as_service();
        let mut export = service.export_rows(&[]).expect("begun");
        service.close();
        assert_kind(ErrorKind::Closed, export.next().expect("an error"));
        assert!(export.next().is_none());
    }

    fn an_import_inserts_all_rows_or_none(db: &TestDatabase) {
        let rows: Vec<_> = (0..100).map(|_| space_row(Uuid::new_v4())).collect();
        let mut bad = rows.clone();
        bad[99].insert("name".to_owned(), Json::Null);
        let error = import(&db.service, "spaces", bad).expect_err("refused");
        assert_eq!((error.kind(), error.row(), error.column()), (ErrorKind::FieldMissing, Some(99), Some("name")));
        assert_eq!(error.to_string(), "Import rows failed: Required field is missing: rows[99].name");
        let mut bad = rows.clone();
        bad[70].insert("owner_id".to_owned(), json!(Uuid::new_v4()));
        let error = import(&db.service, "spaces", bad).expect_err("refused");
        assert_eq!((error.kind(), error.code()), (ErrorKind::ReferenceMissing, Some("23503")));
        assert_eq!((error.row(), error.column()), (Some(70), Some("owner_id")));
        assert_eq!(db.raw.count("spaces"), 0);
        assert_eq!(import(&db.service, "spaces", rows.clone()).expect("imported").inserted, 100);
        let changed = vec![space_row(Uuid::new_v4()), with(rows[3].clone(), "name", json!("other"))];
        let error = import(&db.service, "spaces", changed).expect_err("refused");
        assert_eq!((error.kind(), error.code()), (ErrorKind::AlreadyExists, Some("23505")));
        assert_eq!((error.row(), error.column()), (Some(1), Some("name")));
        assert!(error.explanation().contains("an import changes none"), "{}", error.explanation());
        assert_eq!(db.raw.count("spaces"), 100);
    }

    fn a_dry_run_inserts_nothing_and_reports_every_problem(db: &TestDatabase) {
        let rows: Vec<_> = (0..40).map(|_| space_row(Uuid::new_v4())).collect();
        import(&db.service, "spaces", rows[..10].to_vec()).expect("imported");
        let mut checked = rows.clone();
        checked[2].insert("created_at".to_owned(), Json::Null);
        checked[9].insert("is_public".to_owned(), json!(false));
        let missing = Uuid::new_v4();
        checked[30].insert("owner_id".to_owned(), json!(missing));
        let report = dry_run(&db.service, "spaces", checked);
        assert_eq!((report.inserted, report.unchanged), (29, 8));
        let problems: Vec<_> = report.problems.iter().map(|found| (found.row, found.kind, found.column)).collect();
        let expected = [(2, RowProblemKind::Differs, "created_at"), (9, RowProblemKind::Differs, "is_public"),
            (30, RowProblemKind::ReferenceMissing, "owner_id")];
        assert_eq!(problems, expected);
        assert_eq!(report.problems[2].table, Some("users"));
        assert_eq!(report.problems[2].value, Some(missing.to_string()));
        assert_eq!(db.raw.count("spaces"), 10);
    }

    fn a_value_that_another_row_has_is_refused(db: &TestDatabase) {
        fill(db);
        let before = count_all(db);
        let user = row(json!({
            "id": Uuid::new_v4(), "email": "ann@town.example", "created_at": "2026-01-02T03:04:05Z", "updated_at": null
        }));
        let config = rows_of(&db.service, "community_configs").swap_remove(0);
        let domain = rows_of(&db.service, "community_domains").swap_remove(0);
        let new = |row: &Row| with(row.clone(), "id", json!(Uuid::new_v4()));
        for (table, row, column) in [
            ("users", user, "email"),
            ("community_configs", new(&config), "community_id"),
            ("community_domains", with(new(&domain), "community_id", json!("town")), "domain"),
            ("community_domains", with(new(&domain), "domain", json!("new.example")), "domain_type"),
        ] {
            let error = import(&db.service, table, vec![row.clone()]).expect_err("refused");
            assert_eq!((error.kind(), error.row(), error.column()), (ErrorKind::AlreadyExists, Some(0), Some(column)));
            assert_eq!(dry_run(&db.service, table, vec![row]).problems[0].kind, RowProblemKind::Taken);
        }
        // Another program may have stored an address in another spelling.
        db.user_of(Uuid::new_v4(), "Bob@Town.example");
        let bob = row(json!({"id": Uuid::new_v4(), "email": "bob@town.example", "created_at": null, "updated_at": null}));
        assert_kind(ErrorKind::AlreadyExists, import(&db.service, "users", vec![bob]));
        assert_eq!(count_all(db)["community_domains"], before["community_domains"]);
    }

    fn a_refusal_names_the_row_and_keeps_its_sentence_whole(db: &TestDatabase) {
        fill(db);
        for (table, column, value, message) in [
            ("spaces", "id", json!(7), "rows[1].id is no UUID"),
            ("spaces", "colour", json!("red"), "rows[1].colour: spaces has no column of this name"),
            ("spaces", "name", Json::Null, "Required field is missing: rows[1].name"),
            ("community_configs", "community_id", json!("x".repeat(51)),
                "Database error: value too long for type character varying(50): rows[1].community_id"),
        ] {
            let good = rows_of(&db.service, table).swap_remove(0);
            let error = import(&db.service, table, vec![good.clone(), with(good, column, value)]).expect_err("refused");
            assert_eq!((error.message(), error.row()), (message, Some(1)));
        }
    }

    fn rows_of_one_call_with_the_same_value_are_refused(db: &TestDatabase) {
        let id = Uuid::new_v4();
        let error = import(&db.service, "spaces", vec![space_row(id), space_row(Uuid::new_v4()), space_row(id)]);
        let error = error.expect_err("refused");
        assert_eq!((error.kind(), error.row()), (ErrorKind::InvalidInput, Some(2)));
        assert!(error.message().contains("rows[0] and rows[2] have the same id"), "{error}");
        let user = |id: Uuid| row(json!({"id": id, "email": "a@b.example", "created_at": null, "updated_at": null}));
        let error = import(&db.service, "users", vec![user(Uuid::new_v4()), user(Uuid::new_v4())]).expect_err("refused");
        assert!(error.message().contains("the same email"), "{error}");
        assert_eq!(db.raw.count("spaces") + db.raw.count("users"), 0);
    }

    fn a_value_that_no_create_accepts_is_refused(db: &TestDatabase) {
        fill(db);
        let before = count_all(db);
        let nested = (0..101).fold(json!(1), |inner, _| json!([inner]));
        let bad: &[(&str, &str, Json, ErrorKind)] = &[
            ("spaces", "id", json!("'; DROP TABLE spaces"), ErrorKind::InvalidInput),
            ("spaces", "id", json!(7), ErrorKind::InvalidInput),
            ("spaces", "id", Json::Null, ErrorKind::FieldMissing),
            ("spaces", "name", json!("a\0b"), ErrorKind::InvalidInput),
            ("spaces", "name", json!(["a"]), ErrorKind::InvalidInput),
            ("spaces", "name", json!("x".repeat(2_000)), ErrorKind::TooLarge),
            ("spaces", "description", json!("x".repeat(1 << 21)), ErrorKind::TooLarge),
            ("spaces", "is_public", json!("true"), ErrorKind::InvalidInput),
            ("spaces", "is_public", json!(1), ErrorKind::InvalidInput),
            ("spaces", "created_at", json!("yesterday"), ErrorKind::InvalidInput),
            ("spaces", "created_at", json!("2026-01-02T03:04:05"), ErrorKind::InvalidInput),
            ("spaces", "created_at", json!("2026-01-02T03:04:05.1234567Z"), ErrorKind::InvalidInput),
            ("spaces", "created_at", json!("-000044-03-15T00:00:00Z"), ErrorKind::InvalidInput),
            ("spaces", "created_at", json!(0), ErrorKind::InvalidInput),
            ("spaces", "colour", json!("red"), ErrorKind::InvalidInput),
            ("spaces", "owner_id", json!("ann@town.example"), ErrorKind::InvalidInput),
            ("fidgets", "config", nested, ErrorKind::InvalidInput),
            ("fidgets", "config", json!({"\0": 1}), ErrorKind::InvalidInput),
            ("fidgets", "position", json!("x".repeat(1 << 20)), ErrorKind::TooLarge),
            ("fidgets", "space_id", json!(Uuid::nil()), ErrorKind::ReferenceMissing),
            ("fidgets", "type", Json::Null, ErrorKind::FieldMissing),
            ("users", "email", json!(" free@town.example"), ErrorKind::InvalidInput),
            ("users", "email", json!("\u{c9}@town.example"), ErrorKind::InvalidInput),
            ("users", "email", json!("no address"), ErrorKind::InvalidInput),
            ("users", "password_hash", json!("x"), ErrorKind::InvalidInput),
            ("users", "email_verified_at", Json::Null, ErrorKind::InvalidInput),
            ("community_configs", "community_id", json!("x".repeat(51)), ErrorKind::InvalidInput),
            ("community_configs", "community_id", json!(""), ErrorKind::InvalidInput),
            ("community_configs", "admin_identity_public_keys", json!("a"), ErrorKind::InvalidInput),
            ("community_configs", "admin_identity_public_keys", json!(["a", 1]), ErrorKind::InvalidInput),
            ("community_configs", "admin_identity_public_keys", json!(["\0"]), ErrorKind::InvalidInput),
            ("community_domains", "domain", json!(""), ErrorKind::InvalidInput),
            ("community_domains", "domain_type", json!("other"), ErrorKind::InvalidInput),
            ("community_domains", "community_id", json!("nobody's"), ErrorKind::ReferenceMissing),
            ("spaceRegistrations", "spaceType", json!("other"), ErrorKind::InvalidInput),
            ("spaceRegistrations", "fid", json!(1_i64 << 31), ErrorKind::InvalidInput),
            ("spaceRegistrations", "fid", json!(1.5), ErrorKind::InvalidInput),
            ("spaceRegistrations", "spaceName", Json::Null, ErrorKind::FieldMissing),
        ];
        for (table, column, value, kind) in bad {
            let found = tables().into_iter().find(|known| known.name == *table).expect("a table");
            // A new row, with free values in the unique columns.
            let mut row = rows_of(&db.service, table).swap_remove(0);
            row.insert(found.columns[0].name.to_owned(), json!(Uuid::new_v4()));
            for (name, free) in [("email", "free@town.example"), ("domain", "free.example")] {
                if row.contains_key(name) {
                    row.insert(name.to_owned(), json!(free));
                }
            }
            if *table == "community_configs" {
                row.insert("community_id".to_owned(), json!("free"));
            }
            let row = with(row, column, value.clone());
            let error = import(&db.service, table, vec![row]).expect_err("refused");
            assert_eq!((error.kind(), error.row()), (*kind, Some(0)), "{table}.{column} {error}");
            assert!(error.to_string().starts_with("Import rows failed: "), "{error}");
            assert!(error.message().len() < 1_000, "{error}");
        }
        for table in tables() {
            for column in &table.columns {
                let mut row = rows_of(&db.service, table.name).swap_remove(0);
                if row.remove(column.name).is_some() && !(column.is_nullable && column.kind.as_str() == "json") {
                    let error = import(&db.service, table.name, vec![row]).expect_err("refused");
                    assert_eq!((error.kind(), error.column()), (ErrorKind::FieldMissing, Some(column.name)));
                }
            }
        }
        assert_eq!(count_all(db), before);
    }

    fn an_import_of_too_many_rows_is_refused(db: &TestDatabase) {
        let rows = vec![Row::new(); 10_001];
        assert_kind(ErrorKind::TooLarge, import(&db.service, "spaces", rows));
    }

    fn the_feed_delivers_imported_rows_as_inserts(db: &TestDatabase) {
        let since = db.service.realtime().cursor().expect("a cursor");
        let ids: Vec<_> = (0..3).map(|_| Uuid::new_v4()).collect();
        let rows: Vec<_> = ids.iter().map(|id| space_row(*id)).collect();
        dry_run(&db.service, "spaces", rows.clone());
        import(&db.service, "spaces", rows.clone()).expect("imported");
        import(&db.service, "spaces", rows).expect("unchanged");
        let until = db.service.realtime().cursor().expect("a cursor");
        let request = ChangeRequest::table("spaces").since(since).until(until);
        let changes: Vec<_> = db.service.realtime().changes(request).expect("a stream").collect::<Result<_, _>>().expect("read");
        assert!(changes.iter().all(|change| change.event_type == EventType::Insert), "{changes:?}");
        let mut found: Vec<_> = changes.iter().map(|change| change.new.as_ref().expect("a row")["id"].to_string()).collect();
        let mut expected: Vec<_> = ids.iter().map(|id| format!("\"{id}\"")).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }

    fn an_imported_user_has_no_password_until_the_service_sets_one(db: &TestDatabase) {
        let id = Uuid::new_v4();
        let user = row(json!({
            "id": id, "email": "ann@town.example", "created_at": "2020-02-29T23:59:59.999999Z",
            "updated_at": "2021-01-01T00:00:00+01:00"
        }));
        import(&db.service, "users", vec![user]).expect("imported");
        assert_kind(ErrorKind::Unauthorized, db.client.auth().create_session("ann@town.example", ""));
        assert_kind(ErrorKind::Unauthorized, db.client.auth().create_session("ann@town.example", PASSWORD));
        assert_kind(ErrorKind::AlreadyExists, db.client.auth().sign_up("ann@town.example", PASSWORD));
        db.service.auth().set_password(id, PASSWORD).expect("set");
        let session = db.client.auth().create_session("ann@town.example", PASSWORD).expect("a session");
        assert_eq!((session.user.id, session.user.email_verified_at), (id, None));
        assert_eq!(session.user.created_at.to_string(), "2020-02-29T23:59:59.999999Z");
        assert_eq!(session.user.updated_at.to_string(), "2020-12-31T23:00:00Z");
    }

    fn a_deleted_space_comes_back_by_an_import(db: &TestDatabase) {
        let space = db.space();
        let exported = rows_of(&db.service, "spaces");
        db.service.spaces().delete_space(space.id).expect("deleted");
        import(&db.service, "spaces", exported).expect("imported");
        assert_eq!(db.service.spaces().get_space(space.id).expect("there"), space);
    }

    fn a_row_that_another_program_wrote_is_exported_as_it_is(db: &TestDatabase) {
        let id = Uuid::new_v4();
        db.raw.run(&format!("INSERT INTO spaces (id, name, is_public, created_at) VALUES ('{id}', 'x', NULL, NULL)"));
        let exported = rows_of(&db.service, "spaces");
        assert_eq!((&exported[0]["is_public"], &exported[0]["created_at"]), (&Json::Null, &Json::Null));
        let Some(target) = TestDatabase::on(other_engine(db.engine)) else { return };
        import(&target.service, "spaces", exported.clone()).expect("imported");
        assert_eq!(rows_of(&target.service, "spaces"), exported);
    }

    fn an_address_in_mixed_case_is_imported_as_it_is(db: &TestDatabase) {
        db.user_of(Uuid::new_v4(), "Bob@Town.example");
        db.service.communities().save_community_config("town", required()).expect("saved");
        db.service.communities().save_community_domain("town", "town.example", DomainType::ALL[0]).expect("saved");
        db.raw.run("UPDATE community_domains SET domain = 'WWW.Town.example'");
        let Some(target) = TestDatabase::on(other_engine(db.engine)) else { return };
        for table in ["users", "community_configs", "community_domains"] {
            let exported = rows_of(&db.service, table);
            assert_eq!(import(&target.service, table, exported.clone()).expect("imported").inserted, 1, "{table}");
            assert_eq!(import(&target.service, table, exported.clone()).expect("there").unchanged, 1, "{table}");
            assert_eq!(rows_of(&target.service, table), exported);
        }
        let user = |email: &str| row(json!({"id": Uuid::new_v4(), "email": email, "created_at": null, "updated_at": null}));
        let error = assert_kind(ErrorKind::AlreadyExists, import(&target.service, "users", vec![user("BOB@town.example")]));
        assert_eq!(error.column(), Some("email"));
        let twice = import(&target.service, "users", vec![user("a@b.example"), user("A@b.example")]);
        assert!(assert_kind(ErrorKind::InvalidInput, twice).message().contains("the same email"));
    }
}

/// Two imports of the same rows at once: one inserts them, and the other finds them or fails.
#[test]
fn imports_at_once_insert_each_row_once() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(db) = TestDatabase::on(engine) else { continue };
        let rows: Vec<_> = (0..200).map(|_| space_row(Uuid::new_v4())).collect();
        let results: Vec<_> = std::thread::scope(|scope| {
            let start = |_| scope.spawn(|| import(&db.service, "spaces", rows.clone()));
            let threads: Vec<_> = (0..4).map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let inserted: u64 = results.iter().flatten().map(|report| report.inserted).sum();
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
        }
        assert_eq!((inserted, db.raw.count("spaces")), (200, 200));
        assert_eq!(import(&db.service, "spaces", rows).expect("there").unchanged, 200);
    }
}
