//! Writes the docstrings of the stubs `townsquare/*.pyi` to files, which `src` includes: at run time a class, a method and a
//! function have the docstring of their stub.
//!
//! A file is named `CLASS.txt`, `CLASS.METHOD.txt` or `FUNCTION.txt`. An overloaded method has the docstring of its first stub.
#![allow(clippy::disallowed_methods, reason = "Cargo tells a build script its folders by environment variables")]

use std::{
    collections::HashSet,
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    for entry in fs::read_dir("townsquare").expect("the folder of the stubs can be read") {
        let path = entry.expect("the folder of the stubs can be read").path();
        if path.extension().is_some_and(|extension| extension == "pyi") {
            println!("cargo::rerun-if-changed={}", path.display());
            write_stub(&fs::read_to_string(&path).expect("a stub is text"), &target);
        }
    }
}

/// Writes the docstrings of one stub file. Relies on its layout: methods are four spaces in, and the line after the head of a
/// class, a method or a function begins its docstring.
fn write_stub(source: &str, target: &Path) {
    let (mut class, mut item, mut written) = (String::new(), None, HashSet::new());
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let function = text.strip_prefix("async ").unwrap_or(text).strip_prefix("def ").map(first_name);
        if let Some(name) = text.strip_prefix("class ").map(first_name) {
            name.clone_into(&mut class);
            item = Some(class.clone());
        } else if let Some(name) = function {
            item = Some(if indent == 0 { name.to_owned() } else { format!("{class}.{name}") });
        }
        // The head of an item ends with a colon. Without a docstring it ends with dots.
        if !text.ends_with(':') {
            if text.ends_with(": ...") {
                item = None;
            }
            continue;
        }
        let Some(name) = item.take() else { continue };
        if let Some(docstring) = docstring(lines.clone())
            && written.insert(name.clone())
        {
            fs::write(target.join(format!("{name}.txt")), docstring).expect("OUT_DIR can be written");
        }
    }
}

/// The docstring that the next line begins, without its indentation.
fn docstring<'a>(mut lines: impl Iterator<Item = &'a str>) -> Option<String> {
    let first = lines.next()?;
    let start = first.trim_start();
    let indent = first.len() - start.len();
    let mut text = start.strip_prefix("\"\"\"")?.to_owned();
    while !text.ends_with("\"\"\"") {
        let line = lines.next().expect("a docstring has an end");
        text.push('\n');
        text.push_str(line.get(indent..).unwrap_or_default());
    }
    Some(text.trim_end_matches("\"\"\"").trim_end().replace("\\\\", "\\"))
}

/// The identifier at the start of `text`.
fn first_name(text: &str) -> &str {
    text.split(|character: char| !character.is_alphanumeric() && character != '_').next().unwrap_or_default()
}
