//! Links of the book: the file of a relative link exists, and its anchor is a heading there.

use std::{collections::BTreeSet, fs, path::Path};

use super::pages::{Page, folder_of, pages, prose};
use crate::tidy::assert_tidy;
use townsquare_tests::paths::workspace;

/// The anchor that mdBook and GitHub give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn anchors(prose: &str) -> BTreeSet<String> {
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// Complains about links that lead nowhere.
fn complaints(page: &Page, all: &[Page]) -> Vec<String> {
    let prose_of = |page: &Page| prose(page).unwrap_or_default();
    let text = prose_of(page);
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let wrong = links.filter(|link| !link.contains(':')).filter_map(|link| {
        let (target, wanted) = link.split_once('#').map_or((link, None), |(target, wanted)| (target, Some(wanted)));
        let path = if target.is_empty() { page.path.clone() } else { target.to_owned() };
        let there = all.iter().find(|page| page.path == path);
        match (there, wanted) {
            (None, _) if !folder_of(page).join(target).exists() => {
                Some(format!("links to {link}, which does not exist"))
            }
            // mdBook copies the other files of its folder.
            (None, _) if target.ends_with(".png") && !target.contains("..") => None,
            // A file outside of the book: a reader on the web does not have it.
            (None, _) => Some(format!("links to {link}, which is not in the book")),
            (Some(there), Some(wanted)) if !anchors(&prose_of(there)).contains(wanted) => {
                Some(format!("links to {link}, but {path} has no such heading"))
            }
            _ => None,
        }
    });
    wrong.map(|what| format!("{}: {what}", page.path)).collect()
}

#[test]
fn every_link_of_the_book_leads_to_a_chapter_and_a_heading() {
    let page = |path: &str, text: &str| Page { path: path.into(), text: text.into() };
    let other = page("b.md", "# B\n\n## Two words: `x`\n");
    let of = |text: &str| complaints(&page("a.md", text), &[page("a.md", text), page("b.md", &other.text)]);
    let good = "# Here\n[a](b.md) [b](b.md#two-words-x) [c](#here) [d](https://x.example) ![e](directory.png)";
    assert_eq!(of(good), Vec::<String>::new());
    for bad in [
        "[a](c.md)",
        "![a](missing.png)",
        "![a](../../ffi/x.png)",
        "[a](b.md#three)",
        "[a](#there)",
        "[a](../book.toml)",
    ] {
        assert_eq!(of(bad).len(), 1, "{bad}");
    }
    let all = pages();
    let wrong: Vec<_> = all.iter().flat_map(|page| complaints(page, &all)).collect();
    assert_tidy("links of the book", &wrong);
}

#[test]
fn the_readme_leads_to_the_start_of_the_book() {
    let readme = fs::read_to_string(workspace().join("README.md")).expect("README.md is there");
    assert!(readme.contains("](docs/src/start.md)"), "README.md links to docs/src/start.md");
    assert!(Path::new(&workspace()).join("docs/src/start.md").is_file());
}
