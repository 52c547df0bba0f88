//! The tests of `move`.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use crate::town::{Ran, Town, run};

/// Runs `move` without the variables that name a place.
fn moved(town: &Town, arguments: &[&str]) -> Ran {
    let mut command = town.bare();
    command.arg("move").args(arguments);
    run(command, "")
}

#[test]
fn a_folder_is_moved_with_rows_and_files() {
    let town = Town::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();

    let looked = moved(&town, &["town", "target", "--dry-run", "--json"]).json();
    assert_eq!(
        (&looked["source_faults"], &looked["target"]),
        (&serde_json::json!([]), &"not_ready".into()),
        "{looked}"
    );
    assert!(looked["reason"].as_str().is_some_and(|reason| reason.contains("there is no database")), "{looked}");
    assert!(!town.path("target").join("townsquare.db").exists(), "a dry run creates nothing");

    let report = moved(&town, &["town", "target", "--json"]).json();
    assert_eq!(
        (&report["rows"]["spaces"], &report["files"], &report["bytes"]),
        (&4.into(), &1.into(), &100_000.into())
    );
    let users = |folder: &str| town.run(&["users", "list", "--json", "--data-dir", folder]).json();
    assert_eq!(users("target"), users("town"));
    assert_eq!(town.run(&["files", "get", "assets/large", "--data-dir", "target"]).succeeded().out.len(), 100_000);

    moved(&town, &["town", "target"]).failed(2, "empty database");
    let looked = moved(&town, &["town", "target", "--dry-run"]);
    assert_eq!(looked.code, 3, "{looked:?}");
}

#[test]
#[cfg(unix)]
fn a_move_that_a_signal_ends_continues() {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };

    let town = Town::new();
    town.run(&["seed", "--users", "0", "--spaces", "10000", "--fidgets", "0"]).succeeded();
    let mut command = town.bare();
    let process = command.args(["move", "town", "target"]).spawn().expect("it starts");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !town.path("target/townsquare.db-wal").exists() {
        assert!(Instant::now() < deadline, "the move begins");
        thread::sleep(Duration::from_millis(2));
    }
    kill(Pid::from_raw(i32::try_from(process.id()).expect("a process id")), Signal::SIGINT).expect("a signal");
    let output = process.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.starts_with("townsquare: Interrupted\ntry: Run the same command again"), "{error}");

    let report = moved(&town, &["town", "target", "--json"]).json();
    assert_eq!(report["rows"]["spaces"], 10_000);
    town.run(&["check", "--data-dir", "target"]).succeeded();
}

#[test]
fn a_source_that_is_missing_is_not_created() {
    let town = Town::new();
    let ran = moved(&town, &["nowhere", "target"]);
    assert!(ran.code != 0 && ran.err.contains("townsquare: source: "), "{ran:?}");
    assert!(!town.path("nowhere/townsquare.db").exists() && !town.path("target").exists());
}

#[test]
fn the_places_of_a_move_are_its_arguments_alone() {
    let town = Town::seeded();
    town.run(&["move", "town", "target"]).failed(2, "TOWNSQUARE_DATA_DIR");
    moved(&town, &["town", "target", "--data-dir", "town"]).failed(2, "data_dir");
    moved(&town, &["town", "postgres://ann:planted@db.example/town"]).failed(2, "secret");
    moved(&town, &["town", "env:MISSING"]).failed(2, "MISSING");
    let mut command = town.bare();
    command.env("TARGET", "townsquare:target").args(["move", "town", "env:TARGET", "--json"]);
    assert_eq!(run(command, "").json()["rows"]["spaces"], 4);
    let mut command = town.bare();
    command.args(["move", "town", "-", "--json"]);
    assert_eq!(run(command, "townsquare:other\n").json()["rows"]["spaces"], 4);
}

#[test]
fn the_file_beside_the_data_counts_for_a_place() {
    let town = Town::seeded();
    fs::write(town.path("town/townsquare.toml"), "colour = 1\n").expect("a file");
    moved(&town, &["town", "target"]).failed(2, "colour");
}
