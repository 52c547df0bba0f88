//! Links the C library so that it exports the functions of the header alone, has a soname, and stays in memory after
//! `dlclose`: its threads and the destructors of thread-local values may run later.

#![allow(clippy::disallowed_methods, reason = "cargo describes the target in environment variables")]

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let family = env::var("CARGO_CFG_TARGET_FAMILY").unwrap_or_default();
    let vendor = env::var("CARGO_CFG_TARGET_VENDOR").unwrap_or_default();
    let link = |argument: &str| println!("cargo:rustc-cdylib-link-arg=-Wl,{argument}");
    match (family.as_str(), vendor.as_str()) {
        // Not tested. macOS keeps a library with thread-local destructors by itself.
        ("unix", "apple") => {
            println!("cargo:rerun-if-changed=exported_symbols.txt");
            let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
            link(&format!("-exported_symbols_list,{folder}/exported_symbols.txt"));
        }
        ("unix", _) => {
            link("-z,nodelete");
            // The functions of this crate are in object files; those of dependencies, which rustc exports too, in archives.
            link("--exclude-libs,ALL");
            // `cargo cinstall`, which enables the feature, sets the soname itself.
            if env::var_os("CARGO_FEATURE_CAPI").is_none() {
                let part = |name| env::var(name).unwrap_or_default();
                let (major, minor) = (part("CARGO_PKG_VERSION_MAJOR"), part("CARGO_PKG_VERSION_MINOR"));
                link(&format!("-soname,libtownsquare.so.{major}.{minor}"));
            }
        }
        // On Windows a host must not unload the library.
        _ => {}
    }
}
