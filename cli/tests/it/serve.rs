//! The tests of `serve`.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, ChildStdout},
    time::Duration,
};

use crate::town::Town;

/// A server that runs, and its address.
struct Server {
    process: Child,
    address: String,
    prefix: String,
    _out: BufReader<ChildStdout>,
}

impl Server {
    fn start(town: &Town, arguments: &[&str]) -> Server {
        let mut command = town.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut process = command.args(arguments).spawn().expect("it starts");
        let mut out = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("the address");
        let rest = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("an address: {line:?}"));
        let (address, prefix) =
            rest.split_once('/').map_or((rest, String::new()), |(at, path)| (at, format!("/{path}")));
        Server { process, address: address.to_owned(), prefix, _out: out }
    }

    fn send(&self, path: &str) -> TcpStream {
        let mut peer = TcpStream::connect(&self.address).expect("a connection");
        peer.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let request = format!("GET {}{path} HTTP/1.1\r\nHost: town\r\nConnection: close\r\n\r\n", self.prefix);
        peer.write_all(request.as_bytes()).expect("a request");
        peer
    }

    fn get(&self, path: &str) -> String {
        let mut response = String::new();
        self.send(path).read_to_string(&mut response).expect("a response");
        response
    }

    #[cfg(unix)]
    fn end(&self, signal: nix::sys::signal::Signal) {
        let id = nix::unistd::Pid::from_raw(i32::try_from(self.process.id()).expect("a process id"));
        nix::sys::signal::kill(id, signal).expect("a signal");
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
    let town = Town::seeded();
    let source = town.file("a.txt", "hello");
    town.run(&["files", "put", &source, "assets/a.txt"]).succeeded();
    let url = town.run(&["files", "sign", "assets/a.txt"]).succeeded().out;
    let server = Server::start(&town, &[]);
    for (path, part) in [
        ("/", "<title>Mini apps</title>"),
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
}

#[test]
fn a_prefix_stands_before_every_path() {
    let town = Town::new();
    let mut server = Server::start(&town, &["--prefix", "/town/"]);
    assert_eq!(server.prefix, "/town");
    for path in ["/health", "/ready", "/metrics", "/api/miniapp-discovery"] {
        assert!(server.get(path).starts_with("HTTP/1.1 200 "), "{path}");
    }
    assert!(server.get("").contains("\"/town/api/miniapp-discovery\""), "the page calls its own server");
    server.prefix.clear();
    assert!(server.get("/health").starts_with("HTTP/1.1 404 "));
}

#[test]
#[cfg(unix)]
fn a_signal_tells_streams_and_ends_the_server() {
    use nix::sys::signal::Signal;

    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let town = Town::new();
        let mut server = Server::start(&town, &[]);
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
    let town = Town::seeded();
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
    let town = Town::new();
    let server = Server::start(&town, &[]);
    Town::new().run(&["serve", "--listen", &server.address]).failed(1, "Cannot listen");
    assert_eq!(town.run(&["serve", "--prefix", "town"]).code, 2);
    assert_eq!(town.run(&["serve", "--listen", "nowhere"]).code, 2);
}
