//! The target of a request for a file: `/BUCKET/PATH?QUERY`.
//!
//! Invariant: a slash that separates segments is a slash of the target: `%2F` is refused, so that a proxy and this library see the
//! same segments.

use crate::{
    error::{Error, Result},
    http::target::{Target, decode},
    storage::RequestedFile,
};

/// Decodes a target.
///
/// # Errors
/// `InvalidInput` (400) for a target that is not `/BUCKET/PATH`, and for one that is malformed or has an escaped slash.
pub(crate) fn requested_file(target: &str) -> Result<RequestedFile> {
    let malformed = |why| Error::file(400, why);
    let target = Target::parse(target).map_err(malformed)?;
    let path = target.path.strip_prefix('/').ok_or_else(|| malformed("the target does not start with a slash"))?;
    let segments = path.split('/').map(|segment| match decode(segment).map_err(malformed)? {
        segment if segment.contains('/') => Err(malformed("the target contains an escaped slash")),
        segment => Ok(segment),
    });
    let mut segments = segments.collect::<Result<Vec<_>>>()?.into_iter();
    let bucket = segments.next().unwrap_or_default();
    let path = segments.collect::<Vec<_>>().join("/");
    Ok(RequestedFile { bucket, path, query: target.parameters().map_err(malformed)?.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_and_path_are_decoded_once() {
        for (target, bucket, path) in [
            ("/assets/a/b.txt", "assets", "a/b.txt"),
            ("/assets/a%20b+c", "assets", "a b+c"),
            ("/assets/%252e%252e/%252f", "assets", "%2e%2e/%2f"),
            ("/assets/x%2312?v=1", "assets", "x#12"),
            ("/assets/%2e%2e/b", "assets", "../b"),
            ("/assets/a//b/", "assets", "a//b/"),
            ("/assets", "assets", ""),
            ("/", "", ""),
            ("//assets/a", "", "assets/a"),
            ("http://host:80/assets/a?b", "assets", "a"),
            ("http://host", "", ""),
        ] {
            let file = requested_file(target).expect(target);
            assert_eq!((file.bucket.as_str(), file.path.as_str()), (bucket, path), "{target}");
        }
    }

    #[test]
    fn malformed_targets_are_refused() {
        for target in [
            "",
            "assets/a",
            "*",
            "/assets/a%2fb",
            "/assets/a%2Fb",
            "/assets%2fa",
            "/a/%00",
            "/a/%zz",
            "/a/b c",
            "/a/b#c",
            "/a/b?c=%zz",
            "/a/b?c=%00",
        ] {
            let error = requested_file(target).err().expect(target);
            assert_eq!(error.status(), 400, "{target:?}");
        }
    }

    #[test]
    fn a_target_with_a_signature_is_signed_even_if_it_is_not_valid() {
        let is_signed = |target| requested_file(target).expect("a target").parameter("signature").is_some();
        assert!(is_signed("/a/b?signature=") && is_signed("/a/b?x=1&signature=00"));
        assert!(!is_signed("/a/b?method=GET&expires=1&signer=service") && !is_signed("/a/signature"));
    }
}
