//! The version of the library at run time; the header has `TSQ_VERSION` for the version at compile time.

use crate::{
    boundary::answer,
    text::{self, tsq_str},
};

/// The version of the library that is loaded, `0.1.0`; `TSQ_VERSION` is that of the header.
///
/// Returns a view that lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_version() -> tsq_str {
    answer(|| text::view(env!("CARGO_PKG_VERSION")))
}
