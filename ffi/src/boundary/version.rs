//! The version of the loaded library. The header's `TSQ_VERSION` is the version at compile time.

use crate::boundary::text::{self, tsq_str};

/// The version of the loaded library (`0.1.0`); `TSQ_VERSION` is the version of the header.
///
/// Returns a view that lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_version() -> tsq_str {
    text::view(env!("CARGO_PKG_VERSION"))
}
