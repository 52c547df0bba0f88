//! The tests of `serve --admin`.

mod access;
mod browser;
mod pages;
mod streams;

use std::{collections::BTreeSet, net::SocketAddr, process::Command};

use townsquare::{
    Config, Uuid,
    blocking::Client,
    communities::{CommunityPatch, DomainType, NewRegistration, SpaceType},
    spaces::{Change, NewFidget, NewSpace},
    storage::UploadOptions,
};
use townsquare_tests::{
    http_client::{self, Response},
    raw_sql::quoted,
    test_database::{EmptyDatabase, Engine},
};

use crate::{fixture::Fixture, serve::Server};

/// A text that would run in a browser if a page did not escape it.
const HOSTILE: &str = r#"<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'"&amp;"#;

/// The beginnings of [`HOSTILE`] that no page has.
const UNESCAPED: [&str; 2] = ["<img src=x", "<script>window"];

/// A server with an admin page.
struct AdminServer {
    server: Server,
    address: SocketAddr,
    /// The path of the page.
    base: String,
    token: String,
}

impl AdminServer {
    fn start(town: &Fixture) -> AdminServer {
        AdminServer::of(town.command(&["serve", "--listen", "127.0.0.1:0", "--admin"]))
    }

    fn of(command: Command) -> AdminServer {
        let mut server = Server::of(command);
        let line = server.line();
        let address = server.address.parse().expect("an address");
        let rest = line.strip_prefix(&format!("http://{address}")).unwrap_or_else(|| panic!("an address: {line:?}"));
        let (base, token) = rest.split_once("?token=").unwrap_or_else(|| panic!("a token: {line:?}"));
        AdminServer { address, base: base.to_owned(), token: token.to_owned(), server }
    }

    /// Sends a request with these lines after `Host`.
    fn send(&self, method: &str, path: &str, host: &str, lines: &[String]) -> Response {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{lines}Connection: close\r\n\r\n");
        http_client::send(self.address, request.as_bytes())
    }

    /// The header that a browser sends after it was opened with the token.
    fn cookie(&self) -> String {
        let response = self.send("GET", &format!("{}?token={}", self.base, self.token), &self.address.to_string(), &[]);
        assert_eq!((response.status, response.header("location")), (303, Some(&*self.base)));
        let cookie = response.header("set-cookie").expect("a cookie").split(';').next().unwrap_or_default().to_owned();
        format!("Cookie: {cookie}")
    }

    /// The response to a browser that has the cookie.
    fn get(&self, path: &str) -> Response {
        self.send("GET", path, &self.address.to_string(), &[self.cookie()])
    }

    /// A page with the status 200.
    #[track_caller]
    fn page(&self, path: &str) -> String {
        let response = self.get(&format!("{}{path}", self.base));
        let text = String::from_utf8(response.body.clone()).expect("UTF-8");
        assert_eq!(response.status, 200, "{path}: {text}");
        text
    }

    /// Every page that links lead to, with its path. Downloads and streams are no pages.
    fn crawl(&self) -> Vec<(String, String)> {
        let mut known: BTreeSet<String> = BTreeSet::from([self.base.clone()]);
        let (mut waiting, mut pages) = (vec![self.base.clone()], Vec::new());
        while let Some(path) = waiting.pop() {
            let response = self.get(&path);
            let text = String::from_utf8_lossy(&response.body).into_owned();
            assert_eq!(response.status, 200, "{path}: {text}");
            for link in links(&text) {
                assert!(link.starts_with(&self.base) || link.starts_with('#'), "{path}: {link}");
                if link.starts_with(&self.base) && !link.contains("/download") && known.insert(link.clone()) {
                    waiting.push(link);
                }
            }
            pages.push((path, text));
        }
        pages
    }
}

/// The addresses that a page links to.
fn links(page: &str) -> Vec<String> {
    let links = page.split("<a ").skip(1).filter_map(|tag| tag.split_once("href=\"")?.1.split('"').next());
    links.map(|link| link.replace("&amp;", "&")).collect()
}

/// A database with hostile texts in every column that takes text, and the secrets of its accounts.
struct Populated {
    town: Fixture,
    database: EmptyDatabase,
    space: Uuid,
    user: Uuid,
    secrets: Vec<String>,
}

impl Populated {
    /// `None` if the engine is not installed.
    fn on(engine: Engine) -> Option<Populated> {
        let (town, database) = (Fixture::new(), EmptyDatabase::on(engine)?);
        let config = Config::new().database_url(database.url()).data_dir(town.path("town")).catalog_url("sample:");
        let client = Client::open(config).expect("opens");
        client.realtime().start().expect("the feed starts");
        let service = client.as_service();
        let user = service.auth().sign_up("ann@town.example", "correct horse battery").expect("a user").id;
        let session = service.auth().create_session("ann@town.example", "correct horse battery").expect("a session");
        let space = NewSpace::named(HOSTILE).description(HOSTILE).owned_by(user);
        let space = service.spaces().create_space(space).expect("a space").id;
        let json = serde_json::json!({ HOSTILE: [HOSTILE, { "many": "lines\n".repeat(20) }] });
        let fidget = NewFidget::of_type(HOSTILE).config(json.clone()).position(json);
        service.fidgets().create_fidget(space, fidget).expect("a fidget");
        let communities = service.communities();
        let part = || serde_json::json!({ "name": HOSTILE });
        let mut config = CommunityPatch::with_required(part(), part(), part(), part());
        config.admin_email = Change::Set(HOSTILE.to_owned());
        communities.save_community_config("harbor", config).expect("a configuration");
        communities.save_community_domain("harbor", "harbor.example", DomainType::Custom).expect("a domain");
        let registration = NewRegistration::new(space, HOSTILE, SpaceType::Profile);
        communities.register_space(registration).expect("a registration");
        let hostile = || UploadOptions::new().content_type("text/html").metadata("note", HOSTILE);
        let files = service.storage();
        for (bucket, path) in [
            ("assets", "a&b=\"c' <b>?#%41+ü.html".to_owned()),
            ("assets", "folder <i>/deep/page.html".to_owned()),
            ("private", format!("{user}/homebase")),
            ("spaces", format!("{space}/tabs/Home")),
        ] {
            files.upload(bucket, &path, HOSTILE, hostile()).expect("a file");
        }
        let raw = database.raw();
        let mut secrets =
            vec!["correct horse battery".to_owned(), session.access_token.clone(), session.refresh_token.clone()];
        for (column, table) in [
            ("password_hash", "credentials"),
            ("access_hash", "sessions"),
            ("refresh_hash", "sessions"),
            ("url_key", "database"),
            ("cursor_key", "database"),
        ] {
            let separator = if engine == Engine::Postgres { '.' } else { '_' };
            let found = raw.rows(&format!("SELECT {column} FROM townsquare{separator}{table}"));
            let values: Vec<_> = found.into_iter().flatten().flatten().filter(|value| value.len() > 15).collect();
            assert!(!values.is_empty(), "{table}.{column} has a secret");
            secrets.extend(values);
        }
        client.close();
        raw.run(&format!("UPDATE users SET email = {}", quoted(HOSTILE)));
        Some(Populated { town, database, space, user, secrets })
    }

    fn command(&self) -> Command {
        let mut command = self.town.command(&["serve", "--listen", "127.0.0.1:0", "--admin"]);
        command.env("TOWNSQUARE_DATABASE_URL", self.database.url());
        command
    }
}
