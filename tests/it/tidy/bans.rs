//! Items that the code must not use (DESIGN 2, STYLE 4) and that clippy.toml and the lint table cannot ban.

use super::{
    assert_tidy,
    source::{banned, files, is_below, items},
};

/// Banned items, and the files in which they are banned.
struct Ban {
    rule: &'static str,
    items: &'static [&'static str],
    folders: &'static [&'static str],
    except: &'static [&'static str],
}

const SOURCES: &[&str] = &["core/src", "cli/src", "ffi/src", "python/src"];

const BANS: &[Ban] = &[
    Ban {
        rule: "expect states the invariant (STYLE 4)",
        items: &["expect(\"\")"],
        folders: &["core/src", "cli/src", "ffi/src", "python/src", "benches/src"],
        except: &[],
    },
    Ban {
        rule: "no anyhow, and no foreign error without its operation (STYLE 4)",
        items: &["anyhow", "eyre", "#[from]", "Box<dyn Error>"],
        folders: SOURCES,
        except: &[],
    },
    Ban {
        rule: "only ffi has unsafe code (DESIGN 2)",
        items: &["unsafe", "#[unsafe]", "allow(unsafe_code)"],
        folders: &["core/src", "cli", "tests/src", "tests/it", "benches"],
        // These benches call the C functions to measure them.
        except: &["benches/benches/discovery_reads/", "benches/benches/spaces/"],
    },
];

fn complaints(ban: &Ban, path: &str, text: &str) -> Vec<String> {
    if ban.except.iter().any(|allowed| path.starts_with(allowed)) {
        return Vec::new();
    }
    banned(path, text, |what| ban.items.iter().any(|item| is_below(what, item)))
}

#[test]
fn source_contains_no_banned_items() {
    let samples = [
        "fn f() { x.expect(\"\"); }",
        "use anyhow::Result; enum E { #[from] A } fn f(_: Box<dyn std::error::Error>) -> eyre::Report {}",
        "unsafe fn f() { unsafe {} } #[allow(unsafe_code)] unsafe impl X for Y {} #[unsafe(no_mangle)] fn g() {}",
    ];
    for ((ban, sample), count) in BANS.iter().zip(samples).zip([1, 4, 5]) {
        let found = complaints(ban, "core/src/sample.rs", sample);
        assert_eq!(found.len(), count, "{}: {found:?}", ban.rule);
    }
    for ban in BANS {
        let files = files(ban.folders, &[".rs"]);
        let found: Vec<_> = files.iter().flat_map(|file| complaints(ban, &file.path, &file.text)).collect();
        assert_tidy(ban.rule, &found);
    }
}

#[test]
fn every_crate_without_unsafe_forbids_it_at_its_root() {
    let forbids = |text: &str| items("root", text).iter().any(|item| item.what == "forbid(unsafe_code)");
    assert!(forbids("//! x\n#![forbid(unsafe_code)]\n") && !forbids("// #![forbid(unsafe_code)]\n"));
    let roots = ["core/src/lib.rs", "cli/src/lib.rs", "cli/src/main.rs", "tests/src/lib.rs", "benches/src/lib.rs"];
    let files = files(&roots, &[".rs"]);
    assert_eq!(files.len(), roots.len());
    let missing: Vec<_> = files.iter().filter(|file| !forbids(&file.text)).map(|file| &file.path).collect();
    assert_tidy("#![forbid(unsafe_code)] (DESIGN 2)", &missing);
}

/// A call of the change feed may wait for the database, or read long JSON: other threads of Python go on meanwhile.
#[test]
fn every_call_of_the_change_feed_leaves_the_gil() {
    let holds = |text: &str| -> Vec<String> {
        let calls = text.lines().filter(|line| line.contains("runner.run(") && !line.contains("\"__aenter__\""));
        calls.map(str::to_owned).collect()
    };
    assert_eq!(
        holds("self.runner.run(py, a)\nself.runner.run_without_gil(py, b)\nrunner.run(py, \"__aenter__\")").len(),
        1
    );
    let files = files(&["python/src/realtime.rs", "python/src/change_stream.rs", "python/src/http.rs"], &[".rs"]);
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|file| file.text.contains("runner.run_without_gil(")));
    let found: Vec<_> = files.iter().flat_map(|file| holds(&file.text)).collect();
    assert_tidy("calls of the change feed leave the GIL (DESIGN 10)", &found);
}

/// tests/clippy.toml bans sleeping in the integration tests.
#[test]
fn unit_tests_do_not_sleep() {
    let sleeps = |path: &str, text: &str| -> Vec<String> {
        let found = items(path, text).into_iter().filter(|item| item.in_test && item.what.ends_with("::sleep"));
        found.map(|item| format!("{path}:{}: {}", item.line, item.what)).collect()
    };
    assert_eq!(
        sleeps("x.rs", "fn f() { thread::sleep(x) } #[cfg(test)] mod t { fn f() { thread::sleep(x) } }").len(),
        1
    );
    let found: Vec<_> = files(SOURCES, &[".rs"]).iter().flat_map(|file| sleeps(&file.path, &file.text)).collect();
    assert_tidy("unit tests wait for conditions, not for time (STYLE 4)", &found);
}
