//! Headers of requests and of responses with a file.
//!
//! Invariant: a browser that opens a served file runs nothing of it: the type is not guessed (`nosniff`), scripts have no
//! origin (`sandbox`), and only types that browsers show without running are shown in place.

use jiff::Timestamp;

use super::target::percent_encode;
use crate::model::FileInfo;

/// Who may cache a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone may read the file, so that shared caches may keep it.
    Public,
    /// Some may read the file, so that only the caller's own cache may keep it.
    Private,
}

/// Types that browsers show without running: the types of these groups without `xml` in the name, and these single types.
const SHOWN_GROUPS: [&str; 4] = ["audio/", "font/", "image/", "video/"];
const SHOWN_TYPES: [&str; 4] = ["application/json", "text/csv", "text/markdown", "text/plain"];

/// Returns the value of a header; several lines are joined by commas (RFC 9110, 5.3).
pub(super) fn header_lines(headers: &[(String, String)], name: &str) -> Option<String> {
    let lines = headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str());
    lines.map(str::to_owned).reduce(|all, line| format!("{all}, {line}"))
}

/// Returns the value of a header that a request has once: `None` without it, and `Err` if there are several.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Result<Option<&'a str>, ()> {
    let mut lines = headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
    match (lines.next(), lines.next()) {
        (first, None) => Ok(first.map(|(_, value)| value.trim())),
        (_, Some(_)) => Err(()),
    }
}

/// The value of the header `ETag`.
pub(crate) fn etag_header(etag: &str) -> String {
    format!("\"{etag}\"")
}

/// The headers of a response with a file, also of 304 and HEAD. Length and range are the caller's.
pub(crate) fn file_headers(info: &FileInfo, access: Access) -> Vec<(&'static str, String)> {
    let name = info.path.rsplit('/').next().unwrap_or_default();
    let cache = match access {
        Access::Public => "public",
        Access::Private => "private",
    };
    let mut headers = vec![
        ("content-type", info.content_type.clone()),
        ("etag", etag_header(&info.etag)),
        ("last-modified", http_date(info.updated_at)),
        ("cache-control", format!("{cache}, max-age={}", info.cache_control)),
        ("accept-ranges", "bytes".to_owned()),
        ("content-disposition", content_disposition(&info.content_type, name)),
        ("x-content-type-options", "nosniff".to_owned()),
        ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox".to_owned()),
    ];
    if access == Access::Private {
        headers.push(("vary", "authorization".to_owned()));
    }
    headers
}

/// A time as in `Last-Modified`, to the second.
fn http_date(time: Timestamp) -> String {
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time).unwrap_or_default()
}

/// `inline` for types that browsers show without running; `attachment` for all others: HTML, SVG, XML, scripts, unknown
/// types, and PDF, which browsers do not show in a sandbox. The name is written as in RFC 6266, 4.3.
fn content_disposition(content_type: &str, name: &str) -> String {
    let kind = if is_shown(content_type) { "inline" } else { "attachment" };
    let is_plain = |character: char| matches!(character, ' '..='~') && !matches!(character, '"' | '\\' | '%');
    if name.chars().all(is_plain) {
        return format!("{kind}; filename=\"{name}\"");
    }
    // Old clients read `filename`, the others `filename*`.
    let fallback: String = name.chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    let mut encoded = String::new();
    percent_encode(&mut encoded, name);
    format!("{kind}; filename=\"{fallback}\"; filename*=UTF-8''{encoded}")
}

fn is_shown(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let in_group = SHOWN_GROUPS.iter().any(|group| essence.starts_with(group));
    (in_group && !essence.contains("xml") && !essence.contains("svg")) || SHOWN_TYPES.contains(&essence.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_that_browsers_do_not_run_are_shown_in_place() {
        for shown in [
            "image/png",
            "IMAGE/JPEG",
            "image/webp",
            "audio/mpeg",
            "video/mp4",
            "font/woff2",
            "text/plain",
            "text/plain; charset=utf-8",
            "application/json",
            "text/csv",
        ] {
            assert_eq!(content_disposition(shown, "a"), "inline; filename=\"a\"", "{shown}");
        }
        for run in [
            "text/html",
            "TEXT/HTML; charset=utf-8",
            "application/xhtml+xml",
            "image/svg+xml",
            "image/svg",
            "text/xml",
            "application/xml",
            "text/javascript",
            "application/javascript",
            "application/pdf",
            "text/css",
            "application/octet-stream",
            "application/x-shockwave-flash",
            "multipart/related",
            "message/rfc822",
            "application/wasm",
            "image/anything+xml",
            "",
            "nonsense",
            "text/plain,text/html",
        ] {
            assert_eq!(content_disposition(run, "a"), "attachment; filename=\"a\"", "{run}");
        }
    }

    #[test]
    fn file_names_are_quoted_and_escaped() {
        let name = |name| content_disposition("image/png", name);
        assert_eq!(name("a b.png"), "inline; filename=\"a b.png\"");
        assert_eq!(name("caf\u{e9}.png"), "inline; filename=\"caf_.png\"; filename*=UTF-8''caf%C3%A9.png");
        assert_eq!(name("a\"; x=\"b"), "inline; filename=\"a_; x=_b\"; filename*=UTF-8''a%22%3B%20x%3D%22b");
        assert_eq!(name("50%20"), "inline; filename=\"50_20\"; filename*=UTF-8''50%2520");
        assert_eq!(name("it's (1)*"), "inline; filename=\"it's (1)*\"");
        assert_eq!(name("\u{1f3e0}'"), "inline; filename=\"_'\"; filename*=UTF-8''%F0%9F%8F%A0%27");
    }

    #[test]
    fn a_file_has_its_headers() {
        let info = FileInfo {
            bucket: "private".into(),
            path: "a/note.txt".into(),
            size: 3,
            content_type: "text/plain".into(),
            cache_control: 60,
            etag: "abc".into(),
            metadata: [].into(),
            owner_id: None,
            updated_at: "2024-01-15T10:30:00.7Z".parse().expect("a time"),
        };
        let headers = file_headers(&info, Access::Private);
        for (name, value) in [
            ("content-type", "text/plain"),
            ("etag", "\"abc\""),
            ("last-modified", "Mon, 15 Jan 2024 10:30:00 GMT"),
            ("cache-control", "private, max-age=60"),
            ("accept-ranges", "bytes"),
            ("content-disposition", "inline; filename=\"note.txt\""),
            ("x-content-type-options", "nosniff"),
            ("vary", "authorization"),
        ] {
            assert!(headers.contains(&(name, value.to_owned())), "{name}: {headers:?}");
        }
        let public = file_headers(&info, Access::Public);
        assert!(public.contains(&("cache-control", "public, max-age=60".to_owned())));
        assert!(public.iter().all(|(name, _)| *name != "vary"));
        let policy = public.iter().find(|(name, _)| *name == "content-security-policy").map(|(_, value)| value);
        assert!(policy.is_some_and(|policy| policy.contains("sandbox") && policy.contains("default-src 'none'")));
    }

    #[test]
    fn a_header_is_found_in_any_case_and_lines_are_joined() {
        let headers = [("If-Match", "\"a\""), ("IF-MATCH", "\"b\""), ("Range", " x ")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(header_lines(&headers, "if-match").as_deref(), Some("\"a\", \"b\""));
        assert_eq!(header_lines(&headers, "authorization"), None);
        assert_eq!((header(&headers, "range"), header(&headers, "x")), (Ok(Some("x")), Ok(None)));
        assert_eq!(header(&headers, "if-match"), Err(()));
    }
}
