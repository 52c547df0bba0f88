//! The tokens of signed URLs: HMAC-SHA256 over what the URL permits.
//!
//! Invariant: the signature covers the method, the bucket, the path, the end, the signer with the signer's generation, and the
//! limits of a PUT, so that none of them can be changed. It is compared in constant time. The key is never shown.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ring::hmac;
use uuid::Uuid;

use crate::model::UrlMethod;

/// Changes when the signed text changes its form.
const VERSION: &str = "townsquare-url-2";

/// The characters that are escaped: all but RFC 3986's unreserved ones. The same set serves RFC 8187.
pub(crate) const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The fewest bytes of the text that a key is made from.
pub(super) const MIN_KEY: usize = 32;

/// The longest time for which a URL is valid.
pub(super) const MAX_LIFE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How far the clocks of two processes may differ. The end of a URL is rounded up to a second.
const CLOCK_LEEWAY: Duration = Duration::from_secs(60);

/// Whom a signed URL acts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signer {
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

    /// The user, if the signer is one.
    pub(crate) fn user_id(self) -> Option<Uuid> {
        match self {
            Signer::User(id) => Some(id),
            Signer::Anonymous | Signer::Service => None,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UrlToken {
    pub(crate) method: UrlMethod,
    pub(crate) signer: Signer,
    /// The first moment at which the URL is refused, to the second.
    pub(crate) expires_at: Timestamp,
    pub(crate) limits: PutLimits,
}

/// What a signed URL says about the file that a PUT stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PutLimits {
    /// The largest size in bytes.
    pub(crate) max_size: Option<u64>,
    /// The media type. It has no line break.
    pub(crate) content_type: Option<String>,
}

/// The key of signed URLs for one signer.
pub(super) struct UrlKey {
    key: hmac::Key,
    /// The signer's generation, which ends the URLs that a user signed before.
    generation: i64,
}

impl UrlKey {
    /// Makes the key of a database from `secret`; `None` if that is shorter than [`MIN_KEY`]. Two databases with the same secret
    /// refuse each other's URLs.
    pub(crate) fn new(secret: &str, incarnation: &str, generation: i64) -> Option<UrlKey> {
        if secret.len() < MIN_KEY {
            return None;
        }
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let of_database = hmac::sign(&secret, incarnation.as_bytes());
        Some(UrlKey { key: hmac::Key::new(hmac::HMAC_SHA256, of_database.as_ref()), generation })
    }

    /// Returns `/BUCKET/PATH?…` with the token.
    pub(crate) fn sign(&self, bucket: &str, path: &str, token: &UrlToken) -> String {
        let (method, signer) = (token.method.as_str(), token.signer.to_string());
        let expires = token.expires_at.as_second().to_string();
        let max_size = token.limits.max_size.map(|size| size.to_string());
        let (max_size, content_type) = (max_size.as_deref(), token.limits.content_type.as_deref());
        let text = SignedText { method, bucket, path, expires: &expires, signer: &signer, max_size, content_type };
        let signature = hex::encode(hmac::sign(&self.key, self.text(&text).as_bytes()));
        let target = encode_target(bucket, path);
        let mut url = format!("{target}?method={method}&expires={expires}&signer={signer}");
        for (name, value) in [("&max_size=", max_size), ("&content_type=", content_type)] {
            if let Some(value) = value {
                url.push_str(name);
                url.extend(utf8_percent_encode(value, ESCAPED));
            }
        }
        url + "&signature=" + &signature
    }

    /// Returns the token of a target at the time `now`. `None` if the signature is not valid, if the token has expired, and if it
    /// expires later than [`MAX_LIFE`] from `now`.
    pub(crate) fn verify(&self, target: &SignedTarget<'_>, now: Timestamp) -> Option<UrlToken> {
        let parameter = |name| target.parameter(name);
        let (method, expires, signer) = (parameter("method")?, parameter("expires")?, parameter("signer")?);
        let (max_size, content_type) = (parameter("max_size"), parameter("content_type"));
        let SignedTarget { bucket, path, .. } = *target;
        let signature = hex::decode(parameter("signature")?).ok()?;
        let text = SignedText { method, bucket, path, expires, signer, max_size, content_type };
        hmac::verify(&self.key, self.text(&text).as_bytes(), &signature).ok()?;
        let token = UrlToken {
            method: UrlMethod::ALL.into_iter().find(|known| known.as_str() == method)?,
            signer: Signer::parse(signer)?,
            expires_at: Timestamp::from_second(expires.parse().ok()?).ok()?,
            limits: PutLimits {
                max_size: max_size.map(str::parse).transpose().ok()?,
                content_type: content_type.map(str::to_owned),
            },
        };
        let latest_end = now.checked_add(MAX_LIFE + CLOCK_LEEWAY).unwrap_or(Timestamp::MAX);
        (now < token.expires_at && token.expires_at <= latest_end).then_some(token)
    }

    /// Returns the text that is signed. A valid bucket, path and media type contain no line break, so that each text belongs to
    /// one set of parts.
    fn text(&self, parts: &SignedText<'_>) -> String {
        let SignedText { method, bucket, path, expires, signer, max_size, content_type } = *parts;
        let or_none = |limit: Option<&str>| limit.map_or_else(|| "none".to_owned(), |limit| format!("={limit}"));
        let generation = self.generation.to_string();
        let limits = [or_none(max_size), or_none(content_type)];
        [VERSION, method, expires, signer, &generation, &limits[0], &limits[1], bucket, path].join("\n")
    }
}

/// The parts of a URL that a signature covers, as they are written in the URL.
#[derive(Clone, Copy)]
struct SignedText<'a> {
    method: &'a str,
    bucket: &'a str,
    path: &'a str,
    expires: &'a str,
    signer: &'a str,
    max_size: Option<&'a str>,
    content_type: Option<&'a str>,
}

/// A decoded target with the parameters of its query string. Whether it is signed is not known yet.
#[derive(Clone, Copy)]
pub(crate) struct SignedTarget<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a [(String, String)],
}

impl<'a> SignedTarget<'a> {
    /// Returns true if the target claims to be signed. Then the token decides, and no other credential.
    pub(crate) fn is_signed(&self) -> bool {
        self.parameter("signature").is_some()
    }

    /// The signer that the target claims. Only [`UrlKey::verify`] says whether that is true.
    pub(super) fn claimed_signer(&self) -> Option<Signer> {
        Signer::parse(self.parameter("signer")?)
    }

    /// The value of a parameter: the first of several.
    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Returns `/BUCKET/PATH`, escaped for a request target.
fn encode_target(bucket: &str, path: &str) -> String {
    let segments = std::iter::once(bucket).chain(path.split('/'));
    segments.map(|segment| format!("/{}", utf8_percent_encode(segment, ESCAPED))).collect()
}

impl fmt::Debug for UrlKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UrlKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::RequestedFile;

    const PATH: &str = "a b/caf\u{e9}.png";

    fn key_of(byte: &str, incarnation: &str, generation: i64) -> UrlKey {
        UrlKey::new(&byte.repeat(32), incarnation, generation).expect("a key")
    }

    fn key(byte: &str) -> UrlKey {
        key_of(byte, "one", 0)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn token() -> UrlToken {
        let (signer, limits) = (Signer::User(Uuid::from_u128(7)), PutLimits::default());
        UrlToken { method: UrlMethod::Get, signer, expires_at: at(1_000), limits }
    }

    fn put_token() -> UrlToken {
        let limits = PutLimits { max_size: Some(10), content_type: Some("text/plain; a=\"b\"".to_owned()) };
        UrlToken { method: UrlMethod::Put, limits, ..token() }
    }

    fn verify(url: &str, key: &UrlKey, now: i64) -> Option<UrlToken> {
        key.verify(&RequestedFile::parse(url).expect(url).signed(), at(now))
    }

    #[test]
    fn a_signed_url_is_valid_until_it_ends() {
        for signer in [Signer::Anonymous, Signer::Service, Signer::User(Uuid::from_u128(7))] {
            for token in [token(), put_token()] {
                let token = UrlToken { signer, ..token };
                let url = key("ab").sign("assets", PATH, &token);
                assert!(url.starts_with("/assets/a%20b/caf%C3%A9.png?"), "{url}");
                assert_eq!(RequestedFile::parse(&url).expect("a target").signed().claimed_signer(), Some(signer));
                assert_eq!(verify(&url, &key("ab"), 999), Some(token), "{url}");
                assert_eq!(verify(&url, &key("ab"), 1_000), None, "ended");
                assert_eq!(verify(&url, &key("cd"), 999), None, "another key");
                assert_eq!(verify(&url, &key_of("ab", "two", 0), 999), None, "another database with the same key");
                assert_eq!(verify(&url, &key_of("ab", "one", 1), 999), None, "another generation");
            }
        }
    }

    #[test]
    fn a_url_with_a_longer_life_than_any_may_have_is_refused() {
        let (life, leeway) = (MAX_LIFE.as_secs().cast_signed(), CLOCK_LEEWAY.as_secs().cast_signed());
        for (expires_at, is_valid) in
            [(life, true), (life + leeway, true), (life + leeway + 1, false), (253_402_207_200, false)]
        {
            let url = key("ab").sign("assets", PATH, &UrlToken { expires_at: at(expires_at), ..token() });
            assert_eq!(verify(&url, &key("ab"), 0).is_some(), is_valid, "{expires_at}");
        }
    }

    #[test]
    fn no_part_of_a_signed_url_can_be_changed() {
        let id = "00000000-0000-0000-0000-000000000007";
        for (token, changes) in [
            (
                token(),
                &[
                    ("method=GET", "method=PUT".to_owned()),
                    ("method=GET", "method=get".to_owned()),
                    ("expires=1000", "expires=1001".to_owned()),
                    ("expires=1000", "expires=01000".to_owned()),
                    (id, id.replace('7', "8")),
                    (id, "service".to_owned()),
                    (id, id.replace('-', "")),
                    ("/assets/", "/private/".to_owned()),
                    ("/a%20b/", "/a%20c/".to_owned()),
                    ("/assets/a%20b", "/assets/".to_owned()),
                    ("/assets/", "/assets%0Aa/".to_owned()),
                    ("signature=", "signature=00".to_owned()),
                    ("&signature=", "&signature=&signature=".to_owned()),
                    ("&signature=", "&other=".to_owned()),
                    ("&signature=", "&max_size=10&signature=".to_owned()),
                    ("&signature=", "&content_type=&signature=".to_owned()),
                    ("method=GET&", String::new()),
                    ("&expires=1000", String::new()),
                ][..],
            ),
            (
                put_token(),
                &[
                    ("max_size=10", "max_size=100".to_owned()),
                    ("max_size=10", "max_size=".to_owned()),
                    ("max_size=10", "max_size=none".to_owned()),
                    ("&max_size=10", String::new()),
                    ("&max_size=10", "&max_size=11&max_size=10".to_owned()),
                    ("content_type=text", "content_type=".to_owned()),
                    ("&content_type=", "&content=".to_owned()),
                ][..],
            ),
        ] {
            let url = key("ab").sign("assets", PATH, &token);
            assert!(verify(&url, &key("ab"), 0).is_some());
            for (from, to) in changes {
                let changed = url.replacen(from, to, 1);
                assert_ne!(changed, url, "{from}");
                assert_eq!(verify(&changed, &key("ab"), 0), None, "{changed}");
            }
            let shorter = &url[..url.len() - 2];
            assert_eq!(verify(shorter, &key("ab"), 0), None, "a shorter signature");
        }
    }

    #[test]
    fn a_target_with_a_signature_is_signed_even_if_it_is_not_valid() {
        let is_signed = |target| RequestedFile::parse(target).expect("a target").signed().is_signed();
        assert!(is_signed("/a/b?signature=") && is_signed("/a/b?x=1&signature=00"));
        assert!(!is_signed("/a/b?method=GET&expires=1&signer=service") && !is_signed("/a/signature"));
    }

    #[test]
    fn an_encoded_target_is_decoded_to_the_same_path() {
        for path in ["a", "a b/c#d?e&f=g%h+i", "caf\u{e9}/\u{1f3e0}", "%2e%2e", "a;b=c,d"] {
            let target = encode_target("assets", path);
            assert!(target.is_ascii(), "{target}");
            let file = RequestedFile::parse(&target).expect("a target");
            assert_eq!((file.bucket.as_str(), file.path.as_str()), ("assets", path));
        }
    }

    #[test]
    fn a_key_is_made_from_32_bytes_or_more_and_not_shown() {
        for (length, is_key) in [(0, false), (31, false), (32, true), (64, true)] {
            assert_eq!(UrlKey::new(&"a".repeat(length), "one", 0).is_some(), is_key, "{length}");
        }
        assert_eq!(format!("{:?}", key("ab")), "UrlKey");
    }
}
