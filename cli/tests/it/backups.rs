//! `backup --every`: copies by a schedule, in a folder.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Child, Output},
};

use nix::sys::signal::Signal;

use crate::fixture::{Fixture, signal, start_with_log};

/// The names of the copies, the oldest first.
fn copies(town: &Fixture) -> Vec<String> {
    if !town.path("out").exists() {
        return Vec::new();
    }
    let names: BTreeSet<String> = town.names("out").into_iter().filter(|name| is_copy(name)).collect();
    names.into_iter().collect()
}

fn is_copy(name: &str) -> bool {
    name.starts_with("townsquare-") && Path::new(name).extension().is_some_and(|end| end == "db")
}

/// The names of the copies that are not complete.
fn parts(town: &Fixture) -> Vec<String> {
    if !town.path("out").exists() {
        return Vec::new();
    }
    town.names("out").into_iter().filter(|name| name.ends_with(".part")).collect()
}

fn ended(process: Child) -> Output {
    signal(&process, Signal::SIGTERM);
    process.wait_with_output().expect("it ends")
}

#[test]
fn copies_are_made_by_a_schedule_and_old_ones_are_removed() {
    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();
    fs::create_dir(town.path("out")).expect("a folder");
    // Files that the command did not make.
    let foreign =
        ["out/mine.db", "out/townsquare-2020.db", "out/townsquare.db", "out/townsquare-20200101T000000Z.db.mine"];
    for name in foreign {
        town.file(name, "mine");
    }
    // An old copy of the command, with its files, and a name of the command that is a link.
    town.file("out/townsquare-20200101T000000Z.db", "old");
    fs::create_dir(town.path("out/townsquare-20200101T000000Z.db.files")).expect("a folder");
    std::os::unix::fs::symlink(town.path("out/mine.db"), town.path("out/townsquare-20200102T000000Z.db"))
        .expect("a link");

    let process =
        town.command(&["backup", "out", "--every", "1s", "--keep", "2s", "--json"]).spawn().expect("it starts");
    let last_made = || copies(&town).last().is_some_and(|name| name.as_str() > "townsquare-2021");
    Fixture::wait_until(last_made);
    let first = copies(&town).last().expect("a copy").clone();
    Fixture::wait_until(|| !town.path(&format!("out/{first}")).exists());
    let output = ended(process);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{err}");

    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.len() >= 3, "{out}");
    let removed: Vec<_> = lines.iter().flat_map(|line| line["removed"].as_array().expect("a list").clone()).collect();
    assert!(removed[0].as_str().is_some_and(|name| name.ends_with("townsquare-20200101T000000Z.db")), "{out}");
    assert!(!town.path("out/townsquare-20200101T000000Z.db.files").exists());
    for name in foreign.into_iter().chain(["out/townsquare-20200102T000000Z.db"]) {
        assert_eq!(fs::read_to_string(town.path(name)).expect("it stays"), "mine", "{name}");
    }
    let left: Vec<_> = copies(&town).into_iter().filter(|name| name.as_str() > "townsquare-2021").collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(parts(&town), Vec::<String>::new());
    // Each copy is whole.
    let newest = format!("out/{}", left[1]);
    town.run(&["restore", &newest, "elsewhere"]).succeeded();
    assert_eq!(town.run(&["files", "get", "assets/large", "--data-dir", "elsewhere"]).succeeded().out.len(), 100_000);
}

#[test]
fn a_backup_that_fails_is_reported_and_tried_again_and_removes_nothing() {
    let town = Fixture::seeded();
    town.run(&["backup", "first.db"]).succeeded();
    let log = town.path("log");
    let process = start_with_log(&mut town.command(&["backup", "out", "--every", "1s", "--keep", "1s"]), &log);
    Fixture::wait_until(|| !copies(&town).is_empty());
    // Another database is in the place of the first one, which is damaged.
    fs::create_dir(town.path("damaged")).expect("a folder");
    town.file("damaged/townsquare.db", &"no database".repeat(1_000));
    fs::rename(town.path("town"), town.path("away")).expect("moved");
    fs::rename(town.path("damaged"), town.path("town")).expect("moved");
    let notes = || fs::read_to_string(&log).expect("the log");
    let failures = || notes().matches("No backup was made: ").count();
    Fixture::wait_until(|| failures() > 0 && notes().contains("is not a SQLite"));
    let (kept, before) = (copies(&town), failures());
    Fixture::wait_until(|| failures() > before);
    assert!(!kept.is_empty() && copies(&town) == kept, "{kept:?}: {:?}", copies(&town));
    fs::remove_dir_all(town.path("town")).expect("removed");
    fs::rename(town.path("away"), town.path("town")).expect("moved back");
    Fixture::wait_until(|| copies(&town) != kept && !copies(&town).is_empty());
    assert!(ended(process).status.success(), "{}", notes());
}

#[test]
fn a_signal_ends_a_wait_and_a_backup_and_leaves_whole_copies() {
    let town = Fixture::seeded();
    // In the wait: the next copy is due in an hour.
    let start = || town.command(&["backup", "out", "--every", "1h"]).spawn().expect("it starts");
    let process = start();
    Fixture::wait_until(|| !copies(&town).is_empty());
    let one = copies(&town);
    assert!(ended(process).status.success());
    assert_eq!(copies(&town), one);
    // A process that starts again waits for the rest of the hour.
    let log = town.path("log");
    let process = start_with_log(&mut town.command(&["backup", "out", "--every", "1h"]), &log);
    Fixture::wait_until(|| fs::read_to_string(&log).expect("the log").contains("The next one is made at 20"));
    assert!(ended(process).status.success());
    assert_eq!(copies(&town), one);

    // In the backup.
    let large = town.file("large", &"x".repeat(150_000_000));
    town.run(&["files", "put", &large, "assets/large", "--set", "max_file_size=200000000"]).succeeded();
    let is_interrupted = (0..20).any(|_| {
        fs::remove_dir_all(town.path("out")).expect("removed");
        let process = start();
        Fixture::wait_until(|| !parts(&town).is_empty() || !copies(&town).is_empty());
        let output = ended(process);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(parts(&town), Vec::<String>::new());
        for copy in copies(&town) {
            // It had ended before the signal.
            town.run(&["restore", &format!("out/{copy}"), "restored"]).succeeded();
            fs::remove_dir_all(town.path("restored")).expect("removed");
        }
        copies(&town).is_empty()
    });
    assert!(is_interrupted, "each backup ends before its signal");
}

#[test]
fn the_next_backup_removes_what_a_killed_one_left() {
    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(150_000_000));
    town.run(&["files", "put", &large, "assets/large", "--set", "max_file_size=200000000"]).succeeded();
    let start = || town.command(&["backup", "out", "--every", "1h"]).spawn().expect("it starts");
    let is_killed_early = (0..20).any(|_| {
        let _ = fs::remove_dir_all(town.path("out"));
        let mut process = start();
        Fixture::wait_until(|| !parts(&town).is_empty() || !copies(&town).is_empty());
        process.kill().expect("killed");
        process.wait().expect("it ends");
        copies(&town).is_empty()
    });
    assert!(is_killed_early, "each backup ends before it is killed");
    let process = start();
    Fixture::wait_until(|| !copies(&town).is_empty());
    assert!(ended(process).status.success());
    assert_eq!(parts(&town), Vec::<String>::new());
    let copy = copies(&town).remove(0);
    town.run(&["restore", &format!("out/{copy}"), "elsewhere"]).succeeded();
}

#[test]
fn a_second_process_on_the_folder_is_refused() {
    let town = Fixture::seeded();
    let process = town.command(&["backup", "out", "--every", "1h"]).spawn().expect("it starts");
    Fixture::wait_until(|| !copies(&town).is_empty());
    town.run(&["backup", "out", "--every", "1h"]).failed(75, "Another process makes backups in out");
    assert!(ended(process).status.success());
}

#[test]
fn a_database_that_does_not_open_is_noted_before_a_wait_and_a_missing_one_ends_the_command() {
    let town = Fixture::seeded();
    let arguments = ["backup", "out", "--every", "1h"];
    let process = town.command(&arguments).spawn().expect("it starts");
    Fixture::wait_until(|| !copies(&town).is_empty());
    assert!(ended(process).status.success());
    let made = copies(&town);
    // The next copy is due in an hour.
    fs::remove_dir_all(town.path("town")).expect("removed");
    town.run(&arguments).failed(4, "There is no database");
    fs::create_dir(town.path("town")).expect("a folder");
    town.file("town/townsquare.db", &"no database".repeat(1_000));
    let log = town.path("log");
    let process = start_with_log(&mut town.command(&arguments), &log);
    let note = "The database does not open now: ";
    Fixture::wait_until(|| fs::read_to_string(&log).is_ok_and(|text| text.contains(note)));
    assert!(ended(process).status.success());
    assert_eq!(copies(&town), made);
}

#[test]
fn a_schedule_that_cannot_work_is_refused_at_once() {
    let town = Fixture::new();
    town.run(&["backup", "out", "--every", "1h"]).failed(4, "There is no database");
    for (arguments, part) in [
        (&["backup", "out", "--keep", "24h"][..], "--every"),
        (&["backup", "out", "--every", "0s"][..], "not 0"),
        (&["backup", "out", "--every", "soon"][..], "such as 15m"),
        (&["backup", "out", "--every", "1h", "--keep", "24h,7"][..], "24h,7d,4w"),
        (&["backup", "out", "--every", "1h", "--keep", "24h,7h"][..], "twice"),
        (&["backup", "out", "--every", "1h", "--keep", "0d"][..], "1 to 100000"),
    ] {
        let ran = town.run(arguments);
        assert!(ran.code == 2 && ran.err.contains(part), "{arguments:?}: {ran:?}");
    }
    let file = town.file("file", "");
    let ran = town.run(&["backup", &file, "--every", "1h"]);
    assert!(ran.code != 0 && ran.err.contains("file"), "{ran:?}");
}
