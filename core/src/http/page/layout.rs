//! The parts that every page has: head, search, footer; and the pages of refused requests.

use maud::{DOCTYPE, Markup, html};

use super::{
    assets::{ICON, SCRIPT, STYLE},
    state::{Links, MAX_QUERY, State},
    text::plain,
};

/// The name of the page.
const SITE: &str = "Mini apps";

/// A whole page.
pub(super) struct Page<'a> {
    pub(super) links: &'a Links,
    pub(super) state: &'a State,
    /// The title, without the name of the page; empty for the list of all apps.
    pub(super) title: &'a str,
    pub(super) description: Option<&'a str>,
    /// Whether search engines may list this URL: not each combination of filters is a page of its own.
    pub(super) is_indexed: bool,
    /// The class of the body.
    pub(super) kind: &'static str,
}

impl Page<'_> {
    pub(super) fn render(&self, content: &Markup) -> Markup {
        let links = self.links;
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    @if let Some(text) = self.description { meta name="description" content=(plain(text)); }
                    @if !self.is_indexed { meta name="robots" content="noindex"; }
                    title { @if !self.title.is_empty() { (plain(self.title)) " · " } (SITE) }
                    link rel="icon" href=(links.asset(ICON.name, ICON.hash())) type="image/svg+xml";
                    link rel="stylesheet" href=(links.asset(STYLE.name, STYLE.hash()));
                    script defer src=(links.asset(SCRIPT.name, SCRIPT.hash())) {}
                }
                body class=(self.kind) {
                    a.skip href="#content" { "Skip to the content" }
                    header { (self.search()) }
                    main #content tabindex="-1" { (content) }
                    footer {
                        p.keys hidden {
                            kbd { "/" } " search · " kbd { "←" } " " kbd { "→" } " " kbd { "↑" } " " kbd { "↓" }
                            " move between apps · " kbd { "Esc" } " clear or go back"
                        }
                    }
                }
            }
        }
    }

    /// The search form. It keeps filters and order.
    fn search(&self) -> Markup {
        let others = self.state.parameters().into_iter().filter(|(name, _)| !matches!(*name, "q" | "page"));
        let home = State { has_pictures: self.state.has_pictures, ..State::default() };
        html! {
            form #search role="search" method="get" action=(self.links.list(&State::default())) {
                a.site href=(self.links.list(&home)) { (SITE) }
                label.unseen for="q" { "Search mini apps" }
                input #q name="q" type="search" value=(self.state.query) maxlength=(MAX_QUERY) placeholder="Search mini apps"
                    autocomplete="off" autocapitalize="off" spellcheck="false" enterkeyhint="search";
                span #parameters { @for (name, value) in others { input type="hidden" name=(name) value=(value); } }
                button type="submit" { "Search" }
            }
        }
    }
}

/// The page of a refused request.
pub(super) fn refused(links: &Links, status: u16, message: &str) -> Markup {
    let title = match status {
        400 => "This address is not valid",
        404 => "Not found",
        405 => "This method is not allowed",
        503 => "The directory is not available",
        _ => "Something went wrong",
    };
    let state = State::default();
    let page = Page { links, state: &state, title, description: None, is_indexed: false, kind: "refused" };
    page.render(&html! {
        div #results .message {
            h1 { (title) }
            p { (sentence(message)) }
            p.actions {
                @if status >= 500 { a.button href="" { "Try again" } " " }
                a.button href=(links.list(&state)) { "All mini apps" }
            }
        }
    })
}

/// A message with a full stop at its end.
fn sentence(message: &str) -> String {
    let is_complete = message.ends_with(['.', '!', '?']);
    format!("{message}{}", if is_complete { "" } else { "." })
}
