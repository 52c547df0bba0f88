//! Writes the documentation of the public types and methods to files, which `src/blocking` includes: a blocking method has
//! the text of the async method of the same name.
//!
//! A file is named `TYPE.md` or `TYPE.METHOD.md`. Examples that await are left out, because they show the async method.
#![allow(clippy::disallowed_methods, reason = "Cargo tells a build script its folders by environment variables")]

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn main() {
    println!("cargo::rerun-if-changed=src");
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR"));
    write_folder(Path::new("src"), &target);
}

/// Writes the documentation of every file in a folder, without the blocking types themselves.
fn write_folder(folder: &Path, target: &Path) {
    for entry in fs::read_dir(folder).expect("the folder of the sources can be read") {
        let path = entry.expect("the folder of the sources can be read").path();
        if path.is_dir() && !path.ends_with("blocking") {
            write_folder(&path, target);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("blocking.rs") {
            write_file(&fs::read_to_string(&path).expect("a source is text"), target);
        }
    }
}

/// Writes the documentation of one file. Relies on the layout of rustfmt: items begin a line, methods are four spaces in.
fn write_file(source: &str, target: &Path) {
    let (mut owner, mut text) = (None, String::new());
    for line in source.lines() {
        let item = line.trim_start();
        let name = |keyword| item.strip_prefix(keyword).map(first_name);
        match (line.len() - item.len(), item.strip_prefix("///")) {
            (_, Some(doc)) => {
                text.push_str(doc.strip_prefix(' ').unwrap_or(doc));
                text.push('\n');
                continue;
            }
            (_, None) if item.is_empty() || item.starts_with("#[") => continue,
            (0, None) => {
                if let Some(name) = name("pub struct ") {
                    write(target, name, &text);
                }
                owner = name("impl ");
            }
            (4, None) => {
                let method = name("pub async fn ").or_else(|| name("pub fn "));
                if let Some((owner, method)) = owner.zip(method) {
                    write(target, &format!("{owner}.{method}"), &text);
                }
            }
            _ => {}
        }
        text.clear();
    }
}

/// The identifier at the start of `text`.
fn first_name(text: &str) -> &str {
    text.split(|character: char| !character.is_alphanumeric() && character != '_').next().unwrap_or_default()
}

/// Writes one text. Splitting it at three backticks puts the code blocks at the odd indexes.
fn write(target: &Path, name: &str, text: &str) {
    let parts = text.split("```").enumerate();
    let kept: String = parts
        .filter(|(index, part)| index % 2 == 0 || !part.contains(".await"))
        .map(|(index, part)| if index % 2 == 0 { part.to_owned() } else { format!("```{part}```") })
        .collect();
    fs::write(target.join(format!("{name}.md")), kept).expect("OUT_DIR can be written");
}
