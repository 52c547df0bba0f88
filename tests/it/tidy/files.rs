//! Rules of files: their first line, length, name and white space (STYLE).

use super::{
    assert_tidy,
    source::{Source, files},
};

const ALL: &[&str] = &["core", "cli", "ffi", "python", "examples", "tests", "benches", "docs", "fuzz"];
const LONGEST: usize = 600;
const FORBIDDEN: [&str; 8] = ["utils", "util", "helpers", "helper", "common", "manager", "misc", "v2"];

fn has_header(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("//! ").is_some_and(|sentence| sentence.trim().len() >= 10)
}

fn name_complaint(path: &str) -> Option<String> {
    let bad = |part: &str| {
        let stem = part.split('.').next().unwrap_or(part).to_lowercase();
        stem == "mod" || stem.split(['_', '-']).any(|word| FORBIDDEN.contains(&word))
    };
    path.split('/').any(bad).then(|| format!("{path}: says nothing about what is in it"))
}

#[test]
fn every_rust_file_opens_with_its_purpose() {
    for bad in ["", "use x;", "//! x", "//!\n//! late", "/// An item's.", "// What it is."] {
        assert!(!has_header(bad), "{bad:?}");
    }
    let missing: Vec<_> =
        files(ALL, &[".rs"]).into_iter().filter(|file| !has_header(&file.text)).map(|file| file.path).collect();
    assert_tidy("every file opens with `//! ` and a sentence (STYLE)", &missing);
}

#[test]
fn every_python_and_c_file_opens_with_its_purpose() {
    let opens = |file: &Source| {
        let text = file.text.trim_start_matches("#!/usr/bin/env python3\n").trim_start();
        let openings: &[&str] = if file.path.ends_with(".py") { &["\"\"\"", "r\"\"\"", "# "] } else { &["/*", "//"] };
        text.is_empty() || openings.iter().any(|opening| text.starts_with(opening))
    };
    assert!(!opens(&Source { path: "x.py".into(), text: "import os\n".into() }));
    assert!(!opens(&Source { path: "x.c".into(), text: "#include <stdio.h>\n".into() }));
    let files = files(&["python", "tests", "include", "ffi", "docs"], &[".py", ".c", ".cpp", ".h", ".hpp"]);
    let missing: Vec<_> = files.iter().filter(|file| !opens(file)).map(|file| &file.path).collect();
    assert_tidy("every file opens with what it is (STYLE)", &missing);
}

#[test]
fn no_file_is_over_600_lines() {
    let too_long = |text: &str| text.lines().count() > LONGEST;
    assert!(too_long(&"x\n".repeat(601)) && !too_long(&"x\n".repeat(600)));
    let files = files(ALL, &[".rs", ".py", ".pyi", ".c", ".cpp"]);
    let long: Vec<_> = files.iter().filter(|file| too_long(&file.text)).map(|file| &file.path).collect();
    assert_tidy("no file is over 600 lines (STYLE)", &long);
}

#[test]
fn the_median_file_is_under_150_lines() {
    let mut lengths: Vec<_> = files(&["core/src", "cli/src", "ffi/src", "python/src"], &[".rs"])
        .iter()
        .map(|file| file.text.lines().count())
        .collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!(median < 150, "{median} lines (STYLE)");
}

#[test]
fn file_names_are_specific() {
    for bad in [
        "core/src/utils.rs",
        "core/src/discovery/mod.rs",
        "tests/common/x.rs",
        "core/src/cache_manager.rs",
        "ffi/src/v2.rs",
    ] {
        assert!(name_complaint(bad).is_some(), "{bad}");
    }
    assert_eq!(name_complaint("core/src/discovery/search.rs"), None);
    let files = files(ALL, &[".rs", ".py", ".c", ".cpp", ".h", ".hpp"]);
    let complaints: Vec<_> = files.iter().filter_map(|file| name_complaint(&file.path)).collect();
    assert_tidy("no utils, helpers, common, manager, v2, mod.rs (STYLE)", &complaints);
}

#[test]
fn lines_have_no_trailing_spaces_and_files_end_with_a_newline() {
    let untidy = |text: &str| {
        let first = text.split('\n').position(|line| line.ends_with([' ', '\t', '\r'])).map(|line| line + 1);
        first.or((!text.is_empty() && !text.ends_with('\n')).then(|| text.lines().count()))
    };
    assert_eq!((untidy("a\nb \n"), untidy("a\nb"), untidy("a\n"), untidy("a\r\n")), (Some(2), Some(2), None, Some(1)));
    let files = files(ALL, &[".rs", ".toml", ".py", ".pyi", ".c", ".cpp", ".sql"]);
    let found: Vec<_> =
        files.iter().filter_map(|file| untidy(&file.text).map(|line| format!("{}:{line}", file.path))).collect();
    assert_tidy("no blanks at ends of lines", &found);
}

#[test]
fn a_module_folder_has_a_file_of_the_same_name() {
    let lonely = |paths: &[&str]| -> Vec<String> {
        let folders = paths.iter().filter_map(|path| path.rsplit_once('/')).map(|(folder, _)| folder);
        let mut missing: Vec<_> = folders
            .filter(|folder| folder.contains("/src/") || folder.starts_with("tests/it/"))
            .filter(|folder| !paths.contains(&format!("{folder}.rs").as_str()))
            .map(str::to_owned)
            .collect();
        missing.dedup();
        missing
    };
    assert_eq!(lonely(&["core/src/a/b.rs"]), ["core/src/a"]);
    assert!(lonely(&["core/src/a.rs", "core/src/a/b.rs", "core/src/lib.rs"]).is_empty());
    let files = files(&["core/src", "cli/src", "ffi/src", "python/src", "tests/src", "tests/it"], &[".rs"]);
    let paths: Vec<_> = files.iter().map(|file| file.path.as_str()).collect();
    assert_tidy("folders as name.rs + name/ (STYLE)", &lonely(&paths));
}
