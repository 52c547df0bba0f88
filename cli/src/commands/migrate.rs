//! `migrate`: brings the database to the version of this command, or lists what that would change.

use clap::Args;
use serde_json::json;
use townsquare::{MigrationPlan, PlannedMigration, blocking::Client};

use crate::{context::Context, failure::Failure, interrupt, output::note, settings::IfMissing};

/// Apply the migrations that the database lacks, all or none, and make triggers and policies as this version has them.
///
/// A database that is missing is made. There is no way back but a backup, so make one before. JSON: `applied`, the names of the
/// migrations; with --plan `migrations` with `name`, `about` and `is_applied`, `is_new` (there is no database yet) and `is_current`
/// (there is nothing to do).
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// List the migrations that the database lacks, and what each does. Changes nothing.
    #[arg(long)]
    plan: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let plan = Client::plan_migrations(context.settings()?.config()?)?;
    if arguments.plan {
        return show(&plan, context);
    }
    interrupt::finish_first("The migration");
    context.with_client(IfMissing::Migrate, |_| Ok(()))?;
    if context.output.is_json {
        let applied: Vec<_> = plan.missing().map(|migration| migration.name).collect();
        return context.output.json(&json!({ "applied": applied }));
    }
    let applied: Vec<_> = plan.missing().map(row).collect();
    if !applied.is_empty() {
        context.output.table(&["applied", "what it does"], &applied)?;
    }
    note(match plan.is_current {
        true => "There was nothing to do.",
        false => "The database is of this version.",
    });
    Ok(())
}

/// Shows what the database lacks.
fn show(plan: &MigrationPlan, context: &Context) -> Result<(), Failure> {
    if context.output.is_json {
        return context.output.json(&json!(plan));
    }
    let missing: Vec<_> = plan.missing().map(row).collect();
    if !missing.is_empty() {
        context.output.table(&["missing", "what it does"], &missing)?;
    }
    note(match (plan.is_current, plan.is_new, missing.is_empty()) {
        (true, ..) => "There is nothing to do.",
        (_, true, _) => "There is no townsquare yet: `townsquare migrate` makes one.",
        (_, _, true) => {
            "Only triggers, policies or roles are of another version: `townsquare migrate` makes them anew."
        }
        (_, _, false) => "Back the database up, then run `townsquare migrate`.",
    });
    Ok(())
}

fn row(migration: &PlannedMigration) -> Vec<String> {
    vec![migration.name.to_owned(), migration.about.to_owned()]
}
