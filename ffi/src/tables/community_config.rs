//! The configuration of a community: the struct of its row, with JSON columns as text (SPEC 2.2).

use std::ptr;

use townsquare::communities::CommunityConfig;

use crate::boundary::{
    Handle, Memory, Record, RecordList, call_handle, free, handle, json, read, text, tsq_error, tsq_status, tsq_str,
    tsq_string,
};

/// The configuration of a community. A record (manual, RECORDS); freed with `tsq_community_config_free`.
#[repr(C)]
pub struct tsq_community_config {
    /// Primary key: a UUID.
    pub id: tsq_str,
    /// The community's id, 1 to 50 characters.
    pub community_id: tsq_str,
    /// Time of the last change, in microseconds; never goes back.
    pub updated_at: i64,
    /// Brand, as JSON.
    pub brand_config: tsq_str,
    /// Assets, as JSON.
    pub assets_config: tsq_str,
    /// The community itself, as JSON.
    pub community_config: tsq_str,
    /// The fidgets that it offers, as JSON.
    pub fidgets_config: tsq_str,
    /// Navigation, as JSON; may be absent.
    pub navigation_config: tsq_str,
    /// Look, as JSON; may be absent.
    pub ui_config: tsq_str,
    /// Public keys of users who may edit the navigation; NULL when the column is NULL.
    pub admin_identity_public_keys: *const tsq_str,
    /// Number of public keys.
    pub admin_identity_public_keys_len: usize,
    /// Whether every caller may read it.
    pub is_published: bool,
    /// Whether it may have its own domain.
    pub custom_domain_authorized: bool,
    /// E-mail address of the administrator; may be absent.
    pub admin_email: tsq_str,
}

impl Record for tsq_community_config {
    type Source = CommunityConfig;

    fn new(config: &CommunityConfig, memory: &mut Memory) -> tsq_community_config {
        let keys = config.admin_identity_public_keys.as_ref();
        let keys: Option<Vec<_>> = keys.map(|keys| keys.iter().map(|key| text::view(key)).collect());
        tsq_community_config {
            id: memory.id(config.id),
            community_id: text::view(&config.community_id),
            updated_at: config.updated_at.as_microsecond(),
            brand_config: memory.json(&config.brand_config),
            assets_config: memory.json(&config.assets_config),
            community_config: memory.json(&config.community_config),
            fidgets_config: memory.json(&config.fidgets_config),
            navigation_config: memory.optional_json(config.navigation_config.as_ref()),
            ui_config: memory.optional_json(config.ui_config.as_ref()),
            admin_identity_public_keys_len: keys.as_ref().map_or(0, Vec::len),
            admin_identity_public_keys: keys.map_or(ptr::null(), |keys| memory.array(keys)),
            is_published: config.is_published,
            custom_domain_authorized: config.custom_domain_authorized,
            admin_email: text::optional_view(config.admin_email.as_deref()),
        }
    }
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
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(config, "config")?)) }
}

/// Frees a configuration. Takes `config`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_free(config: *mut tsq_community_config) {
    // SAFETY: `config` is NULL or owned by the caller, by the manual.
    unsafe { free(config) }
}

/// A list of configurations. Freed with `tsq_community_config_list_free`.
pub struct tsq_community_config_list {
    _opaque: [u8; 0],
}

impl Handle for tsq_community_config_list {
    type Value = RecordList<tsq_community_config>;
}

/// The number of configurations; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_list_len(list: *const tsq_community_config_list) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The configuration at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_list_at(
    list: *const tsq_community_config_list,
    index: usize,
) -> *const tsq_community_config {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of the objects of `tsq_community_config_json`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_list_json(
    list: *const tsq_community_config_list,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its configurations. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_config_list_free(list: *mut tsq_community_config_list) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}
