//! What a simulation shares with the code under test: the random numbers, the objects, the steps that wait, and the trace.
//!
//! Invariant: a simulation runs on one thread, and its world belongs to that thread. Nothing in a world is decided by the time, by a
//! thread or by the memory of the process.

use std::{cell::RefCell, sync::Arc};

use object_store::memory::InMemory;
use tokio::sync::oneshot;

use super::request::{Answer, Request};
use crate::error::Result;

/// A generator of random numbers: SplitMix64.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).expect("a small number")).expect("below `end`")
    }

    /// True in `percent` of 100 calls.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// A step of a task that waits until the scheduler lets it proceed.
pub(super) enum Step {
    /// A statement or a transaction.
    Database { name: &'static str, answer: oneshot::Sender<Result<()>> },
    /// A request to the object store.
    Store { request: Request, answer: oneshot::Sender<Answer>, issued_at: u64, is_mute: bool },
}

impl Step {
    /// Whether the task that waits for the answer has given up.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Step::Database { answer, .. } => answer.is_closed(),
            Step::Store { answer, .. } => answer.is_closed(),
        }
    }
}

pub(super) struct Waiting {
    pub(super) client: usize,
    /// How often this client has been opened.
    pub(super) incarnation: u32,
    pub(super) step: Step,
}

/// See the module.
pub(super) struct World {
    pub(super) random: Random,
    pub(super) objects: Arc<InMemory>,
    pub(super) waiting: Vec<Waiting>,
    /// The client that runs.
    pub(super) running: (usize, u32),
    /// Whether a step proceeds at once.
    pub(super) is_instant: bool,
    /// The uploads in parts that a client has begun, with the client and its incarnation.
    pub(super) uploads: Vec<(String, (usize, u32))>,
    /// Milliseconds since the start.
    pub(super) now: u64,
    pub(super) trace: Vec<String>,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

impl World {
    /// Gives the current thread a new world.
    pub(super) fn begin(seed: u64) {
        WORLD.set(Some(World {
            random: Random::new(seed),
            objects: Arc::new(InMemory::new()),
            waiting: Vec::new(),
            running: (0, 0),
            is_instant: false,
            uploads: Vec::new(),
            now: 0,
            trace: Vec::new(),
        }));
    }

    /// Ends the world of the current thread.
    pub(super) fn end() -> Option<World> {
        WORLD.take()
    }

    pub(super) fn with<T>(call: impl FnOnce(&mut World) -> T) -> T {
        WORLD.with_borrow_mut(|world| call(world.as_mut().expect("the simulation runs on this thread")))
    }

    pub(super) fn trace(line: String) {
        World::with(|world| world.trace.push(line));
    }

    /// Queues a step of the running client.
    pub(super) fn wait(&mut self, step: Step) {
        let (client, incarnation) = self.running;
        self.waiting.push(Waiting { client, incarnation, step });
    }
}
