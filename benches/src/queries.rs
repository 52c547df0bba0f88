//! What people type, taken from the catalog itself: every query was meant for an app that is there.
//!
//! Invariant: the same catalog gives the same queries; half of the words come from names, half from running text, where
//! frequent words are met as often as they are frequent.

use crate::{catalog::App, random::Random};

/// A kind of query, each with a target of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole word.
    OneWord,
    /// The same queries; peers take the word as a beginning too, as the library always does with the last word.
    OneWordOpen,
    /// Two words of one app.
    TwoWords,
    /// The same queries; peers take the second word as a beginning too.
    TwoWordsOpen,
    /// The first two to five letters of a word.
    Prefix,
    /// A word of a name with one letter dropped, doubled, swapped or replaced; five letters or more.
    OneTypo,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] =
        [Kind::OneWord, Kind::OneWordOpen, Kind::TwoWords, Kind::TwoWordsOpen, Kind::Prefix, Kind::OneTypo];

    /// For a table.
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

    /// Whether peers take the last word as a beginning.
    pub const fn is_open(self) -> bool {
        matches!(self, Kind::OneWordOpen | Kind::TwoWordsOpen | Kind::Prefix)
    }

    /// The kind whose queries these are.
    const fn asked(self) -> Kind {
        match self {
            Kind::OneWordOpen => Kind::OneWord,
            Kind::TwoWordsOpen => Kind::TwoWords,
            kind => kind,
        }
    }
}

/// `count` queries of a kind.
///
/// # Panics
/// When no app has words that serve.
pub fn queries(kind: Kind, apps: &[App], count: usize) -> Vec<String> {
    let kind = kind.asked();
    let random = &mut Random::seeded(kind as u64 + 1);
    let mut queries = Vec::with_capacity(count);
    let mut tries = 0;
    while queries.len() < count {
        tries += 1;
        assert!(tries < 1_000 * count, "the catalog has no words for a query of {}", kind.name());
        queries.extend(query(kind, &apps[random.below(apps.len())], random));
    }
    queries
}

fn query(kind: Kind, app: &App, random: &mut Random) -> Option<String> {
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

fn misspelt(mut letters: Vec<char>, random: &mut Random) -> String {
    let at = 1 + random.below(letters.len() - 2);
    match random.below(4) {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letters[at]),
        2 => letters.swap(at, at + 1),
        _ => letters[at] = (b'a' + random.below(26) as u8).into(),
    }
    letters.into_iter().collect()
}

/// Words of two letters or more, in lower case; plain ones, which every engine cuts alike.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() > 1);
    words.filter(|word| word.is_ascii()).map(str::to_lowercase).collect()
}
