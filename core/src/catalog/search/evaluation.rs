//! The evaluation of a query of several words: the score of each document that has one of them.
//!
//! Invariant: the score of a document is the sum, over the words, of the greatest weighted impact of a term that matches
//! the word, times the word's inverse document frequency. Every posting of every word is read once.

use super::postings::{DocumentId, Postings};
use super::query::TermGroup;
use super::top_k::{Rank, Tier, TopK};

/// The scores of the documents that have some word of one query.
pub(super) struct Evaluation {
    scores: Vec<DocumentScore>,
    /// The number of required words that a document with all words has.
    required: u16,
}

struct DocumentScore {
    id: DocumentId,
    /// The sum over the words before `word`.
    sum: u32,
    /// The number of the last word with a posting of the document, counted from 1, and the best score of that word.
    word: u16,
    best: u32,
    /// How many of the words with a posting are required.
    required: u16,
}

impl Evaluation {
    /// Scores the documents of these groups. A document with all words has `words` required ones.
    pub(super) fn new(postings: &Postings, groups: &[TermGroup], words: usize) -> Evaluation {
        let mut scores: Vec<DocumentScore> = Vec::new();
        // The place of each document in `scores`, counted from 1.
        let mut places = vec![0_u32; postings.documents()];
        for (word, group) in (1..).zip(groups) {
            for expansion in &group.expansions {
                let (ids, impacts) = postings.lists(&expansion.terms);
                for (&id, &impact) in ids.iter().zip(impacts) {
                    let place = &mut places[id as usize];
                    if *place == 0 {
                        scores.push(DocumentScore { id, sum: 0, word: 0, best: 0, required: 0 });
                        *place = scores.len() as u32;
                    }
                    let document = &mut scores[*place as usize - 1];
                    let score = group.idf * expansion.weight.apply(impact);
                    if document.word == word {
                        document.best = document.best.max(score);
                    } else {
                        document.sum += document.best;
                        (document.word, document.best) = (word, score);
                        document.required += u16::from(group.is_required);
                    }
                }
            }
        }
        Evaluation { scores, required: words as u16 }
    }

    /// Adds the documents with all required words.
    pub(super) fn add_all_words(&self, tier: Tier, top: &mut TopK<'_>) {
        self.add(tier, |document| document.required == self.required, top);
    }

    /// Adds the documents with some required words, but not all.
    pub(super) fn add_some_words(&self, top: &mut TopK<'_>) {
        self.add(Tier::SomeWords, |document| (1..self.required).contains(&document.required), top);
    }

    fn add(&self, tier: Tier, is_wanted: impl Fn(&DocumentScore) -> bool, top: &mut TopK<'_>) {
        for document in self.scores.iter().filter(|document| is_wanted(document)) {
            top.offer(Rank::new(tier, document.sum + document.best, document.id));
        }
    }
}
