//! `trending`: the mini apps that trend.

use clap::Args;
use townsquare::{Error, discovery::Timeframe};

use super::apps::{Page, write_list};
use crate::{context::Context, failure::Failure, settings::IfMissing};

/// List the mini apps that trend. JSON: `apps`, `total`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The time that counts: 1h, 6h, 12h, 24h or 7d.
    #[arg(long, default_value = "24h", value_parser = timeframe)]
    timeframe: Timeframe,
    #[command(flatten)]
    page: Page,
}

fn timeframe(text: &str) -> Result<Timeframe, String> {
    text.parse().map_err(|error: Error| error.message().to_owned())
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    context.with_client(IfMissing::UseMemory, |client| {
        let trending = client.discovery().get_trending_mini_apps(arguments.timeframe, arguments.page.selection())?;
        write_list(&trending, context)
    })
}
