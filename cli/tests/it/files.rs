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
