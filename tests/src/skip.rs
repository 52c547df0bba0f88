//! Skips: a test that cannot run on this machine reports it, and fails where no test may be skipped.

/// Whether no test may be skipped: `TOWNSQUARE_REQUIRE_ALL=1`, which continuous integration sets.
pub fn requires_all() -> bool {
    std::env::var_os("TOWNSQUARE_REQUIRE_ALL").is_some_and(|all| all == "1")
}

/// Reports that `what` was not tested.
///
/// # Panics
/// If no test may be skipped.
pub fn skip(what: &str) {
    assert!(!requires_all(), "nothing may be skipped: {what}");
    #[allow(clippy::print_stderr, reason = "a skipped test must be visible")]
    {
        eprintln!("SKIPPED: {what}");
    }
}
