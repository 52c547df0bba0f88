//! Checks of the options of an upload.

use mime::Mime;

use crate::{
    error::{Error, Result},
    model::UploadOptions,
};

/// A year.
const MAX_CACHE_CONTROL: u32 = 31_536_000;
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
    if text.is_some_and(|text| !is_content_type(text)) {
        return Err(Error::file(400, "content_type is not of the form type/subtype, in at most 255 ASCII characters"));
    }
    Ok(())
}

/// Whether the text is a media type with its parameters (RFC 9110, 8.3.1). Browsers take a text that is none for a list of types,
/// and show the file as the last of them.
pub(crate) fn is_content_type(text: &str) -> bool {
    text.len() <= MAX_CONTENT_TYPE
        && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.parse::<Mime>().is_ok()
}
