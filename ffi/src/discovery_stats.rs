//! The state of the catalog.
//!
//! Invariant: a snapshot of the moment it was asked for; it does not follow the catalog.

use townsquare::{DiscoveryStats, Timestamp};

use crate::{
    boundary::{free, read, read_optional},
    handle::Handle,
    text::{self, tsq_str},
};

/// What the catalog holds, how old it is, and why it is no newer. Owned, ended with `tsq_discovery_stats_free`.
pub struct tsq_discovery_stats {
    _opaque: [u8; 0],
}

impl Handle for tsq_discovery_stats {
    type Value = DiscoveryStats;
}

/// Apps of the catalog.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_total(stats: *const tsq_discovery_stats) -> usize {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read(stats, |stats| stats.total) }
}

/// Rows received when it was fetched.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_received(stats: *const tsq_discovery_stats) -> usize {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read(stats, |stats| stats.received) }
}

/// Rows of those left out: malformed, or marked `noindex`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_skipped(stats: *const tsq_discovery_stats) -> usize {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read(stats, |stats| stats.skipped) }
}

/// Rows of those that repeated an earlier one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_duplicates(stats: *const tsq_discovery_stats) -> usize {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read(stats, |stats| stats.duplicates) }
}

/// Whether a catalog key is set; without one, discovery is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_has_api_key(stats: *const tsq_discovery_stats) -> bool {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read(stats, |stats| stats.has_api_key) }
}

/// Where the catalog came from: `upstream`, `file`, `database` or `none`.
///
/// Returns a view that lives for ever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_source(stats: *const tsq_discovery_stats) -> tsq_str {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read(stats, |stats| text::view(stats.source.as_str())) }
}

/// When the catalog was fetched, in microseconds since 1970-01-01T00:00:00Z: true and written to `out`, or false and
/// `out` 0 when there is none. `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_fetched_at(stats: *const tsq_discovery_stats, out: *mut i64) -> bool {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read_optional(stats, out, |stats| stats.fetched_at.map(Timestamp::as_microsecond)) }
}

/// Older than the refresh interval, or the last attempt to renew it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_is_stale(stats: *const tsq_discovery_stats) -> bool {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read(stats, |stats| stats.is_stale) }
}

/// Whether a refresh is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_is_refreshing(stats: *const tsq_discovery_stats) -> bool {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read(stats, |stats| stats.is_refreshing) }
}

/// Why the last refresh failed; absent once one succeeds.
///
/// Returns a view that lives as long as `stats`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_last_error(stats: *const tsq_discovery_stats) -> tsq_str {
    // SAFETY: `stats` is NULL or live, by the manual.
    unsafe { read(stats, |stats| text::optional_view(stats.last_error.as_deref())) }
}

/// Ends a snapshot. Takes `stats`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_stats_free(stats: *mut tsq_discovery_stats) {
    // SAFETY: `stats` is NULL or owned by the caller, by the manual.
    unsafe { free(stats) }
}
