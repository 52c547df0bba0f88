//! English plurals: the other number of a noun, as candidates that the term dictionary confirms.
//!
//! Invariant: a candidate is only a guess; a guess that no app contains has no effect. So the rules list what may be a
//! singular or a plural, and name only the exceptions that are words of their own.

/// The shortest stem: `gas` and `bus` are not plurals.
const MIN_STEM: usize = 3;
/// Words that end like a plural and are none, and their stems.
const EXCEPTIONS: [&str; 6] = ["news", "lens", "series", "species", "always", "does"];
const IRREGULAR: [(&str, &str); 6] = [
    ("child", "children"),
    ("man", "men"),
    ("woman", "women"),
    ("mouse", "mice"),
    ("person", "people"),
    ("life", "lives"),
];

/// A singular or plural that begins with the first `stem` bytes of the word it belongs to, and continues with `ending`.
#[derive(Clone, Copy)]
pub(super) struct Inflection {
    pub(super) stem: usize,
    pub(super) ending: &'static str,
}

impl Inflection {
    /// Whether `text` is this inflection of `word`.
    pub(super) fn is_of(self, word: &str, text: &str) -> bool {
        text.strip_prefix(&word[..self.stem]) == Some(self.ending)
    }
}

/// The singulars and plurals that `word` may be the other number of.
pub(super) fn inflections(word: &str) -> Vec<Inflection> {
    let mut forms = Vec::new();
    if !word.is_ascii() || word.bytes().any(|byte| byte.is_ascii_digit()) || EXCEPTIONS.contains(&word) {
        return forms;
    }
    let irregular = IRREGULAR.iter().find_map(|&(singular, plural)| match word {
        _ if word == singular => Some(plural),
        _ if word == plural => Some(singular),
        _ => None,
    });
    forms.extend(irregular.map(|ending| Inflection { stem: 0, ending }));
    add_singulars(word, &mut forms);
    add_plurals(word, &mut forms);
    forms
}

fn add_singulars(word: &str, forms: &mut Vec<Inflection>) {
    let mut add = |stem: &str, ending: &'static str| {
        if stem.len() + ending.len() >= MIN_STEM && !stem.is_empty() {
            forms.push(Inflection { stem: stem.len(), ending });
        }
    };
    let Some(stem) = word.strip_suffix('s').filter(|stem| !stem.ends_with(['s', 'u', 'i'])) else { return };
    add(stem, "");
    if let Some(stem) = word.strip_suffix("ies") {
        add(stem, "y");
    }
    if let Some(stem) = word.strip_suffix("ves") {
        add(stem, "f");
        add(stem, "fe");
    }
    if let Some(stem) = word.strip_suffix("es").filter(|stem| takes_es(stem) || stem.ends_with('o')) {
        add(stem, "");
        if let Some(stem) = stem.strip_suffix("zz") {
            add(stem, "z");
        }
    }
}

fn add_plurals(word: &str, forms: &mut Vec<Inflection>) {
    if word.len() < MIN_STEM || EXCEPTIONS.iter().any(|exception| exception.strip_suffix('s') == Some(word)) {
        return;
    }
    let mut add = |stem: &str, ending| forms.push(Inflection { stem: stem.len(), ending });
    if !word.ends_with('s') {
        add(word, "s");
    }
    if takes_es(word) || word.ends_with('o') {
        add(word, "es");
    }
    if word.ends_with('z') && !word.ends_with("zz") {
        add(word, "zes");
    }
    if let Some(stem) = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        add(stem, "ies");
    }
    if let Some(stem) = word.strip_suffix("fe").or_else(|| word.strip_suffix('f')) {
        add(stem, "ves");
    }
}

/// Whether the plural of a noun with this ending has `es`: boxes, churches, wishes, classes.
fn takes_es(noun: &str) -> bool {
    ["s", "x", "z", "ch", "sh"].iter().any(|ending| noun.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(word: &str) -> Vec<String> {
        inflections(word).iter().map(|form| format!("{}{}", &word[..form.stem], form.ending)).collect()
    }

    #[test]
    fn singulars_and_plurals_lead_to_each_other() {
        for (singular, plural) in [
            ("wallet", "wallets"),
            ("quiz", "quizzes"),
            ("snake", "snakes"),
            ("story", "stories"),
            ("movie", "movies"),
            ("box", "boxes"),
            ("match", "matches"),
            ("class", "classes"),
            ("hero", "heroes"),
            ("wolf", "wolves"),
            ("knife", "knives"),
            ("house", "houses"),
            ("child", "children"),
        ] {
            assert!(forms(singular).iter().any(|form| form == plural), "{singular}: {:?}", forms(singular));
            assert!(forms(plural).iter().any(|form| form == singular), "{plural}: {:?}", forms(plural));
        }
    }

    #[test]
    fn words_that_only_look_like_plurals_have_no_singular() {
        for word in ["chess", "bus", "tennis", "bonus", "gas", "news", "new", "ch4ins", "café"] {
            let singular = forms(word).into_iter().find(|form| form.len() < word.len() || form == "news");
            assert_eq!(singular, None, "{word}");
        }
    }
}
