//! English function words, which say little about an app: `where is my wallet` asks for a wallet.
//!
//! How rare a word is does not tell: in short texts `my` is rarer than `wallet`.

/// Articles, pronouns, prepositions, conjunctions, auxiliary verbs and question words, in byte order.
const STOP_WORDS: [&str; 73] = [
    "a", "about", "am", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did", "do", "does",
    "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "if", "in", "into", "is", "it", "its", "me",
    "my", "of", "on", "or", "our", "shall", "she", "should", "so", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "those", "to", "us", "was", "we", "were", "what", "when", "where", "which",
    "who", "whom", "whose", "why", "will", "with", "would", "you", "your", "yours",
];

/// Whether a word in normalized spelling is a function word.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_in_byte_order() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("where") && is_stop_word("to") && !is_stop_word("wallet"));
    }
}
