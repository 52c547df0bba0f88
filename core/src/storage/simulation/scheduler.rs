//! The scheduler of a simulation, and the checks at its end.
//!
//! Invariant: each decision is a random number of the seed. No decision depends on the order in which threads run.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, TryStreamExt};
use jiff::Timestamp;
use object_store::{Attribute, ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    BUCKET, PATHS,
    client::{Client, Opened},
    history::{Call, Found, History, Outcome, size},
    request::Request,
    store::fault,
    world::{Step, Waiting, World},
};
use crate::{
    clock::ManualClock,
    database::{Row, Statement},
    error::{Error, ErrorKind, Result},
    model::{ListFiles, Overwrite, UploadOptions},
    storage::{Storage, rows, statements as sql},
    threads::turn,
};

/// The calls of a simulation, without the reads at its end.
const CALLS: usize = 14;
/// The calls that run at a time.
const AT_ONCE: usize = 4;
const CRASHES: usize = 2;
/// More steps than any simulation needs.
const MAX_STEPS: usize = 30_000;
/// When a request that its client has given up arrives at the latest, in milliseconds after it was sent. `recovery` relies on 60 s.
const LATEST: u64 = 45_000;

/// How often 5 s pass at the end. A call that was dropped waits for locks meanwhile, and each lock for 30 s.
const MIN_ROUNDS: usize = 20;

/// Whether a deletion that its client has given up may arrive too. The code under test has no defence against it: a store deletes
/// whatever version is there.
const LATE_DELETIONS: bool = false;

static CHANGES: Statement =
    Statement::new("SELECT kind, old, new FROM townsquare.changes WHERE table_name = 'files' ORDER BY id");

static FILES: Statement = Statement::new("SELECT files.path, files.etag FROM townsquare.files AS files");

static COUNT_UNFINISHED: Statement = Statement::new(
    "SELECT (SELECT count(*) FROM townsquare.file_intents), (SELECT count(*) FROM townsquare.file_outbox)",
);

/// A call that runs.
struct Running {
    number: usize,
    client: usize,
    task: JoinHandle<()>,
    result: Arc<Mutex<Option<Result<Found>>>>,
}

/// See the module.
pub(super) struct Simulation {
    file: PathBuf,
    clock: ManualClock,
    clients: Vec<Client>,
    running: Vec<Running>,
    history: History,
    steps: usize,
    calls: usize,
    crashes: usize,
    has_faults: bool,
}

/// Ends the simulation of the current thread. Returns its trace.
pub(super) fn end() -> Vec<String> {
    turn::set_hook(None);
    World::end().map(|world| world.trace).unwrap_or_default()
}

pub(super) fn begin_turn(name: &'static str) -> oneshot::Receiver<Result<()>> {
    let (answer, answered) = oneshot::channel();
    World::with(|world| {
        if world.is_instant {
            let _ = answer.send(Ok(()));
        } else {
            world.wait(Step::Database { name, answer });
        }
    });
    answered
}

impl Simulation {
    pub(super) fn new(seed: u64, file: &Path) -> Simulation {
        World::begin(seed);
        turn::set_hook(Some(Box::new(begin_turn)));
        Simulation {
            file: file.to_owned(),
            clock: ManualClock::at(Timestamp::from_second(1_700_000_000).expect("a time")),
            clients: (0..pick(&[1, 2, 2, 3])).map(Client::new).collect(),
            running: Vec::new(),
            history: History::default(),
            steps: 0,
            calls: 0,
            crashes: 0,
            has_faults: true,
        }
    }

    /// Runs the simulation.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn run(&mut self) -> Result<(), String> {
        while self.calls < CALLS || !self.running.is_empty() {
            self.step()?;
        }
        self.has_faults = false;
        self.settle()?;
        self.check_rest()
    }

    /// Does one thing.
    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err("the simulation does not end".to_owned());
        }
        for index in 0..self.clients.len() {
            if !self.clients[index].is_alive() {
                if !self.has_faults || chance(10) {
                    trace(format!("client {index} opens"));
                    self.clients[index].open(&self.file, &self.clock);
                }
            } else if let Some(Err(error)) = self.clients[index].opened() {
                if error.kind() != ErrorKind::Unavailable {
                    return Err(format!("client {index} cannot be opened: {error}"));
                }
                self.crash(index);
            }
        }
        let waiting = World::with(|world| {
            world.waiting.retain(|waiting| match &waiting.step {
                Step::Store { request, .. } if request.changes() => true,
                step => !step.is_abandoned(),
            });
            world.waiting.len()
        });
        let choice = below(100);
        if choice < 8 && self.calls < CALLS && self.running.len() < AT_ONCE {
            self.begin_random_call();
        } else if self.has_faults && choice == 8 && self.crashes < CRASHES && chance(25) {
            self.crashes += 1;
            self.crash(below(self.clients.len()));
        } else if self.has_faults && choice == 9 && !self.running.is_empty() && chance(50) {
            self.drop_call(below(self.running.len()));
        } else if waiting == 0 || (self.has_faults && choice < 12) {
            self.advance(waiting == 0);
        } else {
            self.proceed(below(waiting))?;
        }
        self.collect()
    }

    /// Takes the results of the calls that have ended.
    fn collect(&mut self) -> Result<(), String> {
        let mut index = 0;
        while index < self.running.len() {
            let Some(result) = self.running[index].result.lock().take() else {
                index += 1;
                continue;
            };
            let ended = self.running.remove(index);
            let shown = match &result {
                Ok(_) => "done".to_owned(),
                Err(error) => format!("{:?} {}", error.kind(), error.code().unwrap_or_default()),
            };
            trace(format!("call {} ends: {shown}", ended.number));
            self.history.end(ended.number, self.steps, result)?;
        }
        Ok(())
    }

    fn begin_random_call(&mut self) {
        let Some((index, opened)) = self.random_client() else { return };
        self.calls += 1;
        let path = pick(&PATHS);
        let call = match below(100) {
            0..45 => {
                let if_match = if chance(30) { self.history.known_version(path) } else { None };
                Call::Upload { path, size: size(chance(70)), if_match, upsert: chance(85) }
            }
            45..58 => Call::Delete { path },
            58..74 => Call::Read { path },
            74..83 => Call::Move { from: path, to: other_path(path) },
            83..90 => Call::Copy { from: path, to: other_path(path) },
            90..95 => Call::List,
            _ => Call::Repair,
        };
        self.begin_call(index, opened.storage, call);
    }

    fn random_client(&self) -> Option<(usize, Opened)> {
        let index = below(self.clients.len());
        Some((index, self.clients[index].opened()?.ok()?))
    }

    fn begin_call(&mut self, client: usize, storage: Storage, call: Call) {
        let number = self.history.begin(call.clone(), self.steps);
        // Without the etag, which is a random number of the process.
        let shown = match &call {
            Call::Upload { path, size, if_match, upsert } => {
                format!("upload {path} of {size}, if_match {}, upsert {upsert}", if_match.is_some())
            }
            call => format!("{call:?}"),
        };
        trace(format!("client {client} begins call {number}: {shown}"));
        let result = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&result);
        let task = self.clients[client].spawn(async move {
            let found = call_storage(&storage, call, number).await;
            *slot.lock() = Some(found);
        });
        self.running.push(Running { number, client, task, result });
        self.clients[client].drive();
    }

    /// Lets a step proceed, with or without a fault.
    fn proceed(&mut self, index: usize) -> Result<(), String> {
        let fate = if self.has_faults { below(100) } else { 99 };
        let (Waiting { client, incarnation, mut step }, now) =
            World::with(|world| (world.waiting.remove(index), world.now));
        let mut line = format!("{} client {client}: ", self.steps);
        match step {
            Step::Database { name, answer } => {
                let fails = fate == 0;
                let _ = write!(line, "{name}{}", if fails { " fails" } else { "" });
                let outcome = if fails { Err(Error::unavailable("a simulated fault of the database")) } else { Ok(()) };
                trace(line);
                let _ = answer.send(outcome);
            }
            Step::Store { ref request, ref answer, issued_at, ref mut is_mute } => {
                let _ = write!(line, "{request}");
                let is_late = answer.is_closed();
                if (is_late || *is_mute) && now.saturating_sub(issued_at) < LATEST && self.has_faults && fate >= 15 {
                    // Later, or not at all while the client waits for an answer.
                    World::with(|world| world.waiting.push(Waiting { client, incarnation, step }));
                    return Ok(());
                }
                if is_late {
                    let arrives = chance(60) && (LATE_DELETIONS || !matches!(request, Request::Delete(_)));
                    trace(format!("{line} {}", if arrives { "arrives late" } else { "is lost" }));
                    if arrives {
                        let _ = World::with(|world| request.apply(&world.objects));
                    }
                    return Ok(());
                }
                if fate < 3 && !*is_mute {
                    trace(format!("{line} gets no answer"));
                    *is_mute = true;
                    World::with(|world| world.waiting.push(Waiting { client, incarnation, step }));
                    return Ok(());
                }
                let Step::Store { request, answer, .. } = step else { return Ok(()) };
                let result = match fate {
                    3..6 => Err(fault("it fails before its effect")),
                    6..9 => {
                        let _ = World::with(|world| request.apply(&world.objects));
                        Err(fault("it fails after its effect"))
                    }
                    _ => World::with(|world| request.apply(&world.objects)),
                };
                if fate == 9 && matches!(request, Request::Copy(..)) {
                    // A proxy or a library has sent the request twice.
                    let _ = write!(line, " twice");
                    let (answer, _) = oneshot::channel();
                    let step = Step::Store { request: request.clone(), answer, issued_at, is_mute: true };
                    World::with(|world| world.waiting.push(Waiting { client, incarnation, step }));
                }
                let shown = match fate {
                    3..6 => " fails before its effect",
                    6..9 => " fails after its effect",
                    _ if result.is_err() => " finds nothing",
                    _ => "",
                };
                trace(format!("{line}{shown}"));
                let _ = answer.send(result);
            }
        }
        if self.clients[client].incarnation == incarnation {
            self.clients[client].drive();
        }
        Ok(())
    }

    fn advance(&mut self, must_wake: bool) {
        let millis =
            if must_wake || chance(70) { pick(&[1, 10, 50, 1_000, 5_000]) } else { pick(&[50, 5_000, 16_000]) };
        self.advance_by(millis);
    }

    fn advance_by(&mut self, millis: u64) {
        let by = Duration::from_millis(millis);
        trace(format!("{} {millis} ms pass", self.steps));
        self.clock.advance(by);
        World::with(|world| world.now += millis);
        self.clients.iter().for_each(|client| client.advance(by));
    }

    fn crash(&mut self, index: usize) {
        trace(format!("{} client {index} crashes", self.steps));
        let (steps, history) = (self.steps, &mut self.history);
        self.running.retain(|running| {
            if running.client == index {
                history.lose(running.number, steps, Outcome::Unknown);
            }
            running.client != index
        });
        self.clients[index].crash();
    }

    fn drop_call(&mut self, index: usize) {
        let dropped = self.running.remove(index);
        trace(format!("{} the caller drops call {}", self.steps, dropped.number));
        dropped.task.abort();
        self.history.lose(dropped.number, self.steps, Outcome::Dropped);
        self.clients[dropped.client].drive();
    }

    /// Lets everything come to an end, without faults.
    fn settle(&mut self) -> Result<(), String> {
        trace("no more faults".to_owned());
        for round in 0..200 {
            while World::with(|world| !world.waiting.is_empty())
                || self.clients.iter().any(|client| client.opened().is_none_or(|opened| opened.is_err()))
            {
                self.step()?;
            }
            if round > MIN_ROUNDS && self.unfinished()? == (0, 0) {
                return Ok(());
            }
            self.advance_by(5_000);
        }
        let (intents, outbox) = self.unfinished()?;
        Err(format!("{intents} intents and {outbox} entries of the outbox are left"))
    }

    fn unfinished(&self) -> Result<(i64, i64), String> {
        let core = self.opened(0)?.core;
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let counted = self.clients[0].run_instantly(core.service.fetch_one(&COUNT_UNFINISHED, &[], read));
        counted.map_err(|error| error.to_string())
    }

    fn opened(&self, index: usize) -> Result<Opened, String> {
        self.clients[index].opened().and_then(Result::ok).ok_or_else(|| "a client is not open".to_owned())
    }

    /// Reads every path with every client, and compares rows and objects.
    fn check_rest(&mut self) -> Result<(), String> {
        for client in 0..self.clients.len() {
            for call in PATHS.into_iter().map(|path| Call::Read { path }).chain([Call::List]) {
                let storage = self.opened(client)?.storage;
                self.begin_call(client, storage, call);
                while !self.running.is_empty() {
                    self.step()?;
                }
                let ended = self.history.entries.last().and_then(|entry| entry.outcome);
                if !matches!(ended, Some(Outcome::Done | Outcome::Refused)) {
                    return Err("a call failed though nothing is wrong".to_owned());
                }
            }
        }
        self.check_changes()?;
        let core = self.opened(0)?.core;
        let fetched = core.service.fetch(&sql::ALL_OBJECTS, &[], rows::stored_object);
        let rows = self.clients[0].run_instantly(fetched).map_err(|error| error.to_string())?;
        let objects = World::with(|world| Arc::clone(&world.objects));
        let mut listed: Vec<_> = objects
            .list(Some(&BUCKET.into()))
            .try_collect::<Vec<_>>()
            .now_or_never()
            .expect("a store in memory answers at once")
            .map_err(|error| error.to_string())?;
        for row in &rows {
            let place = format!("{BUCKET}/{}", row.path);
            listed.retain(|object| object.location.as_ref() != place);
            let found = objects.get(&place.as_str().into()).now_or_never().expect("a store in memory answers at once");
            let found = found.map_err(|error| format!("{place}: {error}"))?;
            let version = found
                .attributes
                .get(&Attribute::Metadata("townsquare-etag".into()))
                .map(|version| version.as_ref().to_owned());
            let bytes = found.bytes().now_or_never().expect("at once").map_err(|error| error.to_string())?;
            let digest = blake3::hash(&bytes).to_hex().to_string();
            if version.as_deref() != Some(&row.etag) || digest != row.digest || bytes.len() as u64 != row.size {
                return Err(format!("{place}: the row is not that of the bytes {:?}", String::from_utf8_lossy(&bytes)));
            }
        }
        if let Some(orphan) = listed.first() {
            return Err(format!("the object {} has no row", orphan.location));
        }
        Ok(())
    }
}

impl Simulation {
    /// Replays the change log: it has each committed change of a file once, in order.
    fn check_changes(&self) -> Result<(), String> {
        let core = self.opened(0)?.core;
        let change = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get_optional(1)?, row.get_optional(2)?));
        let file = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<String>(1)?));
        let changes = self.clients[0].run_instantly(core.service.fetch(&CHANGES, &[], change));
        let files = self.clients[0].run_instantly(core.service.fetch(&FILES, &[], file));
        let (mut replayed, mut versions) = (BTreeMap::new(), Vec::new());
        for (kind, old, new) in changes.map_err(|error| error.to_string())? {
            let (old, new) = (image(old)?, image(new)?);
            if let Some((path, etag)) = &old
                && replayed.remove(path).as_ref() != Some(etag)
            {
                return Err(format!("the feed has an {kind} of {path} with a version that was not there"));
            }
            if let Some((path, etag)) = new {
                versions.push(etag.clone());
                if replayed.insert(path.clone(), etag).is_some() {
                    return Err(format!("the feed has an {kind} of {path}, which was there"));
                }
            }
        }
        let files: BTreeMap<_, _> = files.map_err(|error| error.to_string())?.into_iter().collect();
        if files != replayed {
            return Err("the feed does not lead to the rows".to_owned());
        }
        for (number, etag) in self.history.versions() {
            match versions.iter().filter(|version| *version == etag).count() {
                1 => {}
                count => return Err(format!("the feed has the version of call {number} {count} times")),
            }
        }
        let mut contents: BTreeMap<usize, usize> = BTreeMap::new();
        for etag in files.values() {
            *contents.entry(self.history.upload_of(etag).ok_or("nobody has read a version")?).or_default() += 1;
        }
        match contents.into_iter().find(|(number, count)| *count > 1 + self.history.copies(*number)) {
            Some((number, count)) => Err(format!("the bytes of call {number} are at {count} paths")),
            None => Ok(()),
        }
    }
}

/// Path and version of a row in the change log.
fn image(text: Option<String>) -> Result<Option<(String, String)>, String> {
    let Some(text) = text else { return Ok(None) };
    let row: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let column =
        |name: &str| row[name].as_str().map(str::to_owned).ok_or_else(|| format!("an image has no {name}: {text}"));
    Ok(Some((column("path")?, column("etag")?)))
}

async fn call_storage(storage: &Storage, call: Call, number: usize) -> Result<Found> {
    match call {
        Call::Upload { path, size, if_match, upsert } => {
            let options = UploadOptions { upsert: upsert || if_match.is_some(), if_match, ..UploadOptions::new() };
            let data = History::content(number, size);
            storage.upload(BUCKET, path, data, options).await.map(Found::Info)
        }
        Call::Delete { path } => storage.delete(BUCKET, path).await.map(|()| Found::Nothing),
        Call::Read { path } => {
            let reader = storage.reader(BUCKET, path).await?;
            let bytes = reader.read_at(0..reader.info().size).await?;
            Ok(Found::File(reader.info().clone(), bytes))
        }
        Call::Copy { from, to } => storage.copy(BUCKET, from, to, Overwrite::Replace).await.map(Found::Info),
        Call::Move { from, to } => storage.move_file(BUCKET, from, to, Overwrite::Replace).await.map(Found::Info),
        Call::List => storage.list(BUCKET, ListFiles::new()).await.map(Found::List),
        Call::Repair => storage.repair().await.map(|_| Found::Nothing),
    }
}

fn trace(line: String) {
    World::trace(line);
}

fn below(end: usize) -> usize {
    World::with(|world| world.random.below(end))
}

fn chance(percent: usize) -> bool {
    World::with(|world| world.random.chance(percent))
}

fn pick<T: Clone>(from: &[T]) -> T {
    World::with(|world| world.random.pick(from))
}

fn other_path(path: &str) -> &'static str {
    let others: Vec<_> = PATHS.into_iter().filter(|other| *other != path).collect();
    pick(&others)
}
