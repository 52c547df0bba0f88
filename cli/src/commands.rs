//! The subcommands, one a file.

mod apps;
mod backup;
mod changes;
mod check;
mod completions;
mod config;
mod export;
mod files;
mod health;
mod import;
mod man;
mod migrate;
mod move_to;
mod refresh;
mod repair;
mod restore;
mod search;
mod seed;
mod serve;
mod stats;
mod trending;
mod users;

use clap::Subcommand;

use crate::{context::Context, exit_code, failure::Failure};

/// A subcommand with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(serve::Arguments),
    Health(health::Arguments),
    Search(search::Arguments),
    Trending(trending::Arguments),
    Apps(apps::Arguments),
    Refresh(refresh::Arguments),
    Stats(stats::Arguments),
    Check(check::Arguments),
    Repair(repair::Arguments),
    Migrate(migrate::Arguments),
    Backup(backup::Arguments),
    Restore(restore::Arguments),
    #[command(name = "move")]
    Move(move_to::Arguments),
    Export(export::Arguments),
    Import(import::Arguments),
    Users(users::Arguments),
    Files(files::Arguments),
    Changes(changes::Arguments),
    Seed(seed::Arguments),
    Config(config::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    /// Runs the command. Returns its exit code.
    pub(crate) fn run(self, context: &Context) -> Result<u8, Failure> {
        match self {
            Command::Serve(arguments) => serve::run(&arguments, context),
            Command::Health(arguments) => health::run(&arguments, context),
            Command::Search(arguments) => search::run(&arguments, context),
            Command::Trending(arguments) => trending::run(&arguments, context),
            Command::Apps(arguments) => apps::run(&arguments, context),
            Command::Refresh(arguments) => refresh::run(&arguments, context),
            Command::Stats(arguments) => stats::run(&arguments, context),
            Command::Check(arguments) => return check::run(&arguments, context),
            Command::Repair(arguments) => return repair::run(&arguments, context),
            Command::Migrate(arguments) => migrate::run(&arguments, context),
            Command::Backup(arguments) => backup::run(&arguments, context),
            Command::Restore(arguments) => return restore::run(&arguments, context),
            Command::Move(arguments) => return move_to::run(&arguments, context),
            Command::Export(arguments) => export::run(&arguments, context),
            Command::Import(arguments) => return import::run(&arguments, context),
            Command::Users(arguments) => users::run(&arguments, context),
            Command::Files(arguments) => files::run(&arguments, context),
            Command::Changes(arguments) => return changes::run(&arguments, context),
            Command::Seed(arguments) => seed::run(&arguments, context),
            Command::Config(arguments) => config::run(&arguments, context),
            Command::Completions(arguments) => completions::run(&arguments, context),
            Command::Man(arguments) => man::run(&arguments, context),
        }?;
        Ok(exit_code::SUCCESS)
    }
}
