//! Texts of apps as HTML: with marks where a search matches, and shortened around the first match.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::{catalog::Highlight, storage_path::is_direction_control};

/// The characters of a text before its first match, if the text is shortened.
const BEFORE_MATCH: usize = 40;

/// The characters of a text in a card: more do not fit.
const MAX_SNIPPET: usize = 240;

/// A text with marks. The ranges are in characters, in order, and do not overlap.
pub(super) fn marked(text: &str, ranges: &[(usize, usize)]) -> Markup {
    if ranges.is_empty() {
        return html! { (text) };
    }
    // The byte at which each character starts, and the end.
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let part = |from: usize, to: usize| {
        let at = |place: usize| starts[place.min(starts.len() - 1)];
        &text[at(from)..at(to.max(from))]
    };
    let ends = ranges.iter().map(|range| range.1);
    let gaps = [0].into_iter().chain(ends).zip(ranges.iter().map(|range| range.0).chain([usize::MAX]));
    html! {
        @for ((from, to), range) in gaps.zip(ranges.iter().map(Some).chain([None])) {
            (part(from, to))
            @if let Some(&(from, to)) = range { mark { (part(from, to)) } }
        }
    }
}

/// The beginning of a text for a card, or the part around the first match, with marks.
pub(super) fn snippet(text: &str, ranges: &[(usize, usize)]) -> Markup {
    let first = ranges.first().map_or(0, |range| range.0);
    let start = if first > 2 * BEFORE_MATCH { start_of_word(text, first - BEFORE_MATCH, first) } else { 0 };
    let part: String = text.chars().skip(start).take(MAX_SNIPPET).collect();
    let ranges: Vec<_> = ranges
        .iter()
        .map(|(from, to)| (from.saturating_sub(start), (to.saturating_sub(start)).min(MAX_SNIPPET)))
        .filter(|(from, to)| from < to)
        .collect();
    html! { @if start > 0 { "… " } (marked(&part, &ranges)) }
}

/// The place of the first word that starts between two places; the later place without one.
fn start_of_word(text: &str, from: usize, to: usize) -> usize {
    let mut is_after_space = false;
    for (place, character) in text.chars().enumerate().skip(from).take(to - from) {
        if is_after_space && !character.is_whitespace() {
            return place;
        }
        is_after_space = character.is_whitespace();
    }
    to
}

/// A label with marks where its name has them. A label with other characters than its name is marked whole.
pub(super) fn marked_label(name: &str, ranges: &[(usize, usize)]) -> Markup {
    let label = label(name);
    let length = label.chars().count();
    match ranges {
        [_, ..] if length != name.chars().count() => marked(&label, &[(0, length)]),
        _ => marked(&label, ranges),
    }
}

/// The matched ranges of a field.
pub(super) fn ranges_of<'a>(highlights: &'a [Highlight], field: &str) -> &'a [(usize, usize)] {
    highlights.iter().find(|found| found.field == field).map_or(&[], |found| &found.matches)
}

/// A category or a network as a label: `developer-tools` is `Developer tools`.
pub(super) fn label(name: &str) -> String {
    let mut label = match name {
        "art-creativity" | "health-fitness" | "news-media" => name.replace('-', " & "),
        _ => name.replace('-', " "),
    };
    if let Some(first) = label.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    label
}

/// The letter on the tile of an app: the first letter or digit of its name.
pub(super) fn letter(name: &str) -> String {
    let letter = name.chars().find(|letter| letter.is_alphanumeric()).or_else(|| name.chars().next()).unwrap_or('?');
    letter.to_uppercase().collect()
}

/// One of the `count` colours of tiles, always the same for an id.
pub(super) fn colour(id: &str, count: u32) -> u32 {
    id.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % count
}

/// A number with commas: `18,250`.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 app`, `2 apps`.
pub(super) fn count(count: usize, one: &str) -> String {
    format!("{} {one}{}", number(count as u64), if count == 1 { "" } else { "s" })
}

/// A day in UTC.
pub(super) fn day(at: Timestamp) -> Markup {
    let date = at.strftime("%Y-%m-%d").to_string();
    html! { time datetime=(date) { (at.strftime("%-d %B %Y")) } }
}

/// A text for a place where no element keeps its direction to itself: without controls of the direction, and without control
/// characters.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|character| !is_direction_control(*character) && !character.is_control()).collect()
}

/// An address as a text: without the user name before the host, which may look like another host.
pub(super) fn address(url: &str) -> String {
    let Ok(mut address) = url::Url::parse(url) else { return url.to_owned() };
    // Both fail for a URL that can have no user name.
    let _ = address.set_username("");
    let _ = address.set_password(None);
    address.into()
}

/// A URL that a link may have: http or https.
pub(super) fn web_url(url: &str) -> Option<&str> {
    let scheme = url::Url::parse(url).ok()?.scheme().to_owned();
    matches!(scheme.as_str(), "http" | "https").then_some(url)
}

/// A URL that a picture may have: https.
pub(super) fn picture_url(url: &str) -> Option<&str> {
    url::Url::parse(url).is_ok_and(|url| url.scheme() == "https").then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_the_host_first_and_plain_text_keeps_its_direction() {
        assert_eq!(address("https://bank.example@evil.example/a?b=c"), "https://evil.example/a?b=c");
        assert_eq!(address("https://bank.example:pw@evil.example/"), "https://evil.example/");
        assert_eq!(address("no url"), "no url");
        assert_eq!(plain("gnp\u{202e}.exe\u{2066}\n\u{7f} Ä"), "gnp.exe Ä");
    }

    #[test]
    fn marks_are_where_the_ranges_are() {
        for (text, ranges, expected) in [
            ("Chess", &[][..], "Chess"),
            ("Chess", &[(0, 5)], "<mark>Chess</mark>"),
            ("Größe & Tee", &[(0, 5), (8, 11)], "<mark>Größe</mark> &amp; <mark>Tee</mark>"),
            ("<b>", &[(0, 1)], "<mark>&lt;</mark>b&gt;"),
            ("ab", &[(1, 9)], "a<mark>b</mark>"),
            ("ab", &[(7, 9)], "ab<mark></mark>"),
        ] {
            assert_eq!(marked(text, ranges).into_string(), expected, "{text}");
        }
    }

    #[test]
    fn a_snippet_starts_at_a_word_before_a_late_match() {
        let text = format!("{}harbor chess", "word ".repeat(60));
        let shown = snippet(&text, &[(300, 306)]).into_string();
        assert!(shown.starts_with("… word word") && shown.ends_with("<mark>harbor</mark> chess"), "{shown}");
        assert!(snippet(&text, &[(0, 4)]).into_string().starts_with("<mark>word</mark> word"));
        assert_eq!(snippet(&"x".repeat(500), &[]).into_string().len(), MAX_SNIPPET);
        let unbroken = format!("{}y", "x".repeat(300));
        assert_eq!(snippet(&unbroken, &[(300, 301)]).into_string(), "… <mark>y</mark>");
    }

    #[test]
    fn names_letters_and_numbers_have_their_form() {
        let labels = ["health-fitness", "developer-tools", "éa", ""].map(label);
        assert_eq!(labels, ["Health & fitness", "Developer tools", "éa", ""]);
        assert_eq!(["harbor", "🐍 snake", "🐍", "ßx"].map(letter), ["H", "S", "🐍", "SS"]);
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([count(1, "app"), count(0, "app")], ["1 app", "0 apps"]);
        assert_eq!(day(Timestamp::UNIX_EPOCH).into_string(), "<time datetime=\"1970-01-01\">1 January 1970</time>");
        assert!((0..100).all(|id: u32| colour(&id.to_string(), 8) < 8));
    }

    #[test]
    fn only_urls_of_the_web_are_links_and_only_https_pictures() {
        for url in
            ["javascript:alert(1)", "JavaScript:alert(1)", " javascript:alert(1)", "data:text/html,x", "//x", "", "x"]
        {
            assert_eq!((web_url(url), picture_url(url)), (None, None), "{url}");
        }
        assert!(web_url("http://a.example").is_some() && picture_url("http://a.example").is_none());
        assert!(web_url("HTTPS://a.example").is_some() && picture_url("HTTPS://a.example").is_some());
    }
}
