//! The conformance suite of the object stores: every test runs on a folder, in memory and, with the feature `s3`, on an S3 server.

mod conformance;
#[cfg(feature = "s3")]
mod copies;
#[cfg(unix)]
mod folder;
#[cfg(feature = "s3")]
mod s3;
#[path = "../../../tests/src/s3_server.rs"]
#[allow(unreachable_pub, dead_code, missing_debug_implementations, reason = "the fixture of the crate `tests`")]
pub(in crate::objects) mod s3_server;
#[cfg(feature = "s3")]
mod server_faults;

use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;

use self::s3_server::S3Server;
use super::{CHUNK, ObjectAttributes, ObjectKey, Objects, Staged};
use crate::{
    config::FilesLocation,
    error::Result,
    threads::{BlockingPool, RuntimeHandle},
};

const LONG: Duration = Duration::from_secs(20);

/// The threads that a store works on.
struct TestRuntime {
    handle: RuntimeHandle,
    tokio: Option<tokio::runtime::Runtime>,
}

impl TestRuntime {
    fn start() -> TestRuntime {
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let tokio = tokio.expect("a runtime");
        let handle = RuntimeHandle::new(tokio.handle().clone(), BlockingPool::new("test-objects", 4));
        TestRuntime { handle, tokio: Some(tokio) }
    }
}

impl Drop for TestRuntime {
    fn drop(&mut self) {
        // A test's own runtime must not wait for another one.
        if let Some(tokio) = self.tokio.take() {
            tokio.shutdown_background();
        }
        self.handle.blocking.close(LONG);
    }
}

/// A store with what it needs.
struct Store {
    name: &'static str,
    objects: Objects,
    runtime: TestRuntime,
    folder: Option<TempDir>,
    server: Option<S3Server>,
}

impl Store {
    fn folder() -> Store {
        let folder = TempDir::new().expect("a temporary folder");
        let location = FilesLocation::Folder(folder.path().join("files"));
        Store { folder: Some(folder), ..Store::open("folder", location) }
    }

    fn memory() -> Store {
        Store::open("memory", FilesLocation::Memory)
    }

    fn s3() -> Store {
        let server = S3Server::start();
        let location = remote(&server.url("some/prefix"));
        Store { server: Some(server), ..Store::open("s3", location) }
    }

    fn all() -> Vec<Store> {
        let mut stores = vec![Store::folder(), Store::memory()];
        if cfg!(feature = "s3") {
            stores.push(Store::s3());
        }
        stores
    }

    fn open(name: &'static str, location: FilesLocation) -> Store {
        let runtime = TestRuntime::start();
        let objects = Objects::open(location, &runtime.handle).expect("a store");
        Store { name, objects, runtime, folder: None, server: None }
    }

    fn runtime(&self) -> &RuntimeHandle {
        &self.runtime.handle
    }

    /// Another client of the same folder.
    fn second(&self) -> Objects {
        let folder = self.folder.as_ref().expect("a store in a folder").path().join("files");
        Objects::open(FilesLocation::Folder(folder), self.runtime()).expect("a store")
    }

    async fn put(&self, path: &str, data: &[u8], version: &str) -> Result<()> {
        let staged = self.stage(data, version).await?;
        self.objects.install(staged, &key(path)).await
    }

    async fn stage(&self, data: &[u8], version: &str) -> Result<Staged> {
        let mut stage = self.objects.stage(attributes(version));
        for part in data.chunks(700_000) {
            stage.write(Bytes::copy_from_slice(part)).await?;
        }
        stage.finish().await
    }

    async fn get(&self, path: &str) -> Option<Vec<u8>> {
        let reader = self.objects.open_object(&key(path)).await.expect("an answer")?;
        let mut data = Vec::new();
        while (data.len() as u64) < reader.size() {
            let position = data.len() as u64;
            data.extend_from_slice(&reader.read(position..position + CHUNK).await.expect("a chunk"));
        }
        assert_eq!(data.len() as u64, reader.size(), "{}", self.name);
        Some(data)
    }

    async fn list(&self, bucket: &str) -> Vec<(String, u64)> {
        let mut pages = self.objects.list(bucket).await.expect("a listing");
        let mut found = Vec::new();
        loop {
            let page = pages.next_page().await.expect("a page");
            if page.is_empty() {
                return found;
            }
            found.extend(page.into_iter().map(|object| (object.path, object.size)));
        }
    }
}

fn remote(url: &str) -> FilesLocation {
    FilesLocation::Remote { url: url.parse().expect("a URL"), environment: Vec::new() }
}

fn key(path: &str) -> ObjectKey {
    ObjectKey { bucket: "spaces".to_owned(), path: path.to_owned() }
}

fn attributes(version: &str) -> ObjectAttributes {
    ObjectAttributes {
        content_type: Some("text/plain".to_owned()),
        cache_control: Some("max-age=60".to_owned()),
        version: Some(version.to_owned()),
        metadata: vec![("colour".to_owned(), "red".to_owned())],
    }
}

/// Bytes that differ at every position.
fn data(size: usize) -> Vec<u8> {
    (0..size).map(|position| (position * 31 + (position >> 8) * 7) as u8).collect()
}

/// Waits until the stages of dropped values are removed.
async fn wait_until_no_stage(store: &Store) {
    let is_empty = async || match (&store.folder, &store.server) {
        (Some(folder), _) => names_in(&folder.path().join("files/.townsquare/staging")).is_empty(),
        (_, Some(server)) => names_in(&server.folder().join("some/prefix/.townsquare/staging")).is_empty(),
        // Nothing may be left for it to remove.
        _ => store.objects.remove_stale_stages(Duration::ZERO).await.expect("a number") == 0,
    };
    let waiting = async {
        while !is_empty().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("no stage is left");
}

fn names_in(folder: &std::path::Path) -> Vec<String> {
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
        }
        Err(_) => Vec::new(),
    }
}
