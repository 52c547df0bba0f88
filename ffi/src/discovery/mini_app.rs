//! A mini app: one function for each field, because the library stores apps in a packed form without a struct to show.
//!
//! Invariant: a `tsq_mini_app` is always a view of an app inside a list of apps or of suggestions.

use std::ptr;

use townsquare::discovery::{MiniApp, Texts};

use crate::{
    boundary::{
        Handle, argument, call_handle, handle, json, list, read, read_optional, text, tsq_error, tsq_status, tsq_str,
        tsq_string,
    },
    discovery::{author::tsq_author, highlight::tsq_highlights},
};

/// A mini app: a view that lives as long as its list, like all texts read from it.
pub struct tsq_mini_app {
    _opaque: [u8; 0],
}

impl Handle for tsq_mini_app {
    type Value = MiniApp;
}

fn item(mut texts: Texts<'_>, index: usize) -> tsq_str {
    text::optional_view(texts.nth(index))
}

/// The app's id: its normalised home URL without the scheme.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_id(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::view(app.id())) }
}

/// Host of the home URL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_domain(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::view(app.domain())) }
}

/// Display name, at most 200 characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_name(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::view(app.name())) }
}

/// Description, at most 2,000 characters; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_description(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.description())) }
}

/// URL of the icon, or else of the image; empty when the catalog has neither.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_icon_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::view(app.icon_url())) }
}

/// URL that opens the app: http or https.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_home_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::view(app.home_url())) }
}

/// Category: a known one (`games`) or the app's own word; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_category(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.category())) }
}

/// Number of networks that the app requires; 0 when it runs on any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_networks_len(app: *const tsq_mini_app) -> usize {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.networks().len()) }
}

/// The network at `index`, counted from 0; absent beyond the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_networks_at(app: *const tsq_mini_app, index: usize) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| item(app.networks(), index)) }
}

/// Number of search tags.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_tags_len(app: *const tsq_mini_app) -> usize {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.tags().len()) }
}

/// The search tag at `index`, counted from 0; absent beyond the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_tags_at(app: *const tsq_mini_app, index: usize) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| item(app.tags(), index)) }
}

/// Number of screenshots.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_screenshots_len(app: *const tsq_mini_app) -> usize {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.screenshots().len()) }
}

/// The URL of the screenshot at `index`, counted from 0; absent beyond the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_screenshots_at(app: *const tsq_mini_app, index: usize) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| item(app.screenshots(), index)) }
}

/// The publisher of the app; NULL when the catalog does not name one.
///
/// Returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_author(app: *const tsq_mini_app) -> *const tsq_author {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.author().map_or(ptr::null(), |_| handle::view::<tsq_author>(app))) }
}

/// Engagement: number of followers of the author; 0 without an author.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_follower_count(app: *const tsq_mini_app) -> u64 {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.engagement().follower_count) }
}

/// Engagement: the app's rank in the trending order of its list, counted from 1. Returns true and writes it to `out`
/// (may be NULL), or returns false and writes 0 when the order does not contain the app.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_trending_rank(app: *const tsq_mini_app, out: *mut u32) -> bool {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read_optional(app, out, |app| app.engagement().trending_rank) }
}

/// URL of a wide image; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_hero_image_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.hero_image_url())) }
}

/// Tagline; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_tagline(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.tagline())) }
}

/// Subtitle; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_subtitle(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.subtitle())) }
}

/// Version of the app's manifest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_version(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::view(app.version())) }
}

/// Text of the button that opens the app; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_button_title(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.button_title())) }
}

/// URL of the image for a feed; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_image_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.image_url())) }
}

/// URL of the image shown while the app loads; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_splash_image_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.splash_image_url())) }
}

/// Background colour of that image (`#rrggbb`); may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_splash_background_color(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.splash_background_color())) }
}

/// Time of the fetch, in microseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_last_fetched(app: *const tsq_mini_app) -> i64 {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.last_fetched().as_microsecond()) }
}

/// Time at which the app was first in the catalog, in microseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_first_seen(app: *const tsq_mini_app) -> i64 {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.first_seen().as_microsecond()) }
}

/// The words of the app that match a search query, by field. Texts without a match are left out.
///
/// Borrows `app` and `query`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_highlights(
    app: *const tsq_mini_app,
    query: tsq_str,
    out: *mut *mut tsq_highlights,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            Ok(list(handle::required(app, "app")?.highlights(argument::text(query, "query")?)))
        })
    }
}

/// The app as a JSON object, as in responses of the HTTP endpoint: camelCase.
///
/// Borrows `app`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_json(
    app: *const tsq_mini_app,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(app, "app")?)) }
}
