//! The endpoint over HTTP: the axum router of feature `http` (SPEC 4.1).

use serde_json::json;
use townsquare::{
    blocking::{Client, wait},
    discovery::EndpointRoute,
};
use townsquare_tests::{
    catalog::{Catalog, FREQUENT_WORD},
    fixture::Fixture,
    http_client::{self, Response},
    http_server::Server,
};

const PATH: &str = "/api/miniapp-discovery";

fn fetch(server: &Server, method: &str, target: &str, body: &[u8]) -> Response {
    http_client::request(server.address(), method, target.as_bytes(), body)
}

fn serve() -> (Fixture, Client, Server) {
    let fixture = Fixture::of(Catalog::of(150).with_chains().rows());
    let client = Client::open(fixture.config()).expect("opens");
    let server = Server::of(townsquare::http::discovery_router(client.inner().clone()));
    (fixture, client, server)
}

#[test]
fn the_router_responds_like_handle() {
    let (_fixture, client, server) = serve();
    let search = json!({ "action": "search", "query": FREQUENT_WORD }).to_string();
    let requests: [(&str, String, &[u8]); 12] = [
        ("GET", PATH.into(), b""),
        ("GET", format!("{PATH}?category=games&networks=base,celo&limit=9&timeWindow=7d"), b""),
        ("GET", format!("{PATH}?limit=0"), b""),
        ("GET", format!("{PATH}?category=%zz"), b""),
        ("GET", format!("{PATH}?networks=bitcoin"), b""),
        ("GET", format!("{PATH}?x={}", "y".repeat(20_000)), b""),
        ("POST", PATH.into(), search.as_bytes()),
        ("POST", PATH.into(), b"nonsense"),
        ("POST", PATH.into(), br#"{"action":"dance"}"#),
        ("PUT", PATH.into(), b""),
        ("DELETE", PATH.into(), b""),
        ("OPTIONS", PATH.into(), b""),
    ];
    for (method, target, body) in requests {
        let shown: String = target.chars().take(60).collect();
        let expected = wait(client.inner().discovery().handle(method, &target, body, &[])).expect("open");
        let answer = fetch(&server, method, &target, body);
        assert_eq!(answer.status, expected.status, "{method} {shown}");
        assert_eq!(answer.body, expected.body, "{method} {shown}");
        for (name, value) in &expected.headers {
            assert_eq!(answer.header(&name.to_ascii_lowercase()), Some(value.as_str()), "{method} {shown} {name}");
        }
    }
}

#[test]
fn head_has_the_headers_of_get_and_no_body() {
    let (_fixture, _client, server) = serve();
    let (get, head) = (fetch(&server, "GET", PATH, b""), fetch(&server, "HEAD", PATH, b""));
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-type"), get.header("content-type"));
    assert_eq!(get.header("content-type").map(|kind| kind.starts_with("application/json")), Some(true));
    if let Some(length) = head.header("content-length") {
        assert_eq!(length, get.body.len().to_string(), "what GET would have sent");
    }
}

#[test]
fn options_and_refused_methods_carry_allow() {
    let (_fixture, _client, server) = serve();
    for (method, status) in [("OPTIONS", 204), ("PUT", 405), ("PATCH", 405), ("DELETE", 405)] {
        let answer = fetch(&server, method, PATH, b"");
        assert_eq!(answer.status, status, "{method}");
        let allow = answer.header("allow").expect("Allow");
        assert!(["GET", "HEAD", "POST", "OPTIONS"].iter().all(|known| allow.contains(known)), "{allow}");
    }
}

#[test]
fn a_large_body_is_413_announced_or_chunked() {
    let (_fixture, _client, server) = serve();
    let mut fits = br#"{"action":"search","query":"pliox"}"#.to_vec();
    fits.resize(64 * 1024, b' ');
    assert_eq!(fetch(&server, "POST", PATH, &fits).status, 200);
    fits.push(b' ');
    let answer = fetch(&server, "POST", PATH, &fits);
    assert_eq!((answer.status, &answer.json()["success"]), (413, &json!(false)));
    let mut chunked =
        format!("POST {PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
            .into_bytes();
    for _ in 0..65 {
        chunked.extend_from_slice(b"400\r\n");
        chunked.extend_from_slice(&[b' '; 1024]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    assert_eq!(http_client::send(server.address(), &chunked).status, 413);
}

#[test]
fn routes_can_be_mounted_one_by_one() {
    let fixture = Fixture::of(Catalog::of(20).rows());
    let client = Client::open(fixture.config()).expect("opens");
    for mounted in EndpointRoute::ALL {
        let server = Server::of(townsquare::http::endpoint_router(client.inner().clone(), mounted));
        for route in EndpointRoute::ALL {
            let path = route.path().replace("{id}", &Catalog::of(20).app(0).id);
            let expected = if route == mounted { 200 } else { 404 };
            assert_eq!(fetch(&server, "GET", &path, b"").status, expected, "{path} of {mounted:?}");
            assert_eq!(fetch(&server, "GET", &format!("{path}/"), b"").status, expected, "{path}/ of {mounted:?}");
        }
    }
}

#[test]
fn other_paths_are_404() {
    let (_fixture, _client, server) = serve();
    for target in ["/", "/api", "/api/miniapp-discovery/x", "/api/other"] {
        assert_eq!(fetch(&server, "GET", target, b"").status, 404, "{target}");
    }
}

#[test]
fn raw_bytes_in_the_target_do_not_stop_the_server() {
    let (_fixture, _client, server) = serve();
    for query in [&b"limit=\xff\xfe"[..], b"category=\xc3\x28", b"limit=%00", b"a=%", b"limit=5&limit=6", b"%ff%fe=%zz"]
    {
        let mut target = format!("{PATH}?").into_bytes();
        target.extend_from_slice(query);
        let status = http_client::request(server.address(), "GET", &target, b"").status;
        assert!([200, 400].contains(&status), "{query:?}: {status}");
    }
    let long = format!("{PATH}?x={}", "y".repeat(900_000));
    let status = fetch(&server, "GET", &long, b"").status;
    assert!((200..500).contains(&status), "{status}");
    assert_eq!(fetch(&server, "GET", PATH, b"").status, 200);
}

#[test]
fn a_closed_client_is_503() {
    let (_fixture, client, server) = serve();
    assert_eq!(fetch(&server, "GET", PATH, b"").status, 200);
    client.close();
    assert_eq!(fetch(&server, "GET", PATH, b"").status, 503);
}
