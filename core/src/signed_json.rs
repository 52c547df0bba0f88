//! JSON objects signed with an identity key (UPSTREAM 3): Ed25519 over the BLAKE3 digest of the canonical text.
//!
//! Invariant: the canonical text is the object without its `signature`, as compact JSON with the keys sorted at every
//! depth, so neither key order nor white space affects a signature. Numbers are written and keys are sorted as by
//! JavaScript, in which the format was defined (RFC 8785 does the same).

mod number;
mod public_key;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};

/// Bytes of the digest, from BLAKE3's extendable output.
const DIGEST_BYTES: usize = 256;

/// A private identity key. It has no `Debug`, because the key is a secret.
pub(crate) struct PrivateKey(Ed25519KeyPair);

impl PrivateKey {
    /// Reads a key from the 64 hex digits of its seed.
    ///
    /// # Errors
    /// `InvalidInput` for any other text; the message does not quote it.
    pub(crate) fn from_hex(text: &str) -> Result<PrivateKey> {
        let seed = hex::decode(text).ok().and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
        seed.map(PrivateKey).ok_or_else(|| Error::invalid_input("A private key is 64 hex digits"))
    }

    /// The public key, in hex.
    pub(crate) fn public_key(&self) -> String {
        hex::encode(self.0.public_key())
    }

    /// Signs an object; returns the signature in hex. A `signature` member of the object is ignored.
    pub(crate) fn sign(&self, object: &Map<String, Json>) -> String {
        hex::encode(self.0.sign(&digest(object)))
    }
}

/// Returns true if the member `signature` is a signature of the object by the key in its member `publicKey`. Refuses keys for
/// which signatures can be made without a private key.
pub(crate) fn verify(object: &Map<String, Json>) -> bool {
    let bytes = |name| object.get(name).and_then(Json::as_str).and_then(|text| hex::decode(text).ok());
    let (Some(key), Some(signature)) = (bytes("publicKey"), bytes("signature")) else { return false };
    public_key::is_acceptable(&key) && UnparsedPublicKey::new(&ED25519, key).verify(&digest(object), &signature).is_ok()
}

fn digest(object: &Map<String, Json>) -> [u8; DIGEST_BYTES] {
    let mut text = String::new();
    let members = object.iter().filter(|(name, _)| *name != "signature");
    write_members(&mut text, members);
    let mut digest = [0; DIGEST_BYTES];
    blake3::Hasher::new().update(text.as_bytes()).finalize_xof().fill(&mut digest);
    digest
}

/// Appends the canonical text of an object.
fn write_members<'a>(text: &mut String, members: impl Iterator<Item = (&'a String, &'a Json)>) {
    let mut members: Vec<_> = members.collect();
    // By UTF-16 code units, which sort characters above U+FFFF before U+E000.
    members.sort_unstable_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    text.push('{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&Json::from(name.as_str()).to_string());
        text.push(':');
        write_value(text, value);
    }
    text.push('}');
}

/// Appends the canonical text of a value.
fn write_value(text: &mut String, value: &Json) {
    match value {
        Json::Object(members) => write_members(text, members.iter()),
        Json::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(text, item);
            }
            text.push(']');
        }
        Json::Number(value) => text.push_str(&number::canonical(value)),
        Json::Null | Json::Bool(_) | Json::String(_) => text.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // Made with the JavaScript of another program that signs such files.
    const KEY: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    const SIGNATURE: &str = "7872a955678d07afa6754d61262dbd37c53bd2488d70d69bc8158166ca2533ae\
                             894816d89276d872ee05bd11c7cbbcff204cc5cea5a08318652c04eac9e5ad04";

    fn file() -> Map<String, Json> {
        let value = json!({
            "publicKey": "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664",
            "fileData": "{\"a\":1}", "fileType": "json", "isEncrypted": false,
            "timestamp": "2024-01-15T10:30:00.000Z",
        });
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn signatures_equal_those_of_other_programs() {
        let key = PrivateKey::from_hex(KEY).expect("a key");
        assert_eq!(file()["publicKey"], json!(key.public_key()));
        assert_eq!(key.sign(&file()), SIGNATURE);
    }

    #[test]
    fn signatures_of_altered_objects_are_refused() {
        let mut signed = file();
        assert!(!verify(&signed), "no signature");
        signed.insert("signature".into(), SIGNATURE.into());
        assert!(verify(&signed));
        for (name, value) in [("fileData", json!("{\"a\":2}")), ("extra", json!(1)), ("signature", json!("00"))] {
            let mut other = signed.clone();
            other.insert(name.into(), value);
            assert!(!verify(&other), "{name}");
        }
    }

    /// The y coordinates of the points of small order, and second encodings of two of them.
    const SMALL_ORDER: [&str; 7] = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];

    /// An object with a signature that satisfies the equation of Ed25519 for `key`, made without a private key: its point
    /// is the neutral one and its scalar is 0. For a key of order n, it fits one object in n.
    fn forged(key: &[u8]) -> Map<String, Json> {
        let signature = format!("01{}", "00".repeat(63));
        let bytes = hex::decode(&signature).expect("hex");
        let mut objects = (0..1_000).map(|number| {
            let object = json!({"publicKey": hex::encode(key), "signature": signature, "number": number});
            object.as_object().expect("an object").clone()
        });
        let fits =
            |object: &Map<String, Json>| UnparsedPublicKey::new(&ED25519, key).verify(&digest(object), &bytes).is_ok();
        objects.find(fits).unwrap_or_else(|| panic!("no signature fits {}", hex::encode(key)))
    }

    #[test]
    fn forged_signatures_of_keys_of_small_order_are_refused() {
        for key in SMALL_ORDER {
            let mut key = hex::decode(key).expect("hex");
            for sign in [0, 0x80] {
                key[31] |= sign;
                assert!(!verify(&forged(&key)), "{}", hex::encode(&key));
            }
        }
    }

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let mut text = String::new();
        write_value(&mut text, &json!({"b": [{"d": 1, "c": "\u{e9}\n"}], "a": null}));
        assert_eq!(text, "{\"a\":null,\"b\":[{\"c\":\"\u{e9}\\n\",\"d\":1}]}");
    }

    #[test]
    fn keys_are_sorted_by_utf_16_code_units() {
        let mut text = String::new();
        write_value(&mut text, &json!({"\u{fb33}": 1, "\u{1f600}": 2, "\u{80}": 3, "a": 4, "10": 5, "9": 6}));
        let order = "{\"10\":5,\"9\":6,\"a\":4,\"\u{80}\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}";
        assert_eq!(text, order);
    }
}
