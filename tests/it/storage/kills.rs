//! SIGKILL during uploads, overwrites, moves and deletes (DESIGN 7).
//!
//! A child process works on paths of its own on four threads, announces each operation, and acknowledges it. After the
//! kill each path has the bytes of before or after the operation that was not acknowledged, whole.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    process::Child,
    thread,
    time::{Duration, SystemTime},
};

use townsquare::{
    ErrorKind,
    blocking::Client,
    storage::{FileInfo, ListFiles, Overwrite, UploadOptions},
};
use townsquare_tests::{
    Rng,
    setting::{seed, setting},
    subprocess::{kill_after, name_of, role},
    test_database::Engine,
};

use super::{
    content::{child_of, content, id_of, inherited_store},
    files::own,
    fixture::{Fixture, SMALL, Store},
};

/// Sizes on both sides of the limits 0 and 64 KiB.
const SIZES: [usize; 5] = [8, 4_096, 65_536, 65_537, 300_000];
const THREADS: u64 = 4;
/// A path that all threads write.
const SHARED: &str = "shared/file";

/// The id of the content of each path.
type Files = BTreeMap<String, u64>;

/// One operation on the paths of a thread.
#[derive(Debug, Clone, PartialEq)]
enum Work {
    Put(String, u64),
    Move(String, String),
    Delete(String),
}

impl Work {
    fn parse(line: &str) -> Work {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["put", path, id] => Work::Put(path.into(), id.parse().expect("an id")),
            ["move", from, to] => Work::Move(from.into(), to.into()),
            ["delete", path] => Work::Delete(path.into()),
            _ => panic!("{line}"),
        }
    }

    fn line(&self) -> String {
        match self {
            Work::Put(path, id) => format!("put {path} {id}"),
            Work::Move(from, to) => format!("move {from} {to}"),
            Work::Delete(path) => format!("delete {path}"),
        }
    }

    fn apply(&self, files: &mut Files) {
        match self {
            Work::Put(path, id) => drop(files.insert(path.clone(), *id)),
            Work::Move(from, to) => {
                let id = files.remove(from).expect("a child moves what exists");
                files.insert(to.clone(), id);
            }
            Work::Delete(path) => drop(files.remove(path)),
        }
    }
}

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_that_is_killed() {
    if role().as_deref() != Some("work on files") {
        return;
    }
    let client = Client::open(inherited_store()).expect("opens").as_service();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let client = &client;
            scope.spawn(move || work_on_files(client, number));
        }
    });
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}").and_then(|()| out.flush()).expect("the parent listens");
}

/// Works until the process is killed.
fn work_on_files(client: &Client, number: u64) {
    let storage = client.storage();
    let mut random = Rng::new();
    let folder = format!("thread-{number}");
    let listed = storage.list("assets", ListFiles::with_prefix(format!("{folder}/"))).expect("a list");
    let mut files: Files = listed.into_iter().map(|file| (file.path, 0)).collect();
    loop {
        let path = format!("{folder}/{}", ["a", "b", "sub/c"][random.usize(..3)]);
        let (other, id) = (format!("{folder}/{}", ["d", "sub/e"][random.usize(..2)]), random.u64(..));
        let data = || content(id, SIZES[(id % 5) as usize]);
        let work = match random.u32(..10) {
            0 | 1 if files.contains_key(&path) => Work::Delete(path),
            2 | 3 if files.contains_key(&path) => Work::Move(path, other),
            4 if files.contains_key(&other) => Work::Move(other, path),
            5 => {
                storage.upload("assets", SHARED, data(), UploadOptions::new()).expect("uploaded");
                continue;
            }
            _ => Work::Put(path, id),
        };
        say(&format!("BEGIN {number} {}", work.line()));
        match &work {
            Work::Put(path, _) => {
                drop(storage.upload("assets", path, data(), UploadOptions::new()).expect("put"));
            }
            Work::Move(from, to) => {
                drop(storage.move_file("assets", from, to, Overwrite::Replace).expect("moved"));
            }
            Work::Delete(path) => storage.delete("assets", path).expect("deleted"),
        }
        work.apply(&mut files);
        say(&format!("ACK {number}"));
    }
}

/// Kills the child some time after its first acknowledgement. Applies what it acknowledged to `files`, and returns the
/// operations that it began last and did not acknowledge.
fn kill(child: Child, delay: Duration, files: &mut Files) -> Vec<Work> {
    let mut pending: BTreeMap<u64, Work> = BTreeMap::new();
    for line in kill_after(child, &["BEGIN ", "ACK "], delay) {
        match line.split_once(' ') {
            Some(("BEGIN", rest)) => {
                let (number, work) = rest.split_once(' ').expect("a thread and its work");
                pending.insert(number.parse().expect("a number"), Work::parse(work));
            }
            Some((_, number)) => {
                let work = pending.remove(&number.parse().expect("a number")).expect("begun before");
                work.apply(files);
            }
            None => panic!("{line}"),
        }
    }
    pending.into_values().collect()
}

/// Reads every listed file, and checks that the bytes are whole and that `stat` agrees with them.
fn read_listed(client: &Client) -> BTreeMap<String, (FileInfo, u64)> {
    let storage = client.storage();
    let listed = storage.list("assets", ListFiles::new().limit(1_000)).expect("a list");
    let read = |FileInfo { path, .. }| {
        let reader = match storage.reader("assets", &path) {
            // The move that was begun is finished meanwhile, by the read of its target or by the client itself.
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            reader => reader.unwrap_or_else(|error| panic!("{path}: {error:?}")),
        };
        let bytes = reader.read_at(0..u64::MAX).unwrap_or_else(|error| panic!("{path}: {error:?}"));
        match storage.stat("assets", &path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            info => assert_eq!(&info.expect("found"), reader.info()),
        }
        assert_eq!(reader.info().size, bytes.len() as u64, "{path}");
        Some((path, (reader.info().clone(), id_of(&bytes, &SIZES))))
    };
    listed.into_iter().filter_map(read).collect()
}

/// Reads every file, after unfinished writes are settled, and checks that `list` agrees too.
fn read_all(client: &Client) -> Files {
    let found = read_listed(client);
    let listed = client.storage().list("assets", ListFiles::new().limit(1_000)).expect("a list");
    assert!(listed.iter().eq(found.values().map(|(info, _)| info)), "{listed:?} {found:?}");
    found.into_iter().map(|(path, (_, id))| (path, id)).collect()
}

/// Lets an hour pass for the staged files that the killed process left.
fn age_staged_files(fixture: &Fixture) {
    let hour_ago = SystemTime::now() - Duration::from_secs(3_700);
    for entry in fs::read_dir(fixture.files_folder().join(".townsquare/staging")).into_iter().flatten().flatten() {
        let file = File::options().write(true).open(entry.path()).expect("a staged file");
        file.set_modified(hour_ago).expect("set");
    }
}

fn assert_nothing_is_left(fixture: &Fixture, files: &Files, client: &Client) {
    age_staged_files(fixture);
    let report = client.storage().repair().expect("repaired");
    assert_eq!((report.rows_removed, &report.mismatched[..]), (0, &[][..]));
    let listed = client.storage().list("assets", ListFiles::new().limit(1_000)).expect("a list");
    assert_eq!(listed.len(), files.len());
    let is_object = |info: &&FileInfo| info.size > fixture.limit();
    let objects = listed.iter().filter(is_object).map(|info| format!("assets/{}", info.path)).collect();
    assert_eq!(fixture.objects(), Some(objects));
    let staged = fs::read_dir(fixture.files_folder().join(".townsquare/staging"));
    assert_eq!(staged.map_or(0, Iterator::count), 0, "staged files");
    for table in ["file_intents", "file_outbox"] {
        let count = own(fixture, &format!("SELECT count(*) FROM townsquare.{table}"));
        assert_eq!(fixture.db.raw.value(&count), "0", "{table}");
    }
    let inline = listed.iter().filter(|info| !is_object(info)).count();
    let count = own(fixture, "SELECT count(*) FROM townsquare.file_contents");
    assert_eq!(fixture.db.raw.value(&count), inline.to_string());
    assert_eq!(&read_all(client), files, "repair changes no file");
}

/// Kills `TOWNSQUARE_TEST_KILLS` processes, `rounds` by default.
fn kill_again_and_again(engine: Engine, limit: u64, rounds: u32) {
    let Some(fixture) = Fixture::on(engine, Store::Folder(limit)) else { return };
    let mut random = Rng::with_seed(seed(11));
    let mut files = Files::new();
    for round in 0..setting("TOWNSQUARE_TEST_KILLS", rounds) {
        let child =
            child_of(&fixture, name_of(&child_process_that_is_killed), "work on files").spawn().expect("starts");
        let pending = kill(child, Duration::from_micros(random.u64(..60_000)), &mut files);
        fixture.db.wait_for_transactions();
        // In half of the rounds a new client settles what was begun, in the others a client that lived on.
        let opened = (round % 2 == 0).then(|| Client::open(fixture.config()).expect("opened"));
        let client = opened.as_ref().map_or_else(|| fixture.db.service.clone(), Client::as_service);
        if opened.is_none() {
            read_listed(&client);
            client.storage().repair().expect("repaired");
        }
        let found = read_all(&client);
        let shared = found.get(SHARED).copied();
        files.remove(SHARED);
        files.extend(shared.map(|id| (SHARED.to_owned(), id)));
        for work in pending {
            let mut done = files.clone();
            work.apply(&mut done);
            // The paths of a thread are its own, so each operation is done or not, whatever the others are.
            let paths = match &work {
                Work::Put(path, _) | Work::Delete(path) => vec![path],
                Work::Move(from, to) => vec![from, to],
            };
            if paths.iter().all(|path| found.get(*path) == done.get(*path)) {
                files = done;
            }
        }
        assert_eq!(found, files, "round {round}: an acknowledged operation is undone, or one is half done");
        assert_nothing_is_left(&fixture, &files, &client);
        if let Some(opened) = opened {
            opened.close();
        }
    }
}

#[test]
fn killed_writers_leave_every_file_whole_with_objects_only() {
    kill_again_and_again(Engine::Sqlite, 0, 12);
}

#[test]
fn killed_writers_leave_every_file_whole_across_the_limit() {
    kill_again_and_again(Engine::Sqlite, SMALL, 12);
}

#[test]
fn killed_writers_leave_every_file_whole_on_postgres() {
    kill_again_and_again(Engine::Postgres, SMALL, 5);
}
