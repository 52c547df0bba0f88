//! The check of the replication of a PostgreSQL primary: its standbys and its replication slots.
//!
//! Invariant: what the role may not see is no finding. A role without the rights of `pg_monitor` sees how many standbys are
//! connected, but not their state. Every role sees the slots.

use sqlx::PgConnection;

use super::super::query::tuples;
use crate::{
    error::Result,
    model::{FindingCode, Findings},
};

/// The synchronous standbys that a commit waits for, whether commits of this session wait, and the standbys: all, those with a state
/// that the role may not see, the synchronous ones, and the ones that are behind. A standby that is behind by more than `max_wal_size`
/// may need write-ahead log that the server has removed, or keeps it on the server's disk.
const STANDBYS: &str = "SELECT pg_catalog.current_setting('synchronous_standby_names'),
        pg_catalog.current_setting('synchronous_commit') NOT IN ('off', 'local'),
        count(*), count(*) FILTER (WHERE state IS NULL),
        count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
        count(*) FILTER (WHERE replay_lag > INTERVAL '1 minute'),
        count(*) FILTER (WHERE pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), replay_lsn)
            > pg_catalog.pg_size_bytes(pg_catalog.current_setting('max_wal_size')))
    FROM pg_catalog.pg_stat_replication";

/// The slots that keep more write-ahead log than `max_wal_size` while nobody reads them, and those that have lost what their reader
/// needs or are about to lose it: name, state, and the bytes that they keep.
const SLOTS: &str = "SELECT slot_name::text, wal_status,
        COALESCE(pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), restart_lsn), 0)::bigint
    FROM pg_catalog.pg_replication_slots
    WHERE NOT temporary AND (wal_status IN ('unreserved', 'lost') OR (wal_status = 'extended' AND NOT active))
    ORDER BY slot_name";

/// Adds what is wrong with the replication of a server that is not in recovery.
pub(super) async fn inspect(connection: &mut PgConnection, findings: &mut Findings) -> Result<()> {
    type Standbys = (String, bool, i64, i64, i64, i64, i64);
    let rows: Vec<Standbys> = tuples(connection, STANDBYS, &[]).await?;
    if let Some((names, waits, connected, hidden, synchronous, late, behind)) = rows.into_iter().next() {
        // A standby with a hidden state may be synchronous.
        let most = synchronous + hidden;
        let wanted = wanted(&names);
        if waits && most < wanted {
            findings.add(
                FindingCode::StandbyMissing,
                format!(
                    "A commit waits for {wanted} synchronous standbys, and {most} of the {connected} connected ones can be."
                ),
            );
        }
        if late > 0 {
            let message = format!("{late} standbys of the server are more than a minute behind.");
            findings.add(FindingCode::ReplicaBehind, message);
        }
        if behind > 0 {
            let message = format!("{behind} standbys of the server are more than max_wal_size behind.");
            findings.add(FindingCode::ReplicaBehind, message);
        }
    }
    for (name, state, bytes) in tuples::<(String, String, i64)>(connection, SLOTS, &[]).await? {
        let megabytes = bytes >> 20;
        let (code, message) = match &*state {
            "lost" => (
                FindingCode::SlotLost,
                format!("The server has removed write-ahead log that the reader of the replication slot {name} needs."),
            ),
            "unreserved" => (
                FindingCode::SlotLost,
                format!(
                    "The server will soon remove write-ahead log that the reader of the replication slot {name} needs."
                ),
            ),
            _ => (
                FindingCode::SlotUnread,
                format!("Nobody reads the replication slot {name}, and it keeps {megabytes} MiB of write-ahead log."),
            ),
        };
        findings.add(code, message);
    }
    Ok(())
}

/// The number of standbys that a commit waits for: `FIRST 2 (a, b, c)`, `ANY 2 (a, b, c)`, `2 (a, b, c)`, or a list for one.
fn wanted(names: &str) -> i64 {
    let names = names.trim();
    if names.is_empty() {
        return 0;
    }
    let Some((before, _)) = names.split_once('(') else { return 1 };
    before.split_whitespace().last().and_then(|number| number.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_says_how_many_standbys_a_commit_waits_for() {
        for (names, count) in [
            ("", 0),
            ("  ", 0),
            ("*", 1),
            ("a", 1),
            ("a, b", 1),
            ("\"2\", b", 1),
            ("2 (a, b)", 2),
            ("2(a, b)", 2),
            ("FIRST 2 (a, b, c)", 2),
            ("any 3 (*)", 3),
            ("first", 1),
        ] {
            assert_eq!(wanted(names), count, "{names}");
        }
    }
}
