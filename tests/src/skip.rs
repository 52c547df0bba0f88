//! Skips: a test that cannot run on this machine reports it, and fails where no test may be skipped.

/// Reports that `what` was not tested.
///
/// # Panics
/// With `TOWNSQUARE_REQUIRE_ALL=1`, which continuous integration sets.
pub fn skip(what: &str) {
    assert!(std::env::var_os("TOWNSQUARE_REQUIRE_ALL").is_none_or(|all| all != "1"), "nothing may be skipped: {what}");
    #[allow(clippy::print_stderr, reason = "a skipped test must be visible")]
    {
        eprintln!("SKIPPED: {what}");
    }
}
