//! The vocabulary: every term of the index, found by spelling, by prefix, and by near spelling.
//!
//! Invariant: a term is its rank in byte order, so the terms with a common prefix are one range of
//! numbers, and their posting lists lie side by side. A finite state transducer keeps the spellings in a
//! few bytes a term; a second one holds them backwards: one half of a word with one error is spelt right, and
//! starting from that half visits few terms (Mihov and Schulz 2004).

use std::ops::Range;

use fst::raw::{CompiledAddr, Fst};
use fst::{Map, MapBuilder};

use super::edits::{Edits, LONGEST_PATTERN};

pub(super) type Term = u32;

/// A word has at most so many near spellings; a hostile vocabulary could hold thousands.
const MOST_NEAR: usize = 32;

pub(super) struct Vocabulary {
    forward: Map<Vec<u8>>,
    backward: Map<Vec<u8>>,
}

/// What the vocabulary has for a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spelling {
    /// All terms that start with the word.
    pub(super) range: Range<Term>,
    /// Whether the first of them is the word itself.
    pub(super) is_term: bool,
}

/// A word followed to its end, from where it can be followed on.
pub(super) struct Path {
    pub(super) spelling: Spelling,
    node: CompiledAddr,
}

impl Vocabulary {
    /// `sorted` must be in byte order without repeats.
    pub(super) fn build(sorted: &[&str]) -> Vocabulary {
        // One text for all: a string for each would double what the build needs.
        let mut text = String::with_capacity(sorted.iter().map(|term| term.len()).sum());
        let mut spans = Vec::with_capacity(sorted.len());
        for term in sorted {
            let start = text.len();
            text.extend(term.chars().rev());
            spans.push(start..text.len());
        }
        let mut reversed: Vec<(&str, u64)> = spans.into_iter().map(|span| &text[span]).zip(0..).collect();
        reversed.sort_unstable();
        Vocabulary {
            forward: transducer(sorted.iter().zip(0..).map(|(term, rank)| (*term, rank))),
            backward: transducer(reversed.into_iter()),
        }
    }

    pub(super) fn spelling(&self, word: &str) -> Option<Spelling> {
        Some(self.path(word)?.spelling)
    }

    /// The way to `word`, when some term starts with it.
    pub(super) fn path(&self, word: &str) -> Option<Path> {
        let root = self.forward.as_fst().root();
        let range = 0..Term::try_from(self.forward.len()).ok()?;
        let start = Path { spelling: Spelling { range, is_term: root.is_final() }, node: root.addr() };
        self.longer(&start, word)
    }

    /// From `path` on by `more`, in one walk: outputs grow in byte order, so what is summed up on the way
    /// is the first rank below a node, and the next branch on the way starts where it ends.
    pub(super) fn longer(&self, path: &Path, more: &str) -> Option<Path> {
        let transducer = self.forward.as_fst();
        let mut node = transducer.node(path.node);
        let (mut first, mut end) = (u64::from(path.spelling.range.start), u64::from(path.spelling.range.end));
        for &byte in more.as_bytes() {
            let taken = node.find_input(byte)?;
            if taken + 1 < node.len() {
                end = first + node.transition(taken + 1).out.value();
            }
            let transition = node.transition(taken);
            first += transition.out.value();
            node = transducer.node(transition.addr);
        }
        let rank = |value: u64| Term::try_from(value).ok();
        Some(Path {
            spelling: Spelling { range: rank(first)?..rank(end)?, is_term: node.is_final() },
            node: node.addr(),
        })
    }

    /// The terms at most `most` errors from `word` (fewer for a short one): those one error away, else two.
    pub(super) fn near(&self, word: &str, most: usize) -> Vec<(Term, usize)> {
        let length = word.chars().count();
        let most = most.min(match length {
            5..9 => 1,
            9..=LONGEST_PATTERN => 2,
            _ => 0,
        });
        let pivot = length / 2;
        let tail = || word.chars().rev();
        let (forward, backward) = (self.forward.as_fst(), self.backward.as_fst());
        let mut found = Vec::new();
        if most >= 1 {
            // One letter less at the start: two letters swapped across the pivot spoil both halves.
            collect(forward, word.chars(), pivot - 1, |rest| Edits::new(rest, 1), &mut found);
            collect(backward, tail(), length - pivot, |rest| Edits::new(rest, 1), &mut found);
        }
        if most >= 2 && found.is_empty() {
            collect(forward, word.chars(), 0, |rest| Edits::new(rest, 2).with_one_before(pivot), &mut found);
            collect(backward, tail(), length - pivot, |rest| Edits::new(rest, 2), &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Adds the terms that start with the first `exact` letters of the word and go on nearly as it does.
fn collect<L: Iterator<Item = char>>(
    transducer: &Fst<Vec<u8>>,
    mut letters: L,
    exact: usize,
    rest: impl FnOnce(L) -> Edits,
    found: &mut Vec<(Term, usize)>,
) {
    let (mut address, mut rank) = (transducer.root().addr(), 0);
    for letter in letters.by_ref().take(exact) {
        for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
            let node = transducer.node(address);
            let Some(taken) = node.find_input(byte) else { return };
            let transition = node.transition(taken);
            (address, rank) = (transition.addr, rank + transition.out.value());
        }
    }
    let edits = rest(letters);
    let most = found.len() + MOST_NEAR;
    let mut open = vec![(address, rank, edits.start())];
    while let Some((address, rank, state)) = open.pop() {
        let node = transducer.node(address);
        if node.is_final()
            && let Some(errors @ 1..) = edits.errors(&state)
        {
            let term = Term::try_from(rank + node.final_output().value());
            found.extend(term.map(|term| (term, errors)));
            if found.len() >= most {
                return;
            }
        }
        for transition in node.transitions() {
            let next = edits.accept(&state, transition.inp);
            if edits.can_match(&next) {
                open.push((transition.addr, rank + transition.out.value(), next));
            }
        }
    }
}

fn transducer<'a>(entries: impl Iterator<Item = (&'a str, u64)>) -> Map<Vec<u8>> {
    let mut builder = MapBuilder::memory();
    for (term, rank) in entries {
        builder.insert(term, rank).expect("terms come sorted and once each, and memory takes all bytes");
    }
    let bytes = builder.into_inner().expect("memory takes all bytes");
    Map::new(bytes).expect("a transducer just built is one")
}
