//! The Python method of a call: its name and, if it has one, its operation in the core.

use townsquare::Operation;

/// A method of a Python class.
#[derive(Clone, Copy)]
pub(crate) enum Method {
    /// A method that is an operation of the core. Its failures carry the operation's prefix.
    Operation(Operation),
    /// A method without an operation: `stats`, `close`. Its failures carry no prefix.
    Plain(&'static str),
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Operation(operation) => operation.name(),
            Method::Plain(name) => name,
        }
    }

    pub(crate) fn operation(self) -> Option<Operation> {
        match self {
            Method::Operation(operation) => Some(operation),
            Method::Plain(_) => None,
        }
    }
}

impl From<Operation> for Method {
    fn from(operation: Operation) -> Method {
        Method::Operation(operation)
    }
}

impl From<&'static str> for Method {
    fn from(name: &'static str) -> Method {
        Method::Plain(name)
    }
}
