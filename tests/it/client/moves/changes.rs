//! What is written to the source while a move runs, and between its calls.

use std::ops::ControlFlow;

use townsquare::{Config, ErrorKind, MoveOptions, Uuid, blocking::Client, spaces::NewSpace, storage::UploadOptions};
use townsquare_tests::{fixture::assert_kind, temp_dir};

use super::{HOSTILE, PASSWORD, Remote, SIZES, Town, assert_same_rows, config, content, files, move_to, rows, with_id};

#[test]
fn changes_of_the_source_are_copied_or_named() {
    let (town, folder) = (Town::new(), temp_dir());
    town.fill();
    // Once, after its table was copied.
    let mut has_changed = false;
    let report = town.client.move_to(config(folder.path()), MoveOptions::new(), |done, all| {
        if done == all && !std::mem::replace(&mut has_changed, true) {
            let raw = town.raw();
            raw.run(
                "DELETE FROM fidgets WHERE rowid = (SELECT min(rowid) FROM fidgets); UPDATE spaces SET name = 'new'",
            );
            town.service.spaces().create_space(with_id("first", Uuid::from_u128(1))).expect("created");
            let files = town.service.storage();
            files.upload("assets", "a/new", content(3, 70_000), UploadOptions::new()).expect("uploaded");
            files
                .upload("assets", &format!("files/{}/3", HOSTILE[1]), content(4, 70_000), UploadOptions::new())
                .expect("replaced");
            files.delete("assets", &format!("files/{}/{}", HOSTILE[4], SIZES[4])).expect("deleted");
        }
        ControlFlow::Continue(())
    });
    report.expect("the second copy has the changes");
    assert!(has_changed);
    assert_same_rows(&rows(&folder.path().join("townsquare.db")), &rows(&town.file()));
    let moved = Client::open(config(folder.path())).expect("opens");
    assert!(files(&moved.as_service()) == files(&town.service), "files");
    moved.close();

    // All the time.
    let second = temp_dir();
    let mut number = 1 << 20;
    let raw = town.raw();
    let failed = town.client.move_to(config(second.path()), MoveOptions::new(), |done, all| {
        if done == all {
            // Before every row that was copied.
            number -= 1;
            raw.run(&format!("INSERT INTO spaces (id, name) VALUES ('{}', 'x')", Uuid::from_u128(number)));
        }
        ControlFlow::Continue(())
    });
    let error = assert_kind(ErrorKind::Conflict, failed);
    assert!(error.message().contains("in the tables spaces."), "{error}");
    assert_kind(ErrorKind::Config, Client::open(config(second.path())));
    assert!(move_to(&town.client, config(second.path())).resumed);
}

/// Rows that refer to rows whose table was copied before, and values that moved from one row to another.
fn rows_that_do_not_fit(target: &Config) {
    let town = Town::new();
    town.fill();
    let (auth, service) = (town.client.auth(), &town.service);
    let sign_up = |name: &str| auth.sign_up(&format!("{name}@town.example"), PASSWORD).expect("signed up").id;
    let space = |owner: Uuid| service.spaces().create_space(NewSpace::named("home").owned_by(owner)).expect("created");
    let upload = |path: &str| {
        service.storage().upload("assets", path, content(5, 70_000), UploadOptions::new()).expect("uploaded");
    };
    let leaves = sign_up("leaves");
    space(leaves);
    upload("a-file");
    for stop_at in [4, 12, 20] {
        let mut calls = 0;
        let stopped = town.client.move_to(target.clone(), MoveOptions::new(), |_, _| {
            calls += 1;
            if calls > stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_kind(ErrorKind::Cancelled, stopped);
        space(sign_up(&format!("new-{stop_at}")));
        let raw = town.raw();
        // Two users exchange their addresses.
        raw.run(
            "UPDATE users SET email = 'x@town.example' WHERE email = 'ann@town.example';
             UPDATE users SET email = 'ann@town.example' WHERE email = 'bob@town.example';
             UPDATE users SET email = 'bob@town.example' WHERE email = 'x@town.example'",
        );
    }
    service.auth().delete_user(leaves).expect("deleted");
    space(sign_up("leaves"));
    service.storage().delete("assets", "a-file").expect("deleted");
    upload("a-file/b");
    let report = move_to(&town.client, target.clone());
    assert!(report.resumed);
    let moved = Client::open(target.clone()).expect("opens");
    assert!(files(&moved.as_service()) == files(service), "files");
    assert_eq!(
        moved.as_service().auth().list_users(100, None).expect("users"),
        service.auth().list_users(100, None).expect("users")
    );
    moved.close();
}

#[test]
fn what_was_written_between_the_calls_of_a_move_is_copied() {
    let folder = temp_dir();
    rows_that_do_not_fit(&config(folder.path()));
    if let Some(remote) = Remote::new() {
        rows_that_do_not_fit(&remote.config());
    }
}

/// A host that imports users from the callback of the move.
#[test]
fn users_with_spaces_that_come_during_a_move_are_copied() {
    let (town, folder) = (Town::new(), temp_dir());
    town.fill();
    let mut left = 20;
    let report = town.client.move_to(config(folder.path()), MoveOptions::new(), |_, _| {
        if left > 0 {
            left -= 1;
            let email = format!("late-{left}@town.example");
            let id = town.client.auth().sign_up(&email, PASSWORD).expect("signed up").id;
            town.service.spaces().create_space(NewSpace::named("home").owned_by(id)).expect("created");
        }
        ControlFlow::Continue(())
    });
    report.expect("moved");
    assert_same_rows(&rows(&folder.path().join("townsquare.db")), &rows(&town.file()));
}
