//! README: its commands and links exist, and its code map names the modules of core and the folders of the bindings.

use std::{collections::BTreeSet, fs, path::Path};

use super::{assert_tidy, layers::Modules};
use townsquare_tests::{paths::workspace, skip::skip};

/// Returns the links and commands whose target does not exist.
fn complaints(readme: &str, root: &Path) -> Vec<String> {
    let mut complaints = Vec::new();
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let target = link.split('#').next().unwrap_or_default();
        if !target.is_empty() && !target.contains(':') && !root.join(target).exists() {
            complaints.push(format!("links to {target}, which does not exist"));
        }
    }
    for command in commands(readme) {
        let words: Vec<_> = command.split_whitespace().collect();
        let value = |flag: &str| words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1));
        if let Some(example) = value("--example")
            && !["examples", "benches/examples"]
                .iter()
                .any(|folder| root.join(folder).join(format!("{example}.rs")).is_file())
        {
            complaints.push(format!("`{command}`: there is no example {example}"));
        }
        if let Some(package) = value("-p") {
            let named = ["core", "cli", "ffi", "python", "examples", "tests", "benches"].iter().any(|folder| {
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

/// Returns the commands of console blocks, without prompt and comment.
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
        skip("README.md does not exist");
    }
    text
}

#[test]
fn commands_and_links_of_the_readme_exist() {
    let root = workspace();
    let bad = "[a](no/where.md)\n```sh\ncargo run --example nothing\ncargo test -p nobody\n./nothing.sh\n$ cargo bench --bench none\n```\n";
    assert_eq!(complaints(bad, &root).len(), 5, "{:?}", complaints(bad, &root));
    assert!(complaints("[a](core/src/lib.rs) [b](https://x.example)\n```sh\ncargo test -p townsquare-tests # all\n```\n```rust\n./x\n```\n", &root).is_empty());
    if let Some(text) = readme() {
        assert_tidy("README.md", &complaints(&text, &root));
    }
}

#[test]
fn the_readme_shows_how_to_run_and_test() {
    let Some(text) = readme() else { return };
    let commands = commands(&text);
    for start in ["cargo run", "cargo test"] {
        assert!(
            commands.iter().any(|command| command.starts_with(start)),
            "a command that begins with `{start}`: {commands:?}"
        );
    }
    for word in ["core/", "cli/", "ffi/", "python/", "include/", "tests/", "benches/", "CATALOG_API_KEY"] {
        assert!(text.contains(word), "the README names {word}");
    }
}

/// The modules of a crate for the code map.
struct CrateModules<'a> {
    /// The folder of the crate.
    folder: &'a str,
    all: BTreeSet<&'a str>,
    /// The modules that the map must name.
    required: BTreeSet<&'a str>,
}

/// Returns the crates and required modules that the table under `## Code map` lacks, and the names in it that are no module or
/// path.
///
/// A row with a crate's folder (`core/`, `ffi/`, `python/`) in its first cell lists modules of that crate; the names of other
/// rows may belong to any crate.
fn code_map_errors(readme: &str, crates: &[CrateModules<'_>], root: &Path) -> Vec<String> {
    let map = readme.split("\n## Code map\n").nth(1).unwrap_or_default();
    let rows = map.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with('|'));
    let mut named: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut errors = Vec::new();
    for row in rows {
        let cell = row.trim_start_matches('|').split('|').next().unwrap_or_default();
        let of_row = backticked(cell).find_map(|name| crates.iter().find(|one| is_folder(name, one.folder)));
        named.extend(of_row.map(|one| (one.folder, "")));
        for name in backticked(row) {
            let owners = crates.iter().filter(|one| of_row.is_none_or(|only| one.folder == only.folder));
            let owners: Vec<_> = owners.filter(|one| one.all.contains(name)).collect();
            named.extend(owners.iter().map(|one| (one.folder, name)));
            if owners.is_empty() && !crates.iter().any(|one| is_folder(name, one.folder)) && !root.join(name).exists() {
                errors.push(format!("the code map names `{name}`, which is no module and no path"));
            }
        }
    }
    for one in crates {
        if !named.contains(&(one.folder, "")) {
            errors.push(format!("the code map has no row of {}", one.folder));
        }
        let missing = one.required.iter().filter(|module| !named.contains(&(one.folder, module)));
        errors.extend(missing.map(|module| format!("the code map does not name `{module}` of {}", one.folder)));
    }
    errors
}

fn backticked(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a name such as `core/` or `core/src` means the crate in this folder.
fn is_folder(name: &str, folder: &str) -> bool {
    name.trim_end_matches('/').trim_end_matches("/src") == folder
}

#[test]
fn the_code_map_names_the_modules_of_core_and_the_folders_of_the_bindings() {
    let root = workspace();
    let names = |folder, all: &[&'static str], required: &[&'static str]| CrateModules {
        folder,
        all: all.iter().copied().collect(),
        required: required.iter().copied().collect(),
    };
    let crates = [names("core", &["auth", "error"], &["auth", "error"]), names("ffi", &["auth", "log"], &["auth"])];
    let map = "# x\n## Code map\n\n| where | what |\n|---|---|\n| `core/` | `auth`, `error` |\n| `ffi/src` | `auth` |\n\n## Next\n| `no` |\n";
    assert_eq!(code_map_errors(map, &crates, &root), Vec::<String>::new());
    for bad in [
        map.replace("`error`", "error"),
        map.replace("`error`", "`error`, `gone`"),
        map.replace("| `auth` |", "| x |"),
        map.replace("| `ffi/src` |", "| ffi |"),
        map.replace("Code map", "The house"),
    ] {
        assert!(!code_map_errors(&bad, &crates, &root).is_empty(), "{bad}");
    }
    let Some(text) = readme() else { return };
    let modules = ["core", "cli", "ffi", "python"].map(|folder| (folder, Modules::read(&format!("{folder}/src"))));
    let crates = modules.each_ref().map(|(folder, modules)| {
        let (all, folders) = (modules.top_level(), modules.folders());
        // The map shows the layers of core.
        CrateModules { folder, required: if *folder == "core" { all.clone() } else { folders }, all }
    });
    assert_tidy("README's code map", &code_map_errors(&text, &crates, &root));
}
