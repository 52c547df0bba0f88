//! The text form of positions: the cursors that programs store.
//!
//! Invariant: only a program that knows the key of the database can make a cursor or read one. A cursor is the position,
//! encrypted under an authentication tag that is computed from it (SIV), in hex. So equal positions have equal cursors.

use std::sync::Arc;

use super::{EntryKey, EntryProof, Position};
use crate::error::{Error, Result};

/// The length of the authentication tag.
const TAG: usize = 16;

/// The length of a position without a snapshot.
const POSITION: usize = 32;

/// The key of the cursors of one incarnation of a database.
pub(crate) struct CursorKey {
    tag: [u8; 32],
    encryption: [u8; 32],
}

impl CursorKey {
    /// `secret` is the key that the database keeps. Another incarnation has another cursor key, also with the same secret.
    pub(crate) fn new(secret: &str, incarnation: &str) -> CursorKey {
        let material = format!("{incarnation} {secret}");
        CursorKey {
            tag: blake3::derive_key("townsquare change cursor 1: tag", material.as_bytes()),
            encryption: blake3::derive_key("townsquare change cursor 1: encryption", material.as_bytes()),
        }
    }

    /// The cursor of a position.
    pub(crate) fn cursor(&self, position: &Position) -> String {
        let EntryProof { id, transaction, mark } = position.stands_on;
        let mut bytes = vec![0; TAG];
        bytes.extend_from_slice(&position.after.id.to_be_bytes());
        bytes.extend_from_slice(&id.to_be_bytes());
        bytes.extend_from_slice(&transaction.to_be_bytes());
        bytes.extend_from_slice(&mark.to_be_bytes());
        if let Some(snapshot) = &position.seen {
            bytes.extend_from_slice(snapshot.to_string().as_bytes());
        }
        let (tag, content) = bytes.split_at_mut(TAG);
        tag.copy_from_slice(&self.tag_of(content));
        self.encrypt(tag, content);
        hex::encode(bytes)
    }

    /// Reads a cursor.
    ///
    /// # Errors
    /// `InvalidInput` for a text that is no cursor; `CursorExpired` for a cursor of another incarnation, or of a library that
    /// made them in another form.
    pub(in crate::database) fn position(&self, cursor: &str) -> Result<Position> {
        let of_another = || Error::cursor_expired("The cursor is of another incarnation of the database");
        if is_of_first_form(cursor) {
            return Err(of_another());
        }
        let bytes = hex::decode(cursor).ok().filter(|bytes| bytes.len() >= TAG + POSITION);
        let mut bytes = bytes.ok_or_else(|| Error::invalid_input("The text is no cursor of the change feed"))?;
        let (tag, content) = bytes.split_at_mut(TAG);
        self.encrypt(tag, content);
        // In constant time.
        let expected = blake3::Hash::from_bytes(padded(&self.tag_of(content)));
        if expected != blake3::Hash::from_bytes(padded(tag)) {
            return Err(of_another());
        }
        read(content).ok_or_else(of_another)
    }

    fn tag_of(&self, content: &[u8]) -> [u8; TAG] {
        let mut tag = [0; TAG];
        tag.copy_from_slice(&blake3::keyed_hash(&self.tag, content).as_bytes()[..TAG]);
        tag
    }

    /// Encrypts or decrypts `content`: the same operation does both.
    fn encrypt(&self, tag: &[u8], content: &mut [u8]) {
        let mut stream = vec![0; content.len()];
        blake3::Hasher::new_keyed(&self.encryption).update(tag).finalize_xof().fill(&mut stream);
        content.iter_mut().zip(stream).for_each(|(byte, key)| *byte ^= key);
    }
}

fn padded(tag: &[u8]) -> [u8; 32] {
    let mut hash = [0; 32];
    hash[..TAG].copy_from_slice(tag);
    hash
}

/// Whether the text is a cursor of a library that made cursors without a key: `INCARNATION.TRANSACTION.ID`.
fn is_of_first_form(text: &str) -> bool {
    let incarnation = text.split('.').next().unwrap_or_default();
    incarnation.len() == 32
        && text.len() > 32
        && incarnation.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.as_bytes().get(32) == Some(&b'.')
}

/// Reads the position; `None` for one that a newer library wrote in another form.
fn read(content: &[u8]) -> Option<Position> {
    let (numbers, snapshot) = content.split_at_checked(POSITION)?;
    let number = |index: usize| numbers.get(index * 8..index * 8 + 8)?.try_into().ok();
    let stands_on = EntryProof {
        id: i64::from_be_bytes(number(1)?),
        transaction: u64::from_be_bytes(number(2)?),
        mark: i64::from_be_bytes(number(3)?),
    };
    let seen = match snapshot {
        [] => None,
        text => Some(Arc::new(std::str::from_utf8(text).ok()?.parse().ok()?)),
    };
    Some(Position { after: EntryKey::up_to(i64::from_be_bytes(number(0)?)), stands_on, seen })
}

crate::model::opaque!(CursorKey);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const INCARNATION: &str = "0123456789abcdef0123456789abcdef";

    fn key() -> CursorKey {
        CursorKey::new("secret", INCARNATION)
    }

    fn position(id: i64) -> Position {
        let stands_on = EntryProof { id: id - 1, transaction: 8, mark: -3 };
        Position { after: EntryKey::up_to(id), stands_on, seen: None }
    }

    fn kind(cursor: &str) -> ErrorKind {
        key().position(cursor).expect_err("refused").kind()
    }

    #[test]
    fn a_cursor_is_read_back_and_shows_nothing() {
        let seen = Some(Arc::new("7:9:7,8@41@39@aa".parse().expect("a snapshot")));
        for position in [position(1), position(i64::MAX), Position { seen, ..position(41) }] {
            let cursor = key().cursor(&position);
            assert_eq!(key().position(&cursor).expect("a cursor"), position, "{cursor}");
            assert_eq!(key().cursor(&position), cursor);
        }
        let (one, two) = (key().cursor(&position(1)), key().cursor(&position(2)));
        let equal = one.bytes().zip(two.bytes()).filter(|(one, two)| one == two).count();
        assert!(equal < one.len() / 4, "{one} {two}");
    }

    #[test]
    fn a_cursor_of_another_incarnation_has_expired() {
        for other in [CursorKey::new("secret", "other"), CursorKey::new("other", INCARNATION)] {
            assert_eq!(kind(&other.cursor(&position(7))), ErrorKind::CursorExpired);
        }
        for text in [format!("{INCARNATION}.0.7"), format!("{INCARNATION}.5.7.1:2:@3")] {
            assert_eq!(kind(&text), ErrorKind::CursorExpired, "{text}");
        }
    }

    #[test]
    fn a_changed_cursor_is_refused() {
        let cursor = key().cursor(&position(7));
        for place in 0..cursor.len() {
            let mut bytes = cursor.clone().into_bytes();
            bytes[place] = if bytes[place] == b'0' { b'1' } else { b'0' };
            assert_eq!(kind(&String::from_utf8(bytes).expect("ASCII")), ErrorKind::CursorExpired, "{place}");
        }
        assert_eq!(kind(&format!("{cursor}00")), ErrorKind::CursorExpired);
    }

    #[test]
    fn other_texts_are_invalid() {
        let cursor = key().cursor(&position(7));
        for text in
            ["", ".", "x.1.2", INCARNATION, "0.1.2", &cursor[1..], &cursor[8..], &format!(" {cursor}"), "\u{663}"]
        {
            assert_eq!(kind(text), ErrorKind::InvalidInput, "{text}");
        }
    }
}
