//! A crash test: kills a writing process a thousand times, and compares what the library acknowledged with what is there.
//!
//! `cargo run --release --example torture [ROUNDS] [SEED]`. Each round has three steps:
//!
//! 1. A child process writes on four threads: accounts, spaces, fidgets, small and large files. It prints each operation before
//!    the call, and again when the call has returned: then the operation is acknowledged. It also prints each change that its
//!    change streams deliver.
//! 2. The parent kills the child at a random time. In every fourth round on average it also kills a second child, which opens the
//!    database and so recovers what the first one left.
//! 3. The parent opens the database and checks it:
//!    - each acknowledged operation is there, and each other operation is there as a whole or not at all;
//!    - each file has all bytes of its version, and no unfinished upload is left in the folder of files;
//!    - the change streams, which go on from a stored cursor in the next process, deliver the changes of each row once and in order;
//!    - `Client::check` finds nothing.
//!
//! The seed repeats the delays of the kills and the choices of the writers. The machine still decides at which operation a kill
//! arrives. A kill loses nothing that the operating system has in memory, so this is no test of a power loss.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    mem::take,
    panic,
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use fastrand::Rng;
use townsquare::{
    Config, Json, Uuid,
    blocking::Client,
    check::{CheckDepth, FindingCode},
    config::Durability,
    realtime::{ChangeRequest, RowChange},
    spaces::{NewFidget, NewSpace, SpacePatch},
    storage::{Overwrite, UploadOptions},
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The version of each row and file, by the key `TABLE/ID`. Each write gives a row a new version: as the name of a space, the
/// position of a fidget, or the metadata of a file.
type Rows = BTreeMap<String, String>;

/// What an operation does to a row or a file: its key and its new version. The version is empty if the operation deletes the row.
type Effect = (String, String);

/// The tables with a change stream. A change of a deleted account has no address, so accounts are compared as rows alone.
const TABLES: [&str; 3] = ["spaces", "fidgets", "files"];

/// The writing threads. No two of them write the same row.
const WRITERS: u64 = 4;

/// Files up to this size are in the database, larger ones in the folder of files.
const INLINE: u64 = 65_536;
const SIZES: [usize; 4] = [100, 60_000, 70_000, 300_000];

/// The lines of the report.
const REPORT: &str = "kills, operations acknowledged, operations lost, operations in doubt, operations in doubt found, \
    operations half done, files read, files torn, files left over, changes expected, changes delivered, changes missing, \
    changes doubled, changes out of order, findings of the check, errors";

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    if let ["child", role, folder, seed, ref cursors @ ..] = arguments[..] {
        report_error(run_child(role, Path::new(folder), seed, cursors));
        return ExitCode::SUCCESS;
    }
    let number = |index: usize, default| arguments.get(index).map_or(Ok(default), |text| text.parse());
    match (number(0, 1_000), number(1, fastrand::u64(..))) {
        (Ok(rounds), Ok(seed)) if arguments.len() <= 2 => run_rounds(rounds, seed).unwrap_or_else(|error| {
            println!("No folder for temporary files: {error}");
            ExitCode::FAILURE
        }),
        _ => {
            println!("Usage: torture [ROUNDS] [SEED], two whole numbers");
            ExitCode::from(2)
        }
    }
}

/// Names the place of all data, so that no variable of the environment leads the test to another database.
fn config(folder: &Path) -> Config {
    let database = format!("sqlite:{}", folder.join("townsquare.db").display());
    let files = format!("file:{}", folder.join("files").display());
    let config = Config::new().data_dir(folder).database_url(database).storage_url(files).catalog_url("sample:");
    // The library prunes a change log of this size several times in a thousand rounds.
    config.durability(Durability::Full).inline_file_limit(INLINE).change_retention_rows(5_000)
}

// The child -------------------------------------------------------------------------------------------------------------------

/// Prints a line in one piece, so that no kill cuts it.
fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    // Without a parent, nobody reads the line.
    let _ = output.write_all(format!("{line}\n").as_bytes()).and_then(|()| output.flush());
}

fn report_error(result: Result<()>) {
    if let Err(error) = result {
        say(&format!("error {error}"));
    }
}

fn run_child(role: &str, folder: &Path, seed: &str, cursors: &[&str]) -> Result<()> {
    say("start");
    panic::set_hook(Box::new(|panic| say(&format!("error {panic}"))));
    let client = &Client::open(config(folder))?.as_service();
    let (rows, seed) = (&read_rows(client)?, seed.parse::<u64>()?);
    thread::scope(|scope| {
        for (table, cursor) in TABLES.iter().zip(cursors) {
            scope.spawn(move || report_error(print_changes(client, table, cursor)));
        }
        for number in (0..WRITERS).filter(|_| role == "write") {
            let writer = Writer { client, number, rows: rows.clone(), random: Rng::with_seed(seed ^ number) };
            scope.spawn(move || report_error(writer.write_until_killed()));
        }
    });
    Ok(())
}

fn print_changes(client: &Client, table: &str, cursor: &str) -> Result<()> {
    for change in client.realtime().changes(ChangeRequest::table(table).since(cursor))? {
        let change = change?;
        let (key, version) = effect_of_change(&change);
        say(&format!("change {table} {} {key}={version}", change.cursor));
    }
    Ok(())
}

struct Writer<'a> {
    client: &'a Client,
    number: u64,
    rows: Rows,
    random: Rng,
}

impl Writer<'_> {
    fn write_until_killed(mut self) -> Result<()> {
        loop {
            match self.number {
                // A sign-up takes longer than a write, because it hashes a password.
                0 => self.change_account()?,
                _ if self.random.bool() => self.change_space()?,
                _ => self.change_file()?,
            }
        }
    }

    /// Makes a call between two lines: the first says its effects, the second that it has returned.
    fn perform<T>(&mut self, effects: &[Effect], call: impl FnOnce(&Client) -> townsquare::Result<T>) -> Result<()> {
        let texts: Vec<_> = effects.iter().map(|(key, version)| format!("{key}={version}")).collect();
        say(&format!("begin {} {}", self.number, texts.join(" ")));
        call(self.client)?;
        say(&format!("done {}", self.number));
        apply(effects, &mut self.rows);
        Ok(())
    }

    /// Creates or deletes one of four accounts.
    fn change_account(&mut self) -> Result<()> {
        let email = format!("{}@town.example", self.random.u8(..4));
        let effect = |version: &str| [(format!("users/{email}"), version.to_owned())];
        match self.client.auth().find_user(&email)? {
            Some(user) => self.perform(&effect(""), |client| client.auth().delete_user(user.id)),
            None => self.perform(&effect(&email), |client| client.auth().sign_up(&email, "correct horse battery")),
        }
    }

    /// Creates, renames or deletes one of four spaces, or creates or moves both fidgets in it by one call.
    fn change_space(&mut self) -> Result<()> {
        let (first, version) = (10 * self.random.u64(..4), self.random.u64(..).to_string());
        let [id, left, right] = [0, 1, 2].map(|part| Uuid::from_u64_pair(self.number, first + part));
        let space = |version: &str| (format!("spaces/{id}"), version.to_owned());
        let pair = |version: &str| [left, right].map(|id| (format!("fidgets/{id}"), version.to_owned()));
        let has = |effect: &Effect| self.rows.contains_key(&effect.0);
        let (has_space, has_pair) = (has(&space("")), has(&pair("")[0]));
        match self.random.u8(..6) {
            _ if !has_space => self.perform(&[space(&version)], |client| {
                client.spaces().create_space(NewSpace::named(version).with_id(id))
            }),
            0 => {
                let fidgets = pair("").into_iter().filter(|_| has_pair);
                let effects: Vec<_> = fidgets.chain([space("")]).collect();
                self.perform(&effects, |client| client.spaces().delete_space(id))
            }
            1 | 2 => self.perform(&[space(&version)], |client| {
                client.spaces().update_space(id, SpacePatch::new().name(version))
            }),
            _ if has_pair => self.perform(&pair(&version), |client| {
                let positions = [left, right].map(|fidget| (fidget, Some(Json::from(&*version))));
                client.fidgets().save_positions(id, positions.into())
            }),
            _ => self.perform(&pair(&version), |client| {
                let fidgets = [left, right].map(|id| NewFidget::of_type("tides").position(&*version).with_id(id));
                client.fidgets().create_fidgets(id, fidgets.into())
            }),
        }
    }

    /// Uploads, overwrites, moves or deletes one of eight files.
    fn change_file(&mut self) -> Result<()> {
        let [path, other] = [self.random.u8(..8), self.random.u8(..8)].map(|file| format!("{}/{file}", self.number));
        let effect = |path: &str, version: &str| (format!("files/{path}"), version.to_owned());
        let is_free = !self.rows.contains_key(&effect(&other, "").0);
        match (self.rows.get(&effect(&path, "").0), self.random.u8(..6)) {
            (Some(_), 0) => self.perform(&[effect(&path, "")], |client| client.storage().delete("assets", &path)),
            (Some(version), 1 | 2) if is_free => {
                let effects = [effect(&path, ""), effect(&other, version)];
                self.perform(&effects, |client| client.storage().move_file("assets", &path, &other, Overwrite::Refuse))
            }
            _ => {
                let version = self.random.u64(..);
                let options = UploadOptions::new().metadata("version", version.to_string());
                self.perform(&[effect(&path, &version.to_string())], |client| {
                    client.storage().upload("assets", &path, content(version), options)
                })
            }
        }
    }
}

// Rows and files by key and version -------------------------------------------------------------------------------------------

fn apply(effects: &[Effect], rows: &mut Rows) {
    rows.extend(effects.iter().cloned());
    rows.retain(|_, version| !version.is_empty());
}

/// The key and the version of a row.
fn effect_of_row(table: &str, row: &serde_json::Map<String, Json>) -> Effect {
    let column = |name| row.get(name).unwrap_or(&Json::Null);
    let [id, version] = match table {
        "users" => [column("email"), column("email")],
        "spaces" => [column("id"), column("name")],
        "fidgets" => [column("id"), column("position")],
        _ => [column("path"), &column("metadata")["version"]],
    }
    .map(|value| value.as_str().unwrap_or("none").to_owned());
    (format!("{table}/{id}"), version)
}

fn effect_of_change(change: &RowChange) -> Effect {
    let row = change.new.as_ref().or(change.old.as_ref()).map(|row| effect_of_row(change.table, row));
    let (key, version) = row.unwrap_or_default();
    (key, if change.new.is_some() { version } else { String::new() })
}

/// Reads all rows and all bytes of all files. A file without the bytes of its version has the version "torn".
fn read_rows(client: &Client) -> Result<Rows> {
    let mut rows = Rows::new();
    for row in client.export_rows(&["users", "spaces", "fidgets"])? {
        let row = row?;
        rows.extend([effect_of_row(row.table, &row.values)]);
    }
    for file in client.storage().iter("assets", "", 100) {
        let file = file?;
        let version = file.metadata.get("version").cloned().unwrap_or_default();
        let bytes = client.storage().download("assets", &file.path);
        let is_whole = bytes.is_ok_and(|bytes| version.parse().is_ok_and(|version| content(version) == bytes));
        rows.insert(format!("files/{}", file.path), if is_whole { version } else { "torn".to_owned() });
    }
    Ok(rows)
}

/// The bytes of a version of a file.
fn content(version: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(version);
    let mut bytes = vec![0; SIZES[random.usize(..SIZES.len())]];
    random.fill(&mut bytes);
    bytes
}

/// Whether the process ended by the signal of `Child::kill`.
fn is_killed(status: ExitStatus) -> bool {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status) == Some(9);
    #[cfg(not(unix))]
    return !status.success();
}

// The parent ------------------------------------------------------------------------------------------------------------------

fn run_rounds(rounds: u64, seed: u64) -> std::io::Result<ExitCode> {
    let folder = tempfile::Builder::new().prefix("townsquare-torture-").tempdir()?;
    println!("{rounds} rounds with the seed {seed} in the folder {}", folder.path().display());
    #[allow(clippy::disallowed_methods, reason = "an example measures its own time")]
    let begin = Instant::now();
    let mut test = Torture { folder: folder.path().to_owned(), ..Torture::default() };
    let mut round = 0;
    while round < rounds && test.first_fault.is_none() {
        round += 1;
        if let Err(error) = test.run_round(Rng::with_seed(seed.wrapping_add(round))) {
            test.fault("errors", format!("the test ended with an error: {error}"));
        }
        if round % 50 == 0 {
            let (acknowledged, seconds) = (test.counted("operations acknowledged"), begin.elapsed().as_secs());
            println!("{round:>5} rounds, {acknowledged:>7} operations acknowledged, {seconds} s");
        }
    }
    println!();
    for name in REPORT.split(", ") {
        println!("{name:<26}{:>10}", test.counted(name));
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{seconds:.0} s, {:.1} kills a second", test.counted("kills") as f64 / seconds);
    let Some(fault) = test.first_fault else { return Ok(ExitCode::SUCCESS) };
    println!("\nThe first fault, in round {round}: {fault}.\nThe folder {} is kept.", folder.keep().display());
    Ok(ExitCode::FAILURE)
}

#[derive(Default)]
struct Torture {
    folder: PathBuf,
    /// What must be in the database.
    rows: Rows,
    /// The operation that each writer has begun and not acknowledged.
    in_doubt: BTreeMap<String, Vec<Effect>>,
    /// For each row with a change since the last check: the versions that it got, and those that the change streams delivered.
    changes: BTreeMap<String, [Vec<String>; 2]>,
    /// The last cursor of each table.
    cursors: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
    first_fault: Option<String>,
}

impl Torture {
    fn counted(&self, name: &str) -> usize {
        self.counts.get(name).copied().unwrap_or_default()
    }

    fn count(&mut self, name: &'static str, number: usize) {
        *self.counts.entry(name).or_default() += number;
    }

    fn fault(&mut self, name: &'static str, text: String) {
        self.count(name, 1);
        self.first_fault.get_or_insert(text);
    }

    fn run_round(&mut self, mut random: Rng) -> Result<()> {
        if self.cursors.is_empty() {
            self.open_and_check()?;
        }
        self.kill_child("write", random.u64(..), "done", Duration::from_micros(random.u64(..120_000)))?;
        if random.u8(..4) == 0 {
            self.kill_child("open", 0, "start", Duration::from_micros(random.u64(..30_000)))?;
        }
        self.open_and_check()
    }

    /// Starts a child, and kills it `delay` after its first line that begins with `word`.
    fn kill_child(&mut self, role: &str, seed: u64, word: &str, delay: Duration) -> Result<()> {
        let mut command = Command::new(env::current_exe()?);
        command.args(["child", role]).arg(&self.folder).arg(seed.to_string());
        command.args(TABLES.map(|table| &self.cursors[table])).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().map(BufReader::new);
        let kill = move || {
            thread::sleep(delay);
            child.kill().and_then(|()| child.wait())
        };
        let (mut kill, mut killer) = (Some(kill), None);
        for line in output.into_iter().flat_map(BufReader::lines) {
            let line = line?;
            if let Some(kill) = kill.take_if(|_| line.starts_with(word)) {
                killer = Some(thread::spawn(kill));
            }
            self.read_line(&line);
        }
        // The next process must not start before this one is gone.
        match killer.map(JoinHandle::join) {
            Some(Ok(Ok(status))) if is_killed(status) => self.count("kills", 1),
            _ => self.fault("errors", "a child ended by itself".to_owned()),
        }
        Ok(())
    }

    fn read_line(&mut self, line: &str) {
        let effect = |text: &str| text.split_once('=').map(|(key, version)| (key.to_owned(), version.to_owned()));
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["start"] => {}
            ["begin", writer, ref effects @ ..] => {
                self.in_doubt.insert(writer.to_owned(), effects.iter().filter_map(|text| effect(text)).collect());
            }
            ["done", writer] => {
                self.count("operations acknowledged", 1);
                let effects = self.in_doubt.remove(writer).unwrap_or_default();
                self.expect(&effects);
            }
            ["change", table, cursor, text] => {
                self.cursors.insert(table.to_owned(), cursor.to_owned());
                effect(text).into_iter().for_each(|effect| self.add_change(1, effect));
            }
            _ => self.fault("errors", format!("a child printed {line:?}")),
        }
    }

    fn expect(&mut self, effects: &[Effect]) {
        apply(effects, &mut self.rows);
        // Accounts have no change stream.
        let followed = effects.iter().filter(|(key, _)| !key.starts_with("users/"));
        followed.for_each(|effect| self.add_change(0, effect.clone()));
    }

    fn add_change(&mut self, side: usize, (key, version): Effect) {
        self.changes.entry(key).or_default()[side].push(version);
    }

    fn open_and_check(&mut self) -> Result<()> {
        let client = Client::open(config(&self.folder))?;
        let service = client.as_service();
        // The client finishes unfinished uploads in the background. This call waits for it.
        service.storage().repair()?;
        self.compare_rows(&read_rows(&service)?);
        for table in TABLES {
            let end = service.realtime().cursor()?;
            if let Some(start) = self.cursors.insert(table.to_owned(), end.clone()) {
                for change in service.realtime().changes(ChangeRequest::table(table).since(start).until(end))? {
                    self.add_change(1, effect_of_change(&change?));
                }
            }
        }
        self.compare_changes();
        // The folder of files is empty until the first large file.
        let files = self.folder.join("files");
        if files.join("assets").exists() {
            for entry in fs::read_dir(files.join(".townsquare/staging"))? {
                self.fault("files left over", format!("{} is of an unfinished upload", entry?.path().display()));
            }
        }
        for finding in client.check(CheckDepth::Quick)? {
            if !matches!(finding.code, FindingCode::DiskFull | FindingCode::DiskLow) {
                self.fault("findings of the check", format!("the check found {finding}"));
            }
        }
        client.close();
        Ok(())
    }

    fn compare_rows(&mut self, found: &Rows) {
        for effects in take(&mut self.in_doubt).into_values() {
            let mut after = self.rows.clone();
            apply(&effects, &mut after);
            let is_found = |rows: &Rows| effects.iter().all(|(key, _)| rows.get(key) == found.get(key));
            self.count("operations in doubt", 1);
            if is_found(&after) {
                self.count("operations in doubt found", 1);
                self.expect(&effects);
            } else if effects.len() > 1 && !is_found(&self.rows) {
                self.fault("operations half done", format!("of the operation {effects:?} only a part is there"));
            }
        }
        self.count("files read", found.keys().filter(|key| key.starts_with("files/")).count());
        let keys: BTreeSet<_> = self.rows.keys().chain(found.keys()).cloned().collect();
        for key in keys.iter().filter(|key| self.rows.get(*key) != found.get(*key)).collect::<Vec<_>>() {
            let name =
                if found.get(key).is_some_and(|version| version == "torn") { "files torn" } else { "operations lost" };
            let [expected, now] = [&self.rows, found].map(|rows| rows.get(key).map_or("missing", String::as_str));
            self.fault(name, format!("the version of {key} is {now} instead of {expected}"));
        }
    }

    fn compare_changes(&mut self) {
        for (key, [expected, delivered]) in take(&mut self.changes) {
            self.count("changes expected", expected.len());
            self.count("changes delivered", delivered.len());
            if expected != delivered {
                let name = match delivered.len().cmp(&expected.len()) {
                    Ordering::Less => "changes missing",
                    Ordering::Equal => "changes out of order",
                    Ordering::Greater => "changes doubled",
                };
                let text = format!("{key} got the versions {expected:?}, but the streams delivered {delivered:?}");
                self.fault(name, text);
            }
        }
    }
}
