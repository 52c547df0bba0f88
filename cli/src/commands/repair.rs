//! `repair`: finishes what a crash left among the files.

use clap::Args;

use crate::{context::Context, exit_code, failure::Failure, interrupt, progress::Progress, settings::IfMissing};

pub(super) const QUESTION: &str =
    "Repair removes objects that belong to no file, and rows of files that have no bytes. Go on?";

/// Finish or undo uploads that a crash left, and remove objects without a row and rows without bytes. Asks first.
///
/// Exit code 3 if files are left with bytes that differ from their rows. JSON: `finished`, `orphans_removed`, `rows_removed`,
/// `mismatched`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    context.confirm(QUESTION)?;
    interrupt::finish_first("The repair");
    context.with_client(IfMissing::Fail, |client| {
        let waiting = Progress::waiting(&context.output, "repairing");
        let report = client.storage().repair()?;
        drop(waiting);
        if context.output.is_json {
            let value = serde_json::to_value(&report).unwrap_or_default();
            context.output.json(&value)?;
        } else {
            let rows = [
                ("uploads finished or undone", report.finished),
                ("objects removed", report.orphans_removed),
                ("rows removed", report.rows_removed),
            ];
            let rows = rows.map(|(name, count)| vec![name.to_owned(), count.to_string()]);
            context.output.table(&["repair", ""], &rows)?;
            for path in &report.mismatched {
                context.output.line(&format!("left: {path} has other bytes than its row says"))?;
            }
        }
        Ok(if report.mismatched.is_empty() { exit_code::SUCCESS } else { exit_code::FINDINGS })
    })
}
