//! The directory page: as HTML of the server, and in a real browser.

mod browser;
mod html;
mod looks;

use serde_json::json;
use townsquare::blocking::Client;
use townsquare_tests::{
    catalog::{Catalog, Row, full_frame},
    fixture::Fixture,
    http_server::Server,
};

/// The number of apps on a page.
const PAGE: usize = 48;

/// A text with markup, quotes and a character that reverses the text after it.
const HOSTILE: &str = "<img src=x onerror=\"window.hacked=1\">'\"><script>window.hacked=1</script>\u{202e}";

/// An app with a hostile text in each field.
fn hostile() -> Row {
    let mut frame = full_frame("hostile.example");
    let app = &mut frame["manifest"]["miniapp"];
    for field in ["name", "description", "tagline", "subtitle", "primary_category", "button_title"] {
        app[field] = json!(HOSTILE);
    }
    app["tags"] = json!([HOSTILE]);
    app["required_chains"] = json!([HOSTILE, "\u{0}no name"]);
    for field in ["icon_url", "image_url"] {
        app[field] = json!("javascript:window.hacked=1");
    }
    app["screenshot_urls"] = json!(["javascript:window.hacked=1", "data:text/html,x", "http://tracker.example/1.png"]);
    frame["image"] = json!("javascript:window.hacked=1");
    frame["author"]["username"] = json!(HOSTILE);
    frame["author"]["display_name"] = json!(HOSTILE);
    frame.into()
}

/// A client of an upstream with these rows, and a server with its endpoints.
struct Site {
    server: Server,
    client: Client,
    fixture: Fixture,
}

impl Site {
    fn of(rows: impl IntoIterator<Item = Row>) -> Site {
        let fixture = Fixture::of(rows);
        let client = Client::open(fixture.config()).expect("opens");
        let server = Server::of(townsquare::http::router(client.inner().clone()));
        Site { server, client, fixture }
    }

    /// A site with this many invented apps.
    fn with_apps(count: usize) -> Site {
        Site::of(Catalog::of(count).with_chains().rows())
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address())
    }
}
