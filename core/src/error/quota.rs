//! The error of an exceeded quota.

use super::{Error, ErrorKind};

impl Error {
    /// The error for an owner who would have `count` of `unit`, which the option `name` limits to `limit`. `status` is the HTTP
    /// status.
    pub(crate) fn quota_exceeded(status: u16, count: u64, unit: &str, name: &str, limit: u64) -> Error {
        let message =
            format!("Quota exceeded: the owner would have {count} {unit}; the limit, option {name}, is {limit}");
        Error::new(ErrorKind::QuotaExceeded, message).with(|inner| inner.status = Some(status))
    }
}
