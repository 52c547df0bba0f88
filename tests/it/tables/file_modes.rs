//! The modes of the files of a data folder (DESIGN 3): only their owner may read them, whatever the umask.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use townsquare::{Config, blocking::Client, spaces::NewSpace};
use townsquare_tests::{
    subprocess::{child, in_shell, name_of, role, run_child},
    temp_dir,
};

use crate::log::Log;

/// The variable that tells the child its folder.
const FOLDER: &str = "TOWNSQUARE_TEST_FOLDER";

fn mode(path: &Path) -> u32 {
    let metadata = fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    metadata.permissions().mode() & 0o777
}

fn open(folder: &Path) -> Client {
    Client::open(Config::new().data_dir(folder).persist_session(true).catalog_api_key("")).expect("opens")
}

/// Opens a client in `folder`, uses every file, and checks their modes.
fn assert_private_files(folder: &Path, backup: &Path) {
    let client = open(folder);
    client.auth().sign_up("ann@town.example", "correct horse").expect("an account");
    client.auth().sign_in("ann@town.example", "correct horse").expect("signed in");
    client.spaces().create_space(NewSpace::named("x")).expect("created");
    client.spaces().get_public_spaces(10, 0).expect("read");
    client.backup(backup).expect("copied");
    for name in ["townsquare.db", "townsquare.db-wal", "townsquare.db-shm", "session.json"] {
        assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(backup), 0o600);
    client.close();
    assert_eq!(mode(&folder.join("townsquare.db")), 0o600);
}

/// Runs in a child process whose umask is 022.
#[test]
fn child_process_with_a_usual_umask() {
    if role().as_deref() != Some("modes") {
        return;
    }
    let log = Log::capture();
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("the parent's folder"));

    let new = folder.join("new/data");
    assert_private_files(&new, &folder.join("copy.db"));
    assert_eq!((mode(&new), mode(&folder.join("new"))), (0o700, 0o700));
    assert_eq!(log.take(), "", "nothing to warn of");

    let restored = folder.join("restored");
    Client::restore(folder.join("copy.db"), &restored).expect("restored");
    assert_eq!((mode(&restored), mode(&restored.join("townsquare.db"))), (0o700, 0o600));

    let existing = folder.join("existing");
    fs::create_dir(&existing).expect("a folder");
    assert_eq!(mode(&existing), 0o755, "the umask of this process");
    assert_private_files(&existing, &folder.join("second.db"));
    assert_eq!(mode(&existing), 0o755, "the folder's owner chose its mode");
    let text = log.take();
    assert!(text.contains("existing") && text.contains("other users"), "{text}");
    assert!(!text.contains("townsquare.db"), "the file is private: {text}");

    // A database from before this rule keeps its mode as well.
    fs::set_permissions(existing.join("townsquare.db"), fs::Permissions::from_mode(0o644)).expect("its owner");
    open(&existing).close();
    assert_eq!(mode(&existing.join("townsquare.db")), 0o644);
    let text = log.take();
    assert!(text.contains("townsquare.db"), "{text}");
}

#[test]
fn files_are_private_under_the_usual_umask() {
    let folder = temp_dir();
    let path = folder.path().to_str().expect("a UTF-8 path");
    let test = name_of(&child_process_with_a_usual_umask);
    run_child(&mut in_shell("umask 022", &child(test, "modes", &[(FOLDER, path)])));
}
