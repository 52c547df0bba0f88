//! The figures of the change feed.

use townsquare::{Timestamp, realtime::RealtimeStats};

use crate::boundary::{Memory, Record, free};

/// The figures of the change feed. A record (manual, RECORDS); freed with `tsq_realtime_stats_free`.
#[repr(C)]
pub struct tsq_realtime_stats {
    /// The subscriptions, streams and live queries of this client.
    pub subscriptions: u64,
    /// The changes that the feed keeps for subscriptions since a cursor.
    pub retained: u64,
    /// Whether `oldest` has a value.
    pub has_oldest: bool,
    /// The time of the oldest of these changes, in microseconds; 0 without one.
    pub oldest: i64,
    /// How far the feed is behind the last commit, in seconds; on PostgreSQL also because a transaction stays open.
    pub lag_seconds: f64,
}

impl Record for tsq_realtime_stats {
    type Source = RealtimeStats;

    fn new(stats: &RealtimeStats, _: &mut Memory) -> tsq_realtime_stats {
        tsq_realtime_stats {
            subscriptions: stats.subscriptions,
            retained: stats.retained,
            has_oldest: stats.oldest.is_some(),
            oldest: stats.oldest.map_or(0, Timestamp::as_microsecond),
            lag_seconds: stats.lag_seconds,
        }
    }
}

/// Frees figures. Takes `stats`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_realtime_stats_free(stats: *mut tsq_realtime_stats) {
    // SAFETY: `stats` is NULL or owned by the caller, by the manual.
    unsafe { free(stats) }
}
