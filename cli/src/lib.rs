//! The command `townsquare`: what an operator or a developer does around the library, without writing a program. The program of that
//! name and the Python package both call [`run`].
//!
//! Invariant: data goes to the standard output, everything else to the standard error. Every failure has two lines and an exit
//! code of `exit_code`. No secret is an argument of the command.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod confirm;
mod context;
mod exit_code;
mod failure;
mod findings;
mod interrupt;
mod interruptible_input;
mod missing;
mod new_file;
mod output;
mod printable;
mod progress;
mod progress_form;
mod recent_events;
mod redact;
mod row_format;
mod runtime;
mod secret_input;
mod settings;

use std::{cell::OnceCell, ffi::OsString, io};

use clap::{CommandFactory as _, Parser as _};
use tracing_subscriber::{Layer as _, filter::LevelFilter, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use self::{arguments::Arguments, context::Context, failure::Failure, output::Output, recent_events::RecentEvents};

/// Runs the command with the arguments that follow its name. Returns its exit code.
///
/// A process runs one command: SIGINT, SIGTERM and SIGHUP end the command from then on, or the process at once. The log goes to the
/// standard error, unless the process has a subscriber of `tracing` already.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(std::iter::once("townsquare".into()).chain(arguments)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // The text of `--help` goes to the standard output. A closed pipe is no error.
            let printed = error.print().map_err(Failure::from);
            return match printed {
                _ if error.use_stderr() => exit_code::USAGE,
                Ok(()) => exit_code::SUCCESS,
                Err(failure) => failure.end(),
            };
        }
    };
    run_command(arguments).unwrap_or_else(|failure| failure.end())
}

fn run_command(arguments: Arguments) -> Result<u8, Failure> {
    interrupt::install()?;
    let level = match arguments.shared.verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false).with_filter(level);
    let recent = RecentEvents.with_filter(LevelFilter::INFO);
    // It fails if a Python program has opened a client before: then its log has the events.
    let _ = tracing_subscriber::registry().with(lines).with(recent).try_init();
    let context = Context {
        given: arguments.shared.given(),
        settings: OnceCell::new(),
        output: Output::new(arguments.shared.json, arguments.shared.progress),
        is_confirmed: arguments.shared.yes,
        definition: Arguments::command,
    };
    let code = arguments.command.run(&context)?;
    context.output.flush()?;
    Ok(code)
}
