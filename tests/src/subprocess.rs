//! Tests that run in a process of their own, because they change process-wide state (threads, environment) or because
//! several processes share a database.
//!
//! Invariant: the parent fails when the child fails, or when the child ran no test.

use std::{
    env,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{postgres::is_root, skip::skip, wait::DEADLINE};

const ROLE: &str = "TOWNSQUARE_TEST_CHILD";

/// Runs `body` in a new process that runs only this test. `test` is the calling test function itself.
///
/// # Panics
/// When the child fails.
pub fn in_subprocess<T: Copy>(test: T, body: impl FnOnce()) {
    if role().is_some() {
        body();
        return;
    }
    run_child(&mut child(name_of(&test), "alone", &[]));
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
    pipe(&mut command);
    command
}

/// Returns the name of a test function as the test harness spells it.
pub fn name_of<T>(_: &T) -> &'static str {
    let path = std::any::type_name::<T>();
    path.split_once("::").map_or(path, |(_, name)| name)
}

/// Runs a child to its end and returns its output.
///
/// # Panics
/// With the child's output, when it failed or ran no test.
pub fn run_child(child: &mut Command) -> Output {
    join_child(child.spawn().expect("the program starts"))
}

/// Waits for the end of a child and returns its output.
///
/// # Panics
/// With the child's output, when it failed or ran no test.
pub fn join_child(child: Child) -> Output {
    let output = child.wait_with_output().expect("the child ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && out.contains("1 passed"),
        "a test in its own process: {}\n{err}\n{out}",
        output.status
    );
    output
}

/// Kills a child `delay` after it has printed one of `words`. Returns the lines with one of these words, each from the word on.
///
/// # Panics
/// When the child prints none of them.
pub fn kill_after(mut child: Child, words: &'static [&'static str], delay: Duration) -> Vec<String> {
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let (first, begun) = mpsc::channel();
    let listener = thread::spawn(move || {
        let mut said = Vec::new();
        for line in lines.map_while(Result::ok) {
            // The first line of the test harness has no line end.
            if let Some(start) = words.iter().find_map(|word| line.find(word)) {
                said.push(line[start..].to_owned());
                let _ = first.send(());
            }
        }
        said
    });
    begun.recv_timeout(DEADLINE).expect("the child works");
    // Waits for the time-out: nothing is ever sent.
    let (_kept, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(delay);
    child.kill().expect("killed");
    child.wait().expect("dead");
    listener.join().expect("no panic")
}

/// Makes a command that runs `command` by `program`, which takes a command line after its own arguments.
pub fn run_by(mut program: Command, command: &Command) -> Command {
    program.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        };
    }
    pipe(&mut program);
    program
}

/// Makes a command that runs `command` in a shell that first runs `before`, for example to set limits.
pub fn in_shell(before: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{before}; exec \"$@\""), "sh"]);
    run_by(shell, command)
}

/// Makes a command that runs `command` as a user who is not root, who ignores file permissions.
pub fn without_root(command: Command) -> Command {
    if !is_root() {
        return command;
    }
    let mut nobody = Command::new("runuser");
    nobody.args(["-u", "nobody", "--"]).current_dir("/");
    run_by(nobody, &command)
}

/// Runs a child with a file system of `megabytes` at `folder`. Reports a skip if nothing can be mounted here, which needs root or
/// user name spaces.
///
/// # Panics
/// With the child's output, when it failed or ran no test.
pub fn run_on_small_disk(folder: &Path, megabytes: u32, child: &Command) {
    run_after_mount(&format!("mount -t tmpfs -o size={megabytes}m none '{}'", folder.display()), child);
}

/// Runs a child that sees the file `source` at the path of the file `target`, too, as a container does.
///
/// # Panics
/// As [`run_child`].
pub fn run_with_mounted_file(source: &Path, target: &Path, child: &Command) {
    run_after_mount(&format!("mount --bind '{}' '{}'", source.display(), target.display()), child);
}

/// Runs a child that alone sees what `mount` mounts.
fn run_after_mount(mount: &str, child: &Command) {
    let unshare = |flags: &str| {
        let mut unshare = Command::new("unshare");
        unshare.arg(flags);
        unshare
    };
    let may = |flags: &&str| {
        let output = unshare(flags).args(["sh", "-c", mount]).output();
        output.is_ok_and(|output| output.status.success())
    };
    match ["-m", "-rm"].into_iter().find(may) {
        Some(flags) => drop(run_child(&mut run_by(unshare(flags), &in_shell(&format!("{mount} || exit 9"), child)))),
        None => skip(&format!("a mount: nothing can be mounted here (unshare -m, {mount})")),
    }
}

fn pipe(command: &mut Command) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
}
