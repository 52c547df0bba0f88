//! The state of the list: the parameters of its URL.
//!
//! Invariant: the URL of a state reads back as the same state. Every link of the page is relative, so that the page works behind
//! any prefix.

use std::{fmt::Write as _, str::FromStr as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::form_urlencoded;

use crate::{
    catalog::{ListOrder, Selection, Timeframe, canonical_category, canonical_network},
    http::{
        refusal::HttpRefusal,
        target::{Query, Target},
    },
};

/// The most characters of a search.
pub(super) const MAX_QUERY: usize = 200;

/// The most values of one filter. Each link to another filter repeats them all.
const MAX_VALUES: usize = 10;

const MAX_PAGE: usize = 1_000_000;

/// The characters of an app's id that are not escaped in a path. Slashes stay, because some servers refuse escaped ones.
const IN_PATH: &AsciiSet = &IN_SEGMENT.remove(b'/');
const IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The most slashes of a path whose response has right links. No link of the page has so many.
const MAX_SLASHES: usize = 64;

/// The state of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) query: String,
    pub(super) categories: Vec<String>,
    pub(super) networks: Vec<String>,
    /// The time window of the trending order.
    pub(super) window: Timeframe,
    /// Whether the newest apps come first, instead of the trending ones.
    pub(super) is_newest: bool,
    /// From 1.
    pub(super) page: usize,
    /// Whether the visitor lets the browser load pictures from the apps' servers.
    pub(super) has_pictures: bool,
}

impl Default for State {
    fn default() -> State {
        State {
            query: String::new(),
            categories: Vec::new(),
            networks: Vec::new(),
            window: Timeframe::default(),
            is_newest: false,
            page: 1,
            has_pictures: false,
        }
    }
}

impl State {
    /// Reads the state of a target. Other parameters are ignored, as by the discovery endpoint: links in messages often have some
    /// for statistics.
    ///
    /// # Errors
    /// 400 for a malformed query string, and for a value that its parameter does not have.
    pub(super) fn parse(target: &Target<'_>) -> Result<State, HttpRefusal> {
        let refused = |message: String| HttpRefusal::new(400, message);
        let parameters = target.parameters().map_err(|reason| refused(reason.to_owned()))?;
        let single = |name| parameters.single(name).map_err(refused);
        let query = single("q")?.unwrap_or_default().trim();
        if query.chars().count() > MAX_QUERY {
            return Err(refused(format!("q has at most {MAX_QUERY} characters")));
        }
        let window = single("window")?.map(Timeframe::from_str).transpose()?.unwrap_or_default();
        let page = single("page")?.unwrap_or("1");
        // `parse` alone would accept a plus sign, and refuse a number that is too large for a `usize`.
        let page =
            page.bytes().all(|byte| byte.is_ascii_digit()).then(|| page.parse().unwrap_or(MAX_PAGE).min(MAX_PAGE));
        let page = page.filter(|page| *page > 0);
        Ok(State {
            query: query.to_owned(),
            categories: names(&parameters, "category", |name| canonical_category(name).to_owned())?,
            networks: names(&parameters, "network", |name| canonical_network(name).unwrap_or(name).to_owned())?,
            window,
            is_newest: one_of(&parameters, "sort", &["trending", "new"])? == "new",
            page: page.ok_or_else(|| refused("page is a whole number from 1".to_owned()))?,
            has_pictures: one_of(&parameters, "images", &["0", "1"])? == "1",
        })
    }

    /// Whether the visitor has filtered the list.
    pub(super) fn has_filters(&self) -> bool {
        !self.categories.is_empty() || !self.networks.is_empty()
    }

    pub(super) fn selection(&self) -> Selection {
        Selection::first(1).in_categories(&self.categories).on_networks(&self.networks)
    }

    pub(super) fn order(&self) -> ListOrder<'_> {
        match (self.query.as_str(), self.is_newest) {
            ("", true) => ListOrder::Newest,
            ("", false) => ListOrder::Trending(self.window),
            (query, _) => ListOrder::Matches(query),
        }
    }

    /// The state with a category added, or removed if it is there. Begins at the first page.
    pub(super) fn toggle_category(&self, name: &str) -> State {
        State { categories: toggled(&self.categories, name), page: 1, ..self.clone() }
    }

    /// The state with a network added, or removed if it is there.
    pub(super) fn toggle_network(&self, name: &str) -> State {
        State { networks: toggled(&self.networks, name), page: 1, ..self.clone() }
    }

    /// The parameters with values other than the default, in one order.
    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut parameters = Vec::new();
        if !self.query.is_empty() {
            parameters.push(("q", self.query.clone()));
        }
        parameters.extend(self.categories.iter().map(|name| ("category", name.clone())));
        parameters.extend(self.networks.iter().map(|name| ("network", name.clone())));
        if self.is_newest {
            parameters.push(("sort", "new".to_owned()));
        }
        if self.window != Timeframe::default() {
            parameters.push(("window", self.window.to_string()));
        }
        if self.page > 1 {
            parameters.push(("page", self.page.to_string()));
        }
        if self.has_pictures {
            parameters.push(("images", "1".to_owned()));
        }
        parameters
    }
}

/// The links of one response.
#[derive(Debug, Clone)]
pub(super) struct Links {
    /// The relative path from the response's own path to the folder of `/directory`: empty, or `../` some times.
    root: String,
}

impl Links {
    /// The links of a response to this path, as the client sent it.
    pub(super) fn from_path(path: &str) -> Links {
        Links { root: "../".repeat(path.matches('/').count().clamp(1, MAX_SLASHES) - 1) }
    }

    pub(super) fn list(&self, state: &State) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(state.parameters());
        let query = query.finish();
        format!("{}directory{}{query}", self.root, if query.is_empty() { "" } else { "?" })
    }

    /// The link to an app. It has of the state only whether there are pictures: one app, one URL.
    pub(super) fn app(&self, id: &str, state: &State) -> String {
        // A browser folds `/../` in a path. A home URL has it in its query alone, where every slash is escaped.
        let (path, query) = id.split_at(id.find('?').unwrap_or(id.len()));
        let is_folded = path.split('/').any(|segment| matches!(segment, "." | ".."));
        let path = utf8_percent_encode(path, if is_folded { IN_SEGMENT } else { IN_PATH });
        let mut link = format!("{}directory/apps/{path}{}", self.root, utf8_percent_encode(query, IN_SEGMENT));
        if state.has_pictures {
            link.push_str("?images=1");
        }
        link
    }

    /// The link to a file of the page. The hash of its content makes a new link for a new content.
    pub(super) fn asset(&self, name: &str, hash: &str) -> String {
        let mut link = String::with_capacity(64);
        let _ = write!(link, "{}directory/{name}?v={hash}", self.root);
        link
    }
}

/// The values of a parameter that may be repeated, each once.
fn names(parameters: &Query, name: &str, canonical: impl Fn(&str) -> String) -> Result<Vec<String>, HttpRefusal> {
    let mut names: Vec<String> = Vec::new();
    for value in parameters.all(name).map(str::trim).filter(|value| !value.is_empty()).map(canonical) {
        if !names.contains(&value) {
            names.push(value);
        }
    }
    match names.len() > MAX_VALUES {
        true => Err(HttpRefusal::new(400, format!("{name} has at most {MAX_VALUES} values"))),
        false => Ok(names),
    }
}

/// A parameter with one of these values. The first is the default.
fn one_of<'a>(parameters: &'a Query, name: &str, values: &[&'a str]) -> Result<&'a str, HttpRefusal> {
    let value = parameters.single(name).map_err(|why| HttpRefusal::new(400, why))?.unwrap_or(values[0]);
    match values.contains(&value) {
        true => Ok(value),
        false => Err(HttpRefusal::new(400, format!("{name} is {}", values.join(" or ")))),
    }
}

fn toggled(names: &[String], name: &str) -> Vec<String> {
    let mut others: Vec<String> = names.iter().filter(|known| *known != name).cloned().collect();
    if others.len() == names.len() {
        others.push(name.to_owned());
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(target: &str) -> Result<State, HttpRefusal> {
        State::parse(&Target::parse(target).expect("a target"))
    }

    #[test]
    fn the_url_of_a_state_reads_back_as_the_state() {
        let links = Links::from_path("/directory");
        let full = State {
            query: "a&b=c #1 <\"'>+ %2F".to_owned(),
            categories: vec!["games".to_owned(), "a,b & \"c\"".to_owned()],
            networks: vec!["base".to_owned()],
            window: Timeframe::Days7,
            is_newest: true,
            page: 3,
            has_pictures: true,
        };
        for state in [State::default(), full] {
            let url = format!("/{}", links.list(&state));
            assert_eq!(parse(&url).expect(&url), state);
        }
        assert_eq!(links.list(&State::default()), "directory");
    }

    #[test]
    fn bad_values_are_refused_and_unknown_parameters_ignored() {
        for query in ["window=1y", "sort=old", "page=0", "page=+1", "page=x", "images=yes", "q=%zz", "q=%00"] {
            assert!(parse(&format!("/directory?{query}")).is_err(), "{query}");
        }
        for query in ["q=a&q=b", "page=1&page=2", "window=1h&window=1h", "sort=new&sort=trending", "images=1&images=0"]
        {
            assert!(parse(&format!("/directory?{query}")).is_err(), "{query}");
        }
        let long = "x".repeat(MAX_QUERY + 1);
        assert!(parse(&format!("/directory?q={long}")).is_err());
        assert!(parse(&format!("/directory?q={}", &long[1..])).is_ok());
        let many: String = (0..=MAX_VALUES).map(|number| format!("&category=c{number}")).collect();
        assert!(parse(&format!("/directory?{many}")).is_err());
        for query in ["page=1000001", "page=4294967296", "page=99999999999999999999999999"] {
            assert_eq!(parse(&format!("/directory?{query}")).expect("after the last page").page, MAX_PAGE);
        }
        for query in ["", "q=&category=&sort=&page=&window=&images=0", "utm_source=x&Q=y"] {
            assert_eq!(parse(&format!("/directory?{query}")).expect(query), State::default());
        }
    }

    #[test]
    fn names_are_in_their_known_case_and_once() {
        let state = parse("/directory?category=Games&category=games&network=BASE&category=Odd").expect("a state");
        assert_eq!((state.categories, state.networks), (vec!["games".into(), "Odd".into()], vec!["base".into()]));
    }

    #[test]
    fn a_filter_is_added_and_removed() {
        let state = State { page: 2, ..State::default() };
        let games = state.toggle_category("games");
        assert_eq!((games.categories.as_slice(), games.page), (&["games".to_owned()][..], 1));
        assert_eq!(games.toggle_category("games"), State::default());
    }

    #[test]
    fn links_are_relative_to_the_path_of_the_response() {
        for (path, list) in [
            ("/directory", "directory"),
            ("/directory/", "../directory"),
            ("/directory/apps/a.example", "../../directory"),
            ("/directory/apps/a.example/b%2Fc", "../../../directory"),
        ] {
            assert_eq!(Links::from_path(path).list(&State::default()), list, "{path}");
        }
        let link = Links::from_path("/directory").app("a.example/b?c=d#e%2Fä:1", &State::default());
        assert_eq!(link, "directory/apps/a.example/b%3Fc%3Dd%23e%252F%C3%A4%3A1");
        assert_eq!(Links::from_path(&"/".repeat(60_000)).root.len(), 3 * (MAX_SLASHES - 1));
    }

    #[test]
    fn the_link_to_an_app_leads_to_the_app_whatever_its_id_is() {
        let base = url::Url::parse("https://host.example/prefix/directory").expect("a URL");
        for id in
            ["a.example/?/../../../files/x", "a.example/../../files/x", "a.example/?x=./..", "a.example/b//c", "/"]
        {
            let link = Links::from_path("/directory").app(id, &State::default());
            let path = base.join(&link).expect("a URL").path().to_owned();
            let id_of_link = path.strip_prefix("/prefix/directory/apps/").unwrap_or_else(|| panic!("{id}: {path}"));
            assert_eq!(percent_encoding::percent_decode_str(id_of_link).decode_utf8().expect("UTF-8"), id);
        }
    }
}
