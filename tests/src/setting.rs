//! What a longer run than the usual one is asked for by: the variables `TOWNSQUARE_TEST_…`.

use std::{env, str::FromStr};

/// A number from the environment, or the usual one.
pub fn setting<T: FromStr>(variable: &str, usual: T) -> T {
    env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}
