//! The same client for threads that may wait: a thin skin, one line a call.
//!
//! Invariant: no logic and no second copy of a body lives here. A future that is ready costs one poll; any other
//! parks the calling thread, which works everywhere, also inside a runtime.

/// An area of the client whose every call waits for its asynchronous twin.
macro_rules! area {
    ($area:ident: $($name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        #[doc = concat!("[`townsquare::", stringify!($area), "`](crate::", stringify!($area), ") with calls that wait.")]
        pub struct $area<'a>(pub(super) &'a crate::$area);

        impl $area<'_> {
            $(
                #[doc = concat!("See [`", stringify!($name), "`](crate::", stringify!($area), "::", stringify!($name), ").")]
                ///
                /// # Errors
                /// As there.
                pub fn $name(&self, $($argument: $type),*) -> Result<$output> {
                    wait(self.0.$name($($argument),*))
                }
            )*
        }
    };
}

mod auth;
mod tables;

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

pub use self::{
    auth::Auth,
    tables::{Communities, Fidgets, Spaces},
};
use crate::{
    clock::Clock,
    config::Config,
    database::blocking_caller,
    discovery::{DiscoveryStats, HttpResponse, MiniApps, Selection, Timeframe},
    error::Result,
};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future of this library on the calling thread.
pub fn wait<F: Future>(future: F) -> F::Output {
    let _blocking = blocking_caller::enter();
    let mut future = pin!(future);
    // Most calls are answered from memory: no waker is made for them.
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return output;
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// [`wait`], but with a look around every `every`: bindings check there whether their host wants to stop.
///
/// # Errors
/// What `tick` returned; the future is dropped then.
pub fn wait_while<F: Future, E>(
    future: F,
    every: Duration,
    mut tick: impl FnMut() -> Result<(), E>,
) -> Result<F::Output, E> {
    let _blocking = blocking_caller::enter();
    let mut future = pin!(future);
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return Ok(output);
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let clock = Clock::default();
    let mut next_tick = clock.moment().after(every);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Ok(output);
        }
        thread::park_timeout(next_tick.since(clock.moment()));
        if clock.moment() >= next_tick {
            tick()?;
            next_tick = clock.moment().after(every);
        }
    }
}

/// [`townsquare::Client`](crate::Client) with calls that wait.
///
/// ```no_run
/// use townsquare::{Config, Timeframe, blocking::Client};
///
/// let client = Client::open(Config::new().data_dir("town"))?;
/// let apps = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 20)?;
/// client.close();
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Client(crate::Client);

/// [`townsquare::Discovery`](crate::Discovery) with calls that wait.
pub struct Discovery<'a>(&'a crate::Discovery);

impl From<crate::Client> for Client {
    fn from(client: crate::Client) -> Client {
        Client(client)
    }
}

impl Client {
    /// See [`Client::open`](crate::Client::open).
    ///
    /// # Errors
    /// As there.
    pub fn open(config: Config) -> Result<Client> {
        wait(crate::Client::open(config)).map(Client)
    }

    /// See [`Client::shared`](crate::Client::shared).
    ///
    /// # Errors
    /// As there.
    pub fn shared() -> Result<Client> {
        wait(crate::Client::shared()).map(Client)
    }

    /// See [`Client::shared_with`](crate::Client::shared_with).
    ///
    /// # Errors
    /// As there.
    pub fn shared_with(config: Config) -> Result<Client> {
        wait(crate::Client::shared_with(config)).map(Client)
    }

    /// The asynchronous client under this one.
    pub fn inner(&self) -> &crate::Client {
        &self.0
    }

    /// The mini app directory.
    pub fn discovery(&self) -> Discovery<'_> {
        Discovery(self.0.discovery())
    }

    /// See [`Client::close`](crate::Client::close).
    pub fn close(&self) {
        wait(self.0.close());
    }
}

impl Discovery<'_> {
    /// See [`get_trending_mini_apps`](crate::Discovery::get_trending_mini_apps).
    ///
    /// # Errors
    /// As there.
    pub fn get_trending_mini_apps(&self, timeframe: Timeframe, selection: impl Into<Selection>) -> Result<MiniApps> {
        wait(self.0.get_trending_mini_apps(timeframe, selection))
    }

    /// See [`get_mini_apps_by_category`](crate::Discovery::get_mini_apps_by_category).
    ///
    /// # Errors
    /// As there.
    pub fn get_mini_apps_by_category<S: Into<String>>(
        &self,
        categories: impl IntoIterator<Item = S>,
        selection: impl Into<Selection>,
    ) -> Result<MiniApps> {
        wait(self.0.get_mini_apps_by_category(categories, selection))
    }

    /// See [`search_mini_apps`](crate::Discovery::search_mini_apps).
    ///
    /// # Errors
    /// As there.
    pub fn search_mini_apps(&self, query: &str, selection: impl Into<Selection>) -> Result<MiniApps> {
        wait(self.0.search_mini_apps(query, selection))
    }

    /// See [`refresh`](crate::Discovery::refresh).
    ///
    /// # Errors
    /// As there.
    pub fn refresh(&self) -> Result<DiscoveryStats> {
        wait(self.0.refresh())
    }

    /// See [`force_refresh`](crate::Discovery::force_refresh).
    ///
    /// # Errors
    /// As there.
    pub fn force_refresh(&self) -> Result<DiscoveryStats> {
        wait(self.0.force_refresh())
    }

    /// See [`stats`](crate::Discovery::stats).
    ///
    /// # Errors
    /// As there.
    pub fn stats(&self) -> Result<DiscoveryStats> {
        self.0.stats()
    }

    /// See [`handle`](crate::Discovery::handle).
    ///
    /// # Errors
    /// As there.
    pub fn handle(&self, method: &str, target: &str, body: &[u8]) -> Result<HttpResponse> {
        wait(self.0.handle(method, target, body))
    }
}
