//! The library exports exactly the `tsq_` functions that the header declares, and has one soname in all packages.

use std::{collections::BTreeSet, fs, process::Command};

use townsquare_tests::{paths::workspace, skip::skip};

use super::{
    header::bindings,
    toolchain::{SONAME, library},
};

#[test]
fn the_library_exports_exactly_what_the_header_declares() {
    let Some(library) = library() else { return };
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skip("the exported symbols: nm is missing");
    };
    let listing = String::from_utf8_lossy(&output.stdout);
    let names = listing.lines().filter_map(|line| line.split_whitespace().last());
    // A debug build has a function that panics, for tests/c/loading.c.
    let names = names.filter(|name| *name != "townsquare_test_panic");
    let exported: BTreeSet<_> = names.map(str::to_owned).collect();
    let declared: BTreeSet<_> = bindings().dynamic_symbols_names().map(str::to_owned).collect();
    assert!(!declared.is_empty());
    let differences: Vec<_> = exported.symmetric_difference(&declared).collect();
    assert!(differences.is_empty(), "exported or declared, not both: {differences:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_library_has_a_soname_with_its_minor_version() {
    let Some(library) = library() else { return };
    let output = Command::new("readelf").arg("-d").arg(&library).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skip("the soname: readelf is missing");
    };
    let listing = String::from_utf8_lossy(&output.stdout);
    let soname = listing.lines().find(|line| line.contains("SONAME")).expect("the library has a soname");
    assert!(soname.contains(&format!("[{SONAME}]")), "{soname}");
    let version = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    assert_eq!(SONAME, format!("libtownsquare.so.{version}"));
}

/// Every soname in a text.
fn sonames(text: &str) -> Vec<String> {
    let numbers =
        |rest: &str| rest.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next().map(str::to_owned);
    let after = text.split("libtownsquare.so.").skip(1).filter_map(numbers);
    let after = after.map(|numbers| numbers.trim_end_matches('.').to_owned()).filter(|numbers| !numbers.is_empty());
    after.map(|numbers| format!("libtownsquare.so.{numbers}")).collect()
}

#[test]
fn packages_and_manuals_name_the_same_soname() {
    let version = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    // The manual also names the soname of the next minor version.
    let next = format!("libtownsquare.so.{}.{}", env!("CARGO_PKG_VERSION_MAJOR"), next_minor());
    for file in [
        "ffi/header.md",
        "include/townsquare.h",
        "ffi/Cargo.toml",
        "ffi/CMakeLists.txt",
        "ffi/cmake/townsquare-config.cmake",
        "docs/src/c.md",
        ".ci/sanitize",
    ] {
        let text = fs::read_to_string(workspace().join(file)).expect("the file exists");
        let named: BTreeSet<_> = sonames(&text).into_iter().filter(|soname| *soname != next).collect();
        assert_eq!(named, BTreeSet::from([SONAME.to_owned()]), "{file}");
    }
    // `find_package(townsquare 0.1)` and the package libtownsquare0.1.
    for (file, words) in [
        ("ffi/header.md", format!("find_package(townsquare {version} CONFIG REQUIRED)")),
        ("docs/src/c.md", format!("find_package(townsquare {version} CONFIG REQUIRED)")),
        ("ffi/cmake/townsquare-config.cmake", format!("find_package(townsquare {version} CONFIG")),
        (
            "ffi/cmake/townsquare-config-version.cmake",
            format!("set(PACKAGE_VERSION \"{}\")", env!("CARGO_PKG_VERSION")),
        ),
        ("ffi/deb.sh", format!("libtownsquare{version} has the shared library")),
    ] {
        let text = fs::read_to_string(workspace().join(file)).expect("the file exists");
        assert!(text.contains(&words), "{file} has no {words}");
    }
}

fn next_minor() -> u32 {
    env!("CARGO_PKG_VERSION_MINOR").parse::<u32>().expect("a number") + 1
}
