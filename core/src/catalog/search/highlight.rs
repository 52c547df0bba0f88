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

/// The most errors in a word.
const MAX_ERRORS: usize = 2;

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
        let words: Vec<_> = texts.iter().map(|(_, text)| words_of(text)).collect();
        let found = texts.iter().zip(ranges(query, &words, Part::Word)).filter(|(_, matches)| !matches.is_empty());
        found.map(|((field, text), matches)| Highlight { field, text: (*text).to_owned(), matches }).collect()
    }
}

/// The parts of `text` that the words of a query match, as far as they were typed.
pub(crate) fn matched_ranges(query: &str, text: &str) -> Vec<(usize, usize)> {
    ranges(query, &[words_of(text)], Part::Typed).pop().unwrap_or_default()
}

/// What is shown of a word that a prefix matches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Word,
    Typed,
}

/// The matched parts of each of the texts. A word of the query that matches none of them as it is matches misspelt words.
fn ranges(query: &str, texts: &[Vec<TextWord>], part: Part) -> Vec<Vec<(usize, usize)>> {
    let query = ParsedQuery::parse(query);
    let mut found: Vec<Vec<_>> = texts.iter().map(|words| joined(&query, words, part)).collect();
    let is_joined = found.iter().any(|ranges| !ranges.is_empty());
    for number in 0..query.words.len() {
        let mut of_word: Vec<Vec<_>> = texts.iter().map(|words| exact(&query, number, words, part)).collect();
        if !is_joined && of_word.iter().all(Vec::is_empty) {
            of_word = texts.iter().map(|words| misspelt(&query, number, words)).collect();
        }
        for (found, of_word) in found.iter_mut().zip(of_word) {
            found.extend(of_word);
        }
    }
    found.into_iter().map(merged).collect()
}

/// The parts of a text that one word of the query matches as it is.
fn exact(query: &ParsedQuery, number: usize, words: &[TextWord], part: Part) -> Vec<(usize, usize)> {
    let (word, mut found) = (&query.words[number], Vec::new());
    let is_last = number + 1 == query.words.len();
    let inflected = inflections(word);
    for place in words {
        found.extend(place.prefix_range(word, is_last, part == Part::Word));
        if inflected.iter().any(|form| form.is_of(word, &place.letters)) {
            found.push((place.start, place.end));
        }
    }
    // Words of a script without spaces are pairs of characters.
    for pair in words.windows(2).filter(|pair| pair[0].is_joined_to(&pair[1])) {
        if format!("{}{}", pair[0].letters, pair[1].letters) == *word {
            found.push((pair[0].start, pair[1].end));
        }
    }
    // `reply guy` matches the word `replyguy`, by both of its words.
    let before = number.checked_sub(1).map(|before| format!("{}{word}", query.words[before]));
    let joined = query.words.get(number + 1).map(|next| format!("{word}{next}"));
    let is_joined = |place: &&TextWord| [&before, &joined].into_iter().flatten().any(|text| place.letters == *text);
    found.extend(words.iter().filter(is_joined).map(|place| (place.start, place.end)));
    found
}

/// The words of a text that are one word of the query, misspelt. Of several words, an app may match only some: then a word of another
/// first letter, or with more than one error, is rather another word.
fn misspelt(query: &ParsedQuery, number: usize, words: &[TextWord]) -> Vec<(usize, usize)> {
    let (word, is_last) = (&query.words[number], number + 1 == query.words.len());
    let is_alone = query.words.len() == 1;
    let max_errors = if is_alone { MAX_ERRORS } else { 1 };
    let is_like = |letters: &str| is_alone || letters.chars().next() == word.chars().next();
    let found =
        words.iter().filter(|place| is_like(&place.letters) && is_misspelt(word, &place.letters, max_errors, is_last));
    found.map(|place| (place.start, place.end)).collect()
}

/// Neighbouring words that together are the query: `Mini App` for `miniapp`. They may also start with a query of several words.
fn joined(query: &ParsedQuery, words: &[TextWord], part: Part) -> Vec<(usize, usize)> {
    let (is_open, mut found) = (query.words.len() > 1, Vec::new());
    for first in 0..words.len() {
        let mut rest = query.concatenated.as_str();
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
    found
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
        assert_typed("chess money", "Chess Honey", &[(0, 5)]);
        assert_typed("mnoad snake", "Monad Snake", &[(0, 5), (6, 11)]);
        assert_typed("harbour ches", "Harbor Chess", &[(0, 6), (7, 11)]);
        assert_typed("mnoa", "Monad Snake", &[]);
    }
}
