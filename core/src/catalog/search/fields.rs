//! Field weights: how much it says about an app that a word stands in its name, its tags, its text.
//!
//! Invariant: an impact is BM25F's term weight without the rarity of the term (which is the query's business),
//! as one byte: [`WHOLE_NAME`] for a name written as that one word, the [`OPENING`] ones for a word
//! the name starts with, and up to [`MOST_ORDINARY`] for all else. So "the name is the query" and "the name
//! starts with the query" are read off a posting, and sorting by impact sorts names first.

use super::Document;
use super::interner::Interner;
use super::words::{Kind, each_word, run_together};

pub(super) type Impact = u8;

pub(super) const WHOLE_NAME: Impact = 255;
pub(super) const OPENING: Impact = 250;
const MOST_ORDINARY: f32 = 249.0;

/// BM25's k1 over the summed weights: what a word must weigh to get half of the most.
const HALF: f32 = 3.0;
/// A piece of a word is a weaker sign than the word as written.
const ALTERNATIVE: f32 = 0.85;

struct Field {
    weight: f32,
    /// How fast a word counts for less the more of them the field has (BM25's b over the mean length).
    dilution: f32,
}

const NAME: Field = Field { weight: 14.0, dilution: 0.25 };
const TAGS: Field = Field { weight: 4.0, dilution: 0.02 };
const CATEGORY: Field = Field { weight: 4.0, dilution: 0.0 };
const SUBTITLE: Field = Field { weight: 2.0, dilution: 0.05 };
const TAGLINE: Field = Field { weight: 2.0, dilution: 0.05 };
const AUTHOR: Field = Field { weight: 1.5, dilution: 0.1 };
const DESCRIPTION: Field = Field { weight: 1.0, dilution: 0.02 };
const DOMAIN: Field = Field { weight: 0.8, dilution: 0.0 };

/// Reads documents one by one; the buffers are kept from one to the next.
pub(super) struct Reader {
    pub(super) interner: Interner,
    field: Vec<(u32, f32)>,
    weights: Vec<(u32, f32)>,
}

impl Reader {
    pub(super) fn new() -> Reader {
        Reader { interner: Interner::new(), field: Vec::new(), weights: Vec::new() }
    }

    /// The terms of `document` and their impacts, once each, appended.
    pub(super) fn read(&mut self, document: &Document<'_>, out: &mut Vec<(u32, Impact)>) {
        self.weights.clear();
        let openings = self.name(document.name);
        for tag in document.tags {
            self.add(tag);
        }
        self.end_field(&TAGS);
        let texts = [
            (document.category, CATEGORY),
            (document.subtitle, SUBTITLE),
            (document.tagline, TAGLINE),
            (document.author_display_name, AUTHOR),
            (document.author_username, AUTHOR),
            (document.description, DESCRIPTION),
        ];
        for (text, field) in texts {
            self.add(text.unwrap_or_default());
            self.end_field(&field);
        }
        // Split on dots alone: the host as one word would be a term for every app.
        for label in document.domain.split('.') {
            self.add(label);
        }
        self.end_field(&DOMAIN);

        self.weights.sort_unstable_by_key(|(term, _)| *term);
        let first = out.len();
        for of_term in self.weights.chunk_by(|a, b| a.0 == b.0) {
            let weight: f32 = of_term.iter().map(|(_, weight)| weight).sum();
            let impact = (MOST_ORDINARY * weight / (weight + HALF)).max(1.0);
            out.push((of_term[0].0, impact as Impact));
        }
        for (term, impact) in openings {
            if let Some((_, found)) = out[first..].iter_mut().find(|(other, _)| *other == term) {
                *found = impact.max(*found);
            }
        }
    }

    /// The terms a name starts with, and the name as one word.
    fn name(&mut self, name: &str) -> Vec<(u32, Impact)> {
        self.add(name);
        let whole = run_together(name);
        let mut openings = Vec::with_capacity(4);
        if !whole.is_empty() {
            for (term, _) in &self.field {
                if !openings.iter().any(|(other, _)| other == term) && whole.starts_with(self.interner.term(*term)) {
                    openings.push((*term, OPENING));
                }
            }
            let term = self.interner.number(&whole);
            self.weights.push((term, 1.0));
            openings.push((term, WHOLE_NAME));
        }
        self.end_field(&NAME);
        openings
    }

    fn add(&mut self, text: &str) {
        let Reader { interner, field, .. } = self;
        if text.is_empty() {
            return;
        }
        each_word(text, |kind, word| {
            let share = if kind == Kind::Alternative { ALTERNATIVE } else { 1.0 };
            field.push((interner.number(word), share));
        });
    }

    fn end_field(&mut self, field: &Field) {
        let length = self.field.iter().filter(|(_, share)| *share >= 1.0).count().saturating_sub(1);
        let weight = field.weight / (1.0 + field.dilution * length as f32);
        self.weights.extend(self.field.drain(..).map(|(term, share)| (term, share * weight)));
    }
}
