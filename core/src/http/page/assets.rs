//! The files of the page: style, script and icon. They are in the library.
//!
//! Invariant: a browser keeps a file forever if the URL has the hash of its content, and asks again otherwise.

use std::sync::LazyLock;

use ::http::{
    HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG},
};
use bytes::Bytes;

use crate::http::{
    conditions::if_none_match,
    request::Request,
    response::{self, Response, with_header},
    target::Target,
};

pub(super) struct Asset {
    pub(super) name: &'static str,
    content_type: &'static str,
    content: &'static str,
    hash: LazyLock<String>,
}

macro_rules! asset {
    ($name:literal, $content_type:literal) => {
        Asset {
            name: $name,
            content_type: $content_type,
            content: include_str!($name),
            hash: LazyLock::new(|| blake3::hash(include_bytes!($name)).to_hex()[..16].to_owned()),
        }
    };
}

pub(super) static STYLE: Asset = asset!("page.css", "text/css; charset=utf-8");
pub(super) static SCRIPT: Asset = asset!("page.js", "text/javascript; charset=utf-8");
pub(super) static ICON: Asset = asset!("icon.svg", "image/svg+xml");

impl Asset {
    pub(super) fn named(name: &str) -> Option<&'static Asset> {
        [&STYLE, &SCRIPT, &ICON].into_iter().find(|asset| asset.name == name)
    }

    /// A hash of the content.
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    pub(super) fn respond(&self, request: &Request<'_>, target: &Target<'_>) -> Response {
        let hash = self.hash();
        let mut response = if if_none_match(&request.headers, hash) {
            response::empty(StatusCode::NOT_MODIFIED)
        } else {
            let mut response = Response::new(Bytes::from_static(self.content.as_bytes()).into());
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
            response
        };
        response::add_vary(response.headers_mut(), "accept-encoding");
        let is_versioned = target.query.strip_prefix("v=") == Some(hash);
        let cache = if is_versioned { "public, max-age=31536000, immutable" } else { "no-cache" };
        // Weak: a compressed content has other bytes.
        with_header(with_header(response, CACHE_CONTROL, cache), ETAG, format!("W/\"{hash}\""))
    }
}
