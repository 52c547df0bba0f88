//! Targets that a client has open, and what a killed move leaves of them.

use std::ops::ControlFlow;

use townsquare::{
    Config, ErrorKind, MoveOptions, MoveTarget, blocking::Client, check::CheckDepth, spaces::NewSpace,
    storage::UploadOptions,
};
use townsquare_tests::temp_dir;

use super::{PASSWORD, Remote, Town, assert_moved, assert_same_rows, config, files, go_on, move_to, rows};

/// The move replaces what the target has, so a write that it accepted would be lost.
fn an_open_target_refuses_writes(target: &Config) {
    let (town, open) = (Town::new(), Client::open(target.clone()).expect("opens"));
    let ann = town.fill();
    let service = open.as_service();
    let (before, mut refused) = (files(&town.service), Vec::new());
    town.client
        .move_to(target.clone(), MoveOptions::new(), |_, _| {
            let mut check = |error: Result<(), townsquare::Error>| refused.push(error.expect_err("refused"));
            check(service.spaces().create_space(NewSpace::named("mine")).map(drop));
            check(open.auth().sign_up("mine@town.example", PASSWORD).map(drop));
            for size in [5, 200_000] {
                let upload = service.storage().upload("assets", "mine", vec![1; size], UploadOptions::new());
                upload.expect_err("refused");
            }
            ControlFlow::Continue(())
        })
        .expect("moved");
    assert!(refused.len() > 10);
    for error in refused {
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unavailable, Some("25006")), "{error}");
        assert!(error.is_retryable() && error.message().contains("a move into this database runs"), "{error}");
    }
    // The client that had it open has the moved town, and writes again.
    assert_moved(&open, &ann, &before);
    service.spaces().create_space(NewSpace::named("mine")).expect("created");
    service.storage().upload("assets", "mine", b"small".to_vec(), UploadOptions::new()).expect("uploaded");
    let Err(error) = town.client.move_to(target.clone(), MoveOptions::new(), go_on) else { panic!("it has rows") };
    assert!(error.message().contains("has rows in"), "{error}");
    assert_eq!(open.check(CheckDepth::Full).expect("checked"), []);
    open.close();
}

#[test]
fn a_client_that_has_the_target_open_cannot_write_during_the_move() {
    let folder = temp_dir();
    an_open_target_refuses_writes(&config(&folder.path().join("town")));
    if let Some(remote) = Remote::new() {
        an_open_target_refuses_writes(&remote.config());
    }
}

#[test]
fn a_target_that_a_killed_move_left_empty_is_new() {
    let (town, folder) = (Town::new(), temp_dir());
    town.fill();
    std::fs::write(folder.path().join("townsquare.db"), "").expect("a file");
    assert_eq!(town.client.check_move(config(folder.path())).expect("accepted"), MoveTarget::New);
    move_to(&town.client, config(folder.path()));
    assert_same_rows(&rows(&folder.path().join("townsquare.db")), &rows(&town.file()));
}
