//! The tokens of signed URLs: HMAC-SHA256 over what the URL permits.
//!
//! Invariant: the signature covers the method, the bucket, the path, the end and the signer, so that none of them can be
//! changed. It is compared in constant time. The key is never shown.

use std::fmt;

use jiff::Timestamp;
use ring::hmac;
use uuid::Uuid;

use super::target::{Target, encode_target};
use crate::model::UrlMethod;

/// Changes when the signed text changes its form.
const VERSION: &str = "townsquare-url-1";

/// Whom a signed URL acts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signer {
    Anonymous,
    User(Uuid),
    Service,
}

impl Signer {
    fn parse(text: &str) -> Option<Signer> {
        match text {
            "anonymous" => Some(Signer::Anonymous),
            "service" => Some(Signer::Service),
            _ => Uuid::try_parse(text).ok().map(Signer::User),
        }
    }
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Signer::Anonymous => f.write_str("anonymous"),
            Signer::User(id) => write!(f, "{id}"),
            Signer::Service => f.write_str("service"),
        }
    }
}

/// What a signed URL permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UrlToken {
    pub(crate) method: UrlMethod,
    pub(crate) signer: Signer,
    /// The first moment at which the URL is refused, to the second.
    pub(crate) expires_at: Timestamp,
}

/// The key of signed URLs, from the database.
pub(crate) struct UrlKey(hmac::Key);

impl UrlKey {
    /// Reads a key of 32 bytes in hex; `None` for other text.
    pub(crate) fn from_hex(text: &str) -> Option<UrlKey> {
        let bytes = hex::decode(text).ok().filter(|bytes| bytes.len() == 32)?;
        Some(UrlKey(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// Returns `/BUCKET/PATH?…` with the token.
    pub(crate) fn sign(&self, bucket: &str, path: &str, token: UrlToken) -> String {
        let (method, signer) = (token.method.as_str(), token.signer.to_string());
        let expires = token.expires_at.as_second().to_string();
        let signature = hmac::sign(&self.0, signed_text(method, bucket, path, &expires, &signer).as_bytes());
        let target = encode_target(bucket, path);
        format!("{target}?method={method}&expires={expires}&signer={signer}&signature={}", hex::encode(signature))
    }

    /// Returns the token of a target at the time `now`. `None` if the signature is not valid or the token has ended.
    pub(crate) fn verify(&self, target: &Target, now: Timestamp) -> Option<UrlToken> {
        let parameter = |name| target.parameter(name);
        let (method, expires, signer) = (parameter("method")?, parameter("expires")?, parameter("signer")?);
        let signature = hex::decode(parameter("signature")?).ok()?;
        let text = signed_text(method, &target.bucket, &target.path, expires, signer);
        hmac::verify(&self.0, text.as_bytes(), &signature).ok()?;
        let token = UrlToken {
            method: UrlMethod::ALL.into_iter().find(|known| known.as_str() == method)?,
            signer: Signer::parse(signer)?,
            expires_at: Timestamp::from_second(expires.parse().ok()?).ok()?,
        };
        (now < token.expires_at).then_some(token)
    }
}

impl Target {
    /// Returns true if the target claims to be signed. Then the token decides, and no other credential.
    pub(crate) fn is_signed(&self) -> bool {
        self.parameter("signature").is_some()
    }
}

/// A valid bucket and path contain no line break, so that each text belongs to one set of parts.
fn signed_text(method: &str, bucket: &str, path: &str, expires: &str, signer: &str) -> String {
    [VERSION, method, expires, signer, bucket, path].join("\n")
}

impl fmt::Debug for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UrlKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "a b/caf\u{e9}.png";

    fn key(byte: &str) -> UrlKey {
        UrlKey::from_hex(&byte.repeat(32)).expect("a key")
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn token() -> UrlToken {
        UrlToken { method: UrlMethod::Get, signer: Signer::User(Uuid::from_u128(7)), expires_at: at(1_000) }
    }

    fn verify(url: &str, key: &UrlKey, now: i64) -> Option<UrlToken> {
        key.verify(&Target::parse(url).expect(url), at(now))
    }

    #[test]
    fn a_signed_url_is_valid_until_it_ends() {
        for signer in [Signer::Anonymous, Signer::Service, Signer::User(Uuid::from_u128(7))] {
            for method in UrlMethod::ALL {
                let token = UrlToken { method, signer, ..token() };
                let url = key("ab").sign("assets", PATH, token);
                assert!(url.starts_with("/assets/a%20b/caf%C3%A9.png?"), "{url}");
                assert_eq!(verify(&url, &key("ab"), 999), Some(token), "{url}");
                assert_eq!(verify(&url, &key("ab"), 1_000), None, "ended");
                assert_eq!(verify(&url, &key("cd"), 999), None, "another key");
            }
        }
    }

    #[test]
    fn no_part_of_a_signed_url_can_be_changed() {
        let url = key("ab").sign("assets", PATH, token());
        assert!(verify(&url, &key("ab"), 0).is_some());
        for (from, to) in [
            ("method=GET", "method=PUT"),
            ("method=GET", "method=get"),
            ("expires=1000", "expires=1001"),
            ("expires=1000", "expires=01000"),
            ("signer=00000000-0000-0000-0000-000000000007", "signer=00000000-0000-0000-0000-000000000008"),
            ("signer=00000000-0000-0000-0000-000000000007", "signer=service"),
            ("signer=00000000-0000-0000-0000-000000000007", "signer=00000000000000000000000000000007"),
            ("/assets/", "/private/"),
            ("/a%20b/", "/a%20c/"),
            ("/assets/a%20b", "/assets/"),
            ("/assets/", "/assets%0Aa/"),
            ("signature=", "signature=00"),
            ("&signature=", "&signature=&signature="),
            ("&signature=", "&other="),
            ("method=GET&", ""),
            ("&expires=1000", ""),
        ] {
            let changed = url.replacen(from, to, 1);
            assert_ne!(changed, url, "{from}");
            assert_eq!(verify(&changed, &key("ab"), 0), None, "{changed}");
        }
        let shorter = &url[..url.len() - 2];
        assert_eq!(verify(shorter, &key("ab"), 0), None, "a shorter signature");
    }

    #[test]
    fn a_target_with_a_signature_is_signed_even_if_it_is_not_valid() {
        let is_signed = |target| Target::parse(target).expect("a target").is_signed();
        assert!(is_signed("/a/b?signature=") && is_signed("/a/b?x=1&signature=00"));
        assert!(!is_signed("/a/b?method=GET&expires=1&signer=service") && !is_signed("/a/signature"));
    }

    #[test]
    fn a_key_is_32_bytes_in_hex_and_not_shown() {
        for text in ["", "ab", "zz", &"ab".repeat(31), &"ab".repeat(33), &"zz".repeat(32)] {
            assert!(UrlKey::from_hex(text).is_none(), "{text}");
        }
        assert_eq!(format!("{:?}", key("ab")), "UrlKey");
    }
}
