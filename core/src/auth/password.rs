//! Passwords: hashed and checked with bounded time and memory.
//!
//! Invariant: at most one hash runs per permit, and at most [`QUEUE`] callers per permit wait for one. One client has at most
//! [`CHECKS_OF_CLIENT`] hashes that run or wait. Each hash uses a block memory of its own, which is reused and freed when no hash
//! has run for [`IDLE_MEMORY`]. Checking a password takes the same time whether or not there is a hash with today's parameters
//! to check against.

use std::{sync::Arc, time::Duration};

use argon2::Block;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::password_hash::{self, PARAMS, StoredHash, check_failed, new_hash};
use crate::{
    client_key::{ClientKey, Slot, Slots},
    error::{Error, ErrorKind, Result},
    large_buffer::large_buffer,
    threads::RuntimeHandle,
};

/// Bytes of the shortest and the longest new password.
const MIN_BYTES: usize = 8;
const MAX_BYTES: usize = 1024;

/// Bytes of the longest text that is checked. Imported passwords may be longer than new ones.
const MAX_CHECKED_BYTES: usize = 64 * 1024;

/// Callers that wait for a permit, per permit. One hash takes 20 to 50 ms, so the last of them waits one to three seconds.
const QUEUE: usize = 64;

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
    /// One place for each caller that has a permit or waits for one.
    places: Arc<Semaphore>,
    /// The places of each client.
    of_clients: Slots,
    /// Block memory of finished hashes, at most one per permit.
    idle_memory: Mutex<Vec<Vec<Block>>>,
    runtime: RuntimeHandle,
}

/// The right to run one hash at a time.
pub(super) struct HashPermit {
    hasher: PasswordHasher,
    _permit: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
    _slot: Option<Slot>,
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
        let places = Arc::new(Semaphore::new(permits * (1 + QUEUE)));
        let permits = Arc::new(Semaphore::new(permits));
        PasswordHasher(Arc::new(HasherState {
            permits,
            places,
            of_clients: Slots::new("password checks", CHECKS_OF_CLIENT),
            idle_memory: Mutex::default(),
            runtime,
        }))
    }

    /// Waits for a permit. A caller that drops the future leaves the queue.
    ///
    /// # Errors
    /// `RateLimited` when the queue is full, and when `client` has [`CHECKS_OF_CLIENT`] places in it.
    pub(super) async fn permit(&self, client: Option<ClientKey>) -> Result<HashPermit> {
        let slot = self.0.of_clients.take(client)?;
        let place = Arc::clone(&self.0.places).try_acquire_owned().map_err(|_| queue_is_full())?;
        let permit = Arc::clone(&self.0.permits).acquire_owned().await.map_err(|_| Error::closed())?;
        Ok(HashPermit { hasher: self.clone(), _permit: permit, _place: place, _slot: slot })
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
                false => PasswordCheck::Wrong,
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
    /// Runs `work` with `blocks` blocks of memory.
    ///
    /// # Errors
    /// `Unavailable` (53200) if the system has too little memory; those of `work`.
    fn with_memory<T>(&self, blocks: usize, work: impl FnOnce(&mut [Block]) -> Result<T>) -> Result<T> {
        let mut memory = self.idle_memory.lock().pop().unwrap_or_default();
        if memory.len() < blocks {
            memory = large_buffer(blocks)?;
            memory.resize(blocks, Block::default());
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
    use std::task::{Context, Waker};

    use super::*;
    use crate::threads::BlockingPool;

    #[test]
    fn callers_beyond_the_queue_are_refused_and_callers_who_leave_make_room() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let blocking = BlockingPool::new("test", 1);
        let hasher = PasswordHasher::new(RuntimeHandle { tokio: runtime.handle().clone(), blocking });
        let permits = hasher.0.permits.available_permits();
        let mut context = Context::from_waker(Waker::noop());
        let mut callers: Vec<_> = (0..permits * (1 + QUEUE)).map(|_| Box::pin(hasher.permit(None))).collect();
        let granted: Vec<_> = callers.iter_mut().map(|caller| caller.as_mut().poll(&mut context)).collect();
        assert_eq!(granted.iter().filter(|caller| caller.is_ready()).count(), permits);
        let refused = runtime.block_on(hasher.permit(None)).err().expect("the queue is full");
        assert_eq!((refused.kind(), refused.retry_after()), (ErrorKind::RateLimited, Some(FULL_QUEUE_RETRY)));
        callers.pop();
        assert!(Box::pin(hasher.permit(None)).as_mut().poll(&mut context).is_pending(), "there is room for one");
        callers.clear();
        drop(granted);
        assert!(runtime.block_on(hasher.permit(None)).is_ok());
    }

    #[test]
    fn password_length_is_counted_in_bytes() {
        assert!(check_length("1234567").is_err());
        assert!(check_length("ééééé").is_ok());
        assert!(check_length(&"a".repeat(1025)).is_err());
    }
}
