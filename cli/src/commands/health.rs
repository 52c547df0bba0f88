//! `health`: asks a server that runs whether it is ready.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use clap::Args;
use serde_json::json;

use super::serve::prefix;
use crate::{context::Context, exit_code, failure::Failure, output::note};

/// The time for the connection, and for the answer.
const TIMEOUT: Duration = Duration::from_secs(4);

/// The most bytes of a status line.
const MOST_BYTES: u64 = 1_024;

/// Ask a `serve` that runs on this machine whether it is ready: its database answers, and it takes requests.
///
/// For the health check of a container. Exit code 0 if it is ready, else 75. It takes 4 seconds at most for the connection and as
/// many for the answer. JSON: `status`, the HTTP status.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The address of the server.
    #[arg(default_value = "127.0.0.1:3000", value_name = "ADDRESS:PORT")]
    address: SocketAddr,
    /// The --prefix of the server.
    #[arg(long, default_value = "", value_name = "PATH", value_parser = prefix)]
    prefix: String,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let Arguments { address, prefix } = arguments;
    let not_ready = |why: String| {
        let sentence = format!("The server at {address} is not ready: {why}");
        Failure::new(
            exit_code::TRY_AGAIN,
            sentence,
            "Read its log; `townsquare check` looks for faults of its database.",
        )
    };
    let status = ask(*address, prefix).map_err(|error| not_ready(error.to_string()))?;
    if status != 200 {
        return Err(not_ready(format!("it answers with the status {status}")));
    }
    if context.output.is_json {
        return context.output.json(&json!({ "status": status }));
    }
    note("ready");
    Ok(())
}

/// The status of the path `/ready`.
fn ask(address: SocketAddr, prefix: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET {prefix}/ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream.take(MOST_BYTES)).read_line(&mut line)?;
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next());
    status.and_then(|status| status.parse().ok()).ok_or_else(|| io::Error::other("its answer is not one of HTTP"))
}
