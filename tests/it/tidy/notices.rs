//! The packages contain the licences of this library, and the wheel those of the crates that are compiled into it.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use townsquare_tests::{cargo::cargo, paths::workspace};

/// The beginnings of the names of files with a licence or a notice.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// What cargo says about the workspace on the platform of the wheels.
fn metadata() -> Value {
    let mut cargo = cargo();
    cargo.args(["metadata", "--locked", "--offline", "--format-version", "1"]);
    let output = cargo.args(["--filter-platform", "x86_64-unknown-linux-gnu"]).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// The packages from a registry that are compiled into the Python package. Those of builds and tests are not.
fn dependencies(metadata: &Value) -> Vec<&Value> {
    let nodes: BTreeMap<&str, &Value> =
        items(&metadata["resolve"], "nodes").map(|node| (text(node, "id"), node)).collect();
    let packages: BTreeMap<&str, &Value> =
        items(metadata, "packages").map(|package| (text(package, "id"), package)).collect();
    let root = packages.values().find(|package| text(package, "name") == "townsquare-python").expect("the crate");
    let (mut found, mut left) = (BTreeSet::new(), vec![text(root, "id")]);
    while let Some(id) = left.pop() {
        if found.insert(id) {
            let normal = |package: &&Value| items(package, "dep_kinds").any(|kind| kind["kind"].is_null());
            left.extend(items(nodes[id], "deps").filter(normal).map(|package| text(package, "pkg")));
        }
    }
    let mut found: Vec<_> =
        found.into_iter().map(|id| packages[id]).filter(|package| !package["source"].is_null()).collect();
    found.sort_by_key(|package| (text(package, "name"), text(package, "version")));
    found
}

/// The files of a folder with a licence or a notice, also in a folder of licences.
fn licence_files(folder: &Path) -> Vec<PathBuf> {
    let is_licence = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        NAMES.iter().any(|start| name.starts_with(start))
    };
    let entries = |folder: &Path| fs::read_dir(folder).expect("the source of a dependency").flatten();
    let mut files = Vec::new();
    for path in entries(folder).map(|entry| entry.path()).filter(is_licence) {
        match path.is_dir() {
            true => files.extend(entries(&path).map(|entry| entry.path())),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

/// The texts of a package's licences. Of a choice that includes MIT, that is the one taken. A package that leaves the text of
/// the Apache licence out has the one of this library, which is the same.
fn licences(package: &Value) -> Vec<String> {
    let folder = Path::new(text(package, "manifest_path")).parent().expect("a manifest is in a folder");
    let files = licence_files(folder);
    let is_mit = |path: &&PathBuf| {
        path.to_string_lossy().rsplit('/').next().is_some_and(|name| name.to_uppercase().contains("MIT"))
    };
    let mit: Vec<PathBuf> = files.iter().filter(is_mit).cloned().collect();
    let licence = text(package, "license");
    let has_choice = licence.contains("MIT") && !licence.contains(" AND ");
    let taken = match (has_choice && !mit.is_empty(), files.is_empty() && licence.contains("Apache-2.0")) {
        (true, _) => mit,
        (false, true) => vec![workspace().join("LICENSE-APACHE")],
        (false, false) => files,
    };
    let read = |path: &PathBuf| String::from_utf8_lossy(&fs::read(path).expect("a licence")).into_owned();
    taken
        .iter()
        .map(|path| read(path).lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned())
        .collect()
}

/// The notices: each text once, below the packages that it is of.
fn notices() -> String {
    let metadata = metadata();
    let mut packages_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in dependencies(&metadata) {
        let name = format!("{} {} ({})", text(package, "name"), text(package, "version"), text(package, "license"));
        let texts = licences(package);
        assert!(!texts.is_empty(), "{name} has no licence");
        for text in texts {
            packages_of.entry(text).or_default().push(name.clone());
        }
    }
    let mut parts: Vec<_> = packages_of.into_iter().map(|(text, packages)| (packages.join("\n"), text)).collect();
    parts.sort();
    let mut notices = "The binary module of townsquare contains these packages, under their licences.\n".to_owned();
    for (packages, text) in parts {
        notices.push_str(&format!("\n{}\n{packages}\n\n{text}\n", "=".repeat(80)));
    }
    notices
}

#[test]
fn the_notices_of_the_wheel_have_the_licence_of_every_dependency() {
    let (made, path) = (notices(), workspace().join("python/THIRD-PARTY-NOTICES"));
    assert!(made.contains("pyo3 ") && made.contains("libsqlite3-sys ") && !made.contains("criterion "));
    if env::var("TOWNSQUARE_BLESS").as_deref() == Ok("1") {
        fs::write(&path, &made).expect("python/ can be written to");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "python/THIRD-PARTY-NOTICES is out of date; TOWNSQUARE_BLESS=1 cargo test writes it anew");
}

#[test]
fn the_licences_of_the_packages_are_those_of_the_workspace() {
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let read = |path: &str| fs::read_to_string(workspace().join(path)).expect("a licence");
        for package in ["core", "python"] {
            assert_eq!(read(&format!("{package}/{name}")), read(name), "{package}");
        }
    }
}
