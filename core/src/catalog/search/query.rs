//! Query parsing and expansion: the words of a query, and the index terms that each word matches.
//!
//! Invariant: a query of any length uses at most [`MAX_WORDS`] distinct words of its first [`MAX_CHARACTERS`]
//! characters, and each word expands to a bounded number of term ranges. The last word is also matched as a prefix,
//! because the user may still be typing it. A word also matches its plural or singular, and a word that is not in the
//! dictionary similar terms.

use std::ops::Range;

use super::host::is_web_word;
use super::inflection::{Inflection, inflections};
use super::postings::Postings;
use super::stop_words::is_stop_word;
use super::term_dictionary::{PrefixCursor, PrefixMatch, TermDictionary, TermId};
use super::tokenizer::{TokenKind, concatenate, tokenize};
use super::top_k::ExpansionWeight;

const MAX_CHARACTERS: usize = 256;
const MAX_WORDS: usize = 16;

pub(super) struct ParsedQuery {
    /// The distinct words, in the order of the text.
    pub(super) words: Vec<String>,
    /// The text without spaces and punctuation: it matches the concatenated name of an app.
    pub(super) concatenated: String,
}

impl ParsedQuery {
    pub(super) fn parse(text: &str) -> ParsedQuery {
        let end = text.char_indices().nth(MAX_CHARACTERS).map_or(text.len(), |(end, _)| end);
        let text = &text[..end];
        let mut words: Vec<String> = Vec::new();
        tokenize(text, |kind, word| {
            if kind != TokenKind::Variant && words.len() < MAX_WORDS && !words.iter().any(|other| other == word) {
                words.push(word.to_owned());
            }
        });
        // Words of addresses are not indexed; a query of nothing else may be a name.
        if words.iter().any(|word| !is_web_word(word)) {
            words.retain(|word| !is_web_word(word));
        }
        ParsedQuery { words, concatenated: concatenate(text) }
    }

    /// Looks each word up in the dictionary.
    pub(super) fn cursors(&self, dictionary: &TermDictionary) -> Vec<Option<PrefixCursor>> {
        self.words.iter().map(|word| dictionary.cursor(word)).collect()
    }

    /// Whether the last word is clear enough to search for: it has at least four letters, or is a term of at least two.
    pub(super) fn has_clear_last_word(&self, cursors: &[Option<PrefixCursor>]) -> bool {
        let letters = self.words.last().map_or(0, |word| word.chars().count());
        let is_term = cursors.last().is_some_and(|cursor| cursor.as_ref().is_some_and(|cursor| cursor.matched.is_term));
        letters >= 4 || (letters >= 2 && is_term)
    }

    /// Looks up the concatenated query, continuing from the cursor of the first word where possible.
    pub(super) fn concatenated_match(
        &self,
        cursors: &[Option<PrefixCursor>],
        dictionary: &TermDictionary,
    ) -> Option<PrefixMatch> {
        match self.concatenated.strip_prefix(self.words.first()?.as_str()) {
            Some(rest) => Some(dictionary.extend(cursors.first()?.as_ref()?, rest)?.matched),
            None => dictionary.prefix_match(&self.concatenated),
        }
    }

    /// Splits a query of one unknown word into two terms: `replyguy` into `reply guy`. Of several possible splits,
    /// takes the one whose rarer term has the most postings.
    pub(super) fn split_compound(&self, dictionary: &TermDictionary, postings: &Postings) -> Option<ParsedQuery> {
        let [word] = self.words.as_slice() else { return None };
        let count = |part: &str| {
            let matched = dictionary.prefix_match(part).filter(|matched| matched.is_term)?;
            Some(postings.count(&(matched.terms.start..matched.terms.start + 1)))
        };
        let cuts = word.char_indices().filter(|(at, _)| (2..word.len().saturating_sub(1)).contains(at));
        let counted = cuts.filter_map(|(at, _)| {
            let (first, second) = word.split_at(at);
            Some((count(first)?.min(count(second)?), first, second))
        });
        let (_, first, second) = counted.max()?;
        Some(ParsedQuery { words: vec![first.to_owned(), second.to_owned()], concatenated: word.clone() })
    }
}

/// A range of terms that match a word, all with the same weight.
#[derive(Clone, Debug)]
pub(super) struct Expansion {
    pub(super) terms: Range<TermId>,
    pub(super) weight: ExpansionWeight,
}

/// All expansions of one word of the query.
pub(super) struct TermGroup {
    pub(super) expansions: Vec<Expansion>,
    /// BM25's inverse document frequency in 32nds, at least 1.
    pub(super) idf: u32,
    /// Whether the word is a stop word before the last word, which may be the beginning of a longer one.
    is_stop_word: bool,
    /// Whether the word matches without a typing error.
    is_known: bool,
    /// Whether a document must match the group to have all words. A match of another group only raises the score.
    pub(super) is_required: bool,
}

impl TermGroup {
    fn new(expansions: Vec<Expansion>, is_stop_word: bool, is_known: bool, all: &Postings) -> TermGroup {
        let postings: usize = expansions.iter().map(|expansion| all.count(&expansion.terms)).sum();
        let documents = all.documents() as f32;
        let frequency = (postings as f32).min(documents);
        let idf = (1.0 + (documents - frequency + 0.5) / (frequency + 0.5)).ln() * 32.0;
        TermGroup { expansions, idf: idf.max(1.0) as u32, is_stop_word, is_known, is_required: true }
    }
}

/// The share of its weight that a stop word keeps beside known words: enough to decide between similar matches of those.
/// Beside a misspelt word it keeps all, because the query is likely to be a name.
const STOP_WORD_SHARE: u32 = 8;

/// Makes the groups of stop words optional, if another word of the query has matches. Takes the number of the query's words,
/// and returns the number of words that a document must have.
pub(super) fn make_stop_words_optional(mut groups: Vec<TermGroup>, words: usize) -> (Vec<TermGroup>, usize) {
    let stop_words = groups.iter().filter(|group| group.is_stop_word).count();
    if stop_words == groups.len() {
        return (groups, words);
    }
    let are_known = groups.len() == words && groups.iter().all(|group| group.is_known || group.is_stop_word);
    for group in groups.iter_mut().filter(|group| group.is_stop_word) {
        group.is_required = false;
        if are_known {
            group.idf = (group.idf / STOP_WORD_SHARE).max(1);
        }
    }
    (groups, words - stop_words)
}

/// Expands the words of a query of several words; words without any expansion are left out. A word that is no term also
/// expands to similar terms; with `is_fuzzy`, every word does.
pub(super) fn expand_words(
    query: &ParsedQuery,
    cursors: &[Option<PrefixCursor>],
    is_fuzzy: bool,
    dictionary: &TermDictionary,
    postings: &Postings,
) -> Vec<TermGroup> {
    let last = query.words.len().saturating_sub(1);
    let mut expansions: Vec<Vec<Expansion>> = cursors
        .iter()
        .enumerate()
        .map(|(word, cursor)| exact_and_prefix_expansions(cursor.as_ref(), word == last))
        .collect();
    for ((expansions, word), cursor) in expansions.iter_mut().zip(&query.words).zip(cursors) {
        expansions.extend(
            inflected_terms(word, cursor.as_ref(), dictionary)
                .map(|terms| Expansion { terms, weight: ExpansionWeight::INFLECTED }),
        );
    }
    // Two neighbouring words also match their compound: `reply guy` matches the term `replyguy`.
    for (word, (cursor, next)) in cursors.iter().zip(query.words.iter().skip(1)).enumerate() {
        let both = cursor.as_ref().and_then(|cursor| dictionary.extend(cursor, next));
        for compound in exact_and_prefix_expansions(both.as_ref(), word + 1 == last) {
            let weight = match compound.weight {
                ExpansionWeight::EXACT => ExpansionWeight::COMPOUND,
                weight => weight,
            };
            let compound = Expansion { weight, ..compound };
            expansions[word].push(compound.clone());
            expansions[word + 1].push(compound);
        }
    }
    let known: Vec<bool> = expansions.iter().map(|expansions| !expansions.is_empty()).collect();
    for (number, (expansions, word)) in expansions.iter_mut().zip(&query.words).enumerate() {
        if is_fuzzy || expansions.is_empty() {
            let terms = dictionary.fuzzy_matches(word, if is_fuzzy { 1 } else { 2 }).into_iter();
            expansions.extend(
                terms.map(|(term, errors)| Expansion { terms: term..term + 1, weight: ExpansionWeight::fuzzy(errors) }),
            );
            if number == last {
                let prefixes = dictionary.fuzzy_prefixes(word, 1).into_iter();
                expansions.extend(prefixes.map(|(matched, errors)| Expansion {
                    terms: matched.terms,
                    weight: ExpansionWeight::fuzzy_prefix(errors),
                }));
            }
        }
    }
    let stop_words = query.words.iter().enumerate().map(|(number, word)| number < last && is_stop_word(word));
    expansions
        .into_iter()
        .zip(stop_words.zip(known))
        .filter(|(expansions, _)| !expansions.is_empty())
        .map(|(expansions, (is_stop_word, is_known))| TermGroup::new(expansions, is_stop_word, is_known, postings))
        .collect()
}

/// The terms that are the singular or the plural of `word`. `cursor` is the node at the end of the word.
pub(super) fn inflected_terms<'a>(
    word: &'a str,
    cursor: Option<&'a PrefixCursor>,
    dictionary: &'a TermDictionary,
) -> impl Iterator<Item = Range<TermId>> + use<'a> {
    inflections(word).into_iter().filter_map(move |Inflection { stem, ending }| {
        let form = if stem == word.len() {
            dictionary.extend(cursor?, ending)
        } else {
            dictionary.extend(&dictionary.cursor(&word[..stem])?, ending)
        };
        let PrefixMatch { terms, is_term } = form?.matched;
        is_term.then_some(terms.start..terms.start + 1)
    })
}

fn exact_and_prefix_expansions(cursor: Option<&PrefixCursor>, is_prefix: bool) -> Vec<Expansion> {
    let Some(PrefixMatch { mut terms, is_term }) = cursor.map(|cursor| cursor.matched.clone()) else {
        return Vec::new();
    };
    let mut expansions = Vec::with_capacity(2);
    if is_term {
        expansions.push(Expansion { terms: terms.start..terms.start + 1, weight: ExpansionWeight::EXACT });
        terms.start += 1;
    }
    if is_prefix && !terms.is_empty() {
        expansions.push(Expansion { terms, weight: ExpansionWeight::PREFIX });
    }
    expansions
}
