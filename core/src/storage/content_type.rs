//! The media type of a file that was uploaded without one.

use serde::de::IgnoredAny;

/// The type of bytes that nothing is known about.
const UNKNOWN: &str = "application/octet-stream";

/// Guesses a media type from the ending of the name; without a known one, from the content.
///
/// `start` is the beginning of the content, or all of it. The files of SPEC 2.8 without an ending are JSON.
pub(super) fn guess_content_type(name: &str, start: &[u8]) -> &'static str {
    if let Some(by_name) = mime_guess::from_path(name).first_raw() {
        return by_name;
    }
    match infer::get(start) {
        Some(by_content) => by_content.mime_type(),
        None if is_json(start) => "application/json",
        None => UNKNOWN,
    }
}

/// Returns true if the text is a JSON object or list, or the beginning of one.
fn is_json(start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    if !text.starts_with(b"{") && !text.starts_with(b"[") {
        return false;
    }
    match serde_json::from_slice::<IgnoredAny>(text) {
        Ok(_) => true,
        Err(error) => error.is_eof(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_decides_before_the_content() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        for (name, content, expected) in [
            ("logo.png", &b"{}"[..], "image/png"),
            ("LOGO.PNG", b"", "image/png"),
            ("a.html", b"", "text/html"),
            ("a.svg", b"", "image/svg+xml"),
            ("a.js", b"", "text/javascript"),
            ("a.json", b"", "application/json"),
            ("intro.mp4", b"", "video/mp4"),
            ("note.txt", b"", "text/plain"),
            ("logo", png, "image/png"),
            ("logo.unknown", png, "image/png"),
            ("doc", b"%PDF-1.7", "application/pdf"),
            ("tabOrder", b"{\"a\": [1]}", "application/json"),
            ("tabs/Home", b" \n[1, 2]", "application/json"),
            ("tabs/Home", b"{\"a\": \"the beginning of lon", "application/json"),
            ("homebase", b"{a}", UNKNOWN),
            ("homebase", b"{} {}", UNKNOWN),
            ("number", b"1", UNKNOWN),
            ("empty", b"", UNKNOWN),
            ("bytes", b"\0\x01\x02", UNKNOWN),
            (".png", b"", UNKNOWN),
        ] {
            assert_eq!(guess_content_type(name, content), expected, "{name}");
        }
    }
}
