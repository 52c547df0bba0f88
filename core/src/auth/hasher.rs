//! Passwords: Argon2id, with its time and memory kept within bounds.
//!
//! Invariant: as many hashes run at once as there are permits, each in a memory of its own that is used again; a while after the
//! last one that memory goes back. A password is checked in the same time whether or not it has anything to be
//! checked against.

use std::{sync::Arc, time::Duration};

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::phc::{Output, ParamsString, PasswordHash, Salt},
};
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use super::token::random;
use crate::{
    error::{Error, ErrorKind, Result},
    large_buffer::large_buffer,
};

/// RFC 9106's and OWASP's parameters for 19 MiB: 2 passes, 1 lane, 32 bytes.
const PARAMS: Params = Params::DEFAULT;

/// How long memory is kept for the next hash.
const KEPT: Duration = Duration::from_secs(1);

/// Makes and checks password hashes. Clones share their bounds.
#[derive(Clone)]
pub(super) struct Hasher(Arc<Inner>);

struct Inner {
    permits: Arc<Semaphore>,
    /// Memory of hashes that are done, one for each permit at the most.
    idle: Mutex<Vec<Vec<Block>>>,
    runtime: Handle,
}

/// The right to run one hash at a time.
pub(super) struct Permit {
    hasher: Hasher,
    _permit: OwnedSemaphorePermit,
}

/// What came of checking a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Wrong,
    Right,
    /// Right, but kept under weaker parameters than today's: this is to be kept instead.
    RightAndRenewed(String),
}

impl Hasher {
    pub(super) fn new(runtime: Handle) -> Hasher {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Four of them fill a memory bus and 76 MiB.
        let permits = Arc::new(Semaphore::new(cores.clamp(1, 4)));
        Hasher(Arc::new(Inner { permits, idle: Mutex::default(), runtime }))
    }

    /// Waits for a turn.
    pub(super) async fn permit(&self) -> Result<Permit> {
        let permit = Arc::clone(&self.0.permits).acquire_owned().await.map_err(|_| Error::closed())?;
        Ok(Permit { hasher: self.clone(), _permit: permit })
    }
}

impl Inner {
    fn with_memory<T>(&self, blocks: usize, work: impl FnOnce(&mut [Block]) -> T) -> T {
        let mut memory = self.idle.lock().pop().unwrap_or_default();
        if memory.len() < blocks {
            memory = large_buffer(blocks);
            memory.resize(blocks, Block::default());
        }
        let result = work(&mut memory[..blocks]);
        self.idle.lock().push(memory);
        result
    }

    /// Gives memory back that nobody has used for a while.
    fn sweep_later(self: &Arc<Self>) {
        let this = Arc::downgrade(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(KEPT).await;
            // Whoever is at work sweeps after itself.
            if let Some(this) = this.upgrade()
                && Arc::strong_count(&this.permits) == 1
            {
                this.idle.lock().clear();
            }
        });
    }
}

impl Permit {
    /// The hash of a password, as a PHC string.
    pub(super) async fn hash(&self, password: &str) -> Result<String> {
        let password = password.to_owned();
        self.run(move |inner| inner.with_memory(PARAMS.block_count(), |memory| new_hash(&password, memory))).await
    }

    /// Checks a password against a hash, or, where there is none, takes the time that this would.
    pub(super) async fn verify(&self, password: &str, kept: Option<String>) -> Result<Verdict> {
        let password = password.to_owned();
        self.run(move |inner| {
            let Some(kept) = kept else {
                inner.with_memory(PARAMS.block_count(), |memory| new_hash(&password, memory))?;
                return Ok(Verdict::Wrong);
            };
            let kept = PasswordHash::new(&kept).map_err(broken)?;
            let params = Params::try_from(&kept).map_err(broken)?;
            let is_right =
                inner.with_memory(params.block_count(), |memory| matches(&password, &kept, &params, memory))?;
            Ok(match is_right {
                false => Verdict::Wrong,
                true if is_weaker(&params) => Verdict::RightAndRenewed(
                    inner.with_memory(PARAMS.block_count(), |memory| new_hash(&password, memory))?,
                ),
                true => Verdict::Right,
            })
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Inner) -> Result<T> + Send + 'static) -> Result<T> {
        let inner = Arc::clone(&self.hasher.0);
        let done = self.hasher.0.runtime.spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|error| Err(if error.is_cancelled() { Error::closed() } else { broken(error) }))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.hasher.0.sweep_later();
    }
}

fn is_weaker(params: &Params) -> bool {
    params.m_cost() < PARAMS.m_cost() || params.t_cost() < PARAMS.t_cost()
}

fn new_hash(password: &str, memory: &mut [Block]) -> Result<String> {
    let salt = Salt::new(&random::<16>()?).map_err(broken)?;
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(&PARAMS).map_err(broken)?,
        salt: Some(salt),
        hash: Some(output(password, &salt, &PARAMS, Algorithm::Argon2id, Version::V0x13, memory)?),
    };
    Ok(hash.to_string())
}

fn matches(password: &str, kept: &PasswordHash, params: &Params, memory: &mut [Block]) -> Result<bool> {
    let algorithm = Algorithm::try_from(kept.algorithm.as_str()).map_err(broken)?;
    let version = kept.version.map_or(Ok(Version::default()), Version::try_from).map_err(broken)?;
    let (Some(salt), Some(expected)) = (&kept.salt, &kept.hash) else { return Err(broken("no salt or no hash")) };
    // Outputs compare in constant time.
    Ok(output(password, salt, params, algorithm, version, memory)? == *expected)
}

fn output(
    password: &str,
    salt: &[u8],
    params: &Params,
    algorithm: Algorithm,
    version: Version,
    memory: &mut [Block],
) -> Result<Output> {
    let mut bytes = [0; Params::DEFAULT_OUTPUT_LEN];
    let argon2 = Argon2::new(algorithm, version, params.clone());
    argon2.hash_password_into_with_memory(password.as_bytes(), salt, &mut bytes, memory).map_err(broken)?;
    Output::new(&bytes).map_err(broken)
}

/// A hash that cannot be read, or a thread that panicked. The cause stays out: it may quote the hash.
fn broken(_: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, "a password could not be checked")
}
