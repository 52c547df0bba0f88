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

/// The caller that a signed URL acts for.
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
        let limits = [
            ("max_size", token.limits.max_size.map(|size| size.to_string())),
            ("content_type", token.limits.content_type.clone()),
        ];
        let mut query = vec![
            ("method".to_owned(), token.method.as_str().to_owned()),
            ("expires".to_owned(), token.expires_at.as_second().to_string()),
            ("signer".to_owned(), token.signer.to_string()),
        ];
        query.extend(limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?))));
        let mut file = RequestedFile { bucket: bucket.to_owned(), path: path.to_owned(), query };
        let text = self.text(&file).expect("no parameter is missing");
        file.query.push(("signature".to_owned(), hex::encode(hmac::sign(&self.key, text.as_bytes()))));
        let pairs = file.query.iter().map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, ESCAPED)));
        format!("{}?{}", encode_target(bucket, path), pairs.collect::<Vec<_>>().join("&"))
    }

    /// Returns the token of a request at the time `now`. `None` if the signature is not valid, if the token has expired, and if it
    /// expires later than [`MAX_LIFE`] from `now`.
    pub(crate) fn verify(&self, file: &RequestedFile, now: Timestamp) -> Option<UrlToken> {
        let signature = hex::decode(file.parameter("signature")?).ok()?;
        hmac::verify(&self.key, self.text(file)?.as_bytes(), &signature).ok()?;
        let method = file.parameter("method")?;
        let token = UrlToken {
            method: UrlMethod::ALL.into_iter().find(|known| known.as_str() == method)?,
            signer: file.claimed_signer()?,
            expires_at: Timestamp::from_second(file.parameter("expires")?.parse().ok()?).ok()?,
            limits: PutLimits {
                max_size: file.parameter("max_size").map(str::parse).transpose().ok()?,
                content_type: file.parameter("content_type").map(str::to_owned),
            },
        };
        let latest_end = now.checked_add(MAX_LIFE + CLOCK_LEEWAY).unwrap_or(Timestamp::MAX);
        (now < token.expires_at && token.expires_at <= latest_end).then_some(token)
    }

    /// Returns the text that is signed; `None` if a parameter is missing. A valid bucket, path and media type contain no line
    /// break, so that each text belongs to one set of parts.
    fn text(&self, file: &RequestedFile) -> Option<String> {
        let limit = |name| file.parameter(name).map_or_else(|| "none".to_owned(), |limit| format!("={limit}"));
        let [method, expires, signer] = ["method", "expires", "signer"].map(|name| file.parameter(name));
        let (generation, max_size, content_type) =
            (self.generation.to_string(), limit("max_size"), limit("content_type"));
        let parts =
            [VERSION, method?, expires?, signer?, &generation, &max_size, &content_type, &file.bucket, &file.path];
        Some(parts.join("\n"))
    }
}

/// The file that a request is for, with the parameters of its query string: decoded, and not checked yet.
pub(crate) struct RequestedFile {
    pub(crate) bucket: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
}

impl RequestedFile {
    /// The value of a parameter: the first of several.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The signer that the query claims. Only [`UrlKey::verify`] says whether that is true.
    pub(super) fn claimed_signer(&self) -> Option<Signer> {
        Signer::parse(self.parameter("signer")?)
    }
}

/// Returns `/BUCKET/PATH`, escaped for a request target.
fn encode_target(bucket: &str, path: &str) -> String {
    let segments = std::iter::once(bucket).chain(path.split('/'));
    segments.map(|segment| format!("/{}", utf8_percent_encode(segment, ESCAPED))).collect()
}

crate::model::opaque!(UrlKey);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::requested_file;

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
        key.verify(&requested_file(url).expect(url), at(now))
    }

    #[test]
    fn a_signed_url_is_valid_until_it_ends() {
        for signer in [Signer::Anonymous, Signer::Service, Signer::User(Uuid::from_u128(7))] {
            for token in [token(), put_token()] {
                let token = UrlToken { signer, ..token };
                let url = key("ab").sign("assets", PATH, &token);
                assert!(url.starts_with("/assets/a%20b/caf%C3%A9.png?"), "{url}");
                assert_eq!(requested_file(&url).expect("a target").claimed_signer(), Some(signer));
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
    fn an_encoded_target_is_decoded_to_the_same_path() {
        for path in ["a", "a b/c#d?e&f=g%h+i", "caf\u{e9}/\u{1f3e0}", "%2e%2e", "a;b=c,d"] {
            let target = encode_target("assets", path);
            assert!(target.is_ascii(), "{target}");
            let file = requested_file(&target).expect("a target");
            assert_eq!((file.bucket.as_str(), file.path.as_str()), ("assets", path));
        }
    }

    #[test]
    fn a_key_is_made_from_32_bytes_or_more_and_not_shown() {
        for (length, is_key) in [(0, false), (31, false), (32, true), (64, true)] {
            assert_eq!(UrlKey::new(&"a".repeat(length), "one", 0).is_some(), is_key, "{length}");
        }
        assert_eq!(format!("{:?}", key("ab")), "UrlKey { .. }");
    }
}
