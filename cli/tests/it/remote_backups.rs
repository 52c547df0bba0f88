//! Backups in an object store: one copy, copies by a schedule, and their restore. The store is an S3 server of the tests.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use nix::sys::signal::Signal;
use tar::{Builder, EntryType, Header};
use townsquare_tests::{
    ports::RefusingPort,
    proxy::{Cut, Proxy},
    s3_server::{S3Server, SECRET_KEY},
};

use crate::fixture::{CommandOutput, Fixture, disturbed, interrupted, run, signal, start_with_log};

/// A file that is an upload in several parts.
const LARGE: usize = 20 << 20;

/// A town with a server beside it.
struct Town {
    town: Fixture,
    server: S3Server,
}

impl Town {
    fn new() -> Town {
        Town { town: Fixture::seeded(), server: S3Server::start() }
    }

    /// A command whose variable TARGET has the URL of `path` in the bucket.
    fn command(&self, path: &str, arguments: &[&str]) -> Command {
        let mut command = self.town.command(arguments);
        command.env("TARGET", self.server.url(path));
        command
    }

    fn run(&self, path: &str, arguments: &[&str]) -> CommandOutput {
        run(self.command(path, arguments), "")
    }

    /// A proxy before the server, and the URL of a path through it.
    fn proxy(&self, path: &str) -> (Proxy, String) {
        let url = self.server.url(path);
        let port = url.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('&').next()).expect("a port");
        let proxy = Proxy::to(port.parse().expect("a number"));
        let through = url.replace(&format!(":{port}&"), &format!(":{}&", proxy.port()));
        (proxy, through)
    }

    fn put(&self, path: &str, size: usize) {
        let bytes: String = (0..size).map(|at| char::from(b'a' + u8::try_from(at % 23).expect("a digit"))).collect();
        let file = self.town.file("upload", &bytes);
        self.town.run(&["files", "put", &file, path, "--set", "max_file_size=200000000"]).succeeded();
    }

    fn object(&self, name: &str) -> PathBuf {
        self.server.folder().join(name)
    }

    /// The names of the objects in the folder `backups`.
    fn objects(&self) -> BTreeSet<String> {
        names(&self.object("backups"))
    }

    /// The uploads in parts that are neither completed nor aborted.
    fn open_uploads(&self) -> usize {
        let folder = self.server.folder();
        names(folder.parent().expect("a folder")).iter().filter(|name| name.starts_with(".upload")).count()
    }

    /// Whether a copy is being sent. The first upload only asks whether the store takes one.
    fn is_uploading(&self) -> bool {
        self.work_folders() > 0 && self.open_uploads() > 0
    }

    /// The folders in the data folder that a copy on its way to a store needs.
    fn work_folders(&self) -> usize {
        names(&self.town.path("town")).iter().filter(|name| name.starts_with(".townsquare-copy-")).count()
    }
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    entries.into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn copies(town: &Town) -> Vec<String> {
    town.objects().into_iter().filter(|name| name.starts_with("townsquare-2") && name.ends_with("Z.tar")).collect()
}

#[test]
fn a_copy_in_a_store_has_rows_and_files_and_is_restored() {
    let town = Town::new();
    let long = format!("assets/{}/{}/é b", "d".repeat(120), "e".repeat(60));
    for (path, size) in [("assets/large", LARGE), (&*long, 100_000), ("assets/small", 10)] {
        town.put(path, size);
    }
    let made = town.run("backups/town.tar", &["backup", "env:TARGET", "--json"]).json();
    assert_eq!(made["backup"], "s3://town/backups/town.tar");
    assert_eq!((town.work_folders(), town.open_uploads()), (0, 0));

    // A dry run makes nothing.
    let restore = ["restore", "env:TARGET", "deep/elsewhere", "--json"];
    let dry = town.run("backups/town.tar", &[&restore[..], &["--dry-run"]].concat()).json();
    assert!(dry["restored"].is_null() && !town.town.path("deep").exists(), "{dry}");
    let restored = town.run("backups/town.tar", &[&restore[..], &["--verify"]].concat()).json();
    assert_eq!((&restored["restored"], &restored["findings"]), (&"deep/elsewhere".into(), &serde_json::json!([])));
    for path in ["assets/large", &*long, "assets/small"] {
        let bytes = |folder: &str| town.town.run(&["files", "get", path, "--data-dir", folder]).succeeded().out;
        assert!(!bytes("town").is_empty() && bytes("town") == bytes("deep/elsewhere"), "{path}");
    }
    assert!(names(&town.town.path("deep/elsewhere")).iter().all(|name| !name.starts_with(".townsquare-copy-")));
    town.run("backups/town.tar", &restore).failed(2, "There is a database in deep/elsewhere already");

    // Any program unpacks the archive, and `restore` takes what it unpacks.
    let unpacked = town.town.path("unpacked");
    tar::Archive::new(fs::File::open(town.object("backups/town.tar")).expect("a file")).unpack(&unpacked).expect("tar");
    let copy = unpacked.join("townsquare.db");
    town.town.run(&["restore", copy.to_str().expect("a path"), "third", "--verify"]).succeeded();
}

#[test]
fn a_copy_without_large_files_is_restored_from_another_temporary_folder() {
    let town = Town::new();
    fs::create_dir(town.town.path("temp")).expect("a folder");
    let temp = ["--temp-dir", "temp"];
    town.run("town.tar", &[&["backup", "env:TARGET"][..], &temp].concat()).succeeded();
    town.run("town.tar", &[&["restore", "env:TARGET", "elsewhere"][..], &temp].concat()).succeeded();
    assert_eq!(names(&town.town.path("temp")), BTreeSet::new());
    town.town.run(&["check", "--full", "--data-dir", "elsewhere"]).succeeded();
    // The folder of the data is the default, and it is there only if there is a database.
    town.run("b.tar", &["backup", "env:TARGET", "--data-dir", "nowhere"]).failed(4, "There is no database");
    town.run("b.tar", &["backup", "env:TARGET", "--temp-dir", "nowhere"]).failed(4, "nowhere");
    for arguments in [&["backup", "copy.db"][..], &["restore", "copy.db", "other"]] {
        town.town.run(&[arguments, &temp].concat()).failed(2, "--temp-dir is for a copy in an object store");
    }
}

#[test]
fn copies_are_made_by_a_schedule_and_old_ones_are_removed() {
    let town = Town::new();
    town.put("assets/large", 100_000);
    fs::create_dir_all(town.object("backups/townsquare-20200102T000000Z.tar.d")).expect("a folder");
    let foreign =
        ["mine.tar", "townsquare-2020.tar", "townsquare-20200101T000000Z.db", "townsquare-20200102T000000Z.tar.d/x"];
    for name in foreign {
        fs::write(town.object("backups").join(name), "mine").expect("an object");
    }
    fs::write(town.object("backups/townsquare-20200101T000000Z.tar"), "old").expect("an object");

    let arguments = ["backup", "env:TARGET", "--every", "1s", "--keep", "2s", "--json"];
    let process = town.command("backups", &arguments).spawn().expect("it starts");
    let is_made = |name: &String| name.as_str() > "townsquare-2021";
    Fixture::wait_until(|| copies(&town).iter().any(is_made));
    let first = copies(&town).into_iter().find(is_made).expect("a copy");
    Fixture::wait_until(|| !town.object("backups").join(&first).exists());
    signal(&process, Signal::SIGTERM);
    let output = process.wait_with_output().expect("it ends");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let removed: Vec<_> = lines.iter().flat_map(|line| line["removed"].as_array().expect("a list").clone()).collect();
    assert_eq!(removed[0], "s3://town/backups/townsquare-20200101T000000Z.tar");
    for name in foreign {
        assert_eq!(fs::read_to_string(town.object("backups").join(name)).expect("it stays"), "mine", "{name}");
    }
    assert_eq!((copies(&town).len(), town.open_uploads(), town.work_folders()), (2, 0, 0), "{out}");
    let newest = format!("backups/{}", copies(&town)[1]);
    town.run(&newest, &["restore", "env:TARGET", "elsewhere", "--verify"]).succeeded();

    // The next copy is due in an hour.
    let log = town.town.path("log");
    let process = start_with_log(&mut town.command("backups", &["backup", "env:TARGET", "--every", "1h"]), &log);
    Fixture::wait_until(|| fs::read_to_string(&log).expect("the log").contains("The next one is made at 20"));
    signal(&process, Signal::SIGTERM);
    assert!(process.wait_with_output().expect("it ends").status.success());
}

#[test]
fn a_signal_in_an_upload_leaves_no_object_and_no_parts() {
    let town = Town::new();
    town.put("assets/large", 100_000_000);
    let output = interrupted(
        Signal::SIGTERM,
        || town.command("backups/town.tar", &["backup", "env:TARGET"]).spawn().expect("it starts"),
        || town.is_uploading(),
        || fs::remove_file(town.object("backups/town.tar")).expect("removed"),
    );
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(130) && err.contains("There is no copy"), "{err}");
    assert_eq!((town.objects().len(), town.open_uploads(), town.work_folders()), (0, 0, 0), "{err}");
}

#[test]
fn a_kill_in_an_upload_leaves_no_object_and_the_next_backup_works() {
    let town = Town::new();
    town.put("assets/large", 100_000_000);
    interrupted(
        Signal::SIGKILL,
        || town.command("backups/town.tar", &["backup", "env:TARGET"]).spawn().expect("it starts"),
        || town.is_uploading(),
        || fs::remove_file(town.object("backups/town.tar")).expect("removed"),
    );
    assert_eq!((town.objects().len(), town.work_folders()), (0, 1));
    town.run("backups/town.tar", &["backup", "env:TARGET"]).succeeded();
    assert_eq!(town.work_folders(), 0);
    town.run("backups/town.tar", &["restore", "env:TARGET", "elsewhere", "--dry-run"]).succeeded();
}

#[test]
fn a_signal_in_a_download_restores_nothing() {
    let town = Town::new();
    town.put("assets/large", 100_000_000);
    town.run("backups/town.tar", &["backup", "env:TARGET"]).succeeded();
    let output = interrupted(
        Signal::SIGTERM,
        || town.command("backups/town.tar", &["restore", "env:TARGET", "elsewhere"]).spawn().expect("it starts"),
        || town.town.path("elsewhere").exists(),
        || fs::remove_dir_all(town.town.path("elsewhere")).expect("removed"),
    );
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(!town.town.path("elsewhere").exists());
}

#[test]
fn two_processes_in_one_folder_make_whole_copies() {
    let town = Town::new();
    town.put("assets/large", 100_000);
    let arguments = ["backup", "env:TARGET", "--every", "1s", "--keep", "1h"];
    let start = || town.command("backups", &arguments).spawn().expect("it starts");
    let processes = [start(), start()];
    let made = || copies(&town).last().cloned();
    for _ in 0..4 {
        let last = made();
        Fixture::wait_until(|| made() > last);
    }
    for process in processes {
        signal(&process, Signal::SIGTERM);
        assert!(process.wait_with_output().expect("it ends").status.success());
    }
    assert_eq!((town.open_uploads(), town.work_folders()), (0, 0));
    let left = copies(&town);
    assert!(!left.is_empty());
    for copy in left {
        town.run(&format!("backups/{copy}"), &["restore", "env:TARGET", "elsewhere", "--dry-run"]).succeeded();
    }
}

#[test]
fn an_upload_that_breaks_off_makes_no_object_and_the_schedule_goes_on() {
    let town = Town::new();
    town.put("assets/large", LARGE);
    // In the root of the bucket.
    let (proxy, url) = town.proxy("");
    let every_part = u32::MAX;
    proxy.cut_each("partNumber=2", Cut::BeforeRequest, every_part);
    let log = town.town.path("log");
    let mut command = town.town.command(&["backup", "env:TARGET", "--every", "1s"]);
    let process = start_with_log(command.env("TARGET", url), &log);
    let text = || fs::read_to_string(&log).expect("the log");
    let made = || names(&town.server.folder()).into_iter().filter(|name| name.starts_with("townsquare-2")).count();
    Fixture::wait_until(|| text().contains("No backup was made: s3://town/townsquare-2"));
    assert!(text().contains("does not answer") && !text().contains("MARKED"), "{}", text());
    assert_eq!(made(), 0);
    proxy.cut_each("nothing has these bytes", Cut::BeforeRequest, every_part);
    Fixture::wait_until(|| made() > 0);
    signal(&process, Signal::SIGTERM);
    assert!(process.wait_with_output().expect("it ends").status.success(), "{}", text());
    assert_eq!((town.open_uploads(), town.work_folders()), (0, 0));
}

#[test]
fn a_backup_whose_last_answer_is_lost_has_succeeded() {
    let town = Town::new();
    let (proxy, url) = town.proxy("backups/town.tar");
    proxy.cut("POST /town/backups/town.tar?uploadId=", Cut::AfterAnswer);
    let mut command = town.town.command(&["backup", "env:TARGET"]);
    command.env("TARGET", url);
    run(command, "").succeeded();
    town.run("backups/town.tar", &["restore", "env:TARGET", "elsewhere", "--dry-run"]).succeeded();
}

#[test]
fn a_download_that_breaks_off_goes_on_and_one_without_an_end_fails() {
    let town = Town::new();
    town.put("assets/large", LARGE);
    town.run("town.tar", &["backup", "env:TARGET"]).succeeded();
    let (proxy, url) = town.proxy("town.tar");
    let restore = |folder: &str| {
        let mut command = town.town.command(&["restore", "env:TARGET", folder]);
        command.env("TARGET", &url);
        run(command, "")
    };
    proxy.cut("GET /town/town.tar", Cut::AfterAnswer);
    restore("elsewhere").succeeded();
    proxy.cut_each("GET /town/town.tar", Cut::BeforeRequest, u32::MAX);
    restore("other").failed(75, "does not answer");
    assert!(!town.town.path("other").exists());

    // Nobody makes a new database there while the copy is read.
    let mut command = town.town.command(&["restore", "env:TARGET", "third"]);
    let process = command.env("TARGET", &url).spawn().expect("it starts");
    Fixture::wait_until(|| names(&town.town.path("third")).iter().any(|name| name.ends_with(".part")));
    signal(&process, Signal::SIGSTOP);
    let refused = town.town.run(&["seed", "--data-dir", "third"]);
    signal(&process, Signal::SIGCONT);
    refused.failed(75, "A backup or a restore writes ");
    assert!(!process.wait_with_output().expect("it ends").status.success());
    assert!(!town.town.path("third").exists());
}

/// The most memory of a command, in KiB, without a rise right before its end.
#[cfg(target_os = "linux")]
fn peak(mut command: Command) -> u64 {
    // With more arenas glibc keeps freed memory for each thread, and which threads work depends on the load.
    let mut process = command.env("MALLOC_ARENA_MAX", "1").spawn().expect("it starts");
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let size = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        peak = size.max(peak);
        if let Some(status) = process.try_wait().expect("a status") {
            assert!(status.success());
            return peak;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_memory_of_a_backup_and_of_a_restore_does_not_grow_with_the_files() {
    let town = Town::new();
    let backup = |name: &str| peak(town.command(name, &["backup", "env:TARGET"]));
    let restore = |name: &str, folder: &str| peak(town.command(name, &["restore", "env:TARGET", folder]));
    town.put("assets/first", LARGE);
    // The larger one of two, because `peak` may miss the last rise.
    let small_backup = backup("small.tar").max(backup("small2.tar"));
    let small_restore = restore("small.tar", "small").max(restore("small2.tar", "small2"));
    town.put("assets/second", 90_000_000);
    let (large_backup, large_restore) = (backup("large.tar"), restore("large.tar", "large"));
    // Two parts of 8 MiB are in memory, and buffers.
    assert!(large_backup < small_backup + 30_000, "{small_backup} KiB, {large_backup} KiB");
    assert!(large_restore < small_restore + 30_000, "{small_restore} KiB, {large_restore} KiB");
}

#[test]
fn an_object_of_the_name_is_not_replaced() {
    let town = Town::new();
    fs::create_dir(town.object("backups")).expect("a folder");
    fs::write(town.object("backups/town.tar"), "mine").expect("an object");
    let ran = town.run("backups/town.tar", &["backup", "env:TARGET"]);
    ran.failed(2, "s3://town/backups/town.tar: The object exists");
    // One that appears in the upload.
    town.put("assets/large", 100_000_000);
    let appears = town.object("backups/late.tar");
    let output = disturbed(
        |_| fs::write(&appears, "mine").expect("an object"),
        || town.command("backups/late.tar", &["backup", "env:TARGET"]).spawn().expect("it starts"),
        || town.work_folders() > 0,
        || fs::remove_file(&appears).expect("removed"),
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for name in ["town.tar", "late.tar"] {
        assert_eq!(fs::read_to_string(town.object("backups").join(name)).expect("it stays"), "mine");
    }
    assert_eq!((town.open_uploads(), town.work_folders()), (0, 0));
}

/// Writes an entry of an archive as it is, with any name.
fn add(archive: &mut Builder<Vec<u8>>, name: &str, kind: EntryType, bytes: &[u8]) {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(bytes.len() as u64);
    header.set_entry_type(kind);
    header.set_mode(0o600);
    if kind == EntryType::Symlink {
        header.set_link_name("/etc/passwd").expect("a name");
    }
    header.set_cksum();
    archive.append(&header, bytes).expect("an entry");
}

#[test]
fn a_damaged_archive_is_refused_and_nothing_is_installed() {
    let town = Town::new();
    town.put("assets/large", 100_000);
    town.run("good.tar", &["backup", "env:TARGET"]).succeeded();
    let good = fs::read(town.object("good.tar")).expect("the archive");
    let entries: Vec<(String, Vec<u8>)> = {
        let mut archive = tar::Archive::new(&*good);
        let entries = archive.entries().expect("entries").map(|entry| {
            let mut entry = entry.expect("an entry");
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut bytes).expect("bytes");
            (entry.path().expect("a path").to_str().expect("UTF-8").to_owned(), bytes)
        });
        entries.collect()
    };
    let order: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    let file = "townsquare.db.files/assets/large";
    assert_eq!(order, ["townsquare-backup.json", "townsquare.db", file, "townsquare-manifest.jsonl"]);

    // The archive with one more entry before entry `at`, or with other bytes in it.
    let with = |at: usize, name: &str, kind: EntryType, bytes: &[u8], is_instead: bool| {
        let mut archive = Builder::new(Vec::new());
        for (index, (entry, content)) in entries.iter().enumerate() {
            if index == at {
                add(&mut archive, name, kind, bytes);
            }
            if index != at || !is_instead {
                add(&mut archive, entry, EntryType::Regular, content);
            }
        }
        if at == entries.len() {
            add(&mut archive, name, kind, bytes);
        }
        archive.into_inner().expect("an archive")
    };
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let place = |wanted: &[u8]| good.windows(wanted.len()).position(|bytes| bytes == wanted).expect("the bytes");
    let regular = EntryType::Regular;
    let outside = "townsquare.db.files/../../escaped";
    let table: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a byte of the database", flipped(place(b"SQLite format 3") + 5_000), "townsquare.db\\\" is not as"),
        ("a byte of a file", flipped(place(b"abcdefghijklmnopqrstuvwabcdefghijk") + 50_000), "is not as the manifest"),
        ("a byte of the manifest", flipped(place(b"\"blake3\":\"") + 12), "is not as the manifest says"),
        ("a byte of a header", flipped(place(file.as_bytes())), "checksum"),
        ("no bytes", Vec::new(), "ends before its manifest"),
        ("no archive", b"no archive".repeat(1_000), "damaged"),
        ("the end is cut", good[..good.len() - 512].to_vec(), "does not end after its manifest"),
        ("the end is missing", good[..good.len() - 1_024].to_vec(), "does not end after its manifest"),
        ("a cut in the database", good[..20_000].to_vec(), "cut off in"),
        ("a cut in a file", good[..place(b"abcdefghijklmnopqrstuvwabcdefghijk") + 10].to_vec(), "cut off in"),
        ("bytes after the end", [&*good, b"x"].concat(), "does not end after its manifest"),
        ("blocks after the end", [&*good, &[0; 512]].concat(), "does not end after its manifest"),
        ("another archive after it", [&*good, &*good].concat(), "does not end after its manifest"),
        (
            "one more file",
            with(3, "townsquare.db.files/assets/more", regular, b"x", false),
            "is not as the manifest says",
        ),
        ("one file less", with(2, "townsquare.db.files/assets/other", regular, b"x", true), "is not as the manifest"),
        ("a name outside", with(3, outside, regular, b"x", false), "is no name of a file"),
        ("a name from the root", with(3, "/escaped", regular, b"x", false), "is no name of a file"),
        ("an unknown name", with(3, "escaped", regular, b"x", false), "is no name of a file"),
        ("a file twice", with(3, file, regular, b"x", false), "is in it twice"),
        ("a file as a folder", with(3, &format!("{file}/x"), regular, b"x", false), "is in it twice"),
        ("the database twice", with(2, "townsquare.db", regular, b"x", false), "is no name of a file"),
        (
            "an entry after the manifest",
            with(4, "townsquare.db.files/assets/x", regular, b"x", false),
            "is not expected",
        ),
        ("a link", with(3, "townsquare.db.files/assets/link", EntryType::Symlink, b"", false), "neither a file"),
        ("a hard link", with(3, "townsquare.db.files/assets/link", EntryType::Link, b"", false), "neither a file"),
        ("a folder", with(3, "townsquare.db.files/assets", EntryType::Directory, b"", false), "neither a file"),
        ("another first entry", with(0, "README", regular, b"x", false), "the first entry is not"),
        ("no database", with(1, "townsquare.db.files/assets/x", regular, b"x", true), "is not expected"),
    ];
    for (what, bytes, part) in table {
        fs::write(town.object("bad.tar"), bytes).expect("an object");
        let ran = town.run("bad.tar", &["restore", "env:TARGET", "elsewhere"]);
        let wanted = part.replace("\\\"", "\"");
        assert!(ran.code == 1 && ran.err.contains("damaged") && ran.err.contains(&wanted), "{what}: {ran:?}");
        assert!(!town.town.path("elsewhere").exists() && !town.town.path("escaped").exists(), "{what}");
    }
    let newer = with(0, "townsquare-backup.json", regular, br#"{"format":2}"#, true);
    fs::write(town.object("bad.tar"), newer).expect("an object");
    town.run("bad.tar", &["restore", "env:TARGET", "elsewhere"]).failed(2, "has the format 2");
    town.run("good.tar", &["restore", "env:TARGET", "elsewhere"]).succeeded();
}

#[test]
fn a_store_that_refuses_is_an_error_before_the_copy_is_made() {
    let town = Town::new();
    let url = town.server.url("backups/town.tar");
    let schedule = url.replace("/town.tar", "");
    let refusing = RefusingPort::bind();
    let gone = url.replace(&town.server.address().to_string(), &format!("127.0.0.1:{}", refusing.port()));
    for (url, code, part) in [
        (url.replace(SECRET_KEY, "MARKED-wrong"), 5, "denies the access"),
        (url.replace("s3://town/", "s3://other/"), 4, "no such bucket"),
        (gone, 75, "cannot connect to 127.0.0.1"),
        (url.replace("region=", "colour=MARKED&region="), 2, "unknown option \"colour\""),
        (url.replace("/backups/town.tar", ""), 2, "does not end with .tar"),
        (schedule.clone(), 2, "does not end with .tar"),
        ("http://MARKED@town.example/b.tar".to_owned(), 2, "has no URL of an object store"),
    ] {
        let mut commands = vec![vec!["backup", "env:TARGET"]];
        if code != 2 {
            commands.push(vec!["restore", "env:TARGET", "elsewhere"]);
        }
        for arguments in commands {
            let mut command = town.town.command(&arguments);
            command.env("TARGET", &url);
            let ran = run(command, "");
            assert!(!ran.err.contains("MARKED") && ran.err.contains("TARGET") | ran.err.contains("s3://"), "{ran:?}");
            let part =
                if arguments[0] == "restore" { part.replace("no such bucket", "no such object") } else { part.into() };
            ran.failed(code, &part);
        }
    }
    let mut command = town.town.command(&["backup", "env:TARGET", "--every", "1h"]);
    command.env("TARGET", schedule.replace("s3://town/", "s3://other/"));
    run(command, "").failed(4, "no such bucket");
    town.run("x.tar", &["backup", "env:TARGET", "--every", "1h"]).failed(2, "has the name of a copy");
    town.run("none.tar", &["restore", "env:TARGET", "elsewhere"]).failed(4, "no such object");
    assert_eq!((town.work_folders(), town.open_uploads()), (0, 0));
    assert!(!town.town.path("elsewhere").exists());
}

#[test]
fn a_url_with_a_secret_is_no_argument() {
    let town = Town::new();
    let url = town.server.url("town.tar");
    for arguments in [&["backup", &*url][..], &["restore", &url, "elsewhere"]] {
        let ran = town.town.run(arguments);
        assert!(!ran.err.contains("MARKED"), "{ran:?}");
        ran.failed(2, "A URL with a secret is no argument");
    }
    // Without the secret, which the environment has.
    let endpoint = url.split(['?', '&']).find(|part| part.starts_with("endpoint=")).expect("an endpoint");
    let url = format!("s3://town/town.tar?{endpoint}&region=us-east-1");
    for arguments in [&["backup", &*url][..], &["restore", &url, "elsewhere"]] {
        let mut command = town.town.command(arguments);
        command.env("AWS_ACCESS_KEY_ID", "tester").env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
        run(command, "").succeeded();
    }
    town.town.run(&["backup", "ftp://town.example/b"]).failed(2, "neither a URL of an object store nor a path");
}

#[test]
fn files_in_a_store_stay_there_and_a_backup_does_not_go_among_them() {
    let town = Town::new();
    let put = town.town.file("put", &"x".repeat(100_000));
    let with_store = |arguments: &[&str]| {
        let mut command = town.command("backups/town.tar", arguments);
        command.env("TOWNSQUARE_STORAGE_URL", town.server.url("objects")).env("TOWNSQUARE_CLAIM_STORE", "true");
        command.env("INSIDE", town.server.url("objects/assets/town.tar"));
        run(command, "")
    };
    with_store(&["files", "put", &put, "assets/large"]).succeeded();
    with_store(&["backup", "env:INSIDE"]).failed(2, "lies in the object store of the database");
    let made = with_store(&["backup", "env:TARGET"]).succeeded();
    assert!(made.err.contains("the copy has only their rows"), "{made:?}");
    with_store(&["restore", "env:TARGET", "elsewhere"]).succeeded();
    assert_eq!(with_store(&["files", "get", "assets/large", "--data-dir", "elsewhere"]).succeeded().out.len(), 100_000);
}
