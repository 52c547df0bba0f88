//! The session of an app with one user, kept from one start to the next (`persist_session`).

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use townsquare::{Client, NewSpace, blocking::wait};
use townsquare_tests::{on_both_engines, store::Store, temp::TempFolder};

use super::people::PASSWORD;

on_both_engines!(
    a_session_is_taken_up_at_the_next_start_and_its_file_is_private,
    signing_out_leaves_no_file,
    a_session_that_ended_is_not_taken_up,
    a_handle_never_becomes_the_user_of_another_with_the_same_file,
    tokens_that_another_client_renewed_are_taken_over,
    a_file_that_is_none_is_no_session,
);

const ANN: &str = "ann@town.example";
const BOB: &str = "bob@town.example";

fn open(store: &Store, folder: &TempFolder) -> Client {
    wait(Client::open(store.config().data_dir(folder.path()).persist_session())).expect("opens")
}

fn file(folder: &TempFolder) -> std::path::PathBuf {
    folder.join("session.json")
}

fn signed_in(store: &Store, folder: &TempFolder) -> Client {
    let client = open(store, folder);
    wait(client.auth().sign_up(ANN, PASSWORD)).expect("signed up");
    wait(client.auth().sign_in(ANN, PASSWORD)).expect("signed in");
    client
}

/// The address of who is signed in.
fn who(client: &Client) -> Option<String> {
    wait(client.auth().get_session()).expect("asked").map(|session| session.user.email)
}

fn is_private(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.permissions().mode() & 0o777 == 0o600)
}

fn a_session_is_taken_up_at_the_next_start_and_its_file_is_private(store: &Store) {
    let folder = TempFolder::new();
    let client = signed_in(store, &folder);
    assert!(is_private(&file(&folder)));
    wait(client.auth().refresh_session()).expect("refreshed");
    wait(client.close());
    let again = open(store, &folder);
    assert_eq!(who(&again).as_deref(), Some(ANN));
    assert!(wait(again.spaces().create_space(NewSpace::named("mine"))).is_ok());
    assert!(is_private(&file(&folder)));
    wait(again.close());
    // An access token that is too old is refreshed on the way in.
    store.hands.advance(std::time::Duration::from_secs(7_200));
    let later = open(store, &folder);
    assert_eq!(who(&later).as_deref(), Some(ANN));
    wait(later.close());
}

fn signing_out_leaves_no_file(store: &Store) {
    let folder = TempFolder::new();
    let client = signed_in(store, &folder);
    wait(client.auth().sign_out()).expect("signed out");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "no file, and no part of one");
    wait(client.close());
    let again = open(store, &folder);
    assert_eq!(who(&again), None);
    wait(again.close());
}

fn a_session_that_ended_is_not_taken_up(store: &Store) {
    let folder = TempFolder::new();
    let client = signed_in(store, &folder);
    let user = wait(client.auth().get_session()).expect("asked").expect("signed in").user;
    wait(client.close());
    wait(store.service.auth().delete_user(user.id)).expect("deleted");
    let again = open(store, &folder);
    assert_eq!(who(&again), None);
    assert!(!file(&folder).exists());
    wait(again.close());
}

fn a_handle_never_becomes_the_user_of_another_with_the_same_file(store: &Store) {
    let folder = TempFolder::new();
    let ann = signed_in(store, &folder);
    let bob = open(store, &folder);
    wait(bob.auth().sign_up(BOB, PASSWORD)).expect("signed up");
    wait(bob.auth().sign_in(BOB, PASSWORD)).expect("signed in");
    let refreshed = wait(ann.auth().refresh_session()).expect("refreshed");
    assert_eq!(refreshed.user.email, ANN);
    assert_eq!((who(&ann).as_deref(), who(&bob).as_deref()), (Some(ANN), Some(BOB)));
    // Ann's tokens are the ones kept now: Bob's end takes nothing from her.
    wait(bob.auth().sign_out()).expect("signed out");
    assert!(file(&folder).exists());
    wait(bob.close());
    wait(ann.close());
}

fn tokens_that_another_client_renewed_are_taken_over(store: &Store) {
    let folder = TempFolder::new();
    let first = signed_in(store, &folder);
    let second = open(store, &folder);
    wait(second.auth().refresh_session()).expect("refreshed");
    assert_eq!(who(&first).as_deref(), Some(ANN), "by the file");
    wait(first.auth().refresh_session()).expect("refreshed");
    assert_eq!(who(&second).as_deref(), Some(ANN));
    wait(first.close());
    wait(second.close());
}

fn a_file_that_is_none_is_no_session(store: &Store) {
    for text in ["", "{}", "not JSON", "{\"access_token\": 1}"] {
        let folder = TempFolder::new();
        fs::write(file(&folder), text).expect("written");
        let client = open(store, &folder);
        assert_eq!(who(&client), None, "{text:?}");
        wait(client.close());
    }
}
