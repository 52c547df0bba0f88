//! The library exports exactly the `tsq_` functions that the header declares.

use std::{collections::BTreeSet, process::Command};

use townsquare_tests::skip::skip;

use super::{header::bindings, toolchain::library};

#[test]
fn the_library_exports_exactly_what_the_header_declares() {
    let Some(library) = library() else { return };
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skip("the exported symbols: nm is missing");
    };
    let listing = String::from_utf8_lossy(&output.stdout);
    let names = listing.lines().filter_map(|line| line.split_whitespace().last());
    let exported: BTreeSet<_> = names.filter(|name| name.starts_with("tsq_")).map(str::to_owned).collect();
    let declared: BTreeSet<_> = bindings().dynamic_symbols_names().map(str::to_owned).collect();
    assert!(!declared.is_empty());
    assert_eq!(exported, declared);
}
