//! Resident memory of this process (Linux).

use std::fs;

/// Returns the resident bytes.
///
/// # Panics
/// On other systems than Linux.
pub fn now() -> u64 {
    status("VmRSS")
}

/// Returns the peak of the resident bytes.
///
/// # Panics
/// On other systems than Linux.
pub fn peak() -> u64 {
    status("VmHWM")
}

/// Returns a value of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a known line");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").trim().parse().expect("a number");
    kilobytes * 1024
}
