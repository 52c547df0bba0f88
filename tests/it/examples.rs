//! The example `torture` runs, as a user runs it. (`.ci/run` also runs `tour`.)

use std::{collections::BTreeMap, fs, process::Output};

use townsquare_tests::{
    cargo::cargo,
    setting::{seed, setting},
    temp_dir,
};

/// Runs the example with its temporary files in a folder of their own, and checks that it leaves nothing there.
///
/// All packages are selected, so that cargo builds the library with the features of `cargo test`: once.
fn torture(arguments: &[String]) -> Output {
    let folder = temp_dir();
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--locked", "--offline", "--example", "torture", "--"]);
    let output = cargo.args(arguments).env("TMPDIR", folder.path()).output().expect("cargo starts");
    let left: Vec<_> = fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn torture_kills_writers_and_finds_what_they_acknowledged() {
    let rounds: usize = setting("TOWNSQUARE_TEST_KILLS", 10);
    let output = torture(&[rounds.to_string(), seed(13).to_string()]);
    let report = text(&output.stdout);
    assert!(output.status.success(), "{report}{}", text(&output.stderr));
    let counts: BTreeMap<_, usize> = report
        .lines()
        .filter_map(|line| line.rsplit_once("  "))
        .filter_map(|(name, count)| Some((name.trim_end(), count.trim().parse().ok()?)))
        .collect();
    let count = |name| *counts.get(name).unwrap_or_else(|| panic!("{name} is not in the report:\n{report}"));
    assert!(count("kills") >= rounds, "{report}");
    for name in ["operations acknowledged", "files read", "changes delivered"] {
        assert!(count(name) > rounds, "{name}:\n{report}");
    }
    assert_eq!(count("changes delivered"), count("changes expected"), "{report}");
    assert!(count("operations in doubt") >= count("operations in doubt found"), "{report}");
    for fault in [
        "operations lost",
        "operations half done",
        "files torn",
        "files left over",
        "changes missing",
        "changes doubled",
        "changes out of order",
        "findings of the check",
        "errors",
    ] {
        assert_eq!(count(fault), 0, "{fault}:\n{report}");
    }
}

#[test]
fn torture_refuses_what_is_no_number() {
    for arguments in [&["many"][..], &["1", "x"], &["1", "2", "3"]] {
        let output = torture(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&output.stdout), "Usage: torture [ROUNDS] [SEED], two whole numbers\n");
    }
}
