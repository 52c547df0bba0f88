//! The publisher of a mini app.
//!
//! Invariant: a view into the app that it belongs to, never owned. It points at the app's record, of which an author is
//! a part, and only at one that has an author.

use townsquare::{Author, MiniAppRecord};

use crate::{
    boundary::{Safe, read, read_optional},
    handle::Handle,
    text::{self, tsq_str},
};

/// The publisher of a mini app: a view that lives as long as the app's list, with all texts read from it.
pub struct tsq_author {
    _opaque: [u8; 0],
}

impl Handle for tsq_author {
    type Value = MiniAppRecord;
}

/// Reads the author of a record.
///
/// # Safety
/// `author` is NULL or live.
unsafe fn of<R: Safe>(author: *const tsq_author, body: impl FnOnce(Author<'_>) -> R) -> R {
    // SAFETY: the caller's promise, passed on.
    unsafe { read(author, |record| record.author().map_or(R::SAFE, body)) }
}

/// Farcaster id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_fid(author: *const tsq_author) -> u64 {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { of(author, |author| author.fid) }
}

/// Handle, without `@`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_username(author: *const tsq_author) -> tsq_str {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { of(author, |author| text::view(author.username)) }
}

/// Name as shown; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_display_name(author: *const tsq_author) -> tsq_str {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { of(author, |author| text::optional_view(author.display_name)) }
}

/// URL of the profile picture; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_pfp_url(author: *const tsq_author) -> tsq_str {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { of(author, |author| text::optional_view(author.pfp_url)) }
}

/// How many follow the author.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_follower_count(author: *const tsq_author) -> u64 {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { of(author, |author| author.follower_count) }
}

/// The catalog's quality score, 0 to 1: true and written to `out`, or false and `out` 0 for an author without one. `out`
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_score(author: *const tsq_author, out: *mut f64) -> bool {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { read_optional(author, out, |record| record.author()?.score) }
}

/// Whether older catalogs gave the author a power badge.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_is_power_user(author: *const tsq_author) -> bool {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { of(author, |author| author.is_power_user) }
}
