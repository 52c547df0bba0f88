//! Names and number of this process's threads (Linux).

use std::fs;

/// Returns the sorted names of the threads whose name begins with `prefix`; `None` without `/proc`.
pub fn named(prefix: &str) -> Option<Vec<String>> {
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    // A thread that ended meanwhile has no name.
    let names = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let mut names: Vec<_> =
        names.map(|name| name.trim_end().to_owned()).filter(|name| name.starts_with(prefix)).collect();
    names.sort_unstable();
    Some(names)
}

/// Returns the names of the library's threads; empty where threads cannot be counted.
pub fn of_townsquare() -> Vec<String> {
    named("townsquare").unwrap_or_default()
}

/// Returns the number of this process's threads.
pub fn count() -> Option<usize> {
    named("").map(|names| names.len())
}
