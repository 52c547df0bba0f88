//! The full-text search index of the catalog: an inverted index in memory, answering as people type.
//!
//! Invariant: an index never changes; a refresh builds another. Answers come in the order of [`ranking::Tier`]:
//! the app of that name, names that start so, apps with all words, apps with some; within that
//! by BM25 over weighted fields, and then as given to [`SearchIndex::build`]. Ours rather than a library's
//! because a catalog is small and its names matter most: one byte of impact a posting says it all.

mod edits;
mod evaluate;
mod fields;
mod fold;
mod heads;
mod interner;
mod postings;
mod query;
mod ranking;
#[cfg(test)]
mod tests;
mod vocabulary;
mod words;

use evaluate::Evaluation;
use fields::{Reader, WHOLE_NAME};
use heads::{Heads, look_through};
use postings::{DocumentId, Postings};
use query::{Query, groups, misspelt};
use ranking::{Best, Rank, Tier};
use vocabulary::{Path, Spelling, Vocabulary};

use crate::{catalog::Texts, large_buffer::large_buffer};

/// What the index reads of an app.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Document<'a> {
    pub(crate) name: &'a str,
    pub(crate) tags: Texts<'a>,
    pub(crate) category: Option<&'a str>,
    pub(crate) subtitle: Option<&'a str>,
    pub(crate) tagline: Option<&'a str>,
    pub(crate) author_username: Option<&'a str>,
    pub(crate) author_display_name: Option<&'a str>,
    pub(crate) description: Option<&'a str>,
    pub(crate) domain: &'a str,
}

/// What nearly every app has of different terms.
const FEWEST_TERMS: usize = 16;

pub(crate) struct SearchIndex {
    vocabulary: Vocabulary,
    postings: Postings,
    heads: Heads,
    /// A hash of each name as written but for its case, to tell `Yoink!` from `Yoink`.
    names: Vec<u32>,
}

impl SearchIndex {
    /// Ids count from 0 in the order of `documents`, which is the trending order: it breaks ties.
    pub(crate) fn build<'a>(documents: impl Iterator<Item = Document<'a>>) -> SearchIndex {
        let mut reader = Reader::new();
        // Ids and places are u32: four thousand million postings are some hundred million apps.
        let apps = documents.size_hint().0;
        let (mut starts, mut pairs, mut names) = (vec![0], large_buffer(apps * FEWEST_TERMS), Vec::new());
        for document in documents {
            reader.read(&document, &mut pairs);
            starts.push(pairs.len() as u32);
            names.push(as_typed(document.name));
        }
        names.shrink_to_fit();
        starts.shrink_to_fit();
        let (sorted, ranks) = reader.interner.sorted();
        for (term, _) in &mut pairs {
            *term = ranks[*term as usize];
        }
        drop(ranks);
        let postings = Postings::build(starts, pairs, sorted.len());
        let heads = Heads::build(&sorted, &postings);
        SearchIndex { vocabulary: Vocabulary::build(&sorted), postings, heads, names }
    }

    /// At most `limit` ids of documents that `accept` takes, the best first.
    pub(crate) fn search(&self, query: &str, limit: usize, accept: &dyn Fn(u32) -> bool) -> Vec<u32> {
        let text = query;
        let query = Query::read(text);
        if limit == 0 || query.words.is_empty() {
            return Vec::new();
        }
        let mut best = Best::new(limit.min(self.names.len()).max(1));
        let paths = query.paths(&self.vocabulary);
        let together = query.spelt_together(&paths, &self.vocabulary);
        match query.words.as_slice() {
            // `GM GM` is one word too, but not run together.
            [word] if *word == query.together => self.one_word(word, together.as_ref(), &mut best, accept),
            _ => self.several_words(&query, &paths, together.as_ref(), &mut best, accept),
        }
        if best.first().is_none()
            && let Some(query) = query.taken_apart(&self.vocabulary, &self.postings)
        {
            self.several_words(&query, &query.paths(&self.vocabulary), None, &mut best, accept);
        }
        if let Some(Spelling { range, is_term: true }) = together {
            self.named_as_typed(range.start, as_typed(text), &mut best, accept);
        }
        best.into_ranks().into_iter().map(Rank::document).collect()
    }

    fn one_word(&self, word: &str, spelling: Option<&Spelling>, best: &mut Best, accept: &dyn Fn(DocumentId) -> bool) {
        if let Some(spelling) = spelling {
            self.prefixed(spelling, best, accept);
        }
        // A word that starts some name is what was meant. One that only texts have may be a name misspelt.
        if best.first().is_none_or(|rank| !rank.is_at_least(Tier::NameStarts)) {
            let most = if best.first().is_some() { 1 } else { 2 };
            for expansion in misspelt(word, most, &self.vocabulary) {
                let (ids, impacts) = self.postings.lists(&expansion.terms);
                for (&id, &impact) in ids.iter().zip(impacts) {
                    let rank = Rank::of_word(expansion.closeness, impact, id);
                    if !best.beats(rank) {
                        break;
                    }
                    best.offer(rank, accept);
                }
            }
        }
    }

    fn several_words(
        &self,
        query: &Query,
        paths: &[Option<Path>],
        together: Option<&Spelling>,
        best: &mut Best,
        accept: &dyn Fn(DocumentId) -> bool,
    ) {
        if let Some(spelling) = together {
            self.named(spelling, best, accept);
        }
        if best.is_full() {
            return;
        }
        let groups = groups(query, paths, &self.vocabulary, &self.postings);
        let rarity: u32 = groups.iter().map(|group| group.rarity).sum();
        let evaluation = Evaluation::new(&self.postings, groups, query.words.len());
        evaluation.all_words(best, accept);
        if best.first().is_none() {
            self.nearly_named(&query.together, rarity, best, accept);
        }
        if !best.is_full() {
            evaluation.some_words(best, accept);
        }
    }

    /// Documents that have a word with this prefix.
    fn prefixed(&self, spelling: &Spelling, best: &mut Best, accept: &dyn Fn(DocumentId) -> bool) {
        if let Some(head) = self.heads.get(spelling) {
            for rank in head {
                best.offer(*rank, accept);
            }
            if best.is_full() || Heads::is_whole(head) {
                return;
            }
        }
        look_through(spelling, &self.postings, best, accept);
    }

    /// Documents whose name starts with the whole query.
    fn named(&self, spelling: &Spelling, best: &mut Best, accept: &dyn Fn(DocumentId) -> bool) {
        for term in spelling.range.clone() {
            let is_it = spelling.is_term && term == spelling.range.start;
            let tier = if is_it { Tier::WholeName } else { Tier::NameStarts };
            let (ids, impacts) = self.postings.list(term);
            for (&id, _) in ids.iter().zip(impacts).take_while(|(_, impact)| **impact == WHOLE_NAME) {
                best.offer(Rank::new(tier, 0, id), accept);
            }
        }
    }

    /// Documents whose name is the whole query but for an error, as good as all words so misspelt.
    fn nearly_named(&self, together: &str, rarity: u32, best: &mut Best, accept: &dyn Fn(DocumentId) -> bool) {
        for expansion in misspelt(together, 1, &self.vocabulary) {
            let score = rarity * expansion.closeness.strength(WHOLE_NAME);
            let (ids, impacts) = self.postings.lists(&expansion.terms);
            for (&id, _) in ids.iter().zip(impacts).take_while(|(_, impact)| **impact == WHOLE_NAME) {
                best.offer(Rank::new(Tier::AllWords, score, id), accept);
            }
        }
    }

    fn named_as_typed(&self, term: u32, hash: u32, best: &mut Best, accept: &dyn Fn(DocumentId) -> bool) {
        let (ids, impacts) = self.postings.list(term);
        for (&id, _) in ids.iter().zip(impacts).take_while(|(_, impact)| **impact == WHOLE_NAME) {
            if self.names[id as usize] == hash {
                best.offer(Rank::new(Tier::NameAsTyped, 0, id), accept);
            }
        }
    }
}

fn as_typed(name: &str) -> u32 {
    interner::hash(&name.trim().to_lowercase())
}
