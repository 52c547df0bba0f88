//! The tests of `move`.

use std::fs;

use crate::fixture::{CommandOutput, Fixture, run};

/// Runs `move` without the variables that name a place.
fn moved(town: &Fixture, arguments: &[&str]) -> CommandOutput {
    let mut command = town.bare();
    command.arg("move").args(arguments);
    run(command, "")
}

#[test]
fn a_folder_is_moved_with_rows_and_files() {
    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();

    let checked = moved(&town, &["town", "target", "--dry-run", "--json"]).json();
    assert_eq!((&checked["source_faults"], &checked["target"]), (&serde_json::json!([]), &"new".into()), "{checked}");
    assert!(!town.path("target").join("townsquare.db").exists(), "a dry run creates nothing");

    let report = moved(&town, &["town", "target", "--json"]).json();
    assert_eq!(report["target"], serde_json::json!({ "rows": "target", "files": "target/files" }));
    assert_eq!(
        (&report["rows"]["spaces"], &report["files"], &report["bytes"]),
        (&4.into(), &1.into(), &100_000.into())
    );
    let users = |folder: &str| town.run(&["users", "list", "--json", "--data-dir", folder]).json();
    assert_eq!(users("target"), users("town"));
    assert_eq!(town.run(&["files", "get", "assets/large", "--data-dir", "target"]).succeeded().out.len(), 100_000);

    moved(&town, &["town", "target"]).failed(2, "empty database");
    let checked = moved(&town, &["town", "target", "--dry-run"]);
    assert!(
        checked.code == 3 && checked.out.contains("target: refused: ") && checked.out.contains("users"),
        "{checked:?}"
    );
}

#[test]
#[cfg(unix)]
fn a_move_that_a_signal_ends_continues() {
    use nix::sys::signal::Signal;

    use crate::fixture::interrupted;

    let town = Fixture::new();
    town.run(&["seed", "--users", "0", "--spaces", "10000", "--fidgets", "0"]).succeeded();
    let start = || town.bare().args(["move", "town", "target"]).spawn().expect("it starts");
    let has_begun = || fs::metadata(town.path("target/townsquare.db")).is_ok_and(|file| file.len() > 0);
    let remove = || fs::remove_dir_all(town.path("target")).expect("a folder");
    let output = interrupted(Signal::SIGINT, start, has_begun, remove);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.starts_with("townsquare: Interrupted\ntry: Run the same command again"), "{error}");

    let checked = moved(&town, &["town", "target", "--dry-run", "--json"]).json();
    assert_eq!(checked["target"], "unfinished");
    town.run(&["seed", "--users", "0", "--data-dir", "other"]).succeeded();
    let checked = moved(&town, &["other", "target", "--dry-run"]);
    assert!(checked.code == 3 && checked.out.contains("unfinished move"), "{checked:?}");

    town.run(&["users", "list", "--data-dir", "target"]).failed(2, "move that one again with `townsquare move`");
    let report = moved(&town, &["town", "target", "--json"]).json();
    assert_eq!(report["rows"]["spaces"], 10_000);
    town.run(&["check", "--data-dir", "target"]).succeeded();
}

#[test]
fn a_source_that_is_missing_is_not_created() {
    let town = Fixture::new();
    moved(&town, &["nowhere", "target"]).failed(4, "source: There is no database");
    assert!(!town.path("nowhere/townsquare.db").exists() && !town.path("target").exists());
}

#[test]
fn the_places_of_a_move_are_its_arguments_alone() {
    let town = Fixture::seeded();
    town.run(&["move", "town", "target"]).failed(2, "TOWNSQUARE_DATA_DIR");
    moved(&town, &["town", "target", "--data-dir", "town"]).failed(2, "data_dir");
    moved(&town, &["town", "postgres://ann:planted@db.example/town"]).failed(2, "secret");
    moved(&town, &["town", "townsquare:t2?storage_url=s3%3A%2F%2Fb%3Fsecret_access_key%3Dplanted"]).failed(2, "secret");
    moved(&town, &["town", "env:MISSING"]).failed(2, "MISSING");
    for text in ["", "postgres//u:planted@127.0.0.1:1/d"] {
        let mut command = town.bare();
        command.env("TARGET", text).args(["move", "town", "env:TARGET"]);
        let ran = run(command, "");
        assert!(!ran.err.contains("planted"), "{ran:?}");
        ran.failed(2, "TARGET");
    }
    assert_eq!(town.names("").len(), 1);
    moved(&town, &["town", "town"]).failed(2, "Source and target are the same place");
    let mut command = town.bare();
    command.env("TARGET", "townsquare:target").args(["move", "town", "env:TARGET", "--json"]);
    assert_eq!(run(command, "").json()["rows"]["spaces"], 4);
    let mut command = town.bare();
    command.args(["move", "town", "-", "--json"]);
    assert_eq!(run(command, "townsquare:other\n").json()["rows"]["spaces"], 4);
}

#[test]
fn the_file_beside_the_data_counts_for_a_place() {
    let town = Fixture::seeded();
    fs::write(town.path("town/townsquare.toml"), "colour = 1\n").expect("a file");
    moved(&town, &["town", "target"]).failed(2, "colour");
    // The environment goes before the file.
    fs::write(town.path("town/townsquare.toml"), "catalog_tries = 50\n").expect("a file");
    moved(&town, &["town", "target"]).failed(2, "catalog_tries");
    let mut command = town.bare();
    command.env("TOWNSQUARE_CATALOG_TRIES", "5").args(["move", "town", "target"]);
    run(command, "").succeeded();
}

#[test]
fn a_target_with_only_a_private_file_is_refused_by_a_dry_run() {
    let town = Fixture::seeded();
    town.run(&["seed", "--users", "0", "--spaces", "0", "--data-dir", "target"]).succeeded();
    assert_eq!(moved(&town, &["town", "target", "--dry-run", "--json"]).json()["target"], "empty");
    let source = town.file("a", "a");
    town.run(&["files", "put", &source, "private/someone/a", "--data-dir", "target"]).succeeded();
    let checked = moved(&town, &["town", "target", "--dry-run"]);
    assert!(checked.code == 3 && checked.out.contains("files"), "{checked:?}");
    // A store that has files of its own.
    fs::create_dir_all(town.path("other/files/assets")).expect("a folder");
    fs::write(town.path("other/files/assets/a"), "a").expect("a file");
    let checked = moved(&town, &["town", "other", "--dry-run"]);
    assert!(checked.code == 3 && checked.out.contains("assets/a"), "{checked:?}");
}

#[test]
fn a_move_follows_a_source_that_is_written_and_can_be_taken_back() {
    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();
    for (arguments, named) in
        [(&["--longest-pause", "5"][..], "--follow"), (&["--follow", "--longest-pause", "0"], "--longest-pause")]
    {
        let ran = moved(&town, &[&["town", "target"], arguments].concat());
        assert!(ran.code == 2 && ran.err.contains(named), "{ran:?}");
    }
    let ran = moved(&town, &["town", "target", "--follow"]);
    assert!(ran.err.contains("The source takes no writes any more."), "{ran:?}");
    let count = |folder: &str| town.run(&["users", "list", "--json", "--data-dir", folder]).json();
    assert_eq!(count("target"), count("town"));

    let refused = town.run(&["files", "put", &large, "assets/late"]);
    refused.failed(1, "has moved to another place");
    let checked = town.run(&["check", "--json"]);
    assert!(checked.code == 3 && checked.out.contains("\"moved_away\""), "{checked:?}");
    town.run(&["repair", "--reopen"]).failed(2, "no terminal");
    assert_eq!(town.run(&["repair", "--reopen", "--yes", "--json"]).json()["reopened"], true);
    assert_eq!(town.run(&["repair", "--reopen", "--yes", "--json"]).json()["reopened"], false);
    town.run(&["files", "put", &large, "assets/late"]).succeeded();
    town.run(&["check"]).succeeded();
}
