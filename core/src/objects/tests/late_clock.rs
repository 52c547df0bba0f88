//! Faults of a store that its client sees late: it accepts a copy and keeps the object before, because the clock of a node is late,
//! or it refuses a removal for a time.

use std::{
    fmt,
    ops::Range,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, memory::InMemory, path::Path,
};

use super::{LONG, TestRuntime, attributes, key};
use crate::{error::ErrorKind, objects::remote::Remote};

type Future<'a, T> = Pin<Box<dyn core::future::Future<Output = Result<T>> + Send + 'a>>;

#[derive(Debug)]
struct LateClock {
    store: InMemory,
    /// How many copies it ignores.
    ignored: Arc<AtomicUsize>,
    /// How many removals it refuses.
    refused: Arc<AtomicUsize>,
}

/// Counts down. False at zero.
fn counts_down(counter: &AtomicUsize) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl fmt::Display for LateClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("late clock")
    }
}

impl ObjectStore for LateClock {
    fn put_opts<'s, 'p, 'f>(
        &'s self,
        location: &'p Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Future<'f, PutResult>
    where
        's: 'f,
        'p: 'f,
        Self: 'f,
    {
        self.store.put_opts(location, payload, opts)
    }

    fn put_multipart_opts<'s, 'p, 'f>(
        &'s self,
        location: &'p Path,
        opts: PutMultipartOptions,
    ) -> Future<'f, Box<dyn MultipartUpload>>
    where
        's: 'f,
        'p: 'f,
        Self: 'f,
    {
        self.store.put_multipart_opts(location, opts)
    }

    fn get_opts<'s, 'p, 'f>(&'s self, location: &'p Path, options: GetOptions) -> Future<'f, GetResult>
    where
        's: 'f,
        'p: 'f,
        Self: 'f,
    {
        self.store.get_opts(location, options)
    }

    fn get_ranges<'s, 'p, 'r, 'f>(&'s self, location: &'p Path, ranges: &'r [Range<u64>]) -> Future<'f, Vec<Bytes>>
    where
        's: 'f,
        'p: 'f,
        'r: 'f,
        Self: 'f,
    {
        self.store.get_ranges(location, ranges)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        if counts_down(&self.refused) {
            let refused = object_store::Error::Generic { store: "late clock", source: "refused".into() };
            return stream::once(async { Err(refused) }).boxed();
        }
        self.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.store.list(prefix)
    }

    fn list_with_delimiter<'s, 'p, 'f>(&'s self, prefix: Option<&'p Path>) -> Future<'f, ListResult>
    where
        's: 'f,
        'p: 'f,
        Self: 'f,
    {
        self.store.list_with_delimiter(prefix)
    }

    fn copy_opts<'s, 'p, 't, 'f>(&'s self, from: &'p Path, to: &'t Path, options: CopyOptions) -> Future<'f, ()>
    where
        's: 'f,
        'p: 'f,
        't: 'f,
        Self: 'f,
    {
        if counts_down(&self.ignored) {
            return Box::pin(async { Ok(()) });
        }
        self.store.copy_opts(from, to, options)
    }
}

/// A store with an object of the version `one` at `x`, a stage of the version `two`, and the counter of copies to ignore.
async fn store(runtime: &TestRuntime) -> (Remote, crate::objects::remote::RemoteStaged, Arc<AtomicUsize>) {
    let ignored = Arc::new(AtomicUsize::new(0));
    let late = LateClock { store: InMemory::new(), ignored: Arc::clone(&ignored), refused: Arc::default() };
    let remote = Remote::simulated(Box::new(late), runtime.handle.clone());
    let stage = async |version: &str| {
        let mut stage = remote.stage(attributes(version));
        stage.write(Bytes::copy_from_slice(version.as_bytes())).await.expect("staged");
        stage.finish().await.expect("staged").0
    };
    remote.install(stage("one").await, &key("x")).await.expect("installed");
    let staged = stage("two").await;
    (remote, staged, ignored)
}

async fn version(remote: &Remote) -> Option<String> {
    remote.stat(&key("x")).await.expect("an answer").and_then(|found| found.version)
}

#[tokio::test]
async fn an_install_that_the_store_ignores_fails_and_keeps_its_stage() {
    let runtime = TestRuntime::start();
    let (remote, staged, ignored) = store(&runtime).await;
    let id = staged.id().to_owned();
    ignored.store(2, Ordering::SeqCst);
    let error = remote.install(staged, &key("x")).await.expect_err("the store keeps the old object");
    assert_eq!((error.kind(), error.status()), (ErrorKind::Unavailable, 503), "{error:?}");
    remote.install_stage(&id, &key("x"), Some("two")).await.expect_err("the store keeps the old object");
    assert_eq!(version(&remote).await.as_deref(), Some("one"));
    assert!(remote.install_stage(&id, &key("x"), Some("two")).await.expect("installed"));
    assert_eq!(version(&remote).await.as_deref(), Some("two"));
}

#[tokio::test]
async fn the_removal_of_held_copies_is_repeated() {
    let runtime = TestRuntime::start();
    let refused = Arc::new(AtomicUsize::new(0));
    let late = LateClock { store: InMemory::new(), ignored: Arc::default(), refused: Arc::clone(&refused) };
    let remote = Remote::simulated(Box::new(late), runtime.handle.clone());
    let mut stage = remote.stage(attributes("one"));
    stage.write(Bytes::from_static(b"one")).await.expect("staged");
    remote.install(stage.finish().await.expect("staged").0, &key("x")).await.expect("installed");
    let hold = remote.begin_hold();
    hold.add(&key("x"), "held").await.expect("held");
    refused.store(1, Ordering::SeqCst);
    hold.end_later(["held".to_owned()].into());
    let removed = async {
        while hold.open("held").await.expect("an answer").is_some() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, removed).await.expect("the copy is removed");
    assert_eq!(refused.load(Ordering::SeqCst), 0);
}
