//! Highlights: which parts of an app's texts match a query.
//!
//! Invariant: ranges are in characters, in order and apart from each other. A word matches here by the rules of the
//! search: whole, as a prefix if it is the last of the query, as plural or singular, joined or split, and misspelt if no
//! word matches better.

use super::{
    inflection::inflections,
    levenshtein::LevenshteinAutomaton,
    query::ParsedQuery,
    term_dictionary::allowed_errors,
    words::{TextWord, words_of},
};
use crate::catalog::MiniAppRecord;

/// A text of an app, with the words that match a query.
///
/// ```
/// # fn example(app: &townsquare::discovery::MiniApp) {
/// for highlight in app.highlights("chess club") {
///     println!("{}: {} {:?}", highlight.field, highlight.text, highlight.matches);
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Highlight {
    /// The field: `name`, `tags`, `category`, `subtitle`, `tagline`, `author_display_name`, `author_username`,
    /// `description` or `domain`.
    pub field: &'static str,
    /// The whole text of the field; of `tags`, one tag.
    pub text: String,
    /// The matched words, as start and end in characters.
    pub matches: Vec<(usize, usize)>,
}

impl MiniAppRecord {
    /// The words of the app that match a search query, by field. Texts without a match are left out.
    ///
    /// ```
    /// # fn example(app: &townsquare::discovery::MiniApp) {
    /// let in_name = app.highlights("chess").into_iter().find(|highlight| highlight.field == "name");
    /// # let _ = in_name;
    /// # }
    /// ```
    pub fn highlights(&self, query: &str) -> Vec<Highlight> {
        let author = self.author();
        let texts = [
            ("name", Some(self.name())),
            ("category", self.category()),
            ("subtitle", self.subtitle()),
            ("tagline", self.tagline()),
            ("author_display_name", author.and_then(|author| author.display_name)),
            ("author_username", author.map(|author| author.username)),
            ("description", self.description()),
            ("domain", Some(self.domain())),
        ];
        let tags = self.tags().map(|tag| ("tags", Some(tag)));
        let texts = texts.into_iter().chain(tags).filter_map(|(field, text)| Some((field, text?)));
        Highlight::of_texts(query, &texts.collect::<Vec<_>>())
    }
}

impl Highlight {
    /// The words of an app's texts that match a query, for an app that a language binding made.
    #[doc(hidden)]
    pub fn of_texts(query: &str, texts: &[(&'static str, &str)]) -> Vec<Highlight> {
        let parsed = ParsedQuery::parse(query);
        let of_errors = |max_errors| -> Vec<Highlight> {
            let of_text = |(field, text): &(&'static str, &str)| {
                let ranges = ranges(&parsed, text, max_errors, Part::Word);
                (!ranges.is_empty()).then(|| Highlight { field, text: (*text).to_owned(), matches: ranges })
            };
            texts.iter().filter_map(of_text).collect()
        };
        let exact = of_errors(0);
        if exact.is_empty() { of_errors(2) } else { exact }
    }
}

/// The parts of `text` that the words of a query match, as far as they were typed.
pub(crate) fn matched_ranges(query: &str, text: &str) -> Vec<(usize, usize)> {
    let query = ParsedQuery::parse(query);
    let exact = ranges(&query, text, 0, Part::Typed);
    if exact.is_empty() { ranges(&query, text, 2, Part::Typed) } else { exact }
}

/// What is shown of a word that a prefix matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Word,
    Typed,
}

fn ranges(query: &ParsedQuery, text: &str, max_errors: usize, part: Part) -> Vec<(usize, usize)> {
    let words = words_of(text);
    let mut found = Vec::new();
    add_joined(&query.concatenated, query.words.len() > 1, &words, part, &mut found);
    for (number, word) in query.words.iter().enumerate() {
        let is_last = number + 1 == query.words.len();
        let inflected = inflections(word);
        for place in &words {
            found.extend(place.prefix_range(word, is_last, part == Part::Word));
            if inflected.iter().any(|form| form.is_of(word, &place.letters)) {
                found.push((place.start, place.end));
            }
            if max_errors > 0 && is_misspelt(word, &place.letters, max_errors, is_last) {
                found.push((place.start, place.end));
            }
        }
        // Words of a script without spaces are pairs of characters.
        for pair in words.windows(2).filter(|pair| pair[0].is_joined_to(&pair[1])) {
            if format!("{}{}", pair[0].letters, pair[1].letters) == *word {
                found.push((pair[0].start, pair[1].end));
            }
        }
        // `reply guy` matches the word `replyguy`.
        if let Some(next) = query.words.get(number + 1) {
            let joined = format!("{word}{next}");
            found.extend(words.iter().filter(|place| place.letters == joined).map(|place| (place.start, place.end)));
        }
    }
    merged(found)
}

/// Adds neighbouring words that together are the query, or with `is_open` start with it: `Mini App` for `miniapp`.
fn add_joined(joined: &str, is_open: bool, words: &[TextWord], part: Part, found: &mut Vec<(usize, usize)>) {
    for first in 0..words.len() {
        let mut rest = joined;
        for (count, word) in words[first..].iter().enumerate() {
            if let Some(after) = rest.strip_prefix(word.letters.as_str()) {
                rest = after;
                if rest.is_empty() {
                    found.push((words[first].start, word.end));
                    break;
                }
            } else {
                // The query ends inside this word.
                if (is_open || count > 0)
                    && let Some((_, end)) = word.prefix_range(rest, true, part == Part::Word)
                {
                    found.push((words[first].start, end));
                }
                break;
            }
        }
    }
}

/// Whether `word` is `typed` with up to `max_errors` errors; or starts so, if `is_prefix`.
fn is_misspelt(typed: &str, word: &str, max_errors: usize, is_prefix: bool) -> bool {
    let max_errors = max_errors.min(allowed_errors(typed));
    if max_errors == 0 {
        return false;
    }
    let automaton = LevenshteinAutomaton::new(typed, max_errors);
    let mut state = automaton.start();
    for byte in word.bytes() {
        state = automaton.accept(&state, byte);
        if is_prefix && automaton.errors(&state).is_some() {
            return true;
        }
        if !automaton.can_match(&state) {
            return false;
        }
    }
    automaton.errors(&state).is_some()
}

/// Sorts ranges and merges those that overlap.
fn merged(mut ranges: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    ranges.retain(|(start, end)| start < end);
    ranges.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (start, end) in ranges {
        match merged.last_mut() {
            Some((_, last)) if start <= *last && start < *last => *last = end.max(*last),
            _ => merged.push((start, end)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_typed(query: &str, text: &str, expected: &[(usize, usize)]) {
        assert_eq!(matched_ranges(query, text), expected, "{query:?} in {text:?}");
    }

    #[test]
    fn the_typed_part_of_a_word_is_matched() {
        assert_typed("ches", "Harbour Chess", &[(8, 12)]);
        assert_typed("harbour ches", "Harbour Chess", &[(0, 12)]);
        assert_typed("chess har", "Harbour Chess", &[(0, 3), (8, 13)]);
        assert_typed("zz", "Harbour Chess", &[]);
    }

    #[test]
    fn ranges_are_in_characters_of_the_text() {
        assert_typed("grosse", "Café Größe", &[(5, 10)]);
        assert_typed("cafe", "Cafe\u{301} Noir", &[(0, 5)]);
        assert_typed("snake", "🐍 Snake", &[(2, 7)]);
        assert_typed("하", "한글 게임", &[(0, 1)]);
        assert_typed("東京", "大東京マップ", &[(1, 3)]);
    }

    #[test]
    fn joined_split_inflected_and_misspelt_words_are_matched() {
        assert_typed("miniapp", "A Mini App Store", &[(2, 10)]);
        assert_typed("reply guy", "ReplyGuy!", &[(0, 8)]);
        assert_typed("fans", "DegenFans", &[(5, 9)]);
        assert_typed("wallets", "My Wallet", &[(3, 9)]);
        assert_typed("mnoad", "Monad Snake", &[(0, 5)]);
        assert_typed("mnoa", "Monad Snake", &[]);
    }
}
