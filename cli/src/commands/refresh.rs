//! `refresh`: fetches the catalog now.

use clap::Args;

use super::stats::{catalog_json, write_catalog};
use crate::{context::Context, failure::Failure, progress::Progress, settings::IfMissing};

/// Fetch the catalog of mini apps now, and store it in the database. JSON: `catalog`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    context.with_client(IfMissing::Create, |client| {
        let waiting = Progress::waiting(&context.output, "fetching the catalog");
        let stats = client.discovery().force_refresh()?;
        drop(waiting);
        if context.output.is_json {
            return context.output.json(&serde_json::json!({ "catalog": catalog_json(&stats) }));
        }
        write_catalog(&stats, context)
    })
}
