//! The client: opens the database, the threads and the services, and returns them by accessors.
//!
//! Invariant: this module composes and contains no logic of a service. Clones share one client. `close` closes it for all
//! clones and derived handles and returns when every thread of the client has ended. `close` on a derived handle, made by
//! `as_user` or `as_service`, closes that handle and its clones only. Dropping the last handle without `close` ends the
//! threads in the background.

mod backup;
mod check;
mod compose;
mod metrics;
#[cfg(feature = "postgres")]
mod move_from_supabase;
mod move_to;
mod plan_migrations;
mod read_position;
mod request_context;
mod rows;
mod with_client_key;

use std::{
    mem::ManuallyDrop,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::oneshot;

use self::move_to::Purpose;
use crate::{
    auth::{Accounts, Auth},
    check::Places,
    clock::Clock,
    communities::Communities,
    config::{Config, OwnerEmail},
    database::{Database, Principal, call},
    discovery::Discovery,
    error::{Operation, Result, operation},
    realtime::{Realtime, RealtimeCore},
    request_context::SharedContext,
    spaces::{Fidgets, Spaces},
    storage::{Storage, StorageCore},
    threads::{self, ProcessOwned, Runtime},
    validate::Limits,
};

/// The mini app directory and the community backend, with an async API.
///
/// Most examples use the [blocking client](crate::blocking::Client). With the async one, add `.await` to each call.
///
/// Cloning is cheap; clones share one client. The futures run on any async runtime: the client has a small runtime of
/// its own. [`blocking::Client`](crate::blocking::Client) is the same client without async.
///
/// A client starts with the anonymous caller. [`Auth::sign_in`] changes the caller of the client and its clones.
/// [`as_user`](Client::as_user) and [`as_service`](Client::as_service) return derived handles: they have a caller of
/// their own, and [`close`](Client::close) on one of them closes that handle only.
///
/// Open one client for each database and keep it: opening costs milliseconds and starts threads. Two clients of one database
/// work, but each has its own cache and connections.
///
/// # Examples
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
///
/// A server with many users acts for each of them by a handle, which does not change the caller of the client:
///
/// ```
/// # async fn example(client: &townsquare::Client, access_token: &str) -> townsquare::Result<()> {
/// let ann = client.as_user(access_token).await?;
/// let own = ann.spaces().get_user_spaces(ann.auth().get_session().await?.unwrap().user.id).await?;
/// println!("{} spaces", own.len());
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
    runtime: Arc<Runtime>,
    database: Database,
    clock: Clock,
    limits: Limits,
    expose_owner_email: OwnerEmail,
    /// For the HTTP endpoints.
    requests: Arc<SharedContext>,
    /// For the check.
    places: Arc<Places>,
    is_closed: AtomicBool,
    /// The process that opened the client. A forked child has none of its threads.
    process: ProcessOwned<()>,
}

impl Client {
    /// Opens a client. Creates the folder, the database and its tables if they do not exist.
    ///
    /// With the default options, the data is in the folder `townsquare-data` below the current folder: a program that is started
    /// elsewhere opens another database. [`Config::data_dir`] or [`Config::database_url`] names the place.
    ///
    /// # Errors
    /// - `Config`, naming the option or the file, for a configuration that cannot work, for a database that a newer version or
    ///   another build of the library made, and in a process that was forked while its parent had a client open. A
    ///   database that is refused is not changed.
    /// - `Config` if a move into the database is unfinished: see [`move_to`](Client::move_to).
    /// - `Unavailable` if the database or the file store does not answer, if its disk is full, and if the system has too few
    ///   threads.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example() -> townsquare::Result<()> {
    /// use townsquare::{Client, Config};
    ///
    /// let client = Client::open(Config::new().database_url("postgres://localhost/town")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An option that cannot work is refused before anything is created:
    ///
    /// ```
    /// use townsquare::{Config, ErrorKind, blocking::Client};
    ///
    /// let error = Client::open(Config::new().database_url("mysql://localhost/town")).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Config);
    /// assert_eq!(error.to_string(), "Open failed: Option database_url is sqlite:PATH or postgres://…");
    /// ```
    pub async fn open(config: Config) -> Result<Client> {
        operation(Operation::Open, async {
            let resolved = config.resolve()?;
            on_new_runtime(|runtime| Client::compose(resolved, runtime, Purpose::Use)).await
        })
        .await
    }

    /// Returns a handle of this client that acts for the service: no policy restricts it. [`close`](Client::close) on the
    /// returned handle closes that handle only. A handle of a closed handle is closed.
    ///
    /// Use it in trusted code only. A server must not answer the request of a user with it, unless it has checked by itself what
    /// the user may do.
    ///
    /// # Examples
    ///
    /// A moderator unpublishes the space of another user:
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::{ErrorKind, spaces::{NewSpace, SpacePatch}};
    ///
    /// let space = client.spaces().create_space(NewSpace::named("Harbor").public())?;
    /// client.auth().sign_out()?;
    /// let moderator = client.as_service();
    /// moderator.spaces().update_space(space.id, SpacePatch::new().hidden())?;
    /// assert_eq!(client.spaces().get_space(space.id).unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn as_service(&self) -> Client {
        self.with_fixed_caller(Principal::Service)
    }

    /// Returns a handle that stays anonymous, also after a sign-in on this client. A server answers requests without
    /// credentials on it. [`close`](Client::close) on the returned handle closes that handle only. A handle of a closed
    /// handle is closed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// use townsquare::spaces::NewSpace;
    ///
    /// client.auth().sign_in("ann@town.example", "correct horse")?;
    /// let diary = client.spaces().create_space(NewSpace::named("Diary"))?; // private
    /// assert!(client.spaces().get_space(diary.id).is_ok());
    /// assert!(client.as_anonymous().spaces().get_space(diary.id).is_err());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn as_anonymous(&self) -> Client {
        self.with_fixed_caller(Principal::Anonymous)
    }

    fn with_fixed_caller(&self, principal: Principal) -> Client {
        let auth = Auth::fixed(Arc::clone(&self.0.core.accounts), principal).for_client(self.0.auth.client());
        if self.0.auth.principal().is_closed() {
            auth.principal().close();
        }
        auth.principal().seen().follow(self.0.auth.principal().seen());
        Client::with_auth(Arc::clone(&self.0.core), auth, true)
    }

    /// Returns a handle of this client that acts for the user of a session, for servers with many users. The caller of
    /// `self` does not change. [`close`](Client::close) on the returned handle closes that handle only.
    ///
    /// The handle knows the access token only. It cannot refresh the session: after the token's hour, the user sends the token of
    /// a refreshed session, and the server makes a new handle.
    ///
    /// # Errors
    /// `Unauthorized` if the session has ended or the access token has expired.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::{ErrorKind, spaces::NewSpace};
    ///
    /// // At sign-in, the server makes a session and sends its tokens to the user.
    /// client.auth().sign_up("ann@town.example", "correct horse")?;
    /// let session = client.auth().create_session("ann@town.example", "correct horse")?;
    ///
    /// // With each request, the user sends the access token.
    /// let ann = client.as_user(&session.access_token)?;
    /// let space = ann.spaces().create_space(NewSpace::named("Harbor"))?;
    /// assert_eq!(space.owner_id, Some(session.user.id));
    ///
    /// // The client itself is still anonymous, and a private space is hidden from it.
    /// assert_eq!(client.spaces().get_space(space.id).unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn as_user(&self, access_token: &str) -> Result<Client> {
        call(self.0.auth.principal(), Operation::AsUser, async {
            let accounts = Arc::clone(&self.0.core.accounts);
            let auth = Auth::as_user(accounts, access_token).await?.for_client(self.0.auth.client());
            auth.principal().seen().follow(self.0.auth.principal().seen());
            Ok(Client::with_auth(Arc::clone(&self.0.core), auth, true))
        })
        .await
    }

    /// Accounts, sessions and sign-in.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// client.auth().sign_up("ann@town.example", "correct horse")?;
    /// let session = client.auth().sign_in("ann@town.example", "correct horse")?;
    /// assert_eq!(session.user.email, "ann@town.example");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// Configurations, domains and registered spaces of communities.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// if let Some(config) = client.communities().get_active_community_config("harbor")? {
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
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// for public in client.spaces().get_public_spaces(20, 0)? {
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
    /// # fn example(client: &townsquare::blocking::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// for fidget in client.fidgets().get_space_fidgets(space_id)? {
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
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::storage::UploadOptions;
    ///
    /// client.storage().upload("assets", "notes/hello.txt", "hello", UploadOptions::new())?;
    /// assert_eq!(client.storage().download("assets", "notes/hello.txt")?, "hello");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// Changes of rows, as they are committed.
    ///
    /// ```no_run
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::realtime::ChangeRequest;
    ///
    /// for change in client.realtime().changes(ChangeRequest::table("spaces"))? {
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
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// for app in &client.discovery().search_mini_apps("chess", 10)? {
    ///     println!("{}", app.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn discovery(&self) -> &Discovery {
        &self.0.discovery
    }

    /// The runtime for background work. For the Python and C bindings.
    #[doc(hidden)]
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        self.0.core.runtime.tokio()
    }

    /// Refuses more rows than one call may write, before a binding converts them. For the Python binding.
    ///
    /// # Errors
    /// `TooLarge`, as the operation itself fails.
    #[doc(hidden)]
    pub fn check_rows(&self, name: &str, count: usize) -> Result<()> {
        self.0.core.limits.rows(name, count)
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
        self.require_open().is_err()
    }

    /// `Closed` if [`is_closed`](Client::is_closed). For the bindings, whose functions that return a handle can fail.
    #[doc(hidden)]
    pub fn require_open(&self) -> Result<()> {
        match self.0.core.is_closed.load(Ordering::Acquire) {
            true => Err(crate::error::Error::closed()),
            false => self.0.auth.principal().check_open(),
        }
    }

    /// Closes the client: cancels background work, finishes the writes that the database has accepted, closes the files and waits for
    /// every thread of the client to end. The next client finishes or undoes an upload of a large file that fails with `Closed`. Later
    /// calls on any handle of the client fail with `Closed`. Closing a closed client does nothing. On PostgreSQL a write that waits for the server fails with `Unavailable` (08007): it may happen.
    ///
    /// Do not wait for `close` in a callback of a subscription: `close` waits for the callback, 10 seconds at most. A callback that
    /// takes longer ends after `close`.
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
        if self.0.core.process.is_inherited() {
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
        if self.0.core.process.is_inherited() {
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
        self.auth.free_memory();
    }
}

impl ClientCore {
    fn close(&self) {
        self.realtime.close();
        self.discovery.close();
        self.database.close();
        // Before the tasks end: an upload to a remote store is ended by a call to the store.
        self.storage.end_uploads();
        self.runtime.shut_down();
        // After the last task: an upload that still ran would join the store again.
        self.storage.leave();
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

/// Runs `work` on a new runtime. Spawned, because the caller may have no runtime to drive it.
async fn on_new_runtime<T, F>(work: impl FnOnce(Arc<Runtime>) -> F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let runtime = Arc::new(Runtime::start()?);
    let handle = runtime.tokio().clone();
    handle.spawn(work(runtime)).await.unwrap_or_else(|_| Err(threads::panicked()))
}
