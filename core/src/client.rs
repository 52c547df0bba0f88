//! The client: opens the database, the threads and the services, and returns them by accessors.
//!
//! Invariant: this module composes and contains no logic of a service. Clones share one client. `close` closes it for all
//! clones and derived handles and returns when every thread of the client has ended. `close` on a derived handle, made by
//! `as_user` or `as_service`, closes that handle and its clones only. Dropping the last handle without `close` ends the
//! threads in the background.

mod request_context;
mod with_client_key;

use std::{
    mem::ManuallyDrop,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::oneshot;

use crate::{
    auth::{AccountOptions, Accounts, Auth},
    client_key::ClientLimits,
    clock::Clock,
    communities::Communities,
    config::{Config, OptionValues, OwnerEmail, Resolved},
    database::{Database, OpenOptions, PostgresOptions, PreparedDatabase, change_log::RetentionLimits},
    discovery::{Discovery, DiscoveryOptions, EndpointOptions},
    error::{Operation, Result, operation},
    realtime::{Realtime, RealtimeCore},
    runtime::Runtime,
    spaces::{Fidgets, Spaces},
    storage::{FileQuota, PreparedStorage, Storage, StorageCore, StorageOptions},
    threads,
    upstream::Upstream,
    validate::Limits,
};

/// The mini app directory and the community backend, with an async API.
///
/// Cloning is cheap; clones share one client. The futures run on any async runtime: the client has a small runtime of
/// its own. [`blocking::Client`](crate::blocking::Client) is the same client without async.
///
/// A client starts with the anonymous caller. [`Auth::sign_in`] changes the caller of the client and its clones.
/// [`as_user`](Client::as_user) and [`as_service`](Client::as_service) return derived handles: they have a caller of
/// their own, and [`close`](Client::close) on one of them closes that handle only.
///
/// ```
/// # async fn example() -> townsquare::Result<()> {
/// use townsquare::{Client, Config, discovery::Timeframe};
///
/// let client = Client::open(Config::new().data_dir("town")).await?;
/// for app in &client.discovery().get_trending_mini_apps(Timeframe::Hours24, 20).await? {
///     println!("{}: {}", app.name(), app.home_url());
/// }
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<CallerServices>);

/// The services of a client for one caller.
struct CallerServices {
    auth: Auth,
    communities: Communities,
    spaces: Spaces,
    fidgets: Fidgets,
    storage: Storage,
    realtime: Realtime,
    discovery: Discovery,
    /// True for handles of `as_user` and `as_service`.
    is_derived: bool,
    core: Arc<ClientCore>,
}

/// What the handles of all callers share. Fields are dropped in this order: background work ends before the database.
struct ClientCore {
    discovery: Discovery,
    accounts: Arc<Accounts>,
    storage: Arc<StorageCore>,
    realtime: Arc<RealtimeCore>,
    event_heartbeat: Duration,
    allowed_origins: Arc<[String]>,
    runtime: Arc<Runtime>,
    database: Database,
    clock: Clock,
    limits: Limits,
    expose_owner_email: OwnerEmail,
    client_limits: ClientLimits,
    is_closed: AtomicBool,
    /// The process that opened the client. A forked child has none of its threads.
    process: u32,
}

impl Client {
    /// Opens a client. Creates the folder, the database and its tables if they do not exist.
    ///
    /// # Errors
    /// `Config`, naming the option or the file, for a configuration that cannot work, for a database that a newer version or
    /// another build of the library made, and in a process that was forked while its parent had a SQLite database open. A
    /// database that is refused is not changed.
    ///
    /// ```
    /// # async fn example() -> townsquare::Result<()> {
    /// use townsquare::{Client, Config};
    ///
    /// let client = Client::open(Config::new().database_url("postgres://localhost/town")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open(config: Config) -> Result<Client> {
        operation(Operation::Open, async {
            #[cfg(feature = "sqlite")]
            crate::database::refuse_forked_child()?;
            let resolved = config.resolve()?;
            let runtime = Arc::new(Runtime::start()?);
            let handle = runtime.tokio().clone();
            // Spawned, because the caller may have no runtime to drive it.
            let composed = handle.spawn(Client::compose(resolved, runtime)).await;
            composed.unwrap_or_else(|_| Err(threads::panicked()))
        })
        .await
    }

    async fn compose(resolved: Resolved, runtime: Arc<Runtime>) -> Result<Client> {
        let Resolved { database, catalog, files, inline_file_limit, allowed_origins, session_file, options, clock } =
            resolved;
        let allowed_origins: Arc<[String]> = allowed_origins.into();
        let storage = StorageOptions {
            inline_file_limit,
            max_file_size: options.max_file_size,
            max_verified_size: options.max_verified_size,
            quota: FileQuota { max_bytes: options.max_owner_bytes, max_files: options.max_owner_files },
            claim_store: options.claim_store,
            url_signing_key: options.url_signing_key.clone(),
        };
        let OptionValues { durability, busy_timeout, migrate, expose_owner_email, .. } = options;
        let OptionValues { max_text_size, max_name_size, max_json_size, max_bulk_rows, max_owner_spaces, .. } = options;
        let limits = Limits { max_text_size, max_name_size, max_json_size, max_bulk_rows, max_owner_spaces };
        let (sign_up_limit, identity_audience) = (options.sign_up_limit, options.identity_audience.clone());
        let accounts = AccountOptions { sign_up_limit, identity_audience, limits };
        let OptionValues { change_retention: age, change_retention_rows: rows, .. } = options;
        let retention = RetentionLimits { age, rows, bytes: options.change_retention_bytes };
        let discovery = DiscoveryOptions {
            interval: options.refresh_interval,
            lease: options.catalog_refresh_timeout,
            max_staleness: options.max_staleness,
            max_lists: options.catalog_max_lists as usize,
            endpoint: EndpointOptions {
                can_refresh: options.endpoint_refresh,
                min_refresh_age: options.endpoint_refresh_age,
                can_fetch_lists: options.endpoint_lists,
                allowed_origins: Arc::clone(&allowed_origins),
            },
        };
        let postgres = PostgresOptions {
            pooler: options.database_pooler,
            max_connections: options.max_connections,
            operation_timeout: options.operation_timeout,
            connect_timeout: options.connect_timeout,
            idle_timeout: options.idle_timeout,
            max_lifetime: options.max_lifetime,
            adopt: options.adopt,
        };
        let event_heartbeat = options.event_heartbeat;
        let upstream = Upstream::new(&catalog, &options, clock.clone())?;
        let handle = runtime.handle().clone();
        let storage = PreparedStorage::new(files.into(), &options.buckets, storage, &handle)?;
        let options = OpenOptions { durability, busy_timeout, postgres, migrate, clock };
        // Everything that may refuse the database comes before the first change of it.
        let (database, stored_files) = PreparedDatabase::new(database, options, handle.clone()).await?;
        storage.check(&stored_files).await?;
        let database = database.open().await?;
        // Processes compare the times of rows, sessions and tokens.
        let clock = database.clock().clone();
        let service = database.service();
        let callbacks = runtime.callbacks().clone();
        let storage = StorageCore::open(storage, service.clone(), clock.clone(), handle.clone()).await?;
        let realtime = RealtimeCore::new(database.clone(), clock.clone(), retention, handle.clone(), callbacks.clone());
        let accounts =
            Arc::new(Accounts::new(service.clone(), clock.clone(), accounts, handle.clone(), callbacks.clone()));
        let discovery = Discovery::new(upstream, discovery, service, clock.clone(), handle.tokio, callbacks)?;
        let auth = Auth::anonymous(Arc::clone(&accounts), session_file);
        let is_closed = AtomicBool::new(false);
        let process = std::process::id();
        let core = ClientCore {
            discovery,
            accounts,
            storage,
            realtime,
            event_heartbeat,
            allowed_origins,
            runtime,
            database,
            clock,
            limits,
            expose_owner_email,
            client_limits: ClientLimits::new(),
            is_closed,
            process,
        };
        let client = Client::with_auth(Arc::new(core), auth, false);
        client.auth().restore_session().await?;
        Ok(client)
    }

    /// A handle whose services act for the caller of `auth`.
    fn with_auth(core: Arc<ClientCore>, auth: Auth, is_derived: bool) -> Client {
        let scope = core.database.scope(auth.principal().clone());
        let (clock, limits) = (|| core.clock.clone(), core.limits);
        let requests = core.request_context(auth.client());
        Client(Arc::new(CallerServices {
            communities: Communities::new(scope.clone(), clock(), limits),
            spaces: Spaces::new(scope.clone(), clock(), limits, core.expose_owner_email),
            fidgets: Fidgets::new(scope.clone(), clock(), limits),
            realtime: Realtime::new(Arc::clone(&core.realtime), auth.principal().clone(), requests.clone()),
            storage: Storage::new(scope, Arc::clone(&core.storage), requests),
            discovery: core.discovery.for_handle(auth.principal().clone()),
            auth,
            is_derived,
            core,
        }))
    }

    /// Returns a handle of this client that acts for the service: no policy restricts it. Use it in trusted code only.
    /// [`close`](Client::close) on the returned handle closes that handle only. A handle of a closed handle is closed.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client, id: townsquare::Uuid) -> townsquare::Result<()> {
    /// use townsquare::spaces::SpacePatch;
    ///
    /// // A moderator unpublishes the space of another user.
    /// client.as_service().spaces().update_space(id, SpacePatch::new().hidden()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_service(&self) -> Client {
        let auth = Auth::service(Arc::clone(&self.0.core.accounts)).for_client(self.0.auth.client());
        if self.0.auth.principal().is_closed() {
            auth.principal().close();
        }
        Client::with_auth(Arc::clone(&self.0.core), auth, true)
    }

    /// Returns a handle of this client that acts for the user of a session, for servers with many users. The caller of
    /// `self` does not change. [`close`](Client::close) on the returned handle closes that handle only.
    ///
    /// # Errors
    /// `Unauthorized` if the session has ended or the access token has expired.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// use townsquare::spaces::NewSpace;
    ///
    /// // At sign-in, the server makes a session and sends its tokens to the user.
    /// let session = client.as_service().auth().sign_in("ann@town.example", "correct horse").await?;
    /// // With each request, the user sends the access token.
    /// let ann = client.as_user(&session.access_token).await?;
    /// ann.spaces().create_space(NewSpace::named("Harbor")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn as_user(&self, access_token: &str) -> Result<Client> {
        operation(Operation::AsUser, async {
            self.0.auth.principal().check_open()?;
            let accounts = Arc::clone(&self.0.core.accounts);
            let auth = Auth::as_user(accounts, access_token).await?.for_client(self.0.auth.client());
            Ok(Client::with_auth(Arc::clone(&self.0.core), auth, true))
        })
        .await
    }

    /// Accounts, sessions and sign-in.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// client.auth().sign_up("ann@town.example", "correct horse").await?;
    /// let session = client.auth().sign_in("ann@town.example", "correct horse").await?;
    /// println!("signed in as {}", session.user.email);
    /// # Ok(())
    /// # }
    /// ```
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// Configurations, domains and registered spaces of communities.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// if let Some(config) = client.communities().get_active_community_config("harbor").await? {
    ///     println!("{}", config.brand);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn communities(&self) -> &Communities {
        &self.0.communities
    }

    /// Spaces.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// for public in client.spaces().get_public_spaces(20, 0).await? {
    ///     println!("{}", public.space.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn spaces(&self) -> &Spaces {
        &self.0.spaces
    }

    /// Fidgets: the widgets in spaces.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// for fidget in client.fidgets().get_space_fidgets(space_id).await? {
    ///     println!("{}", fidget.kind);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn fidgets(&self) -> &Fidgets {
        &self.0.fidgets
    }

    /// Files.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// use townsquare::storage::UploadOptions;
    ///
    /// client.storage().upload("assets", "notes/hello.txt", "hello", UploadOptions::new()).await?;
    /// assert_eq!(client.storage().download("assets", "notes/hello.txt").await?, "hello");
    /// # Ok(())
    /// # }
    /// ```
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// Changes of rows, as they are committed.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// use townsquare::realtime::ChangeRequest;
    ///
    /// let mut changes = client.realtime().changes(ChangeRequest::table("spaces")).await?;
    /// while let Some(change) = changes.next().await {
    ///     println!("{}", change?.event_type);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn realtime(&self) -> &Realtime {
        &self.0.realtime
    }

    /// The mini app directory.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// for app in &client.discovery().search_mini_apps("chess", 10).await? {
    ///     println!("{}", app.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn discovery(&self) -> &Discovery {
        &self.0.discovery
    }

    /// Writes a copy of the SQLite database to the file `target`, as the database is at one moment. Other calls may write
    /// meanwhile.
    ///
    /// Small files are in the database. The large ones are copied to the folder `<target>.files`, at `BUCKET/PATH`, as they are
    /// at the same moment. If the files are in a remote object store (`s3://…`), they stay there and the copy has their rows
    /// only. The copy has its name when it is complete; a process that is killed leaves a folder `<target>.….part`, which the
    /// next backup to `target` removes.
    ///
    /// A backup is an operation of the host, not of a caller: every handle may make one, and the copy has every row and file
    /// of the database, also those that policies hide from the handle's caller. A host that lets its users choose a
    /// target must check them first. The copy contains password hashes and the hashes of session tokens, but not the key of
    /// signed URLs.
    ///
    /// # Errors
    /// `InvalidInput` if `target` or `<target>.files` exists, and on PostgreSQL, which has its own tools for backups.
    /// `Internal`, naming the files, if the bytes of files are gone or of another size: there is no backup then. Upload or
    /// delete such files, or call [`repair`](crate::storage::Storage::repair). `Unavailable` if the disk is full, or if files
    /// change faster than the backup can follow.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// client.backup("/backups/town.db").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn backup(&self, target: impl AsRef<Path>) -> Result<()> {
        operation(Operation::Backup, async {
            self.0.auth.principal().check_open()?;
            self.back_up(target.as_ref()).await
        })
        .await
    }

    #[cfg(feature = "sqlite")]
    async fn back_up(&self, target: &Path) -> Result<()> {
        self.as_service().storage().back_up(target).await
    }

    #[cfg(not(feature = "sqlite"))]
    async fn back_up(&self, _target: &Path) -> Result<()> {
        Err(crate::error::Error::invalid_input(
            "A PostgreSQL database is backed up with its own tools (pg_dump, pg_basebackup)",
        ))
    }

    /// Installs a copy made by [`backup`](Client::backup) in the folder `data_dir`, with the files of `<source>.files`. Blocks
    /// the thread.
    ///
    /// The restored database is one of its own: it has its own incarnation id and its own key of signed URLs, so signed URLs
    /// of the original are refused. Users and sessions are those of the backup: a session of the backup is valid in both
    /// databases, in each until it ends there. Files that stayed in a remote store can be read; see
    /// [`claim_store`](crate::Config::claim_store) for changing them.
    ///
    /// Either everything is restored or nothing: after an error, or after the process was killed, the call can be repeated.
    ///
    /// # Errors
    /// `Unavailable` if the disk is full. `Config` if `source` is damaged, is no copy of a townsquare database or has a newer
    /// version, if a file's bytes are missing or damaged, and if `data_dir` already contains a database or files. Nothing is
    /// installed then.
    ///
    /// ```no_run
    /// use townsquare::{Config, blocking::Client};
    ///
    /// townsquare::Client::restore("/backups/town.db", "restored-town")?;
    /// let client = Client::open(Config::new().data_dir("restored-town"))?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    #[cfg(feature = "sqlite")]
    pub fn restore(source: impl AsRef<Path>, data_dir: impl AsRef<Path>) -> Result<()> {
        let restored = crate::storage::restore(source.as_ref(), data_dir.as_ref());
        restored.map_err(|error| error.with_operation(Operation::Restore))
    }

    /// The runtime for background work. For the Python and C bindings.
    #[doc(hidden)]
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        self.0.core.runtime.tokio()
    }

    /// Whether `as_user` or `as_service` made this handle. For the Python and C bindings.
    #[doc(hidden)]
    pub fn is_derived(&self) -> bool {
        self.0.is_derived
    }

    /// Whether [`close`](Client::close) was called on this handle, on a clone of it, or on the client that was opened.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) {
    /// client.close().await;
    /// assert!(client.is_closed());
    /// # }
    /// ```
    pub fn is_closed(&self) -> bool {
        self.0.core.is_closed.load(Ordering::Acquire) || self.0.auth.principal().is_closed()
    }

    /// Closes the client: cancels background work, finishes the writes that were accepted, closes the files and waits for
    /// every thread of the client to end. Later calls on any handle of the client fail with `Closed`. Closing a closed
    /// client does nothing.
    ///
    /// Do not wait for `close` in a callback of a subscription: `close` waits for the callback.
    ///
    /// In a forked child `close` does nothing: the client belongs to the parent process.
    ///
    /// On a handle of [`as_user`](Client::as_user) or [`as_service`](Client::as_service), `close` closes that handle and
    /// its clones only: later calls on it fail with `Closed`, its subscriptions end, and calls that run complete. It does
    /// not wait. The client and its other handles continue.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) {
    /// let service = client.as_service();
    /// service.close().await;
    /// assert!(service.is_closed() && !client.is_closed());
    /// client.close().await;
    /// assert!(client.is_closed());
    /// # }
    /// ```
    pub async fn close(&self) {
        if self.0.core.is_inherited() {
            return;
        }
        if self.0.is_derived {
            self.0.auth.principal().close();
            self.0.auth.drop_listeners();
            self.0.realtime.close_handle();
            return;
        }
        let services = Arc::clone(&self.0);
        services.core.is_closed.store(true, Ordering::Release);
        let (closed, wait_closed) = oneshot::channel();
        // On its own thread: a thread of a runtime must not wait for a runtime to shut down.
        let thread = threads::spawn("townsquare-close", move || {
            services.close();
            let _ = closed.send(());
        });
        match thread {
            Ok(thread) => {
                let _ = wait_closed.await;
                // The thread has sent its last message, so `join` returns at once.
                let _ = thread.join();
            }
            Err(error) => {
                tracing::debug!(%error, "the client is closed on the calling thread");
                self.0.close();
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.0.core.is_inherited() {
            // In a forked child the client is never dropped: its destructor waits for threads of the parent, and closing
            // its files would touch the parent's database.
            let _leaked = ManuallyDrop::new(Arc::clone(&self.0));
        }
    }
}

impl CallerServices {
    /// Closes the client. Blocks the thread.
    fn close(&self) {
        self.core.close();
        self.auth.drop_listeners();
    }
}

impl ClientCore {
    /// True in a forked child of the process that opened the client.
    fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }

    fn close(&self) {
        self.realtime.close();
        self.discovery.close();
        self.database.close();
        self.storage.close();
        self.runtime.shut_down();
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

    /// Multi-threaded runtimes only accept futures that are `Send`.
    #[test]
    fn futures_are_send() {
        fn is_send<T: Send>(_: T) {}
        fn check(client: &Client) {
            is_send(Client::open(Config::new()));
            is_send(client.discovery().refresh());
            is_send(client.discovery().get_trending_mini_apps(crate::discovery::Timeframe::Hours24, 1));
            is_send(client.discovery().handle("GET", "/", b"", &[]));
            is_send(client.storage().upload("assets", "a", "", crate::storage::UploadOptions::new()));
            is_send(client.storage().download("assets", "a"));
            is_send(client.storage().repair());
            is_send(client.realtime().changes(crate::realtime::ChangeRequest::table("spaces")));
            is_send(client.close());
        }
        let _: fn(&Client) = check;
    }
}
