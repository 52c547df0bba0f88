//! The layers of core (DESIGN 2): a module uses only modules of rows with a smaller number in [`ROWS`]. These rows are
//! higher up in the README's table.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    assert_tidy,
    source::{Source, banned, files, is_below, items},
};

/// The modules of core/src by row.
const ROWS: &[&[&str]] = &[
    &["error", "model", "clock"],
    &[
        "metrics",
        "config",
        "policy",
        "client_key",
        "validate",
        "signed_json",
        "signed_file",
        "storage_path",
        "tls",
        "catalog",
    ],
    &[
        "threads",
        "callbacks",
        "file_place",
        "regular_file",
        "database",
        "http_message",
        "objects",
        "request_context",
        "upstream",
    ],
    &["discovery", "communities", "spaces", "storage", "auth", "realtime"],
    &["check", "rows"],
    &["client"],
    &["blocking", "shared", "http"],
];

/// Allowed uses of a module in the same or a later row: from, to, reason.
const ALLOWED_USES: &[(&str, &str, &str)] = &[
    ("request_context", "database", "a token has a principal of the database"),
    ("callbacks", "threads", "callbacks run on a pool"),
    ("config", "storage_path", "an option declares buckets"),
    ("database", "threads", "every thread is started by `threads`"),
    ("database", "file_place", "a copy of a database is at another place"),
    ("database", "regular_file", "nothing but SQLite opens the files of an open database"),
    ("objects", "file_place", "a copy of a folder is at another place"),
    ("objects", "threads", "files are read and written on the blocking pool"),
    ("signed_file", "signed_json", "a signed file is signed JSON"),
    ("model", "error", "parsing a Timeframe fails with an Error"),
    ("upstream", "regular_file", "a catalog file is a regular file"),
    ("upstream", "threads", "a page is parsed on the blocking pool"),
];

/// The modules of a crate, one per file, with what they use.
pub(super) struct Modules {
    /// Files by module path, such as `discovery::refresh`, without lib.rs.
    files: BTreeMap<String, Source>,
    /// The path of each item that lib.rs re-exports, by its name.
    exports: BTreeMap<String, String>,
}

impl Modules {
    pub(super) fn of(folder: &str, sources: Vec<Source>) -> Modules {
        let mut modules = Modules { files: BTreeMap::new(), exports: BTreeMap::new() };
        for source in sources {
            let Some(path) = source.path.strip_prefix(folder).and_then(|path| path.strip_suffix(".rs")) else {
                continue;
            };
            match path.trim_start_matches('/').replace('/', "::").as_str() {
                "lib" => modules.read_exports(&source),
                path => drop(modules.files.insert(path.to_owned(), source)),
            }
        }
        modules
    }

    pub(super) fn read(folder: &str) -> Modules {
        Modules::of(folder, files(&[folder], &[".rs"]))
    }

    fn read_exports(&mut self, lib: &Source) {
        for item in items(&lib.path, &lib.text) {
            if let Some(path) = item.what.strip_prefix("crate::") {
                let name = path.rsplit("::").next().unwrap_or(path);
                self.exports.insert(name.to_owned(), path.to_owned());
            }
        }
    }

    /// Returns the modules without a parent.
    pub(super) fn top_level(&self) -> BTreeSet<&str> {
        self.files.keys().filter_map(|path| path.split("::").next()).collect()
    }

    /// Returns the modules without a parent that are folders.
    pub(super) fn folders(&self) -> BTreeSet<&str> {
        self.files.keys().filter_map(|path| path.split_once("::")).map(|(folder, _)| folder).collect()
    }

    /// Returns the paths of the crate that a module uses outside of tests, without `crate`, `self` and `super`.
    fn uses(&self, module: &str) -> BTreeSet<String> {
        let source = &self.files[module];
        let code = items(&source.path, &source.text).into_iter().filter(|item| !item.in_test);
        code.filter_map(|item| {
            let mut base: Vec<&str> = module.split("::").chain(item.modules.iter().map(String::as_str)).collect();
            let mut names = item.what.split("::").peekable();
            match *names.peek()? {
                "crate" => base.clear(),
                "self" => {}
                "super" => drop(base.pop()),
                // Other paths are local or belong to another crate.
                name if self.files.contains_key(&format!("{}::{name}", base.join("::"))) => {
                    return Some(format!("{}::{}", base.join("::"), item.what));
                }
                _ => return None,
            }
            names.next();
            while names.next_if_eq(&"super").is_some() {
                base.pop();
            }
            let path = base.into_iter().chain(names).collect::<Vec<_>>().join("::");
            let first = path.split("::").next().unwrap_or_default();
            Some(self.exports.get(first).filter(|_| !self.top_level().contains(first)).cloned().unwrap_or(path))
        })
        .filter(|path| !path.is_empty())
        .collect()
    }

    /// Returns the file that a path lies in.
    fn file_of(&self, path: &str) -> Option<&str> {
        let files = self.files.keys().filter(|file| is_below(path, file));
        files.max_by_key(|file| file.len()).map(String::as_str)
    }

    /// Returns the pairs of files that use each other and are not parent and child.
    fn cycles(&self) -> Vec<String> {
        let mut uses = BTreeSet::new();
        for module in self.files.keys() {
            let used = self.uses(module);
            let files = used.iter().filter_map(|path| self.file_of(path)).filter(|file| file != module);
            uses.extend(files.map(|file| (module.as_str(), file)));
        }
        let is_cycle = |(from, to): &&(&str, &str)| {
            from < to && uses.contains(&(*to, *from)) && !is_below(from, to) && !is_below(to, from)
        };
        uses.iter().filter(is_cycle).map(|(from, to)| format!("{from} and {to}")).collect()
    }
}

/// Exceptions to the test that rows 0 and 1 have no async code: file, item, reason.
const ALLOWED_ASYNC: &[(&str, &str, &str)] = &[
    ("core/src/error.rs", "async", "operation() runs a future under its name"),
    ("core/src/error.rs", "await", "operation() runs a future under its name"),
];

fn row_of(module: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&module))
}

/// Returns the violations of the layers in core.
fn violations(core: &Modules) -> Vec<String> {
    let known: BTreeSet<&str> = ROWS.iter().copied().flatten().copied().collect();
    let present = core.top_level();
    let mut complaints: Vec<_> = present.difference(&known).map(|name| format!("{name} has no row")).collect();
    complaints.extend(known.difference(&present).map(|name| format!("{name} has a row and does not exist")));
    for (module, source) in &core.files {
        let from = module.split("::").next().unwrap_or_default();
        for used in core.uses(module) {
            let to = used.split("::").next().unwrap_or_default();
            let (Some(from_row), Some(to_row)) = (row_of(from), row_of(to)) else { continue };
            let is_allowed = ALLOWED_USES.iter().any(|(one, other, _)| (*one, *other) == (from, to));
            if from != to && to_row >= from_row && !is_allowed {
                complaints.push(format!("{}: {from} (row {from_row}) uses {used} (row {to_row})", source.path));
            }
        }
    }
    complaints
}

fn sample(files: &[(&str, &str)]) -> Modules {
    let source = |(path, text): &(&str, &str)| Source { path: format!("core/src/{path}"), text: (*text).to_owned() };
    Modules::of("core/src", files.iter().map(source).collect())
}

/// A sample core with every module of the table and these files.
fn sample_core(files: &[(&str, &str)]) -> Modules {
    let mut all = BTreeMap::from([("lib.rs", "pub use crate::{client::Client, spaces::Space};")]);
    let names: Vec<_> = ROWS.iter().copied().flatten().map(|name| format!("{name}.rs")).collect();
    all.extend(names.iter().map(|name| (name.as_str(), "")));
    all.extend(files.iter().copied());
    sample(&all.into_iter().collect::<Vec<_>>())
}

#[test]
fn a_module_uses_only_lower_rows() {
    for (path, text) in [
        ("error.rs", "use crate::config::Config;"),
        ("error/deep.rs", "use crate::{model::{self, MiniApp}, client};"),
        ("config.rs", "use crate::{\n    policy,\n};"),
        ("catalog/search.rs", "fn f(x: crate::discovery::Discovery) {}"),
        ("catalog/search/query.rs", "use super::super::super::auth::Auth;"),
        ("database.rs", "use crate::upstream::Upstream;"),
        ("database.rs", "fn f(space: crate::spaces::Space) {}"),
        ("database.rs", "fn f(space: crate::Space) {}"),
        ("spaces.rs", "use crate::discovery::Discovery;"),
        ("discovery.rs", "fn f(c: &crate::Client) { m!(crate::client::x()) }"),
        ("client.rs", "use crate::{error::{Error as E, Result}, blocking::wait};"),
        ("novelty.rs", ""),
    ] {
        assert!(!violations(&sample_core(&[(path, text)])).is_empty(), "{path} may not: {text}");
    }
    assert_eq!(violations(&sample(&[("error.rs", "")])).len(), ROWS.concat().len() - 1, "rows without a module");
    for (path, text) in [
        ("discovery.rs", "use crate::{error::{Error, Result}, database::{self, Database}, upstream::*};"),
        ("discovery/refresh.rs", "use super::{snapshot::Snapshot, Discovery}; mod x { use super::super::Catalog; }"),
        ("blocking.rs", "pub struct Client(crate::Client);"),
        ("upstream.rs", "use crate::catalog::page::Page; #[cfg(test)] use crate::client::Client;"),
    ] {
        assert_eq!(violations(&sample_core(&[(path, text)])), Vec::<String>::new(), "{path} may: {text}");
    }
    assert_tidy("DESIGN 2's layers", &violations(&Modules::read("core/src")));
}

#[test]
fn no_two_files_of_a_crate_use_each_other() {
    let bad = sample(&[
        ("lib.rs", ""),
        ("a.rs", "use crate::b::c::X;"),
        ("b.rs", ""),
        ("b/c.rs", "fn f() { crate::a::g() }"),
    ]);
    assert_eq!(bad.cycles(), ["a and b::c"]);
    let good =
        sample(&[("lib.rs", ""), ("a.rs", "use self::b::X;"), ("a/b.rs", "use super::Y;"), ("c.rs", "use crate::a;")]);
    assert_eq!(good.cycles(), Vec::<String>::new());
    let cycles = ["core/src", "cli/src", "ffi/src", "python/src"].map(|folder| {
        Modules::read(folder).cycles().into_iter().map(|cycle| format!("{folder}: {cycle}")).collect::<Vec<_>>()
    });
    assert_tidy("two files that use each other", &cycles.concat());
}

#[test]
fn rows_0_and_1_do_no_io_and_no_async() {
    let impure = [
        "std::fs",
        "std::net",
        "std::process",
        "std::thread",
        "tokio",
        "reqwest",
        "rusqlite",
        "sqlx",
        "async",
        "await",
    ];
    let check = |path: &str, text: &str| -> Vec<String> {
        let module = path.strip_prefix("core/src/").and_then(|path| path.split(['/', '.']).next()).unwrap_or_default();
        let is_pure = row_of(module).is_some_and(|row| row <= 1);
        let is_allowed = |what: &str| ALLOWED_ASYNC.iter().any(|(file, item, _)| (*file, *item) == (path, what));
        let is_impure = |what: &str| impure.iter().any(|item| is_below(what, item)) && !is_allowed(what);
        if is_pure { banned(path, text, is_impure) } else { Vec::new() }
    };
    assert_eq!(check("core/src/catalog/page.rs", "use std::fs;").len(), 1);
    assert_eq!(check("core/src/validate.rs", "async fn f() { x.await }").len(), 2);
    assert!(check("core/src/database.rs", "use std::fs;").is_empty());
    let complaints: Vec<_> =
        files(&["core/src"], &[".rs"]).iter().flat_map(|file| check(&file.path, &file.text)).collect();
    assert_tidy("rows 0 and 1 are pure (DESIGN 2)", &complaints);
}

#[test]
fn only_the_module_of_an_outside_system_uses_its_driver() {
    let drivers = [
        ("database", "rusqlite"),
        ("database", "sqlx"),
        ("objects", "cap_std"),
        ("objects", "object_store"),
        // Tests, which stand in for a store.
        ("storage/simulation", "object_store"),
        // They add a user to the database that the seeds copy.
        ("storage/simulation", "rusqlite"),
        // The HTTP client of object_store.
        ("objects/remote/connect", "reqwest"),
        ("upstream", "reqwest"),
        ("http", "axum"),
    ];
    let check = |path: &str, text: &str| -> Vec<String> {
        let is_own = |module: &str| path.starts_with(&format!("core/src/{module}"));
        let uses: Vec<_> = drivers.iter().filter(|(module, _)| is_own(module)).map(|(_, driver)| driver).collect();
        let foreign: Vec<_> =
            drivers.iter().map(|(_, driver)| *driver).filter(|driver| !uses.contains(&driver)).collect();
        banned(path, text, |what| foreign.iter().any(|driver| is_below(what, driver)))
    };
    assert_eq!(check("core/src/discovery.rs", "use rusqlite::Connection; fn f() { reqwest::get() }").len(), 2);
    assert!(check("core/src/database/sqlite.rs", "use rusqlite::Connection;").is_empty());
    let complaints: Vec<_> =
        files(&["core/src"], &[".rs"]).iter().flat_map(|file| check(&file.path, &file.text)).collect();
    assert_tidy("one outside system a module (DESIGN 2)", &complaints);
}

#[test]
fn the_bindings_use_only_the_public_api_of_core() {
    let private = ["townsquare_ffi", "townsquare_python", "townsquare_native", "rusqlite", "sqlx", "reqwest"];
    let check = |path: &str, text: &str| banned(path, text, |what| private.iter().any(|name| is_below(what, name)));
    assert_eq!(check("python/src/lib.rs", "use townsquare_ffi::tsq_client;").len(), 1);
    let mut complaints: Vec<_> =
        files(&["cli", "ffi", "python"], &[".rs"]).iter().flat_map(|file| check(&file.path, &file.text)).collect();
    for manifest in files(&["cli", "ffi", "python"], &["Cargo.toml"]) {
        // The fixtures, for the tests of the command.
        let fixtures = "townsquare-tests = { path = \"../tests\" }";
        let mut section = "";
        let lines = manifest
            .text
            .lines()
            .filter(|line| {
                if line.starts_with('[') {
                    section = *line;
                }
                (manifest.path.as_str(), section, *line) != ("cli/Cargo.toml", "[dev-dependencies]", fixtures)
            })
            // The root of a binary with another name than its package.
            .filter(|line| *line != "path = \"src/main.rs\"")
            .filter(|line| ["path = ", "rusqlite", "sqlx", "reqwest"].iter().any(|word| line.contains(word)));
        complaints.extend(lines.map(|line| format!("{}: {line}", manifest.path)));
    }
    assert_tidy("cli, ffi and python use only townsquare's public API (DESIGN 2)", &complaints);
}
