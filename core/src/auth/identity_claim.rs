//! Identity claims: signed JSON with which a user proves that they hold an identity key (DESIGN 4).
//!
//! Invariant: a claim contains its user, its audience, its time and its key, and no other member. So a signed file, which
//! others may have read, is not a claim; an old claim cannot be used again; and a claim that a user gave to one deployment
//! is worth nothing at another.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use crate::{
    error::{Error, ErrorKind, Result},
    signed_json::{self, PrivateKey},
};

const MAX_AGE: SignedDuration = SignedDuration::from_mins(5);

/// How far the clock of the claim's maker may be ahead.
const MAX_AHEAD: SignedDuration = SignedDuration::from_mins(1);

const MEMBERS: [&str; 5] = ["audience", "publicKey", "signature", "timestamp", "userId"];

/// Makes a claim that a user holds an identity key (Ed25519): `{publicKey, userId, audience, timestamp, signature}`.
///
/// `private_key` is the key's seed in 64 hex digits. `audience` is the
/// [`identity_audience`](crate::auth::Auth::identity_audience) of the deployment that the claim is for. The claim is valid from
/// one minute before `timestamp`, because clocks differ, until five minutes after it. Pass it to [`link_identity`](crate::auth::Auth::link_identity).
///
/// # Errors
/// `InvalidInput` when `private_key` is malformed.
///
/// # Examples
///
/// ```
/// use townsquare::{Timestamp, Uuid, auth::identity_claim};
///
/// let private_key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
/// let user_id = Uuid::from_u128(7);
/// let claim = identity_claim(user_id, private_key, "town.example", Timestamp::now())?;
/// assert_eq!(claim["userId"], user_id.to_string());
/// assert_eq!(claim["publicKey"], "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664");
/// # Ok::<(), townsquare::Error>(())
/// ```
pub fn identity_claim(user_id: Uuid, private_key: &str, audience: &str, timestamp: Timestamp) -> Result<Json> {
    let key = PrivateKey::from_hex(private_key)?;
    let mut claim = Map::new();
    claim.insert("publicKey".into(), key.public_key().into());
    claim.insert("userId".into(), user_id.hyphenated().to_string().into());
    claim.insert("audience".into(), audience.into());
    claim.insert("timestamp".into(), format!("{timestamp:.3}").into());
    let signature = key.sign(&claim);
    claim.insert("signature".into(), signature.into());
    Ok(Json::Object(claim))
}

/// Checks that a claim is valid for `user` and `audience` at `now`. Returns its public key in hex.
pub(super) fn verify(claim: &Json, user: Uuid, audience: &str, now: Timestamp) -> Result<String> {
    let malformed =
        || Error::invalid_input("An identity claim is {publicKey, userId, audience, timestamp, signature}, all texts");
    let members = claim.as_object().ok_or_else(malformed)?;
    let text = |name| members.get(name).and_then(Json::as_str).ok_or_else(malformed);
    if members.len() != MEMBERS.len() {
        return Err(malformed());
    }
    let (key, claimed_user, timestamp) = (text("publicKey")?, text("userId")?, text("timestamp")?);
    let claimed_audience = text("audience")?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let timestamp: Timestamp = timestamp.parse().map_err(|_| malformed())?;
    if key.len() != 64 || !key.bytes().all(is_hex) {
        return Err(malformed());
    }
    let refused = |why| Error::new(ErrorKind::Unauthorized, why);
    if !signed_json::verify(members) {
        return Err(refused("The identity claim's signature is not that of its key"));
    }
    if Uuid::try_parse(claimed_user).ok() != Some(user) {
        return Err(refused("The identity claim is for another user"));
    }
    if claimed_audience != audience {
        return Err(refused("The identity claim is for another audience"));
    }
    let age = now.duration_since(timestamp);
    if age > MAX_AGE {
        return Err(refused("The identity claim is older than five minutes"));
    }
    if age < -MAX_AHEAD {
        return Err(refused("The identity claim is more than a minute in the future"));
    }
    Ok(key.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    const USER: Uuid = Uuid::from_u128(7);
    const AUDIENCE: &str = "town.example";

    fn timestamp() -> Timestamp {
        "2026-03-01T10:00:00Z".parse().expect("a time")
    }

    fn claim() -> Json {
        identity_claim(USER, KEY, AUDIENCE, timestamp()).expect("a key")
    }

    fn error_kind(claim: &Json, user: Uuid, now: Timestamp) -> Option<ErrorKind> {
        verify(claim, user, AUDIENCE, now).err().map(|error| error.kind())
    }

    #[test]
    fn a_claim_is_valid_for_its_user_for_five_minutes() {
        let minutes = |minutes| timestamp() + SignedDuration::from_mins(minutes);
        assert!(verify(&claim(), USER, AUDIENCE, timestamp()).is_ok_and(|key| key.starts_with("79b5562e8fe654f9")));
        assert_eq!(error_kind(&claim(), USER, minutes(5)), None);
        assert_eq!(error_kind(&claim(), USER, minutes(-1)), None);
        assert_eq!(error_kind(&claim(), USER, minutes(6)), Some(ErrorKind::Unauthorized), "too old");
        assert_eq!(error_kind(&claim(), USER, minutes(-2)), Some(ErrorKind::Unauthorized), "from the future");
        assert_eq!(error_kind(&claim(), Uuid::from_u128(8), timestamp()), Some(ErrorKind::Unauthorized), "other user");
    }

    #[test]
    fn altered_claims_and_extra_members_are_refused() {
        for (name, value, expected) in [
            ("userId", Uuid::from_u128(8).to_string(), ErrorKind::Unauthorized),
            ("timestamp", "2026-03-01T10:00:01.000Z".into(), ErrorKind::Unauthorized),
            ("signature", "00".repeat(64), ErrorKind::Unauthorized),
            ("publicKey", "ab".repeat(32), ErrorKind::Unauthorized),
            ("publicKey", "AB".repeat(32), ErrorKind::InvalidInput),
            ("timestamp", "yesterday".into(), ErrorKind::InvalidInput),
            ("fileData", "{}".into(), ErrorKind::InvalidInput),
            ("audience", "village.example".into(), ErrorKind::Unauthorized),
        ] {
            let mut claim = claim();
            claim[name] = value.into();
            let user = if name == "userId" { Uuid::from_u128(8) } else { USER };
            assert_eq!(error_kind(&claim, user, timestamp()), Some(expected), "{name}");
        }
        let forged = json!({
            "publicKey": format!("01{}", "00".repeat(31)), "signature": format!("01{}", "00".repeat(63)),
            "userId": USER, "audience": AUDIENCE, "timestamp": timestamp().to_string(),
        });
        assert_eq!(error_kind(&forged, USER, timestamp()), Some(ErrorKind::Unauthorized), "a key of small order");
        let elsewhere = identity_claim(USER, KEY, "village.example", timestamp()).expect("a key");
        assert_eq!(error_kind(&elsewhere, USER, timestamp()), Some(ErrorKind::Unauthorized), "for another audience");
        let mut without = claim();
        without.as_object_mut().expect("an object").remove("audience");
        assert_eq!(error_kind(&without, USER, timestamp()), Some(ErrorKind::InvalidInput), "for no audience");
        assert_eq!(error_kind(&Json::Null, USER, timestamp()), Some(ErrorKind::InvalidInput));
    }
}
