//! The one client of a process: an ordinary client in a static.
//!
//! Invariant: as long as it is open, everybody gets the same one; who asks for other options than it was opened with
//! is told so instead of getting something else. After it was closed, the next call opens another.

use tokio::sync::Mutex;

use crate::{
    client::Client,
    config::Config,
    error::{Error, Operation, Result},
};

static SHARED: Mutex<Option<(Config, Client)>> = Mutex::const_new(None);

impl Client {
    /// The process-wide client; the first call opens it with the defaults.
    ///
    /// # Errors
    /// As [`Client::open`], when it is opened.
    pub async fn shared() -> Result<Client> {
        shared(None).await
    }

    /// The process-wide client; the first call opens it with this configuration.
    ///
    /// # Errors
    /// `Config` when it is open with another configuration; as [`Client::open`], when it is opened.
    pub async fn shared_with(config: Config) -> Result<Client> {
        shared(Some(config)).await
    }
}

async fn shared(config: Option<Config>) -> Result<Client> {
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
