//! Source files as the rules read them: which there are, and their code without comments, texts and unit tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use townsquare_tests::paths::workspace;

/// A file of the workspace.
pub(super) struct Source {
    /// Path below the workspace, with forward slashes.
    pub(super) path: String,
    /// As it stands.
    pub(super) text: String,
}

/// All files below these folders of the workspace that end so, sorted; build output and caches are nobody's source.
pub(super) fn files(folders: &[&str], endings: &[&str]) -> Vec<Source> {
    let root = workspace();
    let mut found = Vec::new();
    for folder in folders {
        walk(&root.join(folder), &mut found);
    }
    let mut sources: Vec<_> = found
        .into_iter()
        .filter(|path| endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            Source { path: relative(&root, &path), text }
        })
        .collect();
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    sources
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

fn walk(at: &Path, into: &mut Vec<PathBuf>) {
    if at.is_file() {
        into.push(at.to_owned());
    }
    let Ok(entries) = fs::read_dir(at) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let skipped = ["target", "__pycache__", ".venv", ".pytest_cache", "node_modules", ".git", "peers"];
        if !skipped.iter().any(|skipped| name == *skipped) {
            walk(&entry.path(), into);
        }
    }
}

/// The code of a Rust file: comments and the contents of texts blanked, `#[cfg(test)]` items cut out; lines stay.
pub(super) fn code(text: &str) -> String {
    without_tests(&blanked(text))
}

/// Comments and the contents of string and character literals become spaces; line breaks stay.
pub(super) fn blanked(text: &str) -> String {
    let bytes: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let blank = |out: &mut String, c: char| out.push(if c == '\n' { '\n' } else { ' ' });
    while at < bytes.len() {
        let rest = &bytes[at..];
        let begins = |what: &str| what.chars().enumerate().all(|(index, c)| rest.get(index) == Some(&c));
        let in_word = at > 0 && (bytes[at - 1].is_alphanumeric() || bytes[at - 1] == '_');
        let end = if begins("//") {
            at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())
        } else if begins("/*") {
            at + comment_length(rest)
        } else if let Some(length) = (!in_word).then(|| raw_length(rest)).flatten() {
            at + length
        } else if rest[0] == '"' {
            at + quoted_length(rest, '"')
        } else if rest[0] == '\'' && (rest.get(1) == Some(&'\\') || rest.get(2) == Some(&'\'')) {
            at + quoted_length(rest, '\'')
        } else {
            out.push(rest[0]);
            at += 1;
            continue;
        };
        bytes[at..end].iter().for_each(|c| blank(&mut out, *c));
        at = end;
    }
    out
}

fn comment_length(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match (rest[at], rest.get(at + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at.min(rest.len())
}

/// `r"…"`, `r#"…"#`, `br"…"`; not the raw identifier `r#type`.
fn raw_length(rest: &[char]) -> Option<usize> {
    let start = match rest {
        ['r', ..] => 1,
        ['b' | 'c', 'r', ..] => 2,
        _ => return None,
    };
    let hashes = rest[start..].iter().take_while(|c| **c == '#').count();
    if rest.get(start + hashes) != Some(&'"') {
        return None;
    }
    let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = start + hashes + 1;
    let end = rest[body..].windows(closing.len()).position(|window| window == closing)?;
    Some(body + end + closing.len())
}

fn quoted_length(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Cuts out what `#[cfg(test)]` stands before, up to its closing brace or semicolon.
fn without_tests(code: &str) -> String {
    let mut out = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        let (mut depth, mut end) = (0_usize, rest.len());
        for (index, c) in rest[at..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (c == ';' || c == '}') {
                end = at + index + 1;
                break;
            }
        }
        out.extend(rest[at..end].chars().filter(|c| *c == '\n'));
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// The lines of `code` that contain one of these words, as `path:line: word`.
pub(super) fn lines_with(path: &str, code: &str, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        found.extend(
            words.iter().filter(|word| line.contains(**word)).map(|word| format!("{path}:{}: {word}", number + 1)),
        );
    }
    found
}

#[test]
fn comments_texts_and_tests_are_no_code() {
    let text = "a // x.unwrap()\nb(\"x.unwrap()\", r#\"x\"unwrap\"#, '\"') /* x /* y */ z */ c\n#[cfg(test)]\nmod t { fn f() { x.unwrap() } }\nd<'a>(b'x', '\\'')\n";
    let code = code(text);
    assert!(!code.contains("unwrap") && !code.contains('x') && !code.contains('z'), "{code}");
    for kept in ["a", "b(", "c", "d<'a>("] {
        assert!(code.contains(kept), "{kept} in {code}");
    }
    assert_eq!(code.lines().count(), text.lines().count(), "lines keep their numbers");
    assert_eq!(lines_with("f.rs", "a\nb.unwrap()", &[".unwrap()"]), ["f.rs:2: .unwrap()"]);
}

#[test]
fn the_files_of_the_workspace_are_found() {
    let files = files(&["core/src", "tests"], &[".rs"]);
    for path in ["core/src/lib.rs", "core/src/model/mini_app.rs", "tests/it/tidy/source.rs"] {
        assert!(files.iter().any(|file| file.path == path), "{path}");
    }
}
