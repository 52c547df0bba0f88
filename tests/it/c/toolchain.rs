//! Compilers, flags, and the C library that the programs link.

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

/// The name in the library's dynamic section, under which programs load it.
pub(super) const SONAME: &str = "libtownsquare.so.0.1";

/// A language and its standard.
#[derive(Clone, Copy)]
pub(super) enum Language {
    C11,
    Cpp17,
    Cpp20,
    Cpp23,
}

impl Language {
    /// The compiler that CC or CXX names, or the first usual one that runs.
    fn compiler(self) -> Option<OsString> {
        let (variable, usual): (_, &[&str]) = match self {
            Language::C11 => ("CC", &["cc", "gcc", "clang"]),
            Language::Cpp17 | Language::Cpp20 | Language::Cpp23 => ("CXX", &["c++", "g++", "clang++"]),
        };
        let named = env::var_os(variable).filter(|name| !name.is_empty());
        let candidates = named.map_or_else(|| usual.iter().map(OsString::from).collect(), |name| vec![name]);
        candidates
            .into_iter()
            .find(|name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success()))
    }

    /// All warnings are errors. The language is explicit, because the C programs are also compiled as C++.
    fn flags(self) -> [&'static str; 8] {
        let (standard, language) = match self {
            Language::C11 => ("-std=c11", "c"),
            Language::Cpp17 => ("-std=c++17", "c++"),
            Language::Cpp20 => ("-std=c++20", "c++"),
            Language::Cpp23 => ("-std=c++2b", "c++"),
        };
        [standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-x", language]
    }
}

/// The sanitizers that a program is compiled with, or Valgrind, which runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sanitizers {
    Off,
    AddressAndUndefined,
    Thread,
    /// Memcheck, which also sees reads of memory that nobody has written. It takes ten times as long as AddressSanitizer. It is for
    /// programs that fork beside threads, too: the allocator of AddressSanitizer in gcc 12 has no handlers for fork, and a
    /// child waits for ever for a lock that a thread of its parent had.
    Valgrind,
}

impl Sanitizers {
    fn flags(self) -> &'static [&'static str] {
        match self {
            Sanitizers::Off | Sanitizers::Valgrind => &[],
            Sanitizers::AddressAndUndefined => &[
                "-DADDRESS_SANITIZER",
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all",
                "-fno-omit-frame-pointer",
            ],
            Sanitizers::Thread => &["-fsanitize=thread"],
        }
    }

    /// The command that runs a program which was compiled with them.
    pub(super) fn command(self, program: &Path) -> Command {
        if self != Sanitizers::Valgrind {
            return Command::new(program);
        }
        let mut command = Command::new("valgrind");
        // In a child all memory that only threads of the parent knew is lost: leaks are no errors.
        command.args(["--quiet", "--error-exitcode=9", "--leak-check=no", "--fair-sched=yes"]).arg(program);
        command
    }
}

/// The variable that names a folder with a library that is itself compiled with AddressSanitizer: `.ci/sanitize` sets it.
const SANITIZED_LIBRARY: &str = "TOWNSQUARE_TEST_SANITIZED_LIBRARY";

/// Whether the library itself is compiled with AddressSanitizer. Programs without it cannot load such a library.
pub(super) fn is_library_sanitized() -> bool {
    env::var_os(SANITIZED_LIBRARY).is_some()
}

/// The folder of cargo's build results, which contains the C library.
fn folder() -> PathBuf {
    if let Some(folder) = env::var_os(SANITIZED_LIBRARY) {
        return folder.into();
    }
    let test = env::current_exe().expect("a test knows its path");
    test.parent().expect("a file lies in a folder").to_owned()
}

/// The C library, which cargo builds as a dependency of this crate; `None` and a reported skip without it.
pub(super) fn library() -> Option<PathBuf> {
    let name = format!("{}townsquare_ffi{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let path = folder().join(name);
    if path.is_file() {
        provide_soname(&path);
        return Some(path);
    }
    skip(&format!("the C library: {} does not exist", path.display()));
    None
}

/// Makes the name under which programs load the library, its soname, a link to it.
fn provide_soname(library: &Path) {
    #[cfg(target_os = "linux")]
    {
        static LINKED: OnceLock<()> = OnceLock::new();
        LINKED.get_or_init(|| {
            let link = library.with_file_name(SONAME);
            // An earlier run made the same link.
            let made = std::os::unix::fs::symlink(library.file_name().expect("the library has a name"), &link);
            assert!(made.is_ok() || link.exists(), "{}: {made:?}", link.display());
        });
    }
}

/// Compiles a program; `None` and a reported skip when a tool is missing.
pub(super) fn compile(source: &Path, language: Language, sanitizers: Sanitizers, program: &Path) -> Option<()> {
    let what = source.display();
    library()?;
    let Some(compiler) = language.compiler() else {
        skip(&format!("{what}: no compiler; set CC and CXX, or install gcc and g++"));
        return None;
    };
    if sanitizers != Sanitizers::Off && !can_run(sanitizers) {
        skip(&format!(
            "{what} under {sanitizers:?}: valgrind, or the compiler's runtime, is missing or does not work here"
        ));
        return None;
    }
    let output = run(&mut compilation(&compiler, language, sanitizers, source, program));
    assert!(output.status.success(), "{what} does not compile:\n{}", text(&output));
    Some(())
}

/// Compiles a program with further flags; `None` and a reported skip when a tool is missing.
pub(super) fn link(source: &Path, language: Language, flags: &[&str], program: &Path) -> Option<()> {
    library()?;
    let Some(compiler) = language.compiler() else {
        skip(&format!("{}: no compiler", source.display()));
        return None;
    };
    link_with(&compiler, source, language, flags, program)
}

/// Compiles a program with this compiler; `None` and a reported skip when a tool is missing.
pub(super) fn link_with(
    compiler: &OsString,
    source: &Path,
    language: Language,
    flags: &[&str],
    program: &Path,
) -> Option<()> {
    library()?;
    if Command::new(compiler).arg("--version").output().is_err() {
        skip(&format!("{}: {} is not installed", source.display(), compiler.display()));
        return None;
    }
    let output = run(compilation(compiler, language, Sanitizers::Off, source, program).args(flags));
    assert!(output.status.success(), "{} does not compile:\n{}", source.display(), text(&output));
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
    if cfg!(target_os = "linux") {
        // A program that loads the library with dlopen must not be linked with it.
        command.arg("-Wl,--as-needed");
    }
    command.arg("-L").arg(&folder).arg("-ltownsquare_ffi").arg("-pthread");
    if cfg!(target_os = "linux") {
        command.arg("-ldl");
    }
    let mut search = OsString::from("-Wl,-rpath,");
    search.push(&folder);
    command.arg(search).arg("-o").arg(program);
    command.args(sanitizers.flags());
    command
}

/// Runs a command without the environment variables of the library.
pub(super) fn run(command: &mut Command) -> Output {
    for (name, _) in env::vars_os() {
        if name == "CATALOG_API_KEY" || name.to_string_lossy().starts_with("TOWNSQUARE_") {
            command.env_remove(name);
        }
    }
    // First in the search path: cargo's own path may contain the library of an earlier build.
    let known = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let search = env::join_paths(iter::once(folder()).chain(env::split_paths(&known))).expect("paths from a path list");
    command.env("LD_LIBRARY_PATH", search);
    command.env("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0");
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// The exit status and the output of a program.
pub(super) fn text(output: &Output) -> String {
    let mut text = format!("{}\n", output.status);
    for stream in [&output.stdout, &output.stderr] {
        let _ = write!(text, "{}", String::from_utf8_lossy(stream));
    }
    text
}

/// Whether an empty C program can be compiled and run with these sanitizers.
fn can_run(sanitizers: Sanitizers) -> bool {
    static ADDRESS: OnceLock<bool> = OnceLock::new();
    static THREAD: OnceLock<bool> = OnceLock::new();
    static VALGRIND: OnceLock<bool> = OnceLock::new();
    let answer = match sanitizers {
        Sanitizers::Thread => &THREAD,
        Sanitizers::Valgrind => &VALGRIND,
        _ => &ADDRESS,
    };
    *answer.get_or_init(|| {
        let folder = temp_dir();
        let (source, program) = (folder.path().join("empty.c"), folder.path().join("empty"));
        std::fs::write(&source, "int main(void) { return 0; }\n").expect("a temporary file can be written");
        let Some(compiler) = Language::C11.compiler() else { return false };
        let built = run(&mut compilation(&compiler, Language::C11, sanitizers, &source, &program));
        built.status.success() && sanitizers.command(&program).output().is_ok_and(|ran| ran.status.success())
    })
}
