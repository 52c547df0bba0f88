//! The program of the README in C runs. The programs of the book in C and C++ compile without a warning, print what the book says, and leak nothing.

use std::{fs, process::Command};

use townsquare_tests::{paths::workspace, temp_dir};

use super::{
    compilers::STRICT,
    toolchain::{
        Language::{self, C11, Cpp17},
        Sanitizers::{AddressAndUndefined, Off},
        compile, link, run, text,
    },
};

/// Compiles a program of `docs/examples`, with sanitizers where the compiler has them, and compares its output.
fn prints(source: &str, language: Language, output: &str) {
    let folder = temp_dir();
    let examples = workspace().join("docs/examples");
    let expected = fs::read_to_string(examples.join(format!("output/{output}.txt"))).expect("the output is there");
    let source = examples.join(source);
    let check = |program: &std::path::Path| {
        let place = temp_dir();
        let result = run(Command::new(program).current_dir(place.path()));
        let printed = String::from_utf8_lossy(&result.stdout).replace("\r\n", "\n");
        assert!(
            result.status.success() && printed == expected.replace("\r\n", "\n"),
            "{}: {}",
            source.display(),
            text(&result)
        );
    };
    let program = folder.path().join("program");
    if link(&source, language, &STRICT, &program).is_some() {
        check(&program);
    }
    let program = folder.path().join("program-with-sanitizers");
    let sanitizers = if cfg!(target_os = "linux") { AddressAndUndefined } else { Off };
    if compile(&source, language, sanitizers, &program).is_some() {
        check(&program);
    }
}

#[test]
fn the_program_of_the_readme_runs() {
    let readme = fs::read_to_string(workspace().join("README.md")).expect("README.md is there");
    let program = readme.split_once("```c\n").and_then(|(_, rest)| rest.split_once("```\n")).expect("a program").0;
    let folder = temp_dir();
    let (source, binary) = (folder.path().join("program.c"), folder.path().join("program"));
    fs::write(&source, program).expect("written");
    if link(&source, C11, &STRICT, &binary).is_none() {
        return;
    }
    let result = run(Command::new(&binary).current_dir(folder.path()));
    let printed = String::from_utf8_lossy(&result.stdout);
    assert!(
        result.status.success() && printed.lines().count() == 21 && printed.ends_with("17 bytes\n"),
        "{}",
        text(&result)
    );
}

#[test]
fn the_first_program_in_c_prints_what_the_book_says() {
    prints("c/start.c", C11, "start");
}

#[test]
fn the_first_program_in_cpp_prints_the_same() {
    prints("cpp/start.cpp", Cpp17, "start");
}

#[test]
fn the_program_of_discovery_in_c_prints_what_the_book_says() {
    prints("c/discovery.c", C11, "discovery");
}

#[test]
fn the_program_of_tables_in_c_prints_what_the_book_says() {
    prints("c/tables.c", C11, "tables");
}

#[test]
fn the_program_of_sign_in_in_c_prints_what_the_book_says() {
    prints("c/sign_in.c", C11, "sign_in");
}

#[test]
fn the_program_of_files_in_c_prints_what_the_book_says() {
    prints("c/files.c", C11, "files");
}

#[test]
fn the_program_of_changes_in_c_prints_what_the_book_says() {
    prints("c/changes.c", C11, "changes");
}

#[test]
fn the_program_of_errors_in_c_prints_what_the_book_says() {
    prints("c/errors.c", C11, "errors");
}

#[test]
fn the_program_of_backups_in_c_prints_what_the_book_says() {
    prints("c/backup.c", C11, "backup");
}

#[test]
fn the_program_of_moves_in_c_prints_what_the_book_says() {
    prints("c/move.c", C11, "move");
}

#[test]
fn the_program_of_http_in_c_prints_what_the_book_says() {
    prints("c/endpoints.c", C11, "endpoints");
}
