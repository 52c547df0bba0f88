//! `changes`: the changes of a table as JSON lines.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use townsquare::{
    Error,
    realtime::{ChangeRequest, EventType},
};

use crate::{context::Context, exit_code, failure::Failure, interrupt, settings::IfMissing};

/// The time without a change after which the past is read to its end.
const IDLE: Duration = Duration::from_secs(1);

/// Print the changes of a table, one JSON object a line. Each line has a `cursor` to go on from.
///
/// Keys of a line: `schema`, `table`, `eventType`, `new`, `old`, `commit_timestamp`, `cursor`. The first call switches the change log
/// of the database on; the log has no changes from before.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The table: spaces, fidgets, users, files, community_configs, community_domains or space_registrations.
    table: Option<String>,
    /// Go on printing changes as they are committed, until the command is interrupted.
    #[arg(long, requires = "table")]
    follow: bool,
    /// Print the changes after this cursor.
    #[arg(long, value_name = "CURSOR", requires = "table", required_unless_present_any = ["follow", "cursor"])]
    since: Option<String>,
    /// Only rows that match, such as is_public=is.true.
    #[arg(long, default_value = "", hide_default_value = true)]
    filter: String,
    /// Only changes of this kind: INSERT, UPDATE or DELETE.
    #[arg(long, value_parser = event)]
    event: Option<EventType>,
    /// Print the cursor of this moment, for --since.
    #[arg(long, exclusive = true)]
    cursor: bool,
}

fn event(text: &str) -> Result<EventType, String> {
    text.parse().map_err(|error: Error| error.message().to_owned())
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    interrupt::defer();
    context.with_client(IfMissing::Fail, |client| {
        let realtime = client.realtime();
        let Some(table) = arguments.table.as_ref().filter(|_| !arguments.cursor) else {
            let cursor = realtime.cursor()?;
            if context.output.is_json {
                context.output.json(&json!({ "cursor": cursor }))?;
            } else {
                context.output.line(&cursor)?;
            }
            return Ok(exit_code::SUCCESS);
        };
        let request = ChangeRequest::table(table).filter(&arguments.filter);
        let request = arguments.since.iter().fold(request, ChangeRequest::since);
        let request = arguments.event.into_iter().fold(request, ChangeRequest::event);
        let mut changes = realtime.changes(request)?;
        while !interrupt::is_requested() {
            match changes.next_within(IDLE).transpose()? {
                Some(change) => context.output.json_line(&json!(change))?,
                None if arguments.follow => {}
                None => return Ok(exit_code::SUCCESS),
            }
        }
        Ok(exit_code::INTERRUPTED)
    })
}
