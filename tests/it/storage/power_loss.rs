//! A power loss. The order of flushes shows that each row is on the disk before its write is acknowledged. For uploads of objects
//! (DESIGN 7: bytes and row agree after a crash at any point) the tests keep a prefix of SQLite's write-ahead log. If the last commit
//! of an upload is lost, the next `open` does it again from the intent. With `durability=normal` that commit may be lost, but no
//! commit that an object depends on.

use std::{collections::BTreeSet, fs, io::Write as _, path::Path, process::Command};

use townsquare::{
    Config,
    blocking::Client,
    config::Durability,
    spaces::{NewFidget, NewSpace, SpacePatch},
    storage::{FileInfo, Overwrite},
};
use townsquare_tests::{
    skip::skip,
    subprocess::{join_child, name_of, role, run_by},
    temp_dir,
    test_database::child_on,
};

use super::fixture::{bytes, paths, put};

const FOLDER: &str = "TOWNSQUARE_TEST_DATA_FOLDER";

/// Above the limit of inline files.
const SIZE: usize = 100_000;

fn open(folder: &Path) -> Client {
    Client::open(Config::new().data_dir(folder).catalog_api_key("")).expect("opens").as_service()
}

fn upload(client: &Client, path: &str, seed: u8) -> FileInfo {
    put(client, "assets", path, bytes(SIZE, seed)).expect("uploaded")
}

#[track_caller]
fn assert_file(client: &Client, path: &str, info: &FileInfo, seed: u8) {
    assert_eq!(client.storage().stat("assets", path).expect("found"), *info);
    assert_eq!(client.storage().download("assets", path).expect("downloaded"), bytes(SIZE, seed));
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs").success());
}

/// Where each commit of a write-ahead log ends: <https://www.sqlite.org/fileformat2.html#walformat>.
fn commit_ends(log: &[u8]) -> Vec<usize> {
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().expect("four bytes"));
    let frame = 24 + usize::try_from(number(8)).expect("a page size");
    let starts = (32..=log.len() - frame).step_by(frame);
    // The frames of an earlier round of the log have other salts.
    let of_round = starts.take_while(|start| log[start + 8..start + 16] == log[16..24]);
    of_round.filter(|start| number(start + 4) > 0).map(|start| start + frame).collect()
}

/// Removes the last commits of a database that nobody uses.
fn lose_commits(folder: &Path, lost: usize) {
    let log = folder.join("townsquare.db-wal");
    let content = fs::read(&log).expect("a log");
    let ends = commit_ends(&content);
    fs::write(&log, &content[..ends[ends.len() - 1 - lost]]).expect("written");
    fs::remove_file(folder.join("townsquare.db-shm")).expect("removed");
}

#[test]
fn an_upload_whose_last_commit_is_lost_is_completed_by_the_next_open() {
    let folder = temp_dir();
    let data = folder.path().join("data");
    let client = open(&data);
    let other = upload(&client, "other", 1);
    upload(&client, "overwritten", 2);
    for (path, seed) in [("overwritten", 3), ("new", 4)] {
        let info = upload(&client, path, seed);
        let lost = folder.path().join(path);
        copy(&data, &lost);
        lose_commits(&lost, 1);
        let row = raw_etag(&lost, path);
        assert_ne!(row.as_ref(), Some(&info.etag), "the commit is lost");
        let after = open(&lost);
        assert_file(&after, path, &info, seed);
        assert_file(&after, "other", &other, 1);
        assert_eq!(paths(&after, "assets"), paths(&client, "assets"));
        let report = after.storage().repair().expect("repaired");
        assert_eq!((report.finished, report.orphans_removed, report.rows_removed), (0, 0, 0), "{report:?}");
    }
}

/// The version of a file in the database of a folder.
fn raw_etag(folder: &Path, path: &str) -> Option<String> {
    let database = rusqlite::Connection::open(folder.join("townsquare.db")).expect("a database");
    let found = database.query_row("SELECT etag FROM townsquare_files WHERE path = ?1", [path], |row| row.get(0));
    found.ok()
}

#[test]
fn an_upload_of_a_file_that_is_deleted_meanwhile_writes_the_file() {
    let folder = temp_dir();
    let data = folder.path().join("data");
    let client = open(&data);
    put(&client, "assets", "file", "inline").expect("uploaded");
    // Between the intent and the last commit, as a concurrent `delete` of the inline file may do.
    let raw = rusqlite::Connection::open(data.join("townsquare.db")).expect("a database");
    let deletes = "CREATE TRIGGER deletes AFTER INSERT ON townsquare_file_intents
        BEGIN DELETE FROM townsquare_files WHERE path = NEW.path; END";
    raw.execute_batch(deletes).expect("a trigger");
    let info = upload(&client, "file", 1);
    assert_file(&client, "file", &info, 1);
    // The intent of the next upload is on the disk, and with it every commit before.
    raw.execute_batch("DROP TRIGGER deletes").expect("dropped");
    upload(&client, "later", 2);
    let lost = folder.path().join("lost");
    copy(&data, &lost);
    lose_commits(&lost, 1);
    let after = open(&lost);
    assert_file(&after, "file", &info, 1);
    assert_eq!(paths(&after, "assets"), ["file", "later"]);
}

#[test]
fn an_upload_whose_intent_is_lost_leaves_the_old_file() {
    let folder = temp_dir();
    let (data, before, lost) = (folder.path().join("data"), folder.path().join("before"), folder.path().join("lost"));
    let client = open(&data);
    let old = upload(&client, "file", 1);
    copy(&data, &before);
    upload(&client, "file", 2);
    copy(&data, &lost);
    lose_commits(&lost, 2);
    // An object is installed after its intent is on the disk, so the objects are those of before.
    fs::remove_dir_all(lost.join("files")).expect("removed");
    copy(&before.join("files"), &lost);
    assert_file(&open(&lost), "file", &old, 1);
}

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_that_does_not_flush_its_commits() {
    if role().as_deref() != Some("write without flushes") {
        return;
    }
    let folder = std::env::var(FOLDER).expect("the parent process sets the variable");
    let config = Config::new().data_dir(folder).catalog_api_key("").durability(Durability::Normal);
    let client = Client::open(config).expect("opens").as_service();
    upload(&client, "a", 1);
    upload(&client, "a", 2);
    client.storage().move_file("assets", "a", "b", Overwrite::Replace).expect("moved");
    put(&client, "assets", "b", "inline").expect("uploaded");
    upload(&client, "c", 3);
    client.storage().delete("assets", "c").expect("deleted");
    client.close();
}

#[test]
fn no_object_changes_before_the_commit_that_it_depends_on_is_on_the_disk() {
    let folder = temp_dir();
    let (data, trace) = (folder.path().join("data"), folder.path().join("trace"));
    let test = name_of(&child_process_that_does_not_flush_its_commits);
    let child = child_on("sqlite:unused", test, "write without flushes", &[(FOLDER, data.to_str().expect("UTF-8"))]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-o"]).arg(&trace);
    strace.arg("-e").arg("trace=pwrite64,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat");
    let Ok(child) = run_by(strace, &child).spawn() else { return skip("the order of flushes: there is no strace") };
    join_child(child);
    let (mut is_flushed, mut installs, mut removals) = (true, 0, 0);
    for line in fs::read_to_string(trace).expect("a trace").lines() {
        let is_log = line.contains("townsquare.db-wal>");
        if is_log && line.contains("pwrite64(") {
            is_flushed = false;
        } else if is_log && line.contains("sync(") {
            is_flushed = true;
        }
        let installs_object = line.contains("rename") && line.contains("/staging>") && line.contains("/files/assets>");
        let removes_object = line.contains("unlink") && line.contains("/files/assets>");
        assert!(is_flushed || !(installs_object || removes_object), "the log is not on the disk: {line}");
        installs += u32::from(installs_object);
        removals += u32::from(removes_object);
    }
    assert_eq!((installs, removals), (4, 3), "a, a, b and c are installed; a, b and c are removed");
}

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_that_acknowledges_its_writes() {
    let durability = match role().as_deref() {
        Some("acknowledge, full") => Durability::Full,
        Some("acknowledge, normal") => Durability::Normal,
        _ => return,
    };
    let folder = std::env::var(FOLDER).expect("the parent process sets the variable");
    let config = Config::new().data_dir(folder).catalog_api_key("").durability(durability);
    let client = Client::open(config).expect("opens");
    let acknowledge = || std::io::stderr().write_all(ACKNOWLEDGED.as_bytes()).expect("written");
    client.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
    acknowledge();
    client.auth().sign_in("ann@town.example", "correct horse").expect("signed in");
    acknowledge();
    let space = client.spaces().create_space(NewSpace::named("Harbor")).expect("created").id;
    acknowledge();
    client.spaces().update_space(space, SpacePatch::new().published()).expect("updated");
    acknowledge();
    client.fidgets().create_fidgets(space, vec![NewFidget::of_type("clock"); 3]).expect("created");
    acknowledge();
    put(&client, "assets", "small", "inline").expect("uploaded");
    acknowledge();
    client.storage().delete("assets", "small").expect("deleted");
    acknowledge();
    client.spaces().delete_space(space).expect("deleted");
    acknowledge();
    client.close();
}

const ACKNOWLEDGED: &str = "acknowledged\n";

#[test]
fn each_row_is_on_the_disk_before_its_write_is_acknowledged() {
    let folder = temp_dir();
    for (role, all_are_flushed) in [("acknowledge, full", true), ("acknowledge, normal", false)] {
        let (data, trace) = (folder.path().join(role), folder.path().join("trace"));
        let test = name_of(&child_process_that_acknowledges_its_writes);
        let child = child_on("sqlite:unused", test, role, &[(FOLDER, data.to_str().expect("UTF-8"))]);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-o"]).arg(&trace).args(["-e", "trace=pwrite64,write,fsync,fdatasync"]);
        let Ok(child) = run_by(strace, &child).spawn() else { return skip("the order of flushes: there is no strace") };
        join_child(child);
        let (mut is_flushed, mut flushed, mut not_flushed) = (true, 0, 0);
        // The threads whose flush of the log goes on.
        let mut flushing: BTreeSet<String> = BTreeSet::new();
        for line in fs::read_to_string(&trace).expect("a trace").lines() {
            let thread = line.split_whitespace().next().unwrap_or_default();
            let is_log = line.contains("townsquare.db-wal>");
            let is_flush = is_log && line.contains("sync(");
            if is_log && line.contains("pwrite64(") {
                is_flushed = false;
            } else if is_flush && line.contains("unfinished") {
                flushing.insert(thread.to_owned());
            } else if is_flush || line.contains("sync resumed>") && flushing.remove(thread) {
                is_flushed = line.ends_with("= 0");
            } else if line.contains(ACKNOWLEDGED.trim_end()) {
                *if is_flushed { &mut flushed } else { &mut not_flushed } += 1;
            }
        }
        assert_eq!(flushed + not_flushed, 8, "each write is acknowledged");
        assert_eq!(not_flushed == 0, all_are_flushed, "{role}: {not_flushed} of 8 were not on the disk");
    }
}
