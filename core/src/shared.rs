//! The process-wide client: a [`Client`] in a static.
//!
//! Invariant: while the shared client is open, every call returns it or fails because the configuration differs. After
//! it is closed, the next call opens a new one. A forked process never gets the client of its parent, whose threads it
//! does not have.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::Mutex;

use crate::{
    client::Client,
    config::Config,
    error::{Error, Operation, Result},
};

static SHARED: Mutex<Option<(Config, Client)>> = Mutex::const_new(None);

/// The process that uses [`SHARED`]; 0 before the first call. Outside of the mutex, which a fork copies locked
/// if another thread holds it.
static OPENED_BY: AtomicU32 = AtomicU32::new(0);

impl Client {
    /// Returns the process-wide client. The first call opens it with the default configuration.
    ///
    /// # Errors
    /// `Config` in a forked process if the parent had the shared client open at the fork; those of [`Client::open`], if
    /// this call opens the client.
    ///
    /// ```
    /// # async fn example() -> townsquare::Result<()> {
    /// let client = townsquare::Client::shared().await?;
    /// println!("{} mini apps", client.discovery().stats()?.total);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shared() -> Result<Client> {
        shared(None).await
    }

    /// Returns the process-wide client. The first call opens it with `config`.
    ///
    /// # Errors
    /// `Config` if the shared client is open with another configuration, and in a forked process if the parent had the
    /// shared client open at the fork; those of [`Client::open`], if this call opens the client.
    ///
    /// ```
    /// # async fn example() -> townsquare::Result<()> {
    /// use townsquare::{Client, Config};
    ///
    /// let client = Client::shared_with(Config::new().data_dir("town")).await?;
    /// let same = Client::shared().await?; // any part of the program gets the same client
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shared_with(config: Config) -> Result<Client> {
        shared(Some(config)).await
    }
}

async fn shared(config: Option<Config>) -> Result<Client> {
    refuse_client_of_parent()?;
    // Before the lock: a process that is forked while this one waits or opens finds it.
    OPENED_BY.store(std::process::id(), Ordering::Release);
    let mut shared = SHARED.lock().await;
    if let Some((opened_with, client)) = shared.as_ref().filter(|(_, client)| !client.is_closed()) {
        return match config {
            Some(config) if config != *opened_with => Err(Error::config(
                "The shared client is open with other options; close it first, or open a client of your own",
            )
            .with_operation(Operation::Open)),
            _ => Ok(client.clone()),
        };
    }
    let config = config.unwrap_or_default();
    let client = Client::open(config.clone()).await?;
    *shared = Some((config, client.clone()));
    Ok(client)
}

/// # Errors
/// `Config` if a parent process had the shared client open, or was opening it, when it forked this one.
fn refuse_client_of_parent() -> Result<()> {
    let opened_by = OPENED_BY.load(Ordering::Acquire);
    if opened_by == 0 || opened_by == std::process::id() {
        return Ok(());
    }
    // A lock that is held now may have been copied by the fork: waiting for it may never end.
    let is_free = SHARED.try_lock().is_ok_and(|shared| shared.as_ref().is_none_or(|(_, client)| client.is_closed()));
    if is_free {
        return Ok(());
    }
    Err(Error::config(
        "The shared client was opened before a fork and belongs to the parent process: start workers before opening, or \
         spawn them",
    )
    .with_operation(Operation::Open))
}
