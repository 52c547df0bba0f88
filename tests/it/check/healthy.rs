//! A healthy client has no findings, also while it is written to, and a check changes nothing.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

use townsquare::{
    Config, ErrorKind,
    blocking::Client,
    check::{CheckDepth, Finding, FindingCode, Severity},
    spaces::NewSpace,
    storage::{Overwrite, UploadOptions},
};
use townsquare_tests::{
    fixture::assert_kind,
    test_database::{Engine, TestDatabase},
};

use super::fixture::{Fixture, Store};

const DEPTHS: [CheckDepth; 2] = [CheckDepth::Quick, CheckDepth::Full];

#[test]
fn a_healthy_client_has_no_findings() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        for store in [Store::Folder, Store::S3] {
            let Some(fixture) = Fixture::on(engine, store) else { continue };
            for depth in DEPTHS {
                assert_eq!(fixture.check(depth), [], "a new one, {engine:?} {store:?} {depth:?}");
            }
            fixture.fill();
            for depth in DEPTHS {
                assert_eq!(fixture.check(depth), [], "{engine:?} {store:?} {depth:?}");
            }
        }
    }
    let memory = Client::open(Config::new().data_dir(":memory:").catalog_api_key("")).expect("opens");
    memory.as_service().storage().upload("assets", "large", vec![1; 100_000], UploadOptions::new()).expect("uploaded");
    for depth in DEPTHS {
        assert_eq!(memory.check(depth).expect("checked"), []);
    }
}

/// The bytes of every file, without the index of the write-ahead log, in which a reader marks what it reads.
fn contents(folder: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.ends_with(".townsquare/staging") {
            // The staged bytes of the last upload are removed a little after its end.
            continue;
        }
        if path.is_dir() {
            all.insert(path.display().to_string(), Vec::new());
            contents(&path, all);
        } else if !path.to_string_lossy().ends_with("-shm") {
            // A socket or a pipe has no content.
            all.insert(path.display().to_string(), fs::read(&path).unwrap_or_default());
        }
    }
}

#[test]
fn a_check_changes_no_row_no_file_and_no_object() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        for store in [Store::Folder, Store::S3] {
            let Some(fixture) = Fixture::on(engine, store) else { continue };
            fixture.fill();
            // What repair would change.
            fs::remove_file(fixture.files().join("assets/large")).expect("removed");
            fs::write(fixture.files().join("assets/stray"), "of nobody").expect("written");
            let state = || {
                let mut all = BTreeMap::new();
                contents(fixture.folder.path(), &mut all);
                contents(&fixture.files(), &mut all);
                let tables = ["files", "file_contents", "file_intents", "file_outbox", "database", "feed", "changes"];
                let own = tables.map(|table| fixture.own(table));
                let tables = own.iter().map(String::as_str).chain(["users", "spaces"]);
                let rows: Vec<_> =
                    tables.map(|table| fixture.raw.rows(&format!("SELECT * FROM {table} ORDER BY 1, 2"))).collect();
                (all, rows)
            };
            let before = state();
            for depth in DEPTHS {
                assert_eq!(fixture.check(depth).len(), 2, "{engine:?} {store:?} {depth:?}");
            }
            assert!(state() == before, "{engine:?} {store:?}");
        }
    }
}

/// Writers of large files, small files and spaces, until `is_done`.
fn write(fixture: &Fixture, seed: u64, is_done: &AtomicBool, writes: &AtomicU64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let files = fixture.service.storage();
    while !is_done.load(Ordering::Acquire) {
        let [one, other] = [(); 2].map(|()| format!("folder{}/file{}", random.u8(..2), random.u8(..6)));
        // Writers overtake each other, so some of these calls fail.
        match random.u8(..7) {
            0..=2 => drop(files.upload("assets", &one, vec![random.u8(..); 3_000], UploadOptions::new())),
            3 => drop(files.upload("assets", &one, "small", UploadOptions::new())),
            4 => drop(files.delete("assets", &one)),
            5 => drop(files.move_file("assets", &one, &other, Overwrite::Replace)),
            _ => {
                // The objects of its files go after the space.
                let space = fixture.service.spaces().create_space(NewSpace::named("short")).expect("created");
                let tab = format!("{}/tabs/Home", space.id);
                files.upload("spaces", &tab, vec![1; 3_000], UploadOptions::new()).expect("uploaded");
                fixture.service.spaces().delete_space(space.id).expect("deleted");
            }
        }
        writes.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn what_writers_do_during_a_check_is_no_finding() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        for store in [Store::Folder, Store::S3] {
            let Some(fixture) = Fixture::on(engine, store) else { continue };
            fixture.fill();
            let (is_done, writes) = (AtomicBool::new(false), AtomicU64::new(0));
            let findings: Vec<Finding> = thread::scope(|scope| {
                for seed in 0..3 {
                    let (fixture, is_done, writes) = (&fixture, &is_done, &writes);
                    scope.spawn(move || write(fixture, seed, is_done, writes));
                }
                let mut findings = Vec::new();
                // Long enough for writes to meet checks, whichever are faster.
                let mut checks = 0;
                while checks < 20 || writes.load(Ordering::Acquire) < 200 {
                    findings.extend(fixture.check(DEPTHS[checks % 2]));
                    checks += 1;
                }
                is_done.store(true, Ordering::Release);
                findings
            });
            assert_eq!(findings, [], "{engine:?} {store:?} after {} writes", writes.load(Ordering::Acquire));
        }
    }
}

#[test]
fn every_handle_may_check_and_a_closed_one_may_not() {
    let db = TestDatabase::on(Engine::Sqlite).expect("SQLite is always there");
    db.service.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
    let session = db.service.auth().create_session("ann@town.example", "correct horse").expect("signed in");
    let user = db.client.as_user(&session.access_token).expect("a handle");
    for handle in [&db.client, &db.service, &user] {
        assert!(handle.check(CheckDepth::Quick).is_ok());
    }
    user.close();
    let error = assert_kind(ErrorKind::Closed, user.check(CheckDepth::Quick));
    assert_eq!(error.to_string(), "Check failed: The handle is closed");
}

#[test]
fn the_worst_findings_come_first_and_serialise_with_their_advice() {
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder).expect("SQLite is always there");
    fixture.fill();
    fs::write(fixture.files().join("assets/stray"), "of nobody").expect("written");
    fs::remove_file(fixture.files().join("assets/large")).expect("removed");
    let findings = fixture.check(CheckDepth::Quick);
    let severities: Vec<_> = findings.iter().map(Finding::severity).collect();
    assert_eq!(severities, [Severity::Error, Severity::Warning], "{findings:?}");
    let json = serde_json::to_value(&findings[1]).expect("JSON");
    assert_eq!(json["code"], "orphan_object");
    assert_eq!(json["severity"], "warning");
    assert_eq!(json["message"], "The object assets/stray belongs to no file.");
    assert_eq!(json["advice"], FindingCode::OrphanObject.advice());
}
