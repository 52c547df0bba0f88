//! Signed URLs. A URL with a changed byte is refused, unless it decodes to the same request.

use std::time::Duration;

use townsquare::{
    blocking::Client,
    storage::{UploadOptions, UrlMethod, UrlOptions},
};

use super::{Target, edits::edited, fixture};

/// The parameters that a signature covers, and the signature.
const PARAMETERS: [&str; 6] = ["method", "expires", "signer", "max_size", "content_type", "signature"];

/// See the module.
pub struct SignedUrl {
    client: Client,
    urls: Vec<(UrlMethod, String)>,
}

impl Target for SignedUrl {
    const NAME: &'static str = "signed_url";

    fn new() -> SignedUrl {
        let client = fixture::open(fixture::in_memory());
        let (id, user) = fixture::user(&client, "ann");
        let path = format!("{id}/a b/caf\u{e9}.txt");
        let upload = |path: &str, content: &'static str| {
            user.storage().upload("private", path, content, UploadOptions::new()).expect("the user's own file");
        };
        upload(&path, "the file");
        upload(&format!("{id}/other"), "another file");
        let hour = Duration::from_secs(3_600);
        let put = UrlOptions::new(hour).max_size(8).content_type("text/plain");
        let sign = |client: &Client, method, options: UrlOptions| {
            (method, client.storage().signed_url("private", &path, method, options).expect("a right to the file"))
        };
        let urls = vec![
            sign(&user, UrlMethod::Get, UrlOptions::new(hour)),
            sign(&client.as_service(), UrlMethod::Get, UrlOptions::new(hour)),
            sign(&user, UrlMethod::Put, put),
        ];
        SignedUrl { client, urls }
    }

    fn check(&mut self, data: &[u8]) {
        let Some((&kind, rest)) = data.split_first() else { return };
        let index = usize::from(kind) % self.urls.len();
        let (method, url) = &self.urls[index];
        let Ok(changed) = String::from_utf8(edited(url, rest)) else { return };
        let (method, body) = match method {
            UrlMethod::Put => ("PUT", "the file"),
            _ => ("GET", ""),
        };
        let response = self.client.storage().handle_file(method, &changed, &[], body).expect("a response");
        let is_same = meaning(&changed).is_some_and(|meaning| Some(meaning) == self::meaning(url));
        let is_success = (200..300).contains(&response.status);
        assert!((200..600).contains(&response.status));
        assert!(response.status < 500, "{} for {changed}", response.status);
        assert_eq!(is_success, is_same, "{} for {changed}, changed from {url}", response.status);
    }
}

/// The request that a target decodes to: the segments of its path, and the first value of each parameter. `None` if it is malformed.
fn meaning(target: &str) -> Option<(Vec<String>, Vec<Option<String>>)> {
    // A target in absolute form.
    let target = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    };
    let is_bad = |character: char| character.is_control() || matches!(character, ' ' | '#');
    if target.contains(is_bad) {
        return None;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let segments = path.strip_prefix('/')?.split('/').map(decoded).collect::<Option<Vec<_>>>()?;
    if segments.iter().any(|segment| segment.contains('/')) {
        return None;
    }
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?));
    }
    let values = PARAMETERS.map(|name| {
        let value = pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        // The case of hex digits does not matter.
        if name == "signature" { value.map(|value| value.to_ascii_lowercase()) } else { value }
    });
    Some((segments, values.to_vec()))
}

/// Decodes percent escapes. `None` for a malformed one, for an escaped NUL, and for text that is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = after;
            continue;
        }
        let (digits, after) = after.split_first_chunk::<2>()?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(digits[0])? * 16 + digit(digits[1])?);
        rest = after;
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
