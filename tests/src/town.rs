//! A client with everything around it that a test wants to hold: upstream, folder, clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use townsquare::{Client, Config, Error, ErrorKind, ManualClock, MiniApp};

use crate::{
    catalog::Row,
    temp::TempFolder,
    upstream::{KEY, Upstream},
};

/// The interval of SPEC 8.
pub const FIFTEEN_MINUTES: Duration = Duration::from_secs(900);

/// An upstream, a folder and a clock; opens clients on them.
pub struct Town {
    /// Where the catalog comes from.
    pub upstream: Upstream,
    /// Holds `data`, the clients' folder.
    pub folder: TempFolder,
    /// The time of all clients of this town.
    pub hands: ManualClock,
}

impl Town {
    /// A town whose upstream serves these rows.
    pub fn of(rows: impl IntoIterator<Item = Row>) -> Town {
        Town { upstream: Upstream::of(rows), folder: TempFolder::new(), hands: ManualClock::at(morning()) }
    }

    /// Upstream, key, folder and clock; the rest are the library's defaults, but for times in which a test may end.
    pub fn config(&self) -> Config {
        Config::new()
            .data_dir(self.folder.join("data"))
            .catalog_url(self.upstream.url())
            .catalog_api_key(KEY)
            .clock(self.hands.clock())
    }

    /// Like [`Town::config`], and gives up soon: for tests of failing upstreams.
    pub fn impatient(&self) -> Config {
        let soon = Duration::from_millis(400);
        self.config().catalog_timeout(soon).catalog_refresh_timeout(Duration::from_millis(1500)).catalog_tries(1)
    }

    /// A client of [`Town::config`].
    ///
    /// # Panics
    /// When it does not open.
    pub async fn open(&self) -> Client {
        self.open_with(self.config()).await
    }

    /// A client of this configuration.
    ///
    /// # Panics
    /// When it does not open.
    pub async fn open_with(&self, config: Config) -> Client {
        Client::open(config).await.expect("a client opens on a good configuration")
    }
}

/// When the clocks of the tests start.
///
/// # Panics
/// Never: the literal is a time.
pub fn morning() -> Timestamp {
    "2026-01-02T03:04:05.678901Z".parse().expect("a literal time")
}

/// A span of the wall clock.
pub fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

/// The ids of a list of apps, in its order.
pub fn ids(apps: &[MiniApp]) -> Vec<&str> {
    apps.iter().map(|app| app.id()).collect()
}

/// The error of a call that must fail with this kind.
///
/// # Panics
/// When it succeeded or failed otherwise.
pub fn refused<T>(kind: ErrorKind, result: Result<T, Error>) -> Error {
    match result {
        Ok(_) => panic!("succeeded, where {kind:?} was due"),
        Err(error) => {
            assert_eq!(error.kind(), kind, "{error:?}");
            error
        }
    }
}
