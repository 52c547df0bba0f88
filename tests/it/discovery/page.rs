//! The page of the example `serve`, in a real browser: by mouse, by keyboard and on a phone, with hostile apps.

use std::{net::SocketAddr, path::PathBuf, sync::mpsc, thread};

use serde_json::{Value, json};
use townsquare::blocking::Client;
use townsquare_tests::{
    browser::Browser,
    catalog::{Catalog, Row, full_frame},
    fixture::Fixture,
    paths::workspace,
    wait::wait_until,
};

#[allow(dead_code, reason = "the example's main is not called")]
#[path = "../../../core/examples/serve.rs"]
mod serve;

const APPS: usize = 60;
const HOSTILE: &str = r#"<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"#;
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

/// Serves the page until the process ends.
fn start(client: &Client) -> SocketAddr {
    let app = serve::router(client.inner().clone());
    let (bound, address) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            bound.send(listener.local_addr().expect("an address")).expect("somebody waits");
            axum::serve(listener, app).await.expect("it serves");
        });
    });
    address.recv().expect("the server starts")
}

fn hostile() -> Row {
    let mut frame = full_frame("hostile.example");
    let app = &mut frame["manifest"]["miniapp"];
    app["name"] = json!(HOSTILE);
    app["description"] = json!(HOSTILE);
    app["primary_category"] = json!(HOSTILE);
    app["icon_url"] = json!("https://tracker.example/icon.png");
    frame.into()
}

fn screenshots() -> PathBuf {
    workspace().join("target/screenshots")
}

#[test]
fn the_page_searches_filters_and_shows_apps() {
    let Some(browser) = Browser::start() else { return };
    let fixture = Fixture::of(Catalog::of(APPS).with_chains().rows().chain([hostile()]));
    let client = Client::open(fixture.config()).expect("opens");
    let url = format!("http://{}/", start(&client));
    let cards = || browser.eval("return document.querySelectorAll('#apps li').length");
    let text = |selector: &str| {
        browser.eval(&format!("return document.querySelector({})?.textContent ?? null", json!(selector)))
    };
    let waits_for = |what: &str, script: &str, expected: Value| {
        wait_until(what, || browser.eval(&format!("return {script}")) == expected);
    };

    browser.open(&url);
    wait_until("the first page is shown", || cards() == 24);
    assert_eq!(text("#status"), "61 mini apps");
    assert_eq!(text("#page"), "Page 1 of 3");
    waits_for("the facets are shown", "document.querySelector('#category').options.length > 5", json!(true));
    browser.screenshot(&screenshots().join("list.png"));

    // Pages.
    browser.eval("document.querySelector('#next').click()");
    waits_for("the second page", "document.querySelector('#page').textContent", json!("Page 2 of 3"));
    browser.eval("history.back()");
    waits_for("the first page again", "document.querySelector('#page').textContent", json!("Page 1 of 3"));

    // Facets.
    let games = Catalog::of(APPS).apps().filter(|app| app.category == Some("games")).count();
    browser
        .eval("const c = document.querySelector('#category'); c.value = 'games'; c.dispatchEvent(new Event('change'))");
    waits_for("the games", "document.querySelectorAll('#apps li').length", json!(games));
    browser.eval("location.hash = ''");
    wait_until("every app again", || cards() == 24);

    // By keyboard: search as you type, go to the first result, open it, leave it.
    browser.press("/");
    assert_eq!(browser.eval("return document.activeElement.id"), "query");
    let wanted = Catalog::of(APPS).app(7);
    browser.press(&wanted.name.to_lowercase());
    waits_for("the search", "document.querySelector('#apps .name')?.textContent", json!(wanted.name));
    // The results of the whole name may replace those of its beginning, which looked the same.
    wait_until("the first result has the focus", || {
        browser.eval("document.querySelector('#query').focus()");
        browser.press(ENTER);
        browser.eval("return document.activeElement.className") == "card"
    });
    browser.press(ENTER);
    waits_for("the app", "document.querySelector('#app h2')?.textContent", json!(wanted.name));
    assert_eq!(browser.eval("return document.querySelector('#app a.open').href"), format!("https://{}/", wanted.id));
    browser.screenshot(&screenshots().join("app.png"));
    browser.press(ESCAPE);
    waits_for("the list again", "document.querySelector('#app').hidden", json!(true));
}

#[test]
fn hostile_apps_are_inert() {
    let Some(browser) = Browser::start() else { return };
    let fixture = Fixture::of([hostile()]);
    let client = Client::open(fixture.config()).expect("opens");
    let url = format!("http://{}/", start(&client));
    browser.open(&url);
    let shown = || browser.eval("return document.querySelector('#apps .name')?.textContent") == HOSTILE;
    wait_until("the name is shown as it is", shown);
    browser.open(&format!("{url}#app=hostile.example%2Fhome"));
    wait_until("the app is shown", || browser.eval("return document.querySelector('#app h2')?.textContent") == HOSTILE);
    browser.screenshot(&screenshots().join("hostile.png"));
    assert_eq!(browser.eval("return document.querySelectorAll('img, iframe, object').length"), 0);
    wait_until("the facets are shown", || {
        browser.eval("return document.querySelector('#category').options.length") == 2
    });
    let header = "return document.querySelector('header').getBoundingClientRect().height < 90";
    assert_eq!(browser.eval(header), true, "a long category leaves the search and the filters in one row");
    // Even markup that got into the page would not run, and would load nothing.
    browser.eval(
        "const made = document.createElement('div');
        made.innerHTML = '<img src=\"https://tracker.example/x.png\" onerror=\"window.hacked=1\"><b onclick=\"window.hacked=1\"></b>';
        document.body.append(made);
        made.querySelector('b').click();",
    );
    let outside = "return performance.getEntriesByType('resource')
        .filter((entry) => entry.transferSize > 0 && new URL(entry.name).origin !== location.origin).length";
    assert_eq!(browser.eval(outside), 0, "nothing comes from another host");
    assert_eq!(browser.eval("return window.hacked === undefined"), true);
}

#[test]
fn places_that_are_gone_are_explained() {
    let Some(browser) = Browser::start() else { return };
    let copies = ["copy.example", "play.copy.example"].map(|host| Row::from(full_frame(host)));
    let fixture = Fixture::of(Catalog::of(30).rows().chain(copies));
    let client = Client::open(fixture.config()).expect("opens");
    let url = format!("http://{}/", start(&client));
    let waits_for = |what: &str, script: &str, expected: Value| {
        wait_until(what, || browser.eval(&format!("return {script}")) == expected);
    };
    let status = "document.querySelector('#status').textContent";
    let visible = "document.querySelectorAll('#list:not([hidden]) li, #app:not([hidden])').length";
    browser.open(&format!("{url}#page=99999999999"));
    waits_for("the last page", "document.querySelector('#page').textContent", json!("Page 2 of 2"));
    waits_for("near-copies are one app", status, json!("31 mini apps"));
    waits_for("its apps", visible, json!(7));
    for (fragment, told) in [("app=gone.example", "Mini app not found"), ("category=gamez", "gamez")] {
        browser.eval(&format!("location.hash = {}", json!(fragment)));
        waits_for("the reason", &format!("{status}.includes({})", json!(told)), json!(true));
        assert_eq!(browser.eval(&format!("return {visible}")), 0, "{fragment}: nothing of the place before");
    }
    browser.eval("document.querySelector('h1 a').click()");
    waits_for("the first page", visible, json!(24));
    assert_eq!(browser.eval("return document.title"), "Mini apps");
    browser.eval("location.hash = 'app=copy.example'");
    waits_for("the title of the app", "document.title", json!("Full House · Mini apps"));
    // Enter at once: the search of what stands in the box comes first.
    browser.eval("location.hash = ''");
    waits_for("the list", visible, json!(24));
    browser.press("/");
    browser.press(&format!("full house{ENTER}"));
    waits_for("the first result", "document.activeElement.querySelector('.name')?.textContent", json!("Full House"));
}

#[test]
fn the_page_fits_a_phone() {
    let Some(browser) = Browser::start() else { return };
    let fixture = Fixture::of(Catalog::of(APPS).rows().chain([hostile()]));
    let client = Client::open(fixture.config()).expect("opens");
    browser.be_a_phone(390, 844);
    browser.open(&format!("http://{}/", start(&client)));
    wait_until("the page is shown", || browser.eval("return document.querySelectorAll('#apps li').length") == 24);
    assert_eq!(browser.eval("return document.documentElement.scrollWidth <= 390"), true, "no sideways scrolling");
    let small = "return [...document.querySelectorAll('input, select, button, .card')]
        .filter((control) => control.getBoundingClientRect().height < 44).length";
    assert_eq!(browser.eval(small), 0, "every control is large enough for a finger");
    browser.screenshot(&screenshots().join("phone.png"));
}
