//! What concerns S3 alone: its URL, its attributes, and its failures.

use super::{LONG, Store, TestRuntime, attributes, data, key, remote, s3_server::SECRET_KEY};
use crate::{
    config::FilesLocation,
    error::ErrorKind,
    objects::{ObjectAttributes, Objects},
};

#[tokio::test]
async fn an_object_lies_at_its_key_with_its_attributes() {
    let store = Store::s3();
    let server = store.server.as_ref().expect("a server");
    for (path, size) in [("a b/x#1%é", 10), ("large", 9 << 20)] {
        store.put(path, &data(size), "version-1").await.expect("written");
        let file = server.folder().join("some/prefix/spaces").join(path);
        assert!(std::fs::read(file).is_ok_and(|found| found == data(size)));
        let reader = store.objects.open_object(&key(path)).await.expect("an answer").expect("an object");
        assert_eq!(
            (reader.size(), reader.is_of("version-1"), reader.is_of("one")),
            (size as u64, Some(true), Some(false))
        );
        let digest = store.objects.digest(&key(path)).await.expect("an answer").expect("an object");
        assert_eq!(digest.digest, None, "the version names the bytes");
    }
}

#[tokio::test]
async fn metadata_of_the_user_does_not_replace_the_version() {
    for store in [Store::memory(), Store::s3()] {
        for name in ["townsquare-etag", "Townsquare-Etag"] {
            let metadata = vec![(name.to_owned(), "two".to_owned()), ("colour".to_owned(), "red".to_owned())];
            let mut stage = store.objects.stage(ObjectAttributes { metadata, ..attributes("one") });
            stage.write(data(1_000).into()).await.expect("written");
            let staged = stage.finish().await.expect("staged");
            store.objects.install(staged, &key("x")).await.expect("installed");
            let reader = store.objects.open_object(&key("x")).await.expect("an answer").expect("an object");
            assert_eq!(reader.is_of("one"), Some(true), "{} {name}", store.name);
        }
    }
}

#[tokio::test]
async fn the_digest_of_a_foreign_object_is_that_of_its_bytes() {
    let store = Store::s3();
    let folder = store.server.as_ref().expect("a server").folder().join("some/prefix/spaces");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("x"), data(3_000_000)).expect("written");
    let digest = store.objects.digest(&key("x")).await.expect("an answer").expect("an object");
    assert!(digest.is_of(3_000_000, &blake3::hash(&data(3_000_000)).to_hex(), "any"));
    assert_eq!(digest.version, None);
}

#[tokio::test]
async fn a_reader_of_a_replaced_object_fails_instead_of_mixing_versions() {
    let store = Store::s3();
    store.put("x", &data(4_000_000), "one").await.expect("written");
    let reader = store.objects.open_object(&key("x")).await.expect("an answer").expect("an object");
    store.put("x", &data(4_000_001), "two").await.expect("overwritten");
    match reader.read(2_000_000..2_000_010).await {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
        Ok(found) => panic!("{found:?} is of another version"),
    }
}

/// The uploads in parts that the server has not completed or aborted.
fn open_uploads(store: &Store) -> usize {
    let folder = store.server.as_ref().expect("a server").folder();
    let names = super::names_in(folder.parent().expect("a folder"));
    names.iter().filter(|name| name.starts_with(".upload")).count()
}

#[tokio::test]
async fn an_upload_in_parts_that_is_dropped_is_aborted() {
    let store = Store::s3();
    let mut stage = store.objects.stage(attributes("one"));
    stage.write(data(20 << 20).into()).await.expect("parts are sent");
    assert_ne!(open_uploads(&store), 0);
    drop(stage);
    let aborted = async {
        while open_uploads(&store) != 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, aborted).await.expect("the upload is aborted");
}

#[tokio::test]
async fn an_upload_whose_client_is_closed_is_aborted() {
    let store = Store::s3();
    let mut stage = store.objects.stage(attributes("one"));
    stage.write(data(20 << 20).into()).await.expect("parts are sent");
    store.objects.end_uploads();
    assert_eq!(open_uploads(&store), 0);
    stage.write(data(20 << 20).into()).await.expect_err("aborted");
}

#[tokio::test]
async fn a_wrong_secret_is_an_error_that_does_not_show_it() {
    let store = Store::s3();
    let url = store.server.as_ref().expect("a server").url("").replace(SECRET_KEY, "MARKED-wrong");
    let objects = Objects::open(remote(&url), store.runtime()).expect("no call yet");
    let error = objects.open_object(&key("x")).await.map(drop).expect_err("refused");
    assert_eq!((error.kind(), error.status()), (ErrorKind::Internal, 500), "{error:?}");
    assert!(!format!("{error:?} {objects:?}").contains("MARKED"), "{error:?}");
}

#[tokio::test]
async fn the_error_of_a_server_that_is_gone_names_its_host() {
    let mut store = Store::s3();
    let url = store.server.take().expect("a server").url("");
    let host = url.split("http://").nth(1).and_then(|rest| rest.split('&').next()).expect("an endpoint");
    let read = store.objects.open_object(&key("x")).await.map(drop).expect_err("no answer");
    let written = store.put("x", &data(10), "one").await.expect_err("no answer");
    for error in [read, written] {
        assert_eq!((error.kind(), error.status()), (ErrorKind::Unavailable, 503), "{error:?}");
        let reason = format!("The object store does not answer as expected: cannot connect to {host}: ");
        assert!(error.message().contains(&reason) && error.message().contains("refused"), "{error}");
        assert!(!format!("{error} {error:?}").contains(SECRET_KEY), "{error:?}");
    }
}

#[test]
fn options_come_from_the_query_and_then_from_the_environment() {
    let runtime = TestRuntime::start();
    let open = |url: &str, environment: &[(&str, &str)]| {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Objects::open(FilesLocation::Remote { url: url.parse().expect("a URL"), environment }, &runtime.handle)
    };
    for url in ["s3://town/prefix", "s3://town?region=eu-west-1", "s3://town?endpoint=http://127.0.0.1:1"] {
        open(url, &[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"), ("AWS_UNKNOWN", "c")]).expect(url);
    }
    open("az://container/x?account_name=a&access_key=YQ==", &[]).expect("azure");
    open("gs://bucket/x?skip_signature=true", &[]).expect("google");
    for url in ["s3://town?colour=MARKED", "http://town/x", "ftp://town"] {
        let error = open(url, &[]).expect_err(url);
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains("storage_url") && !format!("{error:?}").contains("MARKED"), "{error:?}");
    }
}
