//! The directory page: the apps of the catalog for people, as HTML.
//!
//! The server renders the list, the search and the details, so that they work without JavaScript. The script of the page only makes
//! them faster to use: it fetches the same URLs and replaces parts of the page.
//!
//! Invariant: every page has the policy that forbids foreign content, no inline script and no inline style. Texts of apps are
//! escaped. The browser asks no other server for anything, unless the visitor chooses pictures on the page: a link from another site
//! does not choose them.

mod assets;
mod card;
mod details;
mod layout;
mod list;
mod state;
mod text;

use ::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_DNS_PREFETCH_CONTROL, X_FRAME_OPTIONS};
use bytes::Bytes;
use maud::Markup;

use self::{
    assets::Asset,
    list::ListView,
    state::{Links, State},
};
use super::{
    discovery::of_catalog,
    refusal::HttpRefusal,
    request::Request,
    response::{Response, add_vary, with_header},
    target::{Target, decode},
};
use crate::{
    catalog::{Selection, Timeframe},
    discovery::{Discovery, RequestedCatalog},
    error::Result,
};

/// The path of the directory page. Details of an app are at `/directory/apps/{id}`.
///
/// ```
/// assert_eq!(townsquare::http::DIRECTORY_PATH, "/directory");
/// ```
pub const DIRECTORY_PATH: &str = "/directory";

/// Whether a browser follows a link of another site: <https://www.w3.org/TR/fetch-metadata/>.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// The methods that are answered.
const METHODS: &str = "GET, HEAD";

/// What a path of the page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View<'a> {
    List,
    /// The app with this id, not decoded yet.
    App(&'a str),
    Asset(&'a str),
}

impl<'a> View<'a> {
    fn of(path: &'a str) -> Option<View<'a>> {
        match path.strip_prefix(DIRECTORY_PATH)? {
            "" | "/" => Some(View::List),
            below => match below.strip_prefix("/apps/") {
                Some(id) => Some(id.strip_suffix('/').unwrap_or(id)).filter(|id| !id.is_empty()).map(View::App),
                None => below.strip_prefix('/').map(View::Asset),
            },
        }
    }
}

impl Discovery {
    /// Answers a request for the directory page.
    ///
    /// # Errors
    /// `Closed` after the client was closed.
    pub(super) async fn respond_page(&self, request: &Request<'_>) -> Result<Response> {
        self.stats()?;
        let answer = async {
            let path = request.target.split(['?', '#']).next().unwrap_or_default();
            Ok(answer(&self.for_requests(), request).await.unwrap_or_else(|refusal| {
                let links = Links::from_path(path);
                refusal.into_response_of(|status, message| document(layout::refused(&links, status, message), false))
            }))
        };
        Ok(request.respond(METHODS, &[], answer).await)
    }
}

async fn answer(discovery: &Discovery, request: &Request<'_>) -> Result<Response, HttpRefusal> {
    let not_found = || HttpRefusal::new(404, "There is no page at this address");
    let target = request.target.split('#').next().unwrap_or_default();
    let target = Target::parse(target).map_err(|_| not_found())?;
    let view = View::of(target.path).ok_or_else(not_found)?;
    if !matches!(request.method, "GET" | "HEAD") {
        return Err(HttpRefusal::method_not_allowed(METHODS));
    }
    match view {
        View::List => list(discovery, request, &target).await,
        View::App(id) => details(discovery, request, &target, id).await,
        View::Asset(name) => Ok(Asset::named(name).ok_or_else(not_found)?.respond(request, &target)),
    }
}

/// The state of a request. A link from another site shows no pictures: the visitor has not chosen them here.
fn state(request: &Request<'_>, target: &Target<'_>) -> Result<State, HttpRefusal> {
    let state = State::parse(target)?;
    let is_cross_site = request.headers.get(SEC_FETCH_SITE).is_some_and(|site| site == "cross-site");
    Ok(State { has_pictures: state.has_pictures && !is_cross_site, ..state })
}

async fn list(discovery: &Discovery, request: &Request<'_>, target: &Target<'_>) -> Result<Response, HttpRefusal> {
    let mut state = state(request, target)?;
    let (selection, failed) = (state.selection(), |error| discovery.refusal(error));
    let catalog = discovery.requested_catalog(state.window, &selection).await.map_err(failed)?;
    let filter = catalog.snapshot.filter(&selection).map_err(failed)?;
    let key = key(target, &state);
    Ok(respond(request, &catalog, &key, || {
        let list = catalog.snapshot.faceted(state.order(), filter);
        // The list may have become shorter since the link was made.
        state.page = state.page.min(list.total().div_ceil(list::PAGE).max(1));
        let windows = catalog.snapshot.timeframes(discovery.endpoint.can_fetch_lists);
        let links = Links::from_path(target.path);
        let view = ListView { links: &links, state: &state, list: &list, catalog: &catalog, windows: &windows };
        document(view.render(), state.has_pictures)
    }))
}

async fn details(
    discovery: &Discovery,
    request: &Request<'_>,
    target: &Target<'_>,
    id: &str,
) -> Result<Response, HttpRefusal> {
    let state = state(request, target)?;
    let id = decode(id).map_err(|reason| HttpRefusal::new(400, reason))?;
    let catalog = discovery.requested_catalog(Timeframe::default(), &Selection::first(1)).await;
    let catalog = catalog.map_err(|error| discovery.refusal(error))?;
    let app = catalog.snapshot.get(&id).ok_or_else(|| HttpRefusal::new(404, "The directory has no such app"))?;
    let similar = catalog.snapshot.similar(app.id(), details::SIMILAR).map_err(|error| discovery.refusal(error))?;
    Ok(respond(request, &catalog, &key(target, &state), || {
        let links = Links::from_path(target.path);
        document(details::render(&links, &state, &app, &similar), state.has_pictures)
    }))
}

/// Answers with a page of the catalog, which also depends on where the request comes from.
fn respond(request: &Request<'_>, catalog: &RequestedCatalog, key: &str, page: impl FnOnce() -> Response) -> Response {
    let mut response = of_catalog(&request.headers, catalog, key, page);
    add_vary(response.headers_mut(), SEC_FETCH_SITE);
    response
}

/// What determines a page beside the catalog.
fn key(target: &Target<'_>, state: &State) -> String {
    let pictures = if state.has_pictures { "with pictures" } else { "" };
    let (style, script, icon) = (assets::STYLE.hash(), assets::SCRIPT.hash(), assets::ICON.hash());
    format!("page {} {} {pictures} {style} {script} {icon}", target.path, target.query)
}

/// A response with a page. The browser loads content of this server alone, and with `has_pictures` also pictures of others.
fn document(page: Markup, has_pictures: bool) -> Response {
    let pictures = if has_pictures { " https:" } else { "" };
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'{pictures}; connect-src 'self'; base-uri 'none'; \
         form-action 'self'; frame-ancestors 'none'"
    );
    // HTML has no such character, and a name of the catalog may.
    let page = page.into_string().replace('\0', "\u{fffd}");
    let response = Response::new(Bytes::from(page).into());
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, &policy),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        // The names of the apps' servers are asked for when the visitor follows a link.
        (X_DNS_PREFETCH_CONTROL, "off"),
    ];
    headers.into_iter().fold(response, |response, (name, value)| with_header(response, name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_view_or_none() {
        for (path, view) in [
            ("/directory", Some(View::List)),
            ("/directory/", Some(View::List)),
            ("/directory/apps/a.example/b/", Some(View::App("a.example/b"))),
            ("/directory/page.css", Some(View::Asset("page.css"))),
            ("/directory/apps", Some(View::Asset("apps"))),
            ("/directory/apps/", None),
            ("/directoryx", None),
            ("/", None),
        ] {
            assert_eq!(View::of(path), view, "{path}");
        }
    }
}
