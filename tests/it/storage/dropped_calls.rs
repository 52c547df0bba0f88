//! A program drops the future of a file operation, as a timeout does. The operation may run on. Later calls of the program come
//! after it.

use std::time::Duration;

use townsquare::{
    ErrorKind,
    storage::{ListFiles, Overwrite, UploadOptions},
};

use super::fixture::{bytes, on_every_store};

/// Longer than a dropped operation runs on.
const LATER: Duration = Duration::from_millis(30);

const ROUNDS: u32 = 20;

on_every_store! {
    #[allow(clippy::disallowed_methods, reason = "what must not happen has no moment to wait for")]
    fn later_calls_wait_for_a_dropped_upload_or_delete(fixture: &Fixture) {
        let storage = fixture.db.async_service().storage();
        let upload = |content: Vec<u8>| storage.upload("assets", "a", content, UploadOptions::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let mut dropped = 0;
        runtime.block_on(async {
            for round in 0..ROUNDS {
                let limit = Duration::from_micros(300) * (round % 20);
                upload(b"first".to_vec()).await.expect("uploaded");
                if tokio::time::timeout(limit, upload(bytes(400_000, 1))).await.is_err() {
                    dropped += 1;
                    storage.delete("assets", "a").await.expect("one of the two is there");
                    assert!(!storage.exists("assets", "a").await.expect("asked"));
                    tokio::time::sleep(LATER).await;
                    assert!(!storage.exists("assets", "a").await.expect("asked"), "a deleted file is back, round {round}");
                }
                if tokio::time::timeout(limit, upload(bytes(400_000, 2))).await.is_err() {
                    let newer = upload(b"newer".to_vec()).await.expect("uploaded");
                    tokio::time::sleep(LATER).await;
                    let found = storage.stat("assets", "a").await.expect("a file");
                    assert_eq!(found.etag, newer.etag, "an older upload is back, round {round}");
                }
                if tokio::time::timeout(limit, upload(bytes(400_000, 4))).await.is_err() {
                    storage.upload("assets", "small", "moved", UploadOptions::new()).await.expect("uploaded");
                    let moved = storage.move_file("assets", "small", "a", Overwrite::Replace).await.expect("moved");
                    tokio::time::sleep(LATER).await;
                    let found = storage.stat("assets", "a").await.expect("a file");
                    assert_eq!(found.etag, moved.etag, "an older upload replaced a moved file, round {round}");
                }
                if tokio::time::timeout(limit, upload(bytes(400_000, 5))).await.is_err() {
                    storage.delete_prefix("assets", "").await.expect("deleted");
                    tokio::time::sleep(LATER).await;
                    let found = storage.list("assets", ListFiles::new()).await.expect("a list");
                    assert_eq!(found, [], "a deleted file is back, round {round}");
                }
                // A dropped upload stores the whole file or nothing (docs/src/rust.md).
                let (path, whole) = (format!("new-{round}"), bytes(400_000, 6));
                let new = storage.upload("assets", &path, whole.clone(), UploadOptions::new());
                if tokio::time::timeout(limit, new).await.is_err() {
                    let found = storage.download("assets", &path).await;
                    assert!(found.as_ref().is_ok_and(|found| *found == whole) || found.is_err_and(|error| error.kind() == ErrorKind::NotFound));
                }
                upload(bytes(400_000, 3)).await.expect("uploaded");
                if tokio::time::timeout(limit / 4, storage.delete("assets", "a")).await.is_err() {
                    upload(b"newer".to_vec()).await.expect("uploaded");
                    tokio::time::sleep(LATER).await;
                    assert!(storage.exists("assets", "a").await.expect("asked"), "an older delete came later, round {round}");
                }
            }
        });
        assert!(dropped > 0, "no upload took longer than its limit");
    }
}
