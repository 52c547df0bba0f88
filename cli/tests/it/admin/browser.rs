//! The page in a browser: screenshots in light and dark, on a desktop and on a phone, the rules of axe-core, with hostile texts and a change as it comes.

use serde_json::{Value, json};
use townsquare::{
    Config, Uuid,
    blocking::Client,
    spaces::{NewFidget, NewSpace},
    storage::UploadOptions,
};
use townsquare_tests::{axe::Axe, browser::Browser, paths::workspace, test_database::Engine};

use super::{AdminServer, Populated};
use crate::fixture::Fixture;

fn screenshot(browser: &Browser, name: &str) {
    browser.screenshot(&workspace().join("target/screenshots/admin").join(format!("{name}.png")));
}

/// A town as an operator has it: the user and the space to show.
fn town(town: &Fixture) -> (Uuid, Uuid) {
    town.run(&["seed", "--users", "12", "--spaces", "30", "--fidgets", "3"]).succeeded();
    let client = Client::open(Config::new().data_dir(town.path("town")).catalog_url("sample:")).expect("opens");
    let (service, password) = (client.as_service(), "correct horse battery");
    let user = service.auth().sign_up("ann@town.example", password).expect("a user").id;
    for _ in 0..3 {
        service.auth().create_session("ann@town.example", password).expect("a session");
    }
    let space =
        NewSpace::named("Harbor").description("Tides, boats and the people of the quay.").public().owned_by(user);
    let space = service.spaces().create_space(space).expect("a space").id;
    for (kind, config) in [
        ("tides", json!({ "port": "Harbor", "unit": "m" })),
        (
            "feed",
            json!({ "title": "News of the quay", "sources": ["https://harbor.example/a", "https://harbor.example/b"], "most": 20, "shows": { "images": true, "dates": true } }),
        ),
        ("text", json!("Welcome.")),
    ] {
        let fidget = NewFidget::of_type(kind).config(config).position(vec![0, 0, 4, 2]);
        service.fidgets().create_fidget(space, fidget).expect("a fidget");
    }
    let storage = service.storage();
    let (tab, homebase) = (format!("{space}/tabs/Home"), format!("{user}/homebase"));
    let tides = r#"{"high": ["06:12", "18:40"], "low": ["00:05", "12:21"]}"#;
    for (bucket, path, bytes) in [
        ("spaces", &*tab, b"{}".to_vec()),
        ("spaces", &*format!("{space}/assets/tides.json"), tides.into()),
        ("private", &*homebase, b"{}".to_vec()),
        ("assets", "images/square.png", png()),
        ("assets", "notes/readme.md", b"# Notes\n\nThe quay opens at six.\n".repeat(20)),
    ] {
        storage.upload(bucket, path, bytes, UploadOptions::new().metadata("made-by", "ann")).expect("a file");
    }
    client.close();
    (user, space)
}

/// A picture of 64 by 64 points, as browsers draw it.
fn png() -> Vec<u8> {
    let file = workspace().join("cli/tests/it/admin/square.png");
    std::fs::read(file).expect("the picture")
}

#[test]
fn the_pages_are_accessible_and_fit_to_be_looked_at() {
    let Some(browser) = Browser::start() else { return };
    let axe = Axe::load();
    let fixture = Fixture::new();
    let (user, space) = town(&fixture);
    let admin = AdminServer::start(&fixture);
    townsquare_tests::http_client::request(admin.address, "GET", b"/api/miniapp-discovery", b"");
    let origin = format!("http://{}", admin.address);
    browser.open(&format!("{origin}/admin?token={}", admin.token));
    assert_eq!(browser.eval("return location.search"), json!(""), "the token is no longer in the address");
    assert_eq!(browser.eval("return document.cookie"), json!(""), "no script reads the cookie");

    browser.open(&format!("{origin}/admin/changes"));
    let text = |selector: &str| {
        browser.eval(&format!("return document.querySelector({})?.textContent ?? ''", json!(selector)))
    };
    Fixture::wait_until(|| text("#live").as_str().is_some_and(|text| text.starts_with("Live")));
    fixture.run(&["seed", "--users", "0", "--spaces", "2", "--fidgets", "2"]).succeeded();
    let count = || browser.eval("return document.querySelectorAll('#changes tr').length");
    Fixture::wait_until(|| count().as_u64().is_some_and(|count| count >= 6));
    assert_eq!(count(), json!(6), "two spaces with two fidgets each, once");
    assert!(
        text("#changes tr:first-child").as_str().is_some_and(|row| row.contains("fidgets")),
        "the newest is the first"
    );

    Fixture::wait_until(|| {
        fixture.run(&["users", "list"]).succeeded();
        admin.page("/metrics").matches(" d=\"M").count() >= 16
    });
    let file = "/admin/file?bucket=assets&path=images/square.png";
    for (name, path) in [
        ("overview", "/admin".to_owned()),
        ("users", "/admin/users".to_owned()),
        ("user", format!("/admin/users/{user}")),
        ("spaces", "/admin/spaces".to_owned()),
        ("found", "/admin/spaces?find=harb".to_owned()),
        ("space", format!("/admin/spaces/{space}")),
        ("files", "/admin/files/assets".to_owned()),
        ("image", file.to_owned()),
        ("text", "/admin/file?bucket=assets&path=notes/readme.md".to_owned()),
        ("communities", "/admin/communities".to_owned()),
        ("changes", "/admin/changes".to_owned()),
        ("no-changes", "/admin/changes?table=files".to_owned()),
        ("catalog", "/admin/catalog".to_owned()),
        ("check", "/admin/check".to_owned()),
        ("metrics", "/admin/metrics".to_owned()),
        ("missing", "/admin/users/nobody".to_owned()),
    ] {
        for scheme in ["light", "dark"] {
            browser.prefer_colours(scheme);
            for device in ["desktop", "phone"] {
                if device == "phone" {
                    browser.be_a_phone(375, 800);
                } else {
                    browser.be_a_desktop();
                }
                browser.open(&format!("{origin}{path}"));
                let is_wider = "return document.documentElement.scrollWidth > document.documentElement.clientWidth";
                assert_eq!(browser.eval(is_wider), json!(false), "{name} fits a {device}");
                if let Some(axe) = &axe {
                    axe.assert_accessible(&browser, &format!("{name}, {scheme}, {device}"));
                }
                screenshot(&browser, &format!("{name}-{scheme}-{device}"));
            }
        }
    }
    browser.open(&format!("{origin}{file}"));
    let width = "const image = document.querySelector('img'); return image.complete ? image.naturalWidth : 0";
    Fixture::wait_until(|| browser.eval(width) == json!(64));

    // The page of figures loads again by itself.
    browser.open(&format!("{origin}/admin/metrics"));
    browser.eval("document.querySelector('main').firstElementChild.id = 'old'");
    Fixture::wait_until(|| browser.eval("return document.querySelector('#old')") == Value::Null);
}

#[test]
fn hostile_texts_do_not_run() {
    let Some(browser) = Browser::start() else { return };
    let Some(populated) = Populated::on(Engine::Sqlite) else { return };
    let admin = AdminServer::of(populated.command());
    let origin = format!("http://{}", admin.address);
    browser.open(&format!("{origin}/admin?token={}", admin.token));
    for (path, _) in admin.crawl() {
        browser.open(&format!("{origin}{path}"));
        assert_eq!(browser.eval("return window.hacked ?? null"), Value::Null, "{path}");
        assert_eq!(
            browser.eval("return document.querySelectorAll('main script, main img').length"),
            json!(0),
            "{path}"
        );
    }
    // A file that everyone may read has no part in the page, although it has the same origin.
    browser.open(&format!("{origin}/files/assets/folder%20%3Ci%3E/deep/page.html"));
    assert_eq!(browser.eval("return window.hacked ?? null"), Value::Null);
}
