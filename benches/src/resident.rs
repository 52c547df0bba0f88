//! This process's memory, as Linux counts it.

use std::fs;

/// Resident bytes just now.
///
/// # Panics
/// Elsewhere than on Linux.
pub fn now() -> u64 {
    status("VmRSS")
}

/// The most bytes that were ever resident.
///
/// # Panics
/// Elsewhere than on Linux.
pub fn peak() -> u64 {
    status("VmHWM")
}

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a known line");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").trim().parse().expect("a number");
    kilobytes * 1024
}
