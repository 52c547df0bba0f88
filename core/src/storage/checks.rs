//! Checks of the options of an upload.

use mime::Mime;

use crate::{
    error::{Error, Result},
    model::UploadOptions,
};

/// A year.
pub(super) const MAX_CACHE_CONTROL: u32 = 31_536_000;
const MAX_CONTENT_TYPE: usize = 255;
const MAX_METADATA: usize = 64;
const MAX_METADATA_NAME: usize = 64;
const MAX_METADATA_VALUE: usize = 1_024;
/// The largest size of all names and values together, in bytes.
const MAX_METADATA_SIZE: usize = 8_192;

/// Checks the options.
///
/// # Errors
/// `InvalidInput` (400); the message names the option.
pub(super) fn check_options(options: &UploadOptions) -> Result<()> {
    if options.cache_control > MAX_CACHE_CONTROL {
        return Err(Error::file(400, format!("cache_control is 0 to {MAX_CACHE_CONTROL} seconds")));
    }
    check_content_type(options.content_type.as_deref())?;
    // PostgreSQL has no text with this character.
    if options.if_match.as_deref().is_some_and(|version| version.contains('\0')) {
        return Err(Error::file(400, "if_match contains the character U+0000"));
    }
    if options.metadata.len() > MAX_METADATA {
        return Err(Error::file(400, format!("metadata has more than {MAX_METADATA} names")));
    }
    let size: usize = options.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > MAX_METADATA_SIZE {
        return Err(Error::file(400, format!("metadata has {size} bytes; the limit is {MAX_METADATA_SIZE}")));
    }
    for (name, value) in &options.metadata {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > MAX_METADATA_NAME || !name.bytes().all(is_name) {
            return Err(Error::file(400, "a name in metadata is not 1 to 64 letters, digits, hyphens and underscores"));
        }
        if value.len() > MAX_METADATA_VALUE || value.chars().any(char::is_control) {
            return Err(Error::file(
                400,
                format!("the metadata {name} is over 1,024 bytes or has a control character"),
            ));
        }
    }
    Ok(())
}

/// Checks a media type, if there is one.
///
/// # Errors
/// `InvalidInput` (400) for text that is no media type.
pub(super) fn check_content_type(text: Option<&str>) -> Result<()> {
    if text.is_some_and(|text| media_type(text).is_none()) {
        return Err(Error::file(400, "content_type is not of the form type/subtype, in at most 255 ASCII characters"));
    }
    Ok(())
}

/// The media type that a text is, with its parameters (RFC 9110, 8.3.1). Browsers take a text that is none for a list of types, and
/// show the file as the last of them.
pub(crate) fn media_type(text: &str) -> Option<Mime> {
    if text.len() > MAX_CONTENT_TYPE || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return None;
    }
    // The parser takes no space before a semicolon, which RFC 9110 allows.
    let tight: Vec<_> = text.split(';').map(str::trim_end).collect();
    // It takes "text/", which has no subtype.
    tight.join(";").parse().ok().filter(|media_type: &Mime| !media_type.subtype().as_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_type_is_one_media_type() {
        for good in [
            "text/plain",
            "text/plain; charset=utf-8",
            "text/plain ; charset=utf-8 ;a=b",
            "text/plain;",
            "video/mp4; codecs=\"avc1.42E01E, mp4a.40.2\"",
            "multipart/form-data; boundary=\"a;b\"",
        ] {
            assert!(media_type(good).is_some(), "{good}");
        }
        let long = format!("text/{}", "a".repeat(MAX_CONTENT_TYPE));
        for bad in [
            "",
            "text",
            "text/",
            "/plain",
            "text/plain,text/html",
            "image/png;x,text/html",
            "image/png; x=y,text/html",
            "a/b\n",
            &long,
        ] {
            assert!(media_type(bad).is_none(), "{bad}");
        }
    }
}
