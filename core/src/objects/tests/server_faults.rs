//! Faults of an S3 server: it accepts a copy and keeps the object before, because the clock of a node is late, or it refuses a
//! removal.

use super::{LONG, Store, key};
use crate::{error::ErrorKind, objects::hold::Held};

#[tokio::test]
async fn an_install_that_the_server_ignores_fails_and_keeps_its_stage() {
    let store = Store::s3();
    store.put("x", b"one", "one").await.expect("written");
    let staged = store.stage(b"two", "two").await.expect("staged");
    let id = staged.id.clone();
    store.server.as_ref().expect("a server").ignore_copies(2);
    let error = store.objects.install(staged, &key("x")).await.expect_err("the server keeps the old object");
    assert_eq!((error.kind(), error.status()), (ErrorKind::Unavailable, 503), "{error:?}");
    let install = async || store.objects.install_stage(&id, 3, &key("x"), "two").await;
    install().await.expect_err("the server keeps the old object");
    assert_eq!(store.get("x").await.as_deref(), Some(b"one".as_slice()));
    assert!(install().await.expect("installed"));
    assert_eq!(store.get("x").await.as_deref(), Some(b"two".as_slice()));
}

#[tokio::test]
async fn the_removal_of_held_copies_is_repeated() {
    let store = Store::s3();
    let server = store.server.as_ref().expect("a server");
    store.put("x", b"one", "one").await.expect("written");
    let hold = store.objects.begin_hold().await.expect("a hold");
    assert_eq!(hold.add(&key("x"), "held", 3).await.expect("an answer"), Held::Yes);
    server.refuse_removals(2);
    hold.end().await.expect_err("the server refuses the removal");
    let held = server.folder().join("some/prefix/.townsquare/held");
    let removed = async {
        while !super::names_in(&held).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, removed).await.expect("the copy is removed");
    assert_eq!(server.removals_to_refuse(), 0);
}
