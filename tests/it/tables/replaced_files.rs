//! A database whose files are removed or replaced while a client has it open (DESIGN 3): a write that was acknowledged is in
//! the file that `data_dir` names, every other write fails, and no read answers from a file that is gone.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use townsquare::{Config, Error, ErrorKind, Result, Uuid, blocking::Client, spaces::NewSpace};
use townsquare_tests::{
    TempDir,
    fixture::assert_kind,
    subprocess::{child, in_subprocess, name_of, role, run_child, run_with_mounted_file},
    temp_dir,
    wait::wait_until,
};

/// The variable that names the database file to a child process.
const FILE: &str = "TOWNSQUARE_TEST_FILE";

fn config(folder: &Path) -> Config {
    Config::new().data_dir(folder).catalog_api_key("")
}

fn database(folder: &TempDir) -> PathBuf {
    folder.path().join("townsquare.db")
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// An open client, a handle of it for the service, and a space that was created and read.
struct Opened {
    client: Client,
    service: Client,
    space: Uuid,
}

impl Opened {
    fn at(folder: &Path) -> Opened {
        let client = Client::open(config(folder)).expect("opens");
        let service = service_of(&client);
        let space = write(&service).expect("written");
        service.spaces().get_space(space).expect("read, so that the pool has a connection");
        Opened { client, service, space }
    }

    /// Checks that every write and, after a moment, every read fails.
    fn assert_refused(&self, what: &str) {
        for _ in 0..3 {
            for refused in [write(&self.service), write_handed_over(&self.service)] {
                assert_names(&assert_kind(ErrorKind::Unavailable, refused), what);
            }
        }
        let spaces = self.service.spaces();
        wait_until("reads fail as well", || spaces.get_space(self.space).is_err());
        assert_names(&assert_kind(ErrorKind::Unavailable, spaces.get_public_spaces(10, 0)), what);
    }
}

fn service_of(client: &Client) -> Client {
    client.as_service()
}

/// Writes on the calling thread.
fn write(client: &Client) -> Result<Uuid> {
    client.spaces().create_space(NewSpace::named("later")).map(|space| space.id)
}

/// Writes on the thread of the writer, to which asynchronous callers hand over.
fn write_handed_over(client: &Client) -> Result<Uuid> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let spaces = client.inner().spaces();
    runtime.block_on(spaces.create_space(NewSpace::named("later"))).map(|space| space.id)
}

fn assert_names(error: &Error, what: &str) {
    assert_eq!(error.code(), Some("58030"), "{error}");
    assert!(error.message().contains(&format!("{what} was removed or replaced")), "{error}");
    assert!(!error.message().contains("townsquare-"), "no path: {error}");
    let advice = if what == "the database file" { "put the right file back" } else { "close every client" };
    assert!(error.message().contains(advice), "it says what to do: {error}");
    assert!(error.explanation().contains("restore a backup"), "{}", error.explanation());
}

/// The ids of the spaces in the database file.
fn stored(file: &Path) -> Vec<Uuid> {
    let connection = rusqlite::Connection::open(file).expect("a database");
    let mut ids = connection.prepare("SELECT id FROM spaces ORDER BY created_at, id").expect("SQL");
    let ids = ids.query_map([], |row| row.get::<_, String>(0)).expect("rows");
    ids.map(|id| id.expect("a row").parse().expect("an id")).collect()
}

#[test]
fn a_removed_database_takes_no_further_write_and_answers_no_read() {
    let folder = temp_dir();
    let opened = Opened::at(folder.path());
    fs::remove_file(database(&folder)).expect("removed");
    opened.assert_refused("the database file");
    assert_kind(ErrorKind::Unavailable, opened.client.backup(folder.path().join("backup.db")));
    opened.client.close();
    assert!(!database(&folder).exists(), "closing creates no file");
}

#[test]
fn a_database_that_another_one_replaced_takes_no_further_write_and_the_other_one_stays_whole() {
    let (folder, other) = (temp_dir(), temp_dir());
    let opened = Opened::at(folder.path());
    let theirs = Opened::at(other.path());
    theirs.client.close();
    fs::rename(database(&other), database(&folder)).expect("replaced");
    opened.assert_refused("the database file");
    opened.client.close();
    // As an operator does who puts a copy in place.
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(beside(&database(&folder), suffix));
    }
    assert_eq!(stored(&database(&folder)), [theirs.space]);
}

#[test]
fn a_replaced_folder_is_noticed() {
    let folder = temp_dir();
    let data = folder.path().join("data");
    let opened = Opened::at(&data);
    fs::rename(&data, folder.path().join("away")).expect("renamed");
    opened.assert_refused("the database file");
    let second = Opened::at(&data);
    opened.assert_refused("the database file");
    opened.client.close();
    let later = write(&second.service).expect("the other database works");
    second.client.close();
    assert_eq!(stored(&data.join("townsquare.db")), [second.space, later]);
}

#[test]
fn a_database_that_comes_back_works_again() {
    let folder = temp_dir();
    let opened = Opened::at(folder.path());
    let away = folder.path().join("away.db");
    fs::rename(database(&folder), &away).expect("renamed");
    opened.assert_refused("the database file");
    fs::rename(&away, database(&folder)).expect("renamed back");
    let later = write(&opened.service).expect("it is the same file");
    assert_eq!(opened.service.spaces().get_space(later).expect("read").id, later);
    opened.client.close();
}

#[test]
fn a_removed_write_ahead_log_takes_no_further_write_and_loses_none() {
    let folder = temp_dir();
    let opened = Opened::at(folder.path());
    fs::remove_file(beside(&database(&folder), "-wal")).expect("removed");
    opened.assert_refused("the write-ahead log of the database");
    // The last close moves the log that is open into the database.
    opened.client.close();
    assert_eq!(stored(&database(&folder)), [opened.space]);
    let again = Client::open(config(folder.path())).expect("opens again");
    let second = write(&service_of(&again)).expect("written");
    again.close();
    assert_eq!(stored(&database(&folder)), [opened.space, second]);
}

#[test]
fn a_removed_index_of_the_write_ahead_log_takes_no_further_write() {
    let folder = temp_dir();
    let opened = Opened::at(folder.path());
    fs::remove_file(beside(&database(&folder), "-shm")).expect("removed");
    opened.assert_refused("the index of the write-ahead log");
    opened.client.close();
    assert_eq!(stored(&database(&folder)), [opened.space]);
}

/// Descriptors of the database and of the index that this process closes take the locks of its clients along. Another process
/// then takes itself for the last user: it removes the write-ahead log when it closes the database.
#[test]
fn no_write_is_lost_when_the_locks_of_the_process_were_dropped() {
    let test = no_write_is_lost_when_the_locks_of_the_process_were_dropped;
    if role().is_some() {
        let file = PathBuf::from(env::var_os(FILE).expect("the parent sets it"));
        assert!(!stored(&file).is_empty());
        return;
    }
    let folder = temp_dir();
    let opened = Opened::at(folder.path());
    let mut written = vec![opened.space];
    let path = database(&folder);
    for file in [path.clone(), beside(&path, "-shm")] {
        drop(fs::File::open(file).expect("opened"));
    }
    let variables = [(FILE, path.to_str().expect("UTF-8"))];
    run_child(&mut child(name_of(&test), "reader", &variables));
    assert!(!beside(&path, "-wal").exists(), "the other process removed the log");
    for _ in 0..20 {
        written.extend(write(&opened.service).ok());
        written.extend(write_handed_over(&opened.service).ok());
    }
    opened.client.close();
    assert_eq!(stored(&path), written);
}

#[test]
fn a_program_that_changes_its_folder_keeps_its_database() {
    in_subprocess(a_program_that_changes_its_folder_keeps_its_database, || {
        let folder = temp_dir();
        env::set_current_dir(folder.path()).expect("a folder");
        let opened = Opened::at(Path::new("data"));
        env::set_current_dir("/").expect("a folder");
        let later = write(&opened.service).expect("written");
        for id in [opened.space, later] {
            opened.service.spaces().get_space(id).expect("read");
        }
        opened.client.backup(folder.path().join("backup.db")).expect("copied");
        assert_eq!(stored(&folder.path().join("data/townsquare.db")), [opened.space, later]);
        opened.client.close();
    });
}

#[test]
fn a_database_behind_symbolic_links_works() {
    let folder = temp_dir();
    let (real, linked) = (folder.path().join("real"), folder.path().join("linked"));
    fs::create_dir(&real).expect("a folder");
    std::os::unix::fs::symlink(&real, &linked).expect("a link");
    let opened = Opened::at(&linked);
    write(&opened.service).expect("written");
    let file = folder.path().join("linked.db");
    std::os::unix::fs::symlink(real.join("townsquare.db"), &file).expect("a link");
    let by_link = Client::open(Config::new().database_url(format!("sqlite:{}", file.display())).data_dir(&linked));
    let by_link = by_link.expect("opens");
    write(&service_of(&by_link)).expect("written");
    assert_eq!(stored(&real.join("townsquare.db")).len(), 3);
    // `data_dir` names another folder after that.
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("a folder");
    fs::remove_file(&linked).expect("removed");
    std::os::unix::fs::symlink(&other, &linked).expect("a link");
    assert_kind(ErrorKind::Unavailable, write(&opened.service));
    by_link.close();
    opened.client.close();
}

/// Each name has a write-ahead log of its own: of two processes with two names, one would write over what the other has committed.
#[test]
fn a_database_with_two_names_is_refused() {
    let (folder, other) = (temp_dir(), temp_dir());
    let opened = Opened::at(folder.path());
    fs::hard_link(database(&folder), database(&other)).expect("a link");
    for name in [&folder, &other] {
        let error = assert_kind(ErrorKind::Config, Client::open(config(name.path())).map(drop));
        assert!(error.message().contains("has another name, a hard link"), "{error}");
    }
    let written = write(&opened.service).expect("who has it open goes on");
    opened.client.close();
    fs::remove_file(database(&other)).expect("removed");
    let opened = Opened::at(folder.path());
    opened.service.spaces().get_space(written).expect("it is there");
    opened.client.close();
}

/// The log of such a database would stay behind in a container that is removed.
#[test]
fn a_database_that_is_mounted_without_its_folder_is_refused() {
    let test = name_of(&a_database_that_is_mounted_without_its_folder_is_refused);
    if role().is_some() {
        let folder = PathBuf::from(env::var(FILE).expect("a child"));
        let error = assert_kind(ErrorKind::Config, Client::open(config(&folder)).map(drop));
        assert!(error.message().contains("is mounted without its folder"), "{error}");
        assert!(!beside(&folder.join("townsquare.db"), "-wal").exists());
        return;
    }
    let (folder, other) = (temp_dir(), temp_dir());
    Opened::at(folder.path()).client.close();
    fs::write(database(&other), "").expect("a place for the mount");
    let child = child(test, "mounted", &[(FILE, other.path().to_str().expect("UTF-8"))]);
    run_with_mounted_file(&database(&folder), &database(&other), &child);
}

/// SQLite deletes a log without its database, and with it the writes that were not copied into the database yet.
#[test]
fn a_write_ahead_log_without_its_database_stays_until_the_database_is_back() {
    let (folder, killed) = (temp_dir(), temp_dir());
    Opened::at(folder.path()).client.close();
    let opened = Opened::at(folder.path());
    // What a killed process leaves.
    let copied = Command::new("cp").arg("-r").arg(folder.path().join(".")).arg(killed.path()).status();
    assert!(copied.expect("cp runs").success());
    opened.client.close();
    let (file, kept) = (database(&killed), killed.path().join("kept.db"));
    let log = fs::read(beside(&file, "-wal")).expect("a log");
    assert!(!log.is_empty());
    fs::rename(&file, &kept).expect("renamed");
    for is_there in [false, true] {
        if is_there {
            fs::write(&file, "").expect("a file");
        }
        for config in [config(killed.path()), config(killed.path()).migrate(false)] {
            let error = assert_kind(ErrorKind::Config, Client::open(config));
            assert!(error.message().contains("is missing or empty, and its write-ahead log"), "{error}");
        }
        assert_eq!(fs::read(beside(&file, "-wal")).expect("a log"), log);
        assert_eq!(file.exists(), is_there);
    }
    fs::rename(&kept, &file).expect("renamed");
    let client = Client::open(config(killed.path())).expect("opens");
    client.as_service().spaces().get_space(opened.space).expect("nothing is lost");
    client.close();
}
