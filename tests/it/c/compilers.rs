//! The headers compile with every compiler, standard and strict warning, and C++ also without exceptions.

use std::{process::Command, thread};

use townsquare_tests::{paths::workspace, skip::skip, temp_dir};

use super::toolchain::{
    Language::{Cpp17, Cpp20, Cpp23},
    link, link_with, run, text,
};

/// The warnings that a host may turn into errors for the headers that it includes.
pub(super) const STRICT: [&str; 6] = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"];

const WITHOUT_EXCEPTIONS: [&str; 2] = ["-fno-exceptions", "-fno-rtti"];

/// A compiler and its flags.
type Compiler = (&'static str, &'static [&'static str]);

const C: [Compiler; 3] = [("gcc", &[]), ("clang", &[]), ("clang-19", &[])];
const CPP: [Compiler; 4] = [("g++", &[]), ("clang++", &[]), ("clang++-19", &[]), ("clang++-19", &["-stdlib=libc++"])];

/// Checks the syntax of a program of tests/c/outside; reports a skip when the compiler is missing.
fn compiles(source: &str, (compiler, flags): Compiler, standard: &str, further: &[&str]) {
    if Command::new(compiler).arg("--version").output().is_err() {
        return skip(&format!("{source} with {compiler}: it is not installed"));
    }
    let mut command = Command::new(compiler);
    command.args(flags).arg(format!("-std={standard}")).arg("-fsyntax-only").args(STRICT).args(further);
    command.arg("-I").arg(workspace().join("include")).arg(workspace().join("tests/c/outside").join(source));
    let output = command.output().expect("the compiler runs");
    assert!(output.status.success(), "{command:?}:\n{}", text(&output));
}

#[test]
fn the_c_header_compiles_without_a_warning_with_each_compiler() {
    for compiler in C {
        for standard in ["c99", "c11", "c17", "c2x"] {
            compiles("program.c", compiler, standard, &[]);
        }
    }
}

#[test]
fn the_cpp_header_compiles_without_a_warning_with_each_compiler() {
    thread::scope(|scope| {
        for compiler in CPP {
            scope.spawn(move || {
                for standard in ["c++17", "c++20", "c++2b"] {
                    compiles("program.cpp", compiler, standard, &["-Wold-style-cast"]);
                }
            });
        }
    });
}

#[test]
fn the_cpp_header_compiles_without_exceptions_with_each_compiler() {
    thread::scope(|scope| {
        for compiler in CPP {
            scope.spawn(move || {
                for standard in ["c++17", "c++2b"] {
                    compiles("program.cpp", compiler, standard, &WITHOUT_EXCEPTIONS);
                }
            });
        }
    });
}

#[test]
#[cfg(unix)]
fn without_exceptions_a_failing_call_ends_the_program_with_its_sentence() {
    use std::os::unix::process::ExitStatusExt as _;

    let folder = temp_dir();
    let (source, program) = (workspace().join("tests/c/outside/program.cpp"), folder.path().join("program"));
    let Some(()) = link(&source, Cpp17, &WITHOUT_EXCEPTIONS, &program) else { return };
    let output = run(Command::new(&program).arg(folder.path().join("town")));
    assert_eq!(output.status.signal(), Some(nix::sys::signal::Signal::SIGABRT as i32), "{}", text(&output));
    assert!(text(&output).contains("townsquare: Get space failed: "), "{}", text(&output));
}

#[test]
fn the_coroutines_run_with_the_current_clang_and_both_libraries() {
    let source = workspace().join("tests/c/coroutines.cpp");
    for library in ["-stdlib=libstdc++", "-stdlib=libc++"] {
        let folder = temp_dir();
        let (program, data) = (folder.path().join("program"), folder.path().join("data"));
        std::fs::create_dir(&data).expect("a temporary folder can be written to");
        // The option that names the language of the libraries is for gcc.
        let flags: Vec<_> = STRICT.into_iter().chain(["-Wno-unused-command-line-argument", library]).collect();
        let Some(()) = link_with(&"clang++-19".into(), &source, Cpp20, &flags, &program) else { return };
        let output = run(Command::new(&program).arg("-").arg(&data));
        assert!(output.status.success(), "{library}: {}", text(&output));
    }
}

#[test]
fn the_coroutines_compile_without_a_warning_and_without_exceptions() {
    const INCLUDED: [&str; 2] = ["-include", "townsquare/coroutines.hpp"];
    thread::scope(|scope| {
        for compiler in CPP.into_iter().filter(|(name, _)| *name != "clang++") {
            scope.spawn(move || {
                for standard in ["c++20", "c++2b"] {
                    compiles("program.cpp", compiler, standard, &INCLUDED);
                    compiles("program.cpp", compiler, standard, &[&INCLUDED[..], &WITHOUT_EXCEPTIONS].concat());
                }
            });
        }
    });
}

#[test]
fn coroutines_need_cpp20() {
    let mut command = Command::new("g++");
    command.args(["-std=c++17", "-fsyntax-only", "-I"]).arg(workspace().join("include"));
    command.arg(workspace().join("include/townsquare/coroutines.hpp"));
    let Ok(output) = command.output() else { return skip("coroutines in C++17: g++ is missing") };
    assert!(!output.status.success() && text(&output).contains("compile with -std=c++20"), "{}", text(&output));
}

#[test]
fn the_program_runs_as_cpp23_with_std_expected() {
    let folder = temp_dir();
    let (source, program) = (folder.path().join("program.cpp"), folder.path().join("program"));
    // The program leaves out what a library without std::expected cannot compile: it must not be left out here.
    let outside = workspace().join("tests/c/outside/program.cpp");
    let text_of_program = std::fs::read_to_string(outside).expect("tests/c/outside/program.cpp exists");
    let lines =
        format!("#include <expected>\n#ifndef __cpp_lib_expected\n#error no std::expected\n#endif\n{text_of_program}");
    std::fs::write(&source, lines).expect("a temporary folder can be written to");
    let Some(()) = link(&source, Cpp23, &STRICT, &program) else { return };
    let output = run(Command::new(&program).arg(folder.path().join("town")));
    assert!(output.status.success(), "{}", text(&output));
}
