//! clang-tidy finds nothing in the headers and in programs that include them as their own.

use std::{collections::BTreeSet, process::Command, thread};

use townsquare_tests::{paths::workspace, skip::skip};

use super::toolchain::text;

/// Faults, not habits. Left out: that arguments of one type can be swapped, that printf returns a number, and that `i++` returns
/// no constant.
const CHECKS: &str = "-*,bugprone-*,-bugprone-easily-swappable-parameters,cert-*,-cert-err33-c,-cert-dcl21-cpp,\
    clang-analyzer-*,concurrency-*,cppcoreguidelines-special-member-functions,misc-*,modernize-use-nullptr,\
    modernize-use-override,performance-*,portability-*";

/// Checks of the current clang-tidy that are left out, too: a program includes one header for all types, and the size of an enum is
/// part of the interface.
const NOT_CURRENT: &str = ",-misc-include-cleaner,-performance-enum-size";

/// The tool of the distribution, and the current one, which knows coroutines.
const TOOLS: [&str; 2] = ["clang-tidy", "clang-tidy-19"];

/// C++ functions that act: a program may drop what they return.
const ACTIONS: [&str; 37] = [
    "copy",
    "create_fidget",
    "create_fidgets",
    "create_space",
    "create_spaces",
    "delete_prefix",
    "download_stream",
    "download_to",
    "end_sessions",
    "export_files",
    "force_refresh",
    "import_credentials",
    "import_rows",
    "move",
    "move_to",
    "recover",
    "refresh",
    "refresh_session",
    "register_space",
    "reopen_for_writes",
    "repair",
    "save_community_config",
    "save_community_domain",
    "save_positions",
    "secure_upload",
    "set_owner",
    "set_session",
    "sign_in",
    "sign_up",
    "update_fidget",
    "update_navigation",
    "update_space",
    "update_user",
    "upload",
    "upload_from",
    "upload_stream",
    "verify_email",
];

/// The command for a source file of the workspace; `None` and a reported skip without the tool.
fn clang_tidy(tool: &str, checks: &str, source: &str, standard: &str) -> Option<Command> {
    if Command::new(tool).arg("--version").output().is_err() {
        skip(&format!("the headers under {tool}: it is not installed"));
        return None;
    }
    let mut command = Command::new(tool);
    command.args(["--quiet", "--header-filter=townsquare"]).arg(format!("--checks={checks}"));
    command.arg(workspace().join(source)).args(["--", &format!("-std={standard}"), "-I"]);
    command.arg(workspace().join("include")).arg("-I").arg(workspace().join("tests/c"));
    Some(command)
}

#[test]
fn the_headers_and_programs_that_include_them_are_clean() {
    let current = &format!("{CHECKS}{NOT_CURRENT}");
    let programs = [
        (TOOLS[0], CHECKS, "tests/c/outside/program.c", "c11"),
        (TOOLS[0], CHECKS, "tests/c/outside/program.cpp", "c++17"),
        (TOOLS[0], CHECKS, "ffi/examples/browse.cpp", "c++20"),
        // With townsquare/coroutines.hpp.
        (TOOLS[1], current, "tests/c/coroutines.cpp", "c++20"),
    ];
    thread::scope(|scope| {
        for (tool, checks, source, standard) in programs {
            scope.spawn(move || {
                let Some(mut command) = clang_tidy(tool, checks, source, standard) else { return };
                let output = command.output().expect("it runs");
                let found = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success() && found.trim().is_empty(), "{source}: {}", text(&output));
            });
        }
    });
}

#[test]
fn what_a_function_without_effects_returns_cannot_be_dropped() {
    let checks = "-*,modernize-use-nodiscard";
    let Some(mut command) = clang_tidy(TOOLS[0], checks, "tests/c/outside/program.cpp", "c++17") else { return };
    let output = command.output().expect("it runs");
    let found = String::from_utf8_lossy(&output.stdout);
    let names = found.lines().filter(|line| line.contains("should be marked [[nodiscard]]"));
    let names: BTreeSet<_> = names.filter_map(|line| line.split('\'').nth(1)).collect();
    assert_eq!(names, BTreeSet::from(ACTIONS), "{}", text(&output));
}
