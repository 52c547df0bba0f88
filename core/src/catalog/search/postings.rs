//! Posting lists and the forward index: the documents of each term, and the postings of each document.
//!
//! Invariant: a posting list is sorted by impact, greatest first, then by document id. The lists lie side by side in
//! term order, so the postings of all terms with a prefix are one range of [`PostingIndex`]. A row of the forward
//! index holds the sorted posting indexes of a document: one number identifies both term and impact. All are flat
//! arrays: nine bytes a posting, four bytes a document, no allocation per term.

use std::ops::Range;

use super::analyzer::Impact;
use super::term_dictionary::TermId;

pub(super) type DocumentId = u32;

/// The index of a posting among all postings.
pub(super) type PostingIndex = u32;

pub(super) struct Postings {
    /// The start of each term's list, then the end of the last one.
    list_starts: Vec<PostingIndex>,
    ids: Vec<DocumentId>,
    impacts: Vec<Impact>,
    /// The start of each document's row, then the end of the last one.
    row_starts: Vec<u32>,
    rows: Vec<PostingIndex>,
}

impl Postings {
    /// Builds both indexes. `pairs` holds the terms of each document in turn; `row_starts` is 0 and then the end of
    /// each document's pairs.
    pub(super) fn build(row_starts: Vec<u32>, pairs: Vec<(TermId, Impact)>, terms: usize) -> Postings {
        let mut list_starts = vec![0; terms + 1];
        for (term, _) in &pairs {
            list_starts[*term as usize + 1] += 1;
        }
        for term in 0..terms {
            list_starts[term + 1] += list_starts[term];
        }
        let mut next = list_starts.clone();
        let mut keys = vec![0_u64; pairs.len()];
        for (id, row) in row_starts.windows(2).enumerate() {
            for (term, impact) in &pairs[row[0] as usize..row[1] as usize] {
                let index = &mut next[*term as usize];
                keys[*index as usize] = u64::from(Impact::MAX - impact) << 32 | id as u64;
                *index += 1;
            }
        }
        drop((next, pairs));
        for list in list_starts.windows(2) {
            keys[list[0] as usize..list[1] as usize].sort_unstable();
        }
        let ids: Vec<DocumentId> = keys.iter().map(|key| *key as DocumentId).collect();
        let impacts = keys.iter().map(|key| Impact::MAX - (key >> 32) as Impact).collect();
        drop(keys);
        let rows = forward_index(&row_starts, &ids);
        Postings { list_starts, ids, impacts, row_starts, rows }
    }

    pub(super) fn documents(&self) -> usize {
        self.row_starts.len() - 1
    }

    /// The postings of a range of terms.
    pub(super) fn range(&self, terms: &Range<TermId>) -> Range<PostingIndex> {
        self.list_starts[terms.start as usize]..self.list_starts[terms.end as usize]
    }

    /// The number of postings of a range of terms.
    pub(super) fn count(&self, terms: &Range<TermId>) -> usize {
        self.range(terms).len()
    }

    pub(super) fn list(&self, term: TermId) -> (&[DocumentId], &[Impact]) {
        self.lists(&(term..term + 1))
    }

    /// The posting lists of a range of terms, one after the other.
    pub(super) fn lists(&self, terms: &Range<TermId>) -> (&[DocumentId], &[Impact]) {
        let postings = self.range(terms);
        let range = postings.start as usize..postings.end as usize;
        (&self.ids[range.clone()], &self.impacts[range])
    }

    /// The term of a posting.
    pub(super) fn term(&self, posting: PostingIndex) -> TermId {
        (self.list_starts.partition_point(|start| *start <= posting) - 1) as TermId
    }

    pub(super) fn impact(&self, posting: PostingIndex) -> Impact {
        self.impacts[posting as usize]
    }

    /// The row of a document in the forward index.
    pub(super) fn row(&self, id: DocumentId) -> &[PostingIndex] {
        let id = id as usize;
        &self.rows[self.row_starts[id] as usize..self.row_starts[id + 1] as usize]
    }
}

/// Transposes the posting lists into rows of documents, which start at `starts`.
fn forward_index(starts: &[u32], ids: &[DocumentId]) -> Vec<PostingIndex> {
    let mut next = starts.to_vec();
    let mut rows = vec![0; ids.len()];
    for (posting, id) in (0..).zip(ids) {
        let place = &mut next[*id as usize];
        rows[*place as usize] = posting;
        *place += 1;
    }
    rows
}
