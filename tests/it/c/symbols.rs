//! The library exports exactly the `tsq_` functions that the header declares.

use std::{collections::BTreeSet, process::Command};

use townsquare_tests::skip::skip;

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
