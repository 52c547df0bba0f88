//! Text of users as a terminal may show it.

/// The text in one line, with a mark in place of each character that changes a terminal or the order of what is read.
pub(crate) fn printable(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\r' | '\t' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
        character if character.is_control() => '\u{fffd}',
        character => character,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_bidirectional_controls_are_replaced() {
        assert_eq!(printable("a\u{1b}[31mb\u{9b}c\u{202e}d\ne"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d e");
        assert_eq!(printable("Zürich 東京"), "Zürich 東京");
    }
}
