//! One community's configuration: its row, with its JSON as text (SPEC 2.2).
//!
//! Invariant: a record is complete when it is made: reading it is a view and allocates nothing.

use serde::Serialize;
use townsquare::CommunityConfig;

use crate::{
    boundary::{free, produce, read, read_optional},
    error::tsq_error,
    handle::{self, Handle},
    id::Id,
    json_text,
    status::tsq_status,
    text::{self, tsq_str, tsq_string},
};

/// A community's configuration. Owned, ended with `tsq_community_config_free`; all that is read from it lives as long as
/// it. It never changes and outlives its client.
pub struct tsq_community_config {
    _opaque: [u8; 0],
}

impl Handle for tsq_community_config {
    type Value = ConfigRecord;
}

/// The value behind a [`tsq_community_config`]; as JSON, the core's record.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct ConfigRecord {
    config: CommunityConfig,
    #[serde(skip)]
    id: Id,
    #[serde(skip)]
    brand_config: Box<str>,
    #[serde(skip)]
    assets_config: Box<str>,
    #[serde(skip)]
    community_config: Box<str>,
    #[serde(skip)]
    fidgets_config: Box<str>,
    #[serde(skip)]
    navigation_config: Option<Box<str>>,
    #[serde(skip)]
    ui_config: Option<Box<str>>,
}

impl From<CommunityConfig> for ConfigRecord {
    fn from(config: CommunityConfig) -> ConfigRecord {
        ConfigRecord {
            id: config.id.into(),
            brand_config: json_text::written(&config.brand_config),
            assets_config: json_text::written(&config.assets_config),
            community_config: json_text::written(&config.community_config),
            fidgets_config: json_text::written(&config.fidgets_config),
            navigation_config: config.navigation_config.as_ref().map(json_text::written),
            ui_config: config.ui_config.as_ref().map(json_text::written),
            config,
        }
    }
}

/// The row's id: a UUID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_id(config: *const tsq_community_config) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| record.id.view()) }
}

/// The community, at most 50 characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_community_id(config: *const tsq_community_config) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| text::view(&record.config.community_id)) }
}

/// When it last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_updated_at(config: *const tsq_community_config) -> i64 {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| record.config.updated_at.as_microsecond()) }
}

/// Brand, as JSON text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_brand_config(config: *const tsq_community_config) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| text::view(&record.brand_config)) }
}

/// Assets, as JSON text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_assets_config(config: *const tsq_community_config) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| text::view(&record.assets_config)) }
}

/// The community itself, as JSON text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_community_config(config: *const tsq_community_config) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| text::view(&record.community_config)) }
}

/// Fidgets it offers, as JSON text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_fidgets_config(config: *const tsq_community_config) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| text::view(&record.fidgets_config)) }
}

/// Navigation, as JSON text; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_navigation_config(config: *const tsq_community_config) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| text::optional_view(record.navigation_config.as_deref())) }
}

/// Look, as JSON text; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_ui_config(config: *const tsq_community_config) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| text::optional_view(record.ui_config.as_deref())) }
}

/// How many public keys' holders may edit the navigation: true and written to `out`, or false and `out` 0 when the column
/// has no list. `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_admin_identity_public_keys_len(
    config: *const tsq_community_config,
    out: *mut usize,
) -> bool {
    // SAFETY: `config` is NULL or live, `out` NULL or writable, by the manual.
    unsafe { read_optional(config, out, |record| record.config.admin_identity_public_keys.as_ref().map(Vec::len)) }
}

/// The public key at `index`, counted from 0; absent beyond the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_admin_identity_public_keys_at(
    config: *const tsq_community_config,
    index: usize,
) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe {
        read(config, |record| {
            let keys = record.config.admin_identity_public_keys.as_deref().unwrap_or_default();
            text::optional_view(keys.get(index).map(String::as_str))
        })
    }
}

/// Whether everyone may see it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_is_published(config: *const tsq_community_config) -> bool {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| record.config.is_published) }
}

/// Whether it may have a domain of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_custom_domain_authorized(config: *const tsq_community_config) -> bool {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| record.config.custom_domain_authorized) }
}

/// Whom to write to; may be absent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_admin_email(config: *const tsq_community_config) -> tsq_str {
    // SAFETY: `config` is NULL or live, by the manual.
    unsafe { read(config, |record| text::optional_view(record.config.admin_email.as_deref())) }
}

/// The configuration as a JSON object: its columns by their names.
///
/// Borrows `config`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_json(
    config: *const tsq_community_config,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(config, "config")?)) }
}

/// Ends a configuration. Takes `config`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_free(config: *mut tsq_community_config) {
    // SAFETY: `config` is NULL or owned by the caller, by the manual.
    unsafe { free(config) }
}
