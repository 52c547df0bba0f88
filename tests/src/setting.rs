//! Settings of long test runs: the environment variables `TOWNSQUARE_TEST_…`.

use std::{env, str::FromStr};

/// Returns the variable's value, or `default` when it is unset or invalid.
pub fn setting<T: FromStr>(variable: &str, default: T) -> T {
    env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Returns the seed of a random test, `TOWNSQUARE_TEST_SEED` or `default`, and prints it.
#[allow(clippy::print_stderr, reason = "a failing run is repeated by its seed")]
pub fn seed(default: u64) -> u64 {
    let seed = setting("TOWNSQUARE_TEST_SEED", default);
    eprintln!("TOWNSQUARE_TEST_SEED={seed}");
    seed
}
