//! A child process of this program, which takes commands and answers with lines.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// A running child process; it is killed when the value is dropped.
pub(crate) struct Process {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(arguments: &[String]) -> Process {
        let mut command = Command::new(env::current_exe().expect("a path of its own"));
        command.arg("--child").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the child starts");
        let commands = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        Process { child, commands, answers }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn command(&mut self, line: &str) {
        writeln!(self.commands, "{line}").expect("the child reads");
    }

    /// Returns the numbers of the next line.
    pub(crate) fn answer(&mut self) -> Vec<f64> {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the child answers");
        assert!(!line.is_empty(), "a child ended");
        line.split_whitespace().map(|number| number.parse().expect("a number")).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In a child: waits for the next command. Returns `None` at the end.
pub(crate) fn next_command() -> Option<String> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).expect("standard input");
    (read > 0).then(|| line.trim().to_owned())
}
