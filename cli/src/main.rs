//! The program `townsquare`.
#![forbid(unsafe_code)]

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    townsquare_cli::run(env::args_os().skip(1)).into()
}
