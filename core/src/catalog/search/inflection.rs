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

/// The singulars and plurals that `word` may be the other number of.
pub(super) fn inflections(word: &str) -> Vec<String> {
    let mut forms = Vec::new();
    if !word.is_ascii() || word.bytes().any(|byte| byte.is_ascii_digit()) || EXCEPTIONS.contains(&word) {
        return forms;
    }
    for (singular, plural) in IRREGULAR {
        if word == singular {
            forms.push(plural.to_owned());
        } else if word == plural {
            forms.push(singular.to_owned());
        }
    }
    add_singulars(word, &mut forms);
    add_plurals(word, &mut forms);
    forms
}

fn add_singulars(word: &str, forms: &mut Vec<String>) {
    let mut add = |stem: &str, ending: &str| {
        if stem.len() + ending.len() >= MIN_STEM && !stem.is_empty() {
            forms.push(format!("{stem}{ending}"));
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

fn add_plurals(word: &str, forms: &mut Vec<String>) {
    if word.len() < MIN_STEM || EXCEPTIONS.contains(&format!("{word}s").as_str()) {
        return;
    }
    if !word.ends_with('s') {
        forms.push(format!("{word}s"));
    }
    if takes_es(word) || word.ends_with('o') {
        forms.push(format!("{word}es"));
    }
    if word.ends_with('z') && !word.ends_with("zz") {
        forms.push(format!("{word}zes"));
    }
    if let Some(stem) = word.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        forms.push(format!("{stem}ies"));
    }
    if let Some(stem) = word.strip_suffix("fe").or_else(|| word.strip_suffix('f')) {
        forms.push(format!("{stem}ves"));
    }
}

/// Whether the plural of a noun with this ending has `es`: boxes, churches, wishes, classes.
fn takes_es(noun: &str) -> bool {
    ["s", "x", "z", "ch", "sh"].iter().any(|ending| noun.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(inflections(singular).iter().any(|form| form == plural), "{singular}: {:?}", inflections(singular));
            assert!(inflections(plural).iter().any(|form| form == singular), "{plural}: {:?}", inflections(plural));
        }
    }

    #[test]
    fn words_that_only_look_like_plurals_have_no_singular() {
        for word in ["chess", "bus", "tennis", "bonus", "gas", "news", "new", "ch4ins", "café"] {
            let singular = inflections(word).into_iter().find(|form| form.len() < word.len() || form == "news");
            assert_eq!(singular, None, "{word}");
        }
    }
}
