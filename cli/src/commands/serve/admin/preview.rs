//! What is shown of a file, and its bytes as an image or as a download.
//!
//! Invariant: what a file is, its bytes decide, never its content type. A browser gets bytes of a file as one of four image types or
//! as a download, and runs nothing of them.

use axum::{
    body::Body,
    http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use townsquare::storage::FileReader;
use url::form_urlencoded;

use super::{Admin, page::lines, page_error::PageError, parameters::Parameters};
use crate::printable::printable;

/// The most bytes of a text that are shown.
pub(super) const MOST_TEXT: u64 = 64 << 10;

/// The size in bytes from which an image is linked instead of shown: a browser would load it with the page.
pub(super) const MOST_IMAGE: u64 = 10 << 20;

/// What is shown of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Preview {
    Text {
        shown: String,
        is_whole: bool,
    },
    /// The content type.
    Image(&'static str),
    None,
}

impl Preview {
    pub(super) async fn of(reader: &FileReader) -> Result<Preview, PageError> {
        let size = reader.info().size;
        let bytes = reader.read_at(0..size.min(MOST_TEXT)).await?;
        Ok(Preview::of_bytes(&bytes, size <= MOST_TEXT))
    }

    /// The preview of a file that begins with these bytes.
    fn of_bytes(bytes: &[u8], is_whole: bool) -> Preview {
        if let Some(kind) = image_type(bytes) {
            return Preview::Image(kind);
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            // The last character is cut.
            Err(error) if !is_whole && error.error_len().is_none() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return Preview::None,
        };
        if text.contains('\0') {
            return Preview::None;
        }
        Preview::Text { shown: lines(text), is_whole }
    }
}

/// The type of an image that browsers show without running anything.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The bytes of an image.
pub(super) async fn image(admin: &Admin, query: &Parameters) -> Result<Response, PageError> {
    let reader = open(admin, query).await?;
    match Preview::of(&reader).await? {
        Preview::Image(kind) => Ok(respond(reader, kind, "inline".to_owned())),
        _ => Err(PageError::bad_request("The file is no PNG, JPEG, GIF or WebP image.")),
    }
}

/// The bytes of a file, to store them.
pub(super) async fn download(admin: &Admin, query: &Parameters) -> Result<Response, PageError> {
    let reader = open(admin, query).await?;
    let disposition = attachment(&reader.info().path);
    Ok(respond(reader, "application/octet-stream", disposition))
}

/// The `Content-Disposition` of a download, with the name of the file. A row that another program wrote may have any characters.
fn attachment(path: &str) -> String {
    let name = printable(path.rsplit('/').next().unwrap_or_default());
    let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    // RFC 8187 knows no + for a space.
    format!("attachment; filename*=UTF-8''{}", name.replace('+', "%20").replace('*', "%2A"))
}

async fn open(admin: &Admin, query: &Parameters) -> Result<FileReader, PageError> {
    Ok(admin.client.storage().reader(query.required("bucket")?, query.required("path")?).await?)
}

fn respond(reader: FileReader, kind: &'static str, disposition: String) -> Response {
    let headers = [
        (CONTENT_TYPE, kind.to_owned()),
        (CONTENT_LENGTH, reader.info().size.to_string()),
        (CONTENT_DISPOSITION, disposition),
    ];
    (headers, Body::from_stream(reader)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_download_has_no_controls() {
        for (path, name) in [("a/b c.txt", "b%20c.txt"), ("a\u{202e}txt.exe", "a%EF%BF%BDtxt.exe"), ("a\nb", "a%20b")] {
            assert_eq!(attachment(path), format!("attachment; filename*=UTF-8''{name}"));
        }
    }

    #[test]
    fn bytes_decide_what_is_shown() {
        let text = |shown: &str| Preview::Text { shown: shown.to_owned(), is_whole: true };
        for (bytes, preview) in [
            (&b"<script>alert(1)</script>"[..], text("<script>alert(1)</script>")),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", text("<svg xmlns=\"http://www.w3.org/2000/svg\"/>")),
            (b"", text("")),
            ("a\r\nb\u{202e}".as_bytes(), text("a\nb\u{fffd}")),
            (b"\x89PNG\r\n\x1a\n...", Preview::Image("image/png")),
            (b"\xff\xd8\xff\xe0", Preview::Image("image/jpeg")),
            (b"GIF89a", Preview::Image("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Preview::Image("image/webp")),
            (b"RIFF\0\0\0\0WAVE", Preview::None),
            (b"a\0b", Preview::None),
            (b"\xff\xfe", Preview::None),
        ] {
            assert_eq!(Preview::of_bytes(bytes, true), preview, "{bytes:?}");
        }
        assert_eq!(Preview::of_bytes(b"a\xc3", true), Preview::None, "a whole text has no part of a character");
        assert_eq!(Preview::of_bytes(b"a\xc3", false), Preview::Text { shown: "a".to_owned(), is_whole: false });
    }
}
