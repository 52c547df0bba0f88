//! What was written or read on the primary, for later reads on a replica: they see all of it.
//!
//! Invariant: a call counts when it has ended, also if its caller dropped it. A place in the write-ahead log covers a call only if
//! the primary named it after the call had ended. A write whose outcome is unknown may be committed later than that.

use std::{fmt, str::FromStr};

use crate::{
    error::{Error, Result},
    threads::sync,
};

/// A place in the write-ahead log of a PostgreSQL cluster, as a host passes it between processes.
///
/// The text is `SYSTEM-TIMELINE-PLACE`, three numbers in hexadecimal: the identifier of the cluster, which a standby shares with its
/// primary; the timeline, of which a primary that takes over begins another one; and the bytes of log before the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogPlace {
    pub(in crate::database) system: u64,
    pub(in crate::database) timeline: u64,
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

    /// Has later reads see what was written before `place`. Of places in one cluster the later one counts: what is left of a timeline
    /// is before the places of the next.
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

/// The later of two places; `new`, if they are of two clusters.
pub(super) fn later(known: Option<LogPlace>, new: LogPlace) -> LogPlace {
    known.filter(|known| known.system == new.system && known.is_after(new)).unwrap_or(new)
}

impl LogPlace {
    /// Whether a place is after another one of its cluster: on a later timeline, or further on the same one.
    pub(super) fn is_after(self, other: LogPlace) -> bool {
        (self.timeline, self.place) > (other.timeline, other.place)
    }
}

impl Drop for DuringWrite<'_> {
    fn drop(&mut self) {
        self.0.0.lock().ended += 1;
    }
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}-{:x}", self.system, self.timeline, self.place)
    }
}

impl FromStr for LogPlace {
    type Err = Error;

    fn from_str(text: &str) -> Result<LogPlace> {
        let number = |text: &str| {
            let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_hex { u64::from_str_radix(text, 16).ok() } else { None }
        };
        let place = match text.split('-').map(number).collect::<Vec<_>>()[..] {
            [Some(system), Some(timeline), Some(place)] => Some(LogPlace { system, timeline, place }),
            _ => None,
        };
        place.ok_or_else(|| Error::invalid_input("The position is not one that read_position returned"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(place: u64) -> LogPlace {
        LogPlace { system: 1, timeline: 1, place }
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
    fn the_later_told_place_counts_and_a_place_of_another_cluster_replaces_it() {
        let written = Written::default();
        for (told, expected) in [(5, 5), (3, 5), (8, 8)] {
            written.read_after(place(told));
            assert_eq!(written.needed().places[1], Some(place(expected)));
        }
        for other in [LogPlace { timeline: 2, ..place(1) }, LogPlace { system: 2, ..place(1) }] {
            written.read_after(other);
            assert_eq!(written.needed().places[1], Some(other));
        }
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
        let place = LogPlace { system: u64::MAX, timeline: 2, place: 0x016b_3748 };
        assert_eq!(place.to_string().parse::<LogPlace>().expect("a place"), place);
        for text in [
            "",
            "-",
            "--",
            "1",
            "1-1",
            "1-1-",
            "-1-1",
            "1--1",
            "+1-1-1",
            "1-1-+1",
            "1-1-1-1",
            " 1-1-1",
            "g-1-1",
            "1-1-11111111111111111",
            "1-1-'; --",
            "1-é-1",
        ] {
            assert!(text.parse::<LogPlace>().is_err(), "{text:?}");
        }
    }
}
