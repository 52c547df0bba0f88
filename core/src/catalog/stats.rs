//! The state of the catalog as `Discovery::stats` reports it.

use jiff::Timestamp;

/// The source of the catalog in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CatalogSource {
    /// The upstream API.
    Upstream,
    /// A `file:` catalog.
    File,
    /// The database: another process stored it, or the upstream failed and this is the last stored one.
    Database,
    /// There is no catalog.
    None,
}

impl CatalogSource {
    /// `upstream`, `file`, `database` or `none`.
    ///
    /// ```
    /// use townsquare::discovery::CatalogSource;
    ///
    /// assert_eq!(CatalogSource::Database.as_str(), "database");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            CatalogSource::Upstream => "upstream",
            CatalogSource::File => "file",
            CatalogSource::Database => "database",
            CatalogSource::None => "none",
        }
    }
}

/// The state of the catalog: its size, its age, and the last error.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DiscoveryStats {
    /// Number of apps.
    pub total: usize,
    /// Number of rows received from the source.
    pub received: usize,
    /// Number of received rows that were left out: malformed, or marked `noindex`.
    pub skipped: usize,
    /// Number of received rows that repeat an earlier row.
    pub duplicates: usize,
    /// Whether an upstream key is configured.
    pub has_api_key: bool,
    /// The source of the catalog.
    pub source: CatalogSource,
    /// When the catalog was fetched.
    pub fetched_at: Option<Timestamp>,
    /// True if the catalog is older than the refresh interval, or its last refresh failed.
    pub is_stale: bool,
    /// Whether a refresh is running.
    pub is_refreshing: bool,
    /// Why the last refresh failed, of the catalog or of a further list; `None` after a success.
    pub last_error: Option<String>,
    /// The further lists (`7d`, `networks=base`) that are older than the catalog or could not be fetched.
    pub stale_lists: Vec<String>,
    /// Whether the source has more apps: the fetch ended at the option `catalog_max_pages`.
    pub truncated: bool,
}
