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

/// Declares a blocking service. For each line `name(arguments) -> Output;` the struct gets a method that waits for the
/// async method of the same name. Documentation on the service or on a line is appended to the generated one.
macro_rules! area {
    ($(#[$service_doc:meta])* $area:ident:
     $($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        #[doc = concat!("[`", stringify!($area), "`](crate::blocking::services::", stringify!($area), ") without async.")]
        $(#[$service_doc])*
        #[derive(Debug)]
        pub struct $area<'a>(pub(super) &'a crate::blocking::services::$area);

        impl $area<'_> {
            $(
                #[doc = concat!(
                    "Calls [`", stringify!($area), "::", stringify!($name), "`](crate::blocking::services::", stringify!($area), "::",
                    stringify!($name), ") and waits for its result."
                )]
                ///
                /// # Errors
                /// Those of the async method.
                $(#[$doc])*
                pub fn $name(&self, $($argument: $type),*) -> Result<$output> {
                    wait(self.0.$name($($argument),*))
                }
            )*
        }
    };
}

mod auth;
mod discovery;
mod realtime;
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

pub use self::{
    auth::Auth,
    discovery::Discovery,
    realtime::{ChangeStream, EventBody, EventResponse, LiveQuery, Realtime},
    storage::{FileReader, FileWriter, Storage},
    tables::{Communities, Fidgets, PublicSpaces, Spaces},
};
#[doc(hidden)]
pub use crate::threads::{wait, wait_while};
use crate::{config::Config, error::Result};

/// [`townsquare::Client`](crate::Client) without async.
///
/// ```no_run
/// use townsquare::{Config, blocking::Client, spaces::NewSpace};
///
/// let client = Client::open(Config::new().data_dir("town"))?;
/// client.auth().sign_up("ann@town.example", "correct horse")?;
/// client.auth().sign_in("ann@town.example", "correct horse")?;
/// let space = client.spaces().create_space(NewSpace::named("Harbor"))?;
/// client.close();
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
    /// Calls [`Client::open`](crate::Client::open) and waits for its result.
    ///
    /// # Errors
    /// Those of the async method.
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

    /// Calls [`Client::shared`](crate::Client::shared) and waits for its result.
    ///
    /// # Errors
    /// Those of the async method.
    ///
    /// ```no_run
    /// let client = townsquare::blocking::Client::shared()?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn shared() -> Result<Client> {
        wait(crate::Client::shared()).map(Client)
    }

    /// Calls [`Client::shared_with`](crate::Client::shared_with) and waits for its result.
    ///
    /// # Errors
    /// Those of the async method.
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

    /// See [`Client::is_closed`](crate::Client::is_closed).
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Calls [`Client::close`](crate::Client::close) and waits until every thread of the client has ended.
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
