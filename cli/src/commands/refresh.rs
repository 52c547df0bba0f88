//! `refresh`: fetches the catalog now.

use clap::Args;

use super::stats::{catalog_json, write_catalog};
use crate::{context::Context, failure::Failure, progress::Progress, settings::IfMissing};

/// Fetch the catalog of mini apps now, and store it in the database. Fails without a database, and if the new catalog lost most of its
/// apps. JSON: `catalog`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Accept a catalog that lost most of its apps, or all. Fetch the orders of all timeframes and the lists of the networks, too.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    context.with_client(IfMissing::Fail, |client| {
        let waiting = Progress::waiting(&context.output, "fetching the catalog");
        let discovery = client.discovery();
        let stats = if arguments.force { discovery.force_refresh()? } else { discovery.refresh()? };
        drop(waiting);
        if stats.total == 0 && !stats.has_api_key {
            return Err(Failure::usage(
                "There is no catalog: the option catalog_api_key has no value",
                "Set TOWNSQUARE_CATALOG_API_KEY, or set catalog_url to a file or to sample:.",
            ));
        }
        if context.output.is_json {
            return context.output.json(&serde_json::json!({ "catalog": catalog_json(&stats) }));
        }
        write_catalog(&stats, context)
    })
}
