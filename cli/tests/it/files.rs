//! The tests of `files`.

use std::{
    fs,
    io::{Read as _, Write as _},
    process::Stdio,
};

#[cfg(unix)]
use nix::sys::signal::Signal;

use crate::fixture::Fixture;
#[cfg(unix)]
use crate::fixture::{interrupted, signal};

#[test]
fn a_file_is_put_listed_read_and_deleted() {
    let town = Fixture::seeded();
    let source = town.file("hello.txt", "hello");
    let info = town.run(&["files", "put", &source, "assets/notes/hello.txt", "--json"]).json();
    assert_eq!((&info["size"], &info["path"]), (&5.into(), &"notes/hello.txt".into()));
    town.run(&["files", "put", &source, "assets/notes/hello.txt", "--new"]).failed(1, "Upload failed");
    town.run_with_input(&["files", "put", "-", "assets/notes/input", "--type", "text/plain"], "from a pipe")
        .succeeded();

    let list = town.run(&["files", "ls", "assets/notes/", "--json"]).json();
    let paths: Vec<_> = list["files"].as_array().expect("files").iter().map(|file| file["path"].as_str()).collect();
    assert_eq!(paths, [Some("notes/hello.txt"), Some("notes/input")]);
    assert!(town.run(&["files", "ls", "assets"]).succeeded().out.contains("notes/hello.txt"));

    assert_eq!(town.run(&["files", "get", "assets/notes/input"]).succeeded().out, "from a pipe");
    town.run(&["files", "get", "assets/notes/hello.txt", "copy.txt"]).succeeded();
    assert_eq!(fs::read_to_string(town.path("copy.txt")).expect("the copy"), "hello");
    assert_eq!(town.run(&["files", "export", "all", "--json"]).json()["files"], 2);
    assert_eq!(fs::read_to_string(town.path("all/assets/notes/hello.txt")).expect("the copy"), "hello");

    town.run(&["files", "rm", "assets/notes/hello.txt"]).failed(2, "There is no terminal to confirm this on");
    town.run(&["files", "rm", "assets/notes/hello.txt", "--yes"]).succeeded();
    town.run(&["files", "rm", "assets/notes/hello.txt", "--yes"]).failed(4, "assets/notes/hello.txt: ");
    assert_eq!(town.run(&["files", "rm", "-r", "assets/notes", "--yes", "--json"]).json()["deleted"], 1);
    town.run(&["files", "get", "assets/notes/input"]).failed(4, "File not found");
}

#[test]
fn bad_places_are_refused() {
    let town = Fixture::seeded();
    town.run(&["files", "put", "missing.txt", "assets/a"]).failed(4, "missing.txt");
    town.run(&["files", "ls", "nothing"]).failed(4, "there is no bucket \"nothing\"");
    assert_eq!(town.run(&["files", "get", "/a"]).code, 2);
    let source = town.file("a", "a");
    town.run(&["files", "put", &source, "assets/a//b"]).failed(2, "Upload failed");
    town.run(&["files", "get", "assets/a", "no/such/folder"]).failed(4, "File not found");
}

#[test]
fn a_reader_of_the_output_may_end_early() {
    let town = Fixture::seeded();
    let source = town.file("large", &"x".repeat(4_000_000));
    town.run(&["files", "put", &source, "assets/large"]).succeeded();
    let mut process =
        town.command(&["files", "get", "assets/large"]).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut first = [0; 10];
    process.stdout.take().expect("a pipe").read_exact(&mut first).expect("bytes");
    let output = process.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_signed_url_is_a_path_and_its_time_is_checked() {
    let town = Fixture::seeded();
    let source = town.file("a", "a");
    town.run(&["files", "put", &source, "assets/a"]).succeeded();
    let url = town.run(&["files", "sign", "assets/a", "--expires", "60", "--json"]).json();
    assert!(url["url"].as_str().is_some_and(|url| url.starts_with("/assets/a?")), "{url}");
    town.run(&["files", "sign", "assets/a", "--expires", "0"]).failed(2, "Sign URL failed");
    town.run(&["files", "sign", "assets/missing"]).failed(4, "Sign URL failed");
}

#[test]
fn an_upload_from_a_pipe_that_ends_is_whole() {
    let town = Fixture::seeded();
    let mut process = town.command(&["files", "put", "-", "assets/piped"]).spawn().expect("it starts");
    let mut pipe = process.stdin.take().expect("a pipe");
    for _ in 0..50 {
        pipe.write_all(&[b'x'; 10_000]).expect("the command reads");
    }
    drop(pipe);
    assert!(process.wait().expect("it ends").success());
    assert_eq!(town.run(&["files", "get", "assets/piped"]).succeeded().out.len(), 500_000);
}

#[test]
fn a_file_is_put_into_a_database_that_exists() {
    let town = Fixture::new();
    let source = town.file("a", "a");
    town.run(&["files", "put", &source, "assets/a"]).failed(4, "There is no database");
    assert!(!town.path("town").exists());
}

#[test]
#[cfg(unix)]
fn a_pipe_is_no_file_to_put() {
    let town = Fixture::seeded();
    let pipe = town.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    town.run(&["files", "put", pipe.to_str().expect("UTF-8"), "assets/a"])
        .failed(2, "it is a device, a pipe or a socket");
}

#[test]
#[cfg(unix)]
fn a_signal_ends_an_upload_from_a_pipe() {
    let town = Fixture::seeded();
    let mut process = town.command(&["files", "put", "-", "assets/piped"]).spawn().expect("it starts");
    let mut pipe = process.stdin.take().expect("a pipe");
    // More than the pipe holds: the command reads.
    pipe.write_all(&[b'x'; 500_000]).expect("the command reads");
    signal(&process, Signal::SIGINT);
    let output = process.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(130) && error.starts_with("townsquare: Interrupted\ntry: "), "{error}");
    assert_eq!(town.run(&["files", "ls", "assets", "--json"]).json()["files"], serde_json::json!([]));
}

#[test]
#[cfg(unix)]
fn a_signal_ends_a_download_and_leaves_nothing() {
    let town = Fixture::seeded();
    let source = town.file("large", &"x".repeat(150_000_000));
    town.run(&["files", "put", &source, "assets/large", "--set", "max_file_size=200000000"]).succeeded();
    fs::create_dir(town.path("out")).expect("a folder");
    let start = || town.command(&["files", "get", "assets/large", "out/large"]).spawn().expect("it starts");
    let remove = || fs::remove_file(town.path("out/large")).expect("a file");
    let output = interrupted(Signal::SIGTERM, start, || !town.names("out").is_empty(), remove);
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(town.names("out").is_empty(), "{:?}", town.names("out"));
}

#[test]
#[cfg(unix)]
fn sync_deletes_no_remote_file_at_the_path_of_a_link() {
    let town = Fixture::seeded();
    fs::create_dir(town.path("site")).expect("a folder");
    town.file("site/index.html", "index");
    for path in ["logo.png", "themes/dark.css", "themes.txt"] {
        town.run(&["files", "put", &town.file("other", "o"), &format!("assets/site/{path}")]).succeeded();
    }
    for name in ["logo.png", "themes"] {
        std::os::unix::fs::symlink(town.path("other"), town.path(&format!("site/{name}"))).expect("a link");
    }
    let done = town.run(&["files", "sync", "site", "assets/site", "--delete", "--yes", "--json"]).json();
    assert_eq!(done["deleted"], serde_json::json!(["themes.txt"]));
}

#[test]
fn sync_makes_a_bucket_equal_to_a_folder_and_back() {
    let town = Fixture::seeded();
    fs::create_dir_all(town.path("site/images")).expect("a folder");
    town.file("site/index.html", "<p>index");
    town.file("site/images/cat.png", "cat");
    town.file("site/images/large", &"x".repeat(100_000));
    town.run(&["files", "put", &town.file("other", "o"), "assets/site/old"]).succeeded();
    town.run(&["files", "put", &town.file("other", "o"), "assets/sitemap"]).succeeded();
    let sync = |more: &[&str]| town.run(&[&["files", "sync", "site", "assets/site", "--json"], more].concat());
    let paths = |prefix: &str| {
        let listed = town.run(&["files", "ls", prefix, "--json"]).json();
        let files = listed["files"].as_array().expect("files").iter();
        files.map(|file| file["path"].as_str().expect("a path").to_owned()).collect::<Vec<_>>()
    };

    let planned = sync(&["--dry-run", "--delete"]).json();
    let all = ["images/cat.png", "images/large", "index.html"];
    assert_eq!((&planned["copied"], &planned["deleted"]), (&all.as_slice().into(), &["old"].as_slice().into()));
    assert_eq!(paths("assets/site/"), ["site/old"], "a dry run changes nothing");
    sync(&["--delete"]).failed(2, "Delete 1 files of the bucket, such as old?");
    assert_eq!(paths("assets/site/"), ["site/old"], "nothing is copied without consent");

    let done = sync(&[]).json();
    assert_eq!((&done["copied"], &done["deleted"]), (&all.as_slice().into(), &serde_json::json!([])));
    // The same size and other bytes, and a new size.
    town.file("site/images/cat.png", "dog");
    town.file("site/index.html", "");
    let done = sync(&["--delete", "--yes"]).json();
    let changed = ["images/cat.png", "index.html"];
    assert_eq!(
        (&done["copied"], &done["deleted"], &done["unchanged"]),
        (&changed.as_slice().into(), &["old"].as_slice().into(), &1.into())
    );
    assert_eq!(town.run(&["files", "get", "assets/site/images/cat.png"]).succeeded().out, "dog");
    assert_eq!(paths("assets/site"), ["site/images/cat.png", "site/images/large", "site/index.html", "sitemap"]);
    assert_eq!(sync(&["--delete"]).json()["unchanged"], 3);

    // Another command is writing it, or was killed.
    let part = town.file("site/images/.townsquare-new-1", "half");
    town.run(&["files", "put", &part, "assets/site/.townsquare-1/file"]).succeeded();
    for options in [&["--delete"][..], &["--delete", "--down"]] {
        let done = sync(options).json();
        assert_eq!(
            (&done["copied"], &done["deleted"], &done["unchanged"]),
            (&[""; 0].into(), &[""; 0].into(), &3.into())
        );
    }
    assert!(town.path("site/images/.townsquare-new-1").exists() && paths("assets/site/.town").len() == 1);
    town.run(&["files", "rm", "assets/site/.townsquare-1/file", "--yes"]).succeeded();
    fs::remove_file(part).expect("removed");

    // A folder becomes a file, and a file a folder.
    fs::rename(town.path("site/images"), town.path("images")).expect("renamed");
    town.file("site/images", "a file");
    sync(&[]).failed(1, "A file and a folder cannot share a name");
    let done = sync(&["--delete", "--yes"]).json();
    assert_eq!((&done["copied"], &done["deleted"]), (&["images"].as_slice().into(), &all[..2].into()));
    fs::remove_file(town.path("site/images")).expect("removed");
    fs::rename(town.path("images"), town.path("site/images")).expect("renamed");
    let done = sync(&["--delete", "--yes"]).json();
    assert_eq!((&done["copied"], &done["deleted"]), (&all[..2].into(), &["images"].as_slice().into()));

    // The other way.
    let down =
        |more: &[&str]| town.run(&[&["files", "sync", "copy", "assets/site", "--down", "--json"], more].concat());
    assert_eq!(down(&["--dry-run"]).json()["copied"], serde_json::json!(all));
    assert!(!town.path("copy").exists());
    assert_eq!(down(&[]).json()["copied"], serde_json::json!(all));
    assert_eq!(fs::read_to_string(town.path("copy/images/cat.png")).expect("the file"), "dog");
    town.file("copy/images/mine", "mine");
    town.file("copy/images/cat.png", "cow");
    assert_eq!(down(&[]).json()["copied"], serde_json::json!(["images/cat.png"]));
    assert!(town.path("copy/images/mine").exists());
    assert_eq!(down(&["--delete", "--yes"]).json()["deleted"], serde_json::json!(["images/mine"]));
    assert!(!town.path("copy/images/mine").exists());
    town.run(&["files", "sync", "missing", "assets/site"]).failed(4, "missing");

    // An empty side does not empty the other one: a disk may be missing, or a prefix misspelt.
    fs::create_dir(town.path("empty")).expect("a folder");
    town.run(&["files", "sync", "empty", "assets/site", "--delete", "--yes"])
        .failed(2, "The folder has no files to copy, and --delete would delete all 3 files");
    let misspelt = ["files", "sync", "copy", "assets/sit", "--down", "--delete", "--yes"];
    town.run(&misspelt).failed(2, "The bucket has no files to copy, and --delete would delete all 3 files");
    // A file in place of a folder: nothing is copied.
    fs::create_dir(town.path("other-copy")).expect("a folder");
    town.file("other-copy/images", "a file");
    let conflict = ["files", "sync", "other-copy", "assets/site", "--down"];
    town.run(&conflict).failed(2, "images/cat.png of the bucket and images cannot both be in the folder");
    assert_eq!(town.names("other-copy"), ["images"]);
    town.run(&["files", "sync", "site", "nowhere"]).failed(4, "nowhere");
}

#[test]
#[cfg(unix)]
fn sync_follows_no_link() {
    let town = Fixture::seeded();
    fs::create_dir_all(town.path("site/a")).expect("a folder");
    fs::create_dir_all(town.path("outside")).expect("a folder");
    town.file("outside/secret", "secret");
    town.file("site/a/b", "b");
    std::os::unix::fs::symlink(town.path("outside"), town.path("site/link")).expect("a link");
    let done = town.run(&["files", "sync", "site", "assets/x", "--json"]).succeeded();
    assert!(done.err.contains("link is left out"), "{done:?}");
    assert_eq!(done.json()["copied"], serde_json::json!(["a/b"]));

    fs::create_dir(town.path("copy")).expect("a folder");
    std::os::unix::fs::symlink(town.path("outside"), town.path("copy/a")).expect("a link");
    let refused = town.run(&["files", "sync", "copy", "assets/x", "--down"]);
    assert!(refused.code == 2 && refused.err.contains("copy/a is a symbolic link"), "{refused:?}");
    assert_eq!(town.names("outside"), ["secret"]);
}

#[test]
#[cfg(unix)]
fn a_download_through_a_link_is_refused_before_a_file_is_copied() {
    let town = Fixture::seeded();
    for folder in ["outside", "copy"] {
        fs::create_dir(town.path(folder)).expect("a folder");
    }
    let source = town.file("source", "x");
    for path in ["0", "images/cat.png", "z/z"] {
        town.run(&["files", "put", &source, &format!("assets/site/{path}")]).succeeded();
    }
    std::os::unix::fs::symlink(town.path("outside"), town.path("copy/images")).expect("a link");
    for option in ["--json", "--dry-run"] {
        let refused = town.run(&["files", "sync", "copy", "assets/site", "--down", option]);
        assert!(refused.code == 2 && refused.err.contains("copy/images is a symbolic link"), "{option}: {refused:?}");
    }
    assert_eq!(town.names("copy"), ["images"]);
    assert!(town.names("outside").is_empty(), "{:?}", town.names("outside"));
}
