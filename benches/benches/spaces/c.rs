//! The same reads through C: the functions of `include/townsquare.h`, called as a C program would.
//!
//! Invariant: every pointer comes from the library or lives through the call it is passed to, and each owned one is
//! freed once.

use std::{ffi::c_char, hint::black_box, path::Path, ptr};

use townsquare::Uuid;
use townsquare_ffi::{
    tsq_client, tsq_client_as_service, tsq_client_free, tsq_client_open, tsq_config_free, tsq_config_new,
    tsq_config_set, tsq_space_free, tsq_space_list_at, tsq_space_list_free, tsq_space_list_len,
    tsq_spaces_get_public_spaces, tsq_spaces_get_space, tsq_status, tsq_str,
};

/// A client of the C interface, as the service.
pub(crate) struct Client {
    client: *mut tsq_client,
    service: *mut tsq_client,
}

fn text(text: &str) -> tsq_str {
    tsq_str { ptr: text.as_ptr().cast::<c_char>(), len: text.len() }
}

fn check(status: tsq_status) {
    assert!(status == tsq_status::TSQ_OK, "the C interface failed");
}

impl Client {
    /// On a SQLite file.
    pub(crate) fn on(file: &Path) -> Client {
        let url = format!("sqlite:{}", file.display());
        let (mut client, mut service) = (ptr::null_mut(), ptr::null_mut());
        let config = tsq_config_new();
        // SAFETY: the texts and `config` live through the calls; an error is not asked for; `config` is freed once.
        unsafe {
            check(tsq_config_set(config, text("database_url"), text(&url), ptr::null_mut()));
            check(tsq_config_set(config, text("catalog_api_key"), text(""), ptr::null_mut()));
            check(tsq_client_open(config, &raw mut client, ptr::null_mut()));
            tsq_config_free(config);
            check(tsq_client_as_service(client, &raw mut service, ptr::null_mut()));
        }
        Client { client, service }
    }

    /// Asks for a space by the text of its id, reads its name, frees it; returns the bytes read.
    pub(crate) fn get_space(&self, id: Uuid) -> usize {
        let mut id_text = [0; 36];
        let id = text(id.hyphenated().encode_lower(&mut id_text));
        let (mut space, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the client is open, the id lives through the call; `space` is owned, and freed after its view was used.
        unsafe {
            check(tsq_spaces_get_space(self.service, id, &raw mut space, &raw mut error));
            let bytes = black_box((*space).name).len;
            tsq_space_free(space);
            bytes
        }
    }

    /// Asks for the first page, reads the name of each, frees the list; returns the bytes read.
    pub(crate) fn get_public_spaces(&self, limit: u32) -> usize {
        let (mut list, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the client is open; `list` is owned, its views are used before it is freed, once.
        unsafe {
            check(tsq_spaces_get_public_spaces(self.client, limit, 0, &raw mut list, &raw mut error));
            let names =
                (0..tsq_space_list_len(list)).map(|index| black_box((*tsq_space_list_at(list, index)).name).len);
            let bytes = names.sum();
            tsq_space_list_free(list);
            bytes
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: both owned, and freed once.
        unsafe {
            tsq_client_free(self.service);
            tsq_client_free(self.client);
        }
    }
}
