//! What was written or read on the primary, for later reads on a replica: they see all of it.
//!
//! Invariant: a call counts when it has ended, also if its caller dropped it. A place in the write-ahead log covers a call only if
//! the primary named it after the call had ended. A write whose outcome is unknown may be committed later than that.

use std::{fmt, str::FromStr};

#[cfg(feature = "postgres")]
use super::transaction::Effect;
use super::{Engine, Read, Scope, Statement, Value};
use crate::{
    error::{Error, Result},
    threads::sync,
};

/// A place in the write-ahead log of a PostgreSQL cluster, as a host passes it between processes.
///
/// The text is `SYSTEM-PLACE`, two numbers in hexadecimal: the identifier of the cluster, which a standby shares with its primary,
/// and the bytes of log before the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogPlace {
    pub(in crate::database) system: u64,
    pub(in crate::database) place: u64,
}

/// What the handles on a database have written, or what one of them has read on the primary and was told of.
#[derive(Default)]
pub(crate) struct Written(sync::Mutex<State>);

#[derive(Clone, Copy, Default)]
struct State {
    /// How many calls have ended.
    ended: u64,
    /// How many of them `place` covers.
    covered: u64,
    /// The place that the primary named last.
    own: Option<LogPlace>,
    /// The place of another handle, by `read_after`.
    told: Option<LogPlace>,
}

/// What a replica must have replayed before a read.
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite has no replicas"))]
pub(super) struct Needed {
    /// How many calls have ended, if no place covers all of them: the primary has to name one.
    pub(super) uncovered: Option<u64>,
    pub(super) places: [Option<LogPlace>; 2],
}

/// Counts a write when it is dropped.
pub(super) struct DuringWrite<'a>(&'a Written);

impl Written {
    /// Counts a write when the returned value is dropped.
    pub(super) fn during_write(&self) -> DuringWrite<'_> {
        DuringWrite(self)
    }

    /// Counts a read on the primary: the handle reads nothing older later.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite has no replicas"))]
    pub(super) fn note_read(&self) {
        drop(self.during_write());
    }

    /// Takes over what another handle was told, for a handle that is derived from it.
    pub(crate) fn follow(&self, other: &Written) {
        let told = other.0.lock().told;
        self.0.lock().told = told;
    }

    /// Has later reads see what was written before `place`. Of places in one cluster the later one counts.
    pub(crate) fn read_after(&self, place: LogPlace) {
        let mut state = self.0.lock();
        state.told = Some(later(state.told, place));
    }

    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite has no replicas"))]
    pub(super) fn needed(&self) -> Needed {
        let state = self.0.lock();
        let uncovered = (state.covered < state.ended).then_some(state.ended);
        Needed { uncovered, places: [state.own, state.told] }
    }

    /// Takes the place that the primary named when `ended` calls had ended.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite has no replicas"))]
    pub(super) fn cover(&self, ended: u64, place: LogPlace) {
        let mut state = self.0.lock();
        if ended > state.covered {
            // Not the later of both: a primary that was restored, or that took over, begins again at an earlier place.
            (state.covered, state.own) = (ended, Some(place));
        }
    }
}

impl Scope {
    /// Does what [`fetch_optional`](Scope::fetch_optional) does, on a server that accepts writes: a standby that answers while the primary
    /// is lost may not have the newest rows.
    ///
    /// # Errors
    /// `Unavailable` (25006) if no such server can be reached.
    pub(crate) async fn fetch_optional_on_primary<T>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Option<T>> {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(_) => self.fetch_optional(statement, values, read).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => {
                let principal = self.principal().await?;
                let rows = Box::pin(postgres.execute(&principal, statement, values, read, Effect::ReadsLog)).await?;
                Ok(rows.into_iter().next_back())
            }
        }
    }
}

/// The later of two places; `new`, if they are of two clusters.
pub(super) fn later(known: Option<LogPlace>, new: LogPlace) -> LogPlace {
    known.filter(|known| known.system == new.system && known.place > new.place).unwrap_or(new)
}

impl Drop for DuringWrite<'_> {
    fn drop(&mut self) {
        self.0.0.lock().ended += 1;
    }
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.system, self.place)
    }
}

impl FromStr for LogPlace {
    type Err = Error;

    fn from_str(text: &str) -> Result<LogPlace> {
        let number = |text: &str| {
            let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_hex { u64::from_str_radix(text, 16).ok() } else { None }
        };
        let place = text
            .split_once('-')
            .and_then(|(system, place)| Some(LogPlace { system: number(system)?, place: number(place)? }));
        place.ok_or_else(|| Error::invalid_input("The position is not one that read_position returned"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(place: u64) -> LogPlace {
        LogPlace { system: 1, place }
    }

    #[test]
    fn a_write_is_uncovered_until_a_place_was_named_after_its_end() {
        let written = Written::default();
        assert!(written.needed().uncovered.is_none());
        let first = written.during_write();
        assert!(written.needed().uncovered.is_none(), "the write has not ended");
        drop(first);
        let ended = written.needed().uncovered.expect("a write");
        drop(written.during_write());
        written.cover(ended, place(7));
        assert_eq!(written.needed().uncovered, Some(2), "the second write ended after the place was asked for");
        written.cover(2, place(9));
        written.cover(1, place(7));
        assert_eq!((written.needed().uncovered, written.needed().places), (None, [Some(place(9)), None]));
    }

    #[test]
    fn of_told_places_the_later_counts_and_that_of_another_cluster() {
        let written = Written::default();
        for (told, expected) in [(5, 5), (3, 5), (8, 8)] {
            written.read_after(place(told));
            assert_eq!(written.needed().places[1], Some(place(expected)));
        }
        let other = LogPlace { system: 2, place: 1 };
        written.read_after(other);
        assert_eq!(written.needed().places[1], Some(other));
    }

    #[test]
    fn a_derived_handle_is_told_what_its_parent_was_told() {
        let (written, derived) = (Written::default(), Written::default());
        drop(written.during_write());
        written.read_after(place(4));
        derived.follow(&written);
        assert_eq!((derived.needed().uncovered, derived.needed().places), (None, [None, Some(place(4))]));
    }

    #[test]
    fn the_text_of_a_place_is_read_again_and_other_texts_are_refused() {
        let place = LogPlace { system: u64::MAX, place: 0x016b_3748 };
        assert_eq!(place.to_string().parse::<LogPlace>().expect("a place"), place);
        for text in
            ["", "-", "1", "1-", "-1", "+1-1", "1-+1", "1-1-1", " 1-1", "g-1", "1-11111111111111111", "1-'; --", "é-1"]
        {
            assert!(text.parse::<LogPlace>().is_err(), "{text:?}");
        }
    }
}
