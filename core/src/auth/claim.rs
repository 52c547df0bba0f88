//! The claim by which a user shows to hold an identity key (DESIGN 4).
//!
//! Invariant: a claim names the user it is for and the moment it was made, and nothing besides; so a signed file, which
//! anybody may have read, is no claim, and an old claim cannot be used again.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use crate::{
    error::{Error, ErrorKind, Result},
    signed_json::{self, PrivateKey},
};

/// How old a claim may be, and how far ahead its maker's clock.
const OLDEST: SignedDuration = SignedDuration::from_mins(5);
const AHEAD: SignedDuration = SignedDuration::from_mins(1);

const MEMBERS: [&str; 4] = ["publicKey", "signature", "timestamp", "userId"];

/// A claim that the user holds this private key: `{publicKey, userId, timestamp, signature}`.
///
/// `private_key` is the key's seed in 64 hex digits. The claim counts for five minutes from `timestamp`.
///
/// # Errors
/// `InvalidInput` when the key is none.
pub fn identity_claim(user_id: Uuid, private_key: &str, timestamp: Timestamp) -> Result<Json> {
    let key = PrivateKey::from_hex(private_key)?;
    let mut claim = Map::new();
    claim.insert("publicKey".into(), key.public_key().into());
    claim.insert("userId".into(), user_id.hyphenated().to_string().into());
    claim.insert("timestamp".into(), format!("{timestamp:.3}").into());
    let signature = key.sign(&claim);
    claim.insert("signature".into(), signature.into());
    Ok(Json::Object(claim))
}

/// The key that a claim shows `user` to hold at `now`, in hex.
pub(super) fn verified(claim: &Json, user: Uuid, now: Timestamp) -> Result<String> {
    let malformed =
        || Error::invalid_input("An identity claim is {publicKey, userId, timestamp, signature}, all texts");
    let members = claim.as_object().ok_or_else(malformed)?;
    let text = |name| members.get(name).and_then(Json::as_str).ok_or_else(malformed);
    if members.len() != MEMBERS.len() {
        return Err(malformed());
    }
    let (key, claimant, made) = (text("publicKey")?, text("userId")?, text("timestamp")?);
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let made: Timestamp = made.parse().map_err(|_| malformed())?;
    if key.len() != 64 || !key.bytes().all(is_hex) {
        return Err(malformed());
    }
    let refused = |why| Error::new(ErrorKind::Unauthorized, why);
    if !signed_json::verifies(members) {
        return Err(refused("The identity claim's signature is not that of its key"));
    }
    if Uuid::try_parse(claimant).ok() != Some(user) {
        return Err(refused("The identity claim is for another user"));
    }
    let age = now.duration_since(made);
    if age > OLDEST || age < -AHEAD {
        return Err(refused("The identity claim is too old, or from the future"));
    }
    Ok(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    const USER: Uuid = Uuid::from_u128(7);

    fn made() -> Timestamp {
        "2026-03-01T10:00:00Z".parse().expect("a time")
    }

    fn claim() -> Json {
        identity_claim(USER, KEY, made()).expect("a key")
    }

    fn kind(claim: &Json, user: Uuid, now: Timestamp) -> Option<ErrorKind> {
        verified(claim, user, now).err().map(|error| error.kind())
    }

    #[test]
    fn a_claim_counts_for_its_user_for_five_minutes() {
        let minutes = |minutes| made() + SignedDuration::from_mins(minutes);
        assert!(verified(&claim(), USER, made()).is_ok_and(|key| key.starts_with("79b5562e8fe654f9")));
        assert_eq!(kind(&claim(), USER, minutes(5)), None);
        assert_eq!(kind(&claim(), USER, minutes(-1)), None);
        assert_eq!(kind(&claim(), USER, minutes(6)), Some(ErrorKind::Unauthorized), "old");
        assert_eq!(kind(&claim(), USER, minutes(-2)), Some(ErrorKind::Unauthorized), "from the future");
        assert_eq!(kind(&claim(), Uuid::from_u128(8), made()), Some(ErrorKind::Unauthorized), "somebody else's");
    }

    #[test]
    fn a_changed_claim_and_one_with_more_in_it_are_refused() {
        for (name, value, expected) in [
            ("userId", Uuid::from_u128(8).to_string(), ErrorKind::Unauthorized),
            ("timestamp", "2026-03-01T10:00:01.000Z".into(), ErrorKind::Unauthorized),
            ("signature", "00".repeat(64), ErrorKind::Unauthorized),
            ("publicKey", "ab".repeat(32), ErrorKind::Unauthorized),
            ("publicKey", "AB".repeat(32), ErrorKind::InvalidInput),
            ("timestamp", "yesterday".into(), ErrorKind::InvalidInput),
            ("fileData", "{}".into(), ErrorKind::InvalidInput),
        ] {
            let mut claim = claim();
            claim[name] = value.into();
            let user = if name == "userId" { Uuid::from_u128(8) } else { USER };
            assert_eq!(kind(&claim, user, made()), Some(expected), "{name}");
        }
        assert_eq!(kind(&Json::Null, USER, made()), Some(ErrorKind::InvalidInput));
    }
}
