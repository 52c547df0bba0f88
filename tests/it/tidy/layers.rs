//! The layers of DESIGN 2: a module uses only rows above its own, and modules of one row never use each other.

use std::collections::BTreeSet;

use super::{
    assert_tidy,
    source::{code, files, lines_with},
};

/// A module of core/src with its row. The longest path that a file's module begins with counts, so the pure half of
/// a service has a row of its own. Modules of one group are one module in several files.
const MODULES: &[(&str, u8, &str)] = &[
    ("error", 0, "error"),
    ("model", 0, "model"),
    ("clock", 0, "clock"),
    ("config", 1, "config"),
    ("policy", 1, "policy"),
    ("filter", 1, "filter"),
    // Large room for a while.
    ("scratch", 0, "scratch"),
    // Signed JSON: identity claims, and the files of UPSTREAM 3.
    ("signed", 1, "signed"),
    // What a catalog is, without a thought of where it comes from.
    ("discovery::terms", 1, "discovery, pure"),
    ("discovery::page", 1, "discovery, pure"),
    ("discovery::edition", 1, "discovery, pure"),
    ("discovery::selection", 1, "discovery, pure"),
    ("discovery::search", 1, "discovery, pure"),
    ("discovery::snapshot", 1, "discovery, pure"),
    ("database", 2, "database"),
    // The callbacks of whoever uses the library.
    ("dispatch", 2, "dispatch"),
    ("upstream", 2, "upstream"),
    ("worker", 2, "worker"),
    ("objects", 2, "objects"),
    ("discovery", 3, "discovery"),
    ("communities", 3, "communities"),
    ("spaces", 3, "spaces"),
    ("storage", 3, "storage"),
    ("auth", 3, "auth"),
    ("realtime", 3, "realtime"),
    ("client", 4, "client"),
    // The threads that a client composes its services over.
    ("runtime", 4, "client"),
    ("blocking", 5, "blocking"),
    ("shared", 5, "shared"),
    ("http", 5, "http"),
];

/// Uses across one row that were thought about: from, to, why.
const AGREED: &[(&str, &str, &str)] = &[
    ("model", "error", "reading a Timeframe from text fails as InvalidInput"),
    ("upstream", "worker", "reading a page takes long, and is given to the thread of its caller's choice"),
];

/// What the root re-exports, by the module it lives in: `crate::Client` is a use of `client`.
const ROOT: &[(&str, &[&str])] = &[
    ("client", &["Client"]),
    ("clock", &["Clock", "ManualClock"]),
    ("config", &["Config", "Durability", "OPTIONS"]),
    ("discovery", &["Discovery", "HttpResponse", "CATEGORIES", "ENDPOINT_PATH", "MAX_LIMIT", "Selection"]),
    ("error", &["Error", "ErrorKind", "Operation", "Result", "DATABASE_ERRORS"]),
    (
        "model",
        &[
            "Author",
            "CatalogSource",
            "DiscoveryStats",
            "Engagement",
            "MiniApp",
            "MiniAppRecord",
            "MiniApps",
            "Timeframe",
        ],
    ),
];

/// The table's line for a module path such as `discovery::search::query`.
fn place(module: &str) -> Option<&'static (&'static str, u8, &'static str)> {
    let fits = |known: &str| module == known || module.strip_prefix(known).is_some_and(|rest| rest.starts_with("::"));
    MODULES.iter().filter(|(known, ..)| fits(known)).max_by_key(|(known, ..)| known.len())
}

/// `core/src/discovery/search.rs` is module `discovery::search`; lib.rs is none.
fn module_of(path: &str) -> Option<String> {
    let module = path.strip_prefix("core/src/")?.strip_suffix(".rs")?.replace('/', "::");
    (module != "lib").then_some(module)
}

/// Every path of the crate that this code of `module` names, as absolute modules: `crate::…`, `super::…`, braces
/// spread out.
fn uses(module: &str, code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (start, root) in [("crate::", true), ("super::", false)] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let mut base: Vec<&str> = if root { Vec::new() } else { module.split("::").collect() };
            let mut rest = &code[at..];
            if root {
                rest = &rest["crate::".len()..];
            }
            while let Some(after) = rest.strip_prefix("super::") {
                base.pop();
                rest = after;
            }
            spread(&base.join("::"), rest, &mut found);
        }
    }
    found
}

/// Reads `a::b`, `{a, b::{c, d}}` behind a base.
fn spread(base: &str, text: &str, into: &mut BTreeSet<String>) -> usize {
    let join = |name: &str| if base.is_empty() { name.to_owned() } else { format!("{base}::{name}") };
    let start = text.len() - text.trim_start().len();
    let text = &text[start..];
    if text.starts_with('{') {
        let mut at = 1;
        while at < text.len() && !text[at..].starts_with('}') {
            if text[at..].starts_with(|c: char| c == ',' || c.is_whitespace()) {
                at += 1;
                continue;
            }
            let length = spread(base, &text[at..], into);
            at += length.max(1);
        }
        return start + at + 1;
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '*')).unwrap_or(text.len());
    let name = &text[..end];
    match text[end..].strip_prefix("::").filter(|_| !name.is_empty()) {
        Some(rest) => start + end + 2 + spread(&join(name), rest, into),
        None => {
            into.insert(if name == "self" || name == "*" { base.to_owned() } else { join(name) });
            let renamed = text[end..].find([',', '}', ';']).filter(|_| text[end..].trim_start().starts_with("as "));
            start + end + renamed.unwrap_or(0)
        }
    }
}

/// The module that a used path lives in: names of the root are where they come from.
fn owner(used: &str) -> Option<&'static (&'static str, u8, &'static str)> {
    let first = used.split("::").next().unwrap_or_default();
    let root = ROOT.iter().find(|(_, names)| names.contains(&first)).map(|(module, _)| *module);
    place(root.unwrap_or(used))
}

/// What one file does against the layers.
fn breaks(path: &str, code: &str) -> Vec<String> {
    let Some(module) = module_of(path) else { return Vec::new() };
    let Some(&(_, row, group)) = place(&module) else {
        return vec![format!("{path}: module {module} has no row in the table at the top of this test")];
    };
    let mut complaints = Vec::new();
    for used in uses(&module, code) {
        let Some(&(_, used_row, used_group)) = owner(&used) else {
            if !used.is_empty() {
                complaints.push(format!("{path}: uses {used}, which has no row"));
            }
            continue;
        };
        let is_agreed = AGREED.iter().any(|(from, to, _)| *from == group && *to == used_group);
        if used_group != group && used_row >= row && !is_agreed {
            complaints.push(format!("{path}: {group} (row {row}) uses {used} of {used_group} (row {used_row})"));
        }
    }
    complaints
}

#[test]
fn a_module_uses_only_rows_above_its_own() {
    let bad = [
        ("core/src/error.rs", "use crate::config::Config;"),
        ("core/src/error/deep.rs", "use crate::{model::{self, MiniApp}, client};"),
        ("core/src/config.rs", "use crate::{\n    policy,\n};"),
        ("core/src/discovery/search.rs", "fn f(x: super::Discovery) {}"),
        ("core/src/discovery/search/query.rs", "use super::super::refresh::Catalog;"),
        ("core/src/database.rs", "use crate::upstream::Upstream;"),
        ("core/src/spaces.rs", "use crate::discovery::Discovery;"),
        ("core/src/discovery.rs", "fn f(c: &crate::Client) {}"),
        ("core/src/client.rs", "use crate::{error::{Error as E, Result}, blocking::wait};"),
        ("core/src/novelty.rs", ""),
    ];
    for (path, text) in bad {
        assert!(!breaks(path, text).is_empty(), "{path} may not: {text}");
    }
    let good = [
        ("core/src/discovery.rs", "use crate::{error::{Error, Result}, database::{self, Database}, upstream::*};"),
        (
            "core/src/discovery/refresh/flight.rs",
            "use super::super::{snapshot::Snapshot, Discovery}; use super::Catalog;",
        ),
        ("core/src/discovery/search/query.rs", "use super::postings::Postings;"),
        ("core/src/blocking.rs", "pub struct Client(crate::Client);"),
        ("core/src/upstream.rs", "use crate::discovery::page::Page;"),
    ];
    for (path, text) in good {
        assert_eq!(breaks(path, text), Vec::<String>::new(), "{path} may: {text}");
    }
    let complaints: Vec<_> =
        files(&["core/src"], &[".rs"]).iter().flat_map(|file| breaks(&file.path, &code(&file.text))).collect();
    assert_tidy("DESIGN 2's layers", &complaints);
}

#[test]
fn the_pure_rows_do_no_io_and_wait_for_nothing() {
    let impure = [
        "std::fs",
        "std::net",
        "std::process",
        "std::thread",
        "tokio::",
        "reqwest::",
        "rusqlite::",
        "sqlx::",
        "async fn",
        ".await",
    ];
    let check = |path: &str, code: &str| -> Vec<String> {
        let is_pure = module_of(path).and_then(|module| place(&module)).is_some_and(|(_, row, _)| *row <= 1);
        if is_pure { lines_with(path, code, &impure) } else { Vec::new() }
    };
    assert_eq!(check("core/src/discovery/page.rs", "use std::fs;").len(), 1);
    assert_eq!(check("core/src/filter.rs", "async fn f() { x.await }").len(), 2);
    assert!(check("core/src/database.rs", "use std::fs;").is_empty());
    let complaints: Vec<_> =
        files(&["core/src"], &[".rs"]).iter().flat_map(|file| check(&file.path, &code(&file.text))).collect();
    assert_tidy("rows 0 and 1 are pure (DESIGN 2)", &complaints);
}

#[test]
fn only_the_database_knows_a_driver_and_only_the_upstream_http() {
    let check = |path: &str, code: &str| -> Vec<String> {
        let within = |module: &str| path.starts_with(&format!("core/src/{module}"));
        let mut complaints = Vec::new();
        if !within("database") {
            complaints.extend(lines_with(path, code, &["rusqlite", "sqlx"]));
        }
        if !within("upstream") {
            complaints.extend(lines_with(path, code, &["reqwest"]));
        }
        if !within("http") {
            complaints.extend(lines_with(path, code, &["axum"]));
        }
        complaints
    };
    assert_eq!(check("core/src/discovery.rs", "use rusqlite::Connection; reqwest::get()").len(), 2);
    assert!(check("core/src/database/sqlite.rs", "use rusqlite::Connection;").is_empty());
    let complaints: Vec<_> =
        files(&["core/src"], &[".rs"]).iter().flat_map(|file| check(&file.path, &code(&file.text))).collect();
    assert_tidy("one outside system a module (DESIGN 2)", &complaints);
}

#[test]
fn the_bindings_use_the_public_face_and_never_each_other() {
    let check = |path: &str, code: &str| {
        let private =
            ["townsquare_ffi", "townsquare_python", "townsquare_native::", "rusqlite", "sqlx", "reqwest", "core/src"];
        lines_with(path, code, &private)
    };
    assert_eq!(check("python/src/lib.rs", "use townsquare_ffi::tsq_client;").len(), 1);
    let sources = files(&["ffi", "python"], &[".rs"]);
    let mut complaints: Vec<_> = sources.iter().flat_map(|file| check(&file.path, &code(&file.text))).collect();
    for manifest in files(&["ffi", "python"], &["Cargo.toml"]) {
        complaints.extend(lines_with(&manifest.path, &manifest.text, &["path = ", "rusqlite", "sqlx", "reqwest"]));
    }
    assert_tidy("ffi and python know only townsquare's public face (DESIGN 2)", &complaints);
}
