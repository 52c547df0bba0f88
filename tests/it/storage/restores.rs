//! A restore and a backup are all there or not at all, after a kill at any point and on a full disk (DESIGN 7).

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use townsquare::{Config, ErrorKind, blocking::Client, storage::Overwrite};
use townsquare_tests::{
    skip::skip,
    subprocess::{child, name_of, role, run_by, run_on_small_disk},
    temp_dir,
};

use super::fixture::{bytes, paths, put};

const BACKUP: &str = "TOWNSQUARE_TEST_BACKUP";
const TARGET: &str = "TOWNSQUARE_TEST_TARGET";

/// The system calls at which a process is killed, and those that are counted. A kill is before the call.
const CALLS: [&str; 4] =
    ["fsync,fdatasync", "rename,renameat,renameat2,link,linkat", "mkdir,mkdirat", "unlink,unlinkat,rmdir"];

fn config(folder: &Path) -> Config {
    Config::new().data_dir(folder).catalog_api_key("")
}

/// Writes a database with large files.
fn fill(folder: &Path, files: u8) {
    let client = Client::open(config(folder)).expect("opens").as_service();
    for number in 0..files {
        put(&client, "assets", &format!("{}/{number}", number % 2), bytes(200_000, number)).expect("uploaded");
    }
    client.storage().copy("assets", "0/0", "copy", Overwrite::Refuse).expect("copied");
}

/// Backs up a database with large files. Returns the backup, `backup.db` in the folder.
fn back_up(folder: &Path, files: u8) -> PathBuf {
    let (source, backup) = (folder.join("source"), folder.join("backup.db"));
    fill(&source, files);
    let client = Client::open(config(&source)).expect("opens");
    client.backup(&backup).expect("a backup");
    client.close();
    backup
}

/// Opens a folder until a restore no longer keeps it. Returns how often `open` was refused, too.
fn open_beside_restore(folder: &Path) -> (Client, u32) {
    for refusals in 0..100_000 {
        match Client::open(config(folder)) {
            Ok(client) => return (client, refusals),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }
    panic!("a restore ends");
}

/// Checks that a folder has the database and every file of [`fill`].
fn assert_complete(folder: &Path, files: u8) {
    let client = Client::open(config(folder)).expect("opens");
    let service = client.as_service();
    assert_eq!(paths(&service, "assets").len(), usize::from(files) + 1);
    for number in 0..files {
        let path = format!("{}/{number}", number % 2);
        assert!(service.storage().download("assets", &path).expect("whole") == bytes(200_000, number), "{path}");
    }
    let report = service.storage().repair().expect("repaired");
    assert_eq!((report.orphans_removed, report.rows_removed, report.mismatched.len()), (0, 0, 0));
    client.close();
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn variable(name: &str) -> PathBuf {
    std::env::var_os(name).expect("the parent process sets the variable").into()
}

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
#[allow(
    clippy::exit,
    reason = "the client is not to be closed: the parent ends the process at system calls of the backup"
)]
fn child_process_that_copies() {
    match role().as_deref() {
        Some("restore") => Client::restore(variable(BACKUP), variable(TARGET)).expect("restored"),
        Some("back up") => {
            let client = Client::open(config(&variable(TARGET))).expect("opens");
            client.backup(variable(BACKUP)).expect("a backup");
            std::process::exit(0);
        }
        Some("restore on a full disk") => restore_on_a_full_disk(&variable(BACKUP), &variable(TARGET)),
        _ => {}
    }
}

fn copying(role: &str, backup: &Path, target: &Path) -> Command {
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    child(name_of(&child_process_that_copies), role, &[(BACKUP, &text(backup)), (TARGET, &text(target))])
}

/// Runs a command and kills it before its `number`th of these system calls. Returns false if there are fewer.
fn is_killed(command: &Command, calls: &str, number: u32) -> bool {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
    traced.args(["-e", &format!("inject={calls}:signal=KILL:when={number}")]);
    !run_by(traced, command).output().expect("strace starts").status.success()
}

fn can_trace() -> bool {
    Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success())
}

/// Whether a restore has begun in the folder and has not ended.
fn has_part(target: &Path) -> bool {
    names(target).iter().any(|name| name.ends_with(".part"))
}

/// No client makes an empty database where a restore was killed.
#[track_caller]
fn assert_unfinished(target: &Path) {
    let error = Client::open(config(target)).expect_err("a restore that did not end");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.message().contains("was killed before its end"), "{error}");
}

#[test]
fn a_restore_that_is_killed_leaves_all_or_nothing_and_can_be_repeated() {
    if !can_trace() {
        return skip("kills at each step of a restore: no strace here");
    }
    let folder = temp_dir();
    let (data, backup) = (folder.path().join("data"), folder.path().join("backup.db"));
    let (files, elsewhere) = (folder.path().join("backup.db.files"), folder.path().join("elsewhere"));
    fill(&data, 4);
    let client = Client::open(config(&data)).expect("opens");
    client.backup(&backup).expect("a backup");
    client.close();
    let mut half = 0;
    for calls in CALLS {
        for number in 1.. {
            let target = folder.path().join("restored");
            let is_killed = is_killed(&copying("restore", &backup, &target), calls, number);
            if target.join("townsquare.db").exists() {
                Client::restore(&backup, &target).expect_err("there is a database");
            } else {
                assert!(is_killed, "{calls} {number}");
                half += u32::from(target.join("files").exists());
                assert_eq!(has_part(&target), target.exists(), "{calls} {number}: there is no folder without the mark");
                if has_part(&target) {
                    assert_unfinished(&target);
                    // The repeat is killed, too, at another moment.
                    let (calls, number) = (CALLS[number as usize % CALLS.len()], 1 + number / 2);
                    self::is_killed(&copying("restore", &backup, &target), calls, number);
                }
                if target.join("townsquare.db").exists() {
                    assert_complete(&target, 4);
                    fs::remove_dir_all(&target).expect("removed");
                    continue;
                }
                if has_part(&target) {
                    assert_unfinished(&target);
                    fs::rename(&files, &elsewhere).expect("renamed");
                    Client::restore(&backup, &target).expect_err("the backup has lost its files");
                    fs::rename(&elsewhere, &files).expect("renamed");
                    assert_unfinished(&target);
                }
                Client::restore(&backup, &target).expect("the next one restores");
            }
            assert_complete(&target, 4);
            let left = names(&target);
            assert!(left.iter().all(|name| !name.ends_with(".part")), "{calls} {number}: {left:?}");
            fs::remove_dir_all(&target).expect("removed");
            if !is_killed {
                assert!(number > 1, "no {calls}");
                break;
            }
        }
    }
    assert!(half > 0, "one kill was between the files and the database");
}

#[test]
fn a_backup_that_is_killed_leaves_all_or_nothing_and_can_be_repeated() {
    if !can_trace() {
        return skip("kills at each step of a backup: no strace here");
    }
    let folder = temp_dir();
    let (data, backup) = (folder.path().join("data"), folder.path().join("copies/backup.db"));
    fill(&data, 2);
    fs::create_dir(folder.path().join("copies")).expect("created");
    for calls in CALLS {
        for number in 1.. {
            let is_killed = is_killed(&copying("back up", &backup, &data), calls, number);
            if !backup.exists() {
                assert!(is_killed, "{calls} {number}");
                let client = Client::open(config(&data)).expect("opens");
                client.backup(&backup).expect("the next one copies");
                client.close();
            }
            let restored = folder.path().join("restored");
            Client::restore(&backup, &restored).expect("the backup is whole");
            assert_complete(&restored, 2);
            fs::remove_dir_all(&restored).expect("removed");
            fs::remove_file(&backup).expect("removed");
            fs::remove_dir_all(folder.path().join("copies/backup.db.files")).expect("removed");
            if !is_killed {
                break;
            }
        }
    }
}

/// Each backup removes the folders of killed processes. It must not remove a folder that another backup has just made.
#[test]
fn backups_at_the_same_time_are_complete() {
    let folder = temp_dir();
    let data = folder.path().join("data");
    fill(&data, 4);
    let client = Client::open(config(&data)).expect("opens");
    let target = |name: String| folder.path().join(name);
    for round in 0..20 {
        std::thread::scope(|scope| {
            for own in 0..4 {
                let (client, target) = (&client, &target);
                scope.spawn(move || {
                    client.backup(target(format!("{round}-{own}.db"))).expect("nobody else has the name");
                    match client.backup(target(format!("{round}.db"))) {
                        Ok(()) => {}
                        Err(error) => assert!(error.message().contains("exists; a backup"), "{error}"),
                    }
                });
            }
        });
        for name in [format!("{round}-0.db"), format!("{round}-3.db"), format!("{round}.db")] {
            let restored = target(format!("{name}-restored"));
            Client::restore(target(name), &restored).expect("the backup is whole");
            assert_complete(&restored, 4);
        }
    }
    client.close();
}

/// As when a supervisor starts the service again.
#[test]
fn a_client_that_opens_the_folder_of_a_restore_gets_all_or_makes_the_restore_fail() {
    let folder = temp_dir();
    let backup = back_up(folder.path(), 8);
    for round in 0..10 {
        let target = folder.path().join(format!("target-{round}"));
        std::thread::scope(|scope| {
            let restore = scope.spawn(|| Client::restore(&backup, &target));
            let (client, _) = open_beside_restore(&target);
            match restore.join().expect("no panic") {
                Ok(()) => assert_eq!(paths(&client.as_service(), "assets").len(), 9),
                Err(error) => {
                    assert!(error.message().contains("a restore does not overwrite"), "{error}");
                    assert!(paths(&client.as_service(), "assets").is_empty());
                    put(&client.as_service(), "assets", "mine", bytes(200_000, 1)).expect("the store is the client's");
                }
            }
            client.close();
        });
        let left: Vec<_> = names(&target).into_iter().filter(|name| name.ends_with(".part")).collect();
        assert_eq!(left, Vec::<String>::new());
    }
}

#[test]
fn a_client_makes_a_new_database_after_a_restore_that_failed() {
    let folder = temp_dir();
    let backup = back_up(folder.path(), 8);
    fs::remove_file(folder.path().join("backup.db.files/assets/1/7")).expect("removed");
    let mut refused_rounds = 0;
    for round in 0..20 {
        // Also the folder above is new.
        let target = folder.path().join(format!("target-{round}/town"));
        std::thread::scope(|scope| {
            let restore = scope.spawn(|| Client::restore(&backup, &target));
            while round % 2 == 0 && !target.exists() && !restore.is_finished() {
                std::thread::yield_now();
            }
            let (client, refusals) = open_beside_restore(&target);
            let error = restore.join().expect("no panic").expect_err("a file is missing");
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            assert!(refusals == 0 || error.message().contains("The backup is not complete"), "{error}");
            refused_rounds += usize::from(refusals > 0);
            put(&client.as_service(), "assets", "mine", bytes(200_000, 1)).expect("the store is the client's");
            client.close();
        });
        let left: Vec<_> = names(&target).into_iter().filter(|name| name.ends_with(".part")).collect();
        assert_eq!(left, Vec::<String>::new());
    }
    assert!(refused_rounds > 0, "a client comes while a restore runs");
}

#[test]
fn nobody_opens_a_new_database_where_a_copy_is_being_written() {
    let folder = temp_dir();
    let stage = folder.path().join("townsquare.db.0123.part");
    fs::create_dir(&stage).expect("a temporary folder can be written to");
    // As the process that writes the copy holds it.
    let lock = fs::File::create(stage.join("lock")).expect("a temporary folder can be written to");
    lock.lock().expect("nobody else has the file");
    for migrate in [true, false] {
        let error =
            Client::open(config(folder.path()).migrate(migrate)).map(drop).expect_err("a copy is being written");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().starts_with("A backup or a restore writes "), "{error}");
    }
    // As when the process was killed.
    drop(lock);
    let error = Client::open(config(folder.path())).map(drop).expect_err("a restore that did not end");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.message().contains("was killed before its end: repeat it, or remove the folder"), "{error}");
    fs::remove_dir_all(&stage).expect("removed");
    Client::open(config(folder.path())).expect("a new database").close();
}

#[test]
fn a_restore_on_a_full_disk_leaves_nothing_and_runs_again() {
    let (folder, disk) = (temp_dir(), temp_dir());
    let (data, backup) = (folder.path().join("data"), folder.path().join("backup.db"));
    fill(&data, 20);
    let client = Client::open(config(&data)).expect("opens");
    client.backup(&backup).expect("a backup");
    client.close();
    run_on_small_disk(disk.path(), 2, &copying("restore on a full disk", &backup, disk.path()));
}

fn restore_on_a_full_disk(backup: &Path, disk: &Path) {
    let target = disk.join("restored");
    let filler = disk.join("filler");
    // Without room for the files, and without room for the database alone.
    for room in [0, 1_900_000] {
        fs::write(&filler, vec![1; room]).expect("there is room");
        let error = Client::restore(backup, &target).expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert!(names(&target).is_empty(), "{:?}", names(&target));
        fs::remove_file(&filler).expect("removed");
    }
    let larger = Command::new("mount").args(["-o", "remount,size=20m"]).arg(disk).status().expect("mount runs");
    assert!(larger.success());
    Client::restore(backup, &target).expect("there is room");
    assert_complete(&target, 20);
}

#[test]
fn a_url_or_a_tilde_is_no_folder_to_restore_to() {
    let folder = temp_dir();
    for target in ["postgres://ann:secret@db.example/town", "~/town", ":memory"] {
        let error = Client::restore(folder.path().join("none.db"), target).expect_err("refused");
        assert!(error.kind() == ErrorKind::Config && error.message().contains("Option data_dir"), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
