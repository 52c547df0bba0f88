//! Why a write or a delete changes nothing, and its error.

use super::buckets::FileTarget;
use crate::{error::Error, policy::Caller};

/// Why a write changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WriteRefusal {
    /// The policy.
    Denied,
    /// There is a file, and the write must not replace one.
    Exists,
    /// `if_match` names another version than `found`; `None` if there is no file.
    Changed { found: Option<String> },
    /// A file and a folder would share a name.
    NameTaken,
    /// A dead writer's intent is in the way, or another writer was faster.
    Busy,
}

impl WriteRefusal {
    /// The error for the caller. Its source names the path, and for `Changed` the version.
    pub(super) fn into_error(self, caller: Caller, target: &FileTarget) -> Error {
        let file = || format!("{}/{}", target.bucket, target.path);
        match self {
            WriteRefusal::Denied if caller == Caller::Anonymous => Error::file(401, "only a user may write here"),
            WriteRefusal::Denied => Error::file(403, "the policy of the bucket refuses the write"),
            WriteRefusal::Exists => {
                Error::file(409, "The file already exists").with_reason(format!("{} exists", file()))
            }
            WriteRefusal::Changed { found } => {
                let error = Error::file(412, "The file has another version than if_match");
                error.with_reason(match found {
                    Some(etag) => format!("{} has the etag {etag}", file()),
                    None => format!("{} does not exist", file()),
                })
            }
            WriteRefusal::NameTaken => Error::file(409, "A file and a folder cannot share a name")
                .with_reason(format!("{} is the name of a folder, or a folder in it is the name of a file", file())),
            WriteRefusal::Busy => Error::file(503, "Another writer changes the file").with_reason(file()),
        }
    }
}
