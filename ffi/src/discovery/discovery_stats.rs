//! The state of the catalog at one moment.

use townsquare::{Timestamp, discovery::DiscoveryStats};

use crate::boundary::{Memory, Record, free, text, tsq_str};

/// The state of the catalog at the moment of the call. A record (manual, RECORDS); freed with
/// `tsq_discovery_stats_free`.
#[repr(C)]
pub struct tsq_discovery_stats {
    /// Number of apps in the catalog; 0 when none is loaded yet.
    pub total: usize,
    /// Rows that the last fetch received.
    pub received: usize,
    /// Received rows that were left out: malformed, or marked `noindex`.
    pub skipped: usize,
    /// Received rows that repeated an earlier one.
    pub duplicates: usize,
    /// Whether a catalog key is set; a catalog of the format `neynar` is empty without one, unless it is a file or `sample:`.
    pub has_api_key: bool,
    /// Origin of the catalog: `upstream`, `file`, `database` or `none`.
    pub source: tsq_str,
    /// Whether `fetched_at` has a value.
    pub has_fetched_at: bool,
    /// Time of the fetch, in microseconds; 0 without a catalog.
    pub fetched_at: i64,
    /// Whether the catalog is older than the refresh interval or its last refresh failed.
    pub is_stale: bool,
    /// Whether a refresh is running.
    pub is_refreshing: bool,
    /// Why the last refresh failed, of the catalog or of a further list; absent after a success.
    pub last_error: tsq_str,
    /// The further lists (`7d`, `networks=base`) that are older than the catalog or could not be fetched: an array.
    pub stale_lists: *const tsq_str,
    /// Number of stale lists.
    pub stale_lists_len: usize,
    /// Whether the source has more apps: the fetch ended at the option `catalog_max_pages`.
    pub truncated: bool,
}

impl Record for tsq_discovery_stats {
    type Source = DiscoveryStats;

    fn new(stats: &DiscoveryStats, memory: &mut Memory) -> tsq_discovery_stats {
        let stale_lists: Vec<_> = stats.stale_lists.iter().map(|list| text::view(list)).collect();
        tsq_discovery_stats {
            total: stats.total,
            received: stats.received,
            skipped: stats.skipped,
            duplicates: stats.duplicates,
            has_api_key: stats.has_api_key,
            source: text::view(stats.source.as_str()),
            has_fetched_at: stats.fetched_at.is_some(),
            fetched_at: stats.fetched_at.map_or(0, Timestamp::as_microsecond),
            is_stale: stats.is_stale,
            is_refreshing: stats.is_refreshing,
            last_error: text::optional_view(stats.last_error.as_deref()),
            stale_lists_len: stale_lists.len(),
            stale_lists: memory.array(stale_lists),
            truncated: stats.truncated,
        }
    }
}

/// Frees a state. Takes `stats`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_free(stats: *mut tsq_discovery_stats) {
    // SAFETY: `stats` is NULL or owned by the caller, by the manual.
    unsafe { free(stats) }
}
