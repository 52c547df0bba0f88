//! The option `--progress`.

use clap::ValueEnum;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressForm {
    /// A bar if the standard error is a terminal, and nothing with --json or elsewhere.
    Auto,
    /// JSON lines on the standard error.
    Json,
    /// Nothing.
    None,
}
