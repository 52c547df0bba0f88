//! Conditional requests: `If-Match`, `If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since` (RFC 9110, 13).
//!
//! Invariant: a request with a malformed `If-Match` or `If-None-Match` is refused, so that a write never ignores its
//! condition. A malformed date is ignored, as the RFC says.

use std::time::{Duration, UNIX_EPOCH};

use ::http::{
    HeaderMap, HeaderName,
    header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE},
};

use super::headers::joined;
use crate::{
    error::{Error, Result},
    model::FileInfo,
};

/// The conditions of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Conditions {
    if_match: Option<Tags>,
    if_none_match: Option<Tags>,
    /// In seconds since 1970.
    if_modified_since: Option<i64>,
    if_unmodified_since: Option<i64>,
}

/// What a request with conditions does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The request is carried out.
    Proceed,
    /// The client has this version: status 304.
    NotModified,
    /// A condition is false: status 412.
    Failed,
}

/// A list of entity tags.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Tags {
    /// `*`: any version.
    Any,
    List(Vec<Tag>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Tag {
    is_weak: bool,
    opaque: String,
}

impl Conditions {
    /// Reads the conditions of a request.
    ///
    /// # Errors
    /// `InvalidInput` with status 400 for an `If-Match` or `If-None-Match` that is neither `*` nor a list of entity tags.
    pub(super) fn parse(headers: &HeaderMap) -> Result<Conditions> {
        let malformed = || Error::file(400, "If-Match or If-None-Match is neither * nor a list of quoted entity tags");
        let tags =
            |name: HeaderName| joined(headers, name).map(|value| Tags::parse(&value).ok_or_else(malformed)).transpose();
        let date = |name: HeaderName| joined(headers, name).and_then(|value| http_date(&value));
        Ok(Conditions {
            if_match: tags(IF_MATCH)?,
            if_none_match: tags(IF_NONE_MATCH)?,
            if_modified_since: date(IF_MODIFIED_SINCE),
            if_unmodified_since: date(IF_UNMODIFIED_SINCE),
        })
    }

    /// Returns true if the request has no condition that a write must look at.
    pub(super) fn is_empty(&self) -> bool {
        self.if_match.is_none() && self.if_none_match.is_none() && self.if_unmodified_since.is_none()
    }

    /// Decides a GET or HEAD of a stored file, in the order of RFC 9110, 13.2.2.
    pub(super) fn of_read(&self, stored: &FileInfo) -> Outcome {
        if self.precondition_fails(Some(stored)) {
            return Outcome::Failed;
        }
        let is_current = match &self.if_none_match {
            Some(tags) => tags.weakly_match(&stored.etag),
            None => self.if_modified_since.is_some_and(|since| stored.updated_at.as_second() <= since),
        };
        if is_current { Outcome::NotModified } else { Outcome::Proceed }
    }

    /// Decides a PUT or DELETE. `stored` is the file at the path, if there is one.
    pub(super) fn of_write(&self, stored: Option<&FileInfo>) -> Outcome {
        let exists_already = match (&self.if_none_match, stored) {
            (Some(tags), Some(stored)) => tags.weakly_match(&stored.etag),
            _ => false,
        };
        if exists_already || self.precondition_fails(stored) { Outcome::Failed } else { Outcome::Proceed }
    }

    fn precondition_fails(&self, stored: Option<&FileInfo>) -> bool {
        match (&self.if_match, self.if_unmodified_since) {
            (Some(tags), _) => !stored.is_some_and(|stored| tags.strongly_match(&stored.etag)),
            (None, Some(since)) => stored.is_none_or(|stored| stored.updated_at.as_second() > since),
            (None, None) => false,
        }
    }
}

impl Tags {
    fn parse(value: &str) -> Option<Tags> {
        if value.trim() == "*" {
            return Some(Tags::Any);
        }
        let mut tags = Vec::new();
        let mut rest = value.trim();
        while !rest.is_empty() {
            let (tag, after) = Tag::parse(rest)?;
            tags.push(tag);
            rest = after.trim_start();
            match rest.strip_prefix(',') {
                Some(next) => rest = next.trim_start_matches([',', ' ', '\t']),
                None if rest.is_empty() => {}
                None => return None,
            }
        }
        (!tags.is_empty()).then_some(Tags::List(tags))
    }

    /// Strong comparison: weak tags match nothing. The etags of this library are strong.
    fn strongly_match(&self, etag: &str) -> bool {
        match self {
            Tags::Any => true,
            Tags::List(tags) => tags.iter().any(|tag| !tag.is_weak && tag.opaque == etag),
        }
    }

    fn weakly_match(&self, etag: &str) -> bool {
        match self {
            Tags::Any => true,
            Tags::List(tags) => tags.iter().any(|tag| tag.opaque == etag),
        }
    }
}

impl Tag {
    /// Reads a tag at the start of a text; returns the tag and the rest.
    fn parse(text: &str) -> Option<(Tag, &str)> {
        let (is_weak, quoted) = text.strip_prefix("W/").map_or((false, text), |quoted| (true, quoted));
        let (opaque, rest) = quoted.strip_prefix('"')?.split_once('"')?;
        let is_opaque = opaque.chars().all(|character| character > ' ' && character != '\u{7f}');
        is_opaque.then(|| (Tag { is_weak, opaque: opaque.to_owned() }, rest))
    }
}

/// Returns true if `If-None-Match` names this etag. A malformed header names none.
pub(super) fn if_none_match(headers: &HeaderMap, etag: &str) -> bool {
    let tags = joined(headers, IF_NONE_MATCH).and_then(|value| Tags::parse(&value));
    tags.is_some_and(|tags| tags.weakly_match(etag))
}

/// Returns true if `If-Range` lets a range request be answered with a part.
///
/// Only the current etag does. A date has a precision of one second, in which a file may change twice, so it never does,
/// and the whole file is sent.
pub(super) fn if_range_matches(value: &str, etag: &str) -> bool {
    Tag::parse(value.trim()).is_some_and(|(tag, rest)| rest.is_empty() && !tag.is_weak && tag.opaque == etag)
}

fn http_date(value: &str) -> Option<i64> {
    let time = httpdate::parse_http_date(value.trim()).ok()?;
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::headers::{file_info, header_map};

    fn conditions(headers: &[(&str, &str)]) -> Conditions {
        Conditions::parse(&header_map(headers)).expect("well-formed")
    }

    #[test]
    fn reads_are_decided_in_the_order_of_rfc_9110() {
        let (before, at, after) =
            ("Mon, 15 Jan 2024 10:29:59 GMT", "Mon, 15 Jan 2024 10:30:00 GMT", "Mon, 15 Jan 2024 10:30:01 GMT");
        for (headers, expected) in [
            (vec![], Outcome::Proceed),
            (vec![("If-None-Match", "\"abc\"")], Outcome::NotModified),
            (vec![("if-none-match", "W/\"abc\"")], Outcome::NotModified),
            (vec![("if-none-match", "\"x\", W/\"y\" ,,\"abc\"")], Outcome::NotModified),
            (vec![("if-none-match", "\"x\""), ("if-none-match", "\"abc\"")], Outcome::NotModified),
            (vec![("if-none-match", "*")], Outcome::NotModified),
            (vec![("if-none-match", "\"ABC\"")], Outcome::Proceed),
            (vec![("if-none-match", "\"a,b\", \"c\"")], Outcome::Proceed),
            (vec![("if-match", "\"abc\"")], Outcome::Proceed),
            (vec![("if-match", "*")], Outcome::Proceed),
            (vec![("if-match", "\"x\", \"abc\"")], Outcome::Proceed),
            (vec![("if-match", "\"x\"")], Outcome::Failed),
            (vec![("if-match", "W/\"abc\"")], Outcome::Failed),
            (vec![("if-match", "\"x\""), ("if-none-match", "\"abc\"")], Outcome::Failed),
            (vec![("if-modified-since", at)], Outcome::NotModified),
            (vec![("if-modified-since", after)], Outcome::NotModified),
            (vec![("if-modified-since", before)], Outcome::Proceed),
            (vec![("if-modified-since", "yesterday")], Outcome::Proceed),
            (vec![("if-none-match", "\"x\""), ("if-modified-since", after)], Outcome::Proceed),
            (vec![("if-unmodified-since", at)], Outcome::Proceed),
            (vec![("if-unmodified-since", before)], Outcome::Failed),
            (vec![("if-match", "\"abc\""), ("if-unmodified-since", before)], Outcome::Proceed),
        ] {
            assert_eq!(conditions(&headers).of_read(&file_info(3)), expected, "{headers:?}");
        }
    }

    #[test]
    fn writes_proceed_only_if_their_conditions_hold() {
        let one = |name, value| conditions(&[(name, value)]);
        for (conditions, on_stored, on_none) in [
            (Conditions::default(), Outcome::Proceed, Outcome::Proceed),
            (one("if-match", "\"abc\""), Outcome::Proceed, Outcome::Failed),
            (one("if-match", "W/\"abc\""), Outcome::Failed, Outcome::Failed),
            (one("if-match", "\"x\""), Outcome::Failed, Outcome::Failed),
            (one("if-match", "*"), Outcome::Proceed, Outcome::Failed),
            (one("if-none-match", "*"), Outcome::Failed, Outcome::Proceed),
            (one("if-none-match", "\"abc\""), Outcome::Failed, Outcome::Proceed),
            (one("if-none-match", "\"x\""), Outcome::Proceed, Outcome::Proceed),
            (one("if-unmodified-since", "Mon, 15 Jan 2024 10:29:59 GMT"), Outcome::Failed, Outcome::Failed),
        ] {
            assert_eq!(conditions.of_write(Some(&file_info(3))), on_stored, "{conditions:?}");
            assert_eq!(conditions.of_write(None), on_none, "{conditions:?}");
        }
        assert!(Conditions::default().is_empty() && !one("if-match", "*").is_empty());
        assert!(one("if-modified-since", "Mon, 15 Jan 2024 10:29:59 GMT").is_empty(), "for reads only");
    }

    #[test]
    fn malformed_tags_are_refused() {
        for value in ["", "abc", "\"abc", "abc\"", "\"a\" \"b\"", "*, \"a\"", "w/\"a\"", "W/ \"a\"", "\"a b\"", ","] {
            for name in ["if-match", "if-none-match"] {
                let error = Conditions::parse(&header_map(&[(name, value)])).expect_err(value);
                assert_eq!(error.status(), 400, "{value}");
            }
            assert!(!if_none_match(&header_map(&[("if-none-match", value)]), "a"), "{value}");
        }
    }

    #[test]
    fn if_range_matches_the_current_etag_alone() {
        assert!(if_range_matches("\"abc\"", "abc"));
        for value in ["\"x\"", "W/\"abc\"", "abc", "Mon, 15 Jan 2024 10:30:00 GMT", "\"abc\", \"x\"", ""] {
            assert!(!if_range_matches(value, "abc"), "{value}");
        }
    }
}
