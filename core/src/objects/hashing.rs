//! BLAKE3 of bytes on their way to an object, on the blocking pool.

use std::sync::Arc;

use blake3::Hasher;
use bytes::Bytes;

use crate::{
    error::Result,
    threads::{BlockingPool, RunningJob},
};

/// The digest of bytes that arrive in parts. The parts are hashed one after the other.
#[derive(Debug, Default)]
pub(super) struct Digester {
    /// Hashes the last part. `None` before the first part.
    running: Option<RunningJob<Box<Hasher>>>,
}

impl Digester {
    /// Appends bytes. Waits for the part before, and returns when the hashing of these has started.
    pub(super) async fn update(&mut self, pool: &BlockingPool, data: Arc<[Bytes]>) -> Result<()> {
        let mut hasher = self.hasher().await?;
        self.running = Some(pool.start(move || {
            for part in data.iter() {
                hasher.update(part);
            }
            hasher
        })?);
        Ok(())
    }

    /// Returns the digest of all bytes, in hex. To be called once.
    pub(super) async fn finish(&mut self) -> Result<String> {
        Ok(self.hasher().await?.finalize().to_hex().to_string())
    }

    async fn hasher(&mut self) -> Result<Box<Hasher>> {
        let Some(running) = &mut self.running else { return Ok(Box::default()) };
        let hasher = running.join().await;
        self.running = None;
        hasher
    }
}
