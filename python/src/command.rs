//! The command `townsquare`, for `python -m townsquare` and the script of the package.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command with these arguments, and returns its exit code. Other threads of Python run meanwhile.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| townsquare_cli::run(arguments))
}
