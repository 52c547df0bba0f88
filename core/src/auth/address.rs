//! What an e-mail address and a password must look like.
//!
//! Invariant: an address is kept and compared trimmed and in lower case; nobody has two accounts that differ by case.

use crate::{
    error::{Error, Result},
    validate,
};

/// RFC 5321: the longest path, without its angle brackets.
const LONGEST: usize = 254;

/// An address as it is kept, whether or not anybody could have it.
pub(super) fn normalised(email: &str) -> String {
    email.trim().to_lowercase()
}

/// An address that somebody may sign up with. That mail arrives there is for the program to find out.
pub(super) fn checked(email: &str) -> Result<String> {
    validate::text("email", Some(&email))?;
    let email = normalised(email);
    let refused = || Error::invalid_input("email is not an e-mail address");
    let (local, domain) = email.rsplit_once('@').ok_or_else(refused)?;
    let is_odd = |character: char| character.is_whitespace() || character.is_control();
    if local.is_empty() || domain.is_empty() || email.len() > LONGEST || email.contains(is_odd) {
        return Err(refused());
    }
    Ok(email)
}

/// Bytes of a password at the most: more than that is nobody's, and not worth hashing.
pub(super) const LONGEST_PASSWORD: usize = 1024;

/// A password that somebody may choose.
pub(super) fn check_password(password: &str) -> Result<()> {
    if (8..=LONGEST_PASSWORD).contains(&password.len()) {
        return Ok(());
    }
    Err(Error::invalid_input("password is 8 to 1024 bytes long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_trimmed_and_lower_case() {
        assert_eq!(checked("  Ann@Example.ORG\n").ok().as_deref(), Some("ann@example.org"));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in ["", "ann", "@b.c", "ann@", "a b@c.d", "a\0@b.c", &format!("{}@b.c", "a".repeat(260))] {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn passwords_are_counted_in_bytes() {
        assert!(check_password("1234567").is_err());
        assert!(check_password("ééééé").is_ok());
        assert!(check_password(&"a".repeat(1025)).is_err());
    }
}
