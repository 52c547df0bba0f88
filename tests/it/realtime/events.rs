//! Server-sent events (DESIGN 5): a real HTTP client that is cut and comes back, callers, refusals and heartbeats.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;
use townsquare::{
    Client,
    blocking::wait,
    http::events_router,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_tests::{http_client, http_server::Server, on_both_engines, test_database::TestDatabase};

/// A connection that reads events, as a browser does.
struct EventSource {
    lines: BufReader<TcpStream>,
    /// The cursor of the last event.
    last_event: String,
}

impl EventSource {
    fn open(server: &Server, query: &str, headers: &[(&str, &str)]) -> EventSource {
        let mut stream = TcpStream::connect(server.address()).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out above zero");
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(stream, "GET /events?{query} HTTP/1.1\r\nHost: town\r\n{headers}\r\n").expect("the server reads");
        let mut source = EventSource { lines: BufReader::new(stream), last_event: String::new() };
        assert_eq!(source.line(), "HTTP/1.1 200 OK");
        while !source.line().is_empty() {}
        source
    }

    /// The next line, without chunk framing.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("the server sends");
        line.trim_end().to_owned()
    }

    /// Reads until a line starts with `prefix`, and returns the rest of it.
    fn field(&mut self, prefix: &str) -> String {
        loop {
            let line = self.line();
            if let Some(cursor) = line.strip_prefix("id: ") {
                self.last_event = cursor.to_owned();
            }
            if let Some(rest) = line.strip_prefix(prefix) {
                return rest.to_owned();
            }
        }
    }

    /// The event and the name in the next change.
    fn next(&mut self) -> (String, String) {
        assert_eq!(self.field("event: "), "change");
        let data: Value = serde_json::from_str(&self.field("data: ")).expect("JSON");
        assert_eq!(data["cursor"], self.last_event.as_str());
        (text(&data["eventType"]), text(&data["new"]["name"]))
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn serve(client: &Client) -> Server {
    Server::of(events_router(client.clone()))
}

fn status(server: &Server, method: &str, target: &str, header: &str) -> u16 {
    let request = format!("{method} {target} HTTP/1.1\r\nHost: town\r\nConnection: close\r\n{header}\r\n");
    http_client::send(server.address(), request.as_bytes()).status
}

fn create(client: &Client, name: &str) {
    wait(client.spaces().create_space(NewSpace::named(name).public())).expect("created");
}

fn change(event: &str, name: &str) -> (String, String) {
    (event.to_owned(), name.to_owned())
}

on_both_engines! {
    fn a_client_that_is_cut_resumes_without_gap_and_repeat(db: &TestDatabase) {
        let server = serve(&db.client);
        let mut source = EventSource::open(&server, "table=spaces&filter=name=like.space*", &[]);
        source.field("id: ");
        let mut expected = 0;
        for _ in 0..4 {
            for number in expected..expected + 3 {
                create(&db.service, &format!("space {number}"));
                create(&db.service, "another");
            }
            // Cut before it has read all: the rest comes after the cursor of the last event that it read.
            for number in expected..expected + 2 {
                assert_eq!(source.next(), change("INSERT", &format!("space {number}")));
            }
            let cursor = std::mem::take(&mut source.last_event);
            drop(source);
            expected += 3;
            source = EventSource::open(&server, "table=spaces&filter=name=like.space*", &[("Last-Event-ID", &cursor)]);
            assert_eq!(source.next(), change("INSERT", &format!("space {}", expected - 1)));
        }
    }

    fn a_client_that_is_cut_before_its_first_event_misses_nothing(db: &TestDatabase) {
        let server = serve(&db.client);
        let mut source = EventSource::open(&server, "table=spaces", &[]);
        let cursor = source.field("id: ");
        drop(source);
        create(&db.service, "Harbor");
        let mut source = EventSource::open(&server, "table=spaces", &[("Last-Event-ID", &cursor)]);
        assert_eq!(source.next(), change("INSERT", "Harbor"));
    }

    fn a_request_acts_for_its_bearer_and_for_nobody_else(db: &TestDatabase) {
        let sign_up = |name: &str| {
            let (address, password) = (format!("{name}@town.example"), "correct horse");
            wait(db.service.auth().sign_up(&address, password)).expect("signed up");
            wait(db.service.auth().sign_in(&address, password)).expect("signed in")
        };
        let (ann, eve) = (sign_up("ann"), sign_up("eve"));
        // The handle is the service, which sees everything.
        let server = serve(&db.service);
        let bearer = |token: &str| format!("Bearer {token}");
        let (of_ann, of_eve) = (bearer(&ann.access_token), bearer(&eve.access_token));
        let mut owner = EventSource::open(&server, "table=spaces", &[("Authorization", &of_ann)]);
        let mut stranger = EventSource::open(&server, "table=spaces", &[("Authorization", &of_eve)]);
        let mut anonymous = EventSource::open(&server, "table=spaces", &[]);
        let client = wait(db.client.as_user(&ann.access_token)).expect("a handle");
        let space = wait(client.spaces().create_space(NewSpace::named("Draft"))).expect("created");
        wait(client.spaces().update_space(space.id, SpacePatch::new().name("Harbor").published())).expect("updated");
        assert_eq!(owner.next(), change("INSERT", "Draft"));
        assert_eq!(owner.next(), change("UPDATE", "Harbor"));
        for other in [&mut stranger, &mut anonymous] {
            assert_eq!(other.next(), change("INSERT", "Harbor"), "the draft is hidden");
        }
    }

    fn a_thread_reads_the_body_without_async(db: &TestDatabase) {
        let client = townsquare::blocking::Client::from(db.service.clone());
        let refused = client.realtime().handle_events("/events", &[]).expect("a response");
        assert!(refused.status == 400 && refused.body.closer().is_none() && refused.body.count() == 1);
        let mut response = client.realtime().handle_events("/events?table=spaces", &[]).expect("a response");
        assert_eq!((response.status, response.headers[0].1.as_str()), (200, "text/event-stream"));
        assert!(response.body.next().expect("the cursor").starts_with(b"id: "));
        let owner = db.user();
        db.public_space(owner, "Harbor");
        let event = response.body.next().expect("an event");
        assert!(String::from_utf8_lossy(&event).contains(r#""name":"Harbor""#), "{event:?}");
        let closer = response.body.closer().expect("a stream");
        let reader = std::thread::spawn(move || response.body.next());
        closer.close();
        assert!(reader.join().expect("no panic").is_none());
    }

    fn bad_requests_are_refused_by_status(db: &TestDatabase) {
        let server = serve(&db.client);
        let other = TestDatabase::on(db.engine).expect("the engine is there");
        let foreign = wait(other.service.realtime().cursor()).expect("a cursor");
        for (method, target, header, expected) in [
            ("GET", "/events", String::new(), 400),
            ("GET", "/events?table=spaces&filter=colour=eq.red", String::new(), 400),
            ("GET", "/events?table=spaces&since=yesterday", String::new(), 400),
            ("GET", "/events?table=secrets", String::new(), 404),
            ("GET", "/elsewhere?table=spaces", String::new(), 404),
            ("POST", "/events?table=spaces", String::new(), 405),
            ("GET", "/events?table=spaces", "Authorization: Bearer wrong\r\n".to_owned(), 401),
            ("GET", "/events?table=spaces", "Authorization: Basic YTpi\r\n".to_owned(), 401),
            ("GET", "/events?table=spaces", format!("Last-Event-ID: {foreign}\r\n"), 410),
        ] {
            assert_eq!(status(&server, method, target, &header), expected, "{method} {target} {header}");
        }
    }

    fn an_idle_stream_has_heartbeats_and_ends_with_its_client(db: &TestDatabase) {
        let heartbeat = |config: townsquare::Config| config.event_heartbeat(Duration::from_millis(20));
        let db = TestDatabase::with(db.engine, heartbeat).expect("the engine is there");
        let mut response = wait(db.client.realtime().handle_events("?table=spaces", &[])).expect("a response");
        assert_eq!(response.status, 200);
        let mut chunks = (0..3).map(|_| wait(response.body.next_chunk()).expect("a chunk"));
        assert!(chunks.next().is_some_and(|first| first.starts_with(b"id: ")));
        assert!(chunks.all(|chunk| &chunk[..] == b": heartbeat\n\n"));
        wait(db.client.close());
        while wait(response.body.next_chunk()).is_some() {}
    }
}
