//! `completions`: the script that completes the command in a shell.

use clap::Args;
use clap_complete::{Shell, generate};

use crate::{context::Context, failure::Failure};

/// Print the script that completes this command in a shell, such as `townsquare completions bash`. --json does not
/// apply.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut (context.definition)(), "townsquare", &mut script);
    context.output.bytes(&script)
}
