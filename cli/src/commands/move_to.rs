//! `move`: copies everything into an empty database and file store.

mod place;
mod report;
mod supabase;

use std::time::Duration;

use clap::Args;
use serde_json::json;
use townsquare::{
    ErrorKind, MoveOptions, MoveReport,
    blocking::Client,
    check::{CheckDepth, Severity},
};

use self::{place::Place, report::Figures};
use crate::{
    context::Context,
    exit_code,
    failure::{Failure, in_words_of_the_command},
    interrupt, missing,
    progress::{Progress, Unit},
    settings::{Settings, Source},
};

/// Copy everything from one place to an empty one: rows, users, files and the catalog. The source is only read.
///
/// A place is a data folder, or a URL: townsquare:FOLDER, sqlite:PATH or postgres://HOST/NAME, with options in its query such as
/// ?storage_url=s3://BUCKET. A URL with a secret is not an argument: write env:VARIABLE for the URL in a variable, or - for the first
/// line of the standard input. The same command continues a move that was interrupted. Every table and every file is compared at the
/// end.
///
/// Stop the writers of the source first, or use --follow: others write the source meanwhile, wait at the end for the last copy and
/// comparison, and are refused from then on. No write that was acknowledged is lost. Then open the target in their place. If you give
/// the target up, `townsquare repair --reopen` lets others write the source again.
///
/// With --supabase, SOURCE is the URL of the database of a Supabase project, and --files names the place of its files. The move copies
/// the tables of the library, the passwords and confirmed addresses of `auth.users`, and the objects of Supabase Storage. The project
/// is only read. A move that was interrupted begins anew. JSON: also `skipped`, what was left out, and `published_buckets`, the
/// buckets that are private in the project and that everyone may read in the target.
///
/// The file townsquare.toml of a folder counts for the folder. JSON: `rows` by table, `files`, `bytes`, `seconds`, `resumed`, and
/// `target` with the places of `rows` and `files`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The place to copy from.
    source: String,
    /// The empty place to copy to.
    target: String,
    /// Leave the sessions of users behind: they sign in again.
    #[arg(long)]
    without_sessions: bool,
    /// Copy while others write the source. At the end they wait, and then the source takes no writes any more.
    #[arg(long, conflicts_with = "supabase")]
    follow: bool,
    /// The longest wait of the writers, in seconds, from 1 to 60. If the end takes longer, they go on, and the command tries again. After
    /// five times it fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 8, requires = "follow", value_parser = clap::value_parser!(u64).range(1..=60))]
    longest_pause: u64,
    /// Check both places and copy nothing: whether the source has faults, and whether the move would accept the target.
    ///
    /// JSON: `source_faults`, `target` (new, empty, unfinished or refused) and `reason`, why the target is refused. An unfinished
    /// move from the same source is continued. With --supabase also what the move would copy and leave out.
    #[arg(long)]
    dry_run: bool,
    /// SOURCE is the URL of the database of a Supabase project.
    ///
    /// The role must read every row, as `postgres` does.
    #[arg(long, conflicts_with = "without_sessions")]
    supabase: bool,
    /// The files of the Supabase project: a folder with the files BUCKET/NAME, or s3://?endpoint=URL&region=REGION.
    ///
    /// The S3 protocol of Supabase Storage has the endpoint https://PROJECT.storage.supabase.co/storage/v1/s3; its keys are in the
    /// variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. s3://BUCKET/PREFIX is a store with the keys BUCKET/NAME of the project.
    /// As for SOURCE, env:VARIABLE names a variable.
    #[arg(long, value_name = "PLACE", requires = "supabase")]
    files: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    refuse_shared_place(&Settings::without_file(&context.given)?)?;
    if arguments.supabase {
        return supabase::run(arguments, context);
    }
    let (source, target) = (Place::read(&arguments.source)?, Place::read(&arguments.target)?);
    interrupt::defer();
    // A source that does not exist would be created, and be empty.
    let mut config = source.config.migrate(false).claim_store(false);
    // On PostgreSQL the pause is an operation on the source.
    if arguments.longest_pause > 20 {
        config = config.operation_timeout(Duration::from_secs(arguments.longest_pause + 30));
    }
    let client = Client::open(config).map_err(|error| missing::failure(error).at("source"))?;
    let moved = match arguments.dry_run {
        true => dry_run(&client, target, context),
        false => move_all(&client, target, arguments, context),
    };
    client.close();
    moved
}

/// Refuses options that would count for the source and for the target.
fn refuse_shared_place(settings: &Settings) -> Result<(), Failure> {
    for (name, source) in settings.sources() {
        let sentence = format!("The option {name} has a value ({source}), and a move has two places");
        let names_place = matches!(name, "data_dir" | "database_url" | "storage_url");
        match source {
            Source::CommandLine => {
                return Err(Failure::usage(sentence, "Write the option into the URL of SOURCE or TARGET."));
            }
            Source::Environment(variable) if names_place => {
                return Err(Failure::usage(sentence, format!("Unset it: env -u {variable} townsquare move …")));
            }
            _ => {}
        }
    }
    Ok(())
}

fn move_all(client: &Client, target: Place, arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    let progress = Progress::new(&context.output, "rows and files", Unit::Items);
    let mut options = MoveOptions::new().sessions(!arguments.without_sessions);
    if arguments.follow {
        options = options.follow(Duration::from_secs(arguments.longest_pause));
    }
    let moved = client.move_to(target.config, options, |done, all| progress.show(done, all));
    drop(progress);
    let report = moved.map_err(|error| match error.kind() {
        ErrorKind::Cancelled => Failure::interrupted("Run the same command again: it continues the move."),
        _ => error.into(),
    })?;
    let source = match arguments.follow {
        true => "The source takes no writes any more.",
        false => "The source is unchanged.",
    };
    let MoveReport { rows, files, bytes, seconds, .. } = &report;
    let figures = Figures { json: json!(report), rows, files: *files, bytes: *bytes, seconds: *seconds };
    report::write(figures, (&target.rows, &target.files), &[], source, context)?;
    Ok(exit_code::SUCCESS)
}

/// Checks both places.
fn dry_run(client: &Client, target: Place, context: &Context) -> Result<u8, Failure> {
    let findings = client.check(CheckDepth::Quick)?;
    let faults: Vec<_> = findings.iter().filter(|finding| finding.severity() == Severity::Error).collect();
    let (state, reason) = match client.check_move(target.config) {
        Ok(state) => (state.as_str(), None),
        Err(error) if error.kind() == ErrorKind::Config => ("refused", Some(in_words_of_the_command(error.message()))),
        Err(error) => return Err(Failure::from(error).at("target")),
    };
    if context.output.is_json {
        context.output.json(&json!({ "source_faults": faults, "target": state, "reason": reason }))?;
    } else {
        context.output.line(&format!(
            "source: {} {}",
            faults.len(),
            if faults.len() == 1 { "fault" } else { "faults" }
        ))?;
        for fault in &faults {
            context.output.line(&format!("    {fault}"))?;
        }
        let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        context.output.line(&format!("target: {state}{reason}"))?;
    }
    Ok(if faults.is_empty() && state != "refused" { exit_code::SUCCESS } else { exit_code::FINDINGS })
}
