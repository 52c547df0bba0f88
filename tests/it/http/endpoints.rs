//! One table over the three endpoints: HEAD, methods, retries, malformed requests, compression, and other origins (CORS).

use townsquare::{
    ErrorKind,
    blocking::{Client, wait},
    discovery::ENDPOINT_PATH as DISCOVERY_PATH,
    http::{RequestBody, ResponseBody, router},
    storage::UploadOptions,
};
use townsquare_tests::{
    fixture::assert_kind,
    http_client::{self, Response},
    http_server::Server,
    on_both_engines,
    test_database::{Engine, TestDatabase},
};

const ORIGIN: (&str, &str) = ("Origin", "https://a.example");

/// An endpoint behind its router.
#[derive(Debug)]
struct Endpoint {
    /// A target that is answered with 200.
    target: &'static str,
    /// A target that is answered with 404.
    missing: &'static str,
    methods: &'static str,
}

const DISCOVERY: Endpoint = Endpoint {
    target: "/api/miniapp-discovery/openapi.json",
    missing: "/api/miniapp-discovery/nowhere",
    methods: "GET, HEAD, POST",
};
const FILES: Endpoint =
    Endpoint { target: "/files/assets/note.txt", missing: "/files/assets/none.txt", methods: "GET, HEAD, PUT, DELETE" };
const EVENTS: Endpoint =
    Endpoint { target: "/events?table=spaces", missing: "/events?table=secrets", methods: "GET, HEAD" };
const ENDPOINTS: [Endpoint; 3] = [DISCOVERY, FILES, EVENTS];

/// A server with the three endpoints, on a client with this value of the option `endpoint_origins`.
fn serve(engine: Engine, origins: &str) -> (TestDatabase, Server) {
    let db = TestDatabase::with(engine, |config| config.endpoint_origins(origins)).expect("the engine is there");
    db.client.realtime().start().expect("capture is on");
    let upload = db.service.storage().upload("assets", "note.txt", "a note ".repeat(1_000), UploadOptions::new());
    upload.expect("stored");
    let server = Server::of(merged(&db.client));
    (db, server)
}

fn merged(client: &Client) -> axum::Router {
    router(client.inner().clone())
}

fn fetch(server: &Server, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("{method} {target} HTTP/1.1\r\nHost: town\r\nConnection: close\r\n{lines}\r\n");
    http_client::send(server.address(), request.as_bytes())
}

/// What [`Client::handle_request`] answers.
fn ask(
    client: &Client,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: impl Into<RequestBody>,
) -> (u16, Vec<u8>) {
    let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut response = client.handle_request(method, target, &headers, body).expect("answered");
    let mut bytes = Vec::new();
    while let Some(chunk) = wait(response.body.next_chunk()).expect("sent") {
        bytes.extend_from_slice(&chunk);
    }
    (response.status, bytes)
}

on_both_engines! {
    fn head_has_the_headers_and_no_body(db: &TestDatabase) {
        let (_db, server) = serve(db.engine, "");
        for endpoint in ENDPOINTS {
            let head = fetch(&server, "HEAD", endpoint.target, &[]);
            assert_eq!((head.status, head.body.len()), (200, 0), "{endpoint:?}");
            assert!(head.header("content-type").is_some(), "{endpoint:?}");
            assert_eq!(head.header("x-content-type-options"), Some("nosniff"), "{endpoint:?}");
            let (refused, get) = (fetch(&server, "HEAD", endpoint.missing, &[]), fetch(&server, "GET", endpoint.missing, &[]));
            assert_eq!((refused.status, refused.body.len(), get.status), (404, 0, 404), "{endpoint:?}");
            let length = get.body.len().to_string();
            for response in [&refused, &get] {
                assert_eq!(response.header("content-length"), Some(length.as_str()), "{endpoint:?}");
                assert_eq!(response.header("content-type"), Some("application/json"), "{endpoint:?}");
                assert_eq!(response.header("cache-control"), Some("no-store"), "{endpoint:?}");
            }
        }
    }

    fn one_method_answers_as_the_routers_do(db: &TestDatabase) {
        let (db, server) = serve(db.engine, "");
        for endpoint in ENDPOINTS {
            for (method, target) in
                [("HEAD", endpoint.target), ("GET", endpoint.missing), ("PATCH", endpoint.target), ("DELETE", endpoint.missing)]
            {
                let (answered, routed) = (ask(&db.client, method, target, &[], ""), fetch(&server, method, target, &[]));
                assert_eq!(answered, (routed.status, routed.body), "{method} {endpoint:?}");
            }
        }
        // A handle of the service acts for nobody.
        for (client, target, status) in [
            (&db.service, "/files/assets/note.txt", 200),
            (&db.service, "/files/private/x/homebase", 404),
            (&db.client, "/health", 200),
            (&db.client, "/nowhere", 404),
            (&db.client, "/files", 404),
            (&db.client, "", 404),
        ] {
            assert_eq!(ask(client, "GET", target, &[], "").0, status, "{target}");
        }
        let search = r#"{"action": "search", "query": "chess"}"#;
        assert_eq!(ask(&db.client, "POST", DISCOVERY_PATH, &[], search).0, 200);
        let too_large = format!(r#"{{"action": "search", "query": "{}"}}"#, "x".repeat(70_000));
        for body in [RequestBody::from(too_large.clone()), RequestBody::from_reader(std::io::Cursor::new(too_large.clone()))] {
            assert_eq!(ask(&db.client, "POST", DISCOVERY_PATH, &[], body).0, 413);
        }
        // A bearer, with a body in pieces; a stranger.
        db.service.auth().sign_up("ann@town.example", "correct horse").expect("signed up");
        let session = db.client.auth().create_session("ann@town.example", "correct horse").expect("a session");
        let bearer = ("Authorization", format!("Bearer {}", session.access_token));
        let body = || RequestBody::from_reader(std::io::Cursor::new(vec![7; 200_000]));
        assert_eq!(ask(&db.service, "PUT", "/files/assets/hers", &[], body()).0, 401);
        assert_eq!(ask(&db.service, "PUT", "/files/assets/hers", &[(bearer.0, &bearer.1)], body()).0, 201);
        assert_eq!(ask(&db.client, "GET", "/files/assets/hers", &[], ""), (200, vec![7; 200_000]));
        // Events, until another thread ends them.
        let mut events = db.client.handle_request("GET", EVENTS.target, &[], "").expect("answered");
        assert_eq!((events.status, events.body.size()), (200, ResponseBody::UNKNOWN_SIZE));
        assert!(wait(events.body.next_chunk()).expect("sent").expect("the cursor").starts_with(b"id: "));
        let closer = events.body.closer().expect("a stream");
        std::thread::spawn(move || closer.close());
        while wait(events.body.next_chunk()).expect("sent").is_some() {}
        let closed = db.another();
        closed.close();
        for target in [DISCOVERY.target, FILES.target, EVENTS.target] {
            assert_kind(ErrorKind::Closed, closed.handle_request("GET", target, &[], ""));
        }
        assert_eq!(closed.handle_request("GET", "/health", &[], "").expect("answered").status, 503);
    }

    fn other_methods_are_refused_with_the_methods_that_are_answered(db: &TestDatabase) {
        let (_db, server) = serve(db.engine, "");
        for endpoint in ENDPOINTS {
            let refused = fetch(&server, "PATCH", endpoint.target, &[]);
            assert_eq!((refused.status, &refused.json()["success"]), (405, &false.into()), "{endpoint:?}");
            assert!(refused.header("allow").is_some_and(|allow| allow.starts_with("GET, HEAD")), "{endpoint:?}");
        }
    }

    fn pages_of_allowed_origins_may_call_every_endpoint(db: &TestDatabase) {
        let (_db, server) = serve(db.engine, "https://a.example");
        let preflight = [ORIGIN, ("Access-Control-Request-Method", "GET"), ("Access-Control-Request-Headers", "authorization")];
        for endpoint in ENDPOINTS {
            let asked = fetch(&server, "OPTIONS", endpoint.target, &preflight);
            assert_eq!(asked.status, 204, "{endpoint:?}");
            assert_eq!(asked.header("access-control-allow-origin"), Some(ORIGIN.1), "{endpoint:?}");
            assert_eq!(asked.header("access-control-allow-methods"), Some(endpoint.methods), "{endpoint:?}");
            let headers = asked.header("access-control-allow-headers").expect("headers");
            assert!(["authorization", "if-match", "last-event-id"].iter().all(|name| headers.contains(name)), "{headers}");
            for (method, target, status) in [("HEAD", endpoint.target, 200), ("GET", endpoint.missing, 404)] {
                let response = fetch(&server, method, target, &[ORIGIN]);
                assert_eq!((response.status, response.header("access-control-allow-origin")), (status, Some(ORIGIN.1)));
                assert!(response.header("access-control-expose-headers").is_some_and(|names| names.contains("etag")));
                assert!(response.header("vary").is_some_and(|vary| vary.contains("origin")), "{endpoint:?}");
                assert_eq!(response.header("access-control-allow-credentials"), None, "{endpoint:?}");
            }
            let bearer = fetch(&server, "GET", endpoint.target, &[ORIGIN, ("Authorization", "Bearer wrong")]);
            assert!(endpoint.target == DISCOVERY.target || bearer.status == 401, "{endpoint:?}");
            assert_eq!(bearer.header("access-control-allow-origin"), Some(ORIGIN.1), "a page can read the refusal");
        }
    }

    fn pages_of_other_origins_may_not_call(db: &TestDatabase) {
        for (origins, origin) in [("", "https://a.example"), ("https://a.example", "https://b.example")] {
            let (_db, server) = serve(db.engine, origins);
            for endpoint in ENDPOINTS {
                for (method, target) in [("OPTIONS", endpoint.target), ("HEAD", endpoint.target), ("GET", endpoint.missing)] {
                    let headers = [("Origin", origin), ("Access-Control-Request-Method", "GET")];
                    let response = fetch(&server, method, target, &headers);
                    let has_cors = response.headers.iter().any(|(name, _)| name.starts_with("access-control"));
                    assert!(!has_cors, "{method} {endpoint:?}: {response:?}");
                }
            }
        }
    }

    fn a_refusal_that_ends_says_when_to_try_again(db: &TestDatabase) {
        let (other, server) = serve(db.engine, "");
        other.service.realtime().stop().expect("capture is off");
        let off = fetch(&server, "GET", EVENTS.target, &[]);
        assert_eq!((off.status, off.header("retry-after")), (503, Some("1")));
        other.client.close();
        for endpoint in ENDPOINTS {
            let closed = fetch(&server, "GET", endpoint.target, &[]);
            assert_eq!((closed.status, closed.header("retry-after")), (503, Some("1")), "{endpoint:?}");
        }
    }

    fn only_json_of_the_library_is_compressed(db: &TestDatabase) {
        let (_db, server) = serve(db.engine, "");
        let gzip = [("Accept-Encoding", "gzip")];
        assert_eq!(fetch(&server, "GET", DISCOVERY.target, &gzip).header("content-encoding"), Some("gzip"));
        let file = fetch(&server, "GET", FILES.target, &gzip);
        assert_eq!((file.status, file.body.len(), file.header("content-encoding")), (200, 7_000, None));
        assert!(file.header("etag").is_some_and(|etag| etag.starts_with('"')), "the etag of the stored bytes");
        assert_eq!(fetch(&server, "HEAD", EVENTS.target, &gzip).header("content-encoding"), None);
    }

    fn a_malformed_header_or_target_is_refused(db: &TestDatabase) {
        let client = &db.client;
        for (name, value) in [("a name", "x"), ("", "x"), ("authorization", "Bearer x\r\ny"), ("x", "\0")] {
            let headers = [(name.to_owned(), value.to_owned())];
            let file = client.storage().handle_file("GET", "/assets/x", &headers, "").expect("open").status;
            let events = client.realtime().handle_events(EVENTS.target, &headers).expect("open").status;
            let discovery = client.discovery().handle("GET", DISCOVERY.target, b"", &headers).expect("open").status;
            assert_eq!([file, events, discovery], [400; 3], "{name:?}: {value:?}");
        }
        let (_db, server) = serve(db.engine, "");
        for (endpoint, target) in ENDPOINTS.iter().zip(["/api/miniapp-discovery?limit=%zz", "/files/a/%zz", "/events?table=%zz"]) {
            assert_eq!(fetch(&server, "GET", target, &[]).status, 400, "{endpoint:?}");
        }
    }
}
