//! The programs of tests/c, each compiled without a warning and run with and without sanitizers.

use std::{fs, path::Path, process::Command};

use townsquare::{Config, blocking::Client};
use townsquare_tests::{paths::workspace, temp_dir};

use super::toolchain::{
    Language::{self, C11, Cpp17},
    Sanitizers::{self, AddressAndUndefined, Off},
    compile, run, text,
};

/// Compiles and runs a program of tests/c with the catalog and a folder of its own.
fn passes(source: &str, language: Language, sanitizers: Sanitizers) {
    passes_in(source, language, sanitizers, |_| ());
}

fn passes_in(source: &str, language: Language, sanitizers: Sanitizers, furnish: impl FnOnce(&Path)) {
    let folder = temp_dir();
    let programs = workspace().join("tests/c");
    let program = folder.path().join("program");
    if compile(&programs.join(source), language, sanitizers, &program).is_none() {
        return;
    }
    let data = folder.path().join("data");
    fs::create_dir(&data).expect("a temporary folder can be written to");
    furnish(&data);
    let output = run(Command::new(&program).arg(programs.join("catalog.json")).arg(&data));
    assert!(output.status.success(), "{source}: {}", text(&output));
}

/// The same with a database in the folder that has one user, whom no function of the library makes yet.
fn passes_in_town(source: &str, language: Language, sanitizers: Sanitizers) {
    passes_in(source, language, sanitizers, |folder| {
        let town = folder.join("town");
        Client::open(Config::new().data_dir(&town)).expect("a new database opens").close();
        let database = rusqlite::Connection::open(town.join("townsquare.db")).expect("SQLite");
        let user = "INSERT INTO users (id, email) VALUES ('00000000-0000-4000-8000-0000000000ad', 'ada@example.com')";
        database.execute(user, []).expect("a user can be inserted");
    });
}

#[test]
fn discovery_from_c() {
    passes("discovery.c", C11, Off);
}

#[test]
fn discovery_from_c_under_sanitizers() {
    passes("discovery.c", C11, AddressAndUndefined);
}

#[test]
fn discovery_from_c_as_cpp() {
    passes("discovery.c", Cpp17, Off);
}

#[test]
fn tables_from_c() {
    passes_in_town("tables.c", C11, Off);
}

#[test]
fn tables_from_c_under_sanitizers() {
    passes_in_town("tables.c", C11, AddressAndUndefined);
}

#[test]
fn tables_from_c_as_cpp() {
    passes_in_town("tables.c", Cpp17, Off);
}

#[test]
fn communities_from_c() {
    passes_in_town("communities.c", C11, Off);
}

#[test]
fn communities_from_c_under_sanitizers() {
    passes_in_town("communities.c", C11, AddressAndUndefined);
}

#[test]
fn communities_from_c_as_cpp() {
    passes_in_town("communities.c", Cpp17, Off);
}

/// In the folder lies a ruin, a database without its table of spaces.
fn passes_in_ruin(language: Language, sanitizers: Sanitizers) {
    passes_in("faults.c", language, sanitizers, |folder| {
        let ruin = folder.join("ruin");
        Client::open(Config::new().data_dir(&ruin)).expect("a new database opens").close();
        let database = rusqlite::Connection::open(ruin.join("townsquare.db")).expect("SQLite");
        database.execute("DROP TABLE spaces", []).expect("a table can be dropped");
    });
}

#[test]
fn faults_from_c() {
    passes_in_ruin(C11, Off);
}

#[test]
fn faults_from_c_under_sanitizers() {
    passes_in_ruin(C11, AddressAndUndefined);
}

#[test]
fn faults_from_c_as_cpp() {
    passes_in_ruin(Cpp17, Off);
}

#[test]
fn sign_in_from_c() {
    passes("auth.c", C11, Off);
}

#[test]
fn sign_in_from_c_under_sanitizers() {
    passes("auth.c", C11, AddressAndUndefined);
}

#[test]
fn sign_in_from_c_as_cpp() {
    passes("auth.c", Cpp17, Off);
}

#[test]
fn auth_events_from_c() {
    passes("auth_events.c", C11, Off);
}

#[test]
fn auth_events_from_c_under_sanitizers() {
    passes("auth_events.c", C11, AddressAndUndefined);
}

#[test]
fn auth_events_from_c_as_cpp() {
    passes("auth_events.c", Cpp17, Off);
}

#[test]
fn policies_from_c() {
    passes("policies.c", C11, Off);
}

#[test]
fn policies_from_c_under_sanitizers() {
    passes("policies.c", C11, AddressAndUndefined);
}

#[test]
fn policies_from_c_as_cpp() {
    passes("policies.c", Cpp17, Off);
}

#[test]
fn sign_in_from_cpp() {
    passes("raii_auth.cpp", Cpp17, Off);
}

#[test]
fn sign_in_from_cpp_under_sanitizers() {
    passes("raii_auth.cpp", Cpp17, AddressAndUndefined);
}

#[test]
fn tables_from_cpp() {
    passes_in_town("raii_tables.cpp", Cpp17, Off);
}

#[test]
fn tables_from_cpp_under_sanitizers() {
    passes_in_town("raii_tables.cpp", Cpp17, AddressAndUndefined);
}

#[test]
fn raii_from_cpp() {
    passes("raii.cpp", Cpp17, Off);
}

#[test]
fn raii_from_cpp_under_sanitizers() {
    passes("raii.cpp", Cpp17, AddressAndUndefined);
}

#[test]
fn a_forgotten_handle_is_seen_by_the_leak_check() {
    let folder = temp_dir();
    let program = folder.path().join("leak");
    if compile(&workspace().join("tests/c/leak.c"), C11, AddressAndUndefined, &program).is_some() {
        let output = run(&mut Command::new(&program));
        assert!(text(&output).contains("LeakSanitizer: detected memory leaks"), "{}", text(&output));
        assert!(!output.status.success());
    }
}

#[test]
fn the_example_of_the_manual_compiles_and_runs() {
    let manual = fs::read_to_string(workspace().join("ffi/header.md")).expect("ffi/header.md exists");
    let (_, example) = manual.split_once("```c\n").expect("the manual has an example");
    let (example, _) = example.split_once("```").expect("the example ends");
    let folder = temp_dir();
    let (source, program) = (folder.path().join("example.c"), folder.path().join("example"));
    fs::write(&source, example).expect("a temporary folder can be written to");
    for language in [C11, Cpp17] {
        if compile(&source, language, Off, &program).is_some() {
            // Its defaults: a data folder where it runs, and no key, so an empty list.
            let output = run(Command::new(&program).current_dir(folder.path()));
            assert!(output.status.success(), "{}", text(&output));
        }
    }
}
