//! `repair`: finishes what a crash left among the files.

use clap::Args;
use serde_json::json;
use townsquare::check::{CheckDepth, FindingCode};

use crate::{
    context::Context, exit_code, failure::Failure, findings, interrupt, output::note, progress::Progress,
    settings::IfMissing,
};

/// What a repair mends, as a check calls it.
const REPAIRED: [FindingCode; 6] = [
    FindingCode::FileMissing,
    FindingCode::FileVersionDiffers,
    FindingCode::OrphanObject,
    FindingCode::UnfinishedUpload,
    FindingCode::StaleStage,
    FindingCode::StrayContent,
];

/// What has to be mended before a repair can begin.
const PREVENTING: [FindingCode; 4] =
    [FindingCode::StoreUnreachable, FindingCode::StoreMissing, FindingCode::StoreForeign, FindingCode::StoreOfOriginal];

pub(super) const QUESTION: &str =
    "Repair removes objects that belong to no file, and rows of files that have no bytes. Go on?";

const REOPEN_QUESTION: &str =
    "Others then write to this database again, and not to the one to which it has moved. Is that one given up?";

/// Finish or undo uploads that a crash left, and remove objects without a row and rows without bytes. Asks first.
///
/// It compares sizes and versions, not bytes: `check --full` reads the bytes. Exit code 3 if files are left whose size differs from
/// their rows. JSON: `finished`, `orphans_removed`, `rows_removed`, `mismatched`. With --dry-run, exit code 3 if there is something
/// to repair, or that prevents a repair; JSON: `findings`, as of `check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Show what there is to repair, and change nothing. Uploads that began within the last hour are left out: they may still run.
    #[arg(long)]
    dry_run: bool,
    /// Instead, let others write the database again after `move --follow`, because its target is given up. What they write from now on
    /// is in this database alone. JSON: `reopened`, whether the database took no writes.
    #[arg(long, conflicts_with = "dry_run")]
    reopen: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    if arguments.dry_run {
        return context.with_client(IfMissing::FailReadOnly, |client| {
            let waiting = Progress::waiting(&context.output, "checking");
            let mut found = client.check(CheckDepth::Quick)?;
            drop(waiting);
            found.retain(|finding| REPAIRED.contains(&finding.code) || PREVENTING.contains(&finding.code));
            if found.is_empty() && !context.output.is_json {
                note("There is nothing to repair.");
                return Ok(exit_code::SUCCESS);
            }
            findings::show(&found, None, context)
        });
    }
    if arguments.reopen {
        return reopen(context);
    }
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

fn reopen(context: &Context) -> Result<u8, Failure> {
    context.confirm(REOPEN_QUESTION)?;
    context.with_client(IfMissing::Fail, |client| {
        let reopened = client.reopen_for_writes()?;
        if context.output.is_json {
            context.output.json(&json!({ "reopened": reopened }))?;
        } else {
            note(match reopened {
                true => "The database takes writes again.",
                false => "The database had not moved, and takes writes.",
            });
        }
        Ok(exit_code::SUCCESS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_mends_what_the_advice_says() {
        for code in FindingCode::ALL {
            assert_eq!(REPAIRED.contains(code), code.advice().contains("repair()"), "{}", code.as_str());
        }
    }
}
