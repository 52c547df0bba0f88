//! The page in Chromium: typing, filters, the back button, keys, errors, what it loads, and what it lays out.

use serde_json::{Value, json};
use townsquare_tests::{
    browser::Browser,
    catalog::{Catalog, FREQUENT_WORD, Row, full_frame},
    wait::{DEADLINE, wait_until, wait_up_to},
};

use super::{HOSTILE, PAGE, Site, hostile};

const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const LEFT: &str = "\u{e012}";
const UP: &str = "\u{e013}";
const RIGHT: &str = "\u{e014}";
const DOWN: &str = "\u{e015}";

/// The frames in which the list scrolls from its begin to its end.
const FRAMES: u32 = 180;

/// How often the page is loaded until no task is long.
const LOADS: usize = 20;

/// The size of the real catalog.
const ALL_APPS: usize = 2_835;

const CARDS: &str = "document.querySelectorAll('#apps .app').length";
const FIRST_NAME: &str = "document.querySelector('#apps h2')?.textContent";
const FOCUS: &str =
    "document.activeElement.closest('.app')?.querySelector('h2').textContent ?? document.activeElement.id";

/// The page of a site in a browser.
struct Visit {
    browser: Browser,
    site: Site,
}

impl Visit {
    /// Opens a path. `None` without a browser.
    fn of(site: Site, path: &str) -> Option<Visit> {
        let browser = Browser::start()?;
        browser.open(&site.url(path));
        Some(Visit { browser, site })
    }

    fn value(&self, expression: &str) -> Value {
        self.browser.eval(&format!("return {expression}"))
    }

    #[track_caller]
    fn waits_for(&self, expression: &str, expected: impl Into<Value>) {
        let expected = expected.into();
        wait_until(&format!("{expression} is {expected}"), || self.value(expression) == expected);
    }

    fn click(&self, selector: &str) {
        self.browser.eval(&format!("document.querySelector({}).click()", json!(selector)));
    }

    fn press(&self, keys: &str) {
        self.browser.press(keys);
    }

    fn query(&self) -> Value {
        self.value("location.search")
    }
}

#[test]
fn a_search_shows_its_matches_while_it_is_typed() {
    let Some(visit) = Visit::of(Site::with_apps(60), "/directory?category=games") else { return };
    let before = visit.value("history.length").as_u64().expect("a number");
    visit.click("#filters [aria-current]");
    visit.waits_for("location.search", "");
    visit.waits_for(CARDS, PAGE);
    visit.press("/");
    assert_eq!(visit.value("document.activeElement.id"), "q");
    let wanted = Catalog::of(60).app(7).name;
    visit.press(&wanted.to_lowercase());
    visit.waits_for(FIRST_NAME, wanted.as_str());
    visit.waits_for("document.querySelector('#apps h2 mark') !== null", true);
    visit.waits_for("document.querySelector('#status').textContent.endsWith(' match') || document.querySelector('#status').textContent.endsWith(' matches')", true);
    visit.waits_for("new URLSearchParams(location.search).get('q')", wanted.to_lowercase());
    assert!(visit.value("document.title").as_str().is_some_and(|title| title.contains(&wanted.to_lowercase())));
    assert_eq!(visit.value("document.activeElement.id"), "q", "the focus stays");
    assert_eq!(visit.value("history.length"), before + 2, "one entry for the filter and one for the search");
    visit.browser.eval("history.back()");
    visit.waits_for("location.search", "");
    visit.waits_for(CARDS, PAGE);
    assert_eq!(visit.value("document.querySelector('#q').value"), "");
    visit.browser.eval("history.back()");
    visit.waits_for("location.search", "?category=games");
    visit.waits_for("document.querySelectorAll('#filters [aria-current]').length", 1);
    visit.browser.eval("history.forward()");
    visit.waits_for("location.search", "");
    visit.waits_for(CARDS, PAGE);
}

#[test]
fn filters_combine_and_keep_the_focus() {
    let Some(visit) = Visit::of(Site::with_apps(110), "/directory") else { return };
    let name = "document.querySelector('#filters section a .name').textContent";
    let category = visit.value(name);
    visit.browser.eval("document.querySelector('#filters section a').focus()");
    visit.press(ENTER);
    visit.waits_for("document.querySelector('#filters [aria-current] .name')?.textContent", category.clone());
    assert_eq!(visit.value("document.activeElement.querySelector('.name')?.textContent"), category, "the focus stays");
    let count = "Number(document.querySelectorAll('#filters section')[1].querySelector('.count').textContent)";
    let expected = visit.value(count);
    visit.browser.eval("document.querySelectorAll('#filters section')[1].querySelector('a').click()");
    visit.waits_for("document.querySelectorAll('#filters [aria-current]').length", 2);
    visit.waits_for("Number.parseInt(document.querySelector('#status').textContent)", expected);
    assert!(visit.query().as_str().is_some_and(|query| query.contains("category=") && query.contains("network=")));
    visit.click(".clear a");
    visit.waits_for("location.search", "");
    visit.waits_for(CARDS, PAGE);
}

/// Choices of a visitor whose network is slow: each is in the next request.
#[test]
fn choices_during_a_request_add_up() {
    let Some(visit) = Visit::of(Site::with_apps(110), "/directory") else { return };
    let delay = |milliseconds: u32| {
        let slow = json!({"offline": false, "latency": milliseconds, "downloadThroughput": -1, "uploadThroughput": -1});
        visit.browser.devtools("Network.enable", &json!({}));
        visit.browser.devtools("Network.emulateNetworkConditions", &slow);
    };
    let links = "document.querySelectorAll('#filters section:first-child a')";
    delay(1_000);
    visit.browser.eval(&format!("{links}[0].click(); {links}[1].click();"));
    visit.press("/");
    visit.press(FREQUENT_WORD);
    visit.waits_for("new URLSearchParams(location.search).get('q')", FREQUENT_WORD);
    assert_eq!(visit.value("new URLSearchParams(location.search).getAll('category').length"), 2);
    // A filter right after a letter.
    let type_and_click = format!(
        "const q = document.querySelector('#q'); q.value = 'a'; q.dispatchEvent(new Event('input')); {links}[2].click();"
    );
    visit.browser.eval(&type_and_click);
    delay(0);
    visit.waits_for("document.querySelectorAll('#filters [aria-current]').length", 3);
    assert_eq!(visit.value("new URLSearchParams(location.search).get('q')"), "a");
    // Filters that are removed meanwhile.
    delay(1_000);
    visit.browser.eval("document.querySelectorAll('#filters [aria-current]').forEach((link) => link.click())");
    delay(0);
    visit.waits_for("document.querySelectorAll('#filters [aria-current]').length", 0);
    assert_eq!(visit.query(), "?q=a");
}

#[test]
fn a_search_begins_at_the_top_and_back_returns_to_the_place() {
    let Some(visit) = Visit::of(Site::with_apps(400), "/directory") else { return };
    let deep = 4 * PAGE as u64;
    wait_until("many apps are loaded", || {
        visit.browser.eval("scrollTo(0, document.body.scrollHeight)");
        visit.value(CARDS).as_u64() >= Some(deep)
    });
    visit.browser.eval("scrollTo(0, Math.floor(document.body.scrollHeight / 2))");
    let place = visit.value("scrollY");
    assert!(place.as_f64() > Some(2_000.0), "{place}");
    visit.waits_for("history.state?.y", place.clone());
    visit.press("/");
    visit.press(FREQUENT_WORD);
    visit.waits_for("document.querySelector('#apps mark') !== null", true);
    assert_eq!(visit.value("scrollY"), 0);
    visit.browser.eval("history.back()");
    visit.waits_for("scrollY", place.clone());
    assert!(visit.value(CARDS).as_u64() >= Some(deep));
    visit.click("#filters section a");
    visit.waits_for("document.querySelectorAll('#filters [aria-current]').length", 1);
    assert_eq!(visit.value("scrollY"), 0);
    visit.browser.eval("history.back()");
    visit.waits_for("scrollY", place.clone());
    visit.browser.eval("window.isOld = true; location.reload()");
    visit.waits_for("window.isOld === undefined", true);
    visit.waits_for("scrollY", place.clone());
    // To the details and back, by the link of the page.
    visit.browser.eval("document.querySelectorAll('#apps h2 a')[100].click()");
    visit.waits_for("document.body.className", "details");
    visit.click("#back");
    visit.waits_for("document.body.className", "list");
    visit.waits_for("scrollY", place);
    // From the details of another app the link leads to the list as it was filtered.
    visit.browser.open(&visit.site.url("/directory?category=games"));
    visit.click("#apps h2 a");
    visit.waits_for("document.body.className", "details");
    visit.click("main section h2 a");
    visit.waits_for("document.readyState + (document.querySelector('#back')?.search ?? '')", "complete?category=games");
}

/// A link from another site cannot choose pictures for its visitor, not even for what the visitor then asks for.
#[test]
fn a_link_of_another_site_chooses_no_pictures() {
    let Some(visit) = Visit::of(Site::with_apps(60), "/health") else { return };
    let link = visit.site.url("/directory?sort=new&images=1");
    visit.browser.open(&format!("data:text/html,<a href='{link}'>games</a>"));
    visit.click("a");
    visit.waits_for("document.body.className", "list");
    assert_eq!(visit.query(), "?sort=new");
    visit.press("/");
    visit.press(FREQUENT_WORD);
    visit.waits_for("document.querySelector('#apps mark') !== null", true);
    assert_eq!(visit.value("document.querySelectorAll('img, #apps a[href*=images]').length"), 0);
}

#[test]
fn the_focus_goes_to_the_heading_when_its_link_is_gone() {
    let Some(visit) = Visit::of(Site::with_apps(60), "/directory?category=games") else { return };
    visit.browser.eval("document.querySelector('.clear a').focus()");
    visit.press(ENTER);
    visit.waits_for("location.search", "");
    visit.waits_for("document.activeElement.id", "heading");
}

#[test]
fn keys_move_between_apps_and_open_them() {
    let Some(visit) = Visit::of(Site::with_apps(60), "/directory") else { return };
    let names: Vec<String> = Catalog::of(60).apps().map(|app| app.name).collect();
    visit.press("/");
    visit.press(DOWN);
    assert_eq!(visit.value(FOCUS), names[0].as_str());
    visit.press(RIGHT);
    assert_eq!(visit.value(FOCUS), names[1].as_str());
    visit.press(DOWN);
    let columns = "getComputedStyle(document.querySelector('#apps .apps')).gridTemplateColumns.split(' ').length";
    let columns = visit.value(columns).as_u64().expect("a number") as usize;
    assert!(columns > 1, "{columns}");
    assert_eq!(visit.value(FOCUS), names[1 + columns].as_str());
    visit.press(UP);
    visit.press(LEFT);
    assert_eq!(visit.value(FOCUS), names[0].as_str());
    visit.press(UP);
    assert_eq!(visit.value(FOCUS), "q");
    // Enter searches at once and moves to the first match, a second one opens it.
    visit.press(&names[7].to_lowercase());
    visit.press(ENTER);
    visit.waits_for(FOCUS, names[7].as_str());
    visit.press(ENTER);
    visit.waits_for("document.querySelector('h1')?.textContent", names[7].as_str());
    assert!(visit.value("location.pathname").as_str().is_some_and(|path| path.starts_with("/directory/apps/")));
    visit.browser.eval("history.back()");
    visit.waits_for(FIRST_NAME, names[7].as_str());
    visit.browser.eval("history.forward()");
    visit.waits_for("document.body.className", "details");
    // Escape goes back to the search, and then clears it; in the field it clears what is typed first.
    visit.press("/");
    visit.press("abc");
    visit.press(ESCAPE);
    assert_eq!(visit.value("document.body.className + document.querySelector('#q').value"), "details");
    visit.press(ESCAPE);
    visit.waits_for("document.body.className", "list");
    assert_eq!(visit.value("new URLSearchParams(location.search).get('q')"), names[7].to_lowercase());
    visit.waits_for(FIRST_NAME, names[7].as_str());
    visit.press("/");
    visit.press("zzzzqqqq");
    visit.waits_for("document.querySelector('.message .large')?.textContent", "No app found");
    visit.press(ESCAPE);
    visit.waits_for(CARDS, PAGE);
    assert_eq!(visit.value("document.querySelector('#q').value + location.search"), "");
}

#[test]
fn a_server_that_does_not_answer_is_an_error_with_another_try() {
    let Some(visit) = Visit::of(Site::with_apps(60), "/directory") else { return };
    let offline = |is_offline: bool| {
        let conditions = json!({"offline": is_offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        visit.browser.devtools("Network.enable", &json!({}));
        visit.browser.devtools("Network.emulateNetworkConditions", &conditions);
    };
    offline(true);
    visit.press("/");
    visit.press(FREQUENT_WORD);
    visit.waits_for("document.querySelector('.failed[role=alert] h1')?.textContent", "The server does not answer");
    visit.browser.screenshot(&super::looks::file("failed-light-desktop"));
    offline(false);
    visit.click(".failed button");
    visit.waits_for(&format!("{CARDS} > 0 && !document.querySelector('.failed')"), true);
    // A slow answer: the cards become skeletons. It does not arrive while the test looks at them.
    let slow = json!({"offline": false, "latency": 60_000, "downloadThroughput": -1, "uploadThroughput": -1});
    visit.browser.devtools("Network.emulateNetworkConditions", &slow);
    visit.press(" a");
    visit.waits_for("document.querySelector('#results').className", "waiting");
    visit.browser.screenshot(&super::looks::file("waiting-light-desktop"));
    offline(false);
    // The next letter gives up the slow request, which may keep its delay.
    visit.press("b");
    visit.waits_for("new URLSearchParams(location.search).get('q')", format!("{FREQUENT_WORD} ab"));
    visit.waits_for("document.querySelector('#results').className", "");
}

#[test]
fn nothing_is_loaded_from_other_servers_unless_the_visitor_chooses_pictures() {
    let rows = ["one.example", "two.example"].map(|host| Row::from(full_frame(host)));
    let Some(visit) = Visit::of(Site::of(Catalog::of(5).rows().chain(rows).chain([hostile()])), "/directory") else {
        return;
    };
    let foreign = "performance.getEntriesByType('resource').map((entry) => new URL(entry.name)).filter((url) => url.origin !== \
                   location.origin).map((url) => url.host)";
    for path in ["/directory", "/directory/apps/one.example/home", "/directory/apps/hostile.example/home"] {
        visit.browser.open(&visit.site.url(path));
        assert_eq!(visit.value("document.querySelectorAll('img, iframe, object').length"), 0, "{path}");
        // Even markup that got into the page would not run, and without the choice it would load nothing.
        visit.browser.eval(
            "const made = document.createElement('div');
            made.innerHTML = '<img src=\"https://tracker.example/x.png\" onerror=\"window.hacked=1\"><b onclick=\"window.hacked=1\"></b>';
            document.body.append(made);
            made.querySelector('b').click();",
        );
        assert_eq!(visit.value("window.hacked === undefined"), true, "{path}");
        assert_eq!(
            visit.value(&format!("{foreign}.filter((host) => host !== 'tracker.example')")),
            json!([]),
            "{path}"
        );
        let sent = "performance.getEntriesByType('resource').filter((entry) => entry.name.includes('tracker') && entry.transferSize > 0)";
        assert_eq!(visit.value(&format!("{sent}.length")), 0, "{path}");
    }
    assert_eq!(visit.value("document.querySelector('h1').textContent"), HOSTILE);
    visit.browser.open(&visit.site.url("/directory"));
    visit.click(".pictures a");
    visit.waits_for("location.search", "?images=1");
    visit.waits_for("document.querySelectorAll('.tile img').length", 6);
    visit.waits_for(&format!("{foreign}.includes('one.example')"), true);
    // A picture that cannot be loaded leaves the letter.
    visit.waits_for(
        "[...document.images].every((picture) => picture.complete && !picture.classList.contains('loaded'))",
        true,
    );
    visit.press("/");
    visit.press("full");
    visit.waits_for(FIRST_NAME, "Full House");
    assert_eq!(visit.query(), "?q=full&images=1", "the choice stays");
}

#[test]
fn without_scripts_the_list_the_search_the_filters_and_the_details_work() {
    let Some(browser) = Browser::start() else { return };
    browser.be_without_scripts();
    let site = Site::with_apps(110);
    browser.open(&site.url("/directory"));
    let visit = Visit { browser, site };
    assert_eq!(visit.value(CARDS), PAGE);
    let follow = |selector: &str, now: &str| {
        visit.click(selector);
        visit.waits_for(&format!("location.pathname.includes({0}) || location.search.includes({0})", json!(now)), true);
        visit.waits_for("document.readyState", "complete");
    };
    follow("#pages [rel=next]", "page=2");
    assert_eq!(visit.value(CARDS), PAGE);
    follow("#filters section a", "category=");
    assert_eq!(visit.value("document.querySelectorAll('#filters [aria-current]').length"), 1);
    visit.click(".clear a");
    visit.waits_for("location.search", "");
    visit.waits_for(CARDS, PAGE);
    visit.browser.eval("document.querySelector('#q').focus()");
    let wanted = Catalog::of(110).app(7).name;
    visit.press(&wanted);
    visit.press(ENTER);
    visit.waits_for("new URLSearchParams(location.search).get('q')", wanted.as_str());
    visit.waits_for(FIRST_NAME, wanted.as_str());
    follow("#apps h2 a", "/directory/apps/");
    assert_eq!(visit.value("document.querySelector('h1').textContent"), wanted.as_str());
    assert_ne!(visit.value("document.querySelectorAll('.app').length"), 0, "similar apps");
    visit.click("#back");
    visit.waits_for("location.pathname", "/directory");
    visit.waits_for(CARDS, PAGE);
}

#[test]
fn all_apps_scroll_smoothly_and_nothing_shifts() {
    let Some(visit) = Visit::of(Site::with_apps(ALL_APPS), "/directory") else { return };
    visit.browser.eval(
        "window.shift = 0; window.moved = [];
        new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) { shift += entry.value; moved.push(...entry.sources.map((source) => (source.node?.outerHTML ?? '').slice(0, 80))); } })
            .observe({ type: 'layout-shift', buffered: true });",
    );
    visit.press("/");
    visit.press("a");
    visit.waits_for("document.querySelector('#status').textContent.includes('match')", true);
    visit.press(ESCAPE);
    visit.waits_for("location.search", "");
    visit.waits_for(&format!("{CARDS} >= {PAGE}"), true);
    // The end of the list comes near again and again, until all apps are there.
    let all = visit.value("Number.parseInt(document.querySelector('#status').textContent.replace(',', ''))");
    let mut shown = visit.value(CARDS);
    while shown != all {
        // A browser without a graphics card lays out thousands of cards, beside other tests.
        wait_up_to(6 * DEADLINE, "more apps are loaded", || {
            visit.browser.eval("scrollTo(0, document.body.scrollHeight - innerHeight - 900)");
            visit.value(CARDS) != shown
        });
        shown = visit.value(CARDS);
    }
    assert!(all.as_u64().is_some_and(|all| all > 2_800), "{all}");
    // The work of a frame is bounded because the browser skips the cards that are far from the view, wherever the view is.
    let rendered = visit.value(&format!(
        "new Promise((resolve) => {{
            const names = [...document.querySelectorAll('#apps .app h2')];
            let most = 0, left = {FRAMES};
            scrollTo(0, 0);
            const step = () => {{
                scrollBy(0, (document.body.scrollHeight - innerHeight) / {FRAMES});
                most = Math.max(most, names.filter((name) => name.checkVisibility({{ contentVisibilityAuto: true }})).length);
                if (left--) requestAnimationFrame(step); else resolve(most);
            }};
            requestAnimationFrame(step);
        }})"
    ));
    let page = PAGE as u64;
    assert!(rendered.as_u64().is_some_and(|most| (page..=6 * page).contains(&most)), "{rendered} of {all} cards");
    assert!(
        visit.value("shift").as_f64().is_some_and(|shift| shift < 0.01),
        "{} {}",
        visit.value("shift"),
        visit.value("moved")
    );
}

#[test]
fn the_page_loads_without_a_long_task() {
    let Some(visit) = Visit::of(Site::with_apps(ALL_APPS), "/directory") else { return };
    let longest = || {
        visit.browser.open(&visit.site.url("/directory"));
        visit.waits_for("performance.getEntriesByName('first-contentful-paint').length", 1);
        assert_eq!(visit.value(CARDS), PAGE, "the first response has the first apps");
        let files = visit.value("performance.getEntriesByType('resource').length").as_u64().expect("a number");
        assert!(files <= 4, "style, script, icon, and perhaps the next apps: {files}");
        let longest = "new Promise((resolve) => {
            new PerformanceObserver((list) => resolve(Math.max(...list.getEntries().map((entry) => entry.duration))))
                .observe({ type: 'longtask', buffered: true });
            setTimeout(() => resolve(0), 300);
        })";
        visit.value(longest).as_f64().expect("a number")
    };
    // Other programs of the machine can make a task long, but not each time.
    let mut durations = Vec::new();
    let is_short =
        (0..LOADS).map(|_| longest()).inspect(|longest| durations.push(*longest)).any(|longest| longest < 200.0);
    assert!(is_short, "the longest tasks take {durations:?} ms");
}
