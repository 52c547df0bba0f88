//! The routes of the endpoint: one table for the code that answers them and for the OpenAPI document.

use super::parameters::{self, Parameter};
use crate::discovery::{ENDPOINT_PATH, EndpointRoute};

/// A path below [`ENDPOINT_PATH`].
pub(super) struct Route {
    pub(super) name: EndpointRoute,
    pub(super) summary: &'static str,
    /// The parameters of GET.
    pub(super) parameters: &'static [&'static Parameter],
    /// The name of the schema of the body that GET is answered with.
    pub(super) answer: &'static str,
    /// Whether the route takes the actions of [`ACTIONS`].
    pub(super) has_actions: bool,
}

/// An action of a POST request.
pub(super) struct Action {
    pub(super) name: ActionName,
    /// The value of `action`.
    pub(super) word: &'static str,
    pub(super) summary: &'static str,
    pub(super) parameters: &'static [&'static Parameter],
    pub(super) answer: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ActionName {
    Search,
    Refresh,
    Trending,
}

pub(super) static ROUTES: &[Route] = &[
    Route {
        name: EndpointRoute::List,
        summary: "Lists mini apps in trending order.",
        parameters: &[
            &parameters::CATEGORY,
            &parameters::NETWORKS,
            &parameters::TIME_WINDOW,
            &parameters::TRENDING,
            &parameters::LIMIT,
            &parameters::OFFSET,
            &parameters::COLLAPSE,
        ],
        answer: "List",
        has_actions: true,
    },
    Route {
        name: EndpointRoute::App,
        summary: "Returns one mini app.",
        parameters: &[],
        answer: "OneApp",
        has_actions: false,
    },
    Route {
        name: EndpointRoute::Categories,
        summary: "Counts the apps of each category, most first.",
        parameters: &[&parameters::NETWORKS],
        answer: "Categories",
        has_actions: false,
    },
    Route {
        name: EndpointRoute::Networks,
        summary: "Counts the apps of each network, most first.",
        parameters: &[&parameters::CATEGORY],
        answer: "Networks",
        has_actions: false,
    },
    Route {
        name: EndpointRoute::Suggest,
        summary: "Suggests apps while somebody types into a search box.",
        parameters: &[&parameters::TYPED, &parameters::SUGGESTIONS],
        answer: "Suggestions",
        has_actions: false,
    },
    Route {
        name: EndpointRoute::OpenApi,
        summary: "This document.",
        parameters: &[],
        answer: "Document",
        has_actions: false,
    },
];

pub(super) static ACTIONS: &[Action] = &[
    Action {
        name: ActionName::Search,
        word: "search",
        summary: "Finds mini apps, best first.",
        parameters: &[
            &parameters::QUERY,
            &parameters::CATEGORY,
            &parameters::NETWORKS,
            &parameters::LIMIT,
            &parameters::OFFSET,
            &parameters::COLLAPSE,
        ],
        answer: "SearchResults",
    },
    Action {
        name: ActionName::Refresh,
        word: "refresh",
        summary: "Fetches the catalog, unless it is young.",
        parameters: &[],
        answer: "Refreshed",
    },
    Action {
        name: ActionName::Trending,
        word: "trending",
        summary: "Lists mini apps in trending order.",
        parameters: &[
            &parameters::TIME_WINDOW,
            &parameters::CATEGORY,
            &parameters::NETWORKS,
            &parameters::LIMIT,
            &parameters::OFFSET,
            &parameters::COLLAPSE,
        ],
        answer: "TrendingApps",
    },
];

impl Route {
    /// The route of the path of a target, and the rest of the path for `{id}`. A slash at the end of the path has no meaning.
    pub(super) fn of(path: &str) -> Option<(&'static Route, &str)> {
        let path = match path.strip_prefix(ENDPOINT_PATH)? {
            "" | "/" => "",
            below => {
                let path = below.strip_prefix('/')?;
                Some(path.strip_suffix('/').unwrap_or(path)).filter(|path| !path.is_empty())?
            }
        };
        ROUTES.iter().find_map(|route| match route.name.below_endpoint().strip_suffix("{id}") {
            Some(folder) => path.strip_prefix(folder).filter(|id| !id.is_empty()).map(|id| (route, id)),
            None => (route.name.below_endpoint() == path).then_some((route, "")),
        })
    }

    /// The value of the header `Allow`.
    pub(super) fn allow(&self) -> &'static str {
        if self.has_actions { "GET, HEAD, POST, OPTIONS" } else { "GET, HEAD, OPTIONS" }
    }
}

impl Action {
    pub(super) fn of(word: &str) -> Option<&'static Action> {
        ACTIONS.iter().find(|action| action.word == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_the_path_below_the_endpoint_without_a_slash_at_its_end() {
        let route = |path: &str| Route::of(path).map(|(route, id)| (route.name, id.to_owned()));
        let of = |name| Some((name, String::new()));
        assert_eq!(route("/api/miniapp-discovery"), of(EndpointRoute::List));
        assert_eq!(route("/api/miniapp-discovery/"), of(EndpointRoute::List));
        assert_eq!(route("/api/miniapp-discovery/suggest/"), of(EndpointRoute::Suggest));
        assert_eq!(route("/api/miniapp-discovery/apps/a/b/"), Some((EndpointRoute::App, "a/b".to_owned())));
        for path in ["/api/miniapp-discoveryx", "/api/miniapp-discoverysuggest", "/api", "/api/miniapp-discovery//"] {
            assert_eq!(route(path), None, "{path}");
        }
    }
}
