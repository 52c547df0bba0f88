//! The process-wide client: a [`Client`] in a static.
//!
//! Invariant: while the shared client is open, every call returns it or fails because the configuration differs. After
//! it is closed, the next call opens a new one. A forked process never gets the client of its parent, because it does not have
//! the client's threads.

use std::{
    path::{self, Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use tokio::sync::Mutex;

use crate::{
    client::Client,
    config::Config,
    error::{Error, Operation, Result},
};

static SHARED: Mutex<Option<SharedClient>> = Mutex::const_new(None);

/// The client, and how it was opened.
struct SharedClient {
    client: Client,
    opened_with: Config,
    /// `opened_with` with the [`real_folder`] of the time when the client was opened.
    place: Config,
}

impl SharedClient {
    /// Whether a client of `config` would have the same options and the same data. A relative folder that was given at `open`
    /// stays the same folder, also after the program has changed its current folder.
    fn is_of(&self, config: &Config) -> bool {
        *config == self.opened_with || at_real_folder(config) == self.place
    }
}

/// The process that opened or opens the shared client; 0 before the first call. In a forked child it is the parent.
static PROCESS: AtomicU32 = AtomicU32::new(0);

impl Client {
    /// Returns the process-wide client. The first call opens it with the options of the environment.
    ///
    /// # Errors
    /// `Config` in a forked process if the parent had the shared client open at the fork; the errors of [`Client::open`], if
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
    /// shared client open at the fork; the errors of [`Client::open`], if this call opens the client.
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
    refuse_inherited()?;
    // Two configurations are equal if a client would open with the same values. The environment may have given some of them.
    let config = match config {
        Some(config) => Some(config.with_environment().map_err(|error| error.with_operation(Operation::Open))?),
        None => None,
    };
    let mut shared = SHARED.lock().await;
    if let Some(open) = shared.as_ref().filter(|open| !open.client.is_closed()) {
        return match config {
            Some(config) if !open.is_of(&config) => Err(Error::config(
                "The shared client is open with other options; close it first, or open a client of your own",
            )
            .with_operation(Operation::Open)),
            _ => Ok(open.client.clone()),
        };
    }
    let config = match config {
        Some(config) => config,
        None => Config::from_env().map_err(|error| error.with_operation(Operation::Open))?,
    };
    let place = at_real_folder(&config);
    let client = Client::open(config.clone()).await?;
    *shared = Some(SharedClient { client: client.clone(), opened_with: config, place });
    Ok(client)
}

/// The configuration with the real folder of its data, so that two spellings of one folder are equal.
fn at_real_folder(config: &Config) -> Config {
    match config.named_folder() {
        Some(folder) => config.clone().with_folder(real_folder(folder)),
        None => config.clone(),
    }
}

/// The folder from the root of the file system, without symbolic links in the part of it that exists.
fn real_folder(folder: &Path) -> PathBuf {
    let Ok(folder) = path::absolute(folder) else { return folder.to_owned() };
    let real = folder.ancestors().find_map(|above| {
        let below = folder.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(below))
    });
    real.unwrap_or(folder)
}

/// Returns the error `Config` in a forked child, if the parent had the shared client open or was opening it.
fn refuse_inherited() -> Result<()> {
    let (opened_by, this) = (PROCESS.load(Ordering::Acquire), std::process::id());
    if opened_by == 0 || opened_by == this {
        PROCESS.store(this, Ordering::Release);
        return Ok(());
    }
    // Does not wait: the thread that holds a copied lock is in the parent.
    match SHARED.try_lock() {
        Ok(shared) if shared.as_ref().is_none_or(|open| open.client.is_closed()) => {
            PROCESS.store(this, Ordering::Release);
            Ok(())
        }
        _ => Err(Error::config(
            "The shared client was opened before a fork and belongs to the parent process: start workers before opening, \
             or spawn them",
        )
        .with_operation(Operation::Open)),
    }
}
