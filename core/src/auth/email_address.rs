//! E-mail addresses: their normal form, and the check of an address for a new account.
//!
//! Invariant: addresses are stored and compared trimmed and in lower case, so no two accounts differ by case alone.

use crate::{
    error::{Error, Result},
    validate,
};

/// Bytes of the longest address (RFC 5321: a path of 256 without its angle brackets).
const MAX_BYTES: usize = 254;

/// Returns the normal form of an address. Text without one is the address of no account. The library does not check that the
/// address receives mail.
///
/// # Errors
/// `InvalidInput` when the text is not an address.
pub(crate) fn validated(email: &str) -> Result<String> {
    validate::text("email", Some(&email))?;
    let email = email.trim().to_lowercase();
    let refused = || Error::invalid_input("email is not an e-mail address");
    let (local, domain) = email.rsplit_once('@').ok_or_else(refused)?;
    let is_forbidden = |character: char| character.is_whitespace() || character.is_control();
    if local.is_empty() || domain.is_empty() || email.len() > MAX_BYTES || email.contains(is_forbidden) {
        return Err(refused());
    }
    Ok(email)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_trimmed_and_lower_case() {
        assert_eq!(validated("  Ann@Example.ORG\n").ok().as_deref(), Some("ann@example.org"));
    }

    #[test]
    fn malformed_addresses_are_refused() {
        for bad in ["", "ann", "@b.c", "ann@", "a b@c.d", "a\0@b.c", &format!("{}@b.c", "a".repeat(260))] {
            assert!(validated(bad).is_err(), "{bad:?}");
        }
    }
}
