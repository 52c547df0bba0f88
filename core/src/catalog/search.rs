//! The full-text search index of the catalog: an immutable in-memory inverted index with prefix and fuzzy matching.
//!
//! Invariant: results are sorted by [`Tier`], then by score (BM25F with one byte of impact per posting), then by
//! document id, which is the trending rank. An index never changes; a refresh builds a new one.
//!
//! The project has its own index because matches in app names rank first and a catalog fits in memory.
//! benches/README.md compares its speed with FTS5 and tantivy.

mod analyzer;
mod interner;
mod levenshtein;
mod max_score;
mod normalize;
mod postings;
mod prefix_cache;
mod query;
mod term_dictionary;
#[cfg(test)]
mod tests;
mod tokenizer;
mod top_k;

pub(crate) use analyzer::Document;
use analyzer::{DocumentAnalyzer, WHOLE_NAME};
use max_score::MaxScore;
use postings::{DocumentId, Postings};
use prefix_cache::{PrefixCache, scan_prefix};
use query::{ParsedQuery, expand_words, fuzzy_expansions};
use term_dictionary::{PrefixCursor, PrefixMatch, TermDictionary};
use top_k::{Rank, Tier, TopK};

use crate::{error::Result, large_buffer::large_buffer};

/// A lower estimate of the distinct terms of one app. `build` uses it to size its buffer.
const MIN_TERMS_PER_APP: usize = 16;

pub(crate) struct SearchIndex {
    dictionary: TermDictionary,
    postings: Postings,
    prefix_cache: PrefixCache,
    /// [`name_hash`] of each document's name: tells `Yoink!` from `Yoink`.
    name_hashes: Vec<u32>,
}

impl SearchIndex {
    /// Builds the index. Document ids count from 0 in the order of `documents`, the trending order, which breaks ties.
    ///
    /// # Errors
    /// `Unavailable` if the system has too little memory.
    pub(crate) fn build<'a>(documents: impl Iterator<Item = Document<'a>>) -> Result<SearchIndex> {
        let mut analyzer = DocumentAnalyzer::new();
        // Document ids and posting indexes are u32. 2^32 postings are enough for about 200 million apps.
        let count = documents.size_hint().0;
        let (mut row_starts, mut pairs) = (vec![0], large_buffer(count * MIN_TERMS_PER_APP)?);
        let mut name_hashes = Vec::new();
        for document in documents {
            analyzer.analyze(&document, &mut pairs);
            row_starts.push(pairs.len() as u32);
            name_hashes.push(name_hash(document.name));
        }
        name_hashes.shrink_to_fit();
        row_starts.shrink_to_fit();
        let (sorted, ranks) = analyzer.interner.sorted();
        for (term, _) in &mut pairs {
            *term = ranks[*term as usize];
        }
        drop(ranks);
        let postings = Postings::build(row_starts, pairs, sorted.len())?;
        let prefix_cache = PrefixCache::build(&sorted, &postings);
        Ok(SearchIndex { dictionary: TermDictionary::build(&sorted), postings, prefix_cache, name_hashes })
    }

    /// Returns at most `limit` ids of documents that match `query` and that `accept` returns true for, best first.
    pub(crate) fn search(&self, query: &str, limit: usize, accept: &dyn Fn(u32) -> bool) -> Vec<u32> {
        let text = query;
        let query = ParsedQuery::parse(text);
        if limit == 0 || query.words.is_empty() {
            return Vec::new();
        }
        let mut top = TopK::new(limit.min(self.name_hashes.len()).max(1));
        let cursors = query.cursors(&self.dictionary);
        let concatenated = query.concatenated_match(&cursors, &self.dictionary);
        match query.words.as_slice() {
            // `GM GM` has one distinct word, but its concatenation differs from the word.
            [word] if *word == query.concatenated => self.search_word(word, concatenated.as_ref(), &mut top, accept),
            _ => self.search_words(&query, &cursors, concatenated.as_ref(), &mut top, accept),
        }
        if top.first().is_none()
            && let Some(query) = query.split_compound(&self.dictionary, &self.postings)
        {
            self.search_words(&query, &query.cursors(&self.dictionary), None, &mut top, accept);
        }
        if let Some(PrefixMatch { terms, is_term: true }) = concatenated {
            self.add_exact_names(terms.start, name_hash(text), &mut top, accept);
        }
        top.into_ranks().into_iter().map(Rank::document).collect()
    }

    /// Adds the matches of a query of one word.
    fn search_word(
        &self,
        word: &str,
        matched: Option<&PrefixMatch>,
        top: &mut TopK,
        accept: &dyn Fn(DocumentId) -> bool,
    ) {
        if let Some(matched) = matched {
            self.add_prefix_matches(matched, top, accept);
        }
        // No fuzzy matches if a name starts with the word. A word found in other texts only may be a misspelt name.
        if top.first().is_none_or(|rank| !rank.is_at_least(Tier::NamePrefix)) {
            let max_errors = if top.first().is_some() { 1 } else { 2 };
            for expansion in fuzzy_expansions(word, max_errors, &self.dictionary) {
                let (ids, impacts) = self.postings.lists(&expansion.terms);
                for (&id, &impact) in ids.iter().zip(impacts) {
                    let rank = Rank::of_word(expansion.weight, impact, id);
                    if !top.admits(rank) {
                        break;
                    }
                    top.offer(rank, accept);
                }
            }
        }
    }

    /// Adds the matches of a query of several words: names first, then documents with all words, then with some.
    fn search_words(
        &self,
        query: &ParsedQuery,
        cursors: &[Option<PrefixCursor>],
        concatenated: Option<&PrefixMatch>,
        top: &mut TopK,
        accept: &dyn Fn(DocumentId) -> bool,
    ) {
        if let Some(matched) = concatenated {
            self.add_names(matched, top, accept);
        }
        if top.is_full() {
            return;
        }
        let groups = expand_words(query, cursors, &self.dictionary, &self.postings);
        let total_idf: u32 = groups.iter().map(|group| group.idf).sum();
        let evaluation = MaxScore::new(&self.postings, groups, query.words.len());
        evaluation.add_all_words(top, accept);
        if top.first().is_none() {
            self.add_fuzzy_names(&query.concatenated, total_idf, top, accept);
        }
        if !top.is_full() {
            evaluation.add_some_words(top, accept);
        }
    }

    /// Adds the documents with a term that starts with the prefix.
    fn add_prefix_matches(&self, matched: &PrefixMatch, top: &mut TopK, accept: &dyn Fn(DocumentId) -> bool) {
        if let Some(ranks) = self.prefix_cache.get(matched) {
            for rank in ranks {
                top.offer(*rank, accept);
            }
            if top.is_full() || PrefixCache::is_complete(ranks) {
                return;
            }
        }
        scan_prefix(matched, &self.postings, top, accept);
    }

    /// Adds the documents whose concatenated name starts with the concatenated query.
    fn add_names(&self, matched: &PrefixMatch, top: &mut TopK, accept: &dyn Fn(DocumentId) -> bool) {
        for term in matched.terms.clone() {
            let is_whole_name = matched.is_term && term == matched.terms.start;
            let tier = if is_whole_name { Tier::WholeName } else { Tier::NamePrefix };
            for id in self.named(term) {
                top.offer(Rank::new(tier, 0, id), accept);
            }
        }
    }

    /// Adds the documents whose concatenated name is one error from the concatenated query, scored as if each word of
    /// the query had matched with one error.
    fn add_fuzzy_names(&self, name: &str, total_idf: u32, top: &mut TopK, accept: &dyn Fn(DocumentId) -> bool) {
        for expansion in fuzzy_expansions(name, 1, &self.dictionary) {
            let score = total_idf * expansion.weight.apply(WHOLE_NAME);
            for id in expansion.terms.flat_map(|term| self.named(term)) {
                top.offer(Rank::new(Tier::AllWords, score, id), accept);
            }
        }
    }

    /// Adds the documents whose name equals the query including spaces and punctuation, ignoring case.
    fn add_exact_names(&self, term: u32, hash: u32, top: &mut TopK, accept: &dyn Fn(DocumentId) -> bool) {
        for id in self.named(term) {
            if self.name_hashes[id as usize] == hash {
                top.offer(Rank::new(Tier::ExactName, 0, id), accept);
            }
        }
    }

    /// The documents whose concatenated name is `term`: they come first in its posting list.
    fn named(&self, term: u32) -> impl Iterator<Item = DocumentId> {
        let (ids, impacts) = self.postings.list(term);
        ids.iter().zip(impacts).take_while(|(_, impact)| **impact == WHOLE_NAME).map(|(id, _)| *id)
    }
}

/// A hash of a name in lower case with its spaces and punctuation.
fn name_hash(name: &str) -> u32 {
    interner::hash(&name.trim().to_lowercase())
}
