//! One row of the upstream's body, mapped to a record (UPSTREAM 1 "How we read them", 2 "Mapping").
//!
//! Invariant: every record has an http(s) home, a name, and texts within their bounds; lenient in, tidy out.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use url::Url;

use super::lenient::{Object, Scalar, Texts};
use crate::{
    catalog::taxonomy,
    catalog::{Fields, MiniAppRecord, Publisher},
};

/// A record, and whether its row said which chains it needs.
pub(super) struct Row {
    pub(super) record: MiniAppRecord,
    pub(super) has_chains: bool,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    version: Scalar<'a>,
    #[serde(borrow, default)]
    image: Scalar<'a>,
    #[serde(borrow, default)]
    frames_url: Scalar<'a>,
    #[serde(borrow, default)]
    title: Scalar<'a>,
    #[serde(borrow, default)]
    manifest: Object<Manifests<'a>>,
    #[serde(borrow, default)]
    author: Object<Author<'a>>,
}

#[derive(Deserialize)]
struct Manifests<'a> {
    #[serde(borrow, default)]
    miniapp: Object<Manifest<'a>>,
    #[serde(borrow, default)]
    frame: Object<Manifest<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Manifest<'a> {
    #[serde(borrow)]
    version: Scalar<'a>,
    #[serde(borrow)]
    name: Scalar<'a>,
    #[serde(borrow)]
    home_url: Scalar<'a>,
    #[serde(borrow)]
    icon_url: Scalar<'a>,
    #[serde(borrow)]
    image_url: Scalar<'a>,
    #[serde(borrow)]
    button_title: Scalar<'a>,
    #[serde(borrow)]
    splash_image_url: Scalar<'a>,
    #[serde(borrow)]
    splash_background_color: Scalar<'a>,
    #[serde(borrow)]
    subtitle: Scalar<'a>,
    #[serde(borrow)]
    description: Scalar<'a>,
    #[serde(borrow)]
    screenshot_urls: Texts<'a>,
    #[serde(borrow)]
    primary_category: Scalar<'a>,
    #[serde(borrow)]
    tags: Texts<'a>,
    #[serde(borrow)]
    hero_image_url: Scalar<'a>,
    #[serde(borrow)]
    tagline: Scalar<'a>,
    #[serde(borrow)]
    noindex: Scalar<'a>,
    #[serde(borrow)]
    required_chains: Texts<'a>,
}

#[derive(Deserialize)]
struct Author<'a> {
    #[serde(borrow, default)]
    fid: Scalar<'a>,
    #[serde(borrow, default)]
    username: Scalar<'a>,
    #[serde(borrow, default)]
    display_name: Scalar<'a>,
    #[serde(borrow, default)]
    pfp_url: Scalar<'a>,
    #[serde(borrow, default)]
    follower_count: Scalar<'a>,
    #[serde(borrow, default)]
    score: Scalar<'a>,
    #[serde(borrow, default)]
    power_badge: Scalar<'a>,
}

/// Bounds in characters: those of UPSTREAM 1, and wide ones against rows that only mean harm.
const NAME: usize = 200;
const DESCRIPTION: usize = 2_000;
const URL: usize = 2_048;
const ITEMS: usize = 50;

/// The row's record, or `None` for a row that is malformed or does not want to be listed.
pub(super) fn read(json: &str, fetched_at: Timestamp) -> Option<Row> {
    let frame = serde_json::from_str::<Object<Frame<'_>>>(json).ok()?.0?;
    let manifest = frame.manifest.0.and_then(|both| both.miniapp.0.or(both.frame.0)).unwrap_or_default();
    if manifest.noindex.flag() == Some(true) {
        return None;
    }
    let home_url = trimmed(manifest.home_url).or_else(|| trimmed(frame.frames_url))?;
    let home = Url::parse(&home_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let domain = home.host_str().filter(|host| !host.is_empty())?;
    let image = link(frame.image);
    let has_chains = manifest.required_chains.0.is_some();
    let fields = Fields {
        id: app_id(&home, domain).into(),
        domain: domain.into(),
        name: text(manifest.name, NAME).or_else(|| text(frame.title, NAME)).unwrap_or_else(|| domain.into()),
        description: text(manifest.description, DESCRIPTION),
        icon_url: link(manifest.icon_url).or_else(|| image.clone()).unwrap_or_default(),
        category: text(manifest.primary_category, NAME)
            .and_then(|name| cut(name, |name| Some(taxonomy::fold_category(name)))),
        networks: networks(manifest.required_chains),
        tags: items(manifest.tags, |tag| tidy(tag, NAME)),
        author: frame.author.0.and_then(author),
        screenshots: items(manifest.screenshot_urls, web_link),
        hero_image_url: link(manifest.hero_image_url),
        tagline: text(manifest.tagline, NAME),
        subtitle: text(manifest.subtitle, NAME),
        version: text(manifest.version, NAME).or_else(|| text(frame.version, NAME)).unwrap_or_default(),
        button_title: text(manifest.button_title, NAME),
        image_url: link(manifest.image_url).or(image),
        splash_image_url: link(manifest.splash_image_url),
        splash_background_color: text(manifest.splash_background_color, NAME),
        last_fetched: fetched_at,
        home_url,
    };
    Some(Row { record: MiniAppRecord::from(&fields), has_chains })
}

/// The normalised home URL without its scheme. `Url` has lower-cased the host and dropped a default port already.
fn app_id(home: &Url, domain: &str) -> String {
    let mut id = String::with_capacity(home.as_str().len());
    id.push_str(domain);
    if let Some(port) = home.port() {
        id.push(':');
        id.push_str(&port.to_string());
    }
    id.push_str(home.path().trim_end_matches('/'));
    if let Some(query) = home.query() {
        id.push('?');
        id.push_str(query);
    }
    id
}

fn author(author: Author<'_>) -> Option<Publisher<'_>> {
    Some(Publisher {
        fid: author.fid.count()?,
        username: text(author.username, NAME)?,
        display_name: text(author.display_name, NAME),
        pfp_url: link(author.pfp_url),
        follower_count: author.follower_count.count().unwrap_or(0),
        score: author.score.number().filter(|score| (0.0..=1.0).contains(score)),
        is_power_user: author.power_badge.flag().unwrap_or(false),
    })
}

fn networks(chains: Texts<'_>) -> Vec<Cow<'_, str>> {
    let mut names = Vec::new();
    for chain in chains.0.unwrap_or_default().into_iter().take(ITEMS) {
        let name = cut(chain, |chain| tidy(taxonomy::network_of_chain(chain.trim()), NAME));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

fn items<'a>(list: Texts<'a>, part: impl Fn(&str) -> Option<&str>) -> Vec<Cow<'a, str>> {
    list.0.unwrap_or_default().into_iter().filter_map(|item| cut(item, &part)).take(ITEMS).collect()
}

fn link(value: Scalar<'_>) -> Option<Cow<'_, str>> {
    cut(value.into_text()?, web_link)
}

fn text(value: Scalar<'_>, bound: usize) -> Option<Cow<'_, str>> {
    cut(value.into_text()?, |text| tidy(text, bound))
}

/// The part of a text that is wanted; borrowed from the body if the text is.
fn cut<'a>(text: Cow<'a, str>, part: impl Fn(&str) -> Option<&str>) -> Option<Cow<'a, str>> {
    match text {
        Cow::Borrowed(text) => part(text).map(Cow::Borrowed),
        Cow::Owned(text) => part(&text).map(|part| Cow::Owned(part.to_owned())),
    }
}

/// An http(s) URL that is safe to put into a page's `src`; anything else is dropped.
fn web_link(value: &str) -> Option<&str> {
    let value = value.trim();
    let is_web = ["https://", "http://"].iter().any(|scheme| {
        value.len() > scheme.len() && value.as_bytes()[..scheme.len()].eq_ignore_ascii_case(scheme.as_bytes())
    });
    let is_clean = value.len() <= URL && !value.bytes().any(|byte| byte <= b' ' || b"\"<>".contains(&byte));
    (is_web && is_clean).then_some(value)
}

fn trimmed(value: Scalar<'_>) -> Option<Cow<'_, str>> {
    cut(value.into_text()?, |text| Some(text.trim()).filter(|text| !text.is_empty()))
}

fn tidy(text: &str, bound: usize) -> Option<&str> {
    let text = bounded(text.trim(), bound).trim_end();
    (!text.is_empty()).then_some(text)
}

/// The first `bound` characters.
fn bounded(text: &str, bound: usize) -> &str {
    // Bytes are never fewer than characters: most texts need no counting.
    if text.len() <= bound {
        return text;
    }
    text.char_indices().nth(bound).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(json: &str) -> MiniAppRecord {
        read(json, Timestamp::UNIX_EPOCH).expect("a good row").record
    }

    #[test]
    fn an_id_is_the_normalised_home_without_scheme() {
        for (url, id) in [
            ("https://A.Example/", "a.example"),
            ("http://a.example:80/App/#top", "a.example/App"),
            ("https://a.example:8443/x/?q=1", "a.example:8443/x?q=1"),
        ] {
            assert_eq!(record(&format!(r#"{{"frames_url":"{url}"}}"#)).id(), id, "{url}");
        }
    }

    #[test]
    fn the_miniapp_manifest_wins_and_the_frame_fills_in() {
        let app = record(
            r#"{"version":"next","image":"https://i.example/i.png","frames_url":"https://f.example","title":"T",
                "manifest":{"frame":{"name":"old"},"miniapp":{"name":" New ","icon_url":"javascript:x","primary_category":"Games"}}}"#,
        );
        assert_eq!((app.name(), app.home_url(), app.version()), ("New", "https://f.example", "next"));
        assert_eq!((app.icon_url(), app.category()), ("https://i.example/i.png", Some("games")));
        assert!(app.author().is_none());
    }

    #[test]
    fn rows_that_are_no_web_page_or_ask_not_to_be_listed_are_left_out() {
        for json in [
            r#"{"frames_url":"file:///etc/passwd"}"#,
            r#"{"frames_url":""}"#,
            r#"{"frames_url":"https://a.example","manifest":{"frame":{"noindex":true}}}"#,
        ] {
            assert!(read(json, Timestamp::UNIX_EPOCH).is_none(), "{json}");
        }
    }

    #[test]
    fn text_is_bounded_by_characters() {
        let app = record(&format!(r#"{{"frames_url":"https://a.example","title":"{}"}}"#, "é".repeat(300)));
        assert_eq!(app.name().chars().count(), 200);
    }

    #[test]
    fn chains_become_network_names() {
        let app = record(
            r#"{"frames_url":"https://a.example","manifest":{"miniapp":{"required_chains":["eip155:8453",7,"eip155:999999","eip155:8453"]}}}"#,
        );
        assert_eq!(app.networks().collect::<Vec<_>>(), ["base", "eip155:999999"]);
    }
}
