//! Server-sent events (DESIGN 5): a real HTTP client that is cut and comes back, callers, refusals and heartbeats.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    time::Duration,
};

use axum::extract::Request;
use serde_json::{Value, json};
use townsquare::{
    blocking::Client,
    http::{RequestClient, events_router},
    spaces::{NewSpace, SpacePatch},
    storage::UploadOptions,
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

/// Serves events, for which the host switches capture on.
fn serve(client: &Client) -> Server {
    client.realtime().start().expect("capture is on");
    Server::of(events_router(client.inner().clone()))
}

fn status(server: &Server, method: &str, target: &str, header: &str) -> u16 {
    let request = format!("{method} {target} HTTP/1.1\r\nHost: town\r\nConnection: close\r\n{header}\r\n");
    http_client::send(server.address(), request.as_bytes()).status
}

fn create(client: &Client, name: &str) {
    client.spaces().create_space(NewSpace::named(name).public()).expect("created");
}

fn change(event: &str, name: &str) -> (String, String) {
    (event.to_owned(), name.to_owned())
}

/// A layer of a host behind a proxy.
async fn name_client(mut request: Request) -> Request {
    let client = request.headers().get("x-real-ip").and_then(|value| value.to_str().ok()).map(str::to_owned);
    if let Some(client) = client {
        request.extensions_mut().insert(RequestClient(client));
    }
    request
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

    fn an_anonymous_reader_is_not_told_the_files_of_private_spaces(db: &TestDatabase) {
        let server = serve(&db.client);
        let mut source = EventSource::open(&server, "table=files", &[]);
        source.field("id: ");
        let upload = |bucket: &str, path: &str| {
            db.service.storage().upload(bucket, path, "x", UploadOptions::new()).expect("uploaded");
        };
        let space = db.service.spaces().create_space(NewSpace::named("x")).expect("created").id;
        upload("spaces", &format!("{space}/tabs/Home"));
        upload("spaces", "page/tabs/Home");
        upload("assets", "mark");
        let data: Value = serde_json::from_str(&source.field("data: ")).expect("JSON");
        assert_eq!(data["new"]["path"], "mark");
    }

    fn a_request_acts_for_its_bearer_and_for_nobody_else(db: &TestDatabase) {
        let sign_up = |name: &str| {
            let (address, password) = (format!("{name}@town.example"), "correct horse");
            db.service.auth().sign_up(&address, password).expect("signed up");
            db.service.auth().sign_in(&address, password).expect("signed in")
        };
        let (ann, eve) = (sign_up("ann"), sign_up("eve"));
        // The handle is the service, which sees everything.
        let server = serve(&db.service);
        let bearer = |token: &str| format!("Bearer {token}");
        let (of_ann, of_eve) = (bearer(&ann.access_token), bearer(&eve.access_token));
        let mut owner = EventSource::open(&server, "table=spaces", &[("Authorization", &of_ann)]);
        let mut stranger = EventSource::open(&server, "table=spaces", &[("Authorization", &of_eve)]);
        let mut anonymous = EventSource::open(&server, "table=spaces", &[]);
        let client = db.client.as_user(&ann.access_token).expect("a handle");
        let space = client.spaces().create_space(NewSpace::named("Draft")).expect("created");
        client.spaces().update_space(space.id, SpacePatch::new().name("Harbor").published()).expect("updated");
        assert_eq!(owner.next(), change("INSERT", "Draft"));
        assert_eq!(owner.next(), change("UPDATE", "Harbor"));
        for other in [&mut stranger, &mut anonymous] {
            assert_eq!(other.next(), change("INSERT", "Harbor"), "the draft is hidden");
        }
    }

    fn the_events_of_a_bearer_end_over_http_with_the_reason(db: &TestDatabase) {
        let (address, password) = ("ann@town.example", "correct horse");
        let ann = db.service.auth().sign_up(address, password).expect("signed up");
        let session = db.service.auth().sign_in(address, password).expect("signed in");
        let server = serve(&db.client);
        let bearer = format!("Bearer {}", session.access_token);
        let mut source = EventSource::open(&server, "table=spaces", &[("Authorization", &bearer)]);
        create(&db.service, "before");
        assert_eq!(source.next(), change("INSERT", "before"));
        db.service.auth().set_password(ann.id, "another password").expect("every session ends");
        create(&db.service, "after");
        assert_eq!(source.field("event: "), "end", "a public space is not sent to a bearer with an ended session");
        let reason: Value = serde_json::from_str(&source.field("data: ")).expect("JSON");
        assert_eq!(reason, serde_json::json!({ "status": 401, "error": "Session has ended" }));
        let again = format!("Authorization: {bearer}\r\nLast-Event-ID: {}\r\n", source.last_event);
        assert_eq!(status(&server, "GET", "/events?table=spaces", &again), 401);
    }

    fn a_thread_reads_the_body_without_async(db: &TestDatabase) {
        let client = &db.service;
        client.realtime().start().expect("capture is on");
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
        let conditions = ["filter=name=like.%25_"; 9].join("&");
        let pattern = format!("filter=name=like.{}", "_%25".repeat(600));
        let other = TestDatabase::on(db.engine).expect("the engine is there");
        let foreign = other.service.realtime().cursor().expect("a cursor");
        for target in [&conditions, &pattern] {
            assert_eq!(status(&server, "GET", &format!("/events?table=spaces&{target}"), ""), 400, "{target}");
        }
        for (method, target, header, expected) in [
            ("GET", "/events", String::new(), 400),
            ("GET", "/events?table=spaces&filter=colour=eq.red", String::new(), 400),
            ("GET", "/events?table=spaces&since=yesterday", String::new(), 400),
            ("GET", "/events?table=spaces&filtr=name=eq.Harbor", String::new(), 400),
            ("GET", "/events?table=secrets", String::new(), 404),
            ("GET", "/events?table=spaces&table=files", String::new(), 400),
            ("GET", "/elsewhere?table=spaces", String::new(), 404),
            ("POST", "/events?table=spaces", String::new(), 405),
            ("GET", "/events?table=spaces", "Authorization: Bearer wrong\r\n".to_owned(), 401),
            ("GET", "/events?table=spaces", "Authorization: Basic YTpi\r\n".to_owned(), 401),
            ("GET", "/events?table=spaces", format!("Last-Event-ID: {foreign}\r\n"), 410),
        ] {
            assert_eq!(status(&server, method, target, &header), expected, "{method} {target} {header}");
        }
    }

    fn a_refusal_speaks_of_no_file(db: &TestDatabase) {
        db.client.realtime().start().expect("capture is on");
        for (name, value, message) in [
            ("Authorization", "Bearer wrong", "the access token is not valid"),
            ("Last-Event-ID", "\u{e9}", "the header last-event-id is not ASCII text"),
        ] {
            let headers = [(name.to_owned(), value.to_owned())];
            let mut response = db.client.realtime().handle_events("?table=spaces", &headers).expect("a response");
            let body = response.body.next().expect("a body");
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body, json!({"success": false, "error": message}));
        }
    }

    fn an_idle_stream_has_heartbeats_and_ends_with_its_client(db: &TestDatabase) {
        let heartbeat = |config: townsquare::Config| config.event_heartbeat(Duration::from_millis(20));
        let db = TestDatabase::with(db.engine, heartbeat).expect("the engine is there");
        db.client.realtime().start().expect("capture is on");
        let mut response = db.client.realtime().handle_events("?table=spaces", &[]).expect("a response");
        assert_eq!(response.status, 200);
        let mut chunks = (0..3).map(|_| response.body.next().expect("a chunk"));
        assert!(chunks.next().is_some_and(|first| first.starts_with(b"id: ")));
        assert!(chunks.all(|chunk| &chunk[..] == b": heartbeat\n\n"));
        db.client.close();
        response.body.for_each(drop);
    }

    fn one_client_has_a_limited_number_of_streams(db: &TestDatabase) {
        db.client.realtime().start().expect("capture is on");
        let (one, other) = (db.client.with_client_key("192.0.2.1"), db.client.with_client_key("192.0.2.2"));
        let open = |client: &Client| client.realtime().handle_events("/events?table=spaces", &[]).expect("answered");
        let mut streams: Vec<_> = (0..64).map(|_| open(&one)).collect();
        assert!(streams.iter().all(|stream| stream.status == 200));
        let mut refused = open(&one);
        assert_eq!(refused.status, 429);
        assert!(refused.headers.contains(&("retry-after".to_owned(), "1".to_owned())));
        let body: Value = serde_json::from_slice(&refused.body.next().expect("a body")).expect("JSON");
        assert_eq!(body["error"], "Too many event streams of one client; try again in 1 s");
        assert!([&other, &db.client].iter().all(|client| open(client).status == 200));
        streams.pop();
        assert_eq!(open(&one).status, 200);
        // Refused requests keep no slot.
        let bad = || one.realtime().handle_events("/events?table=spaces&filter=x", &[]).expect("answered").status;
        assert!((0..3).all(|_| bad() == 400));
        assert_eq!(open(&one).status, 200);
    }

    fn the_router_takes_the_client_of_a_request_from_its_host(db: &TestDatabase) {
        db.client.realtime().start().expect("capture is on");
        let router = events_router(db.async_client().clone()).layer(axum::middleware::map_request(name_client));
        let server = Server::of(router);
        let peer = ("X-Real-IP", "192.0.2.1");
        let streams: Vec<_> = (0..64).map(|_| EventSource::open(&server, "table=spaces", &[peer])).collect();
        let fetch = |peer: &str| {
            let request = format!(
                "GET /events?table=spaces HTTP/1.1\r\nHost: town\r\nX-Real-IP: {peer}\r\nConnection: close\r\n\r\n"
            );
            http_client::send(server.address(), request.as_bytes()).status
        };
        assert_eq!(fetch("192.0.2.1"), 429);
        EventSource::open(&server, "table=spaces", &[("X-Real-IP", "192.0.2.2")]);
        drop(streams);
    }
}
