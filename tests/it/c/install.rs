//! The C library as it is installed: a project outside of the repository finds it with pkg-config and with CMake, links it
//! shared and static with gcc and clang, and runs.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

use townsquare_tests::{
    cargo::{cargo, remove_cargo_variables},
    paths::workspace,
    skip::{requires_all, skip},
    temp_dir,
};

use super::toolchain::{SONAME, library, text};

/// A C compiler and the C++ compiler beside it: those of the distribution, and the newest clang with the C++ library of gcc and with
/// its own.
type Compilers = (&'static str, &'static str);

const COMPILERS: [Compilers; 4] =
    [("gcc", "g++"), ("clang", "clang++"), ("clang-19", "clang++-19"), ("clang-19", "clang++-19 -stdlib=libc++")];

/// The programs of the outside project.
const PROGRAMS: [&str; 8] = [
    "c99-shared",
    "c11-shared",
    "cpp17-shared",
    "cpp20-shared",
    "c99-static",
    "c11-static",
    "cpp17-static",
    "cpp20-static",
];

pub(super) fn outside() -> PathBuf {
    workspace().join("tests/c/outside")
}

/// Runs a command with nothing of cargo's and the library's environment, so that only the installed files are found.
pub(super) fn output(command: &mut Command) -> Output {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("TOWNSQUARE_") || ["CATALOG_API_KEY", "LD_LIBRARY_PATH", "MAKEFLAGS"].contains(&&*text) {
            command.env_remove(name);
        }
    }
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

pub(super) fn succeeds(command: &mut Command) {
    let output = output(command);
    assert!(output.status.success(), "{command:?}:\n{}", text(&output));
}

/// Whether a tool runs; reports a skip if not.
pub(super) fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        skip(&format!("the installed library: {tool} is missing"));
    }
    found
}

/// Those of `COMPILERS` that run; reports a skip for each other.
fn compilers() -> impl Iterator<Item = Compilers> {
    COMPILERS.into_iter().filter(|(c, cpp)| has(c) && has(cpp.split(' ').next().expect("a name")))
}

/// A folder with the libraries that cargo built for the tests; `None` and a reported skip without them. The static library is
/// without data for debuggers, with which each link takes seconds.
fn built() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let prepare = || {
        let library = library()?;
        let folder = library.with_file_name("to-install");
        fs::create_dir_all(&folder).expect("a folder of the build");
        fs::copy(&library, folder.join(library.file_name()?)).expect("a copy");
        let archive = library.with_file_name("libtownsquare_ffi.a");
        let mut strip = Command::new("objcopy");
        succeeds(strip.arg("--strip-debug").arg(&archive).arg(folder.join("libtownsquare_ffi.a")));
        Some(folder)
    };
    FOLDER.get_or_init(prepare).as_deref()
}

fn run_script(built: &Path, prefix: &Path) {
    succeeds(Command::new(workspace().join("ffi/install.sh")).arg(prefix).env("BUILT", built));
}

/// Puts a static library into a prefix. The script keeps one that it made of the same build: to make one takes many seconds.
fn spare_the_static_library(built: &Path, prefix: &Path) {
    static JOINED: OnceLock<PathBuf> = OnceLock::new();
    let joined = JOINED.get_or_init(|| {
        let first = built.join("installed");
        run_script(built, &first);
        first.join("lib/libtownsquare.a")
    });
    fs::create_dir_all(prefix.join("lib")).expect("a temporary folder can be written to");
    succeeds(Command::new("cp").arg("-p").arg(joined).arg(prefix.join("lib")));
}

/// Installs the library that cargo built for the tests; `None` and a reported skip without it.
fn install(prefix: &Path) -> Option<()> {
    let built = built()?;
    spare_the_static_library(built, prefix);
    run_script(built, prefix);
    Some(())
}

/// What the linker is given: no data for debuggers, and lld where it is installed, which links the static library in a tenth of
/// the time.
fn link_flags() -> &'static str {
    static FLAGS: OnceLock<&str> = OnceLock::new();
    FLAGS.get_or_init(|| {
        let has_lld = Command::new("ld.lld").arg("--version").output().is_ok_and(|output| output.status.success());
        if has_lld { "-s -fuse-ld=lld" } else { "-s" }
    })
}

/// The target that rustc builds for by itself.
fn target() -> String {
    let version = output(Command::new("rustc").arg("-vV"));
    let version = String::from_utf8_lossy(&version.stdout);
    version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host").to_owned()
}

/// Runs a program that opens a new folder.
fn passes(program: &Path) {
    let folder = temp_dir();
    let output = output(Command::new(program).arg(folder.path().join("town")));
    assert!(output.status.success(), "{}: {}", program.display(), text(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, format!("townsquare {}: Harbor\n", env!("CARGO_PKG_VERSION")), "{}", program.display());
}

#[test]
#[cfg(target_os = "linux")]
fn install_writes_the_libraries_the_headers_and_the_packages() {
    let folder = temp_dir();
    let prefix = folder.path().join("usr");
    let Some(()) = install(&prefix) else { return };
    let version = env!("CARGO_PKG_VERSION");
    let links = [(SONAME, format!("libtownsquare.so.{version}")), ("libtownsquare.so", SONAME.to_owned())];
    for (link, target) in links {
        assert_eq!(fs::read_link(prefix.join("lib").join(link)).expect("a link"), Path::new(&target));
    }
    let headers = ["include/townsquare.h", "include/townsquare.hpp", "include/townsquare/base.hpp"];
    let suppressions = ["share/townsquare/tsan.supp", "share/townsquare/helgrind.supp"];
    for file in ["lib/libtownsquare.a"].into_iter().chain(headers).chain(suppressions) {
        assert!(prefix.join(file).is_file(), "{file}");
    }
    for file in ["lib/pkgconfig/townsquare.pc", "share/cmake/townsquare/townsquare-config-version.cmake"] {
        let text = fs::read_to_string(prefix.join(file)).expect("an installed file");
        assert!(text.contains(version), "{file} has another version:\n{text}");
    }
    let project = fs::read_to_string(workspace().join("ffi/CMakeLists.txt")).expect("a file");
    assert!(project.contains(&format!("VERSION {version} ")), "ffi/CMakeLists.txt has another version");
    // Packages are installed into a folder in place of the root; the files name the prefix alone.
    let staged = folder.path().join("staged");
    let built = built().expect("install found it");
    let mut command = Command::new(workspace().join("ffi/install.sh"));
    command.arg("/opt/town").env("DESTDIR", &staged).env("BUILT", built);
    succeeds(command.env("LIBDIR", "lib64"));
    let package = fs::read_to_string(staged.join("opt/town/lib64/pkgconfig/townsquare.pc")).expect("an installed file");
    assert!(package.contains("prefix=/opt/town\n") && !package.contains("staged"), "{package}");
}

/// A build that shares nothing with that of the tests. It takes less time without data for debuggers and with an unoptimized SQLite.
fn built_from_nothing(command: &mut Command) -> &mut Command {
    command.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CFLAGS", "-O0")
}

/// Maps each installed file to the target of a link, the text of a file, or `a library`.
fn installed(folder: &Path, below: &Path, files: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let content = if path.is_dir() {
            installed(&path, below, files);
            continue;
        } else if path.is_symlink() {
            let target = path.canonicalize().expect("a link leads to a file");
            format!("a link to {}", target.file_name().expect("a name").display())
        } else {
            fs::read_to_string(&path).unwrap_or_else(|_| "a library".to_owned())
        };
        files.insert(path.strip_prefix(below).expect("a path below the folder").to_owned(), content);
    }
}

/// The lines of a package for pkg-config by name, with the words of a value in order. pkg-config needs no quotes where there is no
/// space, and gives `exec_prefix` the value of `prefix`.
fn package(text: &str) -> BTreeMap<String, Vec<String>> {
    let lines = text.lines().filter_map(|line| line.split_once([':', '=']));
    let lines = lines.map(|(name, value)| {
        let value = value.replace('"', "").replace("${exec_prefix}", "${prefix}");
        let mut words: Vec<_> = value.split_whitespace().map(str::to_owned).collect();
        words.sort();
        (name.to_owned(), words)
    });
    lines.collect()
}

/// The soname and the exported functions of the shared library.
fn interface(prefix: &Path) -> (String, Vec<String>) {
    let library = prefix.join("lib/libtownsquare.so");
    let listed = |command: &mut Command| {
        let output = output(command);
        assert!(output.status.success(), "{command:?}: {}", text(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let dynamic = listed(Command::new("readelf").arg("-d").arg(&library));
    let soname = dynamic.lines().find_map(|line| line.split_once("SONAME")).expect("a soname").1.to_owned();
    let symbols = listed(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    (soname, symbols.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect())
}

#[test]
#[cfg(target_os = "linux")]
fn cargo_cinstall_installs_what_the_script_installs() {
    if !["cargo-cinstall", "pkg-config", "cc", "readelf", "nm"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let (prefix, other) = (folder.path().join("script"), folder.path().join("cargo"));
    let Some(()) = install(&prefix) else { return };
    let mut cargo = cargo();
    cargo.args(["cinstall", "-p", "townsquare-ffi", "--profile", "dev", "--no-default-features"]);
    // On Debian the libraries would go to a folder with the name of the architecture.
    cargo.args(["--locked", "--offline", "--libdir", "lib", "--prefix"]).arg(&other);
    succeeds(built_from_nothing(&mut cargo));
    assert_eq!(interface(&prefix), interface(&other));
    let (mut by_script, mut by_cargo) = (BTreeMap::new(), BTreeMap::new());
    installed(&prefix, &prefix, &mut by_script);
    installed(&other, &other, &mut by_cargo);
    let pc = Path::new("lib/pkgconfig/townsquare.pc");
    let [script_pc, cargo_pc] = [&mut by_script, &mut by_cargo].map(|files| files.remove(pc).expect("a package"));
    assert_eq!(by_script.keys().collect::<Vec<_>>(), by_cargo.keys().collect::<Vec<_>>());
    for (path, content) in &by_script {
        assert!(by_cargo[path] == *content, "{} differs: {:.200}, {content:.200}", path.display(), by_cargo[path]);
    }
    let [mut script_pc, mut cargo_pc] = [package(&script_pc), package(&cargo_pc)];
    assert_eq!(script_pc.insert("prefix".into(), Vec::new()), Some(vec![prefix.display().to_string()]));
    assert_eq!(cargo_pc.insert("prefix".into(), Vec::new()), Some(vec![other.display().to_string()]));
    assert_eq!(script_pc, cargo_pc);
    let program = folder.path().join("program");
    let script = r#"cc -std=c11 "$SOURCE" -o "$PROGRAM" $(pkg-config --cflags --libs townsquare) \
        "-Wl,-rpath,$(pkg-config --variable=libdir townsquare)""#;
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).env("SOURCE", outside().join("program.c")).env("PROGRAM", &program);
    succeeds(shell.env("PKG_CONFIG_PATH", other.join("lib/pkgconfig")));
    passes(&program);
}

#[test]
fn the_commands_with_cargo_cinstall_name_a_profile_of_the_workspace() {
    let profiles = fs::read_to_string(workspace().join("Cargo.toml")).expect("a file");
    for file in ["ffi/header.md", "docs/src/c.md"] {
        let text = fs::read_to_string(workspace().join(file)).expect("a file");
        let words = text.split_whitespace().skip_while(|word| !word.contains("cinstall"));
        let profile = words.skip_while(|word| *word != "--profile").nth(1).expect("a profile").trim_matches(['`', ',']);
        assert!(profiles.contains(&format!("\n[profile.{profile}]\n")), "{file}: {profile}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_makefile_project_links_the_installed_library_by_pkg_config() {
    if !["make", "pkg-config"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let prefix = folder.path().join("usr");
    let Some(()) = install(&prefix) else { return };
    for (c, cpp) in compilers() {
        let build = temp_dir();
        let mut make = Command::new("make");
        make.current_dir(build.path()).args(["-j2", "-f"]).arg(outside().join("Makefile"));
        make.arg(format!("SOURCE={}", outside().display())).arg(format!("LDFLAGS={}", link_flags()));
        make.args([format!("CC={c}"), format!("CXX={cpp}")]);
        succeeds(make.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
        PROGRAMS.iter().for_each(|program| passes(&build.path().join(program)));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn pkg_config_finds_an_installation_below_a_folder_with_a_space() {
    if !["cc", "pkg-config"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let prefix = folder.path().join("a town/usr");
    let Some(()) = install(&prefix) else { return };
    let program = folder.path().join("a program");
    // `eval`: pkg-config escapes its output for a shell.
    let script = r#"
        eval "set -- $(pkg-config --cflags --libs townsquare)"
        cc -std=c11 "$SOURCE" -o "$PROGRAM" "$@" "-Wl,-rpath,$(pkg-config --variable=libdir townsquare)"
    "#;
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).env("SOURCE", outside().join("program.c")).env("PROGRAM", &program);
    succeeds(shell.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    passes(&program);
}

/// Configures and builds the outside project with CMake, and runs its programs.
fn cmake_project(build: &Path, (c, cpp): Compilers, settings: &[String]) {
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(outside()).arg("-B").arg(build).args(settings).env("CC", c).env("CXX", cpp);
    succeeds(configure.arg(format!("-DCMAKE_EXE_LINKER_FLAGS={}", link_flags())));
    let mut make = Command::new("cmake");
    succeeds(make.arg("--build").arg(build).args(["-j", "2", "--target"]).args(PROGRAMS));
    PROGRAMS.iter().for_each(|program| passes(&build.join(program)));
}

#[test]
#[cfg(target_os = "linux")]
fn a_cmake_project_finds_and_links_the_installed_library() {
    if !has("cmake") {
        return;
    }
    let folder = temp_dir();
    let prefix = folder.path().join("usr");
    let Some(()) = install(&prefix) else { return };
    let place = [format!("-DCMAKE_PREFIX_PATH={}", prefix.display())];
    compilers().for_each(|compilers| cmake_project(temp_dir().path(), compilers, &place));
}

/// Builds the outside project, which has the sources of the library, with CMake. `below` is their folder in the build.
fn cmake_project_with_sources(setting: String, below: &str, compilers: impl Iterator<Item = Compilers>) {
    let Some(built) = built() else { return };
    let settings = [setting, format!("-DTOWNSQUARE_BUILT={}", built.display())];
    for compilers in compilers {
        let build = temp_dir();
        spare_the_static_library(built, &build.path().join(below).join("ffi/installed"));
        cmake_project(build.path(), compilers, &settings);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_cmake_project_contains_the_sources() {
    if has("cmake") {
        let source = format!("-DTOWNSQUARE_SOURCE={}", workspace().display());
        cmake_project_with_sources(source, "townsquare", compilers());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_cmake_project_builds_the_sources_with_cargo() {
    if !has("cmake") {
        return;
    }
    if !requires_all() {
        skip("a CMake project that runs cargo: it builds for minutes; TOWNSQUARE_REQUIRE_ALL=1 runs it");
        return;
    }
    let scratch = temp_dir();
    // The folder of cargo-c, which also names the target: other tests use the libraries in the folder without its name.
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), PathBuf::from);
    let (contained, fetched) = (scratch.path().join("contained"), scratch.path().join("fetched"));
    // FetchContent takes the sources where they are, so that cargo has nothing to build a second time.
    for (build, sources, below) in [
        (&contained, ["TOWNSQUARE_SOURCE"].as_slice(), "townsquare"),
        (&fetched, &["TOWNSQUARE_FETCHED", "FETCHCONTENT_SOURCE_DIR_TOWNSQUARE"], "_deps/townsquare-build"),
    ] {
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(outside()).arg("-B").arg(build).arg("-DCMAKE_BUILD_TYPE=Debug");
        configure.args(sources.iter().map(|name| format!("-D{name}={}", workspace().display())));
        configure.arg("-DTOWNSQUARE_EMBEDDED=ON");
        succeeds(configure.arg(format!("-DTOWNSQUARE_CARGO_TARGET_DIR={}", folder.display())));
        let mut make = Command::new("cmake");
        remove_cargo_variables(&mut make);
        make.env("CARGO_BUILD_TARGET", target()).env("CARGO_NET_OFFLINE", "true");
        succeeds(built_from_nothing(make.arg("--build").arg(build).args(["--target", "c99-shared"])));
        passes(&build.join("c99-shared"));
        assert!(build.join(below).join("ffi/installed/lib/libtownsquare.a").is_file());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_cmake_project_fetches_the_sources() {
    if !["cmake", "tar"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    // The files that CMake and install.sh read; the library is built.
    let archive = folder.path().join("townsquare.tar");
    let mut pack = Command::new("tar");
    pack.arg("-cf").arg(&archive).arg("-C").arg(workspace()).args(["--transform", "s,^,townsquare/,"]);
    succeeds(pack.args(["CMakeLists.txt", "Cargo.toml", "ffi", "include"]));
    let fetched = format!("-DTOWNSQUARE_FETCHED={}", archive.display());
    // What differs from the sources in a folder does not depend on the compiler.
    cmake_project_with_sources(fetched, "_deps/townsquare-build", compilers().take(2));
}

#[test]
#[cfg(target_os = "linux")]
fn cmake_gives_cargo_the_profile_of_the_configuration_the_features_and_a_folder() {
    if !["cmake", "make"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let build = folder.path().join("build");
    for (settings, variables) in [
        (["-DCMAKE_BUILD_TYPE=Debug", "-DTOWNSQUARE_EMBEDDED=OFF"], "PROFILE=dev EMBEDDED="),
        (["-DCMAKE_BUILD_TYPE=Release", "-DTOWNSQUARE_EMBEDDED=ON"], "PROFILE=dist-c EMBEDDED=1"),
        (["-DCMAKE_BUILD_TYPE=", "-DTOWNSQUARE_EMBEDDED=OFF"], "PROFILE=dist-c EMBEDDED="),
        (["-DCMAKE_BUILD_TYPE=Debug", "-DTOWNSQUARE_PROFILE=release"], "PROFILE=release EMBEDDED="),
    ] {
        let mut configure = Command::new("cmake");
        configure.args(["-G", "Unix Makefiles", "-S"]).arg(workspace()).arg("-B").arg(&build).args(settings);
        succeeds(&mut configure);
        // -n: make prints the commands and runs none.
        let mut make = Command::new("make");
        let printed = output(make.arg("-C").arg(&build).args(["-n", "townsquare-build"]));
        let command = format!(" {variables} CARGO_TARGET_DIR={} ", build.join("ffi/cargo").display());
        assert!(text(&printed).contains(&command), "{command}: {}", text(&printed));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_static_library_links_as_the_manual_says() {
    if !["cc", "pkg-config", "sed"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let prefix = folder.path().join("usr");
    let Some(()) = install(&prefix) else { return };
    let manual = fs::read_to_string(workspace().join("ffi/header.md")).expect("the manual exists");
    let lines =
        manual.lines().skip_while(|line| !line.contains("/libtownsquare.a")).take(2).collect::<Vec<_>>().join("\n");
    let source = outside().join("program.c");
    let command = lines.replace("program.c", &format!("-o program {}", source.display()));
    let mut shell = Command::new("sh");
    shell.args(["-euc", &command]).current_dir(folder.path()).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    succeeds(&mut shell);
    fs::remove_file(prefix.join("lib/libtownsquare.so")).expect("the link of the shared library");
    fs::remove_file(prefix.join("lib").join(SONAME)).expect("the link of the shared library");
    passes(&folder.path().join("program"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_program_with_its_own_sqlite_links_the_static_library() {
    if !["cc", "nm", "pkg-config"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let prefix = folder.path().join("usr");
    let Some(()) = install(&prefix) else { return };
    let library = prefix.join("lib/libtownsquare.a");
    let listing = output(Command::new("nm").args(["-g", "--defined-only"]).arg(&library));
    let listing = String::from_utf8_lossy(&listing.stdout);
    let symbols: Vec<_> = listing.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert!(symbols.contains(&"tsq_client_open"));
    let others: Vec<_> = symbols.iter().filter(|name| !name.starts_with("tsq_")).collect();
    assert!(others.is_empty(), "global symbols of dependencies: {others:?}");
    let package = ["--static", "--cflags", "--libs-only-l", "townsquare"];
    let flags = output(Command::new("pkg-config").args(package).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
    let flags = String::from_utf8_lossy(&flags.stdout).replace("-ltownsquare", "");
    let program = folder.path().join("program");
    let mut compile = Command::new("cc");
    compile.args(["program.c", "own_sqlite.c"].map(|name| outside().join(name))).arg(&library).arg("-o").arg(&program);
    compile.arg(format!("-I{}", prefix.join("include").display())).args(flags.split_whitespace());
    succeeds(&mut compile);
    passes(&program);
}

#[test]
#[cfg(target_os = "linux")]
fn a_meson_project_finds_and_links_the_installed_library() {
    if !["meson", "ninja", "pkg-config", "clang", "clang++"].into_iter().all(has) {
        return;
    }
    let folder = temp_dir();
    let prefix = folder.path().join("usr");
    let Some(()) = install(&prefix) else { return };
    let (c, cpp) = COMPILERS[1];
    let build = folder.path().join("build");
    let mut setup = Command::new("meson");
    setup.args(["setup", "--buildtype=plain"]).arg(&build).arg(outside());
    setup.args(["c", "cpp"].map(|language| format!("-D{language}_link_args={}", link_flags())));
    succeeds(setup.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).env("CC", c).env("CXX", cpp));
    succeeds(Command::new("ninja").arg("-C").arg(&build).args(["-j2"]).args(PROGRAMS));
    PROGRAMS.iter().for_each(|program| passes(&build.join(program)));
}

/// Installs packages into a folder in place of the root, without those that they depend on.
fn install_packages(packages: &[PathBuf], root: &Path) {
    fs::create_dir_all(root.join("var/lib/dpkg/updates")).expect("a temporary folder can be written to");
    fs::write(root.join("var/lib/dpkg/status"), "").expect("a temporary folder can be written to");
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(format!("--root={}", root.display())).args(["--force-not-root", "--force-depends", "--force-bad-path"]);
    succeeds(dpkg.args(["--log=/dev/null", "--install"]).args(packages));
}

#[test]
#[cfg(target_os = "linux")]
fn a_cmake_project_links_the_debian_packages() {
    if !["dpkg", "dpkg-deb", "objdump", "cmake", "clang", "clang++"].into_iter().all(has) {
        return;
    }
    let Some(built) = built() else { return };
    let folder = temp_dir();
    let debs = folder.path().join("debs");
    let mut make = Command::new(workspace().join("ffi/deb.sh"));
    succeeds(make.arg(&debs).env("BUILT", built));
    let mut packages: Vec<_> =
        fs::read_dir(&debs).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    packages.sort();
    assert_eq!(packages.len(), 2, "{packages:?}");
    let root = folder.path().join("root");
    install_packages(&packages, &root);
    let place = format!("-DCMAKE_PREFIX_PATH={}", root.join("usr").display());
    // The other tests of one compiler use gcc.
    cmake_project(&folder.path().join("build"), COMPILERS[1], &[place]);
    // The runtime package has what a linked program needs, and no more.
    let runtime = packages.iter().find(|path| path.to_string_lossy().contains("libtownsquare0.1_")).expect("a package");
    let alone = folder.path().join("alone");
    install_packages(std::slice::from_ref(runtime), &alone);
    let multiarch = fs::read_dir(alone.join("usr/lib")).expect("a folder").next().expect("a folder").expect("a folder");
    let files = fs::read_dir(multiarch.path()).expect("a folder").map(|entry| entry.expect("a file").file_name());
    let mut files: Vec<_> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    files.sort();
    assert_eq!(files, [SONAME.to_owned(), format!("libtownsquare.so.{}", env!("CARGO_PKG_VERSION"))]);
}

#[test]
#[cfg(target_os = "linux")]
fn cmake_refuses_another_version_and_an_unknown_component() {
    if !has("cmake") {
        return;
    }
    let folder = temp_dir();
    let prefix = folder.path().join("usr");
    let Some(()) = install(&prefix) else { return };
    for (wanted, reason) in [
        ("0.1 CONFIG REQUIRED", ""),
        ("0.1.0 EXACT CONFIG REQUIRED", ""),
        ("CONFIG REQUIRED COMPONENTS static", ""),
        ("0.1...<0.2 CONFIG REQUIRED", ""),
        ("0.2 CONFIG REQUIRED", "requested version \"0.2\""),
        ("0.0 CONFIG REQUIRED", "requested version \"0.0\""),
        ("0.1.7 CONFIG REQUIRED", "requested version \"0.1.7\""),
        ("0.2...0.5 CONFIG REQUIRED", "requested version range"),
        ("0.1 CONFIG REQUIRED COMPONENTS python", "no library for townsquare::python"),
    ] {
        let project = folder.path().join("project");
        fs::create_dir_all(&project).expect("a folder");
        let lines = format!(
            "cmake_minimum_required(VERSION 3.19)\nproject(wants LANGUAGES C)\nfind_package(townsquare {wanted})\n"
        );
        fs::write(project.join("CMakeLists.txt"), lines).expect("a file");
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(&project).arg("-B").arg(folder.path().join("build"));
        let output = output(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
        assert_eq!(output.status.success(), reason.is_empty(), "{wanted}: {}", text(&output));
        // CMake wraps its messages.
        let messages = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(messages.contains(reason), "{wanted}: {messages}");
        fs::remove_dir_all(folder.path().join("build")).expect("a folder");
    }
}
