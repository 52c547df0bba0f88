//! The term dictionary: every term of the index, found exactly, by prefix, and by similar spelling.
//!
//! Invariant: a [`TermId`] is the term's rank in byte order, so the terms with a common prefix are one range of ids
//! and their posting lists are neighbours. A finite state transducer (FST) maps terms to ids in a few bytes a term. A
//! second FST holds the terms reversed: of a word with one error, one half is spelt right, and starting from that half
//! visits few terms (Mihov and Schulz 2004). With one FST, a word with a typo takes 22 us instead of 5 on the real catalog.

use std::ops::Range;

use fst::{
    Map, MapBuilder,
    raw::{CompiledAddr, Fst},
};

use super::levenshtein::{AutomatonState, LONGEST_PATTERN, LevenshteinAutomaton};

pub(super) type TermId = u32;

/// The most nodes that one search for misspellings visits, and the most matches that it collects. They bound the work in a
/// hostile catalog.
const MAX_VISITS: usize = 1 << 14;
const MAX_MATCHES: usize = 32;

pub(super) struct TermDictionary {
    forward: Map<Vec<u8>>,
    backward: Map<Vec<u8>>,
    /// The end of the terms that start with each term.
    prefix_ends: Box<[TermId]>,
}

/// The terms that start with a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrefixMatch {
    pub(super) terms: Range<TermId>,
    /// Whether the first of the terms is the word itself.
    pub(super) is_term: bool,
}

/// The FST node at the end of a word, from which [`TermDictionary::extend`] continues.
pub(super) struct PrefixCursor {
    pub(super) matched: PrefixMatch,
    node: CompiledAddr,
}

/// A node on the path of [`TermDictionary::fuzzy_prefixes`].
struct Visit {
    address: CompiledAddr,
    /// The terms below the node.
    first: u64,
    end: u64,
    state: AutomatonState,
    /// Whether the terms below an earlier node of the path are a match.
    is_inside: bool,
}

impl TermDictionary {
    /// Builds the dictionary from distinct terms in byte order.
    pub(super) fn build(sorted: &[&str]) -> TermDictionary {
        let mut reversed: Vec<(String, u64)> =
            sorted.iter().zip(0..).map(|(term, id)| (term.chars().rev().collect(), id)).collect();
        reversed.sort_unstable();
        TermDictionary {
            forward: build_fst(sorted.iter().copied().zip(0..)),
            backward: build_fst(reversed.iter().map(|(term, id)| (term.as_str(), *id))),
            prefix_ends: prefix_ends(sorted),
        }
    }

    pub(super) fn prefix_match(&self, word: &str) -> Option<PrefixMatch> {
        Some(self.cursor(word)?.matched)
    }

    /// The terms that start with a term.
    pub(super) fn terms_starting_with(&self, term: TermId) -> PrefixMatch {
        PrefixMatch { terms: term..self.prefix_ends[term as usize], is_term: true }
    }

    /// Follows `word` from the root; `None` if no term starts with it.
    pub(super) fn cursor(&self, word: &str) -> Option<PrefixCursor> {
        let root = self.forward.as_fst().root();
        let terms = 0..TermId::try_from(self.forward.len()).ok()?;
        let start = PrefixCursor { matched: PrefixMatch { terms, is_term: root.is_final() }, node: root.addr() };
        self.extend(&start, word)
    }

    /// Follows `suffix` from a cursor; `None` if no term continues so.
    ///
    /// The FST's outputs grow in byte order: their sum along the path is the first id below a node, and the next
    /// sibling transition gives the end of the range.
    pub(super) fn extend(&self, cursor: &PrefixCursor, suffix: &str) -> Option<PrefixCursor> {
        let fst = self.forward.as_fst();
        let mut node = fst.node(cursor.node);
        let (mut first, mut end) = (u64::from(cursor.matched.terms.start), u64::from(cursor.matched.terms.end));
        for &byte in suffix.as_bytes() {
            let taken = node.find_input(byte)?;
            if taken + 1 < node.len() {
                end = first + node.transition(taken + 1).out.value();
            }
            let transition = node.transition(taken);
            first += transition.out.value();
            node = fst.node(transition.addr);
        }
        let id = |value: u64| TermId::try_from(value).ok();
        let matched = PrefixMatch { terms: id(first)?..id(end)?, is_term: node.is_final() };
        Some(PrefixCursor { matched, node: node.addr() })
    }

    /// The terms with one error against `word`, or if there are none and `max_errors` is 2, the terms with two. One
    /// error is allowed from five letters, two from nine.
    pub(super) fn fuzzy_matches(&self, word: &str, max_errors: usize) -> Vec<(TermId, usize)> {
        let max_errors = max_errors.min(allowed_errors(word));
        let (forward, backward) = (self.forward.as_fst(), self.backward.as_fst());
        let mut matches = Vec::new();
        if max_errors >= 1 {
            // The first exact half is one letter shorter: a transposition across the pivot changes both halves.
            let length = word.chars().count();
            let reversed: String = word.chars().rev().collect();
            collect_matches(forward, word, length / 2 - 1, 1, &mut matches);
            collect_matches(backward, &reversed, length - length / 2, 1, &mut matches);
        }
        if max_errors >= 2 && matches.is_empty() {
            collect_matches(forward, word, 0, 2, &mut matches);
        }
        matches.sort_unstable();
        matches.dedup();
        matches
    }

    /// The terms that start with a misspelling of `word`, with the number of errors: at most `max_errors`, which is 1 from
    /// five letters and 2 from nine. Terms that start with `word` itself are not searched for, and may be among them. Of a
    /// word in ASCII, a misspelling is in ASCII too.
    pub(super) fn fuzzy_prefixes(&self, word: &str, max_errors: usize) -> Vec<(PrefixMatch, usize)> {
        let max_errors = max_errors.min(allowed_errors(word));
        let mut matches = Vec::new();
        if max_errors == 0 {
            return matches;
        }
        let automaton = LevenshteinAutomaton::new(word, max_errors);
        let is_ascii = word.is_ascii();
        let fst = self.forward.as_fst();
        let (state, end) = (automaton.start(), self.forward.len() as u64);
        let mut stack = vec![Visit { address: fst.root().addr(), first: 0, end, state, is_inside: false }];
        for _ in 0..MAX_VISITS {
            let Some(Visit { address, first, end, state, mut is_inside }) = stack.pop() else { break };
            let node = fst.node(address);
            match automaton.errors(&state) {
                Some(0) => continue,
                Some(errors) if node.is_final() || !is_inside => {
                    // Below a match, only the terms that end here are better matches than the rest.
                    let end = if is_inside { first + 1 } else { end };
                    let terms = first as TermId..end as TermId;
                    matches.push((PrefixMatch { terms, is_term: node.is_final() }, errors));
                    is_inside = true;
                    if matches.len() >= MAX_MATCHES {
                        break;
                    }
                }
                _ => {}
            }
            let visit = |place: usize| {
                let transition = node.transition(place);
                let state = automaton.accept(&state, transition.inp);
                if automaton.can_match(&state) {
                    let is_last = place + 1 == node.len();
                    let end = if is_last { end } else { first + node.transition(place + 1).out.value() };
                    let first = first + transition.out.value();
                    stack.push(Visit { address: transition.addr, first, end, state, is_inside });
                }
            };
            match automaton.required_bytes(&state) {
                Some(bytes) => bytes.filter_map(|byte| node.find_input(byte)).for_each(visit),
                // In a large catalog most continuations are letters of other scripts.
                None if is_ascii => {
                    (0..node.len()).filter(|&place| node.transition(place).inp.is_ascii()).for_each(visit);
                }
                None => (0..node.len()).for_each(visit),
            }
        }
        matches
    }
}

/// How many typing errors a word may have: one from five letters, two from nine.
pub(super) fn allowed_errors(word: &str) -> usize {
    match word.chars().count() {
        5..9 => 1,
        9..=LONGEST_PATTERN => 2,
        _ => 0,
    }
}

/// Adds the terms that start with the first `exact` letters of a word and continue like its other letters, with one to
/// `max_errors` errors.
fn collect_matches(
    fst: &Fst<Vec<u8>>,
    word: &str,
    exact: usize,
    max_errors: usize,
    matches: &mut Vec<(TermId, usize)>,
) {
    let (exact, rest) = word.split_at(word.char_indices().nth(exact).map_or(word.len(), |(at, _)| at));
    let (mut address, mut id) = (fst.root().addr(), 0);
    for byte in exact.bytes() {
        let node = fst.node(address);
        let Some(taken) = node.find_input(byte) else { return };
        let transition = node.transition(taken);
        (address, id) = (transition.addr, id + transition.out.value());
    }
    let automaton = LevenshteinAutomaton::new(rest, max_errors);
    let most = matches.len() + MAX_MATCHES;
    let mut stack = vec![(address, id, automaton.start())];
    while let Some((address, id, state)) = stack.pop() {
        let node = fst.node(address);
        if node.is_final()
            && let Some(errors @ 1..) = automaton.errors(&state)
        {
            matches.push(((id + node.final_output().value()) as TermId, errors));
            if matches.len() >= most {
                return;
            }
        }
        let visit = |place: usize| {
            let transition = node.transition(place);
            let next = automaton.accept(&state, transition.inp);
            automaton.can_match(&next).then(|| (transition.addr, id + transition.out.value(), next))
        };
        match automaton.required_bytes(&state) {
            Some(bytes) => stack.extend(bytes.filter_map(|byte| node.find_input(byte)).filter_map(visit)),
            None => stack.extend((0..node.len()).filter_map(visit)),
        }
    }
}

/// The end of the terms that start with each of the terms in byte order.
fn prefix_ends(sorted: &[&str]) -> Box<[TermId]> {
    let mut ends = vec![sorted.len() as TermId; sorted.len()];
    // A stack: each of its terms starts with the one below it.
    let mut open: Vec<usize> = Vec::new();
    for (id, term) in sorted.iter().enumerate() {
        while let Some(before) = open.pop_if(|before| !term.starts_with(sorted[*before])) {
            ends[before] = id as TermId;
        }
        open.push(id);
    }
    ends.into()
}

fn build_fst<'a>(entries: impl Iterator<Item = (&'a str, u64)>) -> Map<Vec<u8>> {
    let mut builder = MapBuilder::memory();
    for (term, id) in entries {
        builder.insert(term, id).expect("terms are sorted and distinct, and writing to memory does not fail");
    }
    builder.into_map()
}
