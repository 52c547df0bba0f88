//! The session file of an app with one user (`persist_session`).

use std::{env, fs, os::unix::fs::PermissionsExt, path::Path, thread};

use townsquare::{
    Client, ErrorKind,
    blocking::wait,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_tests::{
    TempDir, on_both_engines,
    subprocess::{assert_passed, name_of, role},
    temp_dir,
    test_database::{Engine, TestDatabase, inherited},
};

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
        let left = fs::read_dir(folder.path()).expect("a folder").map(|file| file.expect("readable").file_name());
        assert_eq!(left.filter(|name| name != "session.lock").count(), 0, "no file, and no part of one");
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

    fn a_data_call_takes_over_tokens_refreshed_by_another_client(db: &TestDatabase) {
        let folder = temp_dir();
        let first = signed_in(db, &folder);
        let second = open(db, &folder);
        let refresh = || wait(second.auth().refresh_session()).expect("refreshed");
        refresh();
        let space = wait(first.spaces().create_space(NewSpace::named("a transaction"))).expect("created");
        refresh();
        assert_eq!(wait(first.spaces().get_space(space.id)).expect("read").id, space.id);
        refresh();
        wait(first.spaces().update_space(space.id, SpacePatch::new().name("a statement"))).expect("updated");
        refresh();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| wait(first.spaces().get_space(space.id)).expect("read"));
            }
        });
        assert_eq!(signed_in_address(&first).as_deref(), Some(ANN));
        // The session of the file ends: there is nothing to take over.
        wait(second.auth().sign_out()).expect("signed out");
        let refused = wait(first.spaces().get_space(space.id)).expect_err("the session has ended");
        assert_eq!(refused.kind(), ErrorKind::Unauthorized);
        wait(first.close());
        wait(second.close());
    }

    fn a_data_call_does_not_take_over_the_session_of_another_user(db: &TestDatabase) {
        let folder = temp_dir();
        let ann = signed_in(db, &folder);
        let bob = open(db, &folder);
        wait(bob.auth().sign_up(BOB, PASSWORD)).expect("signed up");
        wait(bob.auth().sign_in(BOB, PASSWORD)).expect("signed in");
        let of_ann = wait(ann.auth().get_session()).expect("asked").expect("signed in").user.id;
        wait(db.service.auth().delete_user(of_ann)).expect("deleted");
        let refused = wait(ann.spaces().create_space(NewSpace::named("x"))).expect_err("Ann is gone");
        assert_eq!(refused.kind(), ErrorKind::Unauthorized);
        assert_eq!(db.raw.count("spaces"), 0);
        wait(bob.close());
        wait(ann.close());
    }

    fn of_concurrent_refreshes_one_refreshes_and_the_others_take_its_tokens_over(db: &TestDatabase) {
        let folder = temp_dir();
        let first = signed_in(db, &folder);
        let clients = [first, open(db, &folder), open(db, &folder)];
        for _ in 0..10 {
            db.clock.advance(std::time::Duration::from_secs(3_600));
            let sessions: Vec<_> = thread::scope(|scope| {
                let calls: Vec<_> =
                    clients.iter().map(|client| scope.spawn(|| wait(client.auth().get_session()))).collect();
                calls.into_iter().map(|call| call.join().expect("no panic").expect("asked")).collect()
            });
            assert!(sessions[0].is_some());
            assert!(sessions.iter().all(|session| *session == sessions[0]), "all have one pair of tokens");
        }
        assert!(is_private(&folder.path().join("session.lock")));
        for client in clients {
            wait(client.close());
        }
    }

    fn clients_that_open_with_an_expired_session_all_restore_it(db: &TestDatabase) {
        let folder = temp_dir();
        wait(signed_in(db, &folder).close());
        db.clock.advance(std::time::Duration::from_secs(7_200));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let client = open(db, &folder);
                    assert_eq!(signed_in_address(&client).as_deref(), Some(ANN));
                    wait(client.close());
                });
            }
        });
    }

    fn a_new_password_reaches_other_clients_by_the_file(db: &TestDatabase) {
        let folder = temp_dir();
        let (first, second) = (signed_in(db, &folder), open(db, &folder));
        let patch = townsquare::auth::UserPatch::new().password("another password");
        wait(first.auth().update_user(PASSWORD, patch)).expect("changed");
        assert_eq!(signed_in_address(&second).as_deref(), Some(ANN));
        wait(first.close());
        let third = open(db, &folder);
        assert_eq!(signed_in_address(&third).as_deref(), Some(ANN));
        wait(second.close());
        wait(third.close());
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

const FOLDER: &str = "TOWNSQUARE_TEST_SESSION_FOLDER";

/// Two processes refresh the session of one file. Each refresh spends a token, and a spent token ends the session.
fn assert_processes_share_a_session<T: Copy>(test: T, engine: Engine) {
    let open = |config: townsquare::Config, folder: &Path| {
        wait(Client::open(config.data_dir(folder).persist_session(true))).expect("opens")
    };
    if role().is_some() {
        let folder = env::var(FOLDER).expect("the parent names it");
        let client = open(inherited(), Path::new(&folder));
        for _ in 0..40 {
            wait(client.auth().refresh_session()).expect("the session goes on");
            wait(client.spaces().get_public_spaces(1, 0)).expect("a read takes the other processes' tokens over");
            wait(client.spaces().create_space(NewSpace::named("x"))).expect("a write, too");
            assert_eq!(signed_in_address(&client).as_deref(), Some(ANN));
        }
        wait(client.close());
        return;
    }
    let Some(db) = TestDatabase::on(engine) else { return };
    let folder = temp_dir();
    let client = open(townsquare::Config::new().database_url(db.url()).catalog_api_key(""), folder.path());
    wait(client.auth().sign_up(ANN, PASSWORD)).expect("signed up");
    wait(client.auth().sign_in(ANN, PASSWORD)).expect("signed in");
    wait(client.close());
    let path = folder.path().to_str().expect("UTF-8");
    let children: Vec<_> = (0..3)
        .map(|_| db.child(name_of(&test), "refresher", &[(FOLDER, path)]).spawn().expect("the test binary starts"))
        .collect();
    for child in children {
        assert_passed(name_of(&test), &child.wait_with_output().expect("a child ends"));
    }
}

#[test]
fn processes_share_a_persisted_session_on_sqlite() {
    assert_processes_share_a_session(processes_share_a_persisted_session_on_sqlite, Engine::Sqlite);
}

#[test]
fn processes_share_a_persisted_session_on_postgres() {
    assert_processes_share_a_session(processes_share_a_persisted_session_on_postgres, Engine::Postgres);
}
