//! The programs of the book in Rust print what the book says.

use std::{
    error::Error,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Child, Output},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use townsquare_tests::{
    http_client::request,
    paths::workspace,
    subprocess::{child, name_of, role, run_child},
    temp_dir,
    wait::wait_until,
};

#[path = "../../../docs/examples/rust/async_start.rs"]
mod async_start;
#[path = "../../../docs/examples/rust/backup.rs"]
mod backup;
#[path = "../../../docs/examples/rust/changes.rs"]
mod changes;
#[path = "../../../docs/examples/rust/discovery.rs"]
mod discovery;
#[path = "../../../docs/examples/rust/endpoints.rs"]
mod endpoints;
#[path = "../../../docs/examples/rust/errors.rs"]
mod errors;
#[path = "../../../docs/examples/rust/files.rs"]
mod files;
#[path = "../../../docs/examples/rust/move.rs"]
mod r#move;
#[path = "../../../docs/examples/rust/server.rs"]
mod server;
#[path = "../../../docs/examples/rust/sign_in.rs"]
mod sign_in;
#[path = "../../../docs/examples/rust/start.rs"]
mod start;
#[path = "../../../docs/examples/rust/tables.rs"]
mod tables;

/// Before and after the output of a program, between the lines of the test harness.
const BEGIN: &str = "== the program begins";
const END: &str = "== the program has ended";

/// Runs a program and prints [`BEGIN`] and [`END`] around its output.
#[allow(clippy::print_stdout, reason = "the parent process reads it")]
pub(super) fn print_all<E: Into<Box<dyn Error>>>(program: impl FnOnce() -> Result<(), E>) {
    println!("\n{BEGIN}");
    let result = program().map_err(Into::into);
    println!("{END}");
    result.expect("the program succeeds");
}

/// What the program printed in a child process.
pub(super) fn printed(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    let after = text.split_once(&format!("{BEGIN}\n")).expect("the program has begun").1;
    after.split_once(&format!("{END}\n")).expect("the program has ended").0.to_owned()
}

/// What the book says that a program prints.
pub(super) fn expected(name: &str) -> String {
    let file = workspace().join(format!("docs/examples/output/{name}.txt"));
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display())).replace("\r\n", "\n")
}

/// Runs a program in a process of its own, in an empty folder, and compares its output with `docs/examples/output`.
fn prints<T: Copy, E: Into<Box<dyn Error>>>(test: T, output: &str, program: impl FnOnce() -> Result<(), E>) {
    if role().is_some() {
        return print_all(program);
    }
    let folder = temp_dir();
    let run = run_child(child(name_of(&test), "alone", &[]).current_dir(folder.path()));
    assert_eq!(printed(&run), expected(output));
    let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder is there").flatten().collect();
    assert!(left.is_empty(), "a program in memory leaves nothing on the disk: {left:?}");
}

/// Runs a program as [`prints`] does. It may leave files.
fn prints_and_leaves_files<T: Copy>(test: T, output: &str, program: impl FnOnce() -> townsquare::Result<()>) {
    if role().is_some() {
        return print_all(program);
    }
    let folder = temp_dir();
    let run = run_child(child(name_of(&test), "alone", &[]).current_dir(folder.path()));
    assert_eq!(printed(&run), expected(output));
}

#[test]
fn the_program_of_backups_prints_what_the_book_says() {
    prints_and_leaves_files(the_program_of_backups_prints_what_the_book_says, "backup", backup::run);
}

#[test]
fn the_program_of_moves_prints_what_the_book_says() {
    prints_and_leaves_files(the_program_of_moves_prints_what_the_book_says, "move", r#move::run);
}

/// A test for each program: `test: program = output`.
macro_rules! programs {
    ($($test:ident: $program:ident = $output:literal;)*) => {$(
        #[test]
        fn $test() {
            prints($test, $output, $program::run);
        }
    )*};
}

programs! {
    the_first_program_prints_what_the_book_says: start = "start";
    the_first_program_with_futures_prints_the_same: async_start = "start";
    the_program_of_discovery_prints_what_the_book_says: discovery = "discovery";
    the_program_of_tables_prints_what_the_book_says: tables = "tables";
    the_program_of_sign_in_prints_what_the_book_says: sign_in = "sign_in";
    the_program_of_files_prints_what_the_book_says: files = "files";
    the_program_of_changes_prints_what_the_book_says: changes = "changes";
    the_program_of_http_prints_what_the_book_says: endpoints = "endpoints";
    the_program_of_errors_prints_what_the_book_says: errors = "errors";
}

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_server_answers_its_own_route_and_those_of_the_library() {
    if role().is_some() {
        return print_all(server::run);
    }
    let test = name_of(&the_server_answers_its_own_route_and_those_of_the_library);
    let mut server = Server(child(test, "alone", &[]).spawn().expect("the server starts"));
    // Kept, because the server prints until its end.
    let mut lines = BufReader::new(server.0.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("http://")).expect("the server prints its address");
    let address: SocketAddr = line.trim_start_matches("http://").parse().expect("an address");
    for (target, status) in [("/health", 200), ("/api/miniapp-discovery?limit=1", 200), ("/mine", 200), ("/none", 404)]
    {
        assert_eq!(request(address, "GET", target.as_bytes(), b"").status, status, "{target}");
    }
    // Ctrl-C ends it beside a stream of events and an upload that stalls.
    let mut events = TcpStream::connect(address).expect("connects");
    events.write_all(b"GET /events?table=spaces HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut begin = [0; 15];
    events.read_exact(&mut begin).expect("answered");
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    let mut post = TcpStream::connect(address).expect("connects");
    post.write_all(b"POST /api/miniapp-discovery HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{").expect("sent");
    kill(Pid::from_raw(i32::try_from(server.0.id()).expect("small")), Signal::SIGINT).expect("signalled");
    wait_until("the server ends", || server.0.try_wait().expect("a child").is_some_and(|status| status.success()));
}
