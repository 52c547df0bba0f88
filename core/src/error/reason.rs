//! The reason of a file store error, as its source.

use std::{borrow::Cow, fmt};

#[derive(Debug)]
pub(super) struct Reason(pub(super) Cow<'static, str>);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Reason {}
