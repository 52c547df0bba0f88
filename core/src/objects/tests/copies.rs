//! Copies inside S3 with attributes of their own.

use std::time::Duration;

use super::{Store, attributes, data, key, names_in, remote, wait_until_no_stage};
use crate::{
    error::Result,
    objects::{ObjectAttributes, ObjectReader, Objects, Staged},
};

/// How long a call gets to do something.
const MOMENT: Duration = Duration::from_millis(300);

async fn open(objects: &Objects, path: &str) -> ObjectReader {
    objects.open_range(&key(path), 0..0).await.expect("an answer").expect("an object")
}

async fn copy(store: &Store, attributes: ObjectAttributes) -> Result<Option<Staged>> {
    store.objects.stage_copy(&open(&store.objects, "x").await, "digest".to_owned(), attributes).await
}

#[tokio::test]
async fn a_copy_has_its_own_version_and_the_bytes_of_its_source() {
    let store = Store::s3();
    for (size, path) in [(1, "y"), (1_000, "a b/x#1%é+"), (9 << 20, "z")] {
        store.put("x", &data(size), "one").await.expect("written");
        let staged = copy(&store, attributes("two")).await.expect("an answer").expect("a stage");
        assert_eq!((staged.size, staged.digest.as_str()), (size as u64, "digest"));
        store.objects.install(staged, &key(path)).await.expect("installed");
        assert!(store.get(path).await.is_some_and(|found| found == data(size)));
        assert_eq!(open(&store.objects, path).await.is_of("two"), Some(true));
        assert_eq!(open(&store.objects, "x").await.is_of("one"), Some(true));
    }
    wait_until_no_stage(&store).await;
}

#[tokio::test]
async fn only_s3_copies_with_other_attributes() {
    for store in Store::all() {
        store.put("x", &data(1_000), "one").await.expect("written");
        let is_s3 = store.server.is_some();
        assert_eq!(store.objects.copies_on_server(), is_s3, "{}", store.name);
        assert_eq!(copy(&store, attributes("two")).await.expect("an answer").is_some(), is_s3, "{}", store.name);
        wait_until_no_stage(&store).await;
    }
}

/// Each of these options changes the headers that are signed.
#[tokio::test]
async fn a_copy_is_signed_as_the_options_say() {
    let store = Store::s3();
    store.put("x", &data(1_000), "one").await.expect("written");
    let url = store.server.as_ref().expect("a server").url("some/prefix");
    for options in [
        "",
        "&unsigned_payload=true",
        "&checksum_algorithm=sha256",
        "&request_payer=true",
        "&session_token=a-token",
        "&server_side_encryption=AES256",
    ] {
        let objects = Objects::open(remote(&format!("{url}{options}")), store.runtime()).expect("a store");
        let source = open(&objects, "x").await;
        let staged = objects.stage_copy(&source, "digest".to_owned(), attributes("two")).await.expect("an answer");
        objects.install(staged.unwrap_or_else(|| panic!("{options}: no stage")), &key("y")).await.expect("installed");
        assert_eq!(open(&objects, "y").await.is_of("two"), Some(true), "{options}");
    }
}

#[tokio::test]
async fn a_value_that_is_no_header_is_not_sent() {
    let store = Store::s3();
    store.put("x", &data(1_000), "one").await.expect("written");
    let with =
        |value: &str| ObjectAttributes { metadata: vec![("colour".to_owned(), value.to_owned())], ..attributes("two") };
    assert!(copy(&store, with("red\r\nx-amz-acl: public-read")).await.expect("an answer").is_none());
    for value in ["red", "a  b", "", "größe"] {
        assert!(copy(&store, with(value)).await.expect("an answer").is_some(), "{value:?}");
    }
}

#[tokio::test]
async fn a_replaced_or_removed_source_is_not_copied() {
    let store = Store::s3();
    store.put("x", &data(1_000), "one").await.expect("written");
    let source = open(&store.objects, "x").await;
    let copy = async || store.objects.stage_copy(&source, "digest".to_owned(), attributes("three")).await;
    store.put("x", &data(1_001), "two").await.expect("replaced");
    assert!(copy().await.expect("an answer").is_none(), "it was replaced");
    store.objects.remove(&key("x")).await.expect("removed");
    assert!(copy().await.expect("an answer").is_none(), "it was removed");
    wait_until_no_stage(&store).await;
}

#[tokio::test]
async fn a_copy_whose_caller_is_gone_leaves_no_stage() {
    let store = Store::s3();
    store.put("x", &data(1_000), "one").await.expect("written");
    let server = store.server.as_ref().expect("a server");
    let held = std::thread::scope(|scope| scope.spawn(|| server.hold_copies_of("spaces/x")).join().expect("no panic"));
    let source = open(&store.objects, "x").await;
    let copy = store.objects.stage_copy(&source, "digest".to_owned(), attributes("two"));
    tokio::time::timeout(MOMENT, copy).await.map(drop).expect_err("the copy is held");
    drop(held);
    let stages = server.folder().join("some/prefix/.townsquare/staging");
    let is_staged = async {
        while names_in(&stages).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    // The stage may be removed before it is seen.
    let _ = tokio::time::timeout(MOMENT, is_staged).await;
    wait_until_no_stage(&store).await;
}
