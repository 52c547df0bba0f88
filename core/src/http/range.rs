//! The part of a file that a request selects: `Range` and `If-Range` (RFC 9110, 14).
//!
//! Invariant: a `Range` that is malformed, of another unit, or of several parts is ignored, and the whole file is sent.

use std::ops::Range;

use ::http::{
    HeaderMap,
    header::{IF_RANGE, RANGE},
};

use super::{conditions::if_range_matches, headers::joined};
use crate::model::FileInfo;

/// The part of a file that a GET sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selected {
    /// The whole file: status 200.
    Whole,
    /// These bytes, of which there is at least one: status 206.
    Part(Range<u64>),
    /// The range starts beyond the file: status 416.
    Unsatisfiable,
}

/// The headers of a request that select a part of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct RangeRequest {
    range: Option<String>,
    if_range: Option<String>,
}

impl RangeRequest {
    pub(super) fn of(headers: &HeaderMap) -> RangeRequest {
        RangeRequest { range: joined(headers, RANGE), if_range: joined(headers, IF_RANGE) }
    }

    /// Returns the part that a GET of this file selects.
    pub(super) fn select(&self, file: &FileInfo) -> Selected {
        let Some(range) = &self.range else { return Selected::Whole };
        if self.if_range.as_ref().is_some_and(|value| !if_range_matches(value, &file.etag)) {
            return Selected::Whole;
        }
        let spec = range.trim().split_once('=').filter(|(unit, _)| unit.trim().eq_ignore_ascii_case("bytes"));
        spec.and_then(|(_, spec)| select(spec.trim(), file.size)).unwrap_or(Selected::Whole)
    }
}

/// `None` for anything but one well-formed range.
fn select(spec: &str, size: u64) -> Option<Selected> {
    let (first, last) = spec.split_once('-')?;
    let (first, last) = (number(first.trim_end())?, number(last.trim_start())?);
    match (first, last) {
        (None, None) => None,
        (None, Some(0)) => Some(Selected::Unsatisfiable),
        // A part of an empty file has no Content-Range.
        (None, Some(_)) if size == 0 => Some(Selected::Whole),
        (None, Some(length)) => Some(Selected::Part(size.saturating_sub(length)..size)),
        (Some(first), Some(last)) if last < first => None,
        (Some(first), _) if first >= size => Some(Selected::Unsatisfiable),
        (Some(first), last) => Some(Selected::Part(first..last.map_or(size, |last| last.saturating_add(1).min(size)))),
    }
}

/// Reads digits; `Some(None)` for no digits. A number beyond `u64` is the largest one.
fn number(digits: &str) -> Option<Option<u64>> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::headers::{file_info, header_map};

    fn select_range(headers: &[(&str, &str)], size: u64) -> Selected {
        RangeRequest::of(&header_map(headers)).select(&file_info(size))
    }

    fn selected(range: &str, size: u64) -> Selected {
        select_range(&[("Range", range)], size)
    }

    #[test]
    fn one_range_selects_a_part() {
        for (range, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=0-9", 0..10),
            ("bytes=2-", 2..10),
            ("bytes=9-", 9..10),
            ("bytes=0-99", 0..10),
            ("bytes=0-99999999999999999999999", 0..10),
            ("bytes=0-18446744073709551615", 0..10),
            ("bytes=-3", 7..10),
            ("bytes=-99", 0..10),
            ("Bytes = 1-2", 1..3),
        ] {
            assert_eq!(selected(range, 10), Selected::Part(expected), "{range}");
        }
    }

    #[test]
    fn a_range_beyond_the_file_is_unsatisfiable() {
        for range in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(selected(range, 10), Selected::Unsatisfiable, "{range}");
        }
        assert_eq!(selected("bytes=0-", 0), Selected::Unsatisfiable);
        assert_eq!(selected("bytes=0-0", 0), Selected::Unsatisfiable);
        assert_eq!(selected("bytes=-1", 0), Selected::Whole);
    }

    #[test]
    fn malformed_and_several_ranges_are_ignored() {
        for range in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=a-b",
            "bytes=+1-2",
            "lines=1-2",
            "bytes=1-2,4-5",
            "bytes=1 2-3",
            "bytes=1-2-3",
            "0-5",
        ] {
            assert_eq!(selected(range, 10), Selected::Whole, "{range}");
        }
        assert_eq!(select_range(&[], 10), Selected::Whole);
        assert_eq!(select_range(&[("range", "bytes=0-1"), ("range", "bytes=4-5")], 10), Selected::Whole);
    }

    #[test]
    fn a_part_of_another_version_is_not_sent() {
        let with = |if_range: &str| select_range(&[("range", "bytes=0-1"), ("if-range", if_range)], 10);
        assert_eq!(with("\"abc\""), Selected::Part(0..2));
        for if_range in ["\"old\"", "W/\"abc\"", "Mon, 15 Jan 2024 10:30:00 GMT"] {
            assert_eq!(with(if_range), Selected::Whole, "{if_range}");
        }
    }
}
