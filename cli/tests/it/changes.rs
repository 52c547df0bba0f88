//! The tests of `changes`.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use crate::town::Town;

#[test]
fn changes_after_a_cursor_are_lines_and_go_on_from_each_line() {
    let town = Town::seeded();
    let cursor = town.run(&["changes", "--cursor"]).succeeded().out.trim().to_owned();
    assert_eq!(town.run(&["changes", "spaces", "--since", &cursor]).succeeded().out, "");
    town.run(&["seed", "--users", "0", "--spaces", "3", "--fidgets", "0"]).succeeded();
    let changes = town.run(&["changes", "spaces", "--since", &cursor]).json_lines();
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert!(changes.iter().all(|change| change["eventType"] == "INSERT" && change["table"] == "spaces"));
    let second = changes[1]["cursor"].as_str().expect("a cursor");
    assert_eq!(town.run(&["changes", "spaces", "--since", second]).json_lines(), changes[2..]);
    let filter = ["changes", "spaces", "--since", &cursor, "--filter", "is_public=is.false"];
    assert_eq!(town.run(&filter).json_lines().len(), 1);
}

#[test]
#[cfg(unix)]
fn followed_changes_arrive_until_a_signal() {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };

    let town = Town::seeded();
    let cursor = town.run(&["changes", "--cursor"]).succeeded().out.trim().to_owned();
    let mut process = town.command(&["changes", "spaces", "--follow", "--since", &cursor]).spawn().expect("it starts");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    for _ in 0..2 {
        // Another process writes.
        town.run(&["seed", "--users", "0", "--spaces", "1", "--fidgets", "0"]).succeeded();
        let line = lines.next().expect("a line").expect("text");
        let change: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(change["eventType"], "INSERT", "{change}");
    }
    kill(Pid::from_raw(i32::try_from(process.id()).expect("a process id")), Signal::SIGINT).expect("a signal");
    assert_eq!(process.wait().expect("it ends").code(), Some(130));
}

#[test]
fn bad_requests_for_changes_are_refused() {
    let town = Town::seeded();
    assert_eq!(town.run(&["changes", "spaces"]).code, 2);
    assert_eq!(town.run(&["changes", "--follow"]).code, 2);
    assert_eq!(town.run(&["changes", "spaces", "--follow", "--event", "TRUNCATE"]).code, 2);
    town.run(&["changes", "nothing", "--follow"]).failed(2, "nothing");
    town.run(&["changes", "spaces", "--since", "no cursor"]).failed(2, "cursor");
}
