//! The repository's own rules (DESIGN 2, STYLE): what a reviewer would otherwise have to look for.
//!
//! Invariant: each rule is a function from text to complaints, and its test first shows that it can complain.

mod files;
mod layers;
mod readme;
mod source;
mod words;

use std::fmt::Display;

/// Fails with all complaints, one a line.
fn assert_tidy(rule: &str, complaints: &[impl Display]) {
    let lines: Vec<_> = complaints.iter().map(|complaint| format!("  {complaint}")).collect();
    assert!(lines.is_empty(), "{rule}:\n{}", lines.join("\n"));
}
