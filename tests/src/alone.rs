//! A test in a process of its own: for what the process has once (threads, environment) or several processes share.
//!
//! Invariant: the parent fails when the child fails, or when the child ran no test at all.

use std::{
    env,
    process::{Command, Output, Stdio},
};

const CHILD: &str = "TOWNSQUARE_TEST_CHILD";

/// Runs `body` in a fresh process that runs nothing but this test. `test` is the calling test function itself.
///
/// # Panics
/// When the child does.
pub fn alone<T: Copy>(test: T, body: impl FnOnce()) {
    let name = name_of(&test);
    if role().is_some() {
        body();
        return;
    }
    let output = child(name, "alone", &[]).output().expect("the test binary starts");
    assert_passed(name, &output);
}

/// The part this process plays in a test of several processes; `None` in the one that the user started.
pub fn role() -> Option<String> {
    env::var(CHILD).ok()
}

/// A command that runs the named test of this binary in another process, as `role`, with these variables.
///
/// # Panics
/// When the path of this program is unknown.
pub fn child(test: &str, role: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env::current_exe().expect("a test knows its own program"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env_remove("CATALOG_API_KEY").env_remove("TOWNSQUARE_DATA_DIR");
    command.env(CHILD, role).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The name that the test harness knows a test function by.
pub fn name_of<T>(_: &T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// # Panics
/// When the child failed, or ran no test.
pub fn assert_passed(test: &str, output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{test} in its own process: {}\n{out}\n{err}",
        output.status
    );
}
