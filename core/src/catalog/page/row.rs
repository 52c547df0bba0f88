//! Parses one row of an upstream page into a record (UPSTREAM 1 "How we read them", 2 "Mapping"). The shape of a row is
//! recognised by its parts, whatever the source.
//!
//! Invariant: every record has an http(s) home URL and a name, and its texts are within their bounds.

mod camel_case;

use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde::Deserialize;
use url::Url;

use super::lenient::{Lenient, Object};
use crate::catalog::{
    MiniAppRecord,
    mini_app::{AuthorContent, RecordContent},
    taxonomy,
};

/// A parsed row: its record, and whether the row names the chains that it requires.
pub(super) struct ParsedRow {
    pub(super) record: MiniAppRecord,
    pub(super) has_chains: bool,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct FrameJson<'a> {
    version: Lenient<'a>,
    image: Lenient<'a>,
    frames_url: Lenient<'a>,
    title: Lenient<'a>,
    manifest: Object<ManifestsJson<'a>>,
    author: Object<AuthorJson<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ManifestsJson<'a> {
    miniapp: Object<ManifestJson<'a>>,
    frame: Object<ManifestJson<'a>>,
}

/// The app itself. Neynar writes snake_case, Farcaster camelCase.
#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ManifestJson<'a> {
    version: Lenient<'a>,
    name: Lenient<'a>,
    #[serde(alias = "homeUrl")]
    home_url: Lenient<'a>,
    #[serde(alias = "iconUrl")]
    icon_url: Lenient<'a>,
    #[serde(alias = "imageUrl")]
    image_url: Lenient<'a>,
    #[serde(alias = "buttonTitle")]
    button_title: Lenient<'a>,
    #[serde(alias = "splashImageUrl")]
    splash_image_url: Lenient<'a>,
    #[serde(alias = "splashBackgroundColor")]
    splash_background_color: Lenient<'a>,
    subtitle: Lenient<'a>,
    description: Lenient<'a>,
    #[serde(alias = "screenshotUrls")]
    screenshot_urls: Lenient<'a>,
    #[serde(alias = "primaryCategory")]
    primary_category: Lenient<'a>,
    tags: Lenient<'a>,
    #[serde(alias = "heroImageUrl")]
    hero_image_url: Lenient<'a>,
    tagline: Lenient<'a>,
    noindex: Lenient<'a>,
    #[serde(alias = "requiredChains")]
    required_chains: Lenient<'a>,
    /// In a row in camelCase: there is no frame around the app.
    author: Object<AuthorJson<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AuthorJson<'a> {
    fid: Lenient<'a>,
    username: Lenient<'a>,
    #[serde(alias = "displayName")]
    display_name: Lenient<'a>,
    #[serde(alias = "pfpUrl")]
    pfp_url: Lenient<'a>,
    pfp: Object<PictureJson<'a>>,
    #[serde(alias = "followerCount")]
    follower_count: Lenient<'a>,
    score: Lenient<'a>,
    power_badge: Lenient<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct PictureJson<'a> {
    url: Lenient<'a>,
}

/// Upper bounds: characters (UPSTREAM 1), bytes of a URL, items of a list. The last two guard against hostile rows.
const NAME_CHARS: usize = 200;
const DESCRIPTION_CHARS: usize = 2_000;
const URL_BYTES: usize = 2_048;
const MAX_ITEMS: usize = 50;

impl FrameJson<'_> {
    /// Whether no part that names the app has a value: the row is in another shape.
    fn is_empty(&self) -> bool {
        let has_url = matches!(self.frames_url, Lenient::Text(_));
        let has_manifest =
            self.manifest.0.as_ref().is_some_and(|both| both.miniapp.0.is_some() || both.frame.0.is_some());
        !has_url && !has_manifest
    }
}

/// Parses a row; `None` if it is malformed or marked `noindex`.
pub(super) fn parse(json: &str, fetched_at: Timestamp) -> Option<ParsedRow> {
    let mut frame = serde_json::from_str::<Object<FrameJson<'_>>>(json).ok()?.0?;
    if frame.is_empty() {
        frame = camel_case::parse(json)?;
    }
    let manifest = frame.manifest.0.and_then(|both| both.miniapp.0.or(both.frame.0)).unwrap_or_default();
    if manifest.noindex.as_bool() == Some(true) {
        return None;
    }
    let home = trimmed(manifest.home_url).or_else(|| trimmed(frame.frames_url))?;
    let home = Url::parse(&home).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    // As parsed, so that no character ends an HTML attribute, whatever its quotes are, and no line break is left.
    let home_url = home.as_str().replace('\'', "%27");
    if home_url.len() > URL_BYTES {
        return None;
    }
    let domain = home.host_str().filter(|host| !host.is_empty())?;
    let image = url(frame.image);
    let has_chains = matches!(manifest.required_chains, Lenient::Texts(_));
    let content = RecordContent {
        id: app_id(&home, domain).into(),
        domain: domain.into(),
        name: text(manifest.name, NAME_CHARS)
            .or_else(|| text(frame.title, NAME_CHARS))
            .unwrap_or_else(|| domain.into()),
        description: text(manifest.description, DESCRIPTION_CHARS),
        icon_url: url(manifest.icon_url).or_else(|| image.clone()).unwrap_or_default(),
        category: text(manifest.primary_category, NAME_CHARS).map(|name| taxonomy::canonical_category(&name).into()),
        networks: networks(manifest.required_chains),
        tags: items(manifest.tags, |tag| normalized(tag, NAME_CHARS)),
        author: frame.author.0.and_then(author),
        screenshots: items(manifest.screenshot_urls, http_url),
        hero_image_url: url(manifest.hero_image_url),
        tagline: text(manifest.tagline, NAME_CHARS),
        subtitle: text(manifest.subtitle, NAME_CHARS),
        version: text(manifest.version, NAME_CHARS).or_else(|| text(frame.version, NAME_CHARS)).unwrap_or_default(),
        button_title: text(manifest.button_title, NAME_CHARS),
        image_url: url(manifest.image_url).or(image),
        splash_image_url: url(manifest.splash_image_url),
        splash_background_color: text(manifest.splash_background_color, NAME_CHARS),
        home_url: home_url.into(),
    };
    Some(ParsedRow { record: MiniAppRecord::new(content, fetched_at), has_chains })
}

/// The normalised home URL without its scheme. `Url` lower-cases the host and drops a default port.
pub(crate) fn app_id(home: &Url, domain: &str) -> String {
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

fn author(author: AuthorJson<'_>) -> Option<AuthorContent> {
    Some(AuthorContent {
        fid: author.fid.as_count()?,
        username: text(author.username, NAME_CHARS)?,
        display_name: text(author.display_name, NAME_CHARS),
        pfp_url: url(author.pfp.0.map_or(author.pfp_url, |picture| picture.url)),
        follower_count: author.follower_count.as_count().unwrap_or(0),
        score: author.score.as_number().filter(|score| (0.0..=1.0).contains(score)),
        is_power_user: author.power_badge.as_bool().unwrap_or(false),
    })
}

fn networks(chains: Lenient<'_>) -> Box<[Box<str>]> {
    let mut names: Vec<Box<str>> = Vec::new();
    for chain in chains.into_texts().unwrap_or_default().into_iter().take(MAX_ITEMS) {
        let name = normalized(taxonomy::network_of_chain(chain.trim()), NAME_CHARS).map(Box::from);
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names.into()
}

fn items(list: Lenient<'_>, part: impl Fn(&str) -> Option<&str>) -> Box<[Box<str>]> {
    list.into_texts().unwrap_or_default().iter().filter_map(|item| part(item).map(Box::from)).take(MAX_ITEMS).collect()
}

fn url(value: Lenient<'_>) -> Option<Box<str>> {
    http_url(&value.into_text()?).map(Box::from)
}

fn text(value: Lenient<'_>, bound: usize) -> Option<Box<str>> {
    normalized(&value.into_text()?, bound).map(Box::from)
}

/// An http(s) URL without characters that would end an HTML attribute; `None` for any other text.
fn http_url(value: &str) -> Option<&str> {
    let value = value.trim();
    let is_http = ["https://", "http://"].iter().any(|scheme| {
        value.len() > scheme.len() && value.as_bytes()[..scheme.len()].eq_ignore_ascii_case(scheme.as_bytes())
    });
    let is_safe = value.len() <= URL_BYTES && !value.bytes().any(|byte| byte <= b' ' || b"\"<>".contains(&byte));
    (is_http && is_safe).then_some(value)
}

fn trimmed(value: Lenient<'_>) -> Option<Box<str>> {
    Some(value.into_text()?.trim()).filter(|text| !text.is_empty()).map(Box::from)
}

fn normalized(text: &str, bound: usize) -> Option<&str> {
    let text = truncated(text.trim(), bound).trim_end();
    (!text.chars().all(is_unseen)).then_some(text)
}

/// Whether a character leaves no mark on a screen: a link with such a name alone could not be seen.
fn is_unseen(character: char) -> bool {
    const UNSEEN: [RangeInclusive<char>; 9] = [
        '\u{ad}'..='\u{ad}',
        '\u{34f}'..='\u{34f}',
        '\u{61c}'..='\u{61c}',
        '\u{115f}'..='\u{1160}',
        '\u{180b}'..='\u{180f}',
        '\u{200b}'..='\u{200f}',
        '\u{202a}'..='\u{206f}',
        '\u{2800}'..='\u{2800}',
        '\u{fe00}'..='\u{fe0f}',
    ];
    const MORE: [char; 3] = ['\u{3164}', '\u{feff}', '\u{ffa0}'];
    character.is_whitespace()
        || character.is_control()
        || MORE.contains(&character)
        || UNSEEN.iter().any(|range| range.contains(&character))
}

/// The first `bound` characters.
fn truncated(text: &str, bound: usize) -> &str {
    // A text has at least as many bytes as characters, so most texts need no counting.
    if text.len() <= bound {
        return text;
    }
    text.char_indices().nth(bound).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_nobody_can_see_is_none() {
        for unseen in ["", " ", "\u{200b}", "\u{3164}\u{2060}", "\u{feff} \u{202e}", "\u{7}"] {
            assert_eq!(normalized(unseen, 10), None, "{unseen:?}");
        }
        assert_eq!(normalized(" \u{200b}a ", 10), Some("\u{200b}a"));
    }

    fn record(json: &str) -> MiniAppRecord {
        parse(json, Timestamp::UNIX_EPOCH).expect("a good row").record
    }

    #[test]
    fn an_id_is_the_normalised_home_url_without_scheme() {
        for (url, id) in [
            ("https://A.Example/", "a.example"),
            ("http://a.example:80/App/#top", "a.example/App"),
            ("https://a.example:8443/x/?q=1", "a.example:8443/x?q=1"),
        ] {
            assert_eq!(record(&format!(r#"{{"frames_url":"{url}"}}"#)).id(), id, "{url}");
        }
    }

    #[test]
    fn the_miniapp_manifest_is_preferred_and_the_frame_is_the_fallback() {
        let app = record(
            r#"{"version":"next","image":"https://i.example/i.png","frames_url":"https://f.example","title":"T",
                "manifest":{"frame":{"name":"old"},"miniapp":{"name":" New ","icon_url":"javascript:x","primary_category":"Games"}}}"#,
        );
        assert_eq!((app.name(), app.home_url(), app.version()), ("New", "https://f.example/", "next"));
        assert_eq!((app.icon_url(), app.category()), ("https://i.example/i.png", Some("games")));
        assert!(app.author().is_none());
    }

    #[test]
    fn rows_without_an_http_url_and_noindex_rows_are_skipped() {
        for json in [
            r#"{"frames_url":"file:///etc/passwd"}"#,
            r#"{"frames_url":""}"#,
            r#"{"frames_url":"https://a.example","manifest":{"frame":{"noindex":true}}}"#,
        ] {
            assert!(parse(json, Timestamp::UNIX_EPOCH).is_none(), "{json}");
        }
    }

    #[test]
    fn a_home_url_is_the_parsed_url() {
        for (url, home_url) in [
            ("https://A.Example", "https://a.example/"),
            (r#"https://a.example/\"><b onload='x'> "#, "https://a.example/%22%3E%3Cb%20onload=%27x%27%3E"),
            (r#"https://a.example/?q=\"<'>&r=1#\"<'>"#, "https://a.example/?q=%22%3C%27%3E&r=1#%22%3C%27%3E"),
            (r"https://a.exa\nmple/a\r\n\tb", "https://a.example/ab"),
        ] {
            let json = format!(r#"{{"frames_url":"{url}"}}"#);
            assert_eq!(record(&json).home_url(), home_url, "{url}");
        }
        let long = format!(r#"{{"frames_url":"https://a.example/{}"}}"#, "a".repeat(URL_BYTES));
        assert!(parse(&long, Timestamp::UNIX_EPOCH).is_none());
    }

    #[test]
    fn names_are_truncated_by_characters() {
        let app = record(&format!(r#"{{"frames_url":"https://a.example","title":"{}"}}"#, "é".repeat(300)));
        assert_eq!(app.name().chars().count(), 200);
    }

    #[test]
    fn rows_in_camel_case_are_recognised() {
        let app = r#"{"name":"A","homeUrl":"https://a.example","iconUrl":"https://a.example/i.png","primaryCategory":"Games",
            "requiredChains":["eip155:8453"],"tags":["x"],"heroImageUrl":7,
            "author":{"fid":3,"username":"ann","displayName":"Ann","pfp":{"url":"https://p.example"},"followerCount":9}}"#;
        for json in [app.to_owned(), format!(r#"{{"rank":1,"miniApp":{app}}}"#), format!(r#"{{"frame":{app}}}"#)] {
            let app = record(&json);
            assert_eq!((app.id(), app.name(), app.category()), ("a.example", "A", Some("games")));
            assert_eq!(app.networks().collect::<Vec<_>>(), ["base"]);
            let author = app.author().expect("an author");
            assert_eq!((author.fid, author.display_name, author.pfp_url), (3, Some("Ann"), Some("https://p.example")));
            assert_eq!(author.follower_count, 9);
        }
        assert!(parse(r#"{"rank":1,"miniApp":{"name":"no URL"}}"#, Timestamp::UNIX_EPOCH).is_none());
    }

    #[test]
    fn chains_become_network_names() {
        let app = record(
            r#"{"frames_url":"https://a.example","manifest":{"miniapp":{"required_chains":["eip155:8453",7,"eip155:999999","eip155:8453"]}}}"#,
        );
        assert_eq!(app.networks().collect::<Vec<_>>(), ["base", "eip155:999999"]);
    }
}
