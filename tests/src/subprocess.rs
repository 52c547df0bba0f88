//! Tests that run in a process of their own, because they change process-wide state (threads, environment) or because
//! several processes share a database.
//!
//! Invariant: the parent fails when the child fails, or when the child ran no test.

use std::{
    env,
    process::{Command, Output, Stdio},
};

const ROLE: &str = "TOWNSQUARE_TEST_CHILD";

/// Runs `body` in a new process that runs only this test. `test` is the calling test function itself.
///
/// # Panics
/// When the child fails.
pub fn in_subprocess<T: Copy>(test: T, body: impl FnOnce()) {
    let name = name_of(&test);
    if role().is_some() {
        body();
        return;
    }
    let output = child(name, "alone", &[]).output().expect("the test binary starts");
    assert_passed(name, &output);
}

/// Returns the role that the parent gave this process; `None` in a process that the user started.
pub fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// Makes a command that runs one test of this binary in another process, with this role and these variables.
///
/// # Panics
/// When the path of this program is unknown.
pub fn child(test: &str, role: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env::current_exe().expect("a test knows its own program"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env_remove("CATALOG_API_KEY").env_remove("TOWNSQUARE_DATA_DIR");
    command.env(ROLE, role).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `command` in a shell that first runs `before`, for example to set limits.
pub fn in_shell(before: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before}; exec \"$@\""), "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

/// Returns the name of a test function as the test harness spells it.
pub fn name_of<T>(_: &T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// Checks that a child ran its test and passed.
///
/// # Panics
/// With the child's output, when it failed or ran no test.
pub fn assert_passed(test: &str, output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{test} in its own process: {}\n{out}\n{err}",
        output.status
    );
}
