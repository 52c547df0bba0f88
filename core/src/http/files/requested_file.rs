//! The file that a request is for: `/BUCKET/PATH?QUERY`.

use crate::{
    error::{Error, Result},
    http::target::{Malformed, Target, decode_segment},
    storage::SignedTarget,
};

/// A decoded request target. Bucket and path are text without NUL; whether they are valid is not known yet.
#[derive(PartialEq, Eq)]
pub(crate) struct RequestedFile {
    pub(crate) bucket: String,
    pub(crate) path: String,
    query: Vec<(String, String)>,
}

impl RequestedFile {
    /// # Errors
    /// `InvalidInput` (400) for a target that is not `/BUCKET/PATH`, and for one that is malformed or has an escaped slash.
    pub(crate) fn parse(target: &str) -> Result<RequestedFile> {
        RequestedFile::decode(target).map_err(|why| Error::file(400, why))
    }

    fn decode(target: &str) -> Result<RequestedFile, Malformed> {
        let target = Target::parse(target)?;
        let path = target.path.strip_prefix('/').ok_or("the target does not start with a slash")?;
        let (bucket, path) = path.split_once('/').unwrap_or((path, ""));
        let segments: Vec<_> = path.split('/').map(decode_segment).collect::<Result<_, _>>()?;
        let query = target.parameters()?.into_pairs();
        Ok(RequestedFile { bucket: decode_segment(bucket)?, path: segments.join("/"), query })
    }

    pub(crate) fn signed(&self) -> SignedTarget<'_> {
        SignedTarget { bucket: &self.bucket, path: &self.path, query: &self.query }
    }
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
            let file = RequestedFile::parse(target).expect(target);
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
            let error = RequestedFile::parse(target).err().expect(target);
            assert_eq!(error.status(), Some(400), "{target:?}");
        }
    }
}
