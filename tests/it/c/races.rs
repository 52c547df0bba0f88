//! Race detectors: tests/c/threads.c under Helgrind and ThreadSanitizer, with the suppressions of ffi/races.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use townsquare_tests::{paths::workspace, skip::skip, temp_dir};

use super::toolchain::{Language::C11, Sanitizers, compile, run, text};

fn suppressions(name: &str) -> PathBuf {
    workspace().join("ffi/races").join(name)
}

/// Compiles threads.c and runs it by `command`, without and with a race of its own; `None` when a tool is missing.
fn runs(sanitizers: Sanitizers, command: impl Fn(&Path) -> Command) -> Option<(Output, Output)> {
    let folder = temp_dir();
    let programs = workspace().join("tests/c");
    let program = folder.path().join("threads");
    compile(&programs.join("threads.c"), C11, sanitizers, &program)?;
    let outputs = [None, Some("race")].map(|race| {
        let data = folder.path().join(race.unwrap_or("clean"));
        fs::create_dir(&data).expect("a temporary folder can be written to");
        run(command(&program).arg(programs.join("catalog.json")).arg(&data).args(race))
    });
    let [clean, racing] = outputs;
    Some((clean, racing))
}

fn passes_and_reports_a_race_of_the_host((clean, racing): (Output, Output), report: &str) {
    assert!(clean.status.success() && !text(&clean).contains(report), "{}", text(&clean));
    assert!(!racing.status.success() && text(&racing).contains(report), "{}", text(&racing));
}

#[test]
fn helgrind_reports_races_of_the_host_and_none_of_the_library() {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip("Helgrind: install valgrind");
    }
    let command = |program: &Path| {
        let mut command = Command::new("valgrind");
        command.args([
            "--tool=helgrind",
            "--error-exitcode=9",
            "--history-level=none",
            "--check-stack-refs=no",
            "--fair-sched=yes",
        ]);
        command.arg(format!("--suppressions={}", suppressions("helgrind.supp").display())).arg(program);
        command
    };
    if let Some(outputs) = runs(Sanitizers::Off, command) {
        passes_and_reports_a_race_of_the_host(outputs, "Possible data race");
    }
}

#[test]
fn thread_sanitizer_reports_races_of_the_host_and_none_of_the_library() {
    let command = |program: &Path| {
        let mut command = Command::new(program);
        command.env(
            "TSAN_OPTIONS",
            format!("suppressions={} ignore_noninstrumented_modules=1", suppressions("tsan.supp").display()),
        );
        command
    };
    if let Some(outputs) = runs(Sanitizers::Thread, command) {
        passes_and_reports_a_race_of_the_host(outputs, "WARNING: ThreadSanitizer: data race");
    }
}
