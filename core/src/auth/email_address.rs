//! E-mail addresses: their normal form, and the check of an address for a new account.
//!
//! Invariant: addresses are stored and compared trimmed and in lower case, so no two accounts differ by case alone. The address of
//! a new account is one address for every program that sends mail: none takes it for a list, or for a name with an address. An
//! account that has another one, from an import or an earlier version, is found by it.

use crate::{
    error::{Error, Result},
    validate,
};

/// Bytes of the longest address (RFC 5321: a path of 256 without its angle brackets).
const MAX_BYTES: usize = 254;

/// Returns the normal form of the address of an account. Text without one is the address of no account.
///
/// # Errors
/// `InvalidInput` when the text is not an address.
pub(crate) fn normal(email: &str) -> Result<String> {
    validate::text("email", Some(&email))?;
    let email = email.trim().to_lowercase();
    let (local, domain) = email.rsplit_once('@').ok_or_else(refused)?;
    let is_forbidden = |character: char| character.is_whitespace() || character.is_control();
    if local.is_empty() || domain.is_empty() || email.len() > MAX_BYTES || email.contains(is_forbidden) {
        return Err(refused());
    }
    Ok(email)
}

/// Returns the normal form of the address of a new account: a dot-atom of RFC 5322, `@`, and the labels of a domain, both also with
/// letters of other alphabets (RFC 6531). The library does not check that the address receives mail.
///
/// # Errors
/// `InvalidInput` when the text is not such an address.
pub(crate) fn validated(email: &str) -> Result<String> {
    let email = normal(email)?;
    let (local, domain) = email.split_once('@').ok_or_else(refused)?;
    match local.chars().all(is_of_local_part) && domain.split('.').all(is_label) {
        true => Ok(email),
        false => Err(refused()),
    }
}

fn refused() -> Error {
    Error::invalid_input("email is not an e-mail address")
}

fn is_of_local_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(character) || is_foreign(character)
}

/// Whether the text is a part of a domain between dots.
fn is_label(text: &str) -> bool {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '-' || is_foreign(character);
    !text.is_empty() && text.chars().all(is_allowed) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether a character belongs to a word of another alphabet. Invisible characters, controls of the direction of the text and the
/// ASCII characters of another width are not: with them one address could look like another.
fn is_foreign(character: char) -> bool {
    let is_refused = character.is_whitespace()
        || character.is_control()
        || matches!(
            character,
            '\u{AD}'
                | '\u{34F}'
                | '\u{61C}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{206F}'
                | '\u{3164}'
                | '\u{E000}'..='\u{F8FF}'
                | '\u{FE00}'..='\u{FE6F}'
                | '\u{FEFF}'..='\u{FFEF}'
                | '\u{FFF0}'..='\u{FFFF}'
                | '\u{E0000}'..
        );
    !character.is_ascii() && !is_refused
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
        for domain in [".", "a.", ".a", "a..b", "-a", "a-", "a_b", "[127.0.0.1]", "a:25", "a>"] {
            assert!(validated(&format!("ann@{domain}")).is_err(), "{domain}");
        }
    }

    #[test]
    fn what_a_mailer_takes_for_several_addresses_is_refused() {
        for bad in [
            "me@a.example,you@b.example",
            "you@b.example<me@a.example>",
            "<me@x>",
            "a@b@c",
            "@@x",
            "me@a;you@b",
            "a@x?bcc=b@y",
        ] {
            assert!(validated(bad).is_err(), "{bad:?}");
        }
        for character in "\"(),:;<>@[\\]\u{AD}\u{200B}\u{202E}\u{2066}\u{FEFF}\u{FF20}\u{FF0C}\u{E0001}".chars() {
            assert!(validated(&format!("a{character}b@c.example")).is_err(), "{character:?}");
            assert!(validated(&format!("ab@c{character}d.example")).is_err(), "{character:?}");
        }
    }

    #[test]
    fn addresses_of_every_alphabet_are_accepted() {
        for good in [
            "a@b",
            "o'neil+town@sub.town.example",
            "a..b@docomo.example",
            "jos\u{e9}@b\u{fc}cher.example",
            "\u{915}\u{94d}\u{937}@\u{92d}\u{93e}.example",
        ] {
            assert_eq!(validated(good).ok().as_deref(), Some(good));
        }
    }
}
