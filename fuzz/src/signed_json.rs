//! Signed files. A text that differs from the signed one in a value does not verify, and is not decrypted.

use serde_json::Value;
use townsquare::{
    blocking::Client,
    storage::{SignOptions, UploadOptions, decrypt_file, encrypt_file, sign_file, verify_file},
};

use super::{
    Target,
    edits::edited,
    fixture::{self, KEY},
};

/// See the module.
pub struct SignedJson {
    /// Signed files: two that are the same in every process, and an encrypted one.
    signed: Vec<Value>,
    service: Client,
}

impl Target for SignedJson {
    const NAME: &'static str = "signed_json";

    fn new() -> SignedJson {
        let options = || SignOptions::new().timestamp(fixture::now());
        let signed = vec![
            sign_file("{\"a\":1}", KEY, options()).expect("a key"),
            sign_file("żółć \u{1f3d8} \"\\\n", KEY, options().file_name("tab").file_type("text")).expect("a key"),
            encrypt_file(b"secret", KEY, options()).expect("a key"),
        ];
        SignedJson { signed, service: fixture::open(fixture::in_memory()).as_service() }
    }

    fn check(&mut self, data: &[u8]) {
        let Some((&kind, rest)) = data.split_first() else { return };
        let text = match self.signed.get(usize::from(kind % 4)) {
            Some(signed) => edited(&signed.to_string(), rest),
            None => rest.to_vec(),
        };
        let parsed = serde_json::from_slice::<Value>(&text).ok();
        let is_signed = parsed.as_ref().is_some_and(|value| self.signed.contains(value));
        if let Some(value) = &parsed {
            assert_eq!(verify_file(value), is_signed, "{value}");
            match decrypt_file(value, KEY) {
                Ok(content) => assert!(content == b"secret" && value == &self.signed[2], "{value}"),
                Err(_) => assert!(value != &self.signed[2], "{value}"),
            }
        }
        // An upload that verifies takes a hundred times as long.
        if fixture::is_one_of(16, data) {
            let storage = self.service.storage();
            match storage.upload("assets", "signed", text, UploadOptions::new().verify(true)) {
                Ok(_) => {
                    assert!(is_signed, "{parsed:?}");
                    storage.delete("assets", "signed").expect("the file was uploaded");
                }
                Err(error) => assert!(!is_signed && error.status() == 400, "{error}"),
            }
        }
    }
}
