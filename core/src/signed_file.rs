//! Signed files: the format of tabs and of private files (UPSTREAM 3), made, verified, encrypted and decrypted.
//!
//! Invariant: a file is decrypted only if its signature verifies and is by the key that decrypts it. No error contains a key or
//! the decrypted data.

mod cipher;

use jiff::Timestamp;
use serde_json::{Map, Value as Json};

use crate::{
    clock::Clock,
    error::{Error, Result},
    signed_json::{self, PrivateKey},
};

/// The members of a signed file besides its data.
///
/// ```
/// use townsquare::storage::SignOptions;
///
/// let options = SignOptions::new().file_name("Home");
/// assert_eq!(SignOptions::new(), SignOptions::default());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignOptions {
    file_type: String,
    file_name: Option<String>,
    timestamp: Option<Timestamp>,
}

impl Default for SignOptions {
    fn default() -> SignOptions {
        SignOptions { file_type: "json".to_owned(), file_name: None, timestamp: None }
    }
}

impl SignOptions {
    /// The type `json`, no name, and the current time.
    pub fn new() -> SignOptions {
        SignOptions::default()
    }

    /// The member `fileType`: `json` unless set.
    #[must_use]
    pub fn file_type(mut self, file_type: impl Into<String>) -> SignOptions {
        self.file_type = file_type.into();
        self
    }

    /// The member `fileName`. Unless it is set, the file has no `fileName`.
    #[must_use]
    pub fn file_name(mut self, file_name: impl Into<String>) -> SignOptions {
        self.file_name = Some(file_name.into());
        self
    }

    /// The member `timestamp`: the current time unless set. Milliseconds are kept.
    #[must_use]
    pub fn timestamp(mut self, timestamp: Timestamp) -> SignOptions {
        self.timestamp = Some(timestamp);
        self
    }
}

/// Makes a signed file with the text `file_data`, usually JSON.
///
/// `private_key` is the seed of an Ed25519 key in 64 hex digits. The result is the JSON object `{publicKey, fileData,
/// fileType, isEncrypted, timestamp, fileName?, signature}`.
///
/// # Errors
/// `InvalidInput` if `private_key` is malformed.
///
/// ```
/// use townsquare::storage::{SignOptions, sign_file, verify_file};
///
/// let private_key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
/// let mut signed = sign_file(r#"{"a":1}"#, private_key, SignOptions::new())?;
/// assert_eq!(signed["publicKey"], "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664");
/// assert!(verify_file(&signed));
///
/// signed["fileData"] = r#"{"a":2}"#.into();
/// assert!(!verify_file(&signed));
/// # Ok::<(), townsquare::Error>(())
/// ```
pub fn sign_file(file_data: &str, private_key: &str, options: SignOptions) -> Result<Json> {
    let key = PrivateKey::from_hex(private_key)?;
    Ok(sign(file_data.to_owned(), false, &key, options))
}

/// Returns true if `signed` carries a valid signature by the key in its `publicKey`.
///
/// A file made by a machine has the public key `nounspace` and a placeholder for a signature: it does not verify. A
/// signature says who signed, not who may write the file: compare `publicKey` with a key that you trust.
///
/// ```
/// use serde_json::json;
/// use townsquare::storage::verify_file;
///
/// assert!(!verify_file(&json!({"publicKey": "nounspace", "fileData": "{}", "signature": "not applicable"})));
/// ```
pub fn verify_file(signed: &Json) -> bool {
    signed.as_object().is_some_and(verify)
}

/// Returns true if `content` is the JSON text of a signed file that verifies.
pub(crate) fn verify_content(content: &[u8]) -> bool {
    serde_json::from_slice(content).is_ok_and(|signed| verify_file(&signed))
}

/// Makes a signed file with data encrypted with XChaCha20-Poly1305. Only the same private key decrypts it.
///
/// The key of the cipher is derived from `private_key` in lower-case hex, so the case of its digits does not matter.
///
/// # Errors
/// `InvalidInput` if `private_key` is malformed; `Internal` if the operating system has no random bytes.
///
/// ```
/// use townsquare::storage::{SignOptions, decrypt_file, encrypt_file};
///
/// let private_key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
/// let signed = encrypt_file(b"secret", private_key, SignOptions::new())?;
/// assert_eq!(signed["isEncrypted"], true);
/// assert_eq!(decrypt_file(&signed, private_key)?, b"secret");
/// # Ok::<(), townsquare::Error>(())
/// ```
pub fn encrypt_file(data: &[u8], private_key: &str, options: SignOptions) -> Result<Json> {
    let key = PrivateKey::from_hex(private_key)?;
    let sealed = cipher::seal(data, private_key)?;
    Ok(sign(hex::encode(sealed), true, &key, options))
}

/// Verifies an encrypted file and returns its decrypted data.
///
/// # Errors
/// `InvalidInput` if the file does not verify, is not encrypted, is of another key, or if the ciphertext is not valid.
pub fn decrypt_file(signed: &Json, private_key: &str) -> Result<Vec<u8>> {
    let refused = |why: &'static str| Error::invalid_input(why);
    let key = PrivateKey::from_hex(private_key)?;
    let members = signed.as_object().filter(|members| verify(members));
    let members = members.ok_or_else(|| refused("The signed file does not verify"))?;
    if members.get("isEncrypted") != Some(&Json::Bool(true)) {
        return Err(refused("The signed file is not encrypted"));
    }
    if members.get("publicKey").and_then(Json::as_str) != Some(&key.public_key()) {
        return Err(refused("The signed file is of another key"));
    }
    let sealed = members.get("fileData").and_then(Json::as_str).and_then(|text| hex::decode(text).ok());
    let opened = sealed.and_then(|sealed| cipher::open(&sealed, private_key));
    opened.ok_or_else(|| refused("The data of the signed file is no valid ciphertext"))
}

fn sign(file_data: String, is_encrypted: bool, key: &PrivateKey, options: SignOptions) -> Json {
    let timestamp = options.timestamp.unwrap_or_else(|| Clock::default().now());
    let mut file = Map::new();
    file.insert("publicKey".into(), key.public_key().into());
    file.insert("fileData".into(), file_data.into());
    file.insert("fileType".into(), options.file_type.into());
    file.insert("isEncrypted".into(), is_encrypted.into());
    file.insert("timestamp".into(), format!("{timestamp:.3}").into());
    if let Some(name) = options.file_name {
        file.insert("fileName".into(), name.into());
    }
    let signature = key.sign(&file);
    file.insert("signature".into(), signature.into());
    Json::Object(file)
}

/// Checks the form of key and signature, and then the signature.
fn verify(members: &Map<String, Json>) -> bool {
    let is_hex = |name: &str, length: usize| {
        let text = members.get(name).and_then(Json::as_str).unwrap_or_default();
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    is_hex("publicKey", 64) && is_hex("signature", 128) && signed_json::verify(members)
}

#[cfg(test)]
mod tests;
