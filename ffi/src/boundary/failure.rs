//! Failures of a call before they become a `tsq_error`: an error of the core, or of reading the arguments.

use townsquare::{Error, ErrorKind};

/// Why a call failed.
pub(crate) enum Failure {
    /// The core returned an error.
    Core(Error),
    /// This crate refused an argument or failed itself.
    Boundary {
        /// The kind, which becomes the status that the call returns.
        kind: ErrorKind,
        /// The sentence without the operation's prefix.
        message: String,
        /// The index of the item, for a list of structs.
        row: Option<usize>,
    },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Core(error)
    }
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Failure {
        Failure::Boundary { kind, message: message.into(), row: None }
    }

    pub(crate) fn invalid_input(message: impl Into<String>) -> Failure {
        Failure::new(ErrorKind::InvalidInput, message)
    }

    /// A callback of the host cancelled the call.
    pub(crate) fn cancelled() -> Failure {
        Failure::new(ErrorKind::Cancelled, "A callback cancelled the call")
    }

    pub(crate) fn internal(message: impl Into<String>) -> Failure {
        Failure::new(ErrorKind::Internal, message)
    }

    pub(crate) fn null(argument: &str) -> Failure {
        Failure::invalid_input(format!("Argument {argument} is NULL"))
    }

    /// Adds the index of the item to the name of a list argument: `categories` becomes `categories[1]`.
    pub(crate) fn at(self, argument: &str, index: usize) -> Failure {
        self.reworded(|message| message.replacen(argument, &format!("{argument}[{index}]"), 1))
    }

    /// Adds the name of the struct argument to the name of its member: `name` becomes `space.name`.
    pub(crate) fn inside(self, argument: &str) -> Failure {
        self.reworded(|message| message.replacen("Argument ", &format!("Argument {argument}."), 1))
    }

    /// Sets the index of the struct in its list.
    pub(crate) fn at_row(self, index: usize) -> Failure {
        match self {
            Failure::Boundary { kind, message, .. } => Failure::Boundary { kind, message, row: Some(index) },
            core @ Failure::Core(_) => core,
        }
    }

    fn reworded(self, reword: impl FnOnce(String) -> String) -> Failure {
        match self {
            Failure::Boundary { kind, message, row } => Failure::Boundary { kind, message: reword(message), row },
            core @ Failure::Core(_) => core,
        }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Failure::Core(error) => error.kind(),
            Failure::Boundary { kind, .. } => *kind,
        }
    }
}
