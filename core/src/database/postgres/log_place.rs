//! Where a server is in the write-ahead log.
//!
//! Invariant: a standby counts as far as a place only on the place's own timeline. After a failover, a standby of the lost history may
//! have more bytes of log than the new primary.

use sqlx::{Executor as _, PgConnection, Row as _};

use super::errors::{internal, translate};
use crate::{database::written::LogPlace, error::Result};

/// Where the primary is: its cluster, the timeline of its log, and the place up to which the log is on its disk.
pub(super) const PRIMARY_PLACE: &str = "SELECT system_identifier::text,
        ('x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_flush_lsn()), 8))::bit(32)::bigint::text,
        pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_flush_lsn(), '0/0')::bigint::text
    FROM pg_catalog.pg_control_system()";

/// What a standby has replayed, in the same columns. The timeline is that of its last restart point: after a failover it is late, so the
/// standby is not used for a while. After them the start of the server process. No row for a server that was promoted, and has a log of
/// its own.
const REPLAYED: &str = "SELECT system_identifier::text,
        GREATEST(checkpoint.timeline_id, recovery.min_recovery_end_timeline)::text,
        pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_replay_lsn(), '0/0')::bigint::text,
        EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time())::text
    FROM pg_catalog.pg_control_system(), pg_catalog.pg_control_checkpoint() AS checkpoint,
        pg_catalog.pg_control_recovery() AS recovery
    WHERE pg_catalog.pg_is_in_recovery()";

impl LogPlace {
    /// Reads the columns of [`PRIMARY_PLACE`].
    pub(super) fn of([system, timeline, place]: [String; 3]) -> Result<LogPlace> {
        let number = |text: String| text.parse().map_err(|_| internal("the server sent a place of another form"));
        Ok(LogPlace { system: number(system)?, timeline: number(timeline)?, place: number(place)? })
    }

    /// Whether a standby that has replayed this place has replayed `other`, too.
    pub(in crate::database) fn covers(self, other: LogPlace) -> bool {
        self.is_of_log(other) && self.place >= other.place
    }

    /// Whether the two places are on one timeline of one cluster.
    pub(super) fn is_of_log(self, other: LogPlace) -> bool {
        (self.system, self.timeline) == (other.system, other.timeline)
    }
}

/// How far a standby is.
pub(super) struct Replayed {
    pub(super) place: LogPlace,
    /// The server process, as long as it runs.
    pub(super) server: String,
}

/// Reads where the primary is. `None` if there is no row.
pub(super) async fn read_primary(connection: &mut PgConnection) -> Result<Option<LogPlace>> {
    let Some([system, timeline, place]) = read(connection, PRIMARY_PLACE).await? else { return Ok(None) };
    LogPlace::of([system, timeline, place]).map(Some)
}

/// Reads how far a standby is. `None` for a server that is none.
pub(super) async fn read_replayed(connection: &mut PgConnection) -> Result<Option<Replayed>> {
    let Some([system, timeline, place, server]) = read(connection, REPLAYED).await? else { return Ok(None) };
    Ok(Some(Replayed { place: LogPlace::of([system, timeline, place])?, server }))
}

async fn read<const COLUMNS: usize>(
    connection: &mut PgConnection,
    sql: &'static str,
) -> Result<Option<[String; COLUMNS]>> {
    // The simple protocol, because a prepared statement would stay on a server process that a pooler shares.
    let row = connection.fetch_optional(sqlx::raw_sql(sql)).await.map_err(translate)?;
    let Some(row) = row else { return Ok(None) };
    let mut columns = [const { String::new() }; COLUMNS];
    for (number, column) in columns.iter_mut().enumerate() {
        *column = row.try_get(number).map_err(translate)?;
    }
    Ok(Some(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_covers_earlier_ones_of_its_timeline_alone() {
        let other = |timeline, place| LogPlace { system: 1, timeline, place };
        assert!(other(2, 5).covers(other(2, 5)) && other(2, 6).covers(other(2, 5)));
        for (replayed, needed) in [(other(2, 4), other(2, 5)), (other(1, 9), other(2, 5)), (other(2, 9), other(1, 5))] {
            assert!(!replayed.covers(needed), "{replayed:?} {needed:?}");
        }
    }
}
