//! The routes of the endpoint: one table for the code that answers them and for the OpenAPI document.

use super::{
    ENDPOINT_PATH,
    parameters::{self, Parameter},
};

/// A path below [`ENDPOINT_PATH`](super::ENDPOINT_PATH).
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

/// A route of the discovery endpoint, for a server that mounts only some of them.
///
/// ```
/// use townsquare::discovery::EndpointRoute;
///
/// assert_eq!(EndpointRoute::Suggest.path(), "/api/miniapp-discovery/suggest");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointRoute {
    /// Lists, and the actions of POST.
    List,
    /// One app.
    App,
    /// The categories with their numbers of apps.
    Categories,
    /// The networks with their numbers of apps.
    Networks,
    /// Suggestions for a search box.
    Suggest,
    /// The OpenAPI document of all routes.
    OpenApi,
}

impl EndpointRoute {
    /// Every route.
    pub const ALL: [EndpointRoute; 6] = [
        EndpointRoute::List,
        EndpointRoute::App,
        EndpointRoute::Categories,
        EndpointRoute::Networks,
        EndpointRoute::Suggest,
        EndpointRoute::OpenApi,
    ];

    /// The path of the route. `{id}` stands for the rest of a path.
    ///
    /// ```
    /// use townsquare::discovery::EndpointRoute;
    ///
    /// assert_eq!(EndpointRoute::App.path(), "/api/miniapp-discovery/apps/{id}");
    /// ```
    pub const fn path(self) -> &'static str {
        match self {
            EndpointRoute::List => "/api/miniapp-discovery",
            EndpointRoute::App => "/api/miniapp-discovery/apps/{id}",
            EndpointRoute::Categories => "/api/miniapp-discovery/categories",
            EndpointRoute::Networks => "/api/miniapp-discovery/networks",
            EndpointRoute::Suggest => "/api/miniapp-discovery/suggest",
            EndpointRoute::OpenApi => "/api/miniapp-discovery/openapi.json",
        }
    }

    /// The path below the endpoint's, without slashes at its ends.
    pub(super) fn below_endpoint(self) -> &'static str {
        self.path().strip_prefix(ENDPOINT_PATH).unwrap_or_default().trim_start_matches('/')
    }
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
    /// The route of a path, and the rest of the path for `{id}`.
    pub(super) fn of(path: &str) -> Option<(&'static Route, &str)> {
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
