//! The admin page: what the library holds, for the developer and the operator. `serve --admin` adds it.
//!
//! Invariant: it reads and changes nothing, and shows no password hash, token or secret key. It acts for the service, so that
//! [`access::guard`] decides alone who reads it.

mod access;
mod catalog;
mod changes;
mod check;
mod communities;
mod files;
mod metrics;
mod overview;
mod page;
mod page_error;
mod parameters;
mod preview;
mod recent_changes;
mod samples;
mod spaces;
mod users;

use std::{fs, net::SocketAddr, pin::pin, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, Uri, header::CONTENT_TYPE},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use futures_util::future::{join, select};
use tokio::sync::watch;
use townsquare::{Client, Timestamp};

use self::{
    access::Token,
    check::LastCheck,
    page_error::PageError,
    parameters::{Parameters, address},
    recent_changes::RecentChanges,
    samples::Samples,
};
use super::shutdown_requested;
use crate::{
    commands::files::buckets,
    context::Context,
    failure::Failure,
    redact::{known_scheme, redacted},
    settings::Settings,
};

/// The path of the page, behind the prefix of the server.
const PATH: &str = "/admin";

const SCRIPT: &str = include_str!("admin/page.js");
const STYLE: &str = include_str!("admin/page.css");

/// The admin page of a server.
#[derive(Debug)]
pub(super) struct Admin {
    /// It acts for the service.
    client: Client,
    /// The path of the page, with the prefix of the server.
    base: String,
    token: Token,
    /// The name of the cookie. Browsers send a cookie to every port of a host, so the name has the port.
    cookie: String,
    buckets: Vec<String>,
    server: ServerFacts,
    changes: RecentChanges,
    samples: Samples,
    check: LastCheck,
    is_ending: watch::Receiver<bool>,
}

/// What is known about the server when it starts.
#[derive(Debug)]
struct ServerFacts {
    database: String,
    store: String,
    data_dir: String,
    started: Timestamp,
}

impl ServerFacts {
    /// The options without their secrets.
    fn of(settings: &Settings) -> ServerFacts {
        let option = |name| settings.get(name).map(|setting| redacted(&setting.value.to_string_lossy()));
        let given = settings.data_dir();
        // The folder in memory, and one that does not exist yet, are shown as they are given.
        let data_dir = fs::canonicalize(&given).unwrap_or(given).display().to_string();
        let database = match option("database_url") {
            Some(url) if known_scheme(&url).is_some_and(|scheme| scheme.starts_with("postgres")) => {
                format!("PostgreSQL, {url}")
            }
            Some(url) => format!("SQLite, {url}"),
            None => "SQLite, in the data folder".to_owned(),
        };
        let store = option("storage_url").unwrap_or_else(|| "in the data folder".to_owned());
        ServerFacts { database, store, data_dir, started: Timestamp::now() }
    }
}

impl Admin {
    /// # Errors
    /// Failures of the settings and of the source of random bytes.
    pub(super) fn new(
        client: &Client,
        address: SocketAddr,
        prefix: &str,
        is_ending: watch::Receiver<bool>,
        context: &Context,
    ) -> Result<Arc<Admin>, Failure> {
        Ok(Arc::new(Admin {
            client: client.as_service(),
            base: format!("{prefix}{PATH}"),
            token: Token::new()?,
            cookie: format!("townsquare_admin_{}", address.port()),
            buckets: buckets(context)?.into_iter().map(|bucket| bucket.name).collect(),
            server: ServerFacts::of(context.settings()?),
            changes: RecentChanges::default(),
            samples: Samples::default(),
            check: LastCheck::default(),
            is_ending,
        }))
    }

    /// The address that opens the page, behind that of the server.
    pub(super) fn path_with_token(&self) -> String {
        address(PATH, &[("token", self.token.reveal())])
    }

    /// The address of a page.
    fn at(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        address(&format!("{}{path}", self.base), parameters)
    }

    /// Follows the changes and the metrics until the server ends. `no_feed` says why there are no changes to follow.
    pub(super) fn watch(self: &Arc<Admin>, no_feed: Option<String>) {
        let admin = Arc::clone(self);
        tokio::spawn(async move {
            let changes = admin.changes.follow(&admin.client, no_feed);
            let work = join(changes, admin.samples.measure(&admin.client));
            select(pin!(work), pin!(shutdown_requested(admin.is_ending.clone()))).await;
        });
    }
}

/// The routes of the page.
pub(super) fn router(admin: Arc<Admin>) -> Router {
    let guarded =
        get(respond).with_state(Arc::clone(&admin)).layer(middleware::from_fn_with_state(admin, access::guard));
    // `{*page}` does not match the empty path after the slash.
    Router::new()
        .route(PATH, guarded.clone())
        .route(&format!("{PATH}/"), guarded.clone())
        .route(&format!("{PATH}/{{*page}}"), guarded)
}

async fn respond(State(admin): State<Arc<Admin>>, uri: Uri, headers: HeaderMap) -> Response {
    let admin = &admin;
    let query = &Parameters::of(&uri);
    let path = uri.path().strip_prefix(PATH).unwrap_or_default();
    let segments: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let page = match *segments.as_slice() {
        [""] => overview::page(admin).await,
        ["users"] => users::list(admin, query).await,
        ["users", id] => users::user(admin, id).await,
        ["spaces"] => spaces::list(admin, query).await,
        ["spaces", id] => spaces::space(admin, id, query).await,
        ["communities"] => communities::page(admin, query).await,
        ["files"] => files::buckets(admin).await,
        ["files", bucket] => files::folder(admin, bucket, query).await,
        ["file"] => files::file(admin, query).await,
        ["changes"] => Ok(changes::list(admin, query)),
        ["catalog"] => catalog::page(admin),
        ["check"] => Ok(check::page(admin).await),
        ["metrics"] => metrics::page(admin).await,
        ["changes", "stream"] => return changes::stream(admin, query, &headers),
        ["file", "image"] => return or_error(admin, preview::image(admin, query).await),
        ["file", "download"] => return or_error(admin, preview::download(admin, query).await),
        ["page.css"] => return asset("text/css", STYLE),
        ["page.js"] => return asset("text/javascript", SCRIPT),
        _ => Err(PageError::not_found("There is no such page.")),
    };
    or_error(admin, page.map(|page| page.respond(admin)))
}

fn or_error(admin: &Admin, response: Result<Response, PageError>) -> Response {
    response.unwrap_or_else(|error| page::respond_error(&error, admin))
}

fn asset(kind: &str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, format!("{kind}; charset=utf-8"))], text).into_response()
}
