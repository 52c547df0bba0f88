//! Session tokens: 256 random bits, shown once, kept as a hash.
//!
//! Invariant: the database holds no token, only SHA-256 of one; that is enough to find a session and of no use to whoever
//! reads the table. (Unlike passwords, 256 random bits cannot be guessed, so a fast hash is safe.)

use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom as _, SystemRandom},
};

use crate::error::{Error, ErrorKind, Result};

/// Which of a session's two tokens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Access,
    Refresh,
}

/// A new token.
pub(super) fn new(kind: Kind) -> Result<String> {
    // Prefixes let people, and scanners of leaked text, recognise one.
    let prefix = match kind {
        Kind::Access => "tsa_",
        Kind::Refresh => "tsr_",
    };
    Ok(format!("{prefix}{}", hex::encode(random::<32>()?)))
}

/// What the database knows a token, or an address that failed to sign in, by.
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
    fn tokens_differ_and_say_what_they_are() {
        let (a, b) = (new(Kind::Access).expect("random"), new(Kind::Access).expect("random"));
        assert_ne!(a, b);
        assert!(a.starts_with("tsa_") && a.len() == 68);
        assert!(new(Kind::Refresh).expect("random").starts_with("tsr_"));
    }

    #[test]
    fn a_hash_is_what_sha256_says() {
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
