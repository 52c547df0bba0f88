//! A failure of a command: what failed, what to try, and the exit code.

use std::{fmt::Display, io, io::Write as _, path::Path};

use townsquare::{Error, ErrorKind, Operation};

use crate::{exit_code, printable::printable};

/// Why a command failed. It is printed in two lines.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What failed. `None`: nothing is printed, because the reader of the output has closed it.
    pub(crate) sentence: Option<String>,
    /// What to try.
    pub(crate) advice: String,
    pub(crate) code: u8,
}

impl Failure {
    pub(crate) fn new(code: u8, sentence: impl Into<String>, advice: impl Into<String>) -> Failure {
        Failure { sentence: Some(sentence.into()), advice: advice.into(), code }
    }

    /// The command line, the configuration or the input is not valid.
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
        let advice = match exit_code::of_io(error) {
            exit_code::TRY_AGAIN => "Free room on the disk, then run the same command again.",
            _ => "Check the path and its permissions.",
        };
        Failure::new(exit_code::of_io(error), format!("{}: {error}", path.display()), advice)
    }

    /// Says where a value comes from.
    pub(crate) fn at(self, place: impl Display) -> Failure {
        Failure { sentence: self.sentence.map(|sentence| format!("{place}: {sentence}")), ..self }
    }

    /// Prints both lines to the standard error. Returns the exit code.
    pub(crate) fn end(&self) -> u8 {
        if let Some(sentence) = &self.sentence {
            let lines = format!("townsquare: {}\ntry: {}\n", printable(sentence), printable(&self.advice));
            let _ = io::stderr().write_all(lines.as_bytes());
        }
        self.code
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        if error.kind() == ErrorKind::Cancelled {
            // Only a signal cancels a call of the command.
            return Failure::interrupted("Run the same command again.");
        }
        // The explanation of the library speaks of its calls and of callers, and a command acts for the service.
        let advice = match error.kind() {
            _ if exit_code::is_of_damage(&error) && error.operation() == Some(Operation::Restore) => {
                "Restore another copy. If a file is missing, put the folder FILE.files of this one beside it."
            }
            _ if exit_code::is_of_damage(&error) => {
                "Check that the path names the right file; `townsquare restore` installs a backup in another folder."
            }
            ErrorKind::Config | ErrorKind::InvalidInput if exit_code::of(&error) == exit_code::DENIED => {
                "Check the path and its permissions."
            }
            ErrorKind::Config if exit_code::of(&error) == exit_code::NOT_FOUND => {
                "Check the options that name the database: `townsquare config --given`."
            }
            ErrorKind::NotFound => "Check the spelling: `users list` and `files ls` show what is there.",
            ErrorKind::AlreadyExists if error.operation() == Some(Operation::SignUp) => {
                "`townsquare users list` lists the users. Use another address, or set a password with `users password`."
            }
            ErrorKind::AlreadyExists => "Use another path, or leave out --new to replace the file.",
            ErrorKind::CursorExpired => {
                "`townsquare changes --cursor` prints a cursor of now. Changes before it are lost."
            }
            ErrorKind::Conflict if error.operation() == Some(Operation::MoveTo) => {
                "Stop the writers of the source, then run the same command again."
            }
            ErrorKind::Internal => "Read the log with -v; `townsquare check --full` looks for damage.",
            ErrorKind::Unavailable if error.operation() == Some(Operation::FeedCursor) => {
                "Try again when the database answers."
            }
            _ => error.explanation(),
        };
        Failure::new(exit_code::of(&error), in_words_of_the_command(&error.to_string()), advice)
    }
}

/// A message of the library with commands in place of its calls.
pub(crate) fn in_words_of_the_command(message: &str) -> String {
    let message = message.replace("call move_to of that one again", "move that one again with `townsquare move`");
    let message =
        message.replace("call move_from_supabase of that project", "move that one with `townsquare move --supabase`");
    let message = message.replace("call move_to again", "run `townsquare move` again");
    message.replace("The target of a move is another database than its source", "Source and target are the same place")
}

/// A failure to write to the standard output. A closed pipe is no error: its reader has read enough.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { sentence: None, advice: String::new(), code: exit_code::SUCCESS };
        }
        let sentence = format!("Cannot write to the standard output: {error}");
        Failure::new(exit_code::of_io(&error), sentence, "Check where the output goes, such as the room on the disk.")
    }
}
