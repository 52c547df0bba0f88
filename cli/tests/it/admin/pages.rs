//! What the pages show.

use std::fs;

use serde_json::{Value, json};
use townsquare::{
    Config, Uuid,
    blocking::Client,
    rows::ImportOptions,
    spaces::{NewFidget, NewSpace},
    storage::UploadOptions,
};
use townsquare_tests::{http_client, test_database::Engine};

use super::{AdminServer, HOSTILE, Populated, UNESCAPED, links};
use crate::fixture::Fixture;

const PLANTED: &str = "planted-secret-planted-secret-planted-secret";

fn hostile_texts_and_secrets_on(engine: Engine) {
    let Some(mut populated) = Populated::on(engine) else { return };
    let mut command = populated.command();
    // Secrets of the configuration, and a source that fails.
    command.env("CATALOG_API_KEY", PLANTED).env("TOWNSQUARE_URL_SIGNING_KEY", PLANTED);
    command.env("TOWNSQUARE_CATALOG_URL", format!("http://user:{PLANTED}@127.0.0.1:1/{PLANTED}"));
    command.env("TOWNSQUARE_CATALOG_TRIES", "1");
    if engine == Engine::Postgres {
        let url = populated.database.url().replacen('@', &format!(":{PLANTED}@"), 1);
        command.env("TOWNSQUARE_DATABASE_URL", url);
    }
    let admin = AdminServer::of(command);
    http_client::request(admin.address, "GET", b"/api/miniapp-discovery", b"");
    populated.secrets.extend([PLANTED.to_owned(), admin.token.clone()]);
    // A change with hostile texts.
    let config = Config::new().database_url(populated.database.url()).data_dir(populated.town.path("town"));
    let client = Client::open(config.catalog_url("sample:")).expect("opens");
    client.as_service().spaces().create_space(NewSpace::named(HOSTILE)).expect("a space");
    client.close();
    Fixture::wait_until(|| admin.page("/changes").contains("INSERT"));

    let mut pages = admin.crawl();
    for path in [
        "/nothing%3Cscript%3Ewindow",
        "/files/%3Cscript%3Ewindow",
        "/file?bucket=%3Cscript%3Ewindow&path=x",
        "/file?bucket=assets&path=%3Cscript%3Ewindow",
        "/users?after=%3Cscript%3Ewindow",
    ] {
        let response = admin.get(&format!("/admin{path}"));
        assert!(matches!(response.status, 400 | 404), "{path}: {}", response.status);
        pages.push((path.to_owned(), String::from_utf8_lossy(&response.body).into_owned()));
    }
    for path in [
        "/changes?table=%3Cscript%3Ewindow",
        "/files/assets?prefix=%3Cscript%3Ewindow",
        "/users?find=%3Cscript%3Ewindow",
        "/spaces?find=%3Cscript%3Ewindow",
    ] {
        pages.push((path.to_owned(), admin.page(path)));
    }
    for (path, page) in &pages {
        for part in UNESCAPED {
            assert!(!page.contains(part), "{path} has {part}: {page}");
        }
        for secret in &populated.secrets {
            assert!(!page.contains(secret.as_str()), "{path} has the secret {secret}");
        }
    }
    let page = |path: &str| {
        &pages
            .iter()
            .find(|(known, _)| known == path)
            .unwrap_or_else(|| panic!("{path}: {:?}", pages.iter().map(|(path, _)| path).collect::<Vec<_>>()))
            .1
    };
    let escaped = "&lt;img src=x onerror=";
    let (user, space) = (format!("/admin/users/{}", populated.user), format!("/admin/spaces/{}", populated.space));
    for (path, least) in [
        ("/admin/users", 1),
        (&user, 2),
        ("/admin/spaces", 1),
        (&space, 4),
        ("/admin/communities", 6),
        ("/admin/changes", 1),
    ] {
        let found = page(path).matches(escaped).count();
        assert!(found >= least, "{path} shows {found} hostile texts: {}", page(path));
    }
    assert!(page(&user).contains(&format!("href=\"{space}\"")) && page(&space).contains(&format!("href=\"{user}\"")));
    let previews: Vec<_> = pages.iter().filter(|(path, _)| path.starts_with("/admin/file?")).collect();
    assert_eq!(previews.len(), 4, "each file has a page");
    for (path, preview) in previews {
        assert!(preview.matches("&lt;script&gt;").count() >= 2, "{path} shows the text and the metadata: {preview}");
    }
    assert!(page("/admin/catalog").contains("class=\"error\""), "{}", page("/admin/catalog"));
    if engine == Engine::Postgres {
        assert!(
            page("/admin").contains("PostgreSQL, postgres://") && page("/admin").contains(":***@"),
            "{}",
            page("/admin")
        );
    }
}

#[test]
fn no_page_has_an_unescaped_text_or_a_secret() {
    hostile_texts_and_secrets_on(Engine::Sqlite);
}

#[test]
fn no_page_has_an_unescaped_text_or_a_secret_on_postgres() {
    hostile_texts_and_secrets_on(Engine::Postgres);
}

#[test]
fn no_page_changes_a_row() {
    let town = Fixture::seeded();
    let source = town.file("a.txt", "hello");
    town.run(&["files", "put", &source, "assets/a.txt"]).succeeded();
    let state =
        || [&["export"][..], &["files", "ls", "assets", "--json"]].map(|command| town.run(command).succeeded().out);
    let before = state();
    let admin = AdminServer::start(&town);
    assert!(admin.crawl().len() > 20);
    drop(admin);
    assert_eq!(state(), before);
}

/// The rows of the table of a page.
fn rows(page: &str) -> usize {
    page.matches("<tr>").count().saturating_sub(1)
}

/// The number of rows of a page and of the pages after it.
fn pages_of(admin: &AdminServer, path: &str) -> Vec<usize> {
    let mut counts = Vec::new();
    let mut next = Some(format!("{}{path}", admin.base));
    while let Some(path) = next {
        let response = admin.get(&path);
        let page = String::from_utf8(response.body).expect("UTF-8");
        assert_eq!(response.status, 200, "{path}: {page}");
        counts.push(rows(&page));
        let begin = page.find("rel=\"next\"");
        next = begin.and_then(|place| links(&page[page[..place].rfind("<a ")?..]).into_iter().next());
    }
    counts
}

#[test]
fn lists_have_pages_of_a_hundred_rows() {
    let town = Fixture::new();
    let client = Client::open(Config::new().data_dir(town.path("town")).catalog_url("sample:")).expect("opens");
    let service = client.as_service();
    let time = "2026-01-02T03:04:05Z";
    let user = |number| {
        let email = format!("u{number}@town.example");
        match json!({ "id": Uuid::new_v4(), "email": email, "created_at": time, "updated_at": time }) {
            Value::Object(row) => row,
            _ => unreachable!("an object"),
        }
    };
    service.import_rows("users", (0..200).map(user).collect(), ImportOptions::new()).expect("users");
    let spaces = (0..101).map(|number| NewSpace::named(format!("Space {number}"))).collect();
    let spaces = service.spaces().create_spaces(spaces).expect("spaces");
    let fidgets = (0..205).map(|_| NewFidget::of_type("clock")).collect();
    service.fidgets().create_fidgets(spaces[0].id, fidgets).expect("fidgets");
    for number in 0..130 {
        for path in [format!("one/{number}"), format!("many {number:03}/a"), format!("many {number:03}/b")] {
            service.storage().upload("assets", &path, "x", UploadOptions::new()).expect("a file");
        }
    }
    service.storage().upload("assets", "z", "x", UploadOptions::new()).expect("a file");
    client.close();

    let admin = AdminServer::start(&town);
    assert_eq!(pages_of(&admin, "/users"), [100, 100]);
    assert_eq!(pages_of(&admin, "/spaces"), [100, 1]);
    let fidgets: Vec<_> = pages_of(&admin, &format!("/spaces/{}", spaces[0].id));
    assert_eq!(fidgets, [100, 100, 5]);
    // 130 folders, the folder `one` and the file `z`: a folder is one row, however many files it has.
    assert_eq!(pages_of(&admin, "/files/assets"), [100, 32]);
    assert_eq!(pages_of(&admin, "/files/assets?prefix=one/"), [100, 30]);
    assert_eq!(pages_of(&admin, "/files/assets?prefix=many+000/"), [2]);
    let overview = admin.page("");
    assert!(overview.contains(">200<") && overview.contains(">101<") && overview.contains("391"), "{overview}");

    // An id opens its page; a part of a name or an address lists what has it.
    assert_eq!(pages_of(&admin, "/users?find=U19"), [11]);
    assert_eq!(pages_of(&admin, "/users?find=town.example"), [100]);
    assert!(admin.page("/users?find=town.example").contains("The first 100 that match."));
    assert_eq!(pages_of(&admin, "/spaces?find=space+77"), [1]);
    assert!(admin.page("/spaces?find=castle").contains("None."));
    assert!(admin.page(&format!("/spaces?find={}", spaces[7].id)).contains("Fidgets"));
    assert_eq!(admin.get(&format!("/admin/users?find={}", spaces[7].id)).status, 404);
}

#[test]
fn a_file_is_shown_as_text_or_image_or_not_at_all() {
    let town = Fixture::new();
    let client = Client::open(Config::new().data_dir(town.path("town")).catalog_url("sample:")).expect("opens");
    let service = client.as_service();
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let long = "é".repeat(100_000);
    for (path, bytes, kind) in [
        ("page.html", b"<p>hello <script>1</script>".to_vec(), "text/html"),
        ("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg' onload='1'/>".to_vec(), "image/svg+xml"),
        ("image.png", png.to_vec(), "image/png"),
        ("image.html", png.to_vec(), "text/html"),
        ("html.png", b"<script>1</script>".to_vec(), "image/png"),
        ("large.png", [png, &vec![0; (10 << 20) - png.len()][..]].concat(), "image/png"),
        ("shown.png", [png, &vec![0; (10 << 20) - png.len() - 1][..]].concat(), "image/png"),
        ("long.txt", long.into_bytes(), "text/plain"),
        ("binary", vec![0, 1, 2, 255], "application/octet-stream"),
        ("empty", Vec::new(), "text/plain"),
        ("name \"*' ü.txt", b"x".to_vec(), "text/plain"),
    ] {
        service.storage().upload("assets", path, bytes, UploadOptions::new().content_type(kind)).expect("a file");
    }
    client.close();
    let admin = AdminServer::start(&town);
    let page = |path: &str| admin.page(&format!("/file?bucket=assets&path={path}"));
    assert!(page("page.html").contains("<pre tabindex=\"0\">&lt;p&gt;hello &lt;script&gt;1&lt;/script&gt;</pre>"));
    let drawing = page("drawing.svg");
    assert!(drawing.contains("&lt;svg xmlns") && !drawing.contains("<svg") && !drawing.contains("<img"), "{drawing}");
    for path in ["image.png", "image.html"] {
        assert!(
            page(path).contains(&format!("<img src=\"/admin/file/image?bucket=assets&amp;path={path}\"")),
            "{path}"
        );
    }
    let large = page("large.png");
    assert!(!large.contains("<img") && large.contains("/admin/file/image?"), "{large}");
    assert!(page("shown.png").contains("<img"));
    assert!(!page("html.png").contains("<img") && page("html.png").contains("&lt;script&gt;"));
    let long = page("long.txt");
    assert!(
        long.contains(&"é".repeat(32_768))
            && !long.contains(&"é".repeat(32_769))
            && long.contains("The first 65,536 bytes")
    );
    assert!(page("binary").contains("No preview"));
    assert!(page("empty").contains("<pre tabindex=\"0\"></pre>"));

    let get = |kind: &str, path: &str| admin.get(&format!("/admin/file/{kind}?bucket=assets&path={path}"));
    for path in ["image.png", "image.html"] {
        let image = get("image", path);
        assert_eq!((image.status, image.header("content-type"), &image.body[..]), (200, Some("image/png"), &png[..]));
        let policy = image.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("sandbox") && policy.contains("default-src 'none'"), "{policy}");
        assert_eq!(image.header("x-content-type-options"), Some("nosniff"));
    }
    for path in ["page.html", "drawing.svg", "html.png", "binary"] {
        let refused = get("image", path);
        assert_eq!(refused.status, 400, "{path}");
        assert!(!String::from_utf8_lossy(&refused.body).contains("<script>1"), "{path}");
    }
    for path in ["page.html", "drawing.svg", "image.png", "binary"] {
        let download = get("download", path);
        assert_eq!(
            (download.status, download.header("content-type")),
            (200, Some("application/octet-stream")),
            "{path}"
        );
        assert_eq!(download.header("content-disposition"), Some(&*format!("attachment; filename*=UTF-8''{path}")));
        assert!(download.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")), "{path}");
    }
    assert_eq!(get("download", "page.html").body, b"<p>hello <script>1</script>");
    assert_eq!(get("download", "long.txt").body.len(), 200_000);
    let named = get("download", "name+%22*%27+%C3%BC.txt");
    assert_eq!(named.header("content-disposition"), Some("attachment; filename*=UTF-8''name%20%22%2A%27%20%C3%BC.txt"));
    for path in ["nothing", "../town", "a//b", ""] {
        for page in ["file", "file/image", "file/download"] {
            let response = admin.get(&format!("/admin/{page}?bucket=assets&path={path}"));
            assert!(matches!(response.status, 400 | 404), "{page} {path}: {}", response.status);
        }
    }
}

#[test]
fn findings_are_shown_with_advice_and_one_check_serves_many_pages() {
    let town = Fixture::seeded();
    let large = town.file("large", &"x".repeat(100_000));
    town.run(&["files", "put", &large, "assets/large"]).succeeded();
    fs::write(town.path("town/files/assets/stray <b>"), "x").expect("a file");
    let admin = AdminServer::start(&town);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let page = admin.page("/check");
                assert!(
                    page.contains("orphan_object") && page.contains("stray &lt;b&gt;") && page.contains("repair"),
                    "{page}"
                );
            });
        }
    });
    assert!(admin.page("").contains(">1 finding<"));
    let metrics = String::from_utf8(http_client::request(admin.address, "GET", b"/metrics", b"").body).expect("text");
    assert!(metrics.contains("townsquare_operations_total{operation=\"check\",outcome=\"ok\"} 1\n"), "{metrics}");
}

#[test]
fn metrics_are_plotted_and_listed() {
    let town = Fixture::seeded();
    let admin = AdminServer::start(&town);
    admin.page("/users");
    let page = admin.page("/metrics");
    assert!(
        page.contains("operation=list_users") && page.contains("operations_total") && page.contains("<svg "),
        "{page}"
    );
    Fixture::wait_until(|| admin.page("/metrics").contains("<path class=\"line\" d=\"M"));
    let catalog = admin.page("/catalog");
    assert!(catalog.contains("No program has read the catalog") && !catalog.contains("Stale"), "{catalog}");
    assert!(admin.page("").contains(">not read yet<"));
    http_client::request(admin.address, "GET", b"/api/miniapp-discovery", b"");
    assert!(admin.page("/catalog").contains("<dd>40</dd>"));
}
