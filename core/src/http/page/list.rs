//! The list of apps with its filters and orders.

use maud::{Markup, html};

use super::{
    card::{Card, pictures_choice},
    layout::Page,
    state::{Links, State},
    text::{count, day, label, number},
};
use crate::{
    catalog::{FacetedList, Timeframe},
    discovery::{Facet, RequestedCatalog},
};

/// The number of apps on a page. The style has at most three columns, so that each page has full rows.
pub(super) const PAGE: usize = 48;

/// The number of filters of a kind that are always seen. More are behind a button.
const SEEN_FILTERS: usize = 20;

/// The most filters of a kind on the page.
const MAX_FILTERS: usize = 60;

pub(super) struct ListView<'a> {
    pub(super) links: &'a Links,
    pub(super) state: &'a State,
    pub(super) list: &'a FacetedList<'a>,
    pub(super) catalog: &'a RequestedCatalog,
    /// The time windows with an order.
    pub(super) windows: &'a [Timeframe],
}

impl ListView<'_> {
    pub(super) fn render(&self) -> Markup {
        let title = self.title();
        let state = self.state;
        let page = Page {
            links: self.links,
            state,
            title: &title,
            description: None,
            is_indexed: *state == State::default(),
            kind: "list",
        };
        page.render(&html! { (self.filters()) (self.results()) })
    }

    fn title(&self) -> String {
        let state = self.state;
        if !state.query.is_empty() {
            return format!("“{}”", state.query);
        }
        let filters = state.categories.iter().chain(&state.networks).map(|name| label(name)).collect::<Vec<_>>();
        match (filters.is_empty(), state.is_newest) {
            (true, true) => "New".to_owned(),
            _ => filters.join(", "),
        }
    }

    fn filters(&self) -> Markup {
        let state = self.state;
        html! {
            nav #filters aria-label="Filters" {
                (self.facets("Categories", &self.list.categories, &state.categories, State::toggle_category))
                (self.facets("Networks", &self.list.networks, &state.networks, State::toggle_network))
            }
        }
    }

    /// The filters of a kind, chosen ones first. `toggle` returns a state with a name chosen, or no longer chosen.
    fn facets(
        &self,
        title: &str,
        facets: &[Facet],
        chosen: &[String],
        toggle: impl Fn(&State, &str) -> State,
    ) -> Markup {
        let count_of = |name: &str| facets.iter().find(|facet| facet.name == name).map_or(0, |facet| facet.count);
        // A URL cannot name a filter with a control character.
        let others =
            facets.iter().filter(|facet| !facet.name.contains(char::is_control) && !chosen.contains(&facet.name));
        let others = others.map(|facet| (facet.name.as_str(), facet.count));
        let all: Vec<_> =
            chosen.iter().map(|name| (name.as_str(), count_of(name))).chain(others).take(MAX_FILTERS).collect();
        let seen = SEEN_FILTERS.max(chosen.len());
        let (first, rest) = all.split_at(seen.min(all.len()));
        let links = |names: &[(&str, usize)]| {
            html! {
                ul {
                    @for (name, count) in names {
                        @let is_chosen = chosen.iter().any(|known| known == name);
                        @let link = self.links.list(&toggle(self.state, name));
                        li {
                            a href=(link) rel="nofollow" aria-current=[is_chosen.then_some("true")] {
                                span.name dir="auto" { (label(name)) }
                                " "
                                span.count { (number(*count as u64)) }
                                @if is_chosen { span.unseen { " (remove this filter)" } }
                            }
                        }
                    }
                }
            }
        };
        html! {
            @if !all.is_empty() {
                section {
                    h2 { (title) }
                    (links(first))
                    @if !rest.is_empty() { details { summary { (rest.len()) " more" } (links(rest)) } }
                }
            }
        }
    }

    /// The part of the page that a search replaces.
    fn results(&self) -> Markup {
        let state = self.state;
        let other = State { has_pictures: !state.has_pictures, ..state.clone() };
        html! {
            section #results aria-labelledby="heading" {
                div.bar {
                    h1 #heading { (self.heading()) }
                    (self.orders())
                }
                p #status role="status" { (self.status()) }
                @if state.has_filters() {
                    p.clear { a href=(self.links.list(&self.without_filters())) { "Remove all filters" } }
                }
                (self.notices())
                (pictures_choice(&self.links.list(&other), state, "pictures"))
                @if self.list.total() == 0 { (self.empty()) } @else { (self.apps()) }
            }
        }
    }

    fn heading(&self) -> Markup {
        match (self.state.query.as_str(), self.state.is_newest) {
            ("", true) => html! { "New apps" },
            ("", false) => html! { "Trending apps" },
            (query, _) => html! { "Results for “" bdi { (query) } "”" },
        }
    }

    /// The choice of an order. Matches of a search are always best first.
    fn orders(&self) -> Markup {
        let state = self.state;
        if !state.query.is_empty() {
            return html! {};
        }
        let link = |text: &str, is_chosen: bool, state: State| {
            html! { a href=(self.links.list(&state)) rel="nofollow" aria-current=[is_chosen.then_some("true")] { (text) } }
        };
        let of = |is_newest| State { is_newest, page: 1, ..state.clone() };
        html! {
            nav.orders aria-label="Order" {
                (link("Trending", !state.is_newest, of(false)))
                (link("New", state.is_newest, State { window: Timeframe::default(), ..of(true) }))
            }
            @if !state.is_newest && self.windows.len() > 1 {
                nav.orders aria-label="Time window" {
                    @for &window in self.windows {
                        (link(window_name(window), window == state.window, State { window, page: 1, ..state.clone() }))
                    }
                }
            }
        }
    }

    fn status(&self) -> Markup {
        let total = self.list.total();
        let pages = total.div_ceil(PAGE);
        html! {
            @if self.state.query.is_empty() { (count(total, "mini app")) } @else { (number(total as u64)) @if total == 1 { " match" } @else { " matches" } }
            @if pages > 1 { span.of { ", page " (self.state.page) " of " (pages) } }
        }
    }

    fn notices(&self) -> Markup {
        let stats = &self.catalog.stats;
        let has_order = self.catalog.snapshot.has_order(self.state.window);
        html! {
            @if stats.is_stale && stats.last_error.is_some() && let Some(at) = stats.fetched_at {
                p.notice { "The catalog could not be refreshed. These are the apps of " (day(at)) "." }
            }
            @if !has_order && self.state.query.is_empty() && !self.state.is_newest {
                p.notice {
                    "The order of " (window_name(self.state.window)) " is not available. This is the order of "
                    (window_name(Timeframe::default())) "."
                }
            }
        }
    }

    fn without_filters(&self) -> State {
        State { categories: Vec::new(), networks: Vec::new(), page: 1, ..self.state.clone() }
    }

    fn empty(&self) -> Markup {
        let (state, others) = (self.state, self.list.unfiltered);
        let all = State { has_pictures: state.has_pictures, ..State::default() };
        html! {
            div.message {
                p.large { @if state.query.is_empty() && others == 0 { "The directory has no apps yet" } @else { "No app found" } }
                @if state.has_filters() && others > 0 {
                    p { "With other filters there " (if others == 1 { "is " } else { "are " }) (count(others, "app")) "." }
                    p.actions { a.button href=(self.links.list(&self.without_filters())) { "Remove all filters" } }
                } @else if !state.query.is_empty() {
                    p { "Check the spelling, or search for a part of the name, a tag or an author." }
                    p.actions { a.button href=(self.links.list(&all)) { "All mini apps" } }
                } @else {
                    p { "They appear here once its catalog is loaded." }
                }
            }
        }
    }

    fn apps(&self) -> Markup {
        let (state, page) = (self.state, self.state.page);
        let apps = self.list.apps((page - 1) * PAGE, PAGE);
        let has_day = state.query.is_empty() && state.is_newest;
        let card = Card { links: self.links, state, query: &state.query, has_day };
        let of_page = |page| self.links.list(&State { page, ..state.clone() });
        html! {
            // The script adds a list for each further page: a browser lays out only the lists in view.
            div #apps { ul.apps.full[apps.len() == PAGE] { @for app in &apps { (card.render(app)) } } }
            nav #pages aria-label="Pages" {
                @if page > 1 { a.button rel="prev" href=(of_page(page - 1)) { "Previous page" } }
                @if page * PAGE < self.list.total() { a.button rel="next" href=(of_page(page + 1)) { "Show more" } }
            }
        }
    }
}

fn window_name(window: Timeframe) -> &'static str {
    match window {
        Timeframe::Hour1 => "1 hour",
        Timeframe::Hours6 => "6 hours",
        Timeframe::Hours12 => "12 hours",
        Timeframe::Hours24 => "24 hours",
        Timeframe::Days7 => "7 days",
    }
}
