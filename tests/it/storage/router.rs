//! Files over HTTP: the axum router of feature `http`.

use std::{
    io::Write as _,
    net::{Shutdown, SocketAddr, TcpStream},
};

use townsquare::{blocking::Client, http::files_router, storage::UrlMethod};
use townsquare_tests::{
    http_client::{self, Response},
    http_server::Server,
    on_both_engines,
};

use super::requests::{Sender, send, store};

fn serve(client: &Client) -> Server {
    Server::of(files_router(client.inner().clone()))
}

fn fetch(server: &Server, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let mut request = head(server.address(), method, target, headers, &format!("Content-Length: {}", body.len()));
    request.extend_from_slice(body);
    http_client::send(server.address(), &request)
}

/// The head of a request on a connection of its own.
fn head(address: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)], framing: &str) -> Vec<u8> {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{lines}{framing}\r\n\r\n")
        .into_bytes()
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|index| (index % 251) as u8).collect()
}

on_both_engines! {
    fn the_router_answers_like_handle_file(db: &TestDatabase) {
        let (ann, server) = (Sender::new(db, "ann"), serve(&db.client));
        store(db, "assets", "icons/cat 1.png", b"0123456789");
        let bearer = ann.bearer();
        for (method, target, headers) in [
            ("GET", "/assets/icons/cat%201.png", vec![]),
            ("GET", "/assets/icons/cat%201.png?v=2", vec![bearer]),
            ("HEAD", "/assets/icons/cat%201.png", vec![]),
            ("GET", "/assets/icons/cat%201.png", vec![("Range", "bytes=2-4")]),
            ("GET", "/assets/icons/cat%201.png", vec![("Range", "bytes=20-")]),
            ("GET", "/assets/icons/cat%201.png", vec![("If-None-Match", "*")]),
            ("GET", "/assets/icons/cat%201.png", vec![("If-Match", "\"x\"")]),
            ("GET", "/assets/icons/cat%201.png", vec![("Authorization", "Bearer x")]),
            ("GET", "/assets/none", vec![]),
            ("GET", "/assets/a%2fb", vec![]),
            ("GET", "/assets/%2e%2e/%2e%2e/etc/passwd", vec![]),
            ("GET", "/assets/a%00", vec![]),
            ("GET", "/assets/", vec![]),
            ("GET", "/nowhere/x", vec![]),
            ("DELETE", "/assets/icons/cat%201.png", vec![]),
            ("DELETE", "/assets/icons/cat%201.png", vec![bearer]),
            ("OPTIONS", "/assets/x", vec![]),
            ("POST", "/assets/x", vec![bearer]),
        ] {
            let direct = send(&db.client, method, target, &headers, b"");
            let served = fetch(&server, method, &format!("/files{target}"), &headers, b"");
            assert_eq!((served.status, &served.body), (direct.status, &direct.body), "{method} {target} {headers:?}");
            for (name, value) in &direct.headers {
                assert_eq!(served.header(name), Some(value.as_str()), "{method} {target} {headers:?}");
            }
        }
    }

    fn large_files_stream_both_ways(db: &TestDatabase) {
        let (ann, server) = (Sender::new(db, "ann"), serve(&db.client));
        let large = content(3 << 20);
        let put = fetch(&server, "PUT", "/files/assets/films/large", &[ann.bearer()], &large);
        assert_eq!(put.status, 201, "{put:?}");
        let got = fetch(&server, "GET", "/files/assets/films/large", &[], b"");
        assert_eq!((got.status, got.body.len()), (200, large.len()));
        assert!(got.body == large, "the same bytes");
        let part = fetch(&server, "GET", "/files/assets/films/large", &[("Range", "bytes=1000000-2999999")], b"");
        assert_eq!(part.status, 206);
        assert!(part.body == large[1_000_000..3_000_000], "the same bytes");
    }

    fn a_chunked_body_is_stored(db: &TestDatabase) {
        let (ann, server) = (Sender::new(db, "ann"), serve(&db.client));
        let mut request = head(server.address(), "PUT", "/files/assets/x", &[ann.bearer()], "Transfer-Encoding: chunked");
        request.extend_from_slice(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
        assert_eq!(http_client::send(server.address(), &request).status, 201);
        assert_eq!(fetch(&server, "GET", "/files/assets/x", &[], b"").body, b"abcde");
    }

    fn an_upload_that_the_client_breaks_off_leaves_the_old_file(db: &TestDatabase) {
        let (ann, server) = (Sender::new(db, "ann"), serve(&db.client));
        assert_eq!(fetch(&server, "PUT", "/files/assets/x", &[ann.bearer()], b"old").status, 201);
        let mut request = head(server.address(), "PUT", "/files/assets/x", &[ann.bearer()], "Content-Length: 1000000");
        request.extend_from_slice(&content(200_000));
        let mut connection = TcpStream::connect(server.address()).expect("the server listens");
        connection.write_all(&request).expect("sent");
        connection.shutdown(Shutdown::Write).expect("broken off");
        // The server closes its side when the request is over.
        let _ = std::io::copy(&mut connection, &mut std::io::sink());
        assert_eq!(fetch(&server, "GET", "/files/assets/x", &[], b"").body, b"old");
    }

    fn a_body_over_the_limit_is_refused_without_reading_it_all(db: &TestDatabase) {
        let small = Client::open(db.config().max_file_size(1_000)).expect("opens");
        let (ann, server) = (Sender::new(db, "ann"), serve(&small));
        let put = fetch(&server, "PUT", "/files/assets/x", &[ann.bearer()], &content(2_000));
        assert_eq!((put.status, put.json()["error"].as_str()), (413, Some("File too large")));
        assert_eq!(fetch(&server, "GET", "/files/assets/x", &[], b"").status, 404);
        drop(server);
        small.close();
    }

    fn a_signed_url_is_served_below_files(db: &TestDatabase) {
        let (ann, server) = (Sender::new(db, "ann"), serve(&db.client));
        let path = format!("{}/notes/caf\u{e9} 1.txt", ann.id);
        store(db, "private", &path, b"secret");
        let hour = std::time::Duration::from_secs(3_600);
        let url = ann.client.storage().signed_url("private", &path, UrlMethod::Get, hour).expect("signed");
        let served = fetch(&server, "GET", &format!("/files{url}"), &[], b"");
        assert_eq!((served.status, &served.body[..]), (200, &b"secret"[..]));
    }
}
