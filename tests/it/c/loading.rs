//! A C program that loads the library with dlopen: panics print nothing, and the library may be unloaded.

use std::{
    fs,
    process::{Command, Output},
};

use townsquare_tests::{paths::workspace, skip::skip, temp_dir};

use super::toolchain::{Language::C11, Sanitizers, compile, library, run, text};

/// Runs tests/c/loading.c; `None` and a reported skip when a tool is missing.
fn loading(what: &str) -> Option<Output> {
    let folder = temp_dir();
    let program = folder.path().join("loading");
    compile(&workspace().join("tests/c/loading.c"), C11, Sanitizers::Off, &program)?;
    Some(run(Command::new(&program).arg(what).arg(library()?).arg(folder.path().join("town"))))
}

#[test]
fn the_library_may_be_unloaded_while_threads_of_a_client_end() {
    let Some(output) = loading("unload") else { return };
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_panic_prints_nothing_and_is_logged() {
    /// The program's status for a build of the library that cannot be made to panic.
    const RELEASE_BUILD: i32 = 77;
    let Some(output) = loading("panic") else { return };
    if output.status.code() == Some(RELEASE_BUILD) {
        return skip("a panic of the C library: it is a release build");
    }
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output));
}

#[test]
fn two_copies_in_a_process_serve_a_folder_each_and_never_one() {
    let Some(library) = library() else { return };
    let folder = temp_dir();
    let (program, copy) = (folder.path().join("loading"), folder.path().join("copy.so"));
    let Some(()) = compile(&workspace().join("tests/c/loading.c"), C11, Sanitizers::Off, &program) else { return };
    fs::copy(&library, &copy).expect("a temporary folder can be written to");
    let output = run(Command::new(&program).arg("copies").arg(library).arg(folder.path().join("town")).arg(copy));
    assert!(output.status.success(), "{}", text(&output));
}
