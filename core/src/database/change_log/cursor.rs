//! The text form of positions: the cursors that programs store.
//!
//! A cursor is `INCARNATION.TRANSACTION.ID`, on PostgreSQL sometimes followed by `.SNAPSHOT`. Programs treat it as opaque.

use std::{fmt::Write, sync::Arc};

use super::{EntryKey, Position};
use crate::error::{Error, Result};

/// The cursor of a position.
pub(crate) fn cursor_text(position: &Position, incarnation: &str) -> String {
    let EntryKey { id, transaction } = position.after;
    let mut text = String::with_capacity(incarnation.len() + 24);
    // Writing to a String cannot fail.
    let _ = write!(text, "{incarnation}.{transaction}.{id}");
    if let Some(snapshot) = &position.seen {
        let _ = write!(text, ".{snapshot}");
    }
    text
}

/// Reads a cursor.
///
/// # Errors
/// `InvalidInput` for a text that is no cursor; `CursorExpired` for a cursor of another incarnation.
pub(crate) fn parse_cursor(text: &str, incarnation: &str) -> Result<Position> {
    let no_cursor = || Error::invalid_input("The text is no cursor of the change feed");
    let mut parts = text.splitn(4, '.');
    let mut part = || parts.next().ok_or_else(no_cursor);
    let (of_cursor, transaction, id) = (part()?, part()?, part()?);
    let is_incarnation = of_cursor.len() == 32 && of_cursor.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = |text: &str| -> Result<u64> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number).ok_or_else(no_cursor)
    };
    let id = i64::try_from(number(id)?).map_err(|_| no_cursor())?;
    let key = EntryKey { id, transaction: number(transaction)? };
    let seen = parts.next().map(str::parse).transpose().map_err(|()| no_cursor())?.map(Arc::new);
    if !is_incarnation {
        return Err(no_cursor());
    }
    if of_cursor != incarnation {
        return Err(Error::cursor_expired("The cursor is of another incarnation of the database"));
    }
    Ok(Position { after: key, seen })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const INCARNATION: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_cursor_is_read_back() {
        let seen = Some(Arc::new("7:9:7,8@41".parse().expect("a snapshot")));
        for position in [
            Position::after(EntryKey::START),
            Position::after(EntryKey { id: 41, transaction: 0 }),
            Position { after: EntryKey { id: i64::MAX, transaction: u64::MAX }, seen },
        ] {
            let text = cursor_text(&position, INCARNATION);
            assert_eq!(parse_cursor(&text, INCARNATION).expect("a cursor"), position, "{text}");
        }
    }

    #[test]
    fn a_cursor_of_another_incarnation_has_expired() {
        let text = cursor_text(&Position::after(EntryKey::START), INCARNATION);
        let other = parse_cursor(&text, "00000000000000000000000000000000").expect_err("another incarnation");
        assert_eq!(other.kind(), ErrorKind::CursorExpired);
    }

    #[test]
    fn other_texts_are_invalid() {
        let long = format!("{INCARNATION}.1.{}", "9".repeat(100_000));
        for text in [
            "",
            ".",
            "x.1.2",
            "0123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcdef.1",
            "0123456789abcdef0123456789abcdef.1.",
            "0123456789abcdef0123456789abcdef.-1.2",
            "0123456789abcdef0123456789abcdef.1.-2",
            "0123456789abcdef0123456789abcdef.+1.2",
            "0123456789abcdef0123456789abcdef.1.2.",
            "0123456789abcdef0123456789abcdef.1.2.3",
            "0123456789abcdef0123456789abcdef.1.9223372036854775808",
            "0123456789abcdef0123456789abcdef. 1.2",
            "\u{663}",
            &long,
        ] {
            let error = parse_cursor(text, INCARNATION).expect_err("no cursor");
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text:.60}");
        }
    }
}
