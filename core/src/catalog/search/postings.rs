//! Posting lists and the forward index: the documents of each term, and the postings of each document.
//!
//! Invariant: a posting list is sorted by impact, greatest first, then by document id. The lists lie side by side in
//! term order, so the postings of all terms with a prefix are one range of [`PostingIndex`]. A row of the forward
//! index holds the sorted posting indexes of a document: one number identifies both term and impact. All are flat
//! arrays: nine bytes a posting, 32 bytes a document, no allocation per term.

use std::{hint::black_box, ops::Range};

use super::analyzer::Impact;
use super::term_dictionary::TermId;
use crate::{error::Result, large_buffer::large_buffer};

pub(super) type DocumentId = u32;

/// The index of a posting among all postings.
pub(super) type PostingIndex = u32;

pub(super) struct Postings {
    /// The start of each term's list, then the end of the last one.
    list_starts: Vec<PostingIndex>,
    ids: Vec<DocumentId>,
    impacts: Vec<Impact>,
    /// One a document, and one more for the end of the last row.
    documents: Vec<DocumentHeader>,
    rows: Vec<PostingIndex>,
}

/// The part of a document that a query reads first; half a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct DocumentHeader {
    blocks: BlockSet,
    row_start: u32,
}

/// A set of blocks of postings, one bit each. All postings are divided into [`BlockSet::BITS`] blocks of equal
/// length. A query skips a document whose blocks do not overlap the query's, without reading its row (a Bloom-like
/// signature).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockSet([u32; 7]);

impl Postings {
    /// Builds both indexes. `pairs` holds the terms of each document in turn; `row_starts` is 0 and then the end of
    /// each document's pairs.
    ///
    /// # Errors
    /// `Unavailable` if the system has too little memory.
    pub(super) fn build(row_starts: Vec<u32>, pairs: Vec<(TermId, Impact)>, terms: usize) -> Result<Postings> {
        let mut list_starts = vec![0; terms + 1];
        for (term, _) in &pairs {
            list_starts[*term as usize + 1] += 1;
        }
        for term in 0..terms {
            list_starts[term + 1] += list_starts[term];
        }
        let mut next = list_starts.clone();
        let mut keys = large_buffer(pairs.len())?;
        keys.resize(pairs.len(), 0_u64);
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
        let (documents, rows) = forward_index(row_starts, &ids);
        Ok(Postings { list_starts, ids, impacts, documents, rows })
    }

    pub(super) fn documents(&self) -> usize {
        self.documents.len() - 1
    }

    pub(super) fn terms(&self) -> usize {
        self.list_starts.len() - 1
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
        &self.rows[self.documents[id].row_start as usize..self.documents[id + 1].row_start as usize]
    }

    /// Loads the document headers of some postings into the CPU cache at once. Loading them one by one takes most of
    /// the time of a search.
    pub(super) fn prefetch_headers(&self, postings: Range<PostingIndex>) {
        let ids = &self.ids[postings.start as usize..postings.end as usize];
        black_box(ids.iter().fold(0, |all, id| all ^ self.documents[*id as usize].row_start));
    }

    /// False if the document certainly has no posting in `blocks`.
    pub(super) fn may_have(&self, id: DocumentId, blocks: &BlockSet) -> bool {
        let BlockSet(own) = &self.documents[id as usize].blocks;
        own.iter().zip(&blocks.0).fold(0, |both, (own, other)| both | own & other) != 0
    }

    /// The blocks that some postings lie in.
    pub(super) fn blocks(&self, postings: &Range<PostingIndex>) -> BlockSet {
        let mut blocks = BlockSet::default();
        if !postings.is_empty() {
            let (first, last) = (block_of(postings.start, self.ids.len()), block_of(postings.end - 1, self.ids.len()));
            (first..=last).for_each(|block| blocks.insert(block));
        }
        blocks
    }

    /// The blocks that some postings lie in, each with the first of these postings in it.
    pub(super) fn each_block(&self, postings: &Range<PostingIndex>) -> impl Iterator<Item = (usize, PostingIndex)> {
        let mut next = postings.start;
        let end = postings.end;
        std::iter::from_fn(move || {
            let first = next;
            let block = (first < end).then(|| block_of(first, self.ids.len()))?;
            next = block_start(block + 1, self.ids.len());
            Some((block, first))
        })
    }
}

/// Transposes the posting lists into rows of documents; `starts` are the starts of the rows.
fn forward_index(mut starts: Vec<u32>, ids: &[DocumentId]) -> (Vec<DocumentHeader>, Vec<PostingIndex>) {
    let mut documents: Vec<DocumentHeader> =
        starts.iter().map(|start| DocumentHeader { blocks: BlockSet::default(), row_start: *start }).collect();
    let mut rows = vec![0; ids.len()];
    for (posting, id) in (0..).zip(ids) {
        let next = &mut starts[*id as usize];
        rows[*next as usize] = posting;
        *next += 1;
        documents[*id as usize].blocks.insert(block_of(posting, ids.len()));
    }
    (documents, rows)
}

/// The block of a posting, of `count` postings. A common term fills several blocks; a prefix fills neighbouring blocks.
fn block_of(posting: PostingIndex, count: usize) -> usize {
    (u64::from(posting) * u64::from(BlockSet::BITS) / (count as u64).max(1)) as usize
}

fn block_start(block: usize, count: usize) -> PostingIndex {
    (block as u64 * count as u64).div_ceil(u64::from(BlockSet::BITS)) as PostingIndex
}

impl BlockSet {
    const BITS: u32 = 7 * u32::BITS;

    pub(super) fn insert(&mut self, block: usize) {
        self.0[block / 32] |= 1 << (block % 32);
    }

    pub(super) fn insert_all(&mut self, others: BlockSet) {
        for (bits, others) in self.0.iter_mut().zip(others.0) {
            *bits |= others;
        }
    }
}
