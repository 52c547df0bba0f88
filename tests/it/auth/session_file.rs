//! The session file of an app with one user (`persist_session`).

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use townsquare::{Client, blocking::wait, spaces::NewSpace};
use townsquare_tests::{TempDir, on_both_engines, temp_dir, test_database::TestDatabase};

use super::users::PASSWORD;

const ANN: &str = "ann@town.example";
const BOB: &str = "bob@town.example";

fn open(db: &TestDatabase, folder: &TempDir) -> Client {
    wait(Client::open(db.config().data_dir(folder.path()).persist_session(true))).expect("opens")
}

fn file(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("session.json")
}

fn signed_in(db: &TestDatabase, folder: &TempDir) -> Client {
    let client = open(db, folder);
    wait(client.auth().sign_up(ANN, PASSWORD)).expect("signed up");
    wait(client.auth().sign_in(ANN, PASSWORD)).expect("signed in");
    client
}

/// Returns the address of the signed-in user.
fn signed_in_address(client: &Client) -> Option<String> {
    wait(client.auth().get_session()).expect("asked").map(|session| session.user.email)
}

fn is_private(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.permissions().mode() & 0o777 == 0o600)
}

on_both_engines! {
    fn a_session_is_restored_at_open_and_its_file_is_private(db: &TestDatabase) {
        let folder = temp_dir();
        let client = signed_in(db, &folder);
        assert!(is_private(&file(&folder)));
        wait(client.auth().refresh_session()).expect("refreshed");
        wait(client.close());
        let again = open(db, &folder);
        assert_eq!(signed_in_address(&again).as_deref(), Some(ANN));
        assert!(wait(again.spaces().create_space(NewSpace::named("mine"))).is_ok());
        assert!(is_private(&file(&folder)));
        wait(again.close());
        // Open refreshes an expired access token.
        db.clock.advance(std::time::Duration::from_secs(7_200));
        let later = open(db, &folder);
        assert_eq!(signed_in_address(&later).as_deref(), Some(ANN));
        wait(later.close());
    }

    fn sign_out_removes_the_session_file(db: &TestDatabase) {
        let folder = temp_dir();
        let client = signed_in(db, &folder);
        wait(client.auth().sign_out()).expect("signed out");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "no file, and no part of one");
        wait(client.close());
        let again = open(db, &folder);
        assert_eq!(signed_in_address(&again), None);
        wait(again.close());
    }

    fn an_ended_session_is_not_restored(db: &TestDatabase) {
        let folder = temp_dir();
        let client = signed_in(db, &folder);
        let user = wait(client.auth().get_session()).expect("asked").expect("signed in").user;
        wait(client.close());
        wait(db.service.auth().delete_user(user.id)).expect("deleted");
        let again = open(db, &folder);
        assert_eq!(signed_in_address(&again), None);
        assert!(!file(&folder).exists());
        wait(again.close());
    }

    fn a_handle_keeps_its_user_when_another_signs_in_with_the_same_file(db: &TestDatabase) {
        let folder = temp_dir();
        let ann = signed_in(db, &folder);
        let bob = open(db, &folder);
        wait(bob.auth().sign_up(BOB, PASSWORD)).expect("signed up");
        wait(bob.auth().sign_in(BOB, PASSWORD)).expect("signed in");
        let refreshed = wait(ann.auth().refresh_session()).expect("refreshed");
        assert_eq!(refreshed.user.email, ANN);
        assert_eq!((signed_in_address(&ann).as_deref(), signed_in_address(&bob).as_deref()), (Some(ANN), Some(BOB)));
        // The file has Ann's tokens now: Bob's sign-out keeps them.
        wait(bob.auth().sign_out()).expect("signed out");
        assert!(file(&folder).exists());
        wait(bob.close());
        wait(ann.close());
    }

    fn tokens_refreshed_by_another_client_are_used(db: &TestDatabase) {
        let folder = temp_dir();
        let first = signed_in(db, &folder);
        let second = open(db, &folder);
        wait(second.auth().refresh_session()).expect("refreshed");
        assert_eq!(signed_in_address(&first).as_deref(), Some(ANN), "by the file");
        wait(first.auth().refresh_session()).expect("refreshed");
        assert_eq!(signed_in_address(&second).as_deref(), Some(ANN));
        wait(first.close());
        wait(second.close());
    }

    fn an_invalid_session_file_gives_no_session(db: &TestDatabase) {
        for text in ["", "{}", "not JSON", "{\"access_token\": 1}"] {
            let folder = temp_dir();
            fs::write(file(&folder), text).expect("written");
            let client = open(db, &folder);
            assert_eq!(signed_in_address(&client), None, "{text:?}");
            wait(client.close());
        }
    }
}
