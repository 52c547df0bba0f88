//! The compilers, and the library that the programs link.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    iter,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use townsquare_tests::{paths::workspace, skip::skip, temp_dir};

/// A language with the compiler that the environment names, or the first that answers.
#[derive(Clone, Copy)]
pub(super) enum Language {
    C11,
    Cpp17,
}

impl Language {
    fn compiler(self) -> Option<OsString> {
        let (variable, usual): (_, &[&str]) = match self {
            Language::C11 => ("CC", &["cc", "gcc", "clang"]),
            Language::Cpp17 => ("CXX", &["c++", "g++", "clang++"]),
        };
        let named = env::var_os(variable).filter(|name| !name.is_empty());
        let candidates = named.map_or_else(|| usual.iter().map(OsString::from).collect(), |name| vec![name]);
        candidates
            .into_iter()
            .find(|name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success()))
    }

    /// All warnings are errors; the sources are told their language, for C is compiled as C++ too.
    fn flags(self) -> [&'static str; 8] {
        let (standard, language) = match self {
            Language::C11 => ("-std=c11", "c"),
            Language::Cpp17 => ("-std=c++17", "c++"),
        };
        [standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-x", language]
    }
}

/// Whether a program runs under the sanitizers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sanitizers {
    Off,
    AddressAndUndefined,
}

/// The folder that cargo builds this crate's dependencies in, the C library among them.
fn folder() -> PathBuf {
    let test = env::current_exe().expect("a test knows its path");
    test.parent().expect("a file lies in a folder").to_owned()
}

/// The C library, which cargo builds as a dependency of this crate; `None`, said aloud, on a platform without it.
pub(super) fn library() -> Option<PathBuf> {
    let name = format!("{}townsquare_ffi{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let path = folder().join(name);
    if path.is_file() {
        return Some(path);
    }
    skip(&format!("the C library: {} does not exist", path.display()));
    None
}

/// A program of tests/c, compiled; `None`, said aloud, when it cannot be.
pub(super) fn compile(source: &Path, language: Language, sanitizers: Sanitizers, program: &Path) -> Option<()> {
    let what = source.display();
    library()?;
    let Some(compiler) = language.compiler() else {
        skip(&format!("{what}: no compiler; set CC and CXX, or install gcc and g++"));
        return None;
    };
    if sanitizers == Sanitizers::AddressAndUndefined && !has_sanitizers() {
        skip(&format!("{what} under AddressSanitizer: the compiler's runtime is missing or cannot look for leaks"));
        return None;
    }
    let output = run(&mut compilation(&compiler, language, sanitizers, source, program));
    assert!(output.status.success(), "{what} does not compile:\n{}", text(&output));
    Some(())
}

fn compilation(
    compiler: &OsString,
    language: Language,
    sanitizers: Sanitizers,
    source: &Path,
    program: &Path,
) -> Command {
    let folder = folder();
    let mut command = Command::new(compiler);
    command.args(language.flags()).arg(source).args(["-x", "none"]);
    command.arg("-I").arg(workspace().join("include")).arg("-I").arg(workspace().join("tests/c"));
    command.arg("-L").arg(&folder).arg("-ltownsquare_ffi").arg("-pthread");
    let mut search = OsString::from("-Wl,-rpath,");
    search.push(&folder);
    command.arg(search).arg("-o").arg(program);
    if sanitizers == Sanitizers::AddressAndUndefined {
        command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]);
    }
    command
}

/// Runs a command without the settings of whoever runs the tests.
pub(super) fn run(command: &mut Command) -> Output {
    for (name, _) in env::vars_os() {
        if name == "CATALOG_API_KEY" || name.to_string_lossy().starts_with("TOWNSQUARE_") {
            command.env_remove(name);
        }
    }
    // Cargo's own search path comes before the one in the program, and leads to what an earlier build may have left.
    let known = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let search = env::join_paths(iter::once(folder()).chain(env::split_paths(&known))).expect("paths from a path list");
    command.env("LD_LIBRARY_PATH", search);
    command.env("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0");
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What a program wrote.
pub(super) fn text(output: &Output) -> String {
    let mut text = format!("{}\n", output.status);
    for stream in [&output.stdout, &output.stderr] {
        let _ = write!(text, "{}", String::from_utf8_lossy(stream));
    }
    text
}

/// Whether a C program that does nothing can be built and run under the sanitizers.
fn has_sanitizers() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let folder = temp_dir();
        let (source, program) = (folder.path().join("nothing.c"), folder.path().join("nothing"));
        std::fs::write(&source, "int main(void) { return 0; }\n").expect("a temporary file can be written");
        let Some(compiler) = Language::C11.compiler() else { return false };
        let sanitizers = Sanitizers::AddressAndUndefined;
        let built = run(&mut compilation(&compiler, Language::C11, sanitizers, &source, &program));
        built.status.success() && run(&mut Command::new(&program)).status.success()
    })
}
