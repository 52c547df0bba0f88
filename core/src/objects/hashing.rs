//! BLAKE3 of bytes on their way to an object, on the blocking pool or on the thread that waits.

use std::sync::Arc;

use blake3::Hasher;
use bytes::Bytes;
use tokio::sync::oneshot;

use crate::{
    error::{Error, Result},
    threads::BlockingPool,
};

/// Work that a thread of the pool does. Dropping it does not stop the work.
#[derive(Debug)]
pub(super) struct Job<T>(oneshot::Receiver<T>);

impl<T: Send + 'static> Job<T> {
    /// Starts `work`.
    pub(super) fn start(pool: &BlockingPool, work: impl FnOnce() -> T + Send + 'static) -> Result<Job<T>> {
        let (sender, receiver) = oneshot::channel();
        pool.submit(move || drop(sender.send(work())))?;
        Ok(Job(receiver))
    }

    /// A job whose result `receiver` receives.
    pub(super) fn of(receiver: oneshot::Receiver<T>) -> Job<T> {
        Job(receiver)
    }

    /// Waits for the result. May be called again if the caller drops the future.
    pub(super) async fn join(&mut self) -> Result<T> {
        (&mut self.0).await.map_err(|_| Error::closed())
    }
}

/// The digest of bytes that arrive in parts. The parts are hashed one after the other.
#[derive(Debug)]
pub(super) struct Digester {
    /// `None` while a job has it.
    hasher: Option<Box<Hasher>>,
    running: Option<Job<Box<Hasher>>>,
}

impl Digester {
    /// Up to this size hashing takes less time than waking another thread.
    const SMALL: usize = 32 << 10;

    pub(super) fn new() -> Digester {
        Digester { hasher: Some(Box::default()), running: None }
    }

    /// Appends bytes. Waits for the part before, and returns when these are on their way.
    pub(super) async fn update(&mut self, pool: &BlockingPool, data: Arc<[Bytes]>) -> Result<()> {
        if data.iter().map(Bytes::len).sum::<usize>() <= Digester::SMALL {
            return self.update_here(&data).await;
        }
        let mut hasher = self.hasher().await?;
        let work = move || {
            update(&mut hasher, &data);
            hasher
        };
        self.running = Some(Job::start(pool, work)?);
        Ok(())
    }

    /// Appends bytes, hashed on this thread. Waits for the part before.
    pub(super) async fn update_here(&mut self, data: &[Bytes]) -> Result<()> {
        let mut hasher = self.hasher().await?;
        update(&mut hasher, data);
        self.hasher = Some(hasher);
        Ok(())
    }

    /// Returns the digest of all bytes, in hex.
    pub(super) async fn finish(&mut self) -> Result<String> {
        Ok(self.hasher().await?.finalize().to_hex().to_string())
    }

    async fn hasher(&mut self) -> Result<Box<Hasher>> {
        if let Some(running) = &mut self.running {
            self.hasher = Some(running.join().await?);
            self.running = None;
        }
        // It is missing if a job was lost with the pool.
        self.hasher.take().ok_or_else(Error::closed)
    }
}

fn update(hasher: &mut Hasher, data: &[Bytes]) {
    for part in data {
        hasher.update(part);
    }
}
