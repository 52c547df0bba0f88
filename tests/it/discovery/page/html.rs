//! The page as a client without JavaScript gets it: list, search, filters, details, refusals and headers.

use std::{
    collections::{BTreeMap, HashSet},
    io::{Read as _, Write as _},
    time::Duration,
};

use axum::Router;
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::json;
use townsquare::{blocking::wait, discovery::Selection, http::ResponseBody};
use townsquare_tests::{
    catalog::{App, Catalog, FREQUENT_WORD, Row, full_frame},
    http_client::{Response, request, send},
    http_server::Server,
    upstream::Reply,
};

use super::{HOSTILE, PAGE, Site, hostile};

/// The most bytes of the first view, compressed: HTML, style, script and icon.
const MAX_FIRST_VIEW: usize = 30_000;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

impl Site {
    fn get(&self, path: &str) -> Response {
        request(self.server.address(), "GET", path.as_bytes(), b"")
    }

    /// The page at a path that answers 200.
    fn page(&self, path: &str) -> Page {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", String::from_utf8_lossy(&response.body));
        Page(String::from_utf8(response.body).expect("UTF-8"))
    }

    fn get_with(&self, path: &str, header: &str) -> Response {
        let request = format!("GET {path} HTTP/1.1\r\nHost: town\r\nConnection: close\r\n{header}\r\n\r\n");
        send(self.server.address(), request.as_bytes())
    }
}

fn read(mut body: ResponseBody) -> Vec<u8> {
    let chunks = std::iter::from_fn(|| wait(body.next_chunk()).expect("a body"));
    chunks.flatten().collect()
}

/// The HTML of a page.
struct Page(String);

impl Page {
    /// The texts between two parts of the HTML, without markup.
    fn texts(&self, start: &str, end: &str) -> Vec<String> {
        let parts = self.0.split(start).skip(1);
        parts.map(|part| text_of(part.split(end).next().unwrap_or_default())).collect()
    }

    fn names(&self) -> Vec<String> {
        self.texts("<h2 dir=\"auto\">", "</h2>")
    }

    fn status(&self) -> String {
        self.texts("role=\"status\">", "</p>").remove(0)
    }

    /// The filters below a title, with their counts.
    fn facets(&self, title: &str) -> BTreeMap<String, usize> {
        let Some((_, section)) = self.0.split_once(&format!("<h2>{title}</h2>")) else { return BTreeMap::new() };
        let section = Page(section.split("</section>").next().unwrap_or_default().to_owned());
        let counts = section.texts("class=\"count\">", "</span>");
        let counts = counts.iter().map(|count| count.replace(',', "").parse().expect("a number"));
        section.texts("class=\"name\" dir=\"auto\">", "</span>").into_iter().zip(counts).collect()
    }

    /// The URL of the first link with this text or attribute.
    fn link(&self, part: &str) -> String {
        let links = self.0.split("<a ").skip(1).map(|link| link.split("</a>").next().unwrap_or_default());
        let link = links.clone().find(|link| link.contains(part)).unwrap_or_else(|| panic!("no link with {part}"));
        let url = link.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a URL");
        url.replace("&amp;", "&")
    }
}

/// The text of HTML.
fn text_of(html: &str) -> String {
    let parts = html.split('<').enumerate();
    let text: String = parts
        .map(|(place, part)| if place == 0 { part } else { part.split_once('>').map_or("", |tag| tag.1) })
        .collect();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

fn label(name: &str) -> String {
    let join = if ["art-creativity", "health-fitness", "news-media"].contains(&name) { " & " } else { " " };
    let text = name.replace('-', join);
    text[..1].to_uppercase() + &text[1..]
}

fn is_on(app: &App, network: &str) -> bool {
    app.networks.is_empty() || app.networks.contains(&network)
}

#[test]
fn the_list_has_pages_in_trending_order() {
    let site = Site::with_apps(110);
    let first = site.page("/directory");
    let expected: Vec<_> = Catalog::of(110).apps().map(|app| app.name).collect();
    assert_eq!(first.names(), expected[..PAGE]);
    assert_eq!(first.status(), "110 mini apps, page 1 of 3");
    let next = format!("/{}", first.link("rel=\"next\""));
    assert_eq!(next, "/directory?page=2");
    let last = site.page("/directory?page=3");
    assert_eq!(last.names(), expected[2 * PAGE..]);
    assert!(!last.0.contains("rel=\"next\"") && last.link("rel=\"prev\"") == "directory?page=2");
    assert_eq!(site.page("/directory?page=99").status(), "110 mini apps, page 3 of 3", "the list has become shorter");
    assert_eq!(site.page("/directory?utm_source=chat").names(), first.names(), "other parameters are ignored");
}

#[test]
fn new_apps_come_first_on_request() {
    let site = Site::of(Catalog::of(20).rows());
    site.page("/directory");
    site.fixture.clock.advance(Duration::from_secs(48 * 3600));
    site.fixture.upstream.serve(Catalog::of(20).rows().chain([Row::from(full_frame("young.example"))]));
    site.client.discovery().refresh().expect("refreshed");
    let page = site.page("/directory?sort=new");
    assert_eq!(page.names()[0], "Full House");
    assert!(page.0.contains("<h1 id=\"heading\">New apps</h1>") && page.0.contains("<time datetime="));
    assert_eq!(site.page("/directory").names()[20], "Full House");
}

#[test]
fn the_orders_of_time_windows_are_offered_if_they_can_be_had() {
    let site = Site::of(Catalog::of(20).rows());
    let page = site.page("/directory");
    assert!(!page.0.contains("Time window"), "requests fetch no further orders");
    let page = site.page("/directory?window=7d");
    assert!(page.0.contains("The order of 7 days is not available. This is the order of 24 hours."));
    site.client.discovery().get_trending_mini_apps("7d".parse().expect("a timeframe"), 5).expect("the order");
    let page = site.page("/directory?window=7d");
    assert!(page.0.contains("Time window") && !page.0.contains("is not available"));
    let expected = site.client.discovery().get_trending_mini_apps("7d".parse().expect("a timeframe"), 20);
    let expected: Vec<_> = expected.expect("the order").iter().map(|app| app.name().to_owned()).collect();
    assert_eq!(page.names(), expected);
    assert_ne!(page.names(), site.page("/directory").names());
}

#[test]
fn a_search_marks_its_matches() {
    let site = Site::with_apps(60);
    let app = Catalog::of(60).app(7);
    let page = site.page(&format!("/directory?q={}", app.name.to_lowercase().replace(' ', "+")));
    assert_eq!(page.names()[0], app.name);
    let marked: Vec<_> = page.0.split("<h2 dir=\"auto\">").nth(1).expect("an app").split("</h2>").collect();
    assert!(marked[0].contains("<mark>"), "{}", marked[0]);
    assert!(page.0.contains(&format!("value=\"{}\"", app.name.to_lowercase())), "the search is in the box");
    let found = site.client.discovery().search_mini_apps(FREQUENT_WORD, Selection::first(PAGE as u32)).expect("found");
    let page = site.page(&format!("/directory?q={FREQUENT_WORD}"));
    assert_eq!(page.names(), found.iter().map(|app| app.name()).collect::<Vec<_>>());
    assert_eq!(page.status(), format!("{} matches", found.total()));
    let none = site.page("/directory?q=zzzzqqqq");
    assert_eq!((none.status().as_str(), none.names().len()), ("0 matches", 0));
    assert!(none.0.contains("No app found"));
}

#[test]
fn the_counts_of_filters_are_the_lengths_of_their_lists() {
    let site = Site::with_apps(120);
    let apps: Vec<_> = Catalog::of(120).with_chains().apps().collect();
    let count = |category: Option<&str>, network: Option<&str>| {
        let is_in = |app: &&App| category.is_none_or(|name| app.category == Some(name));
        apps.iter().filter(is_in).filter(|app| network.is_none_or(|name| is_on(app, name))).count()
    };
    let page = site.page("/directory?category=games&network=base");
    assert_eq!(page.status(), format!("{} mini apps", count(Some("games"), Some("base"))));
    let categories: HashSet<_> = apps.iter().filter_map(|app| app.category).collect();
    let expected: BTreeMap<_, _> =
        categories.iter().map(|name| (label(name), count(Some(name), Some("base")))).collect();
    assert_eq!(page.facets("Categories"), expected, "categories on the network");
    let networks: HashSet<_> = apps.iter().flat_map(|app| app.networks.iter().copied()).collect();
    let expected: BTreeMap<_, _> =
        networks.iter().map(|name| (label(name), count(Some("games"), Some(name)))).collect();
    assert_eq!(page.facets("Networks"), expected, "networks of the category");

    // Each link of a filter leads to a list with as many apps as it says.
    let page = site.page(&format!("/directory?q={FREQUENT_WORD}&network=base"));
    let mut checked = 0;
    for (name, count) in page.facets("Categories") {
        let link = page.link(&format!("class=\"name\" dir=\"auto\">{}</span>", name.replace('&', "&amp;")));
        let status = site.page(&format!("/{link}")).status();
        assert!(status.starts_with(&format!("{count} match")), "{link}: {status}");
        checked += 1;
    }
    assert!(checked > 3);

    // Two of a kind are either of them; a chosen one can be removed.
    let both = site.page("/directory?category=games&category=social");
    let sum = count(Some("games"), None) + count(Some("social"), None);
    assert_eq!(both.status().split(" mini").next(), Some(sum.to_string().as_str()));
    assert_eq!(both.link("aria-current=\"true\"><span class=\"name\" dir=\"auto\">Games"), "directory?category=social");
    assert_eq!(both.link("Remove all filters"), "directory");
}

#[test]
fn a_catalog_with_many_networks_has_right_counts() {
    const NETWORKS: usize = 80;
    let app = |host: String, name: &str, networks: &[usize]| {
        let mut frame = full_frame(&host);
        let app = &mut frame["manifest"]["miniapp"];
        app["name"] = json!(name);
        app["required_chains"] = networks.iter().map(|number| format!("chain {}", number % NETWORKS)).collect();
        Row::from(frame)
    };
    let apps = (0..NETWORKS)
        .map(|number| app(format!("app{number}.example"), &format!("App {number}"), &[number, number, number + 1]));
    let copies = [("one", &[][..]), ("two", &[]), ("three", &[5])];
    let copies = copies.map(|(host, networks)| app(format!("{host}.example"), "Everywhere", networks));
    let site = Site::of(apps.chain(copies));
    for number in [5, 70] {
        let page = site.page(&format!("/directory?network=chain+{number}"));
        // Two apps on the network, and one on every network, which has copies.
        assert_eq!(page.status(), "3 mini apps");
        let counts = page.facets("Networks");
        assert!(counts.len() >= 60 && counts.values().all(|count| *count == 3), "{counts:?}");
    }
    let networks = site.client.discovery().networks(Selection::default()).expect("networks");
    assert_eq!(networks.len(), NETWORKS);
    let expected = |name: &str| if name == "chain 5" { 5 } else { 4 };
    assert!(networks.iter().all(|network| network.count == expected(&network.name)), "{networks:?}");
}

#[test]
fn near_copies_are_listed_and_counted_once() {
    let copies = ["copy.example", "play.copy.example"].map(|host| Row::from(full_frame(host)));
    let site = Site::of(Catalog::of(10).with_chains().rows().chain(copies));
    assert_eq!(site.page("/directory").status(), "11 mini apps");
    let games = Catalog::of(10).apps().filter(|app| app.category == Some("games")).count() + 1;
    assert_eq!(site.page("/directory").facets("Categories")["Games"], games);
    assert_eq!(site.page("/directory?q=full+house").status(), "1 match");
}

#[test]
fn a_filter_without_apps_can_be_removed() {
    let site = Site::of([Row::from(full_frame("only.example"))]);
    let page = site.page("/directory?q=house&category=music");
    assert_eq!((page.status().as_str(), page.facets("Categories")["Music"]), ("0 matches", 0));
    assert!(page.0.contains("With other filters there is 1 app."));
    assert_eq!(page.link("class=\"button\""), "directory?q=house");
}

#[test]
fn details_show_an_app_and_similar_ones() {
    let site = Site::of(Catalog::of(40).rows().chain([Row::from(full_frame("full.example"))]));
    let page = site.page("/directory/apps/full.example/home");
    for part in [
        "<title>Full House · Mini apps</title>",
        "<h1 dir=\"auto\">Full House</h1>",
        "The tagline",
        "The description",
        "Full of House",
        "1,234 followers",
        "href=\"../../../directory?category=games\"",
        "href=\"../../../directory?network=base\"",
        "href=\"../../../directory?q=one\"",
        "Show pictures and 2 screenshots</a>",
        "Similar apps",
    ] {
        assert!(page.0.contains(part), "{part}: {}", page.0);
    }
    let open = "href=\"https://full.example/home\" rel=\"noopener noreferrer nofollow\" target=\"_blank\"";
    assert!(page.0.contains(open));
    let app = page.0.split("<li class=\"app\">").nth(1).expect("a similar app");
    let link = app.split("href=\"../../../").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    assert_eq!(site.get(&format!("/{link}")).status, 200, "{link}");
    // An id is found in any spelling, and with a slash at its end.
    for path in ["/directory/apps/FULL.example%2Fhome", "/directory/apps/full.example/home/"] {
        assert!(site.page(path).0.contains("<h1 dir=\"auto\">Full House</h1>"), "{path}");
    }
}

#[test]
fn pictures_are_in_the_page_only_if_the_visitor_chooses_them() {
    let site = Site::of([Row::from(full_frame("full.example")), hostile()]);
    for path in ["/directory?", "/directory/apps/full.example/home?", "/directory?q=house&"] {
        let response = site.get(path);
        assert!(!String::from_utf8_lossy(&response.body).contains("<img"), "{path}");
        assert_eq!(response.header("content-security-policy"), Some(POLICY));
        let response = site.get(&format!("{path}images=1"));
        assert!(String::from_utf8_lossy(&response.body).contains("<img"), "{path}");
        let policy = POLICY.replace("img-src 'self'", "img-src 'self' https:");
        assert_eq!(response.header("content-security-policy"), Some(policy.as_str()));
    }
    // A link of another site does not choose.
    let linked = site.get_with("/directory?images=1", "Sec-Fetch-Site: cross-site");
    assert!(!String::from_utf8_lossy(&linked.body).contains("<img"));
    assert_eq!(linked.header("content-security-policy"), Some(POLICY));
    let chosen = site.get_with("/directory?images=1", "Sec-Fetch-Site: same-origin");
    assert!(chosen.header("vary").is_some_and(|vary| vary.contains("sec-fetch-site")));
    assert_ne!(chosen.header("etag"), linked.header("etag"));
    let list = site.page("/directory?images=1");
    assert_eq!(list.0.matches("<img").count(), 1, "no icon that is not https");
    let icon = "<img src=\"https://full.example/icon.png\" alt=\"\" width=\"56\" height=\"56\" loading=\"lazy\" decoding=\"async\" \
                referrerpolicy=\"no-referrer\">";
    assert!(list.0.contains(icon));
    assert_eq!(list.link("Hide pictures"), "directory");
    assert!(list.link("rel=\"nofollow\"").ends_with("images=1"), "the choice stays");
    let details = site.page(&format!("/{}", list.link("apps/full.example")));
    assert_eq!(details.0.matches("<img").count(), 3);
    assert!(details.0.contains("alt=\"Screenshot 1 of Full House\""));
}

#[test]
fn hostile_texts_stay_texts() {
    let site = Site::of([hostile()]);
    let query: String = HOSTILE.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let list = site.page("/directory");
    assert_eq!(list.names(), [HOSTILE]);
    let category = list.link("class=\"name\"");
    for path in [
        "/directory".to_owned(),
        format!("/{category}"),
        format!("/directory?q={query}"),
        "/directory?images=1".to_owned(),
        "/directory/apps/hostile.example/home?images=1".to_owned(),
    ] {
        let page = site.page(&path);
        for part in
            ["<img src=x", "onerror=\"window", "<script>", "href=\"javascript:", "src=\"javascript:", "http://tracker"]
        {
            assert!(!page.0.contains(part), "{path}: {part}");
        }
        assert_eq!(page.0.matches("<script").count(), 1, "{path}: the script of the page alone");
        assert!(!page.0.contains(" style=") && !page.0.contains("<style"), "{path}: no inline style");
        let head = page.0.split("</head>").next().unwrap_or_default();
        assert!(!head.contains('\u{202e}'), "{path}: the title turns no text around");
        assert!(!page.0.contains("\0"), "{path}: no character that HTML does not have");
    }
    let slashes = site.get(&format!("/directory/{}", "/".repeat(7_000)));
    assert!(slashes.status == 404 && slashes.body.len() < 10_000, "{} bytes", slashes.body.len());
    let refused = site.get(&format!("/directory?category={query}x"));
    assert_eq!(refused.status, 400);
    assert!(!String::from_utf8_lossy(&refused.body).contains("<img"));
}

#[test]
fn bad_requests_get_a_page_that_says_why() {
    let site = Site::with_apps(5);
    for (method, path, status, part) in [
        ("GET", "/directory?window=1y", 400, "Unknown timeframe &quot;1y&quot;"),
        ("GET", "/directory?page=0", 400, "page is a whole number from 1"),
        ("GET", "/directory?sort=old", 400, "sort is trending or new"),
        ("GET", "/directory?q=%zz", 400, "two hex digits"),
        ("GET", "/directory?category=gamez", 400, "Unknown category &quot;gamez&quot;"),
        ("GET", "/directory?network=basse", 400, "Unknown network"),
        ("GET", "/directory/apps/gone.example", 404, "The directory has no such app"),
        ("GET", "/directory/apps/%zz", 400, "two hex digits"),
        ("GET", "/directory/nothing", 404, "There is no page at this address"),
        ("POST", "/directory", 405, "Method not allowed"),
    ] {
        let response = request(site.server.address(), method, path.as_bytes(), b"");
        let text = String::from_utf8_lossy(&response.body);
        assert_eq!(response.status, status, "{path}");
        assert!(text.contains(part) && text.contains(">All mini apps</a>"), "{path}: {text}");
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert_eq!(response.header("content-security-policy"), Some(POLICY), "{path}");
        assert_eq!(response.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(response.header("allow"), (status == 405).then_some("GET, HEAD"), "{path}");
    }
}

#[test]
fn a_failing_upstream_is_explained() {
    let site = Site::with_apps(5);
    site.fixture.upstream.reply_with(|_| Reply::status(500));
    let response = site.get("/directory");
    let text = String::from_utf8_lossy(&response.body).into_owned();
    assert_eq!(response.status, 503, "{text}");
    assert!(text.contains("The directory is not available") && text.contains(">Try again</a>"), "{text}");
    assert!(response.header("retry-after").is_some());
    site.fixture.upstream.recover();
    site.fixture.clock.advance(Duration::from_secs(3600));
    site.client.discovery().refresh().expect("refreshed");
    site.fixture.upstream.reply_with(|_| Reply::status(500));
    site.client.discovery().refresh().expect_err("it fails");
    assert!(site.page("/directory").0.contains("The catalog could not be refreshed. These are the apps of "));
}

#[test]
fn a_catalog_without_apps_says_so() {
    let fixture = townsquare_tests::fixture::Fixture::of([]);
    let client = townsquare::blocking::Client::open(fixture.config().catalog_api_key("")).expect("opens");
    let response = wait(client.inner().handle_request("GET", "/directory", &[], "")).expect("open");
    let body = read(response.body);
    assert!(String::from_utf8_lossy(&body).contains("The directory has no apps yet"));
}

#[test]
fn responses_have_the_headers_of_caches_and_of_security() {
    let site = Site::with_apps(60);
    let page = site.get("/directory");
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cache-control", "public, max-age=900"),
        ("x-dns-prefetch-control", "off"),
        ("vary", "accept-encoding, sec-fetch-site"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    let etag = page.header("etag").expect("an etag");
    let same = site.get_with("/directory", &format!("If-None-Match: {etag}"));
    assert_eq!((same.status, same.body.len()), (304, 0));
    assert_eq!(same.header("vary"), page.header("vary"));
    assert_eq!(site.get_with("/directory?page=2", &format!("If-None-Match: {etag}")).status, 200, "another page");
    let head = request(site.server.address(), "HEAD", b"/directory", b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), page.header("content-length"));
    for (name, content_type) in [
        ("page.css", "text/css; charset=utf-8"),
        ("page.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ] {
        let html = Page(String::from_utf8(page.body.clone()).expect("UTF-8"));
        let link = html.0.split('"').find(|part| part.contains(name)).expect("a link").to_owned();
        let asset = site.get(&format!("/{link}"));
        assert_eq!(asset.header("content-type"), Some(content_type));
        assert_eq!(asset.header("cache-control"), Some("public, max-age=31536000, immutable"));
        let old = site.get(&format!("/directory/{name}?v=old"));
        assert_eq!((old.header("cache-control"), old.status), (Some("no-cache"), 200));
        let etag = asset.header("etag").expect("an etag");
        assert_eq!(site.get_with(&format!("/{link}"), &format!("If-None-Match: {etag}")).status, 304);
    }
}

#[test]
fn the_first_view_is_small() {
    let site = Site::with_apps(2_835);
    let response = site.get_with("/directory", "Accept-Encoding: gzip");
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    let mut html = String::new();
    GzDecoder::new(response.body.as_slice()).read_to_string(&mut html).expect("gzip");
    let mut size = response.body.len();
    for link in html.split('"').filter(|part| part.contains("?v=")) {
        let asset = site.get(&format!("/{link}"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&asset.body).expect("memory");
        size += encoder.finish().expect("memory").len();
    }
    assert!(size <= MAX_FIRST_VIEW, "{size} bytes");
}

#[test]
fn the_page_works_behind_a_prefix() {
    let site = Site::of([Row::from(full_frame("full.example"))]);
    let router = townsquare::http::directory_router(site.client.inner().clone());
    let server = Server::of(Router::new().nest("/a/town", router));
    let get = |path: &str| request(server.address(), "GET", path.as_bytes(), b"");
    for path in ["/a/town/directory", "/a/town/directory/", "/a/town/directory/apps/full.example/home"] {
        let response = get(path);
        let html = Page(String::from_utf8(response.body).expect("UTF-8"));
        assert_eq!(response.status, 200, "{path}");
        let links = html.0.split('"').filter(|part| part.contains("directory") && !part.contains(' '));
        for link in links.map(|link| link.replace("&amp;", "&")) {
            let folder = path.rsplit_once('/').expect("a path").0;
            let up = link.matches("../").count();
            let folder = folder.rsplitn(up + 1, '/').last().expect("a folder");
            let target = format!("{folder}/{}", link.trim_start_matches("../"));
            assert_eq!(get(&target).status, 200, "{path}: {link}: {target}");
        }
    }
}

#[test]
fn the_router_and_handle_request_answer_alike() {
    let site = Site::with_apps(60);
    for path in ["/directory", "/directory/", "/directory?q=a&images=1", "/directory/apps/gone", "/directory/page.css"]
    {
        let expected = wait(site.client.inner().handle_request("GET", path, &[], "")).expect("open");
        let response = site.get(path);
        assert_eq!(response.status, expected.status, "{path}");
        for (name, value) in &expected.headers {
            assert_eq!(response.header(name), Some(value.as_str()), "{path} {name}");
        }
        assert_eq!(response.body, read(expected.body), "{path}");
    }
}
