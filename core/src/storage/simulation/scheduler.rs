//! The scheduler of a simulation.
//!
//! Invariant: each decision is a random number of the seed. No decision depends on the order in which threads run.

mod checks;

use std::{fmt::Write as _, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinHandle};

use super::{
    BUCKET, PATHS, SPACE_BUCKET, Template, bucket_of, calls,
    client::{Client, Opened, Setup},
    feed::Feed,
    history::{By, Call, Found, History, Outcome},
    request::Request,
    store::fault,
    world::{Step, Waiting, World},
};
use crate::{
    clock::ManualClock,
    error::{Error, ErrorKind, Result},
    storage::FileQuota,
    threads::turn,
};

/// The calls of a simulation, without the reads at its end.
const CALLS: usize = 14;
/// The calls that run at a time.
const AT_ONCE: usize = 4;
const CRASHES: usize = 2;
/// More steps than any simulation needs.
const MAX_STEPS: usize = 30_000;
/// When a request that its client has given up arrives at the latest, in milliseconds after it was sent.
/// [`Objects::latest_copy`](crate::objects::Objects::latest_copy) says 60 s for small objects.
const LATEST: u64 = 45_000;

/// The sizes of inline files, up to [`INLINE_LIMIT`](super::client::INLINE_LIMIT), and of objects.
const SMALL_SIZES: [usize; 3] = [16, 32, 64];
const LARGE_SIZES: [usize; 3] = [65, 100, 128];

/// Whether a deletion that its client has given up may arrive too. The code under test has no defence against it: a store deletes
/// whatever version is there.
const LATE_DELETIONS: bool = false;

/// A call that runs.
struct Running {
    number: usize,
    client: usize,
    task: JoinHandle<()>,
    result: Arc<Mutex<Option<Result<Found>>>>,
}

/// See the module.
pub(super) struct Simulation {
    setup: Setup,
    /// Whether a user calls, and not only the service.
    has_user: bool,
    clients: Vec<Client>,
    running: Vec<Running>,
    history: History,
    feed: Feed,
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
    pub(super) fn new(seed: u64, template: Template) -> Simulation {
        World::begin(seed);
        turn::set_hook(Some(Box::new(begin_turn)));
        let has_user = chance(50);
        let (max_bytes, max_files) =
            (pick(&[None, Some(150), Some(200), Some(300)]), pick(&[None, None, Some(1), Some(2)]));
        let quota = if has_user { FileQuota { max_bytes, max_files } } else { FileQuota::default() };
        let clock = ManualClock::at(Timestamp::from_second(1_700_000_000).expect("a time"));
        Simulation {
            setup: Setup { file: template.file, clock, quota, user: template.user },
            has_user,
            clients: (0..pick(&[1, 2, 2, 3])).map(Client::new).collect(),
            running: Vec::new(),
            history: History::default(),
            feed: Feed::new(quota),
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
                    self.clients[index].open(&self.setup);
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
        // Time that passes while nothing happens finds little.
        let begins = choice < if waiting == 0 && self.running.is_empty() { 60 } else { 8 };
        if begins && self.calls < CALLS && self.running.len() < AT_ONCE {
            self.begin_random_call()?;
        } else if self.has_faults && choice == 8 && self.crashes < CRASHES && chance(25) {
            self.crashes += 1;
            self.crash(below(self.clients.len()));
        } else if self.has_faults && choice == 9 && !self.running.is_empty() && chance(50) {
            self.drop_call(below(self.running.len()));
        } else if choice == 99 && self.has_faults {
            self.read_feed_with_a_crash()?;
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
            self.check_result(&ended, &result)?;
            self.history.end(ended.number, self.steps, result)?;
        }
        Ok(())
    }

    fn begin_random_call(&mut self) -> Result<(), String> {
        let Some((index, opened)) = self.random_client() else { return Ok(()) };
        self.calls += 1;
        // Only the user has files in the space.
        let path = pick(if self.has_user { &PATHS[..] } else { &PATHS[..3] });
        let has_space = !self.history.entries.iter().any(|entry| matches!(entry.call, Call::DeleteSpace));
        let is_in_space = bucket_of(path) == SPACE_BUCKET;
        let call = match below(100) {
            0..45 => {
                let if_match = if chance(30) { self.history.known_version(path) } else { None };
                let size = if chance(70) { pick(&LARGE_SIZES) } else { pick(&SMALL_SIZES) };
                Call::Upload { path, size, if_match, upsert: chance(85) }
            }
            45..58 => Call::Delete { path },
            58..72 => Call::Read { path },
            72..81 if !is_in_space => Call::Move { from: path, to: other_path(path) },
            81..88 if !is_in_space => Call::Copy { from: path, to: other_path(path) },
            88..91 => Call::List,
            91..94 => Call::Backup,
            94..97 if self.has_user => Call::Revoke,
            97..99 if self.has_user && has_space => Call::DeleteSpace,
            72..88 => Call::Read { path },
            _ => Call::Repair,
        };
        let is_of_service = !self.has_user
            || matches!(call, Call::Repair | Call::Backup | Call::Revoke | Call::DeleteSpace)
            || (!is_in_space && chance(20));
        self.begin_call(index, &opened, if is_of_service { By::Service } else { By::User }, call)
    }

    fn random_client(&self) -> Option<(usize, Opened)> {
        let index = below(self.clients.len());
        Some((index, self.clients[index].opened()?.ok()?))
    }

    fn begin_call(&mut self, client: usize, opened: &Opened, by: By, call: Call) -> Result<(), String> {
        let is_judged = match call {
            Call::Backup => true,
            Call::Upload { .. } | Call::Copy { .. } => by == By::User,
            _ => false,
        };
        if is_judged || self.history.entries.is_empty() {
            self.read_feed(client)?;
        }
        let number = self.history.begin(by, call.clone(), self.feed.count(), self.steps);
        // Without the etag, which is a random number of the process.
        let shown = match &call {
            Call::Upload { path, size, if_match, upsert } => {
                format!("{by:?} uploads {path} of {size}, if_match {}, upsert {upsert}", if_match.is_some())
            }
            call => format!("{by:?} {call:?}"),
        };
        trace(format!("client {client} begins call {number}: {shown}"));
        let result = Arc::new(Mutex::new(None));
        let (slot, storage) = (Arc::clone(&result), opened.storage(by).clone());
        let task = self.clients[client].spawn(async move {
            let found = calls::run(&storage, call, number).await;
            *slot.lock() = Some(found);
        });
        self.running.push(Running { number, client, task, result });
        self.clients[client].drive();
        Ok(())
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
        self.setup.clock.advance(by);
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
    let others: Vec<_> = PATHS.into_iter().filter(|other| *other != path && bucket_of(other) == BUCKET).collect();
    pick(&others)
}
