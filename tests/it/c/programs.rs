//! The programs of tests/c: each compiles without a warning and passes with and without sanitizers, or Valgrind.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use townsquare::{Config, blocking::Client};
use townsquare_tests::{
    paths::workspace,
    postgres::{self, APP_ROLE},
    replica::ProgramPair,
    s3_server::S3Server,
    temp_dir,
};

use super::toolchain::{
    Language::{self, C11, Cpp17, Cpp20},
    Sanitizers::{self, AddressAndUndefined, Off, Valgrind},
    compile, is_library_sanitized, run, text,
};

/// The files that a program finds in its folder.
#[derive(Clone, Copy)]
pub(super) enum Folder {
    Empty,
    /// `town`: a database with one user.
    Town,
    /// `ruin`: a database without the table `spaces`.
    Ruin,
    /// Nothing: the client `town` has a database on PostgreSQL and its files on an S3 server.
    Remote,
    /// Nothing: the client has a database on PostgreSQL and its standby, whose replay the program pauses.
    Replica,
}

impl Folder {
    fn fill(self, folder: &Path) {
        let (name, statement) = match self {
            Folder::Empty | Folder::Remote | Folder::Replica => return,
            Folder::Town => (
                "town",
                "INSERT INTO users (id, email) VALUES ('00000000-0000-4000-8000-0000000000ad', 'ada@example.com')",
            ),
            Folder::Ruin => ("ruin", "DROP TABLE spaces"),
        };
        let data_dir = folder.join(name);
        Client::open(Config::new().data_dir(&data_dir)).expect("a new database opens").close();
        let database = rusqlite::Connection::open(data_dir.join("townsquare.db")).expect("SQLite");
        database.execute(statement, []).expect("the statement fits the schema");
    }
}

/// Compiles a program of tests/c and runs it with the catalog and a folder of its own.
fn passes(source: &str, folder: Folder, language: Language, sanitizers: Sanitizers) {
    let temporary = temp_dir();
    let program = temporary.path().join("program");
    if compile(&workspace().join("tests/c").join(source), language, sanitizers, &program).is_some() {
        succeeds(&program, source, temporary.path(), folder, sanitizers);
    }
}

/// Runs a program of tests/c with the catalog and a folder of its own in `temporary`.
pub(super) fn succeeds(program: &Path, source: &str, temporary: &Path, folder: Folder, sanitizers: Sanitizers) {
    let programs = workspace().join("tests/c");
    let data = temporary.join("data");
    fs::create_dir(&data).expect("a temporary folder can be written to");
    folder.fill(&data);
    let mut command = sanitizers.command(program);
    command.arg(programs.join("catalog.json")).arg(&data).env(OPTIONS, workspace().join("tests/options.txt"));
    if source == "files_large.c" {
        // It measures its memory. With more arenas glibc keeps freed memory for each thread, and which threads work depends on the
        // load.
        command.env("MALLOC_ARENA_MAX", "1");
    }
    // The servers run until the program has ended. Without PostgreSQL there is nothing to run.
    let (_remote, _pair);
    match folder {
        Folder::Remote => {
            let Some(town) = RemoteTown::start() else { return };
            command.env(DATABASE_URL, &town.database).env(STORAGE_URL, town.server.url("town"));
            _remote = town;
        }
        Folder::Replica => {
            let Some(pair) = ProgramPair::start() else { return };
            let (database, replica) = pair.urls();
            command.env(DATABASE_URL, database).env(REPLICA_URL, replica);
            _pair = pair;
        }
        Folder::Empty | Folder::Town | Folder::Ruin => {}
    }
    let output = run(&mut command);
    assert!(output.status.success(), "{source}: {}", text(&output));
}

/// The variable that environment.c reads: the table of options.
const OPTIONS: &str = "TSQ_TEST_OPTIONS";

/// The variables that `open_with` in tests/c/stored.h reads.
const DATABASE_URL: &str = "TSQ_TEST_DATABASE_URL";
const STORAGE_URL: &str = "TSQ_TEST_STORAGE_URL";
/// The variable that replica.c reads.
const REPLICA_URL: &str = "TSQ_TEST_REPLICA_URL";

/// A new database on PostgreSQL, and an S3 server.
struct RemoteTown {
    database: String,
    server: S3Server,
}

impl RemoteTown {
    fn start() -> Option<RemoteTown> {
        let postgres = postgres::server()?;
        Some(RemoteTown { database: postgres.url(APP_ROLE, &postgres.new_database()), server: S3Server::start() })
    }
}

/// A test for each way to compile a program: `"source" in folder: test = language sanitizers, …;`
macro_rules! programs {
    ($($source:literal in $folder:ident: $($test:ident = $language:ident $sanitizers:ident),*;)*) => {
        $($(
            #[test]
            fn $test() {
                passes($source, Folder::$folder, $language, $sanitizers);
            }
        )*)*
    };
}

programs! {
    "discovery.c" in Empty:
        discovery_from_c = C11 Off,
        discovery_from_c_under_sanitizers = C11 AddressAndUndefined,
        discovery_from_c_as_cpp = Cpp17 Off;
    "directory.c" in Empty:
        directory_from_c = C11 Off,
        directory_from_c_under_sanitizers = C11 AddressAndUndefined,
        directory_from_c_as_cpp = Cpp17 Off;
    "environment.c" in Empty:
        environment_from_c = C11 Off,
        environment_from_c_under_sanitizers = C11 AddressAndUndefined,
        environment_from_c_as_cpp = Cpp17 Off;
    "inputs.c" in Empty:
        sizes_of_inputs_from_c = C11 Off,
        sizes_of_inputs_from_c_under_sanitizers = C11 AddressAndUndefined,
        sizes_of_inputs_from_c_under_valgrind = C11 Valgrind,
        sizes_of_inputs_from_c_as_cpp = Cpp17 Off;
    "tables.c" in Town:
        tables_from_c = C11 Off,
        tables_from_c_under_sanitizers = C11 AddressAndUndefined,
        tables_from_c_as_cpp = Cpp17 Off;
    "service_lists.c" in Town:
        lists_of_the_service_from_c = C11 Off,
        lists_of_the_service_from_c_under_sanitizers = C11 AddressAndUndefined,
        lists_of_the_service_from_c_as_cpp = Cpp17 Off;
    "table_rows.c" in Town:
        rows_of_tables_from_c = C11 Off,
        rows_of_tables_from_c_under_sanitizers = C11 AddressAndUndefined,
        rows_of_tables_from_c_as_cpp = Cpp17 Off;
    "communities.c" in Town:
        communities_from_c = C11 Off,
        communities_from_c_under_sanitizers = C11 AddressAndUndefined,
        communities_from_c_as_cpp = Cpp17 Off;
    "faults.c" in Ruin:
        faults_from_c = C11 Off,
        faults_from_c_under_sanitizers = C11 AddressAndUndefined,
        faults_from_c_as_cpp = Cpp17 Off;
    "auth.c" in Empty:
        sign_in_from_c = C11 Off,
        sign_in_from_c_under_sanitizers = C11 AddressAndUndefined,
        sign_in_from_c_as_cpp = Cpp17 Off;
    "user_sessions.c" in Empty:
        sessions_of_a_user_from_c = C11 Off,
        sessions_of_a_user_from_c_under_sanitizers = C11 AddressAndUndefined,
        sessions_of_a_user_from_c_as_cpp = Cpp17 Off;
    "auth_events.c" in Empty:
        auth_events_from_c = C11 Off,
        auth_events_from_c_under_sanitizers = C11 AddressAndUndefined,
        auth_events_from_c_as_cpp = Cpp17 Off;
    "policies.c" in Empty:
        policies_from_c = C11 Off,
        policies_from_c_under_sanitizers = C11 AddressAndUndefined,
        policies_from_c_as_cpp = Cpp17 Off;
    "files.c" in Empty:
        files_from_c = C11 Off,
        files_from_c_under_sanitizers = C11 AddressAndUndefined,
        files_from_c_under_valgrind = C11 Valgrind,
        files_from_c_as_cpp = Cpp17 Off;
    "files_stream.c" in Empty:
        streamed_files_from_c = C11 Off,
        streamed_files_from_c_under_sanitizers = C11 AddressAndUndefined,
        streamed_files_from_c_as_cpp = Cpp17 Off;
    "moves.c" in Empty:
        moves_from_c = C11 Off,
        moves_from_c_under_sanitizers = C11 AddressAndUndefined,
        moves_from_c_as_cpp = Cpp17 Off;
    "moves.c" in Remote:
        moves_from_postgres_and_s3_from_c = C11 Off;
    "replica.c" in Replica:
        reads_on_a_replica_from_c = C11 Off,
        reads_on_a_replica_from_c_under_sanitizers = C11 AddressAndUndefined,
        reads_on_a_replica_from_c_as_cpp = Cpp17 Off;
    "files_large.c" in Empty:
        a_large_file_from_c_uses_little_memory = C11 Off;
    "files_policies.c" in Empty:
        policies_of_files_from_c = C11 Off,
        policies_of_files_from_c_under_sanitizers = C11 AddressAndUndefined,
        policies_of_files_from_c_as_cpp = Cpp17 Off;
    "files_policies.c" in Remote:
        policies_of_files_on_postgres_and_s3_from_c = C11 Off;
    "findings.c" in Empty:
        findings_from_c = C11 Off,
        findings_from_c_under_sanitizers = C11 AddressAndUndefined,
        findings_from_c_as_cpp = Cpp17 Off;
    "guarantees.c" in Empty:
        guarantees_from_c = C11 Off,
        guarantees_from_c_under_sanitizers = C11 AddressAndUndefined,
        guarantees_from_c_as_cpp = Cpp17 Off;
    "signals.c" in Empty:
        signals_from_c = C11 Off,
        signals_from_c_under_sanitizers = C11 AddressAndUndefined,
        signals_from_c_as_cpp = Cpp17 Off;
    "call_sequences.c" in Empty:
        sequences_of_calls_from_c = C11 Off,
        sequences_of_calls_from_c_under_sanitizers = C11 AddressAndUndefined,
        sequences_of_calls_from_c_as_cpp = Cpp17 Off;
    "exits.c" in Empty:
        exits_from_c = C11 Off,
        exits_from_c_as_cpp = Cpp17 Off;
    "realtime.c" in Empty:
        changes_from_c = C11 Off,
        changes_from_c_under_sanitizers = C11 AddressAndUndefined,
        changes_from_c_under_valgrind = C11 Valgrind,
        changes_from_c_as_cpp = Cpp17 Off;
    "callbacks.c" in Empty:
        callbacks_from_c = C11 Off,
        callbacks_from_c_under_sanitizers = C11 AddressAndUndefined,
        callbacks_from_c_under_valgrind = C11 Valgrind,
        callbacks_from_c_as_cpp = Cpp17 Off;
    "host_loop.c" in Empty:
        callbacks_on_the_loop_of_the_host_from_c = C11 Off,
        callbacks_on_the_loop_of_the_host_from_c_under_sanitizers = C11 AddressAndUndefined,
        callbacks_on_the_loop_of_the_host_from_c_as_cpp = Cpp17 Off;
    "host_loop.c" in Remote:
        callbacks_on_the_loop_of_the_host_on_postgres_from_c = C11 Off;
    "forks.c" in Empty:
        forks_from_c = C11 Off,
        forks_from_c_under_valgrind = C11 Valgrind,
        forks_from_c_as_cpp = Cpp17 Off;
    "raii_auth.cpp" in Empty:
        sign_in_from_cpp = Cpp17 Off,
        sign_in_from_cpp_under_sanitizers = Cpp17 AddressAndUndefined,
        sign_in_from_cpp20 = Cpp20 Off;
    "raii_inputs.cpp" in Empty:
        sizes_of_inputs_from_cpp = Cpp17 Off,
        sizes_of_inputs_from_cpp20 = Cpp20 Off;
    "raii_tables.cpp" in Town:
        tables_from_cpp = Cpp17 Off,
        tables_from_cpp_under_sanitizers = Cpp17 AddressAndUndefined,
        tables_from_cpp20 = Cpp20 Off;
    "raii_files.cpp" in Empty:
        files_from_cpp = Cpp17 Off,
        files_from_cpp_under_sanitizers = Cpp17 AddressAndUndefined,
        files_from_cpp20 = Cpp20 Off;
    "raii_realtime.cpp" in Empty:
        changes_from_cpp = Cpp17 Off,
        changes_from_cpp_under_sanitizers = Cpp17 AddressAndUndefined,
        changes_from_cpp20 = Cpp20 Off;
    "coroutines.cpp" in Empty:
        coroutines_from_cpp20 = Cpp20 Off,
        coroutines_from_cpp20_under_sanitizers = Cpp20 AddressAndUndefined;
    "raii.cpp" in Empty:
        raii_from_cpp = Cpp17 Off,
        raii_from_cpp_under_sanitizers = Cpp17 AddressAndUndefined,
        raii_from_cpp20 = Cpp20 Off;
}

#[test]
fn the_leak_check_reports_a_leaked_handle() {
    let folder = temp_dir();
    let program = folder.path().join("leak");
    if compile(&workspace().join("tests/c/leak.c"), C11, AddressAndUndefined, &program).is_some() {
        let output = run(&mut Command::new(&program));
        assert!(text(&output).contains("LeakSanitizer: detected memory leaks"), "{}", text(&output));
        assert!(!output.status.success());
    }
}

/// With a library that is not compiled with it, AddressSanitizer sees the reads and writes of the host alone.
#[test]
fn a_write_of_the_library_behind_the_memory_of_the_host_is_reported_under_sanitizers() {
    let folder = temp_dir();
    let program = folder.path().join("overwrite");
    if compile(&workspace().join("tests/c/overwrite.c"), C11, AddressAndUndefined, &program).is_some() {
        let output = run(&mut Command::new(&program));
        assert_eq!(text(&output).contains("heap-buffer-overflow"), is_library_sanitized(), "{}", text(&output));
        assert_eq!(output.status.success(), !is_library_sanitized());
    }
}

/// The blocks of C in the manual, ffi/header.md: a program, and parts of functions.
fn blocks_of_the_manual() -> Vec<String> {
    let manual = fs::read_to_string(workspace().join("ffi/header.md")).expect("ffi/header.md exists");
    let blocks = manual.split("```c\n").skip(1);
    blocks.map(|block| block.split_once("```").expect("a block ends").0.to_owned()).collect()
}

#[test]
fn the_example_of_the_manual_compiles_and_runs() {
    let example = &blocks_of_the_manual()[0];
    let folder = temp_dir();
    let (source, program) = (folder.path().join("example.c"), folder.path().join("example"));
    fs::write(&source, example).expect("a temporary folder can be written to");
    for language in [C11, Cpp17] {
        if compile(&source, language, Off, &program).is_some() {
            // With the defaults: a data folder in the current folder and no key, so the list is empty.
            let output = run(Command::new(&program).current_dir(folder.path()));
            assert!(output.status.success(), "{}", text(&output));
        }
    }
}

#[test]
fn every_further_block_of_the_manual_compiles() {
    let blocks = blocks_of_the_manual();
    assert!(blocks.len() > 4, "the manual has an example and parts of programs");
    let mut program = "#include <poll.h>\n#include <stdio.h>\n#include <townsquare.h>\n\nstatic tsq_error *err;\n\
        static void send(const uint8_t *bytes, size_t length) { fwrite(bytes, 1, length, stdout); }\n"
        .to_owned();
    let mut calls = String::new();
    for (number, block) in blocks.iter().enumerate().skip(1) {
        let _ = write!(
            program,
            "static void block_{number}(tsq_client *client, tsq_str id) {{\n    (void)id;\n{block}}}\n"
        );
        let _ =
            writeln!(calls, "    block_{number}(client, TSQ_STR(\"\"));\n    tsq_error_free(err);\n    err = NULL;");
    }
    // Without a client each call fails.
    let _ = write!(program, "int main(void) {{\n    tsq_client *client = NULL;\n{calls}    return 0;\n}}\n");
    let folder = temp_dir();
    let (source, binary) = (folder.path().join("blocks.c"), folder.path().join("blocks"));
    fs::write(&source, &program).expect("a temporary folder can be written to");
    if compile(&source, C11, AddressAndUndefined, &binary).is_some() {
        let output = run(&mut Command::new(&binary));
        assert!(output.status.success(), "{}\n{program}", text(&output));
    }
}
