//! The publisher of a mini app.
//!
//! Invariant: a `tsq_author` is always a view. It points at the packed record of an app that has an author.

use townsquare::discovery::{Author, MiniAppRecord};

use crate::boundary::{Handle, Safe, read, read_optional, text, tsq_str};

/// The publisher of a mini app: a view that lives as long as the list of the app, like all texts read from it.
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

/// Username, without `@`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_username(author: *const tsq_author) -> tsq_str {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { of(author, |author| text::view(author.username)) }
}

/// Display name; may be absent.
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

/// Number of followers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_follower_count(author: *const tsq_author) -> u64 {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { of(author, |author| author.follower_count) }
}

/// The quality score of the catalog, 0 to 1. Returns true and writes it to `out` (may be NULL), or returns false and
/// writes 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_score(author: *const tsq_author, out: *mut f64) -> bool {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { read_optional(author, out, |record| record.author()?.score) }
}

/// Whether the author has the power badge of older catalogs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_author_is_power_user(author: *const tsq_author) -> bool {
    // SAFETY: `author` is NULL or live, by the manual.
    unsafe { of(author, |author| author.is_power_user) }
}
