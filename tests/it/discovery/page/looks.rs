//! How the page looks, in light and dark, on a desktop and on a phone: screenshots in `target/screenshots`, sizes for fingers, and the
//! rules of WCAG 2.2 AA that axe-core checks.

use std::path::PathBuf;

use serde_json::Value;
use townsquare_tests::{
    axe::Axe,
    browser::Browser,
    catalog::{Catalog, Row, full_frame},
    paths::workspace,
};

use super::{Site, hostile};

/// The file of a screenshot.
pub(super) fn file(name: &str) -> PathBuf {
    workspace().join(format!("target/screenshots/{name}.png"))
}

/// The views, by the names of their screenshots.
const VIEWS: [(&str, &str); 9] = [
    ("list", "/directory"),
    ("filtered", "/directory?category=games&network=base"),
    ("new", "/directory?sort=new"),
    ("search", "/directory?q=full+house"),
    ("empty", "/directory?q=zzzzqqqq"),
    ("error", "/directory?window=1y"),
    ("details", "/directory/apps/full.example/home"),
    ("pictures", "/directory/apps/full.example/home?images=1"),
    ("hostile", "/directory/apps/hostile.example/home"),
];

fn site() -> Site {
    let mut full = full_frame("full.example");
    full["manifest"]["miniapp"]["description"] =
        "A card game for two to six players, who sit at one table. Each evening has a \
         winner, and each week a tournament.\n\nFull House keeps the score, deals the cards and remembers your friends."
            .into();
    Site::of([Row::from(full), hostile()].into_iter().chain(Catalog::of(150).with_chains().rows()))
}

/// Opens each view in both colour schemes, and calls `check` with its name.
fn each_view(browser: &Browser, site: &Site, device: &str, check: impl Fn(&str)) {
    for scheme in ["light", "dark"] {
        browser.prefer_colours(scheme);
        for (view, path) in VIEWS {
            browser.open(&site.url(path));
            if view == "pictures" {
                // The pictures of this server stand for pictures of others.
                browser.eval(
                    "document.querySelectorAll('img').forEach((picture) => { picture.src = '/directory/icon.svg'; })",
                );
            }
            let name = format!("{view}-{scheme}-{device}");
            browser.screenshot(&file(&name));
            check(&name);
        }
    }
}

#[test]
fn the_page_is_accessible_on_a_desktop() {
    let Some(browser) = Browser::start() else { return };
    let Some(axe) = Axe::load() else { return };
    each_view(&browser, &site(), "desktop", |name| axe.assert_accessible(&browser, name));
}

#[test]
fn the_page_is_accessible_on_a_phone() {
    let Some(browser) = Browser::start() else { return };
    let Some(axe) = Axe::load() else { return };
    browser.be_a_phone(390, 844);
    each_view(&browser, &site(), "phone", |name| axe.assert_accessible(&browser, name));
}

#[test]
fn the_page_fits_a_phone() {
    let Some(browser) = Browser::start() else { return };
    let site = site();
    for width in [320, 390] {
        browser.be_a_phone(width, 844);
        for (view, path) in VIEWS {
            browser.open(&site.url(path));
            let scroll = "return document.documentElement.scrollWidth";
            assert_eq!(browser.eval(scroll), width, "{view}: no sideways scrolling");
            let small = browser.eval(
                "return [...document.querySelectorAll('input:not([type=hidden]), button, .button, .app, #filters a, .orders a, #back')]
                    .filter((control) => control.checkVisibility() && control.getBoundingClientRect().height < 44).map((control) => control.outerHTML)",
            );
            assert_eq!(small, Value::Array(Vec::new()), "{view}: every control is large enough for a finger");
        }
    }
}
