//! The same lists through C: the functions of `include/townsquare.h`, called as a C program would.
//!
//! Invariant: every pointer comes from the library or lives through the call it is passed to, and each owned one is
//! freed once.

use std::{ffi::c_char, hint::black_box, mem::MaybeUninit, path::Path, ptr};

use townsquare_ffi::{
    tsq_client, tsq_client_free, tsq_client_open, tsq_config_free, tsq_config_new, tsq_config_set,
    tsq_discovery_get_mini_apps_by_category, tsq_discovery_get_trending_mini_apps, tsq_error, tsq_mini_app_name,
    tsq_mini_apps, tsq_mini_apps_at, tsq_mini_apps_free, tsq_mini_apps_len, tsq_selection, tsq_status, tsq_str,
};
use townsquare_tests::{TempDir, temp_dir};

/// A client of the C interface.
pub(crate) struct Client {
    client: *mut tsq_client,
    _folder: TempDir,
}

fn text(text: &str) -> tsq_str {
    tsq_str { ptr: text.as_ptr().cast::<c_char>(), len: text.len() }
}

/// The macro `TSQ_SELECTION` of the header.
fn first(limit: u32) -> tsq_selection {
    tsq_selection {
        size: size_of::<tsq_selection>(),
        limit,
        is_collapsed: MaybeUninit::new(false),
        categories: ptr::null(),
        categories_len: 0,
        networks: ptr::null(),
        networks_len: 0,
        offset: 0,
    }
}

fn check(status: tsq_status) {
    assert!(status == tsq_status::TSQ_OK, "the C interface failed");
}

impl Client {
    /// On a catalog file.
    pub(crate) fn on(file: &Path) -> Client {
        let folder = temp_dir();
        let options = [
            ("data_dir", folder.path().join("data").display().to_string()),
            ("catalog_url", format!("file://{}", file.display())),
            ("catalog_max_page_bytes", (16u64 << 30).to_string()),
            ("refresh_interval", "86400".to_owned()),
        ];
        let mut client = ptr::null_mut();
        let config = tsq_config_new();
        // SAFETY: the texts and `config` live through the calls; an error is not asked for; `config` is freed once.
        unsafe {
            for (name, value) in &options {
                check(tsq_config_set(config, text(name), text(value), ptr::null_mut()));
            }
            check(tsq_client_open(config, &raw mut client, ptr::null_mut()));
            tsq_config_free(config);
        }
        let client = Client { client, _folder: folder };
        assert!(client.trending(1) > 0, "the catalog loads");
        client
    }

    /// Asks for what trends, reads the name of each, frees the list; returns the bytes read.
    pub(crate) fn trending(&self, limit: u32) -> usize {
        let selection = first(limit);
        // SAFETY: the client is open, the selection lives through the call.
        names(|out, err| unsafe {
            tsq_discovery_get_trending_mini_apps(self.client, text("24h"), &raw const selection, out, err)
        })
    }

    /// The same of a category.
    pub(crate) fn category(&self, category: &str, limit: u32) -> usize {
        let (selection, category) = (first(limit), text(category));
        // SAFETY: the client is open; the selection and the one category live through the call.
        names(|out, err| unsafe {
            let category = &raw const category;
            tsq_discovery_get_mini_apps_by_category(self.client, category, 1, &raw const selection, out, err)
        })
    }
}

fn names(list: impl FnOnce(*mut *mut tsq_mini_apps, *mut *mut tsq_error) -> tsq_status) -> usize {
    let mut apps = ptr::null_mut();
    let mut error = ptr::null_mut();
    check(list(&raw mut apps, &raw mut error));
    // SAFETY: `apps` is an owned list, its views are used before it is freed, once.
    unsafe {
        let mut bytes = 0;
        for index in 0..tsq_mini_apps_len(apps) {
            bytes += black_box(tsq_mini_app_name(tsq_mini_apps_at(apps, index))).len;
        }
        tsq_mini_apps_free(apps);
        bytes
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: owned, and freed once.
        unsafe { tsq_client_free(self.client) }
    }
}
