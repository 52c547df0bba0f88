//! The client: one handle that composes the services over one database.
//!
//! Invariant: this module only composes. Clones are one client; `close` ends it for all of them, and after it
//! returns no thread of the client is left. A client that is dropped unclosed ends its threads by itself.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::oneshot;

use crate::{
    auth::{Auth, Desk},
    clock::Clock,
    communities::Communities,
    config::{Config, OptionValues, Resolved},
    database::{Database, OpenOptions},
    discovery::Discovery,
    error::{Error, Operation, Result, WithOperation},
    runtime::Runtime,
    spaces::{Fidgets, Spaces},
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
///     println!("{} — {}", app.name(), app.home_url());
/// }
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Handle>);

/// A handle: the client's parts, as one caller has them.
struct Handle {
    auth: Auth,
    communities: Communities,
    spaces: Spaces,
    fidgets: Fidgets,
    parts: Arc<Parts>,
}

// Fields are dropped in this order: what runs in the background ends before the database does.
struct Parts {
    discovery: Discovery,
    desk: Arc<Desk>,
    runtime: Arc<Runtime>,
    database: Database,
    clock: Clock,
    exposes_owner_email: bool,
    is_closed: AtomicBool,
}

impl Client {
    /// Opens a client, creating what is missing: the folder, the database, its tables.
    ///
    /// # Errors
    /// `Config` naming the option or file that does not work; nothing is left half-made.
    pub async fn open(config: Config) -> Result<Client> {
        let resolved = config.resolve().with_operation(Operation::Open)?;
        let runtime = Arc::new(Runtime::start().with_operation(Operation::Open)?);
        let handle = runtime.handle().clone();
        // On the client's own threads: opening waits for files and servers, and needs no runtime of the caller's.
        let opening = handle.spawn(Client::compose(resolved, runtime));
        opening.await.unwrap_or_else(|_| Err(Error::closed())).with_operation(Operation::Open)
    }

    async fn compose(resolved: Resolved, runtime: Arc<Runtime>) -> Result<Client> {
        let Resolved { database, catalog, session_file, options: values, clock } = resolved;
        let OptionValues { durability, busy_timeout, expose_owner_email: exposes_owner_email, .. } = values;
        let upstream = Upstream::new(&catalog, &values, clock.clone())?;
        let options = OpenOptions { durability, busy_timeout, clock: clock.clone() };
        let handle = runtime.handle().clone();
        let database = Database::open(database, options, handle.clone()).await?;
        let (interval, lease) = (values.refresh_interval, values.catalog_refresh_timeout);
        let service = database.service();
        let desk = Arc::new(Desk::new(service.clone(), clock.clone(), handle.clone(), runtime.callbacks().clone()));
        let discovery = Discovery::new(upstream, interval, lease, service, clock.clone(), handle);
        let is_closed = AtomicBool::new(false);
        let auth = Auth::open(Arc::clone(&desk), session_file);
        let parts = Parts { discovery, desk, runtime, database, clock, exposes_owner_email, is_closed };
        let client = Client::acting(Arc::new(parts), auth);
        client.auth().restore().await?;
        Ok(client)
    }

    /// A handle that acts for whoever `auth` has.
    fn acting(parts: Arc<Parts>, auth: Auth) -> Client {
        let scope = parts.database.scope(auth.seat().acting().clone());
        let clock = || parts.clock.clone();
        Client(Arc::new(Handle {
            communities: Communities::new(scope.clone(), clock()),
            spaces: Spaces::new(scope.clone(), clock(), parts.exposes_owner_email),
            fidgets: Fidgets::new(scope, clock()),
            auth,
            parts,
        }))
    }

    /// The same client past every policy: for trusted code.
    pub fn as_service(&self) -> Client {
        let auth = Auth::service(Arc::clone(&self.0.parts.desk));
        Client::acting(Arc::clone(&self.0.parts), auth)
    }

    /// The same client as the user of a session, for servers with many users: a handle of its own, whose caller stays.
    ///
    /// # Errors
    /// `Unauthorized` when the session has ended or its access token expired.
    pub async fn as_user(&self, access_token: &str) -> Result<Client> {
        let desk = Arc::clone(&self.0.parts.desk);
        let seat = desk.seat_of(access_token).await.with_operation(Operation::AsUser)?;
        Ok(Client::acting(Arc::clone(&self.0.parts), Auth::seated(desk, seat)))
    }

    /// Accounts, sessions and sign-in.
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// Communities: configuration, domains, registered spaces.
    pub fn communities(&self) -> &Communities {
        &self.0.communities
    }

    /// Spaces.
    pub fn spaces(&self) -> &Spaces {
        &self.0.spaces
    }

    /// The fidgets of spaces.
    pub fn fidgets(&self) -> &Fidgets {
        &self.0.fidgets
    }

    /// Writes a consistent copy of the SQLite database to `target` while writers go on.
    ///
    /// # Errors
    /// `InvalidInput` when the target exists, or the database is PostgreSQL, which has tools of its own for that.
    pub async fn backup(&self, target: impl AsRef<Path>) -> Result<()> {
        self.0.parts.database.backup(target.as_ref()).await.with_operation(Operation::Backup)
    }

    /// Puts a copy made by [`backup`](Client::backup) into a folder that no client has open; blocks the thread.
    ///
    /// # Errors
    /// `Config` for a copy that is none of ours, damaged, or of a newer version, and for a folder that has a database.
    #[cfg(feature = "sqlite")]
    pub fn restore(source: impl AsRef<Path>, data_dir: impl AsRef<Path>) -> Result<()> {
        crate::database::restore(source.as_ref(), data_dir.as_ref()).with_operation(Operation::Restore)
    }

    /// The mini app directory.
    pub fn discovery(&self) -> &Discovery {
        &self.0.parts.discovery
    }

    /// The runtime of the client's background work, for bindings that have futures to drive.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        self.0.parts.runtime.handle()
    }

    /// Whether [`close`](Client::close) was called, on this handle or a clone.
    pub fn is_closed(&self) -> bool {
        self.0.parts.is_closed.load(Ordering::Acquire)
    }

    /// Ends the client: calls off what is under way, finishes writes already accepted, closes the files and waits
    /// for every thread to end. Later calls fail as `Closed`. Closing twice is fine. A callback must not wait for it: it
    /// is one of the things that are waited for.
    pub async fn close(&self) {
        let handle = Arc::clone(&self.0);
        handle.parts.is_closed.store(true, Ordering::Release);
        let (done, waiting) = oneshot::channel();
        // On a thread of its own: threads of a runtime may not wait for the end of a runtime.
        let closing = std::thread::Builder::new().name("townsquare-close".into()).spawn(move || {
            handle.parts.end();
            handle.auth.forget_listeners();
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
        self.database.close();
        self.runtime.end();
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
