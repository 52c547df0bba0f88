//! The process-wide client: a [`Client`] in a static.
//!
//! Invariant: while the shared client is open, every call returns it or fails because the configuration differs. After
//! it is closed, the next call opens a new one.

use tokio::sync::Mutex;

use crate::{
    client::Client,
    config::Config,
    error::{Error, Operation, Result},
};

static SHARED: Mutex<Option<(Config, Client)>> = Mutex::const_new(None);

impl Client {
    /// Returns the process-wide client. The first call opens it with the default configuration.
    ///
    /// # Errors
    /// Those of [`Client::open`], if this call opens the client.
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
    /// `Config` if the shared client is open with another configuration; those of [`Client::open`], if this call opens
    /// the client.
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
