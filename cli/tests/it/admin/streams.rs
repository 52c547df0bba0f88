//! The changes as they come.

use std::{
    io::{BufRead as _, BufReader, Lines, Write as _},
    net::TcpStream,
    time::Duration,
};

use super::{AdminServer, HOSTILE};
use crate::fixture::Fixture;

/// The lines of the stream of changes.
fn stream(admin: &AdminServer, query: &str, line: &str) -> Lines<BufReader<TcpStream>> {
    let mut peer = TcpStream::connect(admin.address).expect("a connection");
    peer.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let (cookie, address) = (admin.cookie(), admin.address);
    let request = format!("GET /admin/changes/stream{query} HTTP/1.1\r\nHost: {address}\r\n{cookie}\r\n{line}\r\n");
    peer.write_all(request.as_bytes()).expect("a request");
    let mut lines = BufReader::new(peer).lines();
    let status = lines.next().expect("a line").expect("a line");
    assert_eq!(status, "HTTP/1.1 200 OK");
    lines
}

/// The next line that begins with a text.
fn next(lines: &mut Lines<BufReader<TcpStream>>, begin: &str) -> String {
    lines.map(|line| line.expect("a line")).find(|line| line.starts_with(begin)).expect("the stream goes on")
}

#[test]
fn changes_come_in_order_and_once() {
    let town = Fixture::seeded();
    let admin = AdminServer::start(&town);
    let mut live = stream(&admin, "", "");
    let add = |name: &str| town.run_with_input(&["import", "-"], &space(name)).succeeded();
    add("First");
    assert_eq!(next(&mut live, "event: "), "event: change");
    assert_eq!(next(&mut live, "id: "), "id: 1");
    let row = next(&mut live, "data: ");
    assert!(row.contains("INSERT") && row.contains("First") && row.contains("/admin/spaces/"), "{row}");
    add(HOSTILE);
    assert_eq!(next(&mut live, "id: "), "id: 2");
    let row = next(&mut live, "data: ");
    assert!(row.contains("&lt;img src=x") && !row.contains("<img src=x"), "{row}");

    // One that comes later gets what it missed, and no change twice.
    assert_eq!(next(&mut stream(&admin, "?after=1", ""), "id: "), "id: 2");
    assert_eq!(next(&mut stream(&admin, "", "Last-Event-ID: 1\r\n"), "id: "), "id: 2");
    let mut fidgets = stream(&admin, "?table=fidgets", "");
    add("Third");
    town.run(&["seed", "--users", "0", "--spaces", "1", "--fidgets", "1"]).succeeded();
    assert!(next(&mut fidgets, "data: ").contains(">fidgets<"));

    let page = admin.page("/changes");
    let places: Vec<_> = ["Third", "&lt;img src=x", "First"]
        .map(|name| page.find(name).unwrap_or_else(|| panic!("{name}: {page}")))
        .into();
    assert!(places.is_sorted(), "the newest is the first: {places:?}");
    assert!(!admin.page("/changes?table=users").contains("First"));
}

/// A line for `import`.
fn space(name: &str) -> String {
    let (id, time) = (townsquare::Uuid::new_v4(), "2026-01-02T03:04:05Z");
    let row = serde_json::json!({ "id": id, "name": name, "description": null, "owner_id": null, "is_public": false, "created_at": time, "updated_at": time });
    format!("{}\n", serde_json::json!({ "table": "spaces", "row": row }))
}

#[test]
#[cfg(unix)]
fn a_signal_ends_the_stream_of_changes() {
    use nix::sys::signal::Signal;

    let town = Fixture::new();
    let mut admin = AdminServer::start(&town);
    let mut live = stream(&admin, "", "");
    next(&mut live, "content-type: text/event-stream");
    admin.server.end(Signal::SIGTERM);
    next(&mut live, "event: end");
    assert_eq!(admin.server.process.wait().expect("it ends").code(), Some(0));
    assert!(!town.path("town/townsquare.db-wal").exists(), "the database was closed");
}

#[test]
fn the_page_says_that_the_log_was_switched_off_and_does_not_switch_it_on() {
    let town = Fixture::new();
    let admin = AdminServer::start(&town);
    assert!(!admin.page("/changes").contains("class=\"error\""));
    let config = townsquare::Config::new().data_dir(town.path("town")).catalog_url("sample:");
    let client = townsquare::blocking::Client::open(config).expect("opens");
    client.as_service().realtime().stop().expect("it stops");
    Fixture::wait_until(|| admin.page("/changes").contains("The changes ended"));
    assert!(admin.page("").contains("The changes ended"));
    let events = admin.send("GET", "/events?table=spaces", "town", &[]);
    assert_eq!(events.status, 503, "the log stays off");
    client.close();
}
