//! `move --supabase`: copies a Supabase project into an empty database and file store.

use serde_json::{Value, json};
use townsquare::{ErrorKind, SupabaseCheck, SupabaseProject, SupabaseSkipped, blocking::Client};

use super::{
    Arguments,
    place::{Place, read_text},
    report::{self, Figures},
};
use crate::{
    context::Context,
    exit_code,
    failure::{Failure, in_words_of_the_command},
    interrupt,
    progress::{Progress, Unit},
};

pub(super) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    let mut project = SupabaseProject::new(read_text(&arguments.source)?);
    if let Some(files) = &arguments.files {
        project = project.files(read_text(files)?);
    }
    let target = Place::read(&arguments.target)?;
    if arguments.dry_run {
        return dry_run(project, target, context);
    }
    interrupt::defer();
    move_all(project, target, context)
}

fn move_all(project: SupabaseProject, target: Place, context: &Context) -> Result<u8, Failure> {
    let progress = Progress::new(&context.output, "rows and files", Unit::Items);
    let Place { config, rows, files } = target;
    let moved = Client::move_from_supabase(project, config, |done, all| progress.show(done, all));
    drop(progress);
    let report = moved.map_err(|error| match error.kind() {
        ErrorKind::Cancelled => Failure::interrupted("Run the same command again: it begins the move anew."),
        _ => error.into(),
    })?;
    let figures = Figures {
        json: json!(report),
        rows: &report.rows,
        files: report.files,
        bytes: report.bytes,
        seconds: report.seconds,
    };
    let notes = sentences(&report.skipped, &report.published_buckets);
    report::write(figures, (&rows, &files), &notes, "The project is unchanged.", context)?;
    Ok(exit_code::SUCCESS)
}

/// What people should know of a move besides its counts.
fn sentences(skipped: &SupabaseSkipped, published: &[String]) -> Vec<String> {
    let counts = [
        (skipped.users_without_row, "Left out: users without a row in public.users"),
        (skipped.deleted_users, "Without a password: users who are deleted in Supabase"),
        (skipped.banned_users, "Without a password: users who are banned"),
        (skipped.unconfirmed_users, "Without a password: users with an unconfirmed address"),
        (skipped.unsupported_passwords, "Without a password: users with a hash that is not supported"),
        (skipped.folder_placeholders, "Left out: placeholders of empty folders"),
        (skipped.owners_of_files, "Without an owner: files of users without a row in public.users"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut sentences: Vec<_> = counts.map(|(count, what)| format!("{what}: {count}.")).collect();
    if !published.is_empty() {
        sentences.push(format!(
            "Warning: private in the project, and readable by everyone in the target: the buckets {}.",
            published.join(", ")
        ));
    }
    sentences
}

fn dry_run(project: SupabaseProject, target: Place, context: &Context) -> Result<u8, Failure> {
    let check = Client::check_move_from_supabase(project, target.config)?;
    let refusal = check.refusal.as_deref().map(in_words_of_the_command);
    let state = check.target.map_or("refused", |target| target.as_str());
    if context.output.is_json {
        context.output.json(&in_json(&check, state, refusal.as_deref()))?;
    } else {
        let count = check.faults.len();
        context.output.line(&format!("source: {count} {}", if count == 1 { "fault" } else { "faults" }))?;
        for fault in &check.faults {
            context.output.line(&format!("    {fault}"))?;
        }
        let of_files = [("files".to_owned(), check.files), ("bytes of files".to_owned(), check.bytes)];
        for (name, count) in check.rows.clone().into_iter().chain(of_files) {
            context.output.line(&format!("    {name}: {count}"))?;
        }
        for sentence in sentences(&check.skipped, &check.published_buckets) {
            context.output.line(&format!("    {sentence}"))?;
        }
        let reason = refusal.map_or_else(String::new, |reason| format!(": {reason}"));
        context.output.line(&format!("target: {state}{reason}"))?;
    }
    let is_accepted = check.faults.is_empty() && check.target.is_some();
    Ok(if is_accepted { exit_code::SUCCESS } else { exit_code::FINDINGS })
}

/// The members of a dry run of any move, and those of a project.
fn in_json(check: &SupabaseCheck, state: &str, reason: Option<&str>) -> Value {
    json!({
        "source_faults": check.faults,
        "target": state,
        "reason": reason,
        "rows": check.rows,
        "files": check.files,
        "bytes": check.bytes,
        "skipped": check.skipped,
        "published_buckets": check.published_buckets,
    })
}
