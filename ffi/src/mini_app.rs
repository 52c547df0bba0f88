//! One mini app: every field of the record as a view or a number.
//!
//! Invariant: a `tsq_mini_app` is a view of an app inside a list, never owned, and so is all that is read from it.

use std::ptr;

use townsquare::{MiniApp, Texts};

use crate::{
    author::tsq_author,
    boundary::{produce, read, read_optional},
    error::tsq_error,
    handle::{self, Handle},
    status::tsq_status,
    text::{self, tsq_str, tsq_string},
};

/// One mini app: a view into its list. Texts read from it, its author included, live as long as the list; texts that
/// may be absent say so.
pub struct tsq_mini_app {
    _opaque: [u8; 0],
}

impl Handle for tsq_mini_app {
    type Value = MiniApp;
}

fn item(mut texts: Texts<'_>, index: usize) -> tsq_str {
    text::optional_view(texts.nth(index))
}

/// The app's id: its normalised home URL without the scheme. One app, one id.
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

/// What the app says of itself, at most 2,000 characters; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_description(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.description())) }
}

/// URL of the icon or, without one, of the app's image; empty when the catalog has neither.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_icon_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::view(app.icon_url())) }
}

/// Where the app is opened: http or https.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_home_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::view(app.home_url())) }
}

/// One of the catalog's categories, or the app's own word; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_category(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.category())) }
}

/// How many networks the app asks for; 0 when it names none and so runs on any.
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

/// How many search tags the app has.
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

/// How many screenshots the app has.
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

/// Who published the app; NULL when the catalog does not say.
///
/// Returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_author(app: *const tsq_mini_app) -> *const tsq_author {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.author().map_or(ptr::null(), |_| handle::view::<tsq_author>(app))) }
}

/// Engagement: followers of the app's author; 0 without one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_follower_count(app: *const tsq_mini_app) -> u64 {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.engagement().follower_count) }
}

/// Engagement: the app's place in the trending order that it was listed from, counted from 1: true and written to `out`,
/// or false and `out` 0 when that order has it not. `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_trending_rank(app: *const tsq_mini_app, out: *mut u32) -> bool {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read_optional(app, out, |app| app.engagement().trending_rank) }
}

/// URL of a wide picture; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_hero_image_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.hero_image_url())) }
}

/// A line of promotion; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_tagline(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.tagline())) }
}

/// A line of explanation; may be absent.
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

/// The text of the button that opens the app; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_button_title(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.button_title())) }
}

/// URL of the picture shown in a feed; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_image_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.image_url())) }
}

/// URL of the picture shown while the app loads; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_splash_image_url(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.splash_image_url())) }
}

/// Colour behind that picture, as the catalog has it (`#rrggbb`); may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_splash_background_color(app: *const tsq_mini_app) -> tsq_str {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| text::optional_view(app.splash_background_color())) }
}

/// When this record was fetched: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_last_fetched(app: *const tsq_mini_app) -> i64 {
    // SAFETY: `app` is NULL or live, by the manual.
    unsafe { read(app, |app| app.last_fetched().as_microsecond()) }
}

/// The app as a JSON object: the endpoint's shape, camelCase.
///
/// Borrows `app`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_mini_app_json(
    app: *const tsq_mini_app,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(app, "app")?)) }
}
