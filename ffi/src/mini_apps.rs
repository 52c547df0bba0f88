//! Lists of mini apps: one owned handle, apps as views into it.
//!
//! Invariant: making a list copies no app and looking through it allocates nothing; the list keeps its part of the
//! catalog alive, whatever becomes of the client.

use std::ptr;

use townsquare::MiniApps;

use crate::{
    boundary::{free, produce, read},
    error::tsq_error,
    handle::{self, Handle},
    mini_app::tsq_mini_app,
    status::tsq_status,
    text::{self, tsq_string},
};

/// A list of mini apps, best first. Owned, ended with `tsq_mini_apps_free`; it never changes and outlives its client.
pub struct tsq_mini_apps {
    _opaque: [u8; 0],
}

impl Handle for tsq_mini_apps {
    type Value = MiniApps;
}

/// How many apps the list has; 0 for NULL.
///
/// Borrows `apps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_apps_len(apps: *const tsq_mini_apps) -> usize {
    // SAFETY: `apps` is NULL or live, by the manual.
    unsafe { read(apps, |apps| apps.len()) }
}

/// The app at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `apps`; returns a view that lives as long as the list. Costs nothing: no copy, nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_apps_at(apps: *const tsq_mini_apps, index: usize) -> *const tsq_mini_app {
    // SAFETY: `apps` is NULL or live, by the manual.
    unsafe { read(apps, |apps| apps.get(index).map_or(ptr::null(), handle::view)) }
}

/// The list as a JSON array of `tsq_mini_app_json`'s objects.
///
/// Borrows `apps`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_apps_json(
    apps: *const tsq_mini_apps,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(apps, "apps")?)) }
}

/// Ends a list, and with it all views of its apps. Takes `apps`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_apps_free(apps: *mut tsq_mini_apps) {
    // SAFETY: `apps` is NULL or owned by the caller, by the manual.
    unsafe { free(apps) }
}
