//! Parses one row of an upstream page into a record (UPSTREAM 1 "How we read them", 2 "Mapping"). The shape of a row is
//! recognised by its parts, whatever the source.
//!
//! Invariant: every record has an http(s) home URL and a name, and its texts are within their bounds. A part of another type
//! counts as missing.

use jiff::Timestamp;
use serde_json::Value;
use url::Url;

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

/// Upper bounds: characters (UPSTREAM 1), bytes of a URL and of a row, items of a list. The last three guard against hostile rows.
const NAME_CHARS: usize = 200;
const DESCRIPTION_CHARS: usize = 2_000;
const URL_BYTES: usize = 2_048;
const ROW_BYTES: usize = 256 << 10;
const MAX_ITEMS: usize = 50;

/// The parts of a row; `Null` for a part that is missing.
struct Parts<'a> {
    /// What Neynar puts around the app.
    frame: &'a Value,
    app: &'a Value,
    author: &'a Value,
}

impl Parts<'_> {
    fn of(row: &Value) -> Parts<'_> {
        let manifest = object(row, "manifest").unwrap_or(&Value::Null);
        let manifest = object(manifest, "miniapp").or_else(|| object(manifest, "frame"));
        let author = object(row, "author");
        if manifest.is_some() || row.get("frames_url").is_some_and(Value::is_string) {
            let [app, author] = [manifest, author].map(|part| part.unwrap_or(&Value::Null));
            return Parts { frame: row, app, author };
        }
        // A row of Farcaster's own catalog is the app, or has it beside its rank.
        let app = object(row, "miniApp").or_else(|| object(row, "frame")).unwrap_or(row);
        Parts { frame: &Value::Null, app, author: object(app, "author").or(author).unwrap_or(&Value::Null) }
    }
}

/// Parses a row; `None` if it is malformed or marked `noindex`.
pub(super) fn parse(json: &str, fetched_at: Timestamp) -> Option<ParsedRow> {
    if json.len() > ROW_BYTES {
        return None;
    }
    let row = serde_json::from_str(json).ok()?;
    let Parts { frame, app, author } = Parts::of(&row);
    if app.get("noindex").and_then(Value::as_bool) == Some(true) {
        return None;
    }
    let home = trimmed(either(app, "home_url", "homeUrl")).or_else(|| trimmed(frame.get("frames_url")))?;
    let home = Url::parse(home).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    // As parsed, so that no character ends an HTML attribute, whatever its quotes are, and no line break is left.
    let home_url = home.as_str().replace('\'', "%27");
    if home_url.len() > URL_BYTES {
        return None;
    }
    let domain = home.host_str().filter(|host| !host.is_empty())?;
    let image = url(frame.get("image"));
    let chains = either(app, "required_chains", "requiredChains");
    let name = |value| text(value, NAME_CHARS);
    let content = RecordContent {
        id: app_id(&home, domain).into(),
        domain: domain.into(),
        name: name(app.get("name")).or_else(|| name(frame.get("title"))).unwrap_or_else(|| domain.into()),
        description: text(app.get("description"), DESCRIPTION_CHARS),
        icon_url: url(either(app, "icon_url", "iconUrl")).or_else(|| image.clone()).unwrap_or_default(),
        category: name(either(app, "primary_category", "primaryCategory"))
            .map(|name| taxonomy::canonical_category(&name).into()),
        networks: networks(chains),
        tags: items(app.get("tags"), |tag| normalized(tag, NAME_CHARS)),
        author: author_of(author),
        screenshots: items(either(app, "screenshot_urls", "screenshotUrls"), http_url),
        hero_image_url: url(either(app, "hero_image_url", "heroImageUrl")),
        tagline: name(app.get("tagline")),
        subtitle: name(app.get("subtitle")),
        version: name(app.get("version")).or_else(|| name(frame.get("version"))).unwrap_or_default(),
        button_title: name(either(app, "button_title", "buttonTitle")),
        image_url: url(either(app, "image_url", "imageUrl")).or(image),
        splash_image_url: url(either(app, "splash_image_url", "splashImageUrl")),
        splash_background_color: name(either(app, "splash_background_color", "splashBackgroundColor")),
        home_url: home_url.into(),
    };
    let has_chains = chains.is_some_and(Value::is_array);
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

fn author_of(author: &Value) -> Option<AuthorContent> {
    let picture = object(author, "pfp").map_or_else(|| either(author, "pfp_url", "pfpUrl"), |pfp| pfp.get("url"));
    Some(AuthorContent {
        fid: count(author.get("fid"))?,
        username: text(author.get("username"), NAME_CHARS)?,
        display_name: text(either(author, "display_name", "displayName"), NAME_CHARS),
        pfp_url: url(picture),
        follower_count: count(either(author, "follower_count", "followerCount")).unwrap_or(0),
        score: author.get("score").and_then(Value::as_f64).filter(|score| (0.0..=1.0).contains(score)),
        is_power_user: author.get("power_badge").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn object<'a>(outer: &'a Value, name: &str) -> Option<&'a Value> {
    outer.get(name).filter(|value| value.is_object())
}

/// A member of an object: Neynar writes its name in snake_case, Farcaster in camelCase.
fn either<'a>(object: &'a Value, snake_case: &str, camel_case: &str) -> Option<&'a Value> {
    object.get(snake_case).or_else(|| object.get(camel_case))
}

/// A non-negative integer, also if written as `7.0`.
fn count(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    // Below 2^53 every integer has an exact f64.
    let is_count = |number: &f64| number.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(number);
    value.as_u64().or_else(|| value.as_f64().filter(is_count).map(|number| number as u64))
}

/// The texts of a list, without its other items.
fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn networks(chains: Option<&Value>) -> Box<[Box<str>]> {
    let mut names: Vec<Box<str>> = Vec::new();
    for chain in texts(chains).take(MAX_ITEMS) {
        let name = normalized(taxonomy::network_of_chain(chain.trim()), NAME_CHARS).map(Box::from);
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names.into()
}

fn items(list: Option<&Value>, part: impl Fn(&str) -> Option<&str>) -> Box<[Box<str>]> {
    texts(list).filter_map(|item| part(item).map(Box::from)).take(MAX_ITEMS).collect()
}

fn url(value: Option<&Value>) -> Option<Box<str>> {
    http_url(value?.as_str()?).map(Box::from)
}

fn text(value: Option<&Value>, bound: usize) -> Option<Box<str>> {
    normalized(value?.as_str()?, bound).map(Box::from)
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

fn trimmed(value: Option<&Value>) -> Option<&str> {
    Some(value?.as_str()?.trim()).filter(|text| !text.is_empty())
}

fn normalized(text: &str, bound: usize) -> Option<&str> {
    let text = truncated(text.trim(), bound).trim_end();
    (!text.is_empty()).then_some(text)
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
        let large = format!(r#"{{"frames_url":"https://a.example","x":"{}"}}"#, "x".repeat(ROW_BYTES));
        for json in [
            &large,
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
