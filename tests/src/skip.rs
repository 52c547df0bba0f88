//! Skipping aloud: a test that cannot run here says so, and where everything must run it fails.

/// Says that `what` was not tested.
///
/// # Panics
/// With `TOWNSQUARE_REQUIRE_ALL=1`, as continuous integration sets it.
pub fn skip(what: &str) {
    assert!(std::env::var_os("TOWNSQUARE_REQUIRE_ALL").is_none_or(|all| all != "1"), "nothing may be skipped: {what}");
    #[allow(clippy::print_stderr, reason = "a skip that nobody sees is a test that nobody runs")]
    {
        eprintln!("SKIPPED: {what}");
    }
}
