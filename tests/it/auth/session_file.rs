//! The session file of an app with one user (`persist_session`).

use std::{env, fs, io::Write as _, os::unix::fs::PermissionsExt, path::Path, thread, time::Duration};

use serde_json::{Value, json};
use townsquare::{
    Config, ErrorKind,
    auth::{SignOutScope, UserPatch},
    blocking::Client,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_tests::{
    Rng, TempDir, on_both_engines,
    setting::{seed, setting},
    subprocess::{join_child, kill_after, name_of, role},
    temp_dir,
    test_database::{Engine, TestDatabase, inherited},
};

use super::users::PASSWORD;

const ANN: &str = "ann@town.example";
const BOB: &str = "bob@town.example";

fn open(db: &TestDatabase, folder: &TempDir) -> Client {
    Client::open(db.config().data_dir(folder.path()).persist_session(true)).expect("opens")
}

fn file(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("session.json")
}

fn signed_in(db: &TestDatabase, folder: &TempDir) -> Client {
    signed_in_as(db, folder, ANN)
}

fn signed_in_as(db: &TestDatabase, folder: &TempDir, email: &str) -> Client {
    let client = open(db, folder);
    client.auth().sign_up(email, PASSWORD).expect("signed up");
    client.auth().sign_in(email, PASSWORD).expect("signed in");
    client
}

/// The content of the session file.
fn stored(folder: &TempDir) -> Value {
    serde_json::from_slice(&fs::read(file(folder)).expect("a file")).expect("JSON")
}

fn signed_in_id(client: &Client) -> townsquare::Uuid {
    client.auth().get_session().expect("asked").expect("signed in").user.id
}

/// Returns the address of the signed-in user.
fn signed_in_address(client: &Client) -> Option<String> {
    client.auth().get_session().expect("asked").map(|session| session.user.email)
}

fn is_private(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.permissions().mode() & 0o777 == 0o600)
}

#[test]
fn a_pipe_in_the_place_of_the_file_is_refused() {
    let folder = temp_dir();
    let made = std::process::Command::new("mkfifo").arg(file(&folder)).status().expect("mkfifo starts");
    assert!(made.success());
    let refused = Client::open(Config::new().data_dir(folder.path()).persist_session(true).catalog_api_key(""));
    let refused = refused.expect_err("nobody writes into the pipe");
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused:?}");
    assert!(refused.to_string().contains("session.json: it is no file"), "{refused}");
}

on_both_engines! {
    fn a_session_is_restored_at_open_and_its_file_is_private(db: &TestDatabase) {
        let folder = temp_dir();
        let client = signed_in(db, &folder);
        assert!(is_private(&file(&folder)));
        client.auth().refresh_session().expect("refreshed");
        client.close();
        let again = open(db, &folder);
        assert_eq!(signed_in_address(&again).as_deref(), Some(ANN));
        assert!(again.spaces().create_space(NewSpace::named("mine")).is_ok());
        assert!(is_private(&file(&folder)));
        again.close();
        // Open refreshes an expired access token.
        db.clock.advance(Duration::from_secs(7_200));
        let later = open(db, &folder);
        assert_eq!(signed_in_address(&later).as_deref(), Some(ANN));
        later.close();
    }

    fn sign_out_removes_the_session_file(db: &TestDatabase) {
        let folder = temp_dir();
        let client = signed_in(db, &folder);
        client.auth().sign_out().expect("signed out");
        let left = fs::read_dir(folder.path()).expect("a folder").map(|file| file.expect("readable").file_name());
        assert_eq!(left.filter(|name| name != "session.lock").count(), 0, "no file, and no part of one");
        client.close();
        let again = open(db, &folder);
        assert_eq!(signed_in_address(&again), None);
        again.close();
    }

    fn an_ended_session_is_not_restored(db: &TestDatabase) {
        let folder = temp_dir();
        let client = signed_in(db, &folder);
        let user = client.auth().get_session().expect("asked").expect("signed in").user;
        client.close();
        db.service.auth().delete_user(user.id).expect("deleted");
        let again = open(db, &folder);
        assert_eq!(signed_in_address(&again), None);
        assert!(!file(&folder).exists());
        again.close();
    }

    fn a_handle_keeps_its_user_when_another_signs_in_with_the_same_file(db: &TestDatabase) {
        let folder = temp_dir();
        let ann = signed_in(db, &folder);
        let bob = open(db, &folder);
        bob.auth().sign_up(BOB, PASSWORD).expect("signed up");
        bob.auth().sign_in(BOB, PASSWORD).expect("signed in");
        let refreshed = ann.auth().refresh_session().expect("refreshed");
        assert_eq!(refreshed.user.email, ANN);
        assert_eq!((signed_in_address(&ann).as_deref(), signed_in_address(&bob).as_deref()), (Some(ANN), Some(BOB)));
        // The file is Bob's, who signed in last, until he signs out.
        assert_eq!(stored(&folder)["user_id"], json!(signed_in_id(&bob)));
        bob.auth().sign_out().expect("signed out");
        assert!(!file(&folder).exists());
        ann.auth().refresh_session().expect("refreshed");
        assert_eq!(stored(&folder)["user_id"], json!(refreshed.user.id));
        bob.close();
        ann.close();
    }

    fn a_client_keeps_its_session_when_the_one_in_the_file_ends(db: &TestDatabase) {
        for ends_by_password in [true, false] {
            let (folder, email) = (temp_dir(), format!("{ends_by_password}@town.example"));
            let first = signed_in_as(db, &folder, &email);
            let second = open(db, &folder);
            second.auth().sign_in(&email, PASSWORD).expect("signed in");
            // This ends the session of the second client, which the file has.
            if ends_by_password {
                first.auth().update_user(PASSWORD, UserPatch::new().password("another password")).expect("changed");
            } else {
                first.auth().sign_out_scope(SignOutScope::Others).expect("signed out");
            }
            let refreshed = first.auth().refresh_session().expect("refreshed");
            assert_eq!(refreshed.user.email, email);
            assert_eq!(signed_in_address(&first), Some(email.clone()));
            first.close();
            second.close();
            let again = open(db, &folder);
            assert_eq!(signed_in_address(&again), Some(email));
            again.close();
        }
    }

    fn tokens_refreshed_by_another_client_are_used(db: &TestDatabase) {
        let folder = temp_dir();
        let first = signed_in(db, &folder);
        let second = open(db, &folder);
        second.auth().refresh_session().expect("refreshed");
        assert_eq!(signed_in_address(&first).as_deref(), Some(ANN), "by the file");
        first.auth().refresh_session().expect("refreshed");
        assert_eq!(signed_in_address(&second).as_deref(), Some(ANN));
        first.close();
        second.close();
    }

    fn a_data_call_takes_over_tokens_refreshed_by_another_client(db: &TestDatabase) {
        let folder = temp_dir();
        let first = signed_in(db, &folder);
        let second = open(db, &folder);
        let refresh = || second.auth().refresh_session().expect("refreshed");
        refresh();
        let space = first.spaces().create_space(NewSpace::named("a transaction")).expect("created");
        refresh();
        assert_eq!(first.spaces().get_space(space.id).expect("read").id, space.id);
        refresh();
        first.spaces().update_space(space.id, SpacePatch::new().name("a statement")).expect("updated");
        refresh();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| first.spaces().get_space(space.id).expect("read"));
            }
        });
        refresh();
        assert_eq!(first.auth().identities().expect("read"), Vec::<String>::new());
        refresh();
        let patch = UserPatch::new().email("ann@new.example");
        first.auth().update_user(PASSWORD, patch).expect("updated");
        assert_eq!(signed_in_address(&first).as_deref(), Some("ann@new.example"));
        // The session of the file ends: there is nothing to take over.
        second.auth().sign_out().expect("signed out");
        let refused = first.spaces().get_space(space.id).expect_err("the session has ended");
        assert_eq!(refused.kind(), ErrorKind::Unauthorized);
        first.close();
        second.close();
    }

    fn a_data_call_does_not_take_over_the_session_of_another_user(db: &TestDatabase) {
        let folder = temp_dir();
        let ann = signed_in(db, &folder);
        let bob = open(db, &folder);
        bob.auth().sign_up(BOB, PASSWORD).expect("signed up");
        bob.auth().sign_in(BOB, PASSWORD).expect("signed in");
        let of_ann = ann.auth().get_session().expect("asked").expect("signed in").user.id;
        db.service.auth().delete_user(of_ann).expect("deleted");
        let refused = ann.spaces().create_space(NewSpace::named("x")).expect_err("Ann is gone");
        assert_eq!(refused.kind(), ErrorKind::Unauthorized);
        assert_eq!(db.raw.count("spaces"), 0);
        bob.close();
        ann.close();
    }

    /// The states of the file after a crash during a refresh: before and after the database committed it.
    fn an_interrupted_refresh_keeps_the_session(db: &TestDatabase) {
        for is_committed in [false, true] {
            let folder = temp_dir();
            let client = signed_in_as(db, &folder, if is_committed { ANN } else { BOB });
            let before = stored(&folder);
            let mut interrupted = before.clone();
            interrupted["pending"] = json!({"access_token": "tsa_unknown", "refresh_token": "tsr_unknown"});
            if is_committed {
                client.auth().refresh_session().expect("refreshed");
                let after = stored(&folder);
                interrupted["pending"] = after.clone();
                assert_ne!(before, after);
            }
            client.close();
            for hours in [0, 2] {
                db.clock.advance(Duration::from_secs(hours * 3_600));
                fs::write(file(&folder), interrupted.to_string()).expect("written");
                let again = open(db, &folder);
                assert!(signed_in_address(&again).is_some(), "committed: {is_committed}, {hours} hours later");
                let data = again.spaces().create_space(NewSpace::named("mine"));
                assert!(data.is_ok(), "committed: {is_committed}, {hours} hours later");
                again.close();
            }
            assert_eq!(stored(&folder).get("pending"), None, "the refresh of the expired token was saved");
        }
    }

    fn a_spent_refresh_token_in_the_file_still_ends_the_session(db: &TestDatabase) {
        let folder = temp_dir();
        let client = signed_in(db, &folder);
        let mut copied = stored(&folder);
        client.auth().refresh_session().expect("refreshed");
        copied["pending"] = json!({"access_token": "tsa_unknown", "refresh_token": "tsr_unknown"});
        db.clock.advance(Duration::from_secs(11));
        fs::write(file(&folder), copied.to_string()).expect("written");
        let thief = open(db, &folder);
        assert_eq!(signed_in_address(&thief), None);
        assert_eq!(signed_in_address(&client), None, "the second use of the token ended the session");
        thief.close();
        client.close();
    }

    fn of_concurrent_refreshes_one_refreshes_and_the_others_take_its_tokens_over(db: &TestDatabase) {
        let folder = temp_dir();
        let first = signed_in(db, &folder);
        let clients = [first, open(db, &folder), open(db, &folder)];
        for _ in 0..10 {
            db.clock.advance(Duration::from_secs(3_600));
            let sessions: Vec<_> = thread::scope(|scope| {
                let calls: Vec<_> =
                    clients.iter().map(|client| scope.spawn(|| client.auth().get_session())).collect();
                calls.into_iter().map(|call| call.join().expect("no panic").expect("asked")).collect()
            });
            assert!(sessions[0].is_some());
            assert!(sessions.iter().all(|session| *session == sessions[0]), "all have one pair of tokens");
        }
        assert!(is_private(&folder.path().join("session.lock")));
        for client in clients {
            client.close();
        }
    }

    fn clients_that_open_with_an_expired_session_all_restore_it(db: &TestDatabase) {
        let folder = temp_dir();
        signed_in(db, &folder).close();
        db.clock.advance(Duration::from_secs(7_200));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let client = open(db, &folder);
                    assert_eq!(signed_in_address(&client).as_deref(), Some(ANN));
                    client.close();
                });
            }
        });
    }

    fn a_new_password_reaches_other_clients_by_the_file(db: &TestDatabase) {
        let folder = temp_dir();
        let (first, second) = (signed_in(db, &folder), open(db, &folder));
        let patch = UserPatch::new().password("another password");
        first.auth().update_user(PASSWORD, patch).expect("changed");
        assert_eq!(signed_in_address(&second).as_deref(), Some(ANN));
        first.close();
        let third = open(db, &folder);
        assert_eq!(signed_in_address(&third).as_deref(), Some(ANN));
        second.close();
        third.close();
    }

    fn an_invalid_session_file_gives_no_session(db: &TestDatabase) {
        for text in ["", "{}", "not JSON", "{\"access_token\": 1}"] {
            let folder = temp_dir();
            fs::write(file(&folder), text).expect("written");
            let client = open(db, &folder);
            assert_eq!(signed_in_address(&client), None, "{text:?}");
            client.close();
        }
    }
}

const FOLDER: &str = "TOWNSQUARE_TEST_SESSION_FOLDER";

fn open_in(config: Config, folder: &Path) -> Client {
    Client::open(config.data_dir(folder).persist_session(true)).expect("opens")
}

/// Signs Ann up and in on `db` with the session file of `folder`, and closes the client.
fn save_session(db: &TestDatabase, folder: &Path) {
    let client = open_in(Config::new().database_url(db.url()).catalog_api_key(""), folder);
    client.auth().sign_up(ANN, PASSWORD).expect("signed up");
    client.auth().sign_in(ANN, PASSWORD).expect("signed in");
    client.close();
}

/// Opens the client of a child process, whose parent names the folder.
fn child_client() -> Client {
    open_in(inherited(), Path::new(&env::var(FOLDER).expect("the parent names it")))
}

/// Two processes refresh the session of one file. Each refresh spends a token, and a spent token ends the session.
fn assert_processes_share_a_session<T: Copy>(test: T, engine: Engine) {
    if role().is_some() {
        let client = child_client();
        for _ in 0..40 {
            client.auth().refresh_session().expect("the session goes on");
            client.spaces().get_public_spaces(1, 0).expect("a read takes the other processes' tokens over");
            client.spaces().create_space(NewSpace::named("x")).expect("a write, too");
            assert_eq!(signed_in_address(&client).as_deref(), Some(ANN));
        }
        client.close();
        return;
    }
    let Some(db) = TestDatabase::on(engine) else { return };
    let folder = temp_dir();
    save_session(&db, folder.path());
    let path = folder.path().to_str().expect("UTF-8");
    let children: Vec<_> = (0..3)
        .map(|_| db.child(name_of(&test), "refresher", &[(FOLDER, path)]).spawn().expect("the test binary starts"))
        .collect();
    for child in children {
        join_child(child);
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

/// A process that refreshes its session all the time is killed again and again. The next process has the session.
fn assert_a_killed_process_keeps_its_session<T: Copy>(test: T, engine: Engine) {
    if role().is_some() {
        let client = child_client();
        loop {
            client.auth().refresh_session().expect("the session goes on");
            let mut out = std::io::stdout().lock();
            writeln!(out, "REFRESHED").and_then(|()| out.flush()).expect("the parent listens");
        }
    }
    let Some(db) = TestDatabase::on(engine) else { return };
    let folder = temp_dir();
    save_session(&db, folder.path());
    let path = folder.path().to_str().expect("UTF-8");
    let mut rng = Rng::with_seed(seed(11));
    for round in 0..setting("TOWNSQUARE_TEST_KILLS", 25) {
        let child = db.child(name_of(&test), "refresher", &[(FOLDER, path)]).spawn().expect("starts");
        let delay = Duration::from_micros(rng.u64(..20_000));
        assert!(!kill_after(child, &["REFRESHED"], delay).is_empty(), "round {round}: the child has no session");
    }
    let client = open_in(Config::new().database_url(db.url()).catalog_api_key(""), folder.path());
    assert_eq!(signed_in_address(&client).as_deref(), Some(ANN));
    client.close();
}

#[test]
fn a_killed_process_keeps_its_session_on_sqlite() {
    assert_a_killed_process_keeps_its_session(a_killed_process_keeps_its_session_on_sqlite, Engine::Sqlite);
}

#[test]
fn a_killed_process_keeps_its_session_on_postgres() {
    assert_a_killed_process_keeps_its_session(a_killed_process_keeps_its_session_on_postgres, Engine::Postgres);
}
