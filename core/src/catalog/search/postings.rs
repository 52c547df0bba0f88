//! Posting lists and the forward index: which documents have a term, and which terms a document has.
//!
//! Invariant: a list is sorted by impact, the greatest first, then by document, and the lists lie side by side in
//! the order of the terms. A posting is known by its place in them, so the terms of a prefix are one range of places,
//! and the row of a document in the forward index is the sorted places of its postings: one number tells term and
//! impact. All are flat arrays: nine bytes a posting, 32 a document, no allocation for a term.

use std::{hint::black_box, ops::Range};

use super::fields::Impact;
use super::vocabulary::Term;
use crate::large_buffer::large_buffer;

pub(super) type DocumentId = u32;

/// Where a posting is among all postings.
pub(super) type Place = u32;

pub(super) struct Postings {
    /// Where the list of each term starts; then where the last one ends.
    starts: Vec<Place>,
    ids: Vec<DocumentId>,
    impacts: Vec<Impact>,
    /// One a document, and one more for where the last row ends.
    documents: Vec<Digest>,
    rows: Vec<Place>,
}

/// What a search looks at first of a document, in half a line of the cache.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Digest {
    signature: Signature,
    /// Where its row starts.
    row: u32,
}

/// Which stretches of all places have postings of a document, a bit each: places without such a bit are
/// passed over with its row unread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signature([u32; 7]);

impl Postings {
    /// `starts` are the ends of the documents' rows in `pairs`, after a leading 0; `terms` is how many there are.
    pub(super) fn build(starts: Vec<u32>, pairs: Vec<(Term, Impact)>, terms: usize) -> Postings {
        let mut list_starts = vec![0; terms + 1];
        for (term, _) in &pairs {
            list_starts[*term as usize + 1] += 1;
        }
        for term in 0..terms {
            list_starts[term + 1] += list_starts[term];
        }
        let mut next = list_starts.clone();
        let mut keys = large_buffer(pairs.len());
        keys.resize(pairs.len(), 0_u64);
        for (id, row) in starts.windows(2).enumerate() {
            for (term, impact) in &pairs[row[0] as usize..row[1] as usize] {
                let place = &mut next[*term as usize];
                keys[*place as usize] = u64::from(Impact::MAX - impact) << 32 | id as u64;
                *place += 1;
            }
        }
        drop((next, pairs));
        for list in list_starts.windows(2) {
            keys[list[0] as usize..list[1] as usize].sort_unstable();
        }
        let ids: Vec<DocumentId> = keys.iter().map(|key| *key as DocumentId).collect();
        let impacts = keys.iter().map(|key| Impact::MAX - (key >> 32) as Impact).collect();
        drop(keys);
        let (documents, rows) = forward(starts, &ids);
        Postings { starts: list_starts, ids, impacts, documents, rows }
    }

    pub(super) fn documents(&self) -> usize {
        self.documents.len() - 1
    }

    pub(super) fn terms(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where the postings of neighbouring terms are.
    pub(super) fn places(&self, terms: &Range<Term>) -> Range<Place> {
        self.starts[terms.start as usize]..self.starts[terms.end as usize]
    }

    /// How many postings the lists of `terms` have.
    pub(super) fn count(&self, terms: &Range<Term>) -> usize {
        self.places(terms).len()
    }

    pub(super) fn list(&self, term: Term) -> (&[DocumentId], &[Impact]) {
        self.lists(&(term..term + 1))
    }

    /// The lists of neighbouring terms as one.
    pub(super) fn lists(&self, terms: &Range<Term>) -> (&[DocumentId], &[Impact]) {
        let places = self.places(terms);
        let range = places.start as usize..places.end as usize;
        (&self.ids[range.clone()], &self.impacts[range])
    }

    pub(super) fn impact(&self, place: Place) -> Impact {
        self.impacts[place as usize]
    }

    /// The places of a document's postings, sorted.
    pub(super) fn row(&self, id: DocumentId) -> &[Place] {
        let id = id as usize;
        &self.rows[self.documents[id].row as usize..self.documents[id + 1].row as usize]
    }

    /// Asks memory for what [`Postings::may_have`] reads of the documents at these places, all at once: to wait for them
    /// one by one would take most of a search.
    pub(super) fn fetch(&self, places: Range<Place>) {
        let ids = &self.ids[places.start as usize..places.end as usize];
        black_box(ids.iter().fold(0, |all, id| all ^ self.documents[*id as usize].row));
    }

    /// Whether a document may have postings in the stretches of `wanted`.
    pub(super) fn may_have(&self, id: DocumentId, wanted: &Signature) -> bool {
        let Signature(stretches) = &self.documents[id as usize].signature;
        stretches.iter().zip(&wanted.0).fold(0, |both, (has, wants)| both | has & wants) != 0
    }

    /// The stretches that `places` are in.
    pub(super) fn stretches(&self, places: &Range<Place>) -> Signature {
        let mut signature = Signature::default();
        if !places.is_empty() {
            let (first, last) = (stretch(places.start, self.ids.len()), stretch(places.end - 1, self.ids.len()));
            (first..=last).for_each(|stretch| signature.add(stretch));
        }
        signature
    }

    /// The stretches that `places` are in, one by one, each with the first of the places in it.
    pub(super) fn each_stretch(&self, places: &Range<Place>) -> impl Iterator<Item = (usize, Place)> {
        let mut first = places.start;
        let end = places.end;
        std::iter::from_fn(move || {
            let place = first;
            let stretch = (place < end).then(|| stretch(place, self.ids.len()))?;
            first = first_of_stretch(stretch + 1, self.ids.len());
            Some((stretch, place))
        })
    }
}

/// The forward index. `starts` are those of the rows, which are the other way round of the lists.
fn forward(mut starts: Vec<u32>, ids: &[DocumentId]) -> (Vec<Digest>, Vec<Place>) {
    let mut documents: Vec<Digest> =
        starts.iter().map(|row| Digest { signature: Signature::default(), row: *row }).collect();
    let mut rows = vec![0; ids.len()];
    for (place, id) in (0..).zip(ids) {
        let next = &mut starts[*id as usize];
        rows[*next as usize] = place;
        *next += 1;
        documents[*id as usize].signature.add(stretch(place, ids.len()));
    }
    (documents, rows)
}

/// All stretches are equally long; so a common term has some to itself, and a prefix is a few neighbours.
fn stretch(place: Place, places: usize) -> usize {
    (u64::from(place) * u64::from(Signature::BITS) / (places as u64).max(1)) as usize
}

fn first_of_stretch(stretch: usize, places: usize) -> Place {
    (stretch as u64 * places as u64).div_ceil(u64::from(Signature::BITS)) as Place
}

impl Signature {
    const BITS: u32 = 7 * u32::BITS;

    pub(super) fn add(&mut self, stretch: usize) {
        self.0[stretch / 32] |= 1 << (stretch % 32);
    }

    pub(super) fn add_all(&mut self, others: Signature) {
        for (bits, others) in self.0.iter_mut().zip(others.0) {
            *bits |= others;
        }
    }
}
