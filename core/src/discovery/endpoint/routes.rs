//! The routes of the endpoint: one table for the code that answers them and for the OpenAPI document.

use super::parameters::{self, Parameter};

/// A path below [`ENDPOINT_PATH`](super::ENDPOINT_PATH).
pub(super) struct Route {
    pub(super) name: RouteName,
    /// Without a slash at its ends; a last segment `{id}` stands for the rest of the path.
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    /// The parameters of GET.
    pub(super) parameters: &'static [&'static Parameter],
    /// The name of the schema of the body that GET is answered with.
    pub(super) answer: &'static str,
    /// Whether the route takes the actions of [`ACTIONS`].
    pub(super) has_actions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteName {
    List,
    App,
    Categories,
    Networks,
    Suggest,
    OpenApi,
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
        name: RouteName::List,
        path: "",
        summary: "Lists mini apps in trending order.",
        parameters: &[
            &parameters::CATEGORY,
            &parameters::NETWORKS,
            &parameters::TIME_WINDOW,
            &parameters::TRENDING,
            &parameters::LIMIT,
            &parameters::OFFSET,
        ],
        answer: "List",
        has_actions: true,
    },
    Route {
        name: RouteName::App,
        path: "apps/{id}",
        summary: "Returns one mini app.",
        parameters: &[],
        answer: "OneApp",
        has_actions: false,
    },
    Route {
        name: RouteName::Categories,
        path: "categories",
        summary: "Counts the apps of each category, most first.",
        parameters: &[&parameters::NETWORKS],
        answer: "Categories",
        has_actions: false,
    },
    Route {
        name: RouteName::Networks,
        path: "networks",
        summary: "Counts the apps of each network, most first.",
        parameters: &[&parameters::CATEGORY],
        answer: "Networks",
        has_actions: false,
    },
    Route {
        name: RouteName::Suggest,
        path: "suggest",
        summary: "Suggests apps while somebody types into a search box.",
        parameters: &[&parameters::TYPED, &parameters::SUGGESTIONS],
        answer: "Suggestions",
        has_actions: false,
    },
    Route {
        name: RouteName::OpenApi,
        path: "openapi.json",
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
        ],
        answer: "TrendingApps",
    },
];

impl Route {
    /// The route of a path, and the rest of the path for `{id}`.
    pub(super) fn of(path: &str) -> Option<(&'static Route, &str)> {
        ROUTES.iter().find_map(|route| match route.path.strip_suffix("{id}") {
            Some(folder) => path.strip_prefix(folder).filter(|id| !id.is_empty()).map(|id| (route, id)),
            None => (route.path == path).then_some((route, "")),
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
