//! The extractor `Caller` in routes of a host, and errors as responses.

use axum::{
    Router,
    extract::{FromRef, Path, Request},
    middleware::{self, Next},
    routing::get,
};
use serde_json::json;
use townsquare::{
    Client, Uuid,
    blocking::Client as BlockingClient,
    http::{Caller, POSITION_HEADER, RequestClient},
    spaces::{NewSpace, SpacePatch},
};
use townsquare_tests::{
    http_client::{self, Response},
    http_server::Server,
    on_both_engines,
    test_database::{Engine, TestDatabase},
};

/// The state of a host that has more than the client.
#[derive(Clone)]
struct Host {
    client: Client,
    greeting: &'static str,
}

impl FromRef<Host> for Client {
    fn from_ref(host: &Host) -> Client {
        host.client.clone()
    }
}

/// The address of the caller, or `nobody`.
async fn who(
    Caller(client): Caller,
    axum::extract::State(host): axum::extract::State<Host>,
) -> townsquare::Result<String> {
    let session = client.auth().get_session().await?;
    Ok(format!("{} {}", host.greeting, session.map_or_else(|| "nobody".to_owned(), |session| session.user.email)))
}

async fn read(Caller(client): Caller, Path(id): Path<Uuid>) -> townsquare::Result<String> {
    Ok(client.spaces().get_space(id).await?.name)
}

async fn rename(Caller(client): Caller, Path(id): Path<Uuid>, name: String) -> townsquare::Result<String> {
    Ok(client.spaces().update_space(id, SpacePatch::new().name(name)).await?.name)
}

/// Tries to sign in with a wrong password.
async fn guess(Caller(client): Caller, Path(address): Path<String>) -> townsquare::Result<String> {
    client.auth().create_session(&address, "wrong horse").await.map(|session| session.access_token)
}

/// A layer of a host behind a proxy.
async fn name_client(mut request: Request, next: Next) -> axum::response::Response {
    if let Some(peer) = request.headers().get("x-real-ip").and_then(|value| value.to_str().ok()).map(str::to_owned) {
        request.extensions_mut().insert(RequestClient(peer));
    }
    next.run(request).await
}

fn serve(client: &BlockingClient) -> Server {
    Server::of(app(client).layer(middleware::from_fn(name_client)))
}

fn app(client: &BlockingClient) -> Router {
    let host = Host { client: client.inner().clone(), greeting: "Hello" };
    Router::new()
        .route("/who", get(who))
        .route("/spaces/{id}", get(read).put(rename))
        .route("/guesses/{address}", get(guess))
        .with_state(host)
}

fn fetch(server: &Server, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: town\r\nConnection: close\r\n{lines}Content-Length: {length}\r\n\r\n{body}"
    );
    http_client::send(server.address(), request.as_bytes())
}

/// Signs up a user; returns a handle and the header that names the session.
fn user(db: &TestDatabase, name: &str) -> (BlockingClient, String) {
    let (address, password) = (format!("{name}@town.example"), "correct horse");
    db.service.auth().sign_up(&address, password).expect("signed up");
    let session = db.client.auth().create_session(&address, password).expect("a session");
    (db.client.as_user(&session.access_token).expect("a handle"), format!("Bearer {}", session.access_token))
}

fn text(response: &Response) -> (u16, &str) {
    (response.status, std::str::from_utf8(&response.body).expect("text"))
}

on_both_engines! {
    fn a_handler_acts_for_the_bearer_or_for_nobody(db: &TestDatabase) {
        let (_, ann) = user(db, "ann");
        let server = serve(&db.client);
        assert_eq!(text(&fetch(&server, "GET", "/who", &[("Authorization", &ann)], "")), (200, "Hello ann@town.example"));
        assert_eq!(text(&fetch(&server, "GET", "/who", &[], "")), (200, "Hello nobody"));
        // Whoever the client itself acts for.
        db.client.auth().sign_in("ann@town.example", "correct horse").expect("signed in");
        assert_eq!(text(&fetch(&server, "GET", "/who", &[], "")), (200, "Hello nobody"));
        let of_the_service = serve(&db.service);
        assert_eq!(text(&fetch(&of_the_service, "GET", "/who", &[], "")), (200, "Hello nobody"));
    }

    fn a_request_reads_after_the_position_in_its_header(db: &TestDatabase) {
        let (ann, of_ann) = user(db, "ann");
        let id = ann.spaces().create_space(NewSpace::named("Harbor").public()).expect("created").id;
        let server = serve(&db.client);
        let position = ann.read_position().expect("a position");
        assert_eq!(position.is_empty(), db.engine == Engine::Sqlite);
        for caller in [None, Some(("Authorization", of_ann.as_str()))] {
            let ask = |position: &str| {
                let headers: Vec<_> = caller.into_iter().chain([(POSITION_HEADER, position)]).collect();
                fetch(&server, "GET", &format!("/spaces/{id}"), &headers, "")
            };
            assert_eq!(text(&ask(&position)), (200, "Harbor"));
            assert_eq!(text(&ask("1-1-1")), (200, "Harbor"));
            for hostile in ["yesterday", "1-1", "1-1-1-1", "1-1-'; --", "\u{e9}"] {
                assert_eq!(ask(hostile).status, 400, "{hostile}");
            }
        }
    }

    fn policies_decide_for_the_bearer(db: &TestDatabase) {
        let ((ann, of_ann), (_, of_ben)) = (user(db, "ann"), user(db, "ben"));
        let private = ann.spaces().create_space(NewSpace::named("Diary")).expect("created").id;
        let public = ann.spaces().create_space(NewSpace::named("Harbor").public()).expect("created").id;
        for client in [&db.client, &db.service] {
            let server = serve(client);
            let ask = |method, id: Uuid, caller: Option<&str>, body: &str| {
                let headers: Vec<_> = caller.map(|caller| ("Authorization", caller)).into_iter().collect();
                fetch(&server, method, &format!("/spaces/{id}"), &headers, body)
            };
            for (caller, own) in [(Some(of_ann.as_str()), true), (Some(&of_ben), false), (None, false)] {
                assert_eq!(ask("GET", public, caller, "").status, 200, "{caller:?}");
                assert_eq!(ask("GET", private, caller, "").status, if own { 200 } else { 404 }, "{caller:?}");
                for id in [public, private] {
                    let expected = if own { 200 } else { 404 };
                    assert_eq!(ask("PUT", id, caller, "Renamed").status, expected, "{caller:?}");
                }
            }
        }
        assert_eq!(ann.spaces().get_space(private).expect("kept").name, "Renamed");
    }

    fn a_token_that_is_not_valid_is_refused_before_the_handler(db: &TestDatabase) {
        let (ann, of_ann) = user(db, "ann");
        let server = serve(&db.client);
        let refused = |value: &str| {
            let response = fetch(&server, "GET", "/who", &[("Authorization", value)], "");
            let body = json!({ "success": false, "error": "the access token is not valid" });
            assert_eq!((response.status, response.json()), (401, body), "{value}");
            assert_eq!(response.header("www-authenticate"), Some("Bearer error=\"invalid_token\""), "{value}");
            assert_eq!(response.header("cache-control"), Some("no-store"), "{value}");
        };
        for value in ["Bearer x", "Bearer ", "Bearer", "Basic YW5uOng=", "x"] {
            refused(value);
        }
        let twice = fetch(&server, "GET", "/who", &[("Authorization", &of_ann), ("Authorization", &of_ann)], "");
        assert_eq!((twice.status, &twice.json()["success"]), (400, &json!(false)));
        ann.auth().sign_out().expect("the session ends");
        refused(&of_ann);
    }

    fn an_error_of_a_handler_is_a_response(db: &TestDatabase) {
        let (ann, of_ann) = user(db, "ann");
        let server = serve(&db.client);
        let missing = fetch(&server, "GET", &format!("/spaces/{}", Uuid::nil()), &[], "");
        assert_eq!((missing.status, missing.json()), (404, json!({ "success": false, "error": "Record not found" })));
        assert_eq!(missing.header("x-content-type-options"), Some("nosniff"));
        let id = ann.spaces().create_space(NewSpace::named("Harbor")).expect("created").id;
        let long = fetch(&server, "PUT", &format!("/spaces/{id}"), &[("Authorization", &of_ann)], &"x".repeat(10_000));
        assert_eq!((long.status, &long.json()["success"]), (413, &json!(false)));
        db.raw.run("ALTER TABLE spaces RENAME TO spaces_away");
        let broken = fetch(&server, "GET", &format!("/spaces/{id}"), &[], "");
        db.raw.run("ALTER TABLE spaces_away RENAME TO spaces");
        assert_eq!(broken.status, 500);
        assert_eq!(broken.json(), json!({ "success": false, "error": "Internal server error" }));
        let closed = BlockingClient::open(db.config()).expect("opens");
        let server = serve(&closed);
        closed.close();
        for headers in [&[][..], &[("Authorization", of_ann.as_str())]] {
            let response = fetch(&server, "GET", &format!("/spaces/{id}"), headers, "");
            assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
        }
    }
}

#[test]
fn failed_sign_ins_of_a_handler_count_for_the_client_of_the_request() {
    let db = TestDatabase::on(Engine::Sqlite).expect("SQLite is there");
    let server = serve(&db.client);
    let guess = |peer, guess| {
        fetch(&server, "GET", &format!("/guesses/{guess}@town.example"), &[("X-Real-IP", peer)], "").status
    };
    let first_limited = (0..60).find(|number| guess("203.0.113.7", *number) == 429);
    assert_eq!(first_limited, Some(50));
    assert_eq!(guess("203.0.113.8", 100), 401);
}

#[test]
fn failed_sign_ins_count_for_the_address_of_the_peer() {
    let db = TestDatabase::on(Engine::Sqlite).expect("SQLite is there");
    let first_limited = |server: &Server| {
        let guess = |guess| fetch(server, "GET", &format!("/guesses/{guess}@town.example"), &[], "").status;
        (0..60).find(|number| guess(*number) == 429)
    };
    assert_eq!(first_limited(&Server::of(app(&db.client))), None);
    assert_eq!(first_limited(&Server::with_peers(app(&db.client))), Some(50));
}
