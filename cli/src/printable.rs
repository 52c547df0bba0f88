//! Text of users as a terminal may show it.

/// The text in one line, with a mark in place of each character that changes a terminal or the order of what is read.
pub(crate) fn printable(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\r' | '\t' => ' ',
        character if is_unsafe(character) => '\u{fffd}',
        character => character,
    };
    text.chars().map(shown).collect()
}

/// The text of a JSON value, with escapes in place of the characters that change a terminal. JSON itself escapes only those below
/// U+0020.
pub(crate) fn printable_json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        // A line break is white space between values here.
        if character != '\n' && is_unsafe(character) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Whether a character changes the state of a terminal or the order of what is read. Each of them has at most four hex digits.
pub(crate) fn is_unsafe(character: char) -> bool {
    let is_bidirectional =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_bidirectional || character.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_bidirectional_controls_are_replaced() {
        assert_eq!(printable("a\u{1b}[31mb\u{9b}c\u{202e}d\ne"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d e");
        assert_eq!(printable("Zürich 東京"), "Zürich 東京");
    }

    #[test]
    fn json_has_escapes_for_controls_and_the_same_value() {
        let value = serde_json::json!({ "name": "a\u{9b}31m\u{7f}\u{202e}b\nZürich" });
        let text = printable_json(&format!("{value:#}"));
        assert!(text.contains("\\u009b31m\\u007f\\u202eb") && text.contains("Zürich"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}
