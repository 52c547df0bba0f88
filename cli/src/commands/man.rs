//! `man`: the manual pages.

use std::path::PathBuf;

use clap::Args;
use clap_mangen::{Man, generate_to};

use crate::{context::Context, failure::Failure, output::note};

/// Print the manual page, or write the pages of all subcommands to a folder: `townsquare man | man -l -`. --json does not apply.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder for all pages. It must exist.
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let definition = (context.definition)();
    if let Some(folder) = &arguments.folder {
        generate_to(definition, folder).map_err(|error| Failure::of_file(folder, &error))?;
        note(&format!("The pages are in {}.", folder.display()));
        return Ok(());
    }
    let mut page = Vec::new();
    Man::new(definition).render(&mut page)?;
    context.output.bytes(&page)
}
