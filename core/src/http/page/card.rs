//! An app in a list: its tile, name, category, author and a line of text.

use maud::{Markup, html};

use super::{
    state::{Links, State},
    text::{self, colour, letter, marked, marked_label, picture_url, ranges_of, snippet},
};
use crate::catalog::{Highlight, MiniApp, MiniAppRecord};

/// The number of colours of tiles in the style.
const COLOURS: u32 = 8;

/// How a list shows its apps.
#[derive(Clone, Copy)]
pub(super) struct Card<'a> {
    pub(super) links: &'a Links,
    pub(super) state: &'a State,
    /// The search whose matches are marked; empty without one.
    pub(super) query: &'a str,
    /// Whether the day on which the app was first seen is shown.
    pub(super) has_day: bool,
}

impl Card<'_> {
    pub(super) fn render(&self, app: &MiniApp) -> Markup {
        let highlights = if self.query.is_empty() { Vec::new() } else { app.highlights(self.query) };
        html! {
            li.app {
                (tile(app, self.state))
                h2 dir="auto" { a href=(self.links.app(app.id(), self.state)) { (marked(app.name(), ranges_of(&highlights, "name"))) } }
                p.facts { (self.facts(app, &highlights)) }
                p.text dir="auto" { (line(app, &highlights)) }
            }
        }
    }

    /// The category, the author, and the day of a new app. The author has the name that the search matches.
    fn facts(&self, app: &MiniApp, highlights: &[Highlight]) -> Markup {
        let is_by_name = !ranges_of(highlights, "author_display_name").is_empty();
        let author = app.author().map(|author| match author.display_name.filter(|_| is_by_name) {
            Some(name) => (name, "author_display_name"),
            None => (author.username, "author_username"),
        });
        html! {
            @if self.has_day { (text::day(app.first_seen())) @if app.category().is_some() || author.is_some() { " · " } }
            @if let Some(category) = app.category() {
                bdi { (marked_label(category, ranges_of(highlights, "category"))) }
                @if author.is_some() { " · " }
            }
            @if let Some((author, field)) = author { "by " bdi { (marked(author, ranges_of(highlights, field))) } }
        }
    }
}

/// The text of an app in a list: the one with a match, else the shortest description.
fn line(app: &MiniAppRecord, highlights: &[Highlight]) -> Markup {
    let tags = highlights.iter().filter(|found| found.field == "tags");
    let texts = [("tagline", app.tagline()), ("subtitle", app.subtitle()), ("description", app.description())];
    let texts = texts.into_iter().filter_map(|(field, text)| Some((field, text?)));
    let with_match =
        texts.clone().chain([("domain", app.domain())]).find(|(field, _)| !ranges_of(highlights, field).is_empty());
    let (field, text) = with_match.or_else(|| texts.clone().next()).unwrap_or(("domain", app.domain()));
    html! {
        @for tag in tags { span.tag { (marked(&tag.text, &tag.matches)) } " " }
        (snippet(text, ranges_of(highlights, field)))
    }
}

/// A coloured tile with the first letter of the app's name. The icon is over it, if the visitor has chosen pictures: until it is
/// loaded, or if it cannot be loaded, the letter is seen.
pub(super) fn tile(app: &MiniAppRecord, state: &State) -> Markup {
    let icon = picture_url(app.icon_url()).filter(|_| state.has_pictures);
    html! {
        span class={ "tile hue" (colour(app.id(), COLOURS)) } aria-hidden="true" {
            (letter(app.name()))
            @if let Some(icon) = icon { (picture(icon, "", 56, 56)) }
        }
    }
}

/// A picture of another server. It is loaded when it comes into view, and the server is not told from which page.
pub(super) fn picture(url: &str, description: &str, width: u32, height: u32) -> Markup {
    html! {
        img src=(url) alt=(description) width=(width) height=(height) loading="lazy" decoding="async" referrerpolicy="no-referrer";
    }
}

/// Says where pictures come from, with a link that shows or hides them. `pictures` names what the link shows.
pub(super) fn pictures_choice(link: &str, state: &State, pictures: &str) -> Markup {
    html! {
        p.pictures {
            "Pictures are loaded from the apps' own servers. "
            a href=(link) rel="nofollow" { (if state.has_pictures { "Hide" } else { "Show" }) " " (pictures) }
        }
    }
}
