//! The repository's rules (DESIGN 2, STYLE), checked on the source files.
//!
//! Invariant: each rule is a function from text to complaints, and its test first checks that it complains about bad text.

mod bans;
mod bindings;
mod files;
mod futures;
mod layers;
#[cfg(target_os = "linux")]
mod notices;
mod readme;
mod source;

use std::fmt::Display;

/// The files below these folders with these endings: path and text.
pub(super) fn sources(folders: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    source::files(folders, endings).into_iter().map(|file| (file.path, file.text)).collect()
}

/// Fails with one line per complaint.
pub(super) fn assert_tidy(rule: &str, complaints: &[impl Display]) {
    let lines: Vec<_> = complaints.iter().map(|complaint| format!("  {complaint}")).collect();
    assert!(lines.is_empty(), "{rule}:\n{}", lines.join("\n"));
}
