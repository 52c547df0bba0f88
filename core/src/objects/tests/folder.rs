//! What concerns the folder alone: modes, links, crashes, and what others do in it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    time::Duration,
};

use super::{LONG, Store, data, key, names_in};
use crate::{config::FilesLocation, error::ErrorKind, objects::Objects};

/// The root of a store in a folder, and a folder beside it with a secret.
fn root_and_outside(store: &Store) -> (PathBuf, PathBuf) {
    let folder = store.folder.as_ref().expect("a store in a folder").path();
    let outside = folder.join("outside");
    fs::create_dir_all(&outside).expect("a folder");
    fs::write(outside.join("secret"), b"secret").expect("a file");
    (folder.join("files"), outside)
}

#[tokio::test]
async fn files_and_folders_are_private() {
    let store = Store::folder();
    store.put("a/b/x", b"1", "one").await.expect("written");
    drop(store.objects.lock(&key("x"), LONG).await.expect("locked"));
    let (root, _) = root_and_outside(&store);
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        assert_eq!(fs::metadata(&folder).expect("a folder").permissions().mode() & 0o777, 0o700, "{folder:?}");
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600, "{path:?}");
            }
        }
    }
}

#[tokio::test]
async fn nothing_is_read_or_written_through_a_link() {
    let store = Store::folder();
    store.put("a/x", b"1", "one").await.expect("written");
    let (root, outside) = root_and_outside(&store);
    symlink(&outside, root.join("spaces/link")).expect("a link to a folder");
    symlink(outside.join("secret"), root.join("spaces/file")).expect("a link to a file");
    symlink("a", root.join("spaces/inner")).expect("a link inside the root");
    symlink(&outside, root.join("private")).expect("a link in the place of a bucket");
    for path in ["link/secret", "file", "inner/x"] {
        assert_eq!(store.get(path).await, None, "{path}");
        assert_eq!(store.objects.digest(&key(path)).await.expect("an answer"), None);
    }
    assert_eq!(store.list("spaces").await, [("a/x".to_owned(), 1)]);
    assert_eq!(store.list("private").await, []);
    for path in ["link/secret", "link/new", "inner/x"] {
        let error = store.put(path, b"2", "two").await.expect_err("refused");
        assert_eq!(error.status(), 409, "{path}");
        store.objects.remove(&key(path)).await.expect("nothing to do");
    }
    // The object replaces the link itself.
    store.put("file", b"2", "two").await.expect("written");
    assert_eq!(store.get("file").await.as_deref(), Some(b"2".as_slice()));
    assert_eq!(names_in(&outside), ["secret"]);
    assert_eq!(fs::read(outside.join("secret")).expect("a file"), b"secret");
    assert_eq!(store.get("a/x").await.as_deref(), Some(b"1".as_slice()));
}

#[tokio::test]
async fn links_in_the_place_of_own_folders_are_refused() {
    for link in [".townsquare", ".townsquare/staging", ".townsquare/locks"] {
        let store = Store::folder();
        let (root, outside) = root_and_outside(&store);
        fs::create_dir_all(root.join(link).parent().expect("a parent")).expect("folders");
        symlink(&outside, root.join(link)).expect("a link");
        store.put("x", b"1", "one").await.expect_err("refused");
        store.objects.lock(&key("x"), LONG).await.expect_err("refused");
        assert_eq!(names_in(&outside), ["secret"], "{link}");
    }
}

#[tokio::test]
async fn a_file_in_the_place_of_a_folder_is_a_conflict_and_so_is_the_reverse() {
    let store = Store::folder();
    store.put("a", b"1", "one").await.expect("written");
    let error = store.put("a/b", b"2", "one").await.expect_err("a is a file");
    assert_eq!((error.kind(), error.status()), (ErrorKind::AlreadyExists, 409));
    store.put("c/d", b"3", "one").await.expect("written");
    let error = store.put("c", b"4", "one").await.expect_err("c is a folder");
    assert_eq!((error.kind(), error.status()), (ErrorKind::AlreadyExists, 409));
    assert_eq!(store.get("c").await, None);
    assert_eq!(store.get("a/b").await, None);
    store.objects.remove(&key("c")).await.expect("nothing to do");
    assert_eq!(store.list("spaces").await, [("a".to_owned(), 1), ("c/d".to_owned(), 1)]);
    super::wait_until_no_stage(&store).await;
}

#[tokio::test]
async fn empty_folders_that_a_crash_left_are_no_conflict() {
    let store = Store::folder();
    let (root, _) = root_and_outside(&store);
    fs::create_dir_all(root.join("spaces/a/b/c")).expect("folders");
    store.put("a", b"1", "one").await.expect("written");
    assert_eq!(store.get("a").await.as_deref(), Some(b"1".as_slice()));
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_does_not_block() {
    let store = Store::folder();
    store.put("x", b"1", "one").await.expect("written");
    let (root, _) = root_and_outside(&store);
    let status = std::process::Command::new("mkfifo").arg(root.join("spaces/pipe")).status().expect("mkfifo runs");
    assert!(status.success());
    assert_eq!(store.get("pipe").await, None);
    assert_eq!(store.list("spaces").await, [("x".to_owned(), 1)]);
}

#[tokio::test]
async fn empty_folders_are_removed_up_to_the_bucket() {
    let store = Store::folder();
    store.put("a/b/c/x", b"1", "one").await.expect("written");
    store.put("a/y", b"1", "one").await.expect("written");
    let (root, _) = root_and_outside(&store);
    store.objects.remove(&key("a/b/c/x")).await.expect("removed");
    assert_eq!(names_in(&root.join("spaces/a")), ["y"]);
    store.objects.remove(&key("a/y")).await.expect("removed");
    assert!(names_in(&root.join("spaces")).is_empty());
    assert!(root.join("spaces").is_dir());
}

#[tokio::test]
async fn writers_and_removers_of_neighbours_do_not_disturb_each_other() {
    let store = Store::folder();
    let tasks: Vec<_> = (0..4)
        .map(|number| {
            let objects = store.objects.clone();
            tokio::spawn(async move {
                let key = key(&format!("a/b/{number}"));
                for _ in 0..60 {
                    let mut stage = objects.stage(super::attributes("one"));
                    stage.write(b"1".as_slice().into()).await.expect("written");
                    let staged = stage.finish().await.expect("staged");
                    objects.install(staged, &key).await.expect("installed");
                    assert!(objects.open_object(&key).await.expect("an answer").is_some());
                    objects.remove(&key).await.expect("removed");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(store.list("spaces").await, []);
}

#[tokio::test]
async fn a_stage_of_a_dead_process_is_removed_and_that_of_a_live_one_stays() {
    let store = Store::folder();
    let staged = store.stage(&data(1_000), "one").await.expect("staged");
    let (root, _) = root_and_outside(&store);
    let staging = root.join(".townsquare/staging");
    let dead = staging.join("0".repeat(32));
    fs::write(&dead, b"bytes").expect("written");
    let second = store.second();
    assert_eq!(second.remove_stale_stages(Duration::from_secs(3_600)).await.expect("a number"), 0, "it is too young");
    assert_eq!(second.remove_stale_stages(Duration::ZERO).await.expect("a number"), 1);
    assert_eq!(names_in(&staging), std::slice::from_ref(&staged.id));
    store.objects.install(staged, &key("x")).await.expect("installed");
    assert_eq!(store.get("x").await, Some(data(1_000)));
}

#[tokio::test]
async fn two_clients_of_a_folder_exclude_each_other() {
    let store = Store::folder();
    let second = store.second();
    let lock = store.objects.lock(&key("x"), LONG).await.expect("locked");
    let error = second.lock(&key("x"), Duration::from_millis(20)).await.expect_err("held");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    drop(lock);
    drop(second.lock(&key("x"), LONG).await.expect("free"));
}

/// The program `flock` is part of Linux.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_lock_of_a_killed_process_is_free() {
    let store = Store::folder();
    drop(store.objects.lock(&key("x"), LONG).await.expect("locked"));
    let (root, _) = root_and_outside(&store);
    let stripe = crate::objects::locks::Locks::stripe_of(&key("x"));
    let file = root.join(format!(".townsquare/locks/{stripe:02x}"));
    let script = "flock -x 9; echo locked; exec sleep 60";
    let mut holder = std::process::Command::new("sh")
        .args(["-c", &format!("exec 9<>\"$0\"; {script}")])
        .arg(&file)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("sh starts");
    let mut line = String::new();
    let output = holder.stdout.as_mut().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a line");
    assert_eq!(line, "locked\n");
    let error = store.objects.lock(&key("x"), Duration::from_millis(50)).await.expect_err("held by the process");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let waiting = {
        let objects = store.objects.clone();
        tokio::spawn(async move { objects.lock(&key("x"), LONG).await })
    };
    holder.kill().expect("killed");
    holder.wait().expect("ended");
    waiting.await.expect("no panic").expect("free");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_an_error_and_still_read() {
    let store = Store::folder();
    store.put("x", b"1", "one").await.expect("written");
    let (root, _) = root_and_outside(&store);
    let staging = root.join(".townsquare/staging");
    fs::remove_dir(&staging).expect("empty");
    fs::write(&staging, b"in the way").expect("written");
    let second = store.second();
    let mut stage = second.stage(super::attributes("two"));
    stage.write(b"2".as_slice().into()).await.expect("buffered");
    stage.finish().await.expect_err("no staging folder");
    assert!(second.open_object(&key("x")).await.expect("an answer").is_some());
}

/// Whether the object at `x` is of the versions `one` and `two`.
#[cfg(target_os = "linux")]
async fn versions_of_x(store: &Store) -> [Option<bool>; 2] {
    let object = store.objects.open_object(&key("x")).await.expect("an answer").expect("an object");
    ["one", "two"].map(|version| object.is_of(version))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_object_has_its_version_unless_another_program_wrote_the_file() {
    let store = Store::folder();
    store.put("x", b"old", "one").await.expect("written");
    assert_eq!(versions_of_x(&store).await, [Some(true), Some(false)]);
    store.put("x", b"new", "two").await.expect("overwritten");
    assert_eq!(versions_of_x(&store).await, [Some(false), Some(true)]);
    let (root, _) = root_and_outside(&store);
    fs::write(root.join("spaces/other"), b"foreign").expect("written");
    fs::rename(root.join("spaces/other"), root.join("spaces/x")).expect("renamed");
    assert_eq!(versions_of_x(&store).await, [None, None]);
}

#[tokio::test]
async fn a_part_of_a_link_a_folder_or_a_foreign_path_is_not_opened() {
    let store = Store::folder();
    store.put("x", b"new", "two").await.expect("written");
    let (root, outside) = root_and_outside(&store);
    symlink(&outside, root.join("spaces/link")).expect("a link to a folder");
    fs::create_dir(root.join("spaces/folder")).expect("a folder");
    for path in ["link/secret", "folder", "missing"] {
        assert!(store.objects.open_range(&key(path), 0..6).await.expect("an answer").is_none(), "{path}");
    }
    for path in ["../outside/secret", "a/../x"] {
        store.objects.open_range(&key(path), 0..6).await.expect_err("refused");
    }
}

#[tokio::test]
async fn a_root_that_was_removed_is_created_again() {
    let store = Store::folder();
    store.put("x", b"1", "one").await.expect("written");
    let (root, _) = root_and_outside(&store);
    fs::remove_dir_all(&root).expect("removed");
    assert_eq!(store.get("x").await, None);
    store.put("y", b"2", "one").await.expect("written");
    assert_eq!(store.list("spaces").await, [("y".to_owned(), 1)]);
}

#[tokio::test]
async fn an_unused_store_creates_no_folder() {
    let store = Store::folder();
    assert_eq!(store.get("x").await, None);
    assert_eq!(store.list("spaces").await, []);
    store.objects.remove(&key("x")).await.expect("nothing to do");
    assert!(!store.folder.as_ref().expect("a folder").path().join("files").exists());
}

#[tokio::test]
async fn missing_folders_above_the_root_are_created() {
    let store = Store::folder();
    let root = store.folder.as_ref().expect("a folder").path().join("one/two/files");
    let objects = Objects::open(FilesLocation::Folder(root.clone()), store.runtime()).expect("a store");
    let mut stage = objects.stage(super::attributes("one"));
    stage.write(b"1".as_slice().into()).await.expect("buffered");
    objects.install(stage.finish().await.expect("staged"), &key("x")).await.expect("installed");
    assert_eq!(fs::read(root.join("spaces/x")).expect("a file"), b"1");
}
