//! The analyzer: turns a document into terms with one-byte impacts.
//!
//! Invariant: an impact is BM25F's term weight without the inverse document frequency, which the query adds. An
//! impact of [`WHOLE_NAME`] marks the concatenated name, [`NAME_PREFIX`] a term that the concatenated name starts
//! with; all others are at most [`MAX_ORDINARY`]. So a posting tells whether the name equals or starts with the
//! query, and a list sorted by impact has matches in names first.

use indexmap::IndexSet;

use super::host::{self, is_web_word};
use super::tokenizer::{LONGEST_WORD, TokenKind, concatenate, tokenize};
use crate::catalog::Texts;

/// The texts of one app that the index reads.
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

pub(super) type Impact = u8;

pub(super) const WHOLE_NAME: Impact = 255;
pub(super) const NAME_PREFIX: Impact = 250;
const MAX_ORDINARY: f32 = 249.0;

/// BM25's k1 over the summed weights: the weight that gives half of the maximal impact.
const K1: f32 = 3.0;
/// The weight of a variant token relative to the word as written.
const VARIANT_SHARE: f32 = 0.85;

struct FieldWeight {
    weight: f32,
    /// BM25's b over the mean length: how much each further word of the field lowers the weight.
    length_penalty: f32,
}

const NAME: FieldWeight = FieldWeight { weight: 14.0, length_penalty: 0.25 };
const TAGS: FieldWeight = FieldWeight { weight: 4.0, length_penalty: 0.02 };
const CATEGORY: FieldWeight = FieldWeight { weight: 4.0, length_penalty: 0.0 };
const SUBTITLE: FieldWeight = FieldWeight { weight: 2.0, length_penalty: 0.05 };
const TAGLINE: FieldWeight = FieldWeight { weight: 2.0, length_penalty: 0.05 };
const AUTHOR: FieldWeight = FieldWeight { weight: 1.5, length_penalty: 0.1 };
const DESCRIPTION: FieldWeight = FieldWeight { weight: 1.0, length_penalty: 0.02 };
const DOMAIN: FieldWeight = FieldWeight { weight: 0.8, length_penalty: 0.0 };

/// Analyzes documents one by one, reusing its buffers.
pub(super) struct DocumentAnalyzer {
    /// The terms so far, numbered from 0 in the order of their first occurrence.
    pub(super) terms: IndexSet<Box<str>>,
    /// The tokens of the current field: term, and share of the field's weight.
    field: Vec<(u32, f32)>,
    /// The terms of the current document with their weights.
    weights: Vec<(u32, f32)>,
    pair: String,
}

/// Whether a text is also found by two neighbouring words written as one: `Mini App` by `miniapp`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compounds {
    None,
    Pairs,
}

impl DocumentAnalyzer {
    pub(super) fn new() -> DocumentAnalyzer {
        DocumentAnalyzer { terms: IndexSet::new(), field: Vec::new(), weights: Vec::new(), pair: String::new() }
    }

    /// Appends each distinct term of `document` with its impact.
    pub(super) fn analyze(&mut self, document: &Document<'_>, out: &mut Vec<(u32, Impact)>) {
        self.weights.clear();
        let name_terms = self.add_name(document.name);
        for tag in document.tags {
            self.add_text(tag, Compounds::Pairs);
        }
        self.end_field(&TAGS);
        let texts = [
            (document.category, CATEGORY, Compounds::None),
            (document.subtitle, SUBTITLE, Compounds::Pairs),
            (document.tagline, TAGLINE, Compounds::Pairs),
            (document.author_display_name, AUTHOR, Compounds::Pairs),
            (document.author_username, AUTHOR, Compounds::None),
            // The pairs of long texts would double the dictionary.
            (document.description, DESCRIPTION, Compounds::None),
        ];
        for (text, field, compounds) in texts {
            self.add_text(text.unwrap_or_default(), compounds);
            self.end_field(&field);
        }
        // Added label by label: the tokenizer would add the whole host as a compound, a distinct term for every app.
        for label in host::labels(document.domain) {
            self.add_text(label, Compounds::None);
        }
        self.end_field(&DOMAIN);

        self.weights.sort_unstable_by_key(|(term, _)| *term);
        let first = out.len();
        for of_term in self.weights.chunk_by(|a, b| a.0 == b.0) {
            let weight: f32 = of_term.iter().map(|(_, weight)| weight).sum();
            let impact = (MAX_ORDINARY * weight / (weight + K1)).max(1.0);
            out.push((of_term[0].0, impact as Impact));
        }
        for (term, impact) in name_terms {
            if let Some((_, known)) = out[first..].iter_mut().find(|(other, _)| *other == term) {
                *known = impact.max(*known);
            }
        }
    }

    /// Adds the name. Returns the terms that the concatenated name starts with, and the concatenated name itself.
    fn add_name(&mut self, name: &str) -> Vec<(u32, Impact)> {
        self.add_text(name, Compounds::Pairs);
        let whole = concatenate(name);
        let mut name_terms = Vec::with_capacity(4);
        if !whole.is_empty() {
            for (term, _) in &self.field {
                if !name_terms.iter().any(|(other, _)| other == term) && whole.starts_with(&*self.terms[*term as usize])
                {
                    name_terms.push((*term, NAME_PREFIX));
                }
            }
            let term = intern(&mut self.terms, &whole);
            self.weights.push((term, 1.0));
            name_terms.push((term, WHOLE_NAME));
        }
        self.end_field(&NAME);
        name_terms
    }

    fn add_text(&mut self, text: &str, compounds: Compounds) {
        let DocumentAnalyzer { terms, field, pair, .. } = self;
        if text.is_empty() {
            return;
        }
        pair.clear();
        let mut first_length = 0;
        tokenize(text, |kind, word| {
            // Nor the compound of an address: `httpswwwrodeoclub`.
            if is_web_word(word)
                || (kind == TokenKind::Variant && ["http", "www"].iter().any(|web| word.starts_with(web)))
            {
                return;
            }
            let share = if kind == TokenKind::Variant { VARIANT_SHARE } else { 1.0 };
            field.push((intern(terms, word), share));
            if kind != TokenKind::Word || compounds == Compounds::None {
                return;
            }
            // `pair` is the word before; with this word it is the compound of both.
            pair.drain(..first_length);
            first_length = pair.len();
            pair.push_str(word);
            if first_length > 0 && pair.len() <= LONGEST_WORD {
                field.push((intern(terms, pair), VARIANT_SHARE));
            }
        });
    }

    fn end_field(&mut self, field: &FieldWeight) {
        let length = self.field.iter().filter(|(_, share)| *share >= 1.0).count().saturating_sub(1);
        let weight = field.weight / (1.0 + field.length_penalty * length as f32);
        self.weights.extend(self.field.drain(..).map(|(term, share)| (term, share * weight)));
    }
}

/// The number of `term`, which is added if it is new.
fn intern(terms: &mut IndexSet<Box<str>>, term: &str) -> u32 {
    let number = terms.get_index_of(term).unwrap_or_else(|| terms.insert_full(term.into()).0);
    number as u32
}
