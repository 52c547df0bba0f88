//! Moving a database with its files into an empty place (`Client::move_to`): everything arrives, a kill resumes, other targets
//! are refused.

mod changes;
mod follow;
mod json;
mod targets;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::mpsc,
    time::Duration,
};

use serde_json::json;
use tempfile::TempDir;
use townsquare::{
    Config, ErrorKind, MoveOptions, MoveReport, MoveTarget, Timestamp, Uuid,
    auth::{Session, identity_claim},
    blocking::Client,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
    realtime::ChangeRequest,
    spaces::{NewFidget, NewSpace},
    storage::{ListFiles, UploadOptions},
};
use townsquare_tests::{
    fixture::assert_kind,
    raw_sql::{RawConnection, RawRow, quoted},
    s3_server::S3Server,
    setting::setting,
    subprocess::{child, kill_after, name_of, role},
    temp_dir,
    test_database::{EmptyDatabase, Engine, required},
    wait::wait_until,
};

const PASSWORD: &str = "correct horse";
const SEED: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
const KEY: &str = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664";
/// Sizes on both sides of the limit of inline files, and of the chunks that are copied.
const SIZES: [usize; 6] = [0, 3, 65_536, 65_537, 1 << 20, (2 << 20) + 7];
/// Names that need care in SQL, URLs, shells and folders.
const HOSTILE: [&str; 6] =
    ["a'b; DROP TABLE users; --", "x#12 %20?&=+", "..dots..", "Ünï—🦀", "\"quoted\" $1 {spaces.row}", "CON"];
/// The tables that a moved database has for itself, with the reason.
const OWN_TABLES: [(&str, &str); 13] = [
    ("migrations", "each database has its own"),
    ("database", "incarnation, keys and store are its own"),
    ("policies", "PostgreSQL's"),
    ("leases", "they end"),
    ("changes", "the log begins empty"),
    ("feed", "the log begins empty"),
    ("deleted_spaces", "rows during a transaction"),
    ("ending_sessions", "rows during a transaction"),
    ("file_intents", "unfinished writes"),
    ("file_outbox", "objects to remove"),
    ("file_contents", "compared as files"),
    ("unfinished_move", "the mark of the move"),
    ("moved_away", "the mark of the source"),
];

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn config(folder: &Path) -> Config {
    Config::new().data_dir(folder).catalog_api_key("")
}

/// A SQLite database in a folder with its files.
struct Town {
    folder: TempDir,
    client: Client,
    service: Client,
}

/// What a user keeps after a move.
struct Ann {
    session: Session,
    space: Uuid,
}

impl Town {
    fn new() -> Town {
        let folder = temp_dir();
        let client = Client::open(config(folder.path())).expect("a new database");
        let service = client.as_service();
        Town { folder, client, service }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("townsquare.db")
    }

    fn raw(&self) -> RawConnection {
        RawConnection::sqlite(&self.file())
    }

    /// Adds rows to every table that a move copies, and files of every size.
    fn fill(&self) -> Ann {
        let (service, auth) = (&self.service, self.client.auth());
        let user = auth.sign_up("ann@town.example", PASSWORD).expect("signed up");
        auth.sign_up("bob@town.example", "battery staple").expect("signed up");
        let session = auth.create_session("ann@town.example", PASSWORD).expect("a session");
        let session = refreshed(&self.client, &session);
        auth.create_session("ann@town.example", "wrong").expect_err("a failure is counted");
        let known = self.client.as_anonymous().with_client_key("10.0.0.1");
        known.auth().create_session("bob@town.example", "battery staple").expect("a known client");
        let ann = self.client.as_user(&session.access_token).expect("a handle");
        let audience = auth.identity_audience().expect("an audience");
        ann.auth()
            .link_identity(&identity_claim(user.id, SEED, &audience, Timestamp::now()).expect("a claim"))
            .expect("linked");
        let token = service.auth().create_verification_token(user.id).expect("a token");
        service.auth().verify_email(&token).expect("verified");
        service.auth().create_recovery_token("ann@town.example").expect("a token");
        let mut patch: CommunityPatch = required();
        patch.admin_identity_public_keys = townsquare::spaces::Change::Set(vec![KEY.into(), "é'\"\\{},".into()]);
        patch.navigation_config =
            townsquare::spaces::Change::Set(json!({"z": [1, 2.5, 1e30], "a": {"": null, "'": "\u{1f980}"}}));
        service.communities().save_community_config("town", patch).expect("saved");
        service.communities().save_community_domain("town", "town.example", DomainType::Custom).expect("saved");
        let registration = NewRegistration::new(Uuid::new_v4(), "Ann's", SpaceType::Profile);
        service.communities().register_space(registration).expect("registered");
        let spaces: Vec<_> = HOSTILE
            .iter()
            .map(|name| {
                ann.spaces().create_space(NewSpace::named(*name).description(*name).public()).expect("created").id
            })
            .collect();
        for (number, name) in HOSTILE.iter().enumerate() {
            let fidget = NewFidget::of_type(*name).config(json!({"name": name, "number": number}));
            ann.fidgets().create_fidget(spaces[0], fidget).expect("created");
        }
        let gone = ann.spaces().create_space(NewSpace::named("gone")).expect("created");
        ann.spaces().delete_space(gone.id).expect("deleted");
        for (number, size) in SIZES.into_iter().enumerate() {
            let options =
                UploadOptions::new().cache_control(7).content_type("text/plain").metadata("number", number.to_string());
            let path = format!("files/{}/{size}", HOSTILE[number]);
            ann.storage().upload("assets", &path, content(number, size), options.clone()).expect("uploaded");
            let path = format!("{}/{number}", spaces[0]);
            ann.storage().upload("spaces", &path, content(number + 100, size), options.clone()).expect("uploaded");
            let path = format!("{}/{number}", user.id);
            ann.storage().upload("private", &path, content(number + 200, size), options).expect("uploaded");
        }
        let raw = self.raw();
        let now = "'2026-01-02T03:04:05.123456Z'";
        raw.run(&format!(
            "INSERT INTO townsquare_catalog VALUES ('s', 'g', 1, {now}, '{{ \"b\" : 1e2, \"a\":1 }}');
             INSERT INTO townsquare_catalog_parts VALUES ('g', 0, 's', '[1, 2]', {now}), ('g', 1, 's', '[]', NULL);
             INSERT INTO townsquare_catalog_lists VALUES ('s', '', {now}, NULL, 2, {now}, {}), ('s', 'x', NULL, '{{}}', 0, NULL, NULL)",
            quoted(HOSTILE[0])
        ));
        Ann { session, space: spaces[0] }
    }
}

fn refreshed(client: &Client, session: &Session) -> Session {
    // A refresh leaves a spent token.
    client.auth().refresh_session_of(&session.refresh_token).expect("refreshed")
}

fn with_id(name: &str, id: Uuid) -> NewSpace {
    let mut space = NewSpace::named(name);
    space.id = Some(id);
    space
}

fn content(seed: usize, size: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed as u64);
    (0..size).map(|_| random.u8(..)).collect()
}

/// The rows of every table of a SQLite database, except the tables of [`OWN_TABLES`].
fn rows(file: &Path) -> BTreeMap<String, Vec<RawRow>> {
    let raw = RawConnection::sqlite(file);
    let tables = raw.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
    let names = tables.into_iter().filter_map(|row| row.into_iter().next().flatten());
    let is_own = |name: &String| OWN_TABLES.iter().any(|(own, _)| name.strip_prefix("townsquare_") == Some(own));
    let read = |name: String| {
        // The place of the bytes depends on the options of the target.
        let columns = if name == "townsquare_files" {
            "bucket, path, access, space_id, first_segment, owner_id, size,
            content_type, cache_control, etag, metadata, updated_at"
        } else {
            "*"
        };
        let mut rows = raw.rows(&format!("SELECT {columns} FROM \"{name}\""));
        rows.sort();
        (name, rows)
    };
    names.filter(|name| !is_own(name)).map(read).collect()
}

/// The bytes of every file, by bucket and path.
fn files(service: &Client) -> BTreeMap<(String, String), (String, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for bucket in ["assets", "spaces", "private"] {
        for file in service.storage().list(bucket, ListFiles::new().limit(1_000)).expect("listed") {
            let bytes = service.storage().download(bucket, &file.path).expect("downloaded").to_vec();
            found.insert((bucket.to_owned(), file.path.clone()), (format!("{file:?}"), bytes));
        }
    }
    found
}

fn assert_same_rows(found: &BTreeMap<String, Vec<RawRow>>, expected: &BTreeMap<String, Vec<RawRow>>) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (table, rows) in expected {
        assert_eq!(&found[table], rows, "{table}");
    }
}

/// Moves, and checks the report against the rows.
fn move_to(client: &Client, target: Config) -> MoveReport {
    client.move_to(target, MoveOptions::new(), go_on).expect("moved")
}

/// A target on PostgreSQL with files in S3, if the engine is installed.
struct Remote {
    database: EmptyDatabase,
    server: S3Server,
}

impl Remote {
    fn new() -> Option<Remote> {
        Some(Remote { database: EmptyDatabase::on(Engine::Postgres)?, server: S3Server::start() })
    }

    fn config(&self) -> Config {
        Config::new().database_url(self.database.url()).storage_url(self.server.url("town")).catalog_api_key("")
    }
}

/// What a user and a program see of a moved town.
fn assert_moved(client: &Client, ann: &Ann, files_before: &BTreeMap<(String, String), (String, Vec<u8>)>) {
    let service = client.as_service();
    assert!(files(&service) == *files_before, "files");
    let handle = client.as_user(&ann.session.access_token).expect("the session is valid");
    assert_eq!(handle.auth().identities().expect("listed").len(), 1);
    assert_eq!(handle.spaces().get_space(ann.space).expect("hers").owner_id, Some(ann.session.user.id));
    client.auth().create_session("ann@town.example", PASSWORD).expect("the password is valid");
    client.auth().create_session("bob@town.example", "battery staple").expect("the password is valid");
}

#[test]
fn a_town_moves_from_sqlite_to_postgres_with_s3_and_back() {
    let Some(remote) = Remote::new() else { return };
    let town = Town::new();
    let ann = town.fill();
    let cursor = town.service.realtime().cursor().expect("a cursor");
    let (before, files_before) = (rows(&town.file()), files(&town.service));
    let mut seen = Vec::new();
    let there = town.client.move_to(remote.config(), MoveOptions::new(), |done, all| {
        seen.push((done, all));
        ControlFlow::Continue(())
    });
    let there = there.expect("moved");
    assert_same_rows(&rows(&town.file()), &before);
    let all = seen.last().copied().expect("reported");
    assert!(seen.is_sorted() && all.0 == all.1, "{seen:?}");
    let bytes: u64 = files_before.values().map(|(_, bytes)| bytes.len() as u64).sum();
    assert_eq!((there.files, there.bytes, there.resumed), (files_before.len() as u64, bytes, false));
    for (table, rows) in &before {
        let name = table.strip_prefix("townsquare_").unwrap_or(table);
        if name != "files" {
            assert_eq!(there.rows.get(name), Some(&(rows.len() as u64)), "{name}");
            assert!(!rows.is_empty(), "the test needs rows in {name}");
        }
    }
    assert_eq!(all.1, there.rows.values().sum::<u64>() + there.files);

    // Straight back, before anybody signs in.
    let back = temp_dir();
    let moved = Client::open(remote.config()).expect("opens after the move");
    let report = move_to(&moved, config(back.path()).inline_file_limit(1 << 20));
    assert_eq!((&report.rows, report.files, report.bytes), (&there.rows, there.files, there.bytes));
    assert_same_rows(&rows(&back.path().join("townsquare.db")), &before);

    assert_moved(&moved, &ann, &files_before);
    // The S3 server has an object for each file, because the target keeps no file in the database but the empty ones.
    let is_empty = |(_, bytes): &&(String, Vec<u8>)| bytes.is_empty();
    let empty = files_before.values().filter(is_empty).count();
    assert_eq!(remote.database.raw().count("townsquare.file_contents"), empty);
    // The target has its own history and audience.
    let stale = moved.as_service().realtime().changes(ChangeRequest::table("spaces").since(cursor));
    assert_kind(ErrorKind::CursorExpired, stale.and_then(|mut stream| stream.next().expect("an answer")));
    assert_ne!(
        moved.auth().identity_audience().expect("its own"),
        town.client.auth().identity_audience().expect("the old")
    );
    // Deleted ids stay claimed.
    let gone = remote.database.raw().value("SELECT id FROM townsquare.former_spaces");
    let claim = with_id("again", gone.parse().expect("an id"));
    let handle = moved.as_user(&ann.session.access_token).expect("valid");
    assert_kind(ErrorKind::Forbidden, handle.spaces().create_space(claim));
    moved.close();

    let returned = Client::open(config(back.path())).expect("opens");
    assert_moved(&returned, &ann, &files_before);
    let repaired = returned.as_service().storage().repair().expect("repaired");
    assert_eq!((repaired.orphans_removed, repaired.rows_removed, repaired.mismatched.len()), (0, 0, 0));
    returned.close();
}

/// Every table and column of PostgreSQL is moved too: the lists of the library are compared with SQLite's catalog.
#[test]
fn both_engines_have_the_same_moved_tables() {
    let Some(database) = EmptyDatabase::on(Engine::Postgres) else { return };
    let (town, folder) = (Town::new(), temp_dir());
    let target = Config::new().database_url(database.url()).data_dir(folder.path()).catalog_api_key("");
    let report = move_to(&town.client, target);
    let raw = database.raw();
    let tables = raw.rows(
        "SELECT table_name::text FROM information_schema.tables
         WHERE table_schema IN ('public', 'townsquare') AND table_type = 'BASE TABLE'",
    );
    let found: BTreeSet<String> = tables.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
    let moved = report.rows.keys().map(String::as_str).chain(["files"]);
    let mut known: BTreeSet<&str> = moved.clone().chain(OWN_TABLES.iter().map(|(name, _)| *name)).collect();
    known.remove("ending_sessions");
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), known);
    let sqlite = town.raw();
    for table in moved {
        let columns = |rows: Vec<RawRow>| -> BTreeSet<String> { rows.into_iter().flatten().flatten().collect() };
        let of_postgres = columns(raw.rows(&format!(
            "SELECT column_name::text FROM information_schema.columns
             WHERE table_schema IN ('public', 'townsquare') AND table_name = '{table}'"
        )));
        let of_sqlite = columns(sqlite.rows(&format!(
            "SELECT name FROM pragma_table_info('{table}') UNION SELECT name FROM pragma_table_info('townsquare_{table}')"
        )));
        assert_eq!(of_postgres, of_sqlite, "{table}");
    }
}

#[test]
fn an_empty_town_and_a_town_in_memory_move_between_folders() {
    let (empty, folder) = (Town::new(), temp_dir());
    let report = move_to(&empty.client, config(&folder.path().join("new")));
    assert_eq!((report.files, report.bytes, report.rows["buckets"], report.rows["users"]), (0, 0, 3, 0));
    Client::open(config(&folder.path().join("new"))).expect("opens").close();

    let memory =
        Client::open(Config::new().data_dir(":memory:").catalog_api_key("").buckets("extra=public")).expect("opens");
    let service = memory.as_service();
    let space = service.spaces().create_space(NewSpace::named("kept")).expect("created");
    service.storage().upload("extra", "large", content(1, 100_000), UploadOptions::new()).expect("uploaded");
    let target = || config(&folder.path().join("kept"));
    move_to(&memory, target());
    let moved = Client::open(target().buckets("extra=public")).expect("opens");
    assert_eq!(moved.as_service().spaces().get_space(space.id).expect("there"), space);
    assert_eq!(moved.storage().download("extra", "large").expect("there"), content(1, 100_000));
    moved.close();
    memory.close();
}

#[test]
fn sessions_stay_behind_if_the_options_say_so() {
    let (town, folder) = (Town::new(), temp_dir());
    let ann = town.fill();
    let report = town.client.move_to(config(folder.path()), MoveOptions::new().sessions(false), go_on).expect("moved");
    assert!(!report.rows.contains_key("sessions") && !report.rows.contains_key("spent_tokens"));
    let moved = Client::open(config(folder.path())).expect("opens");
    let Err(error) = moved.as_user(&ann.session.access_token) else { panic!("the session is not moved") };
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    moved.auth().create_session("ann@town.example", PASSWORD).expect("the password is");
    moved.close();
}

fn refusal(client: &Client, target: Config) -> String {
    let checked = assert_kind(ErrorKind::Config, client.check_move(target.clone()));
    let error = assert_kind(ErrorKind::Config, client.move_to(target, MoveOptions::new(), go_on));
    assert!(error.to_string().starts_with("Move failed: "), "{error}");
    assert_eq!(checked.to_string(), error.to_string());
    error.message().to_owned()
}

#[test]
fn a_target_that_is_not_empty_is_refused_unchanged() {
    let (town, other) = (Town::new(), Town::new());
    town.fill();
    other.service.spaces().create_space(NewSpace::named("mine")).expect("created");
    let before = rows(&other.file());
    assert!(refusal(&town.client, config(other.folder.path())).contains("rows in spaces"));
    assert_same_rows(&rows(&other.file()), &before);

    // An empty database, and a store with files of somebody else.
    let folder = temp_dir();
    let foreign = other.folder.path().join("files/assets");
    std::fs::create_dir_all(&foreign).expect("a folder");
    std::fs::write(foreign.join("theirs.txt"), "theirs").expect("a file");
    let store = format!("file:{}", other.folder.path().join("files").display());
    let target = config(&folder.path().join("new")).storage_url(&store);
    assert!(refusal(&town.client, target).contains("assets/theirs.txt"));
    assert!(!folder.path().join("new").exists(), "nothing was created");

    // The source itself, its store, memory, and no place at all.
    assert!(refusal(&town.client, config(town.folder.path())).contains("another database than its source"));
    let own_store = format!("file:{}", town.folder.path().join("files").display());
    let target = config(&folder.path().join("new")).storage_url(&own_store);
    assert!(refusal(&town.client, target).contains("that of the source"));
    assert!(refusal(&town.client, Config::new().data_dir(":memory:")).contains("in memory"));
    assert!(refusal(&town.client, config(&folder.path().join("new")).storage_url("memory:")).contains("in memory"));
    assert!(refusal(&town.client, Config::new().catalog_api_key("")).contains("data_dir or database_url"));
    assert!(refusal(&town.client, config(&folder.path().join("new")).buckets("extra=maybe")).contains("buckets"));
    assert!(!folder.path().join("new").exists(), "nothing was created");

    // A database in which only clients have written.
    let fresh = folder.path().join("fresh");
    Client::open(config(&fresh).buckets("declared=public")).expect("opens").close();
    move_to(&town.client, config(&fresh));
    assert_same_rows(&rows(&fresh.join("townsquare.db")), &rows(&town.file()));

    // A second move into it.
    assert!(refusal(&town.client, config(&fresh)).contains("empty database"));
    town.client.close();
    assert_kind(ErrorKind::Closed, town.client.move_to(config(&fresh), MoveOptions::new(), go_on));
}

#[test]
fn a_move_that_is_stopped_continues_and_its_target_opens_for_nobody_else() {
    let (town, other, folder) = (Town::new(), Town::new(), temp_dir());
    let ann = town.fill();
    let (before, files_before) = (rows(&town.file()), files(&town.service));
    assert_eq!(town.client.check_move(config(folder.path())).expect("accepted"), MoveTarget::New);
    assert!(!folder.path().join("townsquare.db").exists(), "nothing was created");
    assert_eq!(town.client.check_move(config(other.folder.path())).expect("accepted"), MoveTarget::Empty);
    for stop_at in [1, 5, 12] {
        let mut calls = 0;
        let stopped = town.client.move_to(config(folder.path()), MoveOptions::new(), |_, _| {
            calls += 1;
            if calls > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_kind(ErrorKind::Cancelled, stopped);
        assert_eq!(town.client.check_move(config(folder.path())).expect("accepted"), MoveTarget::Unfinished);
        let error = assert_kind(ErrorKind::Config, Client::open(config(folder.path())));
        assert!(error.message().contains("unfinished move") && error.message().contains("move_to"), "{error}");
        assert!(refusal(&other.client, config(folder.path())).contains("unfinished move"));
    }
    // The source changes before the move continues.
    let late = town.service.spaces().create_space(NewSpace::named("late")).expect("created");
    town.service.storage().upload("assets", "late", content(9, 70_000), UploadOptions::new()).expect("uploaded");
    town.service.storage().delete("assets", "late").expect("deleted");
    assert!(move_to(&town.client, config(folder.path())).resumed);
    let moved = Client::open(config(folder.path())).expect("opens");
    assert_eq!(moved.as_service().spaces().get_space(late.id).expect("there"), late);
    assert_same_rows(&rows(&folder.path().join("townsquare.db")), &rows(&town.file()));
    assert_ne!(rows(&town.file()), before);
    assert_moved(&moved, &ann, &files_before);
    moved.close();
}

#[test]
fn a_file_without_its_bytes_fails_the_move_by_name() {
    let (town, folder) = (Town::new(), temp_dir());
    for (name, seed) in [("kept", 1), ("lost", 2), ("copied", 4)] {
        town.service.storage().upload("assets", name, content(seed, 100_000), UploadOptions::new()).expect("uploaded");
    }
    let object = town.folder.path().join("files/assets/lost");
    std::fs::write(&object, content(3, 100_000)).expect("other bytes");
    let copied = folder.path().join("files/assets/copied");
    let fails = || {
        let error =
            assert_kind(ErrorKind::Internal, town.client.move_to(config(folder.path()), MoveOptions::new(), go_on));
        assert!(error.message().contains("assets/lost"), "{error}");
    };
    fails();
    // The files are copied at the same time, and the failure of one ends the others.
    wait_until("another file is copied", || {
        fails();
        copied.exists()
    });
    town.service.storage().delete("assets", "copied").expect("deleted");
    town.service.storage().delete("assets", "lost").expect("deleted");
    let report = move_to(&town.client, config(folder.path()));
    assert_eq!((report.files, report.resumed), (1, true));
    assert!(!copied.exists(), "no bytes of deleted files stay");
}

const SOURCE: &str = "TOWNSQUARE_TEST_MOVE_SOURCE";
const TARGET: &str = "TOWNSQUARE_TEST_MOVE_TARGET";
const TARGET_STORE: &str = "TOWNSQUARE_TEST_MOVE_STORE";
const STEP: &str = "TOWNSQUARE_TEST_MOVE_STEP";

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_that_moves() {
    if role().as_deref() != Some("move") {
        return;
    }
    let variable = |name| std::env::var(name).expect("the parent process sets the variable");
    let client = Client::open(config(Path::new(&variable(SOURCE)))).expect("opens");
    let target = Config::new().database_url(variable(TARGET)).storage_url(variable(TARGET_STORE)).catalog_api_key("");
    let (mut calls, step) = (0, setting(STEP, 0_u32));
    let moved = client.move_to(target, MoveOptions::new(), |_, _| {
        calls += 1;
        if calls == step {
            let mut out = std::io::stdout().lock();
            writeln!(out, "at {step}").and_then(|()| out.flush()).expect("the parent listens");
            // Until the parent kills the process.
            if variable("TOWNSQUARE_TEST_MOVE_PARKS") == "yes" {
                let (_kept, never) = mpsc::channel::<()>();
                let _ = never.recv();
            }
        }
        ControlFlow::Continue(())
    });
    moved.expect("moved");
    client.close();
}

/// Kills moves into `target` at several points; then one completes.
fn kill_and_resume(url: &str, store: &str, folder: Option<&Path>) {
    let town = Town::new();
    let ann = town.fill();
    let (before, files_before) = (rows(&town.file()), files(&town.service));
    // A call continues where the one before was killed: while it copies, or while it compares. Without parking the process works on
    // until the signal comes.
    let points = [(1, true), (6, true), (3, false), (4, true), (5, false), (8, true), (12, true), (20, true)];
    for (step, parks) in points {
        let source = town.folder.path().display().to_string();
        let step = step.to_string();
        let variables = [
            (SOURCE, source.as_str()),
            (TARGET, url),
            (TARGET_STORE, store),
            (STEP, step.as_str()),
            ("TOWNSQUARE_TEST_MOVE_PARKS", if parks { "yes" } else { "no" }),
        ];
        let mut command = child(name_of(&child_process_that_moves), "move", &variables);
        kill_after(command.spawn().expect("the program starts"), &["at "], Duration::ZERO);
    }
    let target = Config::new().database_url(url).storage_url(store).catalog_api_key("");
    assert!(move_to(&town.client, target.clone()).resumed);
    assert_same_rows(&rows(&town.file()), &before);
    if let Some(folder) = folder {
        assert_same_rows(&rows(&folder.join("townsquare.db")), &before);
    }
    let moved = Client::open(target).expect("opens");
    assert_moved(&moved, &ann, &files_before);
    let repaired = moved.as_service().storage().repair().expect("repaired");
    assert_eq!((repaired.orphans_removed, repaired.rows_removed, repaired.mismatched.len()), (0, 0, 0));
    moved.close();
}

#[test]
fn a_killed_move_to_a_folder_continues() {
    let folder = temp_dir();
    let url = format!("sqlite:{}", folder.path().join("townsquare.db").display());
    kill_and_resume(&url, &format!("file:{}", folder.path().join("files").display()), Some(folder.path()));
}

#[test]
fn a_killed_move_to_postgres_with_s3_continues() {
    let Some(remote) = Remote::new() else { return };
    kill_and_resume(&remote.database.url(), &remote.server.url("town"), None);
}
