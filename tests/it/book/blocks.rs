//! Every block of code in a chapter is part of a program that a test runs, or in a language that is no program.

use std::{collections::BTreeSet, fs, path::Path};

use townsquare_tests::paths::workspace;

use super::pages::{Include, Page, blocks, folder, folder_of, pages};
use crate::tidy::assert_tidy;

/// Languages of blocks that are not programs.
const NO_PROGRAM: [&str; 5] = ["text", "sh", "console", "toml", "json"];

/// Folders with files that tests compile and run.
const TESTED: [&str; 3] = ["docs/examples", "python/examples", "ffi/examples"];

/// Texts that chapters include, with the languages of their blocks. tests/it/c/programs.rs compiles each block of the manual, which is
/// also the head of townsquare.h. rustdoc runs the blocks of Rust in core/src; those of SQL and Python are for the administrator of
/// a server.
const TEXTS: [(&str, &[&str]); 2] = [("ffi/header.md", &["c"]), ("core/src", &["rust", "sql", "python"])];

/// The areas: each has a program in each language that prints the same.
const AREAS: [&str; 10] =
    ["start", "discovery", "tables", "sign_in", "files", "changes", "endpoints", "errors", "backup", "move"];

/// Complains about blocks with code that no test runs, and about includes that do not exist.
fn complaints(page: &Page) -> Vec<String> {
    let from = folder_of(page);
    let mut complaints = Vec::new();
    let (code, prose) = blocks(&page.text);
    for block in &code {
        for line in &block.lines {
            match Include::of(line) {
                Some(include) => complaints.extend(include.text(&from).err()),
                None if NO_PROGRAM.contains(&block.language.as_str()) => continue,
                None => complaints.push(format!("a block of `{}` has the line {line:?}", block.language)),
            }
            let is_tested = |include: &Include<'_>| {
                let path = include.path(&from).canonicalize().unwrap_or_default();
                TESTED.iter().any(|tested| path.starts_with(workspace().join(tested)))
            };
            if Include::of(line).is_some_and(|include| !is_tested(&include)) {
                complaints.push(format!("{line}: no test runs this file"));
            }
        }
        if block.lines.is_empty() {
            complaints.push(format!("an empty block of `{}`", block.language));
        }
    }
    for include in prose.lines().filter_map(Include::of) {
        match include.text(&from) {
            Err(complaint) => complaints.push(complaint),
            Ok(text) => complaints.extend(included(&include.path(&from), &text)),
        }
    }
    complaints.into_iter().map(|what| format!("{}: {what}", page.path)).collect()
}

/// Complains about blocks in a file that a chapter includes, and about what that file includes.
fn included(path: &Path, text: &str) -> Vec<String> {
    let folder = path.parent().unwrap_or(path);
    let path = path.canonicalize().unwrap_or_default();
    let of_text = TEXTS.iter().find(|(text, _)| path.starts_with(workspace().join(text)));
    let (code, prose) = blocks(text);
    let is_tested =
        |language: &str| NO_PROGRAM.contains(&language) || of_text.is_some_and(|(_, known)| known.contains(&language));
    let untested = code.iter().filter(|block| !is_tested(&block.language));
    let untested = untested.map(|block| format!("{} has a block of `{}`", path.display(), block.language));
    let missing = prose.lines().filter_map(Include::of).filter_map(|include| include.text(folder).err());
    untested.chain(missing).collect()
}

#[test]
fn every_block_is_part_of_a_tested_program() {
    let page = |text: &str| Page { path: "x.md".into(), text: text.into() };
    for good in ["```sh\ncargo test\n```\n", "```rust\n{{#include ../examples/rust/start.rs:program}}\n```\n"] {
        assert_eq!(complaints(&page(good)), Vec::<String>::new(), "{good}");
    }
    for bad in [
        "```rust\nfn main() {}\n```\n",
        "```rust\n{{#include ../examples/rust/none.rs}}\n```\n",
        "```rust\n{{#include ../../core/src/lib.rs}}\n```\n",
        "```\nx\n```\n",
        "```python\n```\n",
        "{{#include none.md}}\n",
    ] {
        assert!(!complaints(&page(bad)).is_empty(), "{bad}");
    }
    let manual = workspace().join("ffi/header.md");
    assert_eq!(included(&manual, "```c\nint x;\n```\n"), [""; 0]);
    for (path, text) in
        [(&manual, "```cpp\nint x;\n```\n"), (&manual, "{{#include none.md}}\n"), (&folder(), "```c\nint x;\n```\n")]
    {
        assert_eq!(included(path, text).len(), 1, "{text}");
    }
    let all: Vec<_> = pages().iter().flat_map(complaints).collect();
    assert_tidy("a block of the book is text, sh, console, toml, json, or includes a tested file", &all);
}

/// The files below `docs/examples`.
fn examples() -> BTreeSet<String> {
    let root = workspace().join("docs/examples");
    let folders = fs::read_dir(&root).expect("docs/examples is there").flatten().filter(|entry| entry.path().is_dir());
    let files = folders.flat_map(|folder| {
        let name = folder.file_name().to_string_lossy().into_owned();
        let files = fs::read_dir(folder.path()).expect("a folder").flatten();
        files.map(move |file| format!("{name}/{}", file.file_name().to_string_lossy()))
    });
    files.filter(|path| !path.contains("__pycache__")).collect()
}

#[test]
fn every_program_is_in_a_chapter_and_every_area_has_three_languages() {
    let included = |page: &Page| -> Vec<String> {
        let lines = page.text.lines().filter_map(Include::of);
        lines.filter_map(|include| include.file.strip_prefix("../examples/").map(str::to_owned)).collect()
    };
    let shown: BTreeSet<_> = pages().iter().flat_map(included).collect();
    assert_eq!(examples(), shown, "the files of docs/examples are those that chapters include");
    for area in AREAS {
        for file in [
            format!("rust/{area}.rs"),
            format!("python/{area}.py"),
            format!("c/{area}.c"),
            format!("output/{area}.txt"),
        ] {
            assert!(shown.contains(&file), "{file}");
        }
    }
}

#[test]
fn the_summary_lists_every_chapter() {
    let summary = fs::read_to_string(folder().join("SUMMARY.md")).expect("SUMMARY.md is there");
    let listed: Vec<_> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    for chapter in &listed {
        assert!(folder().join(chapter).is_file(), "SUMMARY.md lists {chapter}");
    }
    let is_chapter = |path: &str| path != "SUMMARY.md" && !path.starts_with("generated/");
    for page in pages().iter().filter(|page| is_chapter(&page.path)) {
        assert!(listed.contains(&page.path.as_str()), "SUMMARY.md lacks {}", page.path);
    }
    assert!(Path::new(&workspace()).join("docs/book.toml").is_file(), "mdBook needs book.toml");
}
