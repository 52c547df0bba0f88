//! The tests of `serve`.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use crate::fixture::Fixture;

/// A server that runs, and its address.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) address: String,
    pub(crate) prefix: String,
    out: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(town: &Fixture, arguments: &[&str]) -> Server {
        let mut command = town.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(arguments);
        Server::of(command)
    }

    /// The server of a command that writes its address.
    pub(crate) fn of(mut command: Command) -> Server {
        let mut process = command.spawn().expect("it starts");
        let mut out = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("the address");
        let rest = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("an address: {line:?}"));
        let (address, prefix) =
            rest.split_once('/').map_or((rest, String::new()), |(at, path)| (at, format!("/{path}")));
        Server { process, address: address.to_owned(), prefix, out }
    }

    /// The next line of the output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn send(&self, path: &str) -> TcpStream {
        self.send_with(path, "")
    }

    /// Sends a request with further headers, each with the end of its line.
    fn send_with(&self, path: &str, headers: &str) -> TcpStream {
        let mut peer = TcpStream::connect(&self.address).expect("a connection");
        peer.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let request = format!("GET {}{path} HTTP/1.1\r\nHost: town\r\n{headers}Connection: close\r\n\r\n", self.prefix);
        peer.write_all(request.as_bytes()).expect("a request");
        peer
    }

    fn get(&self, path: &str) -> String {
        let mut response = String::new();
        self.send(path).read_to_string(&mut response).expect("a response");
        response
    }

    #[cfg(unix)]
    pub(crate) fn end(&self, signal: nix::sys::signal::Signal) {
        crate::fixture::signal(&self.process, signal);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn every_endpoint_answers() {
    let town = Fixture::seeded();
    let source = town.file("a.txt", "hello");
    town.run(&["files", "put", &source, "assets/a.txt"]).succeeded();
    let url = town.run(&["files", "sign", "assets/a.txt"]).succeeded().out;
    let server = Server::start(&town, &[]);
    for (path, part) in [
        ("/directory", "<title>Mini apps</title>"),
        ("/health", "{\"status\":\"ok\"}"),
        ("/ready", "{\"status\":\"ready\"}"),
        ("/api/miniapp-discovery?limit=1", "\"success\":true"),
        (&format!("/files{}", url.trim()), "hello"),
        ("/metrics", "# TYPE townsquare_operations_total counter"),
    ] {
        let response = server.get(path);
        assert!(response.starts_with("HTTP/1.1 200 ") && response.contains(part), "{path}: {response}");
    }
    assert!(server.get("/nothing").starts_with("HTTP/1.1 404 "));
    assert!(server.get("/").contains("\r\nlocation: directory\r\n"), "the address leads to the page");
}

#[test]
fn a_prefix_stands_before_every_path() {
    let town = Fixture::new();
    let mut server = Server::start(&town, &["--prefix", "/town/"]);
    assert_eq!(server.prefix, "/town");
    for path in ["/health", "/ready", "/metrics", "/api/miniapp-discovery"] {
        assert!(server.get(path).starts_with("HTTP/1.1 200 "), "{path}");
    }
    for (path, location) in [("", "town/directory"), ("/", "directory")] {
        let response = server.get(path);
        assert!(response.starts_with("HTTP/1.1 307 "), "{path:?}: {response}");
        assert!(response.contains(&format!("\r\nlocation: {location}\r\n")), "{path:?}: {response}");
    }
    assert!(server.get("/directory").contains("<title>Mini apps</title>"));
    server.prefix.clear();
    assert!(server.get("/health").starts_with("HTTP/1.1 404 "));
}

#[test]
#[cfg(unix)]
fn a_signal_tells_streams_and_ends_the_server() {
    use nix::sys::signal::Signal;
    use townsquare_tests::ports::free_port;

    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let town = Fixture::new();
        // A port that no other test gets when it asks for any: after the end of the server it refuses.
        let mut server = Server::of(town.command(&["serve", "--listen", &format!("127.0.0.1:{}", free_port())]));
        let mut events = BufReader::new(server.send("/events?table=spaces")).lines();
        let first = events.by_ref().map(|line| line.expect("a line")).find(|line| line.starts_with("id: "));
        assert!(first.is_some(), "the stream has begun");
        server.end(signal);
        let rest: Vec<_> = events.map_while(Result::ok).collect();
        assert!(rest.iter().any(|line| line == "event: end"), "{rest:?}");
        assert_eq!(server.process.wait().expect("it ends").code(), Some(0), "{signal}");
        assert!(TcpStream::connect(&server.address).is_err());
        // The database was closed.
        assert!(!town.path("town/townsquare.db-wal").exists());
    }
}

#[test]
#[cfg(unix)]
fn an_upload_that_runs_is_finished_after_a_signal() {
    let town = Fixture::seeded();
    let url = town.run(&["files", "sign", "assets/late", "--method", "put"]).succeeded().out;
    let mut server = Server::start(&town, &[]);
    let mut peer = TcpStream::connect(&server.address).expect("a connection");
    peer.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let head = "Host: town\r\nConnection: close\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    peer.write_all(format!("PUT /files{} HTTP/1.1\r\n{head}", url.trim()).as_bytes()).expect("a request");
    let mut response = BufReader::new(peer.try_clone().expect("a second handle"));
    let mut line = String::new();
    response.read_line(&mut line).expect("a line");
    assert!(line.starts_with("HTTP/1.1 100 "), "the server reads the body: {line}");

    server.end(nix::sys::signal::Signal::SIGTERM);
    let mut stderr = BufReader::new(server.process.stderr.take().expect("a pipe"));
    line.clear();
    stderr.read_line(&mut line).expect("a line");
    assert!(line.starts_with("Ending: "), "{line}");
    peer.write_all(b"hello").expect("the body");
    let mut rest = String::new();
    response.read_to_string(&mut rest).expect("a response");
    assert!(rest.trim_start().starts_with("HTTP/1.1 20"), "{rest}");
    assert_eq!(server.process.wait().expect("it ends").code(), Some(0));
    assert_eq!(town.run(&["files", "get", "assets/late"]).succeeded().out, "hello");
}

#[test]
fn an_address_that_is_taken_is_a_failure() {
    let town = Fixture::new();
    let server = Server::start(&town, &[]);
    Fixture::new().run(&["serve", "--listen", &server.address]).failed(1, "Cannot listen");
    assert_eq!(town.run(&["serve", "--prefix", "town"]).code, 2);
    let refused = town.run(&["serve", "--listen", "nowhere"]);
    assert!(refused.code == 2 && refused.err.contains("such as 127.0.0.1:3000"), "{refused:?}");
}

/// The status of an event stream for a visitor behind a proxy, and the stream.
fn events_of(server: &Server, forwarded: &str) -> (String, TcpStream) {
    let mut peer = server.send_with("/events?table=spaces", &format!("X-Forwarded-For: {forwarded}\r\n"));
    let mut status = [0; 12];
    peer.read_exact(&mut status).expect("a response");
    (String::from_utf8_lossy(&status).into_owned(), peer)
}

#[test]
fn behind_a_proxy_one_visitor_does_not_use_up_the_streams_of_the_others() {
    let town = Fixture::seeded();
    let server = Server::start(&town, &["--client-address-header", "X-Forwarded-For"]);
    let streams: Vec<_> = (0..64).map(|_| events_of(&server, "203.0.113.7")).collect();
    assert!(streams.iter().all(|(status, _)| status == "HTTP/1.1 200"), "{:?}", streams[63].0);
    assert_eq!(events_of(&server, "203.0.113.7").0, "HTTP/1.1 429");
    // What the visitor sent stands before what the proxy added.
    assert_eq!(events_of(&server, "198.51.100.9, 203.0.113.7").0, "HTTP/1.1 429");
    assert_eq!(events_of(&server, "203.0.113.7:4711").0, "HTTP/1.1 429");
    assert_eq!(events_of(&server, "198.51.100.9").0, "HTTP/1.1 200");
    assert_eq!(events_of(&server, "no address").0, "HTTP/1.1 200");
}

#[test]
fn without_the_option_a_visitor_does_not_choose_an_address() {
    let town = Fixture::seeded();
    let server = Server::start(&town, &[]);
    let _streams: Vec<_> = (0..64).map(|number| events_of(&server, &format!("203.0.113.{number}"))).collect();
    assert_eq!(events_of(&server, "198.51.100.9").0, "HTTP/1.1 429");
}

#[test]
fn localhost_is_an_address() {
    let town = Fixture::new();
    let server = Server::of(town.command(&["serve", "--listen", "localhost:0"]));
    assert!(server.address.starts_with("127.0.0.1:"), "{}", server.address);
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_is_ignored_at_the_start_stays_ignored() {
    use nix::sys::signal::Signal;

    let town = Fixture::seeded();
    let command = town.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(town.path(""));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Server::of(shell);
    server.end(Signal::SIGHUP);
    assert!(server.get("/ready").starts_with("HTTP/1.1 200 "));
    server.end(Signal::SIGTERM);
    assert_eq!(server.process.wait().expect("it ends").code(), Some(0));
}

#[test]
#[cfg(unix)]
fn a_stored_stream_has_no_last_event() {
    let town = Fixture::seeded();
    let source = town.file("stream", &"x".repeat(8_000_000));
    town.run(&["files", "put", &source, "assets/stream", "--type", "text/event-stream"]).succeeded();
    let url = town.run(&["files", "sign", "assets/stream"]).succeeded().out;
    let server = Server::start(&town, &[]);
    let mut peer = server.send(&format!("/files{}", url.trim()));
    let mut first = [0; 100];
    peer.read_exact(&mut first).expect("the response has begun");
    server.end(nix::sys::signal::Signal::SIGTERM);
    let mut rest = String::new();
    peer.read_to_string(&mut rest).expect("the rest");
    assert!(rest.len() > 7_999_000 && !rest.contains("event: end"), "{}", rest.len());
}

#[test]
fn a_closed_output_is_a_failure() {
    let town = Fixture::seeded();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = town.command(&["serve", "--listen", "127.0.0.1:0"]);
    let process = command.stdout(writer).spawn().expect("it starts");
    let output = process.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("the standard output is closed"), "{error}");
}
