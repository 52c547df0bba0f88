//! `search`: finds mini apps by words.

use clap::Args;

use super::apps::{Page, write_list};
use crate::{context::Context, failure::Failure, settings::IfMissing};

/// Find mini apps by words. Tolerates typos, and completes the last word. JSON: `apps`, `total`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The words.
    #[arg(required = true)]
    words: Vec<String>,
    #[command(flatten)]
    page: Page,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    context.with_client(IfMissing::UseMemory, |client| {
        let found = client.discovery().search_mini_apps(&arguments.words.join(" "), arguments.page.selection())?;
        write_list(&found, context)
    })
}
