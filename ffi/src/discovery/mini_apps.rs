//! Lists of mini apps.
//!
//! Invariant: a list copies no app; it holds a reference to the catalog. Reading its apps allocates nothing, and reading it
//! does not need the client.

use std::ptr;

use townsquare::discovery::MiniApps;

use crate::{
    boundary::{Handle, call_handle, free, handle, json, read, tsq_error, tsq_status, tsq_string},
    discovery::mini_app::tsq_mini_app,
};

/// A list of mini apps, best first: one page of a longer list. Owned, freed with `tsq_mini_apps_free`.
pub struct tsq_mini_apps {
    _opaque: [u8; 0],
}

impl Handle for tsq_mini_apps {
    type Value = MiniApps;
}

/// The number of apps; 0 for NULL.
///
/// Borrows `apps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_apps_len(apps: *const tsq_mini_apps) -> usize {
    // SAFETY: `apps` is NULL or live, by the manual.
    unsafe { read(apps, |apps| apps.len()) }
}

/// The number of apps that the call would list without limit and offset; 0 for NULL. The first call for a filtered or
/// searched list counts them and may take as long as the call that made the list.
///
/// Borrows `apps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_apps_total(apps: *const tsq_mini_apps) -> usize {
    // SAFETY: `apps` is NULL or live, by the manual.
    unsafe { read(apps, MiniApps::total) }
}

/// The app at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `apps`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_apps_at(apps: *const tsq_mini_apps, index: usize) -> *const tsq_mini_app {
    // SAFETY: `apps` is NULL or live, by the manual.
    unsafe { read(apps, |apps| apps.get(index).map_or(ptr::null(), handle::view)) }
}

/// The list as a JSON array of the objects of `tsq_mini_app_json`.
///
/// Borrows `apps`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_apps_json(
    apps: *const tsq_mini_apps,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(apps, "apps")?)) }
}

/// Frees a list and ends all views of its apps. Takes `apps`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_apps_free(apps: *mut tsq_mini_apps) {
    // SAFETY: `apps` is NULL or owned by the caller, by the manual.
    unsafe { free(apps) }
}
