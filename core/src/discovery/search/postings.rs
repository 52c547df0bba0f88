//! Posting lists and the forward index: which documents have a term, and which terms a document has.
//!
//! Invariant: a list is sorted by impact, the greatest first, then by document; the terms of a document
//! are sorted. Lists in impact order let a search stop as soon as nothing better can follow; the
//! forward index then answers for the other words of the query in one place in memory. All are flat
//! arrays: nine bytes a posting in all, no allocation for a term.

use std::ops::Range;

use super::fields::Impact;
use super::vocabulary::Term;

pub(super) type DocumentId = u32;

/// Rows of pairs, in two columns, one row after the other.
struct Rows {
    starts: Vec<u32>,
    numbers: Vec<u32>,
    impacts: Vec<Impact>,
}

pub(super) struct Postings {
    lists: Rows,
    documents: Rows,
    signatures: Vec<Signature>,
}

/// Which stretches of the vocabulary a document has terms in, a bit each. A stretch is as many terms as have a
/// 128th of all postings, so a common term has one to itself; being in byte order, a prefix is a few stretches.
pub(super) type Signature = u128;

impl Postings {
    /// `starts` are the ends of the documents' rows in `pairs`, after a leading 0; `terms` is how many there are.
    pub(super) fn build(starts: Vec<u32>, mut pairs: Vec<(Term, Impact)>, terms: usize) -> Postings {
        let documents = starts.len().saturating_sub(1);
        for id in 0..documents {
            pairs[range(&starts, id)].sort_unstable();
        }
        let mut list_starts = vec![0_u32; terms + 1];
        for (term, _) in &pairs {
            list_starts[*term as usize + 1] += 1;
        }
        for term in 0..terms {
            list_starts[term + 1] += list_starts[term];
        }
        let mut next = list_starts.clone();
        let mut keys = vec![0_u64; pairs.len()];
        for id in 0..documents {
            for (term, impact) in &pairs[range(&starts, id)] {
                let place = &mut next[*term as usize];
                keys[*place as usize] = u64::from(Impact::MAX - impact) << 32 | id as u64;
                *place += 1;
            }
        }
        drop(next);
        for term in 0..terms {
            keys[range(&list_starts, term)].sort_unstable();
        }
        let lists = Rows {
            starts: list_starts,
            numbers: keys.iter().map(|key| *key as u32).collect(),
            impacts: keys.iter().map(|key| Impact::MAX - (key >> 32) as Impact).collect(),
        };
        drop(keys);
        let (numbers, impacts) = pairs.into_iter().unzip();
        let mut postings = Postings { lists, documents: Rows { starts, numbers, impacts }, signatures: Vec::new() };
        let signature = |id| postings.document(id).0.iter().fold(0, |bits, term| bits | 1 << postings.stretch(*term));
        postings.signatures = (0..documents as DocumentId).map(signature).collect();
        postings
    }

    fn stretch(&self, term: Term) -> u64 {
        let bits = u64::from(Signature::BITS);
        u64::from(self.lists.starts[term as usize]) * bits / (self.lists.numbers.len() as u64).max(1)
    }

    /// What the signature of a document with one of `terms` has a bit of.
    pub(super) fn stretches(&self, terms: &Range<Term>) -> Signature {
        if terms.is_empty() {
            return 0;
        }
        let (first, last) = (self.stretch(terms.start), self.stretch(terms.end - 1));
        Signature::MAX << first & Signature::MAX >> (u64::from(Signature::BITS) - 1 - last)
    }

    pub(super) fn signature(&self, id: DocumentId) -> Signature {
        self.signatures[id as usize]
    }

    pub(super) fn documents(&self) -> usize {
        self.documents.starts.len() - 1
    }

    pub(super) fn terms(&self) -> usize {
        self.lists.starts.len() - 1
    }

    /// How many postings the lists of `terms` have.
    pub(super) fn count(&self, terms: &Range<Term>) -> usize {
        (self.lists.starts[terms.end as usize] - self.lists.starts[terms.start as usize]) as usize
    }

    pub(super) fn list(&self, term: Term) -> (&[DocumentId], &[Impact]) {
        self.lists.row(term as usize..term as usize + 1)
    }

    /// The lists of neighbouring terms as one.
    pub(super) fn lists(&self, terms: &Range<Term>) -> (&[DocumentId], &[Impact]) {
        self.lists.row(terms.start as usize..terms.end as usize)
    }

    pub(super) fn document(&self, id: DocumentId) -> (&[Term], &[Impact]) {
        self.documents.row(id as usize..id as usize + 1)
    }
}

impl Rows {
    fn row(&self, rows: Range<usize>) -> (&[u32], &[Impact]) {
        let range = self.starts[rows.start] as usize..self.starts[rows.end] as usize;
        (&self.numbers[range.clone()], &self.impacts[range])
    }
}

fn range(starts: &[u32], row: usize) -> Range<usize> {
    starts[row] as usize..starts[row + 1] as usize
}
