//! A snapshot of PostgreSQL: which transactions had committed when it was taken, and which entries they had written.

use std::{fmt, str::FromStr};

/// The transactions that a snapshot sees, as `pg_current_snapshot()` tells them, and the last of their entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Every transaction before this one had ended.
    pub(crate) xmin: u64,
    /// This transaction and every later one had not begun.
    pub(crate) xmax: u64,
    /// The transactions from `xmin` to `xmax` that were running, in ascending order.
    pub(crate) running: Vec<u64>,
    /// No transaction that the snapshot sees has written an entry with a larger id.
    pub(crate) last_id: i64,
    /// Every entry up to this id was committed before the snapshot.
    pub(crate) settled: i64,
    /// A hash of the entries between `settled` and `last_id` that the snapshot sees. Another history has others.
    pub(crate) entries: String,
}

/// The most running transactions that a snapshot's text may name: many times the connections that a server can have.
const MAX_RUNNING: usize = 100_000;

impl Snapshot {
    /// Whether the transaction had ended when the snapshot was taken.
    pub(crate) fn sees(&self, transaction: u64) -> bool {
        transaction < self.xmin || (transaction < self.xmax && self.running.binary_search(&transaction).is_err())
    }

    /// The snapshot in PostgreSQL's form: `xmin:xmax:running,running`.
    pub(crate) fn transactions(&self) -> String {
        let running: Vec<_> = self.running.iter().map(u64::to_string).collect();
        format!("{}:{}:{}", self.xmin, self.xmax, running.join(","))
    }
}

impl fmt::Display for Snapshot {
    /// Writes PostgreSQL's form, the ids and the hash: `xmin:xmax:running,running@last_id@settled@entries`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}@{}@{}", self.transactions(), self.last_id, self.settled, self.entries)
    }
}

impl FromStr for Snapshot {
    type Err = ();

    fn from_str(text: &str) -> Result<Snapshot, ()> {
        let mut fields = text.splitn(4, '@');
        let mut field = || fields.next().ok_or(());
        let (text, last_id, settled, entries) = (field()?, field()?, field()?, field()?.to_owned());
        let id = |text: &str| text.parse::<i64>().ok().filter(|id| *id >= 0).ok_or(());
        let (last_id, settled) = (id(last_id)?, id(settled)?);
        let mut parts = text.splitn(3, ':');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok()).ok_or(());
        let (xmin, xmax) = (number()?, number()?);
        let list = parts.next().ok_or(())?;
        let running = match list {
            "" => Vec::new(),
            list => list.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>().map_err(drop)?,
        };
        let is_ascending = running.is_sorted_by(|one, other| one < other);
        if xmin > xmax || !is_ascending || running.len() > MAX_RUNNING {
            return Err(());
        }
        Ok(Snapshot { xmin, xmax, running, last_id, settled, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_sees_what_had_ended() {
        let snapshot: Snapshot = "10:20:10,14,15@7@5@ab".parse().expect("a snapshot");
        let seen: Vec<u64> = (8..22).filter(|transaction| snapshot.sees(*transaction)).collect();
        assert_eq!(seen, [8, 9, 11, 12, 13, 16, 17, 18, 19]);
        assert_eq!(snapshot.to_string(), "10:20:10,14,15@7@5@ab");
        assert_eq!("7:7:@0@0@".parse::<Snapshot>().expect("a snapshot").to_string(), "7:7:@0@0@");
    }

    #[test]
    fn other_texts_are_no_snapshots() {
        for text in ["", ":", "1", "1:2", "2:1:", "1:9:4,3", "1:9:x", "-1:2:", "1:2:3:4", "1:99999999999999999999:"] {
            assert_eq!(format!("{text}@1@1@").parse::<Snapshot>(), Err(()), "{text}");
        }
        for text in ["1:2:", "1:2:@1@1", "1:2:@-1@1@", "1:2:@x@1@", "1:2:@1@-1@", "1:2:@9223372036854775808@1@"] {
            assert_eq!(text.parse::<Snapshot>(), Err(()), "{text}");
        }
    }
}
