//! Passwords: hashed and checked with bounded time and memory.
//!
//! Invariant: at most one hash runs per permit, and at most [`SHARED`], [`FOR_NEW_CLIENTS`] and [`FOR_KNOWN_CALLERS`] callers
//! per permit wait for one. One client has at most [`CHECKS_OF_CLIENT`] hashes that run or wait. Each running hash has its own
//! block memory, which the next one reuses; the memory is freed when no hash has run for [`IDLE_MEMORY`]. Checking a password
//! takes at least as long with a stored Argon2 hash as without any.

mod memory;

use std::{sync::Arc, time::Duration};

use argon2::Block;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    password_hash::{self, PARAMS, StoredHash, check_failed, new_hash, spend_argon2},
    rate_limit::CountKey,
};
use crate::{
    client_key::{ClientKey, Slot, Slots},
    error::{Error, ErrorKind, Result},
    threads::RuntimeHandle,
};

/// Bytes of the shortest and the longest new password.
const MIN_BYTES: usize = 8;
const MAX_BYTES: usize = 1024;

/// Bytes of the longest text that is checked. Imported passwords may be longer than new ones.
const MAX_CHECKED_BYTES: usize = 64 * 1024;

/// Callers that wait for a permit, per permit. One hash takes 20 to 50 ms, so the last of them waits three to seven seconds.
const SHARED: usize = 32;

/// Further places, per permit, for clients that have no other check, so that a few clients do not fill the queue for the others.
const FOR_NEW_CLIENTS: usize = 32;

/// Further places, per permit, for known callers, one for each account, so that strangers do not fill the queue for them.
const FOR_KNOWN_CALLERS: usize = 64;

/// Password checks of one client that run or wait: few enough that one client does not fill the queue.
const CHECKS_OF_CLIENT: usize = 8;

/// The time after which a caller that found the queue full may try again.
const FULL_QUEUE_RETRY: Duration = Duration::from_secs(1);

/// How long block memory stays allocated after the last hash.
const IDLE_MEMORY: Duration = Duration::from_secs(1);

/// Makes and checks password hashes. Clones share permits and memory.
#[derive(Clone)]
pub(super) struct PasswordHasher(Arc<HasherState>);

struct HasherState {
    permits: Arc<Semaphore>,
    /// The free places in the queue: for all callers, for new clients, and for known callers. A caller that waits for a
    /// permit or has one takes a place.
    shared: Arc<Semaphore>,
    for_new_clients: Arc<Semaphore>,
    for_known_callers: Arc<Semaphore>,
    /// The places of each client.
    of_clients: Slots,
    /// The places for known callers of each account.
    of_accounts: Slots<CountKey>,
    /// Block memory of finished hashes, at most one per permit.
    idle_memory: Mutex<Vec<Vec<Block>>>,
    runtime: RuntimeHandle,
}

/// A request for a permit: who waits for it.
#[derive(Default)]
pub(super) struct PermitRequest {
    pub(super) client: Option<ClientKey>,
    /// The account that the caller is known to: the caller holds a session of the account, or its user has signed in from
    /// the caller's client before.
    pub(super) known_account: Option<CountKey>,
}

/// The right to run one hash at a time.
pub(super) struct HashPermit {
    hasher: PasswordHasher,
    _permit: OwnedSemaphorePermit,
    _place: QueuePlace,
    _slot: Option<Slot>,
}

/// A place in the queue.
struct QueuePlace {
    _place: OwnedSemaphorePermit,
    _of_account: Option<Slot<CountKey>>,
}

/// The result of checking a password. It has no `Debug`, because a hash is a secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum PasswordCheck {
    Wrong,
    Right,
    /// Right, but the stored hash is outdated. Holds a new hash to store in its place.
    RightAndRehashed(String),
}

/// Checks the length of a new password.
///
/// # Errors
/// `InvalidInput` unless it is 8 to 1,024 bytes long.
pub(super) fn check_length(password: &str) -> Result<()> {
    if (MIN_BYTES..=MAX_BYTES).contains(&password.len()) {
        return Ok(());
    }
    Err(Error::invalid_input("password is 8 to 1024 bytes long"))
}

/// Whether text is short enough to be somebody's password, new or imported.
pub(super) fn can_be_checked(password: &str) -> bool {
    password.len() <= MAX_CHECKED_BYTES
}

impl PasswordHasher {
    pub(super) fn new(runtime: RuntimeHandle) -> PasswordHasher {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Four hashes saturate a memory bus and use 76 MiB.
        let permits = cores.clamp(1, 4);
        let places = |per_permit: usize| Arc::new(Semaphore::new(permits * per_permit));
        PasswordHasher(Arc::new(HasherState {
            permits: places(1),
            shared: places(1 + SHARED),
            for_new_clients: places(FOR_NEW_CLIENTS),
            for_known_callers: places(FOR_KNOWN_CALLERS),
            of_clients: Slots::new("password checks of one client", CHECKS_OF_CLIENT),
            of_accounts: Slots::new("password checks of one account", 1),
            idle_memory: Mutex::default(),
            runtime,
        }))
    }

    /// Waits for a permit. A caller that drops the future leaves the queue.
    ///
    /// # Errors
    /// `RateLimited` when the queue is full, and when the client has [`CHECKS_OF_CLIENT`] places in it.
    pub(super) async fn permit(&self, caller: PermitRequest) -> Result<HashPermit> {
        let slot = self.0.of_clients.take(caller.client)?;
        let is_new = slot.as_ref().is_none_or(Slot::is_first);
        let place = self.0.place(is_new, caller.known_account).ok_or_else(queue_is_full)?;
        let permit = Arc::clone(&self.0.permits).acquire_owned().await.map_err(|_| Error::closed())?;
        Ok(HashPermit { hasher: self.clone(), _permit: permit, _place: place, _slot: slot })
    }

    /// Frees the memory of finished hashes. Nobody else does after the end of the runtime.
    pub(super) fn free_memory(&self) {
        self.0.idle_memory.lock().clear();
    }
}

impl HashPermit {
    /// Hashes a password; returns a PHC string.
    pub(super) async fn hash(&self, password: &str) -> Result<String> {
        let password = password.to_owned();
        self.run(move |state| state.with_memory(PARAMS.block_count(), |memory| new_hash(&password, memory))).await
    }

    /// Checks a password against a stored hash. Without one it hashes the password all the same, which takes as long as for
    /// a hash with today's parameters, and returns `Wrong`. A password over 64 KiB counts as an empty one without a hash.
    pub(super) async fn check(&self, password: &str, stored_hash: Option<String>) -> Result<PasswordCheck> {
        let is_possible = can_be_checked(password);
        let password = if is_possible { password.to_owned() } else { String::new() };
        let stored_hash = stored_hash.filter(|_| is_possible);
        self.run(move |state| {
            let Some(stored_hash) = stored_hash else {
                state.with_memory(PARAMS.block_count(), |memory| new_hash(&password, memory))?;
                return Ok(PasswordCheck::Wrong);
            };
            let stored_hash = StoredHash::parse(&stored_hash).map_err(check_failed)?;
            let is_right =
                state.with_memory(stored_hash.block_count(), |memory| stored_hash.matches(&password, memory))?;
            Ok(match is_right {
                false => {
                    let missing = stored_hash.missing_kib();
                    if missing > 0 {
                        state.with_memory(PARAMS.block_count(), |memory| spend_argon2(missing, memory))?;
                    }
                    PasswordCheck::Wrong
                }
                true if stored_hash.is_outdated() => PasswordCheck::RightAndRehashed(
                    state.with_memory(PARAMS.block_count(), |memory| new_hash(&password, memory))?,
                ),
                true => PasswordCheck::Right,
            })
        })
        .await
    }

    /// Takes as long as a check against a bcrypt hash of this cost.
    pub(super) async fn spend_bcrypt(&self, cost: u32) -> Result<()> {
        self.run(move |_| {
            password_hash::spend_bcrypt(cost);
            Ok(())
        })
        .await
    }

    /// Runs `work` on a blocking thread.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&HasherState) -> Result<T> + Send + 'static) -> Result<T> {
        let state = Arc::clone(&self.hasher.0);
        self.hasher.0.runtime.blocking.run(move || work(&state)).await?
    }
}

impl Drop for HashPermit {
    fn drop(&mut self) {
        self.hasher.0.free_memory_later();
    }
}

impl HasherState {
    /// Takes a place in the queue that this caller may have.
    fn place(&self, is_new_client: bool, known_account: Option<CountKey>) -> Option<QueuePlace> {
        let of_all = [Some(&self.shared), is_new_client.then_some(&self.for_new_clients)];
        for places in of_all.into_iter().flatten() {
            if let Ok(place) = Arc::clone(places).try_acquire_owned() {
                return Some(QueuePlace { _place: place, _of_account: None });
            }
        }
        let of_account = self.of_accounts.take(Some(known_account?)).ok()?;
        let place = Arc::clone(&self.for_known_callers).try_acquire_owned().ok()?;
        Some(QueuePlace { _place: place, _of_account: of_account })
    }

    /// Runs `work` with `blocks` blocks of memory.
    ///
    /// # Errors
    /// `Unavailable` (53200) if the system has too little memory; the errors of `work`.
    fn with_memory<T>(&self, blocks: usize, work: impl FnOnce(&mut [Block]) -> Result<T>) -> Result<T> {
        let mut memory = self.idle_memory.lock().pop().unwrap_or_default();
        if memory.len() < blocks {
            memory = memory::blocks(blocks)?;
        }
        let result = work(&mut memory[..blocks]);
        self.idle_memory.lock().push(memory);
        result
    }

    /// Frees the idle memory after [`IDLE_MEMORY`], if no permit is in use then.
    fn free_memory_later(self: &Arc<Self>) {
        let this = Arc::downgrade(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(IDLE_MEMORY).await;
            // Each permit holds a clone of the semaphore, and frees the memory itself when it is dropped.
            if let Some(this) = this.upgrade()
                && Arc::strong_count(&this.permits) == 1
            {
                this.idle_memory.lock().clear();
            }
        });
    }
}

fn queue_is_full() -> Error {
    Error::new(ErrorKind::RateLimited, "Too many password checks are waiting; try again in 1 s")
        .retry_in(FULL_QUEUE_RETRY)
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll, Waker},
    };

    use super::*;
    use crate::threads::BlockingPool;

    /// Callers that were polled once. A caller that neither has a permit nor waits for one was refused.
    struct Queue {
        hasher: PasswordHasher,
        waiting: Vec<Pin<Box<dyn Future<Output = Result<HashPermit>>>>>,
        granted: Vec<HashPermit>,
    }

    impl Queue {
        /// Returns whether a caller was let in.
        fn enter(&mut self, client: Option<&str>, account: Option<&str>) -> bool {
            let caller =
                PermitRequest { client: client.map(ClientKey::new), known_account: account.map(CountKey::address) };
            let hasher = self.hasher.clone();
            let mut entered = Box::pin(async move { hasher.permit(caller).await });
            match entered.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => self.waiting.push(entered),
                Poll::Ready(Ok(permit)) => self.granted.push(permit),
                Poll::Ready(Err(refused)) => {
                    assert_eq!(
                        (refused.kind(), refused.retry_after()),
                        (ErrorKind::RateLimited, Some(FULL_QUEUE_RETRY))
                    );
                    return false;
                }
            }
            true
        }
    }

    /// Calls `test` with an empty queue and its number of permits.
    fn with_queue(test: impl FnOnce(Queue, usize)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let blocking = BlockingPool::new("test", 1);
        let hasher = PasswordHasher::new(RuntimeHandle::new(runtime.handle().clone(), blocking));
        let permits = hasher.0.permits.available_permits();
        test(Queue { hasher, waiting: Vec::new(), granted: Vec::new() }, permits);
    }

    #[test]
    fn callers_beyond_the_queue_are_refused_and_callers_who_leave_make_room() {
        with_queue(|mut queue, permits| {
            let places = permits * (1 + SHARED + FOR_NEW_CLIENTS);
            assert!((0..places).all(|_| queue.enter(None, None)));
            assert_eq!(queue.granted.len(), permits);
            assert!(!queue.enter(None, None), "the queue is full");
            queue.waiting.pop();
            assert!(queue.enter(None, None), "there is room for one");
            queue.waiting.clear();
            queue.granted.clear();
            assert!(queue.enter(None, None) && queue.granted.len() == 1);
        });
    }

    #[test]
    fn clients_with_many_checks_leave_room_for_new_clients_and_both_for_known_callers() {
        with_queue(|mut queue, permits| {
            let shared = permits * (1 + SHARED);
            let clients: Vec<_> =
                (0..shared.div_ceil(CHECKS_OF_CLIENT)).map(|number| format!("client {number}")).collect();
            let checks = clients.iter().flat_map(|client| [client; CHECKS_OF_CLIENT]);
            // The clients of one account fill what all share, and one of the places for known callers.
            let entered = checks.filter(|client| queue.enter(Some(client), Some("mallory@town.example"))).count();
            assert_eq!(entered, shared + 1);
            for number in 0..permits * FOR_NEW_CLIENTS {
                assert!(queue.enter(Some(&format!("new client {number}")), None));
            }
            assert!(!queue.enter(Some("another new client"), None));
            assert!(queue.enter(Some("phone"), Some("ann@town.example")));
            assert!(!queue.enter(Some("laptop"), Some("ann@town.example")), "one place for each account");
            for number in 2..permits * FOR_KNOWN_CALLERS {
                assert!(queue.enter(None, Some(&format!("user{number}@town.example"))));
            }
            assert!(!queue.enter(None, Some("bob@town.example")), "the queue is full");
        });
    }

    #[test]
    fn a_client_has_a_limited_number_of_checks() {
        with_queue(|mut queue, _| {
            let checks = (0..=CHECKS_OF_CLIENT).filter(|_| queue.enter(Some("192.0.2.1"), None)).count();
            assert_eq!(checks, CHECKS_OF_CLIENT);
            assert!(!queue.enter(Some("192.0.2.1"), Some("ann@town.example")), "also for a known caller");
            assert!(queue.enter(Some("192.0.2.2"), None));
            queue.granted.clear();
            assert!(queue.enter(Some("192.0.2.1"), None), "a check has ended");
        });
    }

    #[test]
    fn password_length_is_counted_in_bytes() {
        assert!(check_length("1234567").is_err());
        assert!(check_length("ééééé").is_ok());
        assert!(check_length(&"a".repeat(1025)).is_err());
    }
}
