//! The full-text search index of the catalog: an immutable in-memory inverted index with prefix and fuzzy matching.
//!
//! Invariant: results are sorted by [`Tier`], then by score (BM25F with one byte of impact per posting), then by
//! document id, which is the trending rank. An index never changes; a refresh builds a new one.
//!
//! The project has its own index because matches in app names rank first and a catalog fits in memory.
//! benches/README.md compares its speed with FTS5 and tantivy.

mod analyzer;
mod evaluation;
mod highlight;
mod host;
mod inflection;
mod levenshtein;
mod normalize;
mod postings;
mod query;
mod related;
mod stop_words;
mod term_dictionary;
#[cfg(test)]
mod tests;
mod tokenizer;
mod top_k;
mod words;

use std::hash::{DefaultHasher, Hash, Hasher};

pub(crate) use analyzer::Document;
use analyzer::{DocumentAnalyzer, WHOLE_NAME};
use evaluation::Evaluation;
pub use highlight::Highlight;
pub(crate) use highlight::matched_ranges;
pub(crate) use host::host_words;
use postings::{DocumentId, Postings};
use query::{ParsedQuery, expand_words, inflected_terms, make_stop_words_optional};
use term_dictionary::{PrefixCursor, PrefixMatch, TermDictionary, TermId};
use top_k::{ExpansionWeight, Rank, Tier, TopK};

/// The impact of a word in a tag or better, with the weight of the terms that start with a word with one error.
const STRONG_FUZZY_SCORE: u32 = 70 * 140 / 2;
/// The score of a word in a name, times the share of the query's words that an app must have to follow better matches.
const STRONG_PARTIAL_SCORE: u32 = 20_000 * 6 / 10;
/// Apps with some words of the query are left out under this fraction of the best one's score.
const WEAK_PARTIAL_SHARE: u32 = 3;
/// The most names tried for one misspelling of a name's beginning.
const MAX_MISSPELT_NAMES: usize = 1 << 11;
/// The most documents that a query may address.
const MAX_ADDRESSED: u32 = 1 << 16;

/// A query with its filters.
pub(crate) struct Query<'a> {
    pub(crate) text: &'a str,
    /// The documents that the text is the address of, best first. They come before all others.
    pub(crate) first: &'a [DocumentId],
    /// The number of documents to return.
    pub(crate) limit: usize,
    /// The number of the group of each document, if only the best document of each group is returned.
    pub(crate) groups: Option<&'a [u32]>,
    pub(crate) accept: &'a dyn Fn(DocumentId) -> bool,
}

pub(crate) struct SearchIndex {
    dictionary: TermDictionary,
    postings: Postings,
    /// [`name_hash`] of each document's name: tells `Yoink!` from `Yoink`.
    name_hashes: Vec<u32>,
}

impl SearchIndex {
    /// Builds the index. Document ids count from 0 in the order of `documents`, the trending order, which breaks ties.
    pub(crate) fn build<'a>(documents: impl Iterator<Item = Document<'a>>) -> SearchIndex {
        let mut analyzer = DocumentAnalyzer::new();
        // Document ids and posting indexes are u32. 2^32 postings are enough for about 200 million apps.
        let (mut row_starts, mut pairs, mut name_hashes) = (vec![0], Vec::new(), Vec::new());
        for document in documents {
            analyzer.analyze(&document, &mut pairs);
            row_starts.push(pairs.len() as u32);
            name_hashes.push(name_hash(document.name));
        }
        // The analyzer numbers the terms as they come; from here on, a term's number is its rank in byte order.
        let mut sorted: Vec<(&str, u32)> = analyzer.terms.iter().map(AsRef::as_ref).zip(0..).collect();
        sorted.sort_unstable();
        let mut ranks = vec![0; sorted.len()];
        for (rank, (_, number)) in (0..).zip(&sorted) {
            ranks[*number as usize] = rank;
        }
        for (term, _) in &mut pairs {
            *term = ranks[*term as usize];
        }
        let terms: Vec<&str> = sorted.into_iter().map(|(term, _)| term).collect();
        let postings = Postings::build(row_starts, pairs, terms.len());
        SearchIndex { dictionary: TermDictionary::build(&terms), postings, name_hashes }
    }

    /// Returns the documents that match a query, best first.
    pub(crate) fn search(&self, query: &Query<'_>) -> Vec<DocumentId> {
        let parsed = ParsedQuery::parse(query.text);
        if query.limit == 0 {
            return Vec::new();
        }
        let limit = query.limit.min(self.name_hashes.len()).max(1);
        let mut top = TopK::new(limit, query.accept).grouped(query.groups);
        for (score, id) in (0..=MAX_ADDRESSED).rev().zip(query.first) {
            top.offer(Rank::new(Tier::Address, score, *id));
        }
        if !parsed.words.is_empty() {
            self.search_text(query.text, &parsed, &mut top);
        }
        top.into_ranks().into_iter().map(Rank::document).collect()
    }

    fn search_text(&self, text: &str, query: &ParsedQuery, top: &mut TopK<'_>) {
        let cursors = query.cursors(&self.dictionary);
        let concatenated = query.concatenated_match(&cursors, &self.dictionary);
        match query.words.as_slice() {
            // `GM GM` has one distinct word, but its concatenation differs from the word.
            [word] if *word == query.concatenated => self.search_word(query, word, cursors[0].as_ref(), top),
            _ => self.search_words(query, &cursors, concatenated.as_ref(), top),
        }
        if let Some(PrefixMatch { terms, is_term: true }) = concatenated {
            self.add_exact_names(terms.start, name_hash(text), top);
        }
    }

    /// Adds the matches of a query of one word.
    fn search_word(&self, query: &ParsedQuery, word: &str, cursor: Option<&PrefixCursor>, top: &mut TopK<'_>) {
        let matched = cursor.map(|cursor| &cursor.matched);
        if let Some(matched) = matched {
            self.add_prefix_matches(matched, 0, top);
        }
        for terms in inflected_terms(word, cursor, &self.dictionary) {
            let (ids, impacts) = self.postings.lists(&terms);
            for (&id, &impact) in ids.iter().zip(impacts) {
                let rank = Rank::of_word(ExpansionWeight::INFLECTED, impact, id);
                if !top.admits(rank) {
                    break;
                }
                top.offer(rank);
            }
        }
        if top.is_full() {
            return;
        }
        let has_exact = top.first().is_some();
        if !has_exact && let Some(split) = query.split_compound(&self.dictionary, &self.postings) {
            let cursors = split.cursors(&self.dictionary);
            let groups = expand_words(&split, &cursors, false, &self.dictionary, &self.postings);
            Evaluation::new(&self.postings, &groups, split.words.len()).add_all_words(Tier::SplitWord, top);
        }
        if has_exact {
            // After good matches, only apps with the similar word in the name or a tag.
            top.raise_floor(Rank::new(Tier::FuzzyWords, STRONG_FUZZY_SCORE, DocumentId::MAX));
        }
        let term = matched.filter(|matched| matched.is_term).map(|matched| matched.terms.start);
        self.add_misspelt(word, term, top);
        top.clear_floor();
    }

    /// Adds the documents with a term that is, or starts with, a misspelling of `word`. `term` is the id of `word` if it is a
    /// term.
    fn add_misspelt(&self, word: &str, term: Option<TermId>, top: &mut TopK<'_>) {
        let best = top.first();
        // Similar whole words are found faster than similar prefixes: only without them, the word is a prefix.
        // The search for two errors takes most of the time, and a word that matches as it is hardly has two.
        let similar = self.dictionary.fuzzy_matches(word, if best.is_some() { 1 } else { 2 });
        for (term, errors) in &similar {
            self.add_prefix_matches(&self.dictionary.terms_starting_with(*term), *errors, top);
        }
        let is_name = |rank: Rank| rank.is_at_least(Tier::FuzzyName);
        let has_similar = if best.is_some() { !similar.is_empty() } else { top.first().is_some_and(is_name) };
        // A term is a whole word, not the beginning of a longer one with an error.
        if has_similar || term.is_some() {
            return;
        }
        for (matched, errors) in self.dictionary.fuzzy_prefixes(word, 1) {
            self.add_prefix_matches(&matched, errors, top);
        }
        if top.first().is_none() {
            for (matched, errors) in self.dictionary.fuzzy_prefixes(word, 2) {
                self.add_prefix_matches(&matched, errors, top);
            }
        }
    }

    /// Adds the matches of a query of several words: names first, then documents with all words, then with some. A document
    /// needs no stop word, unless the query has no other words.
    fn search_words(
        &self,
        query: &ParsedQuery,
        cursors: &[Option<PrefixCursor>],
        concatenated: Option<&PrefixMatch>,
        top: &mut TopK<'_>,
    ) {
        if let Some(matched) = concatenated {
            self.add_names(matched, top);
        }
        if top.is_full() {
            return;
        }
        // All words count if a name starts with the query, and while the last word has only a few letters.
        let needs_all_words = top.first().is_some() || !query.has_clear_last_word(cursors);
        let expand = |is_fuzzy| {
            let groups = expand_words(query, cursors, is_fuzzy, &self.dictionary, &self.postings);
            if needs_all_words {
                (groups, query.words.len())
            } else {
                make_stop_words_optional(groups, query.words.len())
            }
        };
        let (groups, words) = expand(false);
        let total_idf: u32 = groups.iter().filter(|group| group.is_required).map(|group| group.idf).sum();
        let evaluation = Evaluation::new(&self.postings, &groups, words);
        evaluation.add_all_words(Tier::AllWords, top);
        if top.is_full() {
            return;
        }
        // Several words that are all known are hardly misspelt.
        if top.first().is_none() {
            self.add_misspelt_names(&query.concatenated, top);
        }
        if top.first().is_none() {
            let (groups, words) = expand(true);
            Evaluation::new(&self.postings, &groups, words).add_all_words(Tier::FuzzyWords, top);
        }
        // The relevance floor: after documents with all words, only such with the most important words in the name.
        let has_all_words = top.first().is_some();
        if has_all_words {
            top.raise_floor(Rank::new(Tier::SomeWords, total_idf * STRONG_PARTIAL_SCORE, DocumentId::MAX));
        }
        evaluation.add_some_words(top);
        top.clear_floor();
        if !has_all_words && let Some(best) = top.first() {
            top.drop_under(Rank::new(Tier::SomeWords, best.score() / WEAK_PARTIAL_SHARE, DocumentId::MAX));
        }
    }

    /// Adds the documents with a term that starts with the prefix, which has `errors` typing errors.
    fn add_prefix_matches(&self, matched: &PrefixMatch, errors: usize, top: &mut TopK<'_>) {
        let mut terms = matched.terms.clone();
        let rank = |weight, impact, id| {
            let rank = Rank::of_word(weight, impact, id);
            if errors == 0 { rank } else { rank.with_errors(errors) }
        };
        if matched.is_term {
            let (ids, impacts) = self.postings.list(terms.start);
            for (&id, &impact) in ids.iter().zip(impacts) {
                let rank = rank(ExpansionWeight::EXACT, impact, id);
                // A posting list is sorted by rank: once one is too low, so are the rest.
                if !top.admits(rank) {
                    break;
                }
                top.offer(rank);
            }
            terms.start += 1;
        }
        let (ids, impacts) = self.postings.lists(&terms);
        for (&id, &impact) in ids.iter().zip(impacts) {
            top.offer(rank(ExpansionWeight::PREFIX, impact, id));
        }
    }

    /// Adds the documents with a concatenated name that starts with the concatenated query.
    fn add_names(&self, matched: &PrefixMatch, top: &mut TopK<'_>) {
        for term in matched.terms.clone() {
            let is_whole_name = matched.is_term && term == matched.terms.start;
            let tier = if is_whole_name { Tier::WholeName } else { Tier::NamePrefix };
            for id in self.named(term) {
                top.offer(Rank::new(tier, 0, id));
            }
        }
    }

    /// Adds the documents with a concatenated name that starts with a misspelling of the concatenated query.
    fn add_misspelt_names(&self, name: &str, top: &mut TopK<'_>) {
        let mut matches = self.dictionary.fuzzy_prefixes(name, 1);
        if matches.is_empty() && top.first().is_none() {
            let whole = self.dictionary.fuzzy_matches(name, 2).into_iter();
            matches.extend(whole.map(|(term, errors)| (PrefixMatch { terms: term..term + 1, is_term: true }, errors)));
        }
        for (matched, errors) in matches {
            for term in matched.terms.clone().take(MAX_MISSPELT_NAMES) {
                let is_whole_name = matched.is_term && term == matched.terms.start;
                let tier = if is_whole_name { Tier::WholeName } else { Tier::NamePrefix };
                for id in self.named(term) {
                    top.offer(Rank::new(tier, 0, id).with_errors(errors));
                }
            }
        }
    }

    /// Adds the documents with a name that equals the query including spaces and punctuation, ignoring case.
    fn add_exact_names(&self, term: u32, hash: u32, top: &mut TopK<'_>) {
        for id in self.named(term) {
            if self.name_hashes[id as usize] == hash {
                top.offer(Rank::new(Tier::ExactName, 0, id));
            }
        }
    }

    /// The documents with the concatenated name `term`: they come first in its posting list.
    fn named(&self, term: u32) -> impl Iterator<Item = DocumentId> {
        let (ids, impacts) = self.postings.list(term);
        ids.iter().zip(impacts).take_while(|(_, impact)| **impact == WHOLE_NAME).map(|(id, _)| *id)
    }
}

/// A hash of a name in lower case with its spaces and punctuation.
fn name_hash(name: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    name.trim().to_lowercase().hash(&mut hasher);
    hasher.finish() as u32
}
