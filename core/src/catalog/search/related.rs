//! Related documents: by the words that two documents share, weighted by rarity and by field.

use std::collections::HashMap;

use super::{SearchIndex, postings::DocumentId, term_dictionary::TermId};

/// How many of a document's words are compared: the most characteristic ones.
const MAX_WORDS: usize = 24;
/// A word of more documents than one in this many says nothing.
const MAX_SHARE: usize = 10;
/// How many documents of a word are compared: those with the word in the most important field.
const MAX_POSTINGS: usize = 2_000;

impl SearchIndex {
    /// The documents that share characteristic words with `id`, with a positive score each, in no order.
    pub(crate) fn related(&self, id: DocumentId) -> Vec<(DocumentId, f32)> {
        let documents = self.postings.documents() as f32;
        let most = (self.postings.documents() / MAX_SHARE).max(3);
        let mut words: Vec<(f32, TermId)> = Vec::new();
        for &posting in self.postings.row(id) {
            let term = self.postings.term(posting);
            let count = self.postings.count(&(term..term + 1));
            if (2..=most).contains(&count) {
                let idf = (documents / count as f32).ln().max(0.1);
                words.push((idf * f32::from(self.postings.impact(posting)), term));
            }
        }
        words.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        let mut scores: HashMap<DocumentId, f32> = HashMap::new();
        for (weight, term) in words.into_iter().take(MAX_WORDS) {
            let (ids, impacts) = self.postings.list(term);
            for (&other, &impact) in ids.iter().zip(impacts).take(MAX_POSTINGS).filter(|(other, _)| **other != id) {
                *scores.entry(other).or_default() += weight * f32::from(impact);
            }
        }
        scores.into_iter().collect()
    }
}
