//! The fixture of the discovery tests: an upstream, a data folder and a manual clock for the clients on them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use townsquare::{Client, Config, Error, ErrorKind, config::ManualClock, discovery::MiniApp};

use crate::{
    catalog::Row,
    temp_dir,
    upstream::{KEY, Upstream},
};

/// The refresh interval of SPEC 8.
pub const FIFTEEN_MINUTES: Duration = Duration::from_secs(900);

/// An upstream, a folder and a clock; opens clients on them.
pub struct Fixture {
    /// Serves the catalog.
    pub upstream: Upstream,
    /// Contains `data`, the clients' folder.
    pub folder: TempDir,
    /// The clock of all clients of this fixture.
    pub clock: ManualClock,
}

impl Fixture {
    /// Starts an upstream with these rows.
    pub fn of(rows: impl IntoIterator<Item = Row>) -> Fixture {
        Fixture { upstream: Upstream::of(rows), folder: temp_dir(), clock: ManualClock::at(start_time()) }
    }

    /// Returns a configuration with this upstream, key, folder and clock.
    pub fn config(&self) -> Config {
        Config::new()
            .data_dir(self.folder.path().join("data"))
            .catalog_url(self.upstream.url())
            .catalog_api_key(KEY)
            .clock(self.clock.clock())
    }

    /// Returns [`Fixture::config`] with one try and ample time-outs, for tests of upstreams that answer with a failure.
    pub fn one_try(&self) -> Config {
        let ample = Duration::from_secs(60);
        self.config().catalog_timeout(ample).catalog_refresh_timeout(ample).catalog_tries(1)
    }

    /// Returns [`Fixture::one_try`] with short time-outs, for tests of upstreams that hang. A loaded machine fetches a page within
    /// them, too.
    pub fn short_timeouts(&self) -> Config {
        self.one_try().catalog_timeout(Duration::from_secs(2)).catalog_refresh_timeout(Duration::from_secs(4))
    }

    /// Opens a client with [`Fixture::config`].
    ///
    /// # Panics
    /// When it does not open.
    pub async fn open(&self) -> Client {
        self.open_with(self.config()).await
    }

    /// Opens a client with this configuration.
    ///
    /// # Panics
    /// When it does not open.
    pub async fn open_with(&self, config: Config) -> Client {
        Client::open(config).await.expect("a client opens on a valid configuration")
    }
}

/// Returns the time at which the tests' clocks start.
///
/// # Panics
/// Never, because the literal is a valid time.
pub fn start_time() -> Timestamp {
    "2026-01-02T03:04:05.678901Z".parse().expect("a literal time")
}

/// Returns a span of `hours` hours.
pub fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

/// Returns the ids of a list of apps, in its order.
pub fn ids(apps: &[MiniApp]) -> Vec<&str> {
    apps.iter().map(|app| app.id()).collect()
}

/// Returns the error of a call that must fail with this kind.
///
/// # Panics
/// When the call succeeded or failed with another kind.
#[track_caller]
pub fn assert_kind<T>(kind: ErrorKind, result: Result<T, Error>) -> Error {
    match result {
        Ok(_) => panic!("succeeded instead of failing with {kind:?}"),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{error:?}");
            error
        }
    }
}
