//! Keys of objects.
//!
//! Invariant: [`ObjectKey::segments`] returns no segment that a file system or a store reads as another place.

use std::fmt;

use crate::error::{Error, Result};

/// The folder under the root for staged bytes and locks. No bucket has this name.
pub(super) const WORK_FOLDER: &str = ".townsquare";

/// The key of an object: a bucket and a path. The caller has checked both; a store refuses a key that leads out of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    pub(crate) bucket: String,
    pub(crate) path: String,
}

impl ObjectKey {
    /// # Errors
    /// 400 for a segment that is empty, `.` or `..`, or that contains a separator or NUL, and for the bucket
    /// [`WORK_FOLDER`].
    pub(crate) fn check(&self) -> Result<()> {
        check_bucket(&self.bucket)?;
        if !self.path.split('/').all(is_segment) {
            return Err(Error::file(400, "a segment of the path is not a name"));
        }
        Ok(())
    }

    /// Returns the folders of the object, the bucket first, and its name.
    ///
    /// # Errors
    /// Those of [`check`](ObjectKey::check).
    pub(super) fn segments(&self) -> Result<(Vec<&str>, &str)> {
        self.check()?;
        let mut folders = vec![self.bucket.as_str()];
        folders.extend(self.path.split('/'));
        let name = folders.pop().expect("split returns at least one segment");
        Ok((folders, name))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bucket, self.path)
    }
}

/// # Errors
/// 400 if `bucket` is not the name of a folder for objects.
pub(super) fn check_bucket(bucket: &str) -> Result<()> {
    if !is_segment(bucket) || bucket.contains('/') || bucket == WORK_FOLDER {
        return Err(Error::file(400, "the bucket is not a name"));
    }
    Ok(())
}

/// # Errors
/// 400 if `id` is not the name of staged bytes.
pub(super) fn check_stage_id(id: &str) -> Result<()> {
    if id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(Error::file(400, "this is no name of staged bytes"))
}

/// Whether `text` without a slash is the name of one file. A colon names a stream of a file on Windows.
fn is_segment(text: &str) -> bool {
    let is_banned = |byte| byte == b'\\' || byte == b'\0' || (cfg!(windows) && byte == b':');
    !matches!(text, "" | "." | "..") && !text.bytes().any(is_banned)
}
