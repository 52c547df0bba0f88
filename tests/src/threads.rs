//! The threads of this process, by name (Linux).

use std::fs;

/// The names of this process's threads that begin with `prefix`, sorted; `None` where `/proc` does not tell.
pub fn named(prefix: &str) -> Option<Vec<String>> {
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    // A thread that ends while we look has no name any more.
    let names = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let mut names: Vec<_> =
        names.map(|name| name.trim_end().to_owned()).filter(|name| name.starts_with(prefix)).collect();
    names.sort_unstable();
    Some(names)
}

/// The library's threads that live now; none where they cannot be counted.
pub fn of_townsquare() -> Vec<String> {
    named("townsquare").unwrap_or_default()
}

/// How many threads this process has, of any name.
pub fn count() -> Option<usize> {
    named("").map(|names| names.len())
}
