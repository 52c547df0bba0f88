//! What every store does.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{LONG, Store, attributes, data, key, wait_until_no_stage};
use crate::{
    error::ErrorKind,
    objects::{CHUNK, ObjectKey},
};

#[tokio::test]
async fn bytes_come_back_as_they_were_written() {
    for store in Store::all() {
        for size in [0, 1, 4096, (128 << 10) + 1, 1 << 20, (1 << 20) + 1, 3_000_000, (17 << 20) + 3] {
            let bytes = data(size);
            let staged = store.stage(&bytes, "one").await.expect("staged");
            assert_eq!((staged.size, staged.digest.as_str()), (size as u64, &*blake3::hash(&bytes).to_hex()));
            store.objects.install(staged, &key("a/b")).await.expect("installed");
            assert!(store.get("a/b").await.is_some_and(|found| found == bytes), "{} of {size}", store.name);
            let digest = store.objects.digest(&key("a/b")).await.expect("an answer").expect("an object");
            assert!(digest.is_of(size as u64, &blake3::hash(&bytes).to_hex(), "one"), "{digest:?}");
            assert!(!digest.is_of(size as u64, &blake3::hash(b"other").to_hex(), "two"));
            assert!(!digest.is_of(size as u64 + 1, &blake3::hash(&bytes).to_hex(), "one"));
        }
        assert_eq!(store.objects.list("..").await.expect_err("refused").kind(), ErrorKind::InvalidInput);
    }
}

#[tokio::test]
async fn chunks_of_any_size_are_joined_and_small_ones_keep_no_allocation() {
    for store in Store::all() {
        let bytes = data(12 << 20);
        let (mut stage, mut at) = (store.objects.stage(attributes("one")), 0);
        for size in [1, 63 << 10, 3, 300 << 10, 1, 9 << 20, 5, 64 << 10, 1].into_iter().chain(std::iter::repeat_n(7, 9))
        {
            let allocation = Bytes::from(bytes[at..].to_vec());
            stage.write(allocation.slice(..size)).await.expect("written");
            assert!(size > 128 << 10 || allocation.is_unique(), "{} keeps {size}", store.name);
            at += size;
        }
        let staged = stage.finish().await.expect("staged");
        assert_eq!((staged.size, staged.digest.as_str()), (at as u64, &*blake3::hash(&bytes[..at]).to_hex()));
        store.objects.install(staged, &key("x")).await.expect("installed");
        assert!(store.get("x").await.is_some_and(|found| found == bytes[..at]), "{}", store.name);
    }
}

#[tokio::test]
async fn an_overwrite_replaces_the_whole_object() {
    for store in Store::all() {
        store.put("x", &data(2_000_000), "one").await.expect("written");
        store.put("x", b"short", "two").await.expect("overwritten");
        assert_eq!(store.get("x").await.as_deref(), Some(b"short".as_slice()), "{}", store.name);
        assert_eq!(store.list("spaces").await, [("x".to_owned(), 5)]);
    }
}

#[tokio::test]
async fn a_range_is_clipped_to_the_size() {
    for store in Store::all() {
        for size in [10_usize, 3_000_000] {
            let bytes = data(size);
            store.put("x", &bytes, "one").await.expect("written");
            let reader = store.objects.open_object(&key("x")).await.expect("an answer").expect("an object");
            for range in
                [0..0, 0..1, 3..7, size - 2..size, size - 2..size + 9, size..size + 1, size + 5..size + 9, 0..size]
            {
                let found = reader.read(range.start as u64..range.end as u64).await.expect("bytes");
                let end = range.end.min(size);
                assert_eq!(&found[..], &bytes[range.start.min(end)..end], "{} {range:?}", store.name);
            }
        }
    }
}

#[tokio::test]
async fn a_missing_object_is_none_and_may_be_removed() {
    for store in Store::all() {
        for path in ["x", "a/b/c"] {
            assert!(store.objects.open_object(&key(path)).await.expect("an answer").is_none(), "{}", store.name);
            assert!(store.objects.digest(&key(path)).await.expect("an answer").is_none());
            store.objects.remove(&key(path)).await.expect("nothing to do");
        }
        assert_eq!(store.list("spaces").await, []);
        store.objects.discard(&"0".repeat(32)).await.expect("nothing to do");
        assert_eq!(store.objects.remove_stale_stages(Duration::ZERO).await.expect("nothing to do"), 0);
    }
}

#[tokio::test]
async fn a_removed_object_is_gone_and_its_neighbour_stays() {
    for store in Store::all() {
        store.put("a/b/x", b"1", "one").await.expect("written");
        store.put("a/y", b"2", "one").await.expect("written");
        store.objects.remove(&key("a/b/x")).await.expect("removed");
        assert_eq!(store.get("a/b/x").await, None, "{}", store.name);
        assert_eq!(store.list("spaces").await, [("a/y".to_owned(), 1)]);
        // The folder `b` is gone, so that a file may have its name.
        store.put("a/b", b"3", "one").await.expect("written");
        assert_eq!(store.get("a/b").await.as_deref(), Some(b"3".as_slice()));
    }
}

#[tokio::test]
async fn objects_are_listed_in_the_order_of_their_bytes() {
    let paths = ["a!", "a.txt", "a/b", "a/b c/d", "a/é", "a/x#12", "a/100%25", "a0", "Z", "deep/er/and/deeper", "ü"];
    let mut expected: Vec<_> = paths.iter().map(|path| ((*path).to_owned(), path.len() as u64)).collect();
    expected.sort();
    for store in Store::all() {
        for path in paths {
            store.put(path, path.as_bytes(), "one").await.expect("written");
        }
        let other = ObjectKey { bucket: "assets".to_owned(), path: "other".to_owned() };
        let staged = store.stage(b"other", "one").await.expect("staged");
        store.objects.install(staged, &other).await.expect("installed");
        assert_eq!(store.list("spaces").await, expected, "{}", store.name);
        for path in paths {
            assert_eq!(store.get(path).await.as_deref(), Some(path.as_bytes()), "{} {path}", store.name);
        }
        assert_eq!(store.list("nothing").await, []);
    }
}

#[tokio::test]
async fn a_long_listing_has_every_object_once() {
    for store in [Store::folder(), Store::memory()] {
        for number in 0..1_203 {
            store.put(&format!("f{}/n{number}", number % 3), b"1", "one").await.expect("written");
        }
        let listed = store.list("spaces").await;
        assert_eq!(listed.len(), 1_203, "{}", store.name);
        assert!(listed.is_sorted());
    }
}

#[tokio::test]
async fn a_dropped_stage_leaves_nothing() {
    for store in Store::all() {
        for size in [10, 9 << 20] {
            let mut stage = store.objects.stage(attributes("one"));
            stage.write(data(size).into()).await.expect("written");
            drop(stage);
            drop(store.stage(&data(size), "one").await.expect("staged"));
        }
        wait_until_no_stage(&store).await;
        assert_eq!(store.list("spaces").await, [], "{}", store.name);
    }
}

#[tokio::test]
async fn a_discarded_stage_cannot_be_installed() {
    for store in Store::all() {
        store.put("x", b"old", "one").await.expect("written");
        let staged = store.stage(b"new", "two").await.expect("staged");
        store.objects.discard(&staged.id).await.expect("discarded");
        store.objects.install(staged, &key("x")).await.expect_err("the stage is gone");
        assert_eq!(store.get("x").await.as_deref(), Some(b"old".as_slice()), "{}", store.name);
    }
}

#[tokio::test]
async fn hostile_keys_are_refused() {
    for store in Store::all() {
        let paths = ["", "/", "/x", "x/", "a//b", ".", "..", "../x", "a/../b", "a/./b", "a\\b", "a\0b"];
        let buckets = ["", ".", "..", "a/b", ".townsquare", "a\\b"];
        let of_path = |path: &str| key(path);
        let of_bucket = |bucket: &str| ObjectKey { bucket: bucket.to_owned(), path: "x".to_owned() };
        for key in paths.map(of_path).into_iter().chain(buckets.map(of_bucket)) {
            let refusals = [
                store.objects.open_object(&key).await.map(drop).expect_err("refused"),
                store.objects.digest(&key).await.map(drop).expect_err("refused"),
                store.objects.remove(&key).await.expect_err("refused"),
                store
                    .objects
                    .install(store.stage(b"1", "one").await.expect("staged"), &key)
                    .await
                    .expect_err("refused"),
            ];
            for error in refusals {
                assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidInput, 400), "{key:?}");
            }
        }
        for id in ["", "..", "../../spaces/x", "x"] {
            assert_eq!(store.objects.discard(id).await.expect_err("refused").status(), 400);
        }
        assert_eq!(store.list("spaces").await, [], "{}", store.name);
    }
}

#[tokio::test]
async fn a_reader_keeps_its_version_while_others_overwrite() {
    for store in Store::all() {
        let old = data(4_000_000);
        store.put("x", &old, "one").await.expect("written");
        let reader = store.objects.open_object(&key("x")).await.expect("an answer").expect("an object");
        let mut found = reader.read(0..CHUNK).await.expect("bytes").to_vec();
        store.put("x", b"new", "two").await.expect("overwritten");
        while (found.len() as u64) < reader.size() {
            let position = found.len() as u64;
            found.extend_from_slice(&reader.read(position..position + CHUNK).await.expect("a chunk"));
        }
        assert!(found == old, "{}", store.name);
        // Ranges one after the other, as a file object of Python reads them.
        store.put("x", &old, "three").await.expect("written");
        let reader = store.objects.open_range(&key("x"), 0..4_000_000).await.expect("an answer");
        let reader = reader.expect("an object");
        let mut found = reader.read(0..700_000).await.expect("bytes").to_vec();
        store.put("x", b"new", "four").await.expect("overwritten");
        for start in [700_000, 1_400_000, 2_100_000, 2_800_000, 3_500_000] {
            found.extend_from_slice(&reader.read(start..start + 700_000).await.expect("bytes"));
        }
        assert!(found == old, "{}", store.name);
        // A part that was asked for when the object was opened.
        store.put("x", &old, "five").await.expect("written");
        let part = 1_500_000..3_500_000;
        let reader = store.objects.open_range(&key("x"), part.clone()).await.expect("an answer");
        store.put("x", b"new", "six").await.expect("overwritten");
        let found = reader.expect("an object").read(part).await.expect("bytes");
        assert!(found == old[1_500_000..3_500_000], "{}", store.name);
    }
}

#[tokio::test]
async fn concurrent_writers_leave_one_whole_object() {
    for store in Store::all() {
        // The callers of a store without locks take a lease.
        let lease = Arc::new(tokio::sync::Mutex::new(()));
        let writers: Vec<_> = (0_u8..12)
            .map(|writer| {
                let (objects, lease) = (store.objects.clone(), Arc::clone(&lease));
                tokio::spawn(async move {
                    let size = 1_000 + usize::from(writer) * 40_000;
                    let mut stage = objects.stage(attributes(&writer.to_string()));
                    stage.write(Bytes::from(vec![writer; size])).await.expect("written");
                    let staged = stage.finish().await.expect("staged");
                    let lock = objects.lock(&key("a/x"), LONG).await.expect("locked");
                    assert_eq!(lock.is_some(), objects.has_locks());
                    let _lease = if lock.is_none() { Some(lease.lock().await) } else { None };
                    objects.install(staged, &key("a/x")).await.expect("installed");
                })
            })
            .collect();
        for writer in writers {
            writer.await.expect("no panic");
        }
        let found = store.get("a/x").await.expect("an object");
        assert_eq!(found.len(), 1_000 + usize::from(found[0]) * 40_000, "{}", store.name);
        assert!(found.iter().all(|byte| *byte == found[0]));
        wait_until_no_stage(&store).await;
    }
}

#[tokio::test]
async fn a_lock_excludes_a_second_writer_until_it_is_dropped() {
    for store in [Store::folder(), Store::memory()] {
        let lock = store.objects.lock(&key("x"), LONG).await.expect("locked");
        let error = store.objects.lock(&key("x"), Duration::from_millis(20)).await.expect_err("held");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", store.name);
        drop(lock);
        drop(store.objects.lock(&key("x"), LONG).await.expect("free"));
    }
}

#[tokio::test]
async fn a_store_has_the_id_that_it_was_given() {
    for store in Store::all() {
        let read = async || store.objects.read_id().await.expect("an answer");
        let expected = if store.objects.is_volatile() { [Some("memory"), Some("memory")] } else { [None, Some("one")] };
        assert_eq!(read().await.as_deref(), expected[0], "{}", store.name);
        assert!(store.objects.write_id("one", true).await.expect("written"), "{}", store.name);
        assert_eq!(read().await.as_deref(), expected[1], "{}", store.name);
        if store.folder.is_none() && !store.objects.is_volatile() {
            assert!(!store.objects.write_id("two", true).await.expect("an answer"), "{} has an id", store.name);
            assert_eq!(read().await.as_deref(), expected[1], "{}", store.name);
            assert!(store.objects.write_id("two", false).await.expect("written"), "{}", store.name);
            assert_eq!(read().await.as_deref(), Some("two"), "{}", store.name);
        }
        assert_eq!(store.list("spaces").await, [], "it is no object of a bucket");
    }
}

#[tokio::test]
async fn a_second_name_shares_the_bytes_and_outlives_the_first() {
    for store in Store::all() {
        let bytes = data(1_000);
        store.put("x", &bytes, "one").await.expect("written");
        let link = async |path: &str, size| store.objects.stage_link(&key(path), size, "digest".to_owned()).await;
        assert!(link("x", 999).await.expect("an answer").is_none(), "{}: another size", store.name);
        assert!(link("none", 1_000).await.expect("an answer").is_none(), "{}", store.name);
        drop(link("x", 1_000).await.expect("an answer"));
        wait_until_no_stage(&store).await;
        assert!(store.get("x").await.is_some_and(|found| found == bytes));
        let Some(staged) = link("x", 1_000).await.expect("an answer") else {
            assert!(store.folder.is_none(), "a folder has second names");
            continue;
        };
        assert_eq!((staged.size, staged.digest.as_str()), (1_000, "digest"));
        store.objects.install(staged, &key("a/y")).await.expect("installed");
        store.objects.remove(&key("x")).await.expect("removed");
        assert!(store.get("a/y").await.is_some_and(|found| found == bytes));
        assert_eq!(store.list("spaces").await, [("a/y".to_owned(), 1_000)]);
    }
}

#[tokio::test]
async fn a_folder_with_another_id_refuses_every_access() {
    let store = Store::folder();
    store.put("x", b"bytes", "one").await.expect("written");
    store.objects.write_id("one", true).await.expect("written");
    store.objects.expect_id(Some("one"));
    assert!(store.get("x").await.is_some());
    store.objects.expect_id(Some("two"));
    store.objects.leave();
    let refused = store.objects.open_object(&key("x")).await.expect_err("another folder");
    assert_eq!(refused.status(), 503, "{refused:?}");
    let refused = store.put("y", b"bytes", "one").await.expect_err("another folder");
    assert_eq!(refused.status(), 503, "{refused:?}");
    store.objects.expect_id(Some("one"));
    assert_eq!(store.list("spaces").await, [("x".to_owned(), 5)]);
}
