//! A client of a simulation: a process with the database and the object store.
//!
//! Invariant: everything of a client runs on the thread of the simulation, while the scheduler drives the client. A crash drops its
//! tasks; the requests that they have sent stay on their way.

use std::{
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::{history::By, store::SimulatedStore, world::World};
use crate::{
    clock::ManualClock,
    config::{DatabaseLocation, Durability},
    database::{Credential, Database, OpenOptions, PostgresOptions, PreparedDatabase, Principal},
    error::{Error, Result},
    objects::Objects,
    request_context::{RequestContext, SharedContext},
    storage::{FileQuota, Storage, StorageCore, StorageOptions, buckets::Buckets, core::PreparedStorage},
    threads::{BlockingPool, RuntimeHandle},
};

/// Larger files are objects.
pub(super) const INLINE_LIMIT: u64 = 64;

/// What the clients of a simulation are opened with.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) file: PathBuf,
    pub(super) clock: ManualClock,
    pub(super) quota: FileQuota,
    /// A session of the user.
    pub(super) user: Credential,
}

/// An open client.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) core: Arc<StorageCore>,
    pub(super) database: Database,
    service: Storage,
    user: Storage,
}

impl Opened {
    /// The files as this caller sees them.
    pub(super) fn storage(&self, by: By) -> &Storage {
        match by {
            By::Service => &self.service,
            By::User => &self.user,
        }
    }
}

type OpenedSlot = Arc<Mutex<Option<Result<Opened>>>>;

pub(super) struct Client {
    pub(super) index: usize,
    pub(super) incarnation: u32,
    runtime: Option<tokio::runtime::Runtime>,
    parked: Arc<Parked>,
    opened: OpenedSlot,
}

/// Tells when the runtime of a client has no task that can run.
#[derive(Default)]
struct Parked {
    is_parked: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// Ready when the runtime has no task that can run.
struct UntilParked<'a>(&'a Parked);

impl Future for UntilParked<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut waker = self.0.waker.lock();
        if waker.is_none() {
            self.0.is_parked.store(false, Ordering::Relaxed);
            *waker = Some(context.waker().clone());
        }
        match self.0.is_parked.load(Ordering::Relaxed) {
            true => {
                *waker = None;
                Poll::Ready(())
            }
            false => Poll::Pending,
        }
    }
}

impl Client {
    pub(super) fn new(index: usize) -> Client {
        Client { index, incarnation: 0, runtime: None, parked: Arc::default(), opened: Arc::default() }
    }

    /// Starts to open the client.
    pub(super) fn open(&mut self, setup: &Setup) {
        self.incarnation += 1;
        let (parked, opened): (Arc<Parked>, OpenedSlot) = (Arc::default(), Arc::default());
        let of_runtime = Arc::clone(&parked);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_park(move || {
                of_runtime.is_parked.store(true, Ordering::Relaxed);
                if let Some(waker) = &*of_runtime.waker.lock() {
                    waker.wake_by_ref();
                }
            })
            .build()
            .expect("a runtime");
        let handle = RuntimeHandle::new(runtime.handle().clone(), BlockingPool::inline());
        let (slot, setup) = (Arc::clone(&opened), setup.clone());
        runtime.spawn(async move {
            let outcome = open(setup, handle).await;
            *slot.lock() = Some(outcome);
        });
        (self.runtime, self.parked, self.opened) = (Some(runtime), parked, opened);
        self.drive();
    }

    /// The open client. `None` while it opens and after a crash.
    ///
    /// # Errors
    /// Those of the opening.
    pub(super) fn opened(&self) -> Option<Result<Opened>> {
        self.opened.lock().clone()
    }

    pub(super) fn is_alive(&self) -> bool {
        self.runtime.is_some()
    }

    /// Ends the client without a word.
    pub(super) fn crash(&mut self) {
        World::with(|world| world.running = (self.index, self.incarnation));
        drop(self.runtime.take());
        *self.opened.lock() = None;
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.runtime.as_ref().expect("the client is open").spawn(task)
    }

    /// Runs the tasks of the client until each of them waits.
    pub(super) fn drive(&self) {
        let Some(runtime) = &self.runtime else { return };
        World::with(|world| world.running = (self.index, self.incarnation));
        runtime.block_on(UntilParked(&self.parked));
    }

    /// Moves the timers of the client.
    pub(super) fn advance(&self, by: Duration) {
        let Some(runtime) = &self.runtime else { return };
        World::with(|world| world.running = (self.index, self.incarnation));
        runtime.block_on(tokio::time::advance(by));
        self.drive();
    }

    /// Runs a call that waits for nothing but the database and the store.
    pub(super) fn run_instantly<T>(&self, call: impl Future<Output = T>) -> T {
        World::with(|world| world.is_instant = true);
        let result = self.runtime.as_ref().expect("the client is open").block_on(call);
        World::with(|world| world.is_instant = false);
        result
    }
}

async fn open(setup: Setup, runtime: RuntimeHandle) -> Result<Opened> {
    let Setup { file, clock, quota, user } = setup;
    let options = OpenOptions {
        durability: Durability::Normal,
        busy_timeout: Duration::from_secs(5),
        postgres: PostgresOptions::default(),
        replica: None,
        migrate: true,
        is_move_target: false,
        is_plan: false,
        clock: clock.clock(),
    };
    let location = DatabaseLocation::Sqlite { file, folder: None };
    let (database, stored) = PreparedDatabase::new(location, options, runtime.clone()).await?;
    let objects = Objects::simulated(Box::new(SimulatedStore), runtime.clone());
    let options = StorageOptions {
        inline_file_limit: INLINE_LIMIT,
        max_file_size: 1 << 20,
        max_verified_size: 1 << 20,
        quota,
        claim_store: false,
        is_beside_database: false,
        url_signing_key: None,
    };
    let prepared = PreparedStorage { objects, options, buckets: Buckets::parse("")? };
    prepared.check(&stored).await?;
    let database = database.open().await?;
    let service = database.service();
    let core = StorageCore::open(prepared, service.clone(), clock.clock(), runtime.clone(), false).await?;
    let refuse = Arc::new(|_| {
        let refused: Pin<Box<dyn Future<Output = Result<_>> + Send>> = Box::pin(async { Err(Error::closed()) });
        refused
    });
    let shared = SharedContext::new(refuse, [].into(), Duration::from_secs(15), runtime.tokio.clone());
    let requests = RequestContext { shared: Arc::new(shared), client: None };
    let storage = |principal| {
        let scope = database.scope(database.handle_of(principal));
        Storage::new(scope, Arc::clone(&core), requests.clone())
    };
    let (service, user) = (storage(Principal::Service), storage(Principal::User(user)));
    Ok(Opened { service, user, core, database })
}
