//! `changes`: the changes of a table as JSON lines.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use townsquare::{
    blocking::{ChangeStream, Client},
    realtime::{ChangeRequest, EventType},
};

use crate::{context::Context, exit_code, failure::Failure, interrupt, settings::IfMissing};

/// How often a command that waits for a change looks for a signal, and whether somebody still reads its output.
const WAIT: Duration = Duration::from_secs(1);

/// Print the changes of a table, one JSON object a line. Needs --since, --follow or --cursor.
///
/// Each line has a `cursor` to go on from. Without --follow, the command ends at the last change that was committed when it began.
///
/// Keys of a line: `schema`, `table`, `eventType`, `new`, `old`, `commit_timestamp`, `cursor`. The first call switches the change log
/// of the database on; the log has no changes from before.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The table: spaces, fidgets, users, files, community_configs, community_domains or space_registrations.
    table: Option<String>,
    /// Go on printing changes as they are committed, until the command is interrupted or nobody reads its output.
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
    #[arg(long, conflicts_with_all = ["table", "follow", "since", "filter", "event"])]
    cursor: bool,
}

fn event(text: &str) -> Result<EventType, &'static str> {
    text.parse().map_err(|_| "it is INSERT, UPDATE or DELETE")
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    let Some(table) = &arguments.table else {
        return context.with_client(IfMissing::FailReadOnly, |client| write_cursor(client, context));
    };
    // The library names this table as the database does.
    let table = if table == "space_registrations" { "spaceRegistrations" } else { table };
    let request = ChangeRequest::table(table).filter(&arguments.filter);
    let request = arguments.since.iter().fold(request, ChangeRequest::since);
    let request = arguments.event.into_iter().fold(request, ChangeRequest::event);
    interrupt::defer();
    context.with_client(IfMissing::FailReadOnly, |client| {
        let realtime = client.realtime();
        if arguments.follow {
            return follow(realtime.changes(request)?, context);
        }
        for change in realtime.changes(request.until(realtime.cursor()?))? {
            context.output.json_line(&json!(change?))?;
            if interrupt::is_requested() {
                return Ok(exit_code::INTERRUPTED);
            }
        }
        Ok(exit_code::SUCCESS)
    })
}

fn write_cursor(client: &Client, context: &Context) -> Result<u8, Failure> {
    let cursor = client.realtime().cursor()?;
    if context.output.is_json {
        context.output.json(&json!({ "cursor": cursor }))?;
    } else {
        context.output.line(&cursor)?;
    }
    Ok(exit_code::SUCCESS)
}

/// Prints changes until a signal, or until nobody reads them.
fn follow(mut changes: ChangeStream, context: &Context) -> Result<u8, Failure> {
    while !interrupt::is_requested() {
        match changes.next_within(WAIT).transpose()? {
            Some(change) => context.output.json_line(&json!(change))?,
            None if context.output.is_closed() => return Ok(exit_code::SUCCESS),
            None => {}
        }
    }
    Ok(exit_code::INTERRUPTED)
}
