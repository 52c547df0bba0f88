//! A query, read: its words, and for each the terms that stand for it.
//!
//! Invariant: however long or odd the text, at most [`MOST_WORDS`] words of its first [`MOST_LETTERS`] characters count,
//! and each stands for a bounded number of ranges of terms. The last word is also a prefix, because
//! it may not have been typed to its end; a word the vocabulary lacks is taken for a misspelling.

use std::ops::Range;

use super::postings::Postings;
use super::ranking::Closeness;
use super::vocabulary::{Path, Spelling, Term, Vocabulary};
use super::words::{Kind, each_word, run_together};

const MOST_LETTERS: usize = 256;
const MOST_WORDS: usize = 16;

pub(super) struct Query {
    pub(super) words: Vec<String>,
    /// All words run together, as a name may be written.
    pub(super) together: String,
}

impl Query {
    pub(super) fn read(text: &str) -> Query {
        let end = text.char_indices().nth(MOST_LETTERS).map_or(text.len(), |(end, _)| end);
        let text = &text[..end];
        let mut words: Vec<String> = Vec::new();
        each_word(text, |kind, word| {
            if kind != Kind::Alternative && words.len() < MOST_WORDS && !words.iter().any(|other| other == word) {
                words.push(word.to_owned());
            }
        });
        Query { words, together: run_together(text) }
    }

    /// The way to each of the words.
    pub(super) fn paths(&self, vocabulary: &Vocabulary) -> Vec<Option<Path>> {
        self.words.iter().map(|word| vocabulary.path(word)).collect()
    }

    /// What the vocabulary has for all words run together, given the ways to each.
    pub(super) fn spelt_together(&self, paths: &[Option<Path>], vocabulary: &Vocabulary) -> Option<Spelling> {
        match self.together.strip_prefix(self.words.first()?.as_str()) {
            Some(rest) => Some(vocabulary.longer(paths.first()?.as_ref()?, rest)?.spelling),
            None => vocabulary.spelling(&self.together),
        }
    }

    /// A query of one unknown word as two known ones: `replyguy` of an app that writes it `Reply Guy`.
    /// Of several ways to cut it, the one whose rarer word is the most common.
    pub(super) fn taken_apart(&self, vocabulary: &Vocabulary, postings: &Postings) -> Option<Query> {
        let [word] = self.words.as_slice() else { return None };
        let count = |part: &str| {
            let found = vocabulary.spelling(part).filter(|found| found.is_term)?;
            Some(postings.count(&(found.range.start..found.range.start + 1)))
        };
        let cuts = word.char_indices().filter(|(at, _)| (2..word.len().saturating_sub(1)).contains(at));
        let weighed = cuts.filter_map(|(at, _)| {
            let (first, second) = word.split_at(at);
            Some((count(first)?.min(count(second)?), first, second))
        });
        let (_, first, second) = weighed.max()?;
        Some(Query { words: vec![first.to_owned(), second.to_owned()], together: word.clone() })
    }
}

/// Terms in a row that stand for a word, all equally close to it.
#[derive(Clone, Debug)]
pub(super) struct Expansion {
    pub(super) terms: Range<Term>,
    pub(super) closeness: Closeness,
}

/// All that stands for one word of the query.
pub(super) struct Group {
    pub(super) expansions: Vec<Expansion>,
    pub(super) postings: usize,
    /// BM25's inverse document frequency in 32nds: how much more a rare word says than a common one.
    pub(super) rarity: u32,
}

impl Group {
    fn new(expansions: Vec<Expansion>, all: &Postings) -> Group {
        let postings = expansions.iter().map(|expansion| all.count(&expansion.terms)).sum();
        let documents = all.documents() as f32;
        let having = (postings as f32).min(documents);
        let rarity = (1.0 + (documents - having + 0.5) / (having + 0.5)).ln() * 32.0;
        // At least 1, so that a word all documents have still counts.
        Group { expansions, postings, rarity: rarity.max(1.0) as u32 }
    }
}

/// A group for each word of a query of several words that anything stands for, in the order of the words.
/// `paths` are the ways to the words.
pub(super) fn groups(
    query: &Query,
    paths: &[Option<Path>],
    vocabulary: &Vocabulary,
    postings: &Postings,
) -> Vec<Group> {
    let last = query.words.len().saturating_sub(1);
    let mut expansions: Vec<Vec<Expansion>> =
        paths.iter().enumerate().map(|(place, path)| spelt(path.as_ref(), place == last)).collect();
    // `reply guy` is also asked of the apps that write it `replyguy`: one term for two words.
    for (place, (path, next)) in paths.iter().zip(query.words.iter().skip(1)).enumerate() {
        let both = path.as_ref().and_then(|path| vocabulary.longer(path, next));
        if let Some(Spelling { range, is_term: true }) = both.map(|path| path.spelling) {
            let compound = Expansion { terms: range.start..range.start + 1, closeness: Closeness::COMPOUND };
            expansions[place].push(compound.clone());
            expansions[place + 1].push(compound);
        }
    }
    for (expansions, word) in expansions.iter_mut().zip(&query.words) {
        if expansions.is_empty() {
            expansions.extend(misspelt(word, 2, vocabulary));
        }
    }
    expansions
        .into_iter()
        .filter(|expansions| !expansions.is_empty())
        .map(|expansions| Group::new(expansions, postings))
        .collect()
}

/// The terms that `word` may have been meant to be.
pub(super) fn misspelt(word: &str, most: usize, vocabulary: &Vocabulary) -> impl Iterator<Item = Expansion> {
    vocabulary
        .near(word, most)
        .into_iter()
        .map(|(term, errors)| Expansion { terms: term..term + 1, closeness: Closeness::misspelt(errors) })
}

fn spelt(path: Option<&Path>, is_prefix: bool) -> Vec<Expansion> {
    let Some(Spelling { mut range, is_term }) = path.map(|path| path.spelling.clone()) else { return Vec::new() };
    let mut expansions = Vec::with_capacity(2);
    if is_term {
        expansions.push(Expansion { terms: range.start..range.start + 1, closeness: Closeness::EXACT });
        range.start += 1;
    }
    if is_prefix && !range.is_empty() {
        expansions.push(Expansion { terms: range, closeness: Closeness::PREFIX });
    }
    expansions
}
