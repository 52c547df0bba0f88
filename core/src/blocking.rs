//! The client without async: each call blocks the calling thread until the async operation is done.
//!
//! Invariant: this module contains no logic of a service. A future that is ready is polled once; otherwise the calling
//! thread is parked. Both work on any thread, also inside an async runtime.
//!
//! ```no_run
//! use townsquare::{Config, blocking::Client, discovery::Timeframe};
//!
//! let client = Client::open(Config::new().data_dir("town"))?;
//! for app in &client.discovery().get_trending_mini_apps(Timeframe::Hours24, 20)? {
//!     println!("{}: {}", app.name(), app.home_url());
//! }
//! client.close();
//! # Ok::<(), townsquare::Error>(())
//! ```

/// The documentation of a type, or of its method, in the async half of the crate; `build.rs` writes it to files.
macro_rules! text_of {
    ($type:ident $(. $method:ident)?) => {
        include_str!(concat!(env!("OUT_DIR"), "/", stringify!($type), $(".", stringify!($method),)? ".md"))
    };
}

/// Declares a blocking service. For each line `name(arguments) -> Output;` the struct gets a method that waits for the
/// async method of the same name. The struct and its methods have the documentation of the async ones.
macro_rules! area {
    ($area:ident: $($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        #[doc = text_of!($area)]
        ///
        #[doc = concat!(
            "This is [`", stringify!($area), "`](crate::blocking::services::", stringify!($area),
            ") without async: each method blocks the calling thread until it is done."
        )]
        #[derive(Debug)]
        pub struct $area<'a>(pub(super) &'a crate::blocking::services::$area);

        impl $area<'_> {
            $(
                #[doc = text_of!($area.$name)]
                pub fn $name(&self, $($argument: $type),*) -> Result<$output> {
                    wait(self.0.$name($($argument),*))
                }
            )*
        }
    };
}

/// Declares the methods of the client that return its services.
macro_rules! services {
    ($($name:ident -> $area:ident;)*) => {
        impl Client {
            $(
                #[doc = text_of!(Client.$name)]
                pub fn $name(&self) -> $area<'_> {
                    $area(self.0.$name())
                }
            )*
        }
    };
}

mod auth;
mod discovery;
mod realtime;
mod rows;
mod storage;
mod tables;

/// The async services under the names that `area!` builds paths from.
mod services {
    pub(super) use crate::{
        auth::Auth,
        communities::Communities,
        discovery::Discovery,
        realtime::Realtime,
        spaces::{Fidgets, Spaces},
        storage::Storage,
    };
}

use std::{ops::ControlFlow, path::Path};

pub use self::{
    auth::Auth,
    discovery::Discovery,
    realtime::{ChangeStream, EventBody, EventResponse, LiveQuery, Realtime},
    rows::RowExport,
    storage::{FileReader, FileWriter, Files, Storage},
    tables::{Communities, Fidgets, PublicSpaces, Spaces},
};
#[doc(hidden)]
pub use crate::threads::{wait, wait_while};
use crate::{
    check::{CheckDepth, Finding},
    config::Config,
    error::Result,
    http_message::{HttpResponse, RequestBody, ResponseBody},
    metrics::Metrics,
    model::{MigrationPlan, MoveOptions, MoveReport, MoveTarget},
};
#[cfg(feature = "postgres")]
use crate::{
    config::SupabaseProject,
    model::{SupabaseCheck, SupabaseReport},
};

/// The mini app directory and the community backend: [`townsquare::Client`](crate::Client) without async.
///
/// Every method blocks the calling thread until the work is done. It may be called on any thread, also on one of an async
/// runtime, but there it holds up the other tasks of that thread: use the async client in async code. Cloning is cheap;
/// clones share one client.
///
/// A client starts with the anonymous caller. [`Auth::sign_in`] changes the caller of the client and its clones. A server
/// with many users calls [`as_user`](Client::as_user) for each request; trusted code calls
/// [`as_service`](Client::as_service).
///
/// # Examples
///
/// A user signs up, signs in and creates a space:
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let data_dir = folder.path();
/// use townsquare::{Config, blocking::Client, spaces::NewSpace};
///
/// let client = Client::open(Config::new().data_dir(data_dir))?;
/// client.auth().sign_up("ann@town.example", "correct horse")?;
/// client.auth().sign_in("ann@town.example", "correct horse")?;
/// let space = client.spaces().create_space(NewSpace::named("Harbor"))?;
/// assert_eq!(space.name, "Harbor");
/// client.close();
/// # Ok::<(), townsquare::Error>(())
/// ```
///
/// Without a sign-in, the policies refuse a write:
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
/// use townsquare::{ErrorKind, spaces::NewSpace};
///
/// let error = client.spaces().create_space(NewSpace::named("Harbor")).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Forbidden);
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Client(crate::Client);

impl From<crate::Client> for Client {
    fn from(client: crate::Client) -> Client {
        Client(client)
    }
}

impl Client {
    #[doc = text_of!(Client.open)]
    ///
    /// A client with its data in the folder `town`:
    ///
    /// ```no_run
    /// use townsquare::{Config, blocking::Client};
    ///
    /// let client = Client::open(Config::new().data_dir("town"))?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn open(config: Config) -> Result<Client> {
        wait(crate::Client::open(config)).map(Client)
    }

    #[doc = text_of!(Client.shared)]
    ///
    /// ```no_run
    /// let client = townsquare::blocking::Client::shared()?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn shared() -> Result<Client> {
        wait(crate::Client::shared()).map(Client)
    }

    #[doc = text_of!(Client.shared_with)]
    ///
    /// ```no_run
    /// use townsquare::{Config, blocking::Client};
    ///
    /// let client = Client::shared_with(Config::new().data_dir("town"))?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn shared_with(config: Config) -> Result<Client> {
        wait(crate::Client::shared_with(config)).map(Client)
    }

    /// The async client. For the Python and C bindings.
    #[doc(hidden)]
    pub fn inner(&self) -> &crate::Client {
        &self.0
    }

    #[doc = text_of!(Client.is_closed)]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    #[doc = text_of!(Client.as_service)]
    pub fn as_service(&self) -> Client {
        Client(self.0.as_service())
    }

    #[doc = text_of!(Client.as_anonymous)]
    #[must_use]
    pub fn as_anonymous(&self) -> Client {
        Client(self.0.as_anonymous())
    }

    #[doc = text_of!(Client.as_user)]
    pub fn as_user(&self, access_token: &str) -> Result<Client> {
        wait(self.0.as_user(access_token)).map(Client)
    }

    #[doc = text_of!(Client.handle_request)]
    pub fn handle_request(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: impl Into<RequestBody>,
    ) -> Result<HttpResponse<ResponseBody>> {
        wait(self.0.handle_request(method, target, headers, body))
    }

    #[doc = text_of!(Client.with_client_key)]
    #[must_use]
    pub fn with_client_key(&self, client_key: &str) -> Client {
        Client(self.0.with_client_key(client_key))
    }

    #[doc = text_of!(Client.read_position)]
    pub fn read_position(&self) -> Result<String> {
        wait(self.0.read_position())
    }

    #[doc = text_of!(Client.read_after)]
    pub fn read_after(&self, position: &str) -> Result<()> {
        wait(self.0.read_after(position))
    }

    #[doc = text_of!(Client.metrics)]
    pub fn metrics(&self) -> Result<Metrics> {
        wait(self.0.metrics())
    }

    #[doc = text_of!(Client.check)]
    pub fn check(&self, depth: CheckDepth) -> Result<Vec<Finding>> {
        wait(self.0.check(depth))
    }

    #[doc = text_of!(Client.backup)]
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<()> {
        wait(self.0.backup(target))
    }

    #[doc = text_of!(Client.restore)]
    #[cfg(feature = "sqlite")]
    pub fn restore(source: impl AsRef<Path>, data_dir: impl AsRef<Path>) -> Result<()> {
        crate::Client::restore(source, data_dir)
    }

    #[doc = text_of!(Client.move_to)]
    pub fn move_to(
        &self,
        target: Config,
        options: MoveOptions,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<MoveReport> {
        wait(self.0.move_to(target, options, progress))
    }

    #[doc = text_of!(Client.plan_migrations)]
    pub fn plan_migrations(config: Config) -> Result<MigrationPlan> {
        wait(crate::Client::plan_migrations(config))
    }

    #[doc = text_of!(Client.reopen_for_writes)]
    pub fn reopen_for_writes(&self) -> Result<bool> {
        wait(self.0.reopen_for_writes())
    }

    #[doc = text_of!(Client.check_move)]
    pub fn check_move(&self, target: Config) -> Result<MoveTarget> {
        wait(self.0.check_move(target))
    }

    #[cfg(feature = "postgres")]
    #[doc = text_of!(Client.move_from_supabase)]
    pub fn move_from_supabase(
        project: SupabaseProject,
        target: Config,
        progress: impl FnMut(u64, u64) -> ControlFlow<()> + Send,
    ) -> Result<SupabaseReport> {
        wait(crate::Client::move_from_supabase(project, target, progress))
    }

    #[cfg(feature = "postgres")]
    #[doc = text_of!(Client.check_move_from_supabase)]
    pub fn check_move_from_supabase(project: SupabaseProject, target: Config) -> Result<SupabaseCheck> {
        wait(crate::Client::check_move_from_supabase(project, target))
    }

    #[doc = text_of!(Client.close)]
    ///
    /// ```no_run
    /// # fn example(client: townsquare::blocking::Client) {
    /// client.close();
    /// # }
    /// ```
    pub fn close(&self) {
        wait(self.0.close());
    }
}

services! {
    auth -> Auth;
    communities -> Communities;
    spaces -> Spaces;
    fidgets -> Fidgets;
    storage -> Storage;
    realtime -> Realtime;
    discovery -> Discovery;
}
