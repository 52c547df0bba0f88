//! The chapters of the book, with the files that they include.

use std::{
    fs,
    path::{Path, PathBuf},
};

use townsquare_tests::paths::workspace;

/// The folder of the chapters.
pub(super) fn folder() -> PathBuf {
    workspace().join("docs/src")
}

/// A chapter: its path below `docs/src`, and its text.
pub(super) struct Page {
    pub(super) path: String,
    pub(super) text: String,
}

/// Reads SUMMARY.md and every chapter, sorted by path.
pub(super) fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    read(&folder(), "", &mut pages);
    pages.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(pages.len() > 15, "docs/src has the chapters");
    pages
}

fn read(folder: &Path, prefix: &str, pages: &mut Vec<Page>) {
    for entry in fs::read_dir(folder).expect("docs/src is there").flatten() {
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            read(&entry.path(), &format!("{path}/"), pages);
        } else if path.ends_with(".md") {
            let text = fs::read_to_string(entry.path()).expect("a chapter is text");
            pages.push(Page { path, text: text.replace("\r\n", "\n") });
        }
    }
}

/// What a line `{{#include FILE}}` or `{{#include FILE:ANCHOR}}` includes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Include<'a> {
    pub(super) file: &'a str,
    pub(super) anchor: Option<&'a str>,
}

impl<'a> Include<'a> {
    /// `None` for a line that includes nothing.
    pub(super) fn of(line: &'a str) -> Option<Include<'a>> {
        let inner = line.trim().strip_prefix("{{#include ")?.strip_suffix("}}")?.trim();
        let (file, anchor) = inner.split_once(':').map_or((inner, None), |(file, anchor)| (file, Some(anchor)));
        Some(Include { file, anchor })
    }

    /// The file, for a chapter in the folder `from`.
    pub(super) fn path(&self, from: &Path) -> PathBuf {
        from.join(self.file)
    }

    /// The text that mdBook puts in the place of the line.
    pub(super) fn text(&self, from: &Path) -> Result<String, String> {
        let path = self.path(from);
        let text = fs::read_to_string(&path).map_err(|error| format!("includes {}: {error}", self.file))?;
        let Some(anchor) = self.anchor else { return Ok(text) };
        let is_mark = |line: &str, word: &str| line.split_whitespace().collect::<Vec<_>>().ends_with(&[word, anchor]);
        let mut lines = text.lines().skip_while(|line| !is_mark(line, "ANCHOR:")).skip(1).peekable();
        let found = lines.peek().is_some() && text.lines().any(|line| is_mark(line, "ANCHOR_END:"));
        let part: Vec<_> = lines.take_while(|line| !is_mark(line, "ANCHOR_END:")).collect();
        found.then(|| part.join("\n")).ok_or_else(|| format!("includes {}, which has no anchor {anchor}", self.file))
    }
}

/// The folder of a chapter, from which it includes files and links.
pub(super) fn folder_of(page: &Page) -> PathBuf {
    folder().join(&page.path).parent().expect("a file lies in a folder").to_owned()
}

/// A block of code.
pub(super) struct Block {
    /// What follows the fence: the language.
    pub(super) language: String,
    pub(super) lines: Vec<String>,
}

/// Splits a text into its blocks of code and the prose around them.
pub(super) fn blocks(text: &str) -> (Vec<Block>, String) {
    let (mut blocks, mut prose) = (Vec::new(), String::new());
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some(Block { language: language.trim().to_owned(), lines: Vec::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.lines.push(line.to_owned()),
            (None, None) => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    // A block without an end is a block, too.
    blocks.extend(open);
    (blocks, prose)
}

/// The prose of a chapter, with that of the files that it includes outside of blocks.
pub(super) fn prose(page: &Page) -> Result<String, String> {
    let mut all = String::new();
    for line in blocks(&page.text).1.lines() {
        let text = match Include::of(line) {
            Some(include) => blocks(&include.text(&folder_of(page))?).1,
            None => line.to_owned(),
        };
        all.push_str(&text);
        all.push('\n');
    }
    Ok(all)
}

#[test]
fn an_include_has_a_file_and_perhaps_an_anchor() {
    let include = Include::of("{{#include ../../examples/rust/start.rs:program}}").expect("an include");
    assert_eq!(include, Include { file: "../../examples/rust/start.rs", anchor: Some("program") });
    assert_eq!(Include::of("see {{#include x}}"), None);
    let start = Include { file: "../examples/rust/start.rs", anchor: Some("program") };
    let text = start.text(&folder()).expect("the program is there");
    assert!(text.contains("fn main()") && !text.contains("ANCHOR") && !text.contains("fn run()"), "{text}");
    for bad in [Include { anchor: Some("none"), ..start }, Include { file: "none.rs", anchor: None }] {
        assert!(bad.text(&folder()).is_err(), "{bad:?}");
    }
}

#[test]
fn blocks_and_prose_are_told_apart() {
    let (found, prose) = blocks("a\n```sh\nx\n```\nb\n```rust\ny");
    let found: Vec<_> = found.iter().map(|block| (block.language.as_str(), block.lines.concat())).collect();
    assert_eq!(found, [("sh", "x".to_owned()), ("rust", "y".to_owned())]);
    assert_eq!(prose, "a\nb\n");
}
