//! A crash test: kills a writing process a thousand times, and compares what the library acknowledged with what is there.
//!
//! `cargo run --release --example torture [ROUNDS] [SEED]`. Each round has three steps:
//!
//! 1. A child process writes on four threads: accounts, spaces, fidgets, small and large files. It prints each operation before
//!    the call, and again when the call has returned: then the operation is acknowledged. It also prints each change that its
//!    change streams deliver.
//! 2. The parent kills the child at a random time. In every fourth round it also kills a second child, which opens the database
//!    and so recovers what the first one left.
//! 3. The parent opens the database and checks it:
//!    - each acknowledged operation is there, and each other operation is there as a whole or not at all;
//!    - each file has the bytes of one upload, from the first to the last;
//!    - the change streams, which go on from a stored cursor in the next process, deliver each change once and in order;
//!    - no unfinished upload is left in the folder of files, and `Client::check` finds nothing.
//!
//! The seed repeats the delays of the kills and the choices of the writers. The operation at which a kill arrives still depends on
//! the machine. A killed process leaves its writes in the memory of the operating system, so this is no test of a power loss.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    mem::take,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use townsquare::{
    Config, Json, Uuid,
    blocking::Client,
    check::{CheckDepth, FindingCode},
    realtime::{ChangeRequest, RowChange},
    spaces::{NewFidget, NewSpace, SpacePatch},
    storage::{Overwrite, UploadOptions},
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The version of each row and file by its key `TABLE/ID`.
type Rows = BTreeMap<String, String>;

/// What an operation does to one row or file: the key, and the new version. The version is empty if the row is deleted.
type Effect = (String, String);

/// The tables with a change stream. A change that deletes an account tells no address, so accounts are compared as rows alone.
const TABLES: [&str; 3] = ["spaces", "fidgets", "files"];

/// The number of writing threads. No two of them write the same row.
const WRITERS: u64 = 4;

/// The sizes of files. Those above 65,536 bytes are in the folder of files, the others in the database.
const SIZES: [usize; 4] = [100, 60_000, 70_000, 300_000];

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    if let ["child", role, folder, seed, ref cursors @ ..] = arguments[..] {
        report(run_child(role, Path::new(folder), seed, cursors));
        return ExitCode::SUCCESS;
    }
    let number = |index: usize, default| arguments.get(index).map_or(Ok(default), |text| text.parse());
    match (number(0, 1_000), number(1, fastrand::u64(..))) {
        (Ok(rounds), Ok(seed)) if arguments.len() <= 2 => run_rounds(rounds, seed),
        _ => {
            println!("Usage: torture [ROUNDS] [SEED], two whole numbers");
            ExitCode::from(2)
        }
    }
}

fn config(folder: &Path) -> Config {
    // A small change log, so that the library also prunes it between the kills.
    Config::new().data_dir(folder).catalog_url("sample:").change_retention_rows(20_000)
}

// The child ---------------------------------------------------------------------------------------------------------------

/// Prints a line in one piece, so that a kill never cuts it.
fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    // Writing fails only if the parent is gone. Then nobody needs the line.
    let _ = output.write_all(format!("{line}\n").as_bytes()).and_then(|()| output.flush());
}

fn report(result: Result<()>) {
    if let Err(error) = result {
        say(&format!("failed {error}"));
    }
}

fn run_child(role: &str, folder: &Path, seed: &str, cursors: &[&str]) -> Result<()> {
    say("start");
    let client = Client::open(config(folder))?.as_service();
    let rows = read_rows(&client)?;
    if role == "open" {
        return Ok(());
    }
    let seed: u64 = seed.parse()?;
    thread::scope(|scope| {
        for (table, cursor) in TABLES.into_iter().zip(cursors) {
            let client = &client;
            scope.spawn(move || report(print_changes(client, table, cursor)));
        }
        for number in 0..WRITERS {
            let random = Rng::with_seed(seed ^ number << 32);
            let writer = Writer { client: &client, number, rows: rows.clone(), random };
            scope.spawn(move || report(writer.write_until_killed()));
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
            // A sign-up hashes a password, which takes longer than a write.
            match self.number {
                0 => self.change_account()?,
                _ if self.random.bool() => self.change_space()?,
                _ => self.change_file()?,
            }
        }
    }

    /// Runs an operation between two lines: one before the call, one when the call has returned.
    fn perform<T>(&mut self, effects: &[Effect], call: impl FnOnce(&Client) -> townsquare::Result<T>) -> Result<()> {
        let texts: Vec<_> = effects.iter().map(|(key, version)| format!("{key}={version}")).collect();
        say(&format!("begin {} {}", self.number, texts.join(" ")));
        call(self.client)?;
        say(&format!("done {}", self.number));
        apply(effects, &mut self.rows);
        Ok(())
    }

    fn change_account(&mut self) -> Result<()> {
        let email = format!("{}@town.example", self.random.u8(..4));
        let key = format!("users/{email}");
        match self.client.auth().find_user(&email)? {
            Some(user) => self.perform(&[(key, String::new())], |client| client.auth().delete_user(user.id)),
            None => self.perform(&[(key, "account".to_owned())], |client| {
                client.auth().sign_up(&email, "correct horse battery")
            }),
        }
    }

    /// Changes one of four spaces, or its two fidgets, which are created and placed in one call.
    fn change_space(&mut self) -> Result<()> {
        let (number, version) = (10 * self.random.u64(1..=4), format!("{:x}", self.random.u64(..)));
        let [space, first, second] = [0, 1, 2].map(|part| Uuid::from_u64_pair(self.number, number + part));
        let (key, fidgets) = (format!("spaces/{space}"), [first, second].map(|id| (format!("fidgets/{id}"), id)));
        let both = |version: &str| fidgets.iter().map(|(key, _)| (key.clone(), version.to_owned())).collect::<Vec<_>>();
        let (is_there, has_fidgets) = (self.rows.contains_key(&key), self.rows.contains_key(&fidgets[0].0));
        match self.random.u8(..6) {
            _ if !is_there => self.perform(&[(key, version.clone())], |client| {
                client.spaces().create_space(NewSpace::named(version).with_id(space))
            }),
            0 => {
                let mut effects = if has_fidgets { both("") } else { Vec::new() };
                effects.push((key, String::new()));
                self.perform(&effects, |client| client.spaces().delete_space(space))
            }
            1 | 2 => self.perform(&[(key, version.clone())], |client| {
                client.spaces().update_space(space, SpacePatch::new().name(version))
            }),
            _ if has_fidgets => self.perform(&both(&version), |client| {
                let positions = fidgets.iter().map(|(_, id)| (*id, Some(Json::from(&*version)))).collect();
                client.fidgets().save_positions(space, positions)
            }),
            _ => self.perform(&both(&version), |client| {
                let fidget = |(_, id): &(_, Uuid)| NewFidget::of_type("tides").position(&*version).with_id(*id);
                client.fidgets().create_fidgets(space, fidgets.iter().map(fidget).collect())
            }),
        }
    }

    /// Uploads, overwrites, moves or deletes one of eight files.
    fn change_file(&mut self) -> Result<()> {
        let [path, other] = [self.random.u8(..8), self.random.u8(..8)].map(|file| format!("{}/{file}", self.number));
        let [key, other_key] = [&path, &other].map(|path| format!("files/{path}"));
        let is_free = !self.rows.contains_key(&other_key);
        match (self.rows.get(&key).cloned(), self.random.u8(..6)) {
            (Some(_), 0) => self.perform(&[(key, String::new())], |client| client.storage().delete("assets", &path)),
            (Some(version), 1 | 2) if is_free => self
                .perform(&[(key, String::new()), (other_key, version)], |client| {
                    client.storage().move_file("assets", &path, &other, Overwrite::Refuse)
                }),
            _ => {
                let version = self.random.u64(..);
                let text = format!("{version:x}");
                let options = UploadOptions::new().metadata("version", &*text);
                self.perform(&[(key, text)], |client| {
                    client.storage().upload("assets", &path, content(version), options)
                })
            }
        }
    }
}

// Rows, files and changes as keys with versions -------------------------------------------------------------------------------

fn apply(effects: &[Effect], rows: &mut Rows) {
    for (key, version) in effects {
        if version.is_empty() {
            rows.remove(key)
        } else {
            rows.insert(key.clone(), version.clone())
        };
    }
}

/// The key and the version of a row.
fn effect_of_row(table: &str, row: &serde_json::Map<String, Json>) -> Effect {
    let text = |column: &str| row.get(column).and_then(Json::as_str).unwrap_or("none").to_owned();
    let (id, version) = match table {
        "users" => (text("email"), "account".to_owned()),
        "spaces" => (text("id"), text("name")),
        "fidgets" => (text("id"), text("position")),
        _ => (text("path"), row["metadata"]["version"].as_str().unwrap_or("none").to_owned()),
    };
    (format!("{table}/{id}"), version)
}

fn effect_of_change(change: &RowChange) -> Effect {
    match (&change.new, &change.old) {
        (Some(new), _) => effect_of_row(change.table, new),
        (None, Some(old)) => (effect_of_row(change.table, old).0, String::new()),
        (None, None) => (format!("{}/none", change.table), String::new()),
    }
}

/// Reads all rows and all bytes of all files.
fn read_rows(client: &Client) -> Result<Rows> {
    let mut rows = Rows::new();
    for row in client.export_rows(&["users", "spaces", "fidgets"])? {
        let row = row?;
        rows.extend([effect_of_row(row.table, &row.values)]);
    }
    for file in client.storage().iter("assets", "", 100) {
        let file = file?;
        let version = match client.storage().download("assets", &file.path) {
            Ok(bytes) => version_of(&bytes).filter(|version| file.metadata.get("version") == Some(version)),
            Err(_) => None,
        };
        rows.insert(format!("files/{}", file.path), version.unwrap_or_else(|| TORN.to_owned()));
    }
    Ok(rows)
}

/// The version of a file that cannot be read, or with other bytes than those of its version.
const TORN: &str = "torn";

/// The bytes of a file. They begin with the version, and all depend on it.
fn content(version: u64) -> Vec<u8> {
    let mut random = Rng::with_seed(version);
    let mut bytes = vec![0; SIZES[random.usize(..SIZES.len())]];
    random.fill(&mut bytes);
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes
}

/// The version of `content`, or `None` for other bytes.
fn version_of(bytes: &[u8]) -> Option<String> {
    let version = u64::from_le_bytes(*bytes.first_chunk()?);
    (content(version) == bytes).then(|| format!("{version:x}"))
}

// The parent --------------------------------------------------------------------------------------------------------------

/// The counts of the report: those without and those with a fault. A test without faults has only zeros in the second list.
const COUNTS: [&str; 7] = [
    "kills",
    "operations acknowledged",
    "operations in doubt",
    "operations in doubt, done",
    "files read",
    "changes expected",
    "changes delivered",
];
const FAULTS: [&str; 9] = [
    "operations lost",
    "operations half done",
    "files torn",
    "files left over",
    "changes missing",
    "changes doubled",
    "changes out of order",
    "findings of the check",
    "errors",
];

fn run_rounds(rounds: u64, seed: u64) -> ExitCode {
    let folder = env::temp_dir().join(format!("townsquare-torture-{}", std::process::id()));
    println!("{rounds} rounds with the seed {seed} in {}", folder.display());
    #[allow(clippy::disallowed_methods, reason = "an example measures its own time")]
    let begin = Instant::now();
    let mut test = Torture { folder, ..Torture::default() };
    let mut round = 0;
    while round < rounds && test.first_fault.is_none() {
        round += 1;
        if let Err(error) = test.run_round(Rng::with_seed(seed ^ round)) {
            test.fault("errors", format!("the test ended with an error: {error}"));
        }
        if round % 50 == 0 {
            let count = test.counts["operations acknowledged"];
            println!("{round:>5} rounds, {count:>7} operations acknowledged, {} s", begin.elapsed().as_secs());
        }
    }
    println!();
    for name in COUNTS.iter().chain(&FAULTS) {
        println!("{name:<26}{:>10}", test.counts.get(name).unwrap_or(&0));
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{seconds:.0} s, {:.1} rounds a second", round as f64 / seconds);
    let Some(fault) = test.first_fault else {
        let _ = fs::remove_dir_all(&test.folder);
        return ExitCode::SUCCESS;
    };
    println!("\nRound {round}: {fault}.\nThe folder {} is kept.", test.folder.display());
    ExitCode::FAILURE
}

#[derive(Default)]
struct Torture {
    folder: PathBuf,
    /// What must be in the database.
    expected: Rows,
    /// The operation that each writer has begun and not acknowledged.
    in_doubt: BTreeMap<String, Vec<Effect>>,
    /// The operations of each writer since the last check that must be in the database, in order.
    done: BTreeMap<String, Vec<Vec<Effect>>>,
    /// The changes since the last check, in the order of their delivery.
    delivered: Vec<Effect>,
    /// The last cursor of each table.
    cursors: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
    first_fault: Option<String>,
}

impl Torture {
    fn count(&mut self, name: &'static str, number: usize) {
        *self.counts.entry(name).or_default() += number;
    }

    fn fault(&mut self, name: &'static str, text: String) {
        self.count(name, 1);
        self.first_fault.get_or_insert(text);
    }

    fn run_round(&mut self, mut random: Rng) -> Result<()> {
        let mut delay = |milliseconds: u64| Duration::from_micros(random.u64(..milliseconds * 1_000));
        let (writing, opening) = (delay(120), delay(30));
        if self.cursors.is_empty() {
            self.open_and_check()?;
        }
        self.kill_child("write", random.u64(..), "done", writing)?;
        if random.u8(..4) == 0 {
            self.kill_child("open", 0, "start", opening)?;
        }
        self.open_and_check()
    }

    /// Starts a child, and kills it `delay` after the first line that begins with `word`.
    fn kill_child(&mut self, role: &str, seed: u64, word: &str, delay: Duration) -> Result<()> {
        let mut command = Command::new(env::current_exe()?);
        command
            .args(["child", role])
            .arg(&self.folder)
            .arg(seed.to_string())
            .args(TABLES.map(|table| &self.cursors[table]));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take();
        thread::scope(|scope| -> Result<()> {
            let mut kill = Some(move || {
                thread::sleep(delay);
                child.kill().and_then(|()| child.wait())
            });
            for line in output.map(BufReader::new).into_iter().flat_map(BufReader::lines) {
                let line = line?;
                if line.starts_with(word)
                    && let Some(kill) = kill.take()
                {
                    scope.spawn(kill);
                }
                self.read_line(&line);
            }
            Ok(())
        })?;
        self.count("kills", 1);
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
                self.add_done(writer, effects);
            }
            ["change", table, cursor, text] => {
                self.delivered.extend(effect(text));
                self.cursors.insert(table.to_owned(), cursor.to_owned());
            }
            _ => self.fault("errors", format!("a child printed {line:?}")),
        }
    }

    fn add_done(&mut self, writer: &str, effects: Vec<Effect>) {
        apply(&effects, &mut self.expected);
        self.done.entry(writer.to_owned()).or_default().push(effects);
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
                    self.delivered.push(effect_of_change(&change?));
                }
            }
        }
        self.compare_changes();
        for entry in fs::read_dir(self.folder.join("files/.townsquare/staging")).into_iter().flatten() {
            self.fault("files left over", format!("{} is the file of an unfinished upload", entry?.path().display()));
        }
        for finding in client.check(CheckDepth::Quick)? {
            if !matches!(finding.code, FindingCode::DiskFull | FindingCode::DiskLow) {
                self.fault("findings of the check", format!("the check of the database found: {finding}"));
            }
        }
        client.close();
        Ok(())
    }

    fn compare_rows(&mut self, found: &Rows) {
        for (writer, effects) in take(&mut self.in_doubt) {
            let mut after = self.expected.clone();
            apply(&effects, &mut after);
            let is_found = |rows: &Rows| effects.iter().all(|(key, _)| rows.get(key) == found.get(key));
            self.count("operations in doubt", 1);
            if is_found(&after) {
                self.count("operations in doubt, done", 1);
                self.add_done(&writer, effects);
            } else if !is_found(&self.expected) {
                self.fault("operations half done", format!("the operation {effects:?} is there in part"));
            }
        }
        let keys: BTreeSet<_> = self.expected.keys().chain(found.keys()).cloned().collect();
        self.count("files read", found.keys().filter(|key| key.starts_with("files/")).count());
        for key in keys {
            let (expected, version) = (self.expected.get(&key), found.get(&key));
            if expected != version {
                let name =
                    if version.is_some_and(|version| version == TORN) { "files torn" } else { "operations lost" };
                self.fault(name, format!("{key} has the version {version:?}, and {expected:?} was acknowledged"));
            }
        }
    }

    /// Compares the delivered changes with the effects of the operations. Effects of one operation may arrive in any order.
    fn compare_changes(&mut self) {
        let (done, delivered) = (take(&mut self.done), take(&mut self.delivered));
        let mut counts: BTreeMap<&Effect, (usize, usize)> = BTreeMap::new();
        let followed = |(key, _): &&Effect| !key.starts_with("users/");
        done.values().flatten().flatten().filter(followed).for_each(|effect| counts.entry(effect).or_default().0 += 1);
        delivered.iter().for_each(|effect| counts.entry(effect).or_default().1 += 1);
        for ((key, version), (expected, arrived)) in counts {
            self.count("changes expected", expected);
            self.count("changes delivered", arrived);
            if expected != arrived {
                let name = if arrived < expected { "changes missing" } else { "changes doubled" };
                let text = format!("{key} got the version {version:?} {expected} times, in {arrived} changes");
                self.fault(name, text);
            }
        }
        for (operations, table) in done.values().flat_map(|operations| TABLES.map(|table| (operations, table))) {
            let is_in_table = |effect: &&Effect| effect.0.split('/').next() == Some(table);
            let keys: BTreeSet<_> = operations.iter().flatten().filter(is_in_table).map(|(key, _)| key).collect();
            let mut changes = delivered.iter().filter(|(key, _)| keys.contains(key));
            for operation in operations {
                let expected: BTreeSet<_> = operation.iter().filter(is_in_table).collect();
                let arrived: BTreeSet<_> = changes.by_ref().take(expected.len()).collect();
                if expected != arrived {
                    self.fault(
                        "changes out of order",
                        format!("the changes {arrived:?} arrived in place of {expected:?}"),
                    );
                    break;
                }
            }
        }
    }
}
