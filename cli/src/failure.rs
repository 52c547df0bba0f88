//! A failure of a command: what failed, what to try, and the exit code.

use std::{fmt::Display, io, io::Write as _, path::Path};

use townsquare::{Error, ErrorKind};

use crate::{exit_code, printable::printable};

/// Why a command failed. It is printed in two lines.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What failed. `None`: nothing is printed, because whoever would read it has gone.
    pub(crate) sentence: Option<String>,
    /// What to try.
    pub(crate) advice: String,
    pub(crate) code: u8,
}

impl Failure {
    pub(crate) fn new(code: u8, sentence: impl Into<String>, advice: impl Into<String>) -> Failure {
        Failure { sentence: Some(sentence.into()), advice: advice.into(), code }
    }

    /// The command line or the configuration is not valid.
    pub(crate) fn usage(sentence: impl Into<String>, advice: impl Into<String>) -> Failure {
        Failure::new(exit_code::USAGE, sentence, advice)
    }

    pub(crate) fn not_found(sentence: impl Into<String>, advice: impl Into<String>) -> Failure {
        Failure::new(exit_code::NOT_FOUND, sentence, advice)
    }

    /// The command ends because of a signal.
    pub(crate) fn interrupted(advice: impl Into<String>) -> Failure {
        Failure::new(exit_code::INTERRUPTED, "Interrupted", advice)
    }

    /// A file of the host could not be read or written.
    pub(crate) fn of_file(path: &Path, error: &io::Error) -> Failure {
        let code = match error.kind() {
            io::ErrorKind::NotFound => exit_code::NOT_FOUND,
            io::ErrorKind::PermissionDenied => exit_code::DENIED,
            _ => exit_code::FAILURE,
        };
        Failure::new(code, format!("{}: {error}", path.display()), "Check the path and its permissions.")
    }

    /// Says where a value comes from.
    pub(crate) fn at(self, place: impl Display) -> Failure {
        Failure { sentence: self.sentence.map(|sentence| format!("{place}: {sentence}")), ..self }
    }

    /// Prints both lines to the standard error.
    pub(crate) fn print(&self) {
        if let Some(sentence) = &self.sentence {
            let lines = format!("townsquare: {}\ntry: {}\n", printable(sentence), printable(&self.advice));
            let _ = io::stderr().write_all(lines.as_bytes());
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        // The explanation of the library speaks of callers, and a command acts for the service.
        let advice = match error.kind() {
            ErrorKind::NotFound => "Check the spelling: `users list` and `files ls` show what is there.",
            _ => error.explanation(),
        };
        Failure::new(exit_code::of(&error), error.to_string(), advice)
    }
}

/// A failure to write to the standard output. A closed pipe is no error: its reader has read enough.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { sentence: None, advice: String::new(), code: exit_code::SUCCESS };
        }
        let sentence = format!("Cannot write to the standard output: {error}");
        Failure::new(exit_code::FAILURE, sentence, "Check where the output goes, such as the room on the disk.")
    }
}
