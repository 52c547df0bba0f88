//! A folder with a database, and the command as a process in it.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// A temporary folder. The data is in `town`, with the invented apps.
pub(crate) struct Fixture(TempDir);

/// What a command did.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture(tempfile::tempdir().expect("a folder"))
    }

    /// A town with a user, spaces and fidgets.
    pub(crate) fn seeded() -> Fixture {
        let town = Fixture::new();
        town.run(&["seed", "--users", "1", "--spaces", "4", "--fidgets", "2"]).succeeded();
        town
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Waits until a check is true.
    #[track_caller]
    pub(crate) fn wait_until(mut is_true: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_true() {
            assert!(Instant::now() < deadline, "it becomes true in time");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The names of the files in a folder.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).expect("the folder");
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Writes a file of the host and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    }

    /// The command without the variables of this process.
    pub(crate) fn bare(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_townsquare"));
        command.env_clear().current_dir(self.0.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bare();
        command.env("TOWNSQUARE_DATA_DIR", "town").env("TOWNSQUARE_CATALOG_URL", "sample:").args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        run(self.command(arguments), "")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> CommandOutput {
        run(self.command(arguments), input)
    }
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command, input: &str) -> CommandOutput {
    let mut process = command.spawn().expect("the command starts");
    // A command that does not read its input closes it.
    let _ = process.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = process.wait_with_output().expect("the command ends");
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Sends a signal to a process.
#[cfg(unix)]
pub(crate) fn signal(process: &Child, signal: nix::sys::signal::Signal) {
    let id = nix::unistd::Pid::from_raw(i32::try_from(process.id()).expect("a process id"));
    nix::sys::signal::kill(id, signal).expect("a signal");
}

/// Starts a command whose errors and notes go to a file.
#[cfg(unix)]
pub(crate) fn start_with_log(command: &mut Command, log: &Path) -> Child {
    command.stderr(fs::File::create(log).expect("a file")).spawn().expect("it starts")
}

/// Starts a command and sends it a signal once it has begun, as [`disturbed`] does.
#[cfg(unix)]
pub(crate) fn interrupted(
    with: nix::sys::signal::Signal,
    start: impl Fn() -> Child,
    has_begun: impl Fn() -> bool,
    undo: impl Fn(),
) -> std::process::Output {
    disturbed(|process| signal(process, with), start, has_begun, undo)
}

/// Starts a command and disturbs it once it has begun, so that it fails. `undo` removes what a command has made that ended before;
/// the command is then started again.
#[cfg(unix)]
pub(crate) fn disturbed(
    disturb: impl Fn(&Child),
    start: impl Fn() -> Child,
    has_begun: impl Fn() -> bool,
    undo: impl Fn(),
) -> std::process::Output {
    for _ in 0..20 {
        let mut process = start();
        let mut has_ended = false;
        Fixture::wait_until(|| {
            has_ended = process.try_wait().expect("a status").is_some();
            has_ended || has_begun()
        });
        if !has_ended {
            disturb(&process);
        }
        let output = process.wait_with_output().expect("it ends");
        if !output.status.success() {
            return output;
        }
        undo();
    }
    panic!("the command ends before each disturbance");
}

impl CommandOutput {
    #[track_caller]
    pub(crate) fn succeeded(self) -> CommandOutput {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// The object that `--json` wrote.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let ran = self.succeeded();
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// The objects of a stream.
    #[track_caller]
    pub(crate) fn json_lines(self) -> Vec<Value> {
        let ran = self.succeeded();
        ran.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran:?}")))
            .collect()
    }

    /// Checks that the command failed with a code, no output, and two lines: what failed, with `part` in it, and what to try.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, part: &str) {
        let lines: Vec<_> = self.err.lines().collect();
        assert_eq!((self.code, self.out.as_str(), lines.len()), (code, "", 2), "{self:?}");
        assert!(lines[0].starts_with("townsquare: ") && lines[0].contains(part), "{self:?}");
        assert!(lines[1].starts_with("try: ") && lines[1].len() > 10, "{self:?}");
    }
}
