//! README: what it says to type exists, what it links to is there, and the code map names real folders.

use std::{fs, path::Path};

use super::assert_tidy;
use townsquare_tests::{paths::workspace, skip::skip};

/// What of these lines names something that the workspace has not.
fn complaints(readme: &str, root: &Path) -> Vec<String> {
    let mut complaints = Vec::new();
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let target = link.split('#').next().unwrap_or_default();
        if !target.is_empty() && !target.contains(':') && !root.join(target).exists() {
            complaints.push(format!("links to {target}, which is not there"));
        }
    }
    for command in commands(readme) {
        let words: Vec<_> = command.split_whitespace().collect();
        let value = |flag: &str| words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1));
        if let Some(example) = value("--example")
            && !["core", "benches"]
                .iter()
                .any(|folder| root.join(folder).join(format!("examples/{example}.rs")).is_file())
        {
            complaints.push(format!("`{command}`: there is no example {example}"));
        }
        if let Some(package) = value("-p") {
            let named = ["core", "ffi", "python", "tests", "benches"].iter().any(|folder| {
                fs::read_to_string(root.join(folder).join("Cargo.toml"))
                    .is_ok_and(|text| text.contains(&format!("name = \"{package}\"")))
            });
            if !named {
                complaints.push(format!("`{command}`: there is no package {package}"));
            }
        }
        if let Some(bench) = value("--bench")
            && !root.join(format!("benches/benches/{bench}.rs")).is_file()
            && !root.join(format!("benches/{bench}.rs")).is_file()
        {
            complaints.push(format!("`{command}`: there is no bench {bench}"));
        }
        let program = words.first().copied().unwrap_or_default();
        if program.starts_with("./") || program.starts_with(".ci/") {
            let file = root.join(program);
            if !file.is_file() {
                complaints.push(format!("`{command}`: there is no {program}"));
            }
        }
    }
    complaints
}

/// Lines of console blocks, without prompt and comment.
fn commands(readme: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut is_console = false;
    let mut is_open = false;
    for line in readme.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_console = !is_open && matches!(language.trim(), "sh" | "bash" | "shell" | "console");
            is_open = !is_open;
        } else if is_console && is_open {
            let command = line.trim_start().trim_start_matches("$ ").split(" #").next().unwrap_or_default().trim();
            if !command.is_empty() && !command.starts_with('#') {
                commands.push(command.to_owned());
            }
        }
    }
    commands
}

fn readme() -> Option<String> {
    let text = fs::read_to_string(workspace().join("README.md")).ok();
    if text.is_none() {
        skip("README.md: there is none yet");
    }
    text
}

#[test]
fn what_the_readme_says_to_type_exists() {
    let root = workspace();
    let bad = "[a](no/where.md)\n```sh\ncargo run --example nothing\ncargo test -p nobody\n./nothing.sh\n$ cargo bench --bench none\n```\n";
    assert_eq!(complaints(bad, &root).len(), 5, "{:?}", complaints(bad, &root));
    assert!(complaints("[a](core/src/lib.rs) [b](https://x.example)\n```sh\ncargo test -p townsquare-tests # all\n```\n```rust\n./x\n```\n", &root).is_empty());
    if let Some(text) = readme() {
        assert_tidy("README.md", &complaints(&text, &root));
    }
}

#[test]
fn the_readme_tells_how_to_run_and_how_to_test() {
    let Some(text) = readme() else { return };
    let commands = commands(&text);
    for start in ["cargo run", "cargo test"] {
        assert!(
            commands.iter().any(|command| command.starts_with(start)),
            "a command that begins with `{start}`: {commands:?}"
        );
    }
    for word in ["core/", "ffi/", "python/", "include/", "tests/", "benches/", "CATALOG_API_KEY"] {
        assert!(text.contains(word), "the README names {word}");
    }
}
