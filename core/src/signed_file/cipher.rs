//! The encryption of signed files: XChaCha20-Poly1305 with a key derived by HKDF-SHA256 (UPSTREAM 3).
//!
//! Invariant: each message has a nonce of 24 new random bytes, which stands in front of the ciphertext.

use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce, aead::Aead as _};
use ring::{
    hkdf::{HKDF_SHA256, Salt},
    rand::{SecureRandom as _, SystemRandom},
};

use crate::error::{Error, ErrorKind, Result};

const NONCE_BYTES: usize = 24;

/// The salt of the key derivation: these four letters.
const SALT: &[u8] = b"salt";

/// Encrypts `data`; returns nonce, ciphertext and tag.
pub(super) fn seal(data: &[u8], private_key: &str) -> Result<Vec<u8>> {
    let mut nonce = [0; NONCE_BYTES];
    let internal = |why: &'static str| Error::new(ErrorKind::Internal, why);
    SystemRandom::new().fill(&mut nonce).map_err(|_| internal("the operating system has no random bytes"))?;
    let ciphertext = cipher(private_key).encrypt(&XNonce::from(nonce), data);
    let ciphertext = ciphertext.map_err(|_| Error::new(ErrorKind::TooLarge, "The data is too large to encrypt"))?;
    Ok([&nonce[..], &ciphertext].concat())
}

/// Decrypts what [`seal`] returned; `None` if it is malformed, was altered, or is of another key.
pub(super) fn open(sealed: &[u8], private_key: &str) -> Option<Vec<u8>> {
    let (nonce, ciphertext) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    cipher(private_key).decrypt(&XNonce::from(*nonce), ciphertext).ok()
}

/// The input of the key derivation is the private key as its hex text, not its bytes.
fn cipher(private_key: &str) -> XChaCha20Poly1305 {
    let mut key = [0; 32];
    let secret = private_key.to_ascii_lowercase();
    let extracted = Salt::new(HKDF_SHA256, SALT).extract(secret.as_bytes());
    extracted
        .expand(&[], HKDF_SHA256)
        .and_then(|output| output.fill(&mut key))
        .expect("HKDF-SHA256 gives 32 bytes, the length of one digest");
    XChaCha20Poly1305::new(&key.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";

    #[test]
    fn sealed_data_opens_with_its_key_alone_and_unaltered() {
        let sealed = seal(b"data", KEY).expect("random bytes");
        assert_eq!(open(&sealed, KEY).as_deref(), Some(&b"data"[..]));
        assert_eq!(open(&sealed, &"ab".repeat(32)), None, "another key");
        for index in [0, NONCE_BYTES - 1, NONCE_BYTES, sealed.len() - 1] {
            let mut altered = sealed.clone();
            altered[index] ^= 1;
            assert_eq!(open(&altered, KEY), None, "byte {index}");
        }
        for length in [0, NONCE_BYTES - 1, NONCE_BYTES, NONCE_BYTES + 15, sealed.len() - 1] {
            assert_eq!(open(&sealed[..length], KEY), None, "{length} bytes");
        }
    }

    #[test]
    fn each_message_has_its_own_nonce() {
        let sealed = || seal(b"data", KEY).expect("random bytes");
        assert_ne!(sealed()[..NONCE_BYTES], sealed()[..NONCE_BYTES]);
    }
}
