//! The client: one handle that composes the services over one database.
//!
//! Invariant: this module only composes. Clones are one client; `close` ends it for all of them, and after it
//! returns no thread of the client is left. A client that is dropped unclosed ends its threads by itself.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{runtime::Handle, sync::oneshot};

use crate::{
    config::{Config, Resolved},
    database::{Database, OpenOptions},
    discovery::Discovery,
    error::{During, Error, Operation, Result},
    runtime::Runtime,
    upstream::Upstream,
};

/// A handle to the mini app directory and the community backend.
///
/// Cheap to clone; clones are the same client. Its futures need no particular runtime: the client has a small one
/// of its own.
///
/// ```
/// # async fn example() -> townsquare::Result<()> {
/// use townsquare::{Client, Config, Timeframe};
///
/// let client = Client::open(Config::new().data_dir("town")).await?;
/// for app in &client.discovery().get_trending_mini_apps(Timeframe::Hours24, 20).await? {
///     println!("{} — {}", app.name, app.home_url);
/// }
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Parts>);

// Fields are dropped in this order: what runs in the background ends before the database does.
struct Parts {
    discovery: Discovery,
    runtime: Arc<Runtime>,
    database: Database,
    is_closed: AtomicBool,
}

impl Client {
    /// Opens a client, creating what is missing: the folder, the database, its tables.
    ///
    /// # Errors
    /// `Config` naming the option or file that does not work; nothing is left half-made.
    pub async fn open(config: Config) -> Result<Client> {
        let resolved = config.resolve().during(Operation::Open)?;
        let runtime = Arc::new(Runtime::start().during(Operation::Open)?);
        let handle = runtime.handle().clone();
        // Opening reads and migrates files: on a thread that may wait.
        let opening = handle.spawn_blocking(move || Client::compose(resolved, runtime));
        opening.await.unwrap_or_else(|_| Err(Error::closed())).during(Operation::Open)
    }

    fn compose(resolved: Resolved, runtime: Arc<Runtime>) -> Result<Client> {
        let Resolved { database, durability, busy_timeout, catalog, clock } = resolved;
        let upstream = Upstream::new(&catalog, clock.clone())?;
        let options = OpenOptions { durability, busy_timeout, clock: clock.clone() };
        let database = Database::open(database, &options)?;
        let handle = runtime.handle().clone();
        let (interval, lease) = (catalog.refresh_interval, catalog.list_timeout);
        let discovery = Discovery::new(upstream, interval, lease, database.clone(), clock, handle);
        Ok(Client(Arc::new(Parts { discovery, runtime, database, is_closed: AtomicBool::new(false) })))
    }

    /// The mini app directory.
    pub fn discovery(&self) -> &Discovery {
        &self.0.discovery
    }

    /// The runtime of the client's background work, for bindings that have futures to drive.
    pub fn runtime(&self) -> &Handle {
        self.0.runtime.handle()
    }

    /// Whether [`close`](Client::close) was called, on this handle or a clone.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::Acquire)
    }

    /// Ends the client: calls off what is under way, finishes writes already accepted, closes the files and waits
    /// for every thread to end. Later calls fail as `Closed`. Closing twice is fine.
    pub async fn close(&self) {
        let parts = Arc::clone(&self.0);
        parts.is_closed.store(true, Ordering::Release);
        let (done, waiting) = oneshot::channel();
        // On a thread of its own: threads of a runtime may not wait for the end of a runtime.
        let closing = std::thread::Builder::new().name("townsquare-close".into()).spawn(move || {
            parts.end();
            let _ = done.send(());
        });
        match closing {
            Ok(thread) => {
                let _ = waiting.await;
                // It has only to return: this makes sure that it has.
                let _ = thread.join();
            }
            Err(error) => tracing::error!(%error, "cannot start a thread to close the client"),
        }
    }
}

impl Parts {
    fn end(&self) {
        self.discovery.close();
        self.runtime.end();
        self.database.close();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Futures of this library may be spawned on any runtime.
    #[test]
    fn every_future_is_send() {
        fn is_send<T: Send>(_: T) {}
        fn check(client: &Client) {
            is_send(Client::open(Config::new()));
            is_send(client.discovery().refresh());
            is_send(client.discovery().get_trending_mini_apps(crate::Timeframe::Hours24, 1));
            is_send(client.discovery().handle("GET", "/", b""));
            is_send(client.close());
        }
        let _: fn(&Client) = check;
    }
}
