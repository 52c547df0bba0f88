//! Paths of requests with escapes where RFC 3986 needs them and nowhere else (3.3, 6.2.2).

/// Whether a segment of a path may contain the byte unescaped.
fn is_in_segment(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-~!$&'()*+,;=:@".contains(&byte)
}

fn is_in_path(byte: u8) -> bool {
    byte == b'/' || is_in_segment(byte)
}

fn is_in_query(byte: u8) -> bool {
    is_in_path(byte) || matches!(byte, b'%' | b'?')
}

fn push(text: &mut String, byte: u8, may_stay: impl FnOnce(u8) -> bool) {
    if may_stay(byte) {
        text.push(char::from(byte));
    } else {
        text.push_str(&format!("%{byte:02X}"));
    }
}

fn escaped(bytes: &[u8], may_stay: fn(u8) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    bytes.iter().for_each(|byte| push(&mut text, *byte, may_stay));
    text
}

/// A path that a server has decoded.
pub(crate) fn quoted(path: &[u8]) -> String {
    escaped(path, is_in_path)
}

/// A query with its question mark; empty without a query.
pub(crate) fn query(query: &[u8]) -> String {
    if query.is_empty() { String::new() } else { format!("?{}", escaped(query, is_in_query)) }
}

/// A path as the client has sent it. An escaped slash stays escaped: it separates no segments. What is no escape stays, too, and the
/// endpoint refuses it.
pub(crate) fn normal(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    let mut rest = path;
    while let [first, after @ ..] = rest {
        rest = after;
        match (*first, after) {
            (b'%', [high, low, after @ ..]) if let (Some(high), Some(low)) = (digit(*high), digit(*low)) => {
                push(&mut text, high << 4 | low, is_in_segment);
                rest = after;
            }
            (b'%', _) => text.push('%'),
            // Some servers pass bytes on that a client has not escaped.
            (byte, _) => push(&mut text, byte, is_in_path),
        }
    }
    text
}

fn digit(character: u8) -> Option<u8> {
    char::from(character).to_digit(16).map(|digit| digit as u8)
}

/// The rest of a path below `start`; `None` for another path.
pub(crate) fn below<'a>(path: &'a str, start: &str) -> Option<&'a str> {
    path.strip_prefix(start).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_where_they_need_it() {
        for (path, expected) in [
            (&b"/a%20b"[..], "/a%20b"),
            (b"/%61%2f%2F%zz%", "/a%2F%2F%zz%"),
            (b"/a b\xC3\xA9", "/a%20b%C3%A9"),
            (b"/%25%7e~", "/%25~~"),
            (b"%4", "%4"),
            (b"", ""),
        ] {
            assert_eq!(normal(path), expected);
        }
        assert_eq!(quoted("/100% \u{e9}".as_bytes()), "/100%25%20%C3%A9");
        assert_eq!((query(b""), query(b"a=b c%20?/")), (String::new(), "?a=b%20c%20?/".to_owned()));
    }

    #[test]
    fn a_prefix_ends_at_a_slash() {
        assert_eq!(below("/town/health", "/town"), Some("/health"));
        assert_eq!(below("/town", "/town"), Some(""));
        assert_eq!(below("/townhall", "/town"), None);
        assert_eq!(below("/x", ""), Some("/x"));
    }
}
