//! Search queries made from the texts of a catalog, so that each query has an app it means.
//!
//! Invariant: the same catalog gives the same queries. Half of the words come from names, half from running text with
//! its word frequencies.

use townsquare_tests::catalog::SplitMix;

use crate::catalog::App;

/// A kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole word.
    OneWord,
    /// The queries of `OneWord`; peers also match the word as a prefix, as the library always does.
    OneWordOpen,
    /// Two words of one app.
    TwoWords,
    /// The queries of `TwoWords`; peers also match the second word as a prefix.
    TwoWordsOpen,
    /// The first two to five letters of a word.
    Prefix,
    /// A word of a name, five letters or more, with one letter dropped, doubled, swapped or replaced.
    OneTypo,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 6] =
        [Kind::OneWord, Kind::OneWordOpen, Kind::TwoWords, Kind::TwoWordsOpen, Kind::Prefix, Kind::OneTypo];

    /// Returns the name for a table.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::OneWord => "one word",
            Kind::OneWordOpen => "one word*",
            Kind::TwoWords => "two words",
            Kind::TwoWordsOpen => "two words*",
            Kind::Prefix => "prefix",
            Kind::OneTypo => "one typo",
        }
    }

    /// Whether peers match the last word as a prefix.
    pub const fn is_open(self) -> bool {
        matches!(self, Kind::OneWordOpen | Kind::TwoWordsOpen | Kind::Prefix)
    }

    /// Returns the kind whose queries this kind uses.
    const fn base(self) -> Kind {
        match self {
            Kind::OneWordOpen => Kind::OneWord,
            Kind::TwoWordsOpen => Kind::TwoWords,
            kind => kind,
        }
    }
}

/// Returns `count` queries of a kind.
///
/// # Panics
/// When the catalog has no suitable words.
pub fn queries(kind: Kind, apps: &[App], count: usize) -> Vec<String> {
    let kind = kind.base();
    let random = &mut SplitMix::new(kind as u64 + 1);
    let mut queries = Vec::with_capacity(count);
    let mut tries = 0;
    while queries.len() < count {
        tries += 1;
        assert!(tries < 1_000 * count, "the catalog has no words for a query of {}", kind.name());
        queries.extend(query(kind, &apps[random.below(apps.len())], random));
    }
    queries
}

fn query(kind: Kind, app: &App, random: &mut SplitMix) -> Option<String> {
    let names = words(&app.name);
    let words = if random.percent(50) { names.clone() } else { words(app.description.as_deref()?) };
    match kind {
        Kind::OneWord | Kind::OneWordOpen => words.get(random.below(words.len())).cloned(),
        Kind::TwoWords | Kind::TwoWordsOpen => {
            let first = random.below(words.len().saturating_sub(1));
            let pair = words.get(first..first + 2)?;
            (pair[0] != pair[1]).then(|| pair.join(" "))
        }
        Kind::Prefix => {
            let word = words.get(random.below(words.len()))?;
            let letters = 2 + random.below(4);
            (word.chars().count() > letters).then(|| word.chars().take(letters).collect())
        }
        Kind::OneTypo => {
            let word = names.get(random.below(names.len()))?;
            let letters: Vec<char> = word.chars().collect();
            (letters.len() >= 5).then(|| misspelt(letters, random)).filter(|typo| typo != word)
        }
    }
}

fn misspelt(mut letters: Vec<char>, random: &mut SplitMix) -> String {
    let at = 1 + random.below(letters.len() - 2);
    match random.below(4) {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letters[at]),
        2 => letters.swap(at, at + 1),
        _ => letters[at] = (b'a' + random.below(26) as u8).into(),
    }
    letters.into_iter().collect()
}

/// Returns the ASCII words of two letters or more in lower case, which every engine tokenizes alike.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() > 1);
    words.filter(|word| word.is_ascii()).map(str::to_lowercase).collect()
}
