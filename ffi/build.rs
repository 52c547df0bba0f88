//! Links the C library so that it stays in memory after `dlclose`: its threads and the destructors of thread-local values
//! may run later.

#![allow(clippy::disallowed_methods, reason = "cargo describes the target in environment variables")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // ELF only. macOS keeps a library with thread-local destructors by itself; on Windows a host must not unload it.
    let family = std::env::var("CARGO_CFG_TARGET_FAMILY").unwrap_or_default();
    let vendor = std::env::var("CARGO_CFG_TARGET_VENDOR").unwrap_or_default();
    if family == "unix" && vendor != "apple" {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
