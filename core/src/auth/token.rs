//! Tokens of sessions and of mails: 256 random bits in hex. The database has the SHA-256 of a token instead of the token.
//!
//! Invariant: the database stores hashes of tokens only. A hash finds a session but cannot be used as a token. A fast
//! hash is safe here, because 256 random bits cannot be guessed; passwords need a slow one.

use ring::{
    digest::{SHA256, digest},
    hmac::{self, HMAC_SHA256},
    rand::{SecureRandom as _, SystemRandom},
};

use crate::error::{Error, ErrorKind, Result};

/// The kinds of tokens: the two of a session, and the two that the host mails.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenKind {
    Access,
    Refresh,
    Recovery,
    Verification,
}

impl TokenKind {
    /// Lets people and secret scanners recognise a token.
    fn prefix(self) -> &'static str {
        match self {
            TokenKind::Access => "tsa_",
            TokenKind::Refresh => "tsr_",
            TokenKind::Recovery => "tsrecover_",
            TokenKind::Verification => "tsverify_",
        }
    }
}

/// Makes a new token.
pub(super) fn new(kind: TokenKind) -> Result<String> {
    Ok(format!("{}{}", kind.prefix(), hex::encode(random::<32>()?)))
}

/// Makes the token that replaces a refresh token: HMAC-SHA256 of the kind and a random nonce, with the refresh token as the
/// key. It takes both to make the token: a copy of the refresh token is not enough, and neither is a copy of the nonce.
pub(super) fn successor(kind: TokenKind, refresh_token: &str, nonce: &str) -> String {
    let key = hmac::Key::new(HMAC_SHA256, refresh_token.as_bytes());
    let tag = hmac::sign(&key, format!("{}{nonce}", kind.prefix()).as_bytes());
    format!("{}{}", kind.prefix(), hex::encode(tag))
}

/// SHA-256 in hex: the database's key for a token, and for a count of a rate limit.
pub(super) fn hash(text: &str) -> String {
    hex::encode(digest(&SHA256, text.as_bytes()))
}

/// Random bytes from the operating system.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::new(ErrorKind::Internal, "the operating system has no random bytes"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_carry_the_prefix_of_their_kind() {
        let (a, b) = (new(TokenKind::Access).expect("random"), new(TokenKind::Access).expect("random"));
        assert_ne!(a, b);
        assert!(a.starts_with("tsa_") && a.len() == 68);
        assert!(new(TokenKind::Refresh).expect("random").starts_with("tsr_"));
    }

    #[test]
    fn successors_depend_on_kind_token_and_nonce() {
        let one = successor(TokenKind::Access, "tsr_1", "a");
        assert_eq!(one, successor(TokenKind::Access, "tsr_1", "a"));
        assert!(one.starts_with("tsa_") && one.len() == 68);
        let others =
            [(TokenKind::Refresh, "tsr_1", "a"), (TokenKind::Access, "tsr_2", "a"), (TokenKind::Access, "tsr_1", "b")];
        for (kind, token, nonce) in others {
            assert_ne!(one[4..], successor(kind, token, nonce)[4..]);
        }
    }

    #[test]
    fn hash_is_sha256_in_hex() {
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
