//! The tests of `changes`.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use serde_json::Value;
use townsquare_tests::wait::wait_until;

use crate::fixture::Fixture;

#[test]
fn changes_after_a_cursor_are_lines_and_go_on_from_each_line() {
    let town = Fixture::seeded();
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
    use nix::sys::signal::Signal;

    let town = Fixture::seeded();
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
    crate::fixture::signal(&process, Signal::SIGINT);
    assert_eq!(process.wait().expect("it ends").code(), Some(130));
}

/// As of `changes --follow | head -1`.
#[test]
#[cfg(unix)]
fn followed_changes_end_when_nobody_reads_them() {
    let town = Fixture::seeded();
    let mut process = town.command(&["changes", "spaces", "--follow"]).spawn().expect("it starts");
    drop(process.stdout.take());
    wait_until("the command ends", || process.try_wait().expect("it can be asked").is_some());
    assert_eq!(process.wait().expect("it ends").code(), Some(0));
}

#[test]
fn bad_requests_for_changes_are_refused() {
    let town = Fixture::seeded();
    assert_eq!(town.run(&["changes", "spaces"]).code, 2);
    assert_eq!(town.run(&["changes", "--follow"]).code, 2);
    for other in
        [&["spaces"][..], &["--follow"], &["--since", "0"], &["--event", "INSERT"], &["--filter", "id=is.null"]]
    {
        assert_eq!(town.run(&[&["changes", "--cursor"], other].concat()).code, 2, "{other:?}");
    }
    // The options of every command may follow.
    town.run(&["changes", "--cursor", "--data-dir", "town", "-v"]).succeeded();
    town.run(&["changes", "space_registrations", "--since", "no cursor"]).failed(2, "cursor");
    assert_eq!(town.run(&["changes", "spaces", "--follow", "--event", "TRUNCATE"]).code, 2);
    town.run(&["changes", "nothing", "--follow"]).failed(2, "nothing");
    town.run(&["changes", "spaces", "--since", "no cursor"]).failed(2, "cursor");
}

#[test]
fn changes_of_the_past_are_complete_however_few_match() {
    let town = Fixture::seeded();
    let cursor = town.run(&["changes", "--cursor"]).succeeded().out.trim().to_owned();
    town.run(&["seed", "--users", "0", "--spaces", "20000", "--fidgets", "0"]).succeeded();
    town.run(&["seed", "--users", "0", "--spaces", "1", "--fidgets", "0"]).succeeded();
    let filter = ["changes", "spaces", "--since", &cursor, "--filter", "description=eq.Space 19999 of the seed"];
    assert_eq!(town.run(&filter).json_lines().len(), 1);
}

#[test]
fn changes_of_the_past_end_while_others_write() {
    let town = Fixture::seeded();
    let cursor = town.run(&["changes", "--cursor"]).succeeded().out.trim().to_owned();
    let mut writer = town.command(&["seed", "--users", "0", "--spaces", "10000000", "--fidgets", "0"]);
    let mut writer = writer.stdin(Stdio::null()).spawn().expect("it starts");
    let database = || town.run(&["stats", "--json"]).json()["feed"]["retained"].as_u64().unwrap_or_default();
    Fixture::wait_until(|| database() > 2_000);
    let count = town.run(&["changes", "spaces", "--since", &cursor]).json_lines().len();
    assert!(count > 2_000 && writer.try_wait().expect("a state").is_none(), "{count}");
    writer.kill().expect("it runs");
    writer.wait().expect("it ends");
}
