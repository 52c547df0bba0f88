//! The headers of responses with a file.
//!
//! Invariant: a browser that opens a served file runs nothing of it: the type is not guessed (`nosniff`), scripts have no
//! origin (`sandbox`), and only types that browsers show without running are shown in place.

use ::http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use percent_encoding::utf8_percent_encode;

use crate::{
    http::response::set,
    model::FileInfo,
    storage::{ESCAPED, media_type},
};

/// Who may cache a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everyone may read the file, so that shared caches may keep it.
    Public,
    /// Some may read the file, so that only the caller's own cache may keep it.
    Private,
}

/// The policy of a page that is a served file.
const SANDBOX: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// Types that browsers show without running: the types of these groups without `xml` in the name, and these single types.
const SHOWN_GROUPS: [&str; 4] = ["audio/", "font/", "image/", "video/"];
const SHOWN_TYPES: [&str; 4] = ["application/json", "text/csv", "text/markdown", "text/plain"];

/// The headers of a response with a file, also of 304 and HEAD. The range is the caller's.
pub(super) fn file_headers(info: &FileInfo, access: Access) -> HeaderMap {
    let name = info.path.rsplit('/').next().unwrap_or_default();
    let cache = match access {
        Access::Public => "public",
        Access::Private => "private",
    };
    let mut headers = HeaderMap::new();
    set(&mut headers, header::CONTENT_TYPE, &info.content_type);
    set(&mut headers, header::ETAG, format!("\"{}\"", info.etag));
    set(&mut headers, header::LAST_MODIFIED, http_date(info.updated_at));
    set(&mut headers, header::CACHE_CONTROL, format!("{cache}, max-age={}", info.cache_control));
    set(&mut headers, header::CONTENT_DISPOSITION, content_disposition(&info.content_type, name));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    if access == Access::Private {
        headers.insert(header::VARY, HeaderValue::from_static("authorization"));
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
    let encoded = utf8_percent_encode(name, ESCAPED);
    format!("{kind}; filename=\"{fallback}\"; filename*=UTF-8''{encoded}")
}

fn is_shown(content_type: &str) -> bool {
    // A row of an earlier version or of the host may have another text.
    let Some(media_type) = media_type(content_type) else { return false };
    let essence = media_type.essence_str();
    let in_group = SHOWN_GROUPS.iter().any(|group| essence.starts_with(group));
    (in_group && !essence.contains("xml") && !essence.contains("svg")) || SHOWN_TYPES.contains(&essence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::headers::file_info;

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
            "image/png;x,text/html",
            "image/png; x=y,text/html",
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
        let info = file_info(3);
        let headers = file_headers(&info, Access::Private);
        for (name, value) in [
            ("content-type", "text/plain"),
            ("etag", "\"abc\""),
            ("last-modified", "Mon, 15 Jan 2024 10:30:00 GMT"),
            ("cache-control", "private, max-age=60"),
            ("accept-ranges", "bytes"),
            ("content-disposition", "inline; filename=\"note.txt\""),
            ("vary", "authorization"),
            ("content-security-policy", SANDBOX),
        ] {
            assert_eq!(headers[name], value, "{name}");
        }
        let public = file_headers(&info, Access::Public);
        assert_eq!(public["cache-control"], "public, max-age=60");
        assert!(!public.contains_key("vary"));
        assert!(SANDBOX.contains("sandbox") && SANDBOX.contains("default-src 'none'"));
    }
}
