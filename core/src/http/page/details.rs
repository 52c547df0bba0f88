//! The page of one app.

use maud::{Markup, html};

use super::{
    card::{Card, picture, pictures_choice, tile},
    layout::Page,
    state::{Links, State},
    text::{address, count, day, label, number, picture_url, web_url},
};
use crate::catalog::{MiniApp, MiniApps};

/// The number of similar apps.
pub(super) const SIMILAR: usize = 6;

/// The most screenshots that are shown.
const MAX_SCREENSHOTS: usize = 12;

pub(super) fn render(links: &Links, state: &State, app: &MiniApp, similar: &MiniApps) -> Markup {
    // Only the choice of pictures is kept.
    let state = &State { has_pictures: state.has_pictures, ..State::default() };
    let other = State { has_pictures: !state.has_pictures, ..State::default() };
    let line = app.tagline().or(app.subtitle());
    let screenshots: Vec<&str> = app.screenshots().filter_map(picture_url).take(MAX_SCREENSHOTS).collect();
    let pictures = match screenshots.len() {
        0 => "pictures".to_owned(),
        number => format!("pictures and {}", count(number, "screenshot")),
    };
    let page = Page {
        links,
        state,
        title: app.name(),
        description: line.or(app.description()),
        is_indexed: !state.has_pictures,
        kind: "details",
    };
    page.render(&html! {
        p.back { a #back href=(links.list(state)) { "← All mini apps" } }
        article {
            div.title {
                (tile(app, state))
                div {
                    h1 dir="auto" { (app.name()) }
                    @if let Some(line) = line { p.line dir="auto" { (line) } }
                    @if let Some(author) = app.author() {
                        p.facts { "by " bdi { (author.display_name.unwrap_or(author.username)) } }
                    }
                }
                @if let Some(url) = web_url(app.home_url()) {
                    a.button.open href=(url) rel="noopener noreferrer nofollow" target="_blank" {
                        "Open" span.unseen { " " bdi { (app.name()) } " in a new tab" }
                    }
                }
            }
            (pictures_choice(&links.app(app.id(), &other), state, &pictures))
            @if state.has_pictures { (screenshot_list(app, &screenshots)) }
            @if let Some(text) = app.description() { p.description dir="auto" { (text) } }
            (facts(links, state, app))
        }
        @if !similar.is_empty() {
            section aria-labelledby="similar" {
                h2 #similar { "Similar apps" }
                ul.apps {
                    @let card = Card { links, state, query: "", has_day: false };
                    @for app in similar { (card.render(app)) }
                }
            }
        }
    })
}

fn screenshot_list(app: &MiniApp, urls: &[&str]) -> Markup {
    html! {
        @if !urls.is_empty() {
            ul.screenshots aria-label="Screenshots" {
                @for (place, url) in urls.iter().enumerate() {
                    li {
                        a href=(url) rel="noopener noreferrer nofollow" target="_blank" {
                            (picture(url, &format!("Screenshot {} of {}", place + 1, app.name()), 216, 384))
                            span.unseen { " in full size, in a new tab" }
                        }
                    }
                }
            }
        }
    }
}

fn facts(links: &Links, state: &State, app: &MiniApp) -> Markup {
    let search = |text: &str| links.list(&State { query: text.to_owned(), ..state.clone() });
    html! {
        dl {
            @if let Some(category) = app.category() {
                dt { "Category" }
                dd { a href=(links.list(&state.toggle_category(category))) { bdi { (label(category)) } } }
            }
            dt { "Networks" }
            dd {
                @if app.networks().is_empty() { "All" }
                @for (place, network) in app.networks().enumerate() {
                    @if place > 0 { ", " }
                    a href=(links.list(&state.toggle_network(network))) { bdi { (label(network)) } }
                }
            }
            @if !app.tags().is_empty() {
                dt { "Tags" }
                dd.tags { @for tag in app.tags() { a.tag href=(search(tag)) rel="nofollow" { bdi { (tag) } } " " } }
            }
            @if let Some(author) = app.author() {
                dt { "Author" }
                dd {
                    a href=(search(author.username)) rel="nofollow" { bdi { (author.username) } }
                    ", " (number(author.follower_count)) " followers"
                }
            }
            @if let Some(rank) = app.engagement().trending_rank { dt { "Trending" } dd { "Rank " (number(rank.into())) } }
            dt { "In the directory" }
            dd { "since " (day(app.first_seen())) }
            dt { "Address" }
            dd { bdi { (address(app.home_url())) } }
        }
    }
}
