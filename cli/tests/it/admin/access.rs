//! Who reads the admin page.

use townsquare_tests::http_client;

use super::AdminServer;
use crate::{fixture::Fixture, serve::Server};

#[test]
fn only_a_browser_of_this_machine_with_the_token_gets_a_page() {
    let town = Fixture::new();
    let admin = AdminServer::start(&town);
    let (own, cookie) = (admin.address.to_string(), admin.cookie());
    assert_eq!(admin.token.len(), 64);
    let with = |line: &str| vec![cookie.clone(), line.to_owned()];
    let token = format!("/admin?token={}", admin.token);
    let slash = format!("/admin/?token={}", admin.token);
    let wrong = format!("/admin?token={}", "0".repeat(64));
    for (what, method, path, host, lines, status) in [
        ("the cookie", "GET", "/admin", &*own, vec![cookie.clone()], 200),
        ("HEAD", "HEAD", "/admin", &own, vec![cookie.clone()], 200),
        ("another cookie before it", "GET", "/admin", &own, vec![cookie.replace("Cookie: ", "Cookie: a=b; ")], 200),
        ("localhost", "GET", "/admin", "localhost:3000", vec![cookie.clone()], 200),
        ("its own page", "GET", "/admin", &own, with("Sec-Fetch-Site: same-origin"), 200),
        ("a typed address", "GET", &token, &own, vec!["Sec-Fetch-Site: none".to_owned()], 303),
        ("no token", "GET", "/admin", &own, vec![], 401),
        ("a slash at the end", "GET", "/admin/", &own, vec![cookie.clone()], 200),
        ("a slash and the token", "GET", &slash, &own, vec![], 303),
        ("a slash and no token", "GET", "/admin/", &own, vec![], 401),
        ("a slash and another host", "GET", "/admin/", "town.example", vec![cookie.clone()], 403),
        ("POST with a slash", "POST", "/admin/", &own, vec![cookie.clone()], 405),
        ("no token on another page", "GET", "/admin/users", &own, vec![], 401),
        ("no token on a page that does not exist", "GET", "/admin/nothing", &own, vec![], 401),
        ("no token for the script", "GET", "/admin/page.js", &own, vec![], 401),
        ("no token for the stream", "GET", "/admin/changes/stream", &own, vec![], 401),
        ("a wrong token", "GET", &wrong, &own, vec![], 401),
        ("a wrong token with the cookie", "GET", &wrong, &own, vec![cookie.clone()], 401),
        ("a part of the token", "GET", &token[..token.len() - 1], &own, vec![], 401),
        ("a wrong cookie", "GET", "/admin", &own, vec![format!("{cookie}0")], 401),
        ("the cookie with another name", "GET", "/admin", &own, vec![cookie.replace("admin_", "admin_1")], 401),
        ("the token as a bearer", "GET", "/admin", &own, vec![format!("Authorization: Bearer {}", admin.token)], 401),
        ("another name of the host", "GET", "/admin", "town.example", vec![cookie.clone()], 403),
        ("another name with the token", "GET", &token, "town.example:3000", vec![], 403),
        ("a name that begins with a loopback", "GET", "/admin", "127.0.0.1.town.example", vec![cookie.clone()], 403),
        ("two hosts", "GET", "/admin", &own, with("Host: town.example"), 403),
        ("another site", "GET", "/admin", &own, with("Sec-Fetch-Site: cross-site"), 403),
        ("a page of another origin", "GET", "/admin", &own, with("Origin: http://town.example"), 403),
        ("a page without an origin", "GET", "/admin", &own, with("Origin: null"), 403),
        ("the own origin", "GET", "/admin", &own, with(&format!("Origin: http://{own}")), 200),
        ("another port", "GET", "/admin", &own, with("Sec-Fetch-Site: same-site"), 403),
        ("another site with the token", "GET", &token, &own, vec!["Sec-Fetch-Site: cross-site".to_owned()], 403),
        ("a proxy", "GET", "/admin", &own, with("X-Forwarded-For: 10.0.0.1"), 403),
        ("a proxy that names the host", "GET", "/admin", &own, with("X-Forwarded-Host: town.example"), 403),
        ("a content delivery network", "GET", "/admin", &own, with("CF-Connecting-IP: 10.0.0.1"), 403),
        ("another delivery network", "GET", "/admin", &own, with("True-Client-IP: 10.0.0.1"), 403),
        ("a load balancer", "GET", "/admin", &own, with("X-Client-IP: 10.0.0.1"), 403),
        ("another load balancer", "GET", "/admin", &own, with("X-ProxyUser-Ip: 10.0.0.1"), 403),
        ("a proxy of RFC 7239", "GET", "/admin", &own, with("Forwarded: for=10.0.0.1"), 403),
        ("a proxy that names itself", "GET", "/admin", &own, with("Via: 1.1 proxy"), 403),
        ("a proxy with the token", "GET", &token, &own, vec!["X-Forwarded-Proto: https".to_owned()], 403),
        ("POST", "POST", "/admin", &own, vec![cookie.clone()], 405),
        ("DELETE", "DELETE", "/admin/users", &own, vec![cookie.clone()], 405),
        ("OPTIONS", "OPTIONS", "/admin", &own, vec![cookie.clone()], 405),
        ("PUT with the token", "PUT", &token, &own, vec![], 405),
    ] {
        let response = admin.send(method, path, host, &lines);
        let text = String::from_utf8_lossy(&response.body);
        assert_eq!(response.status, status, "{what}: {text}");
        assert_eq!(response.header("cache-control"), Some("no-store"), "{what}");
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"), "{what}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{what}");
        let policy = response.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{what}: {policy}");
        assert!(!policy.contains("unsafe"), "{what}: {policy}");
        assert!(response.header("access-control-allow-origin").is_none(), "{what}");
        if status >= 400 {
            assert!(text.starts_with("The admin page ") && text.ends_with(".\n"), "{what}: {text}");
            assert!(response.header("set-cookie").is_none(), "{what}");
        }
    }
    let raw = format!("GET http://town.example/admin HTTP/1.1\r\nHost: {own}\r\n{cookie}\r\nConnection: close\r\n\r\n");
    assert_eq!(http_client::send(admin.address, raw.as_bytes()).status, 403, "a target with another host");
    let raw = format!("GET /admin HTTP/1.0\r\n{cookie}\r\n\r\n");
    assert_eq!(http_client::send(admin.address, raw.as_bytes()).status, 403, "no host");
}

#[test]
fn the_cookie_is_for_scripts_and_other_sites_out_of_reach() {
    let town = Fixture::new();
    let admin = AdminServer::start(&town);
    let response = admin.send("GET", &format!("/admin?token={}", admin.token), &admin.address.to_string(), &[]);
    let cookie = response.header("set-cookie").expect("a cookie");
    let name = format!("townsquare_admin_{}", admin.address.port());
    assert_eq!(cookie, format!("{name}={}; Path=/admin; HttpOnly; SameSite=Strict", admin.token));
    assert!(response.body.is_empty());
}

#[test]
fn a_cookie_of_another_run_is_refused() {
    let town = Fixture::new();
    let first = AdminServer::start(&town);
    let (token, old) = (first.token.clone(), first.cookie());
    drop(first);
    let second = AdminServer::start(&town);
    assert_ne!(second.token, token);
    let own = second.address.to_string();
    let forged = format!("Cookie: townsquare_admin_{}={token}", second.address.port());
    for lines in [vec![old], vec![forged]] {
        assert_eq!(second.send("GET", "/admin", &own, &lines).status, 401, "{lines:?}");
    }
    assert_eq!(second.send("GET", &format!("/admin?token={token}"), &own, &[]).status, 401);
}

#[test]
fn the_page_needs_an_address_of_the_loopback() {
    let town = Fixture::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let ran = town.run(&["serve", "--admin", "--listen", address]);
        ran.failed(2, "The admin page is for this machine alone");
    }
    assert!(!town.path("town").exists(), "nothing was opened");
}

#[test]
fn without_the_option_there_is_no_page() {
    let town = Fixture::new();
    let server = Server::start(&town, &[]);
    let address = server.address.parse().expect("an address");
    for path in ["/admin", "/admin/", "/admin/users", "/admin?token=x"] {
        assert_eq!(http_client::request(address, "GET", path.as_bytes(), b"").status, 404, "{path}");
    }
}

#[test]
fn the_other_endpoints_need_no_token() {
    let town = Fixture::new();
    let admin = AdminServer::start(&town);
    for path in ["/health", "/ready", "/metrics"] {
        assert_eq!(
            admin.send("GET", path, "town.example", &["X-Forwarded-For: 10.0.0.1".to_owned()]).status,
            200,
            "{path}"
        );
    }
}

#[test]
fn the_page_stands_behind_the_prefix() {
    let town = Fixture::new();
    let mut command = town.command(&["serve", "--listen", "127.0.0.1:0", "--admin", "--prefix", "/town"]);
    let admin = AdminServer::of({
        command.env("TOWNSQUARE_CATALOG_URL", "sample:");
        command
    });
    assert_eq!(admin.base, "/town/admin");
    let pages = admin.crawl();
    assert!(pages.iter().any(|(path, _)| path == "/town/admin/metrics"), "{:?}", pages.len());
    assert_eq!(admin.get("/admin").status, 404);
    assert_eq!(admin.get("/town/admin/page.css").status, 200);
    assert_eq!(admin.get("/town/admin/").status, 200);
}

#[test]
fn json_has_both_addresses() {
    let town = Fixture::new();
    let mut command = town.command(&["serve", "--listen", "127.0.0.1:0", "--admin", "--json"]);
    let mut process = command.spawn().expect("it starts");
    let mut line = String::new();
    let mut out = std::io::BufReader::new(process.stdout.take().expect("a pipe"));
    std::io::BufRead::read_line(&mut out, &mut line).expect("a line");
    let _ = process.kill();
    let _ = process.wait();
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let (url, admin_url) = (line["url"].as_str().expect("a URL"), line["admin_url"].as_str().expect("a URL"));
    assert!(admin_url.starts_with(&format!("{url}/admin?token=")), "{admin_url}");
}
