//! Planted faults of the machine: open modes, a full disk.
#![cfg(unix)]

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use townsquare::{
    Config,
    blocking::Client,
    check::{CheckDepth, FindingCode},
};
use townsquare_tests::{
    subprocess::{child, name_of, role, run_on_small_disk},
    temp_dir,
    test_database::Engine,
};

use super::fixture::{Fixture, Store, codes};

const FOLDER: &str = "TOWNSQUARE_TEST_DISK";

#[test]
fn files_and_folders_that_others_may_read_are_found() {
    let options = |config: Config| config.persist_session(true);
    let fixture = Fixture::with(Engine::Sqlite, Store::Folder, options).expect("SQLite is always there");
    fixture.fill();
    fixture.client.auth().sign_in("ann@town.example", "correct horse").expect("signed in");
    assert_eq!(fixture.codes(), []);
    for (path, name) in [
        ("data", "the folder data_dir"),
        ("data/townsquare.db", "townsquare.db"),
        ("data/townsquare.db-wal", "townsquare.db-wal"),
        ("data/session.json", "session.json"),
        ("files", "files"),
        ("files/assets", "files/assets"),
        ("files/.townsquare/store", "files/.townsquare/store"),
    ] {
        let path = fixture.folder.path().join(path);
        let before = fs::metadata(&path).expect("a file or folder").permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(before.mode() | 0o044)).expect("opened");
        let found = fixture.assert_finds(FindingCode::ModeOpen);
        assert_eq!(found, [format!("Other users of this machine have rights on {name}.")]);
        fs::set_permissions(&path, before).expect("closed");
    }
    assert_eq!(fixture.codes(), []);
}

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_on_a_small_disk() {
    if role().as_deref() == Some("check on a full disk") {
        let disk: PathBuf = std::env::var_os(FOLDER).expect("the parent process sets the variable").into();
        let client = Client::open(Config::new().data_dir(disk.join("data")).catalog_api_key("")).expect("opens");
        let findings = client.check(CheckDepth::Quick).expect("checked");
        assert_eq!(codes(&findings), [FindingCode::DiskFull], "{findings:?}");
    }
}

#[test]
fn a_disk_that_is_nearly_full_is_found() {
    let disk = temp_dir();
    let name = name_of(&child_process_on_a_small_disk);
    let child = child(name, "check on a full disk", &[(FOLDER, disk.path().to_str().expect("UTF-8"))]);
    run_on_small_disk(disk.path(), 32, &child);
}
