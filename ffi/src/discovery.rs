//! Operations of discovery: lists, search, facets, refresh, and the HTTP endpoint (SPEC 4.1, 4.2).
//!
//! Invariant: each function is the core's method of the same name, after it converted the arguments.

pub(crate) mod selection;

pub(crate) mod author;

pub(crate) mod facet;

pub(crate) mod highlight;

pub(crate) mod mini_app;

pub(crate) mod mini_apps;

pub(crate) mod suggestion;

pub(crate) mod discovery_stats;

pub(crate) mod http_response;

use std::ffi::c_void;

use townsquare::{Error, Operation, blocking, discovery::Timeframe};

use crate::{
    boundary::{
        Callback, ErrorReport, Failure, Subscribing, argument, call_handle, call_unit, call_wanted_handle, handle,
        input::input, list, record, tsq_bytes, tsq_destroy, tsq_error, tsq_status, tsq_str,
    },
    client::{self, tsq_client},
    discovery::{
        discovery_stats::tsq_discovery_stats,
        facet::tsq_facets,
        http_response::{tsq_http_request, tsq_http_response},
        mini_apps::tsq_mini_apps,
        selection::tsq_selection,
        suggestion::tsq_suggestions,
    },
    subscription::tsq_subscription,
};

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn discovery<'a>(client: *const tsq_client) -> Result<blocking::Discovery<'a>, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { client::usable(client) }?.discovery())
}

/// Lists trending mini apps, best first. `timeframe` is `1h`, `6h`, `12h`, `24h` or `7d`; absent: `24h`.
///
/// The first call on a client, and the first call for a timeframe, may wait for a fetch; later calls answer from
/// memory. `tsq_discovery_preload` fetches without blocking. Without a catalog key the list is empty. Borrows `client`,
/// `timeframe` and `selection` (NULL: the first 50); returns owned in `out`. Fails with `TSQ_INVALID_INPUT`,
/// `TSQ_UNAVAILABLE` (no catalog), `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_get_trending_mini_apps(
    client: *const tsq_client,
    timeframe: tsq_str,
    selection: *const tsq_selection,
    out: *mut *mut tsq_mini_apps,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetTrendingMiniApps), out, err, || {
            let discovery = discovery(client)?;
            let timeframe = argument::optional_text(timeframe, "timeframe")?;
            let timeframe = timeframe.map_or(Ok(Timeframe::default()), str::parse)?;
            Ok(discovery.get_trending_mini_apps(timeframe, selection::read(selection)?)?)
        })
    }
}

/// Lists the mini apps of any of these categories, in trending order.
///
/// Borrows `client`, `categories` (an array of `categories_len`) and `selection` (NULL: the first 50); returns owned in
/// `out`. Fails like `tsq_discovery_get_trending_mini_apps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_get_mini_apps_by_category(
    client: *const tsq_client,
    categories: *const tsq_str,
    categories_len: usize,
    selection: *const tsq_selection,
    out: *mut *mut tsq_mini_apps,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetMiniAppsByCategory), out, err, || {
            let discovery = discovery(client)?;
            let categories = argument::texts(categories, categories_len, "categories")?;
            Ok(discovery.get_mini_apps_by_category(categories, selection::read(selection)?)?)
        })
    }
}

/// Lists the mini apps that match a query, best match first. Word prefixes, several words and small typos match; case
/// and accents are ignored.
///
/// Borrows `client`, `query` and `selection` (NULL: the first 50); returns owned in `out`. Fails like
/// `tsq_discovery_get_trending_mini_apps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_search_mini_apps(
    client: *const tsq_client,
    query: tsq_str,
    selection: *const tsq_selection,
    out: *mut *mut tsq_mini_apps,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::SearchMiniApps), out, err, || {
            Ok(discovery(client)?.search_mini_apps(argument::text(query, "query")?, selection::read(selection)?)?)
        })
    }
}

/// Lists the mini apps that were first seen last, latest first; apps of one time in trending order.
///
/// Borrows `client` and `selection` (NULL: the first 50); returns owned in `out`. Fails like
/// `tsq_discovery_get_trending_mini_apps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_get_new_mini_apps(
    client: *const tsq_client,
    selection: *const tsq_selection,
    out: *mut *mut tsq_mini_apps,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetNewMiniApps), out, err, || {
            Ok(discovery(client)?.get_new_mini_apps(selection::read(selection)?)?)
        })
    }
}

/// Lists the mini apps that are like another one, best first: by shared words, author and category. `id` is an id, a home
/// URL or a domain. The app itself and its near-copies are not in the list.
///
/// Borrows `client` and `id`; returns owned in `out`. Fails with `TSQ_NOT_FOUND` for an unknown id, `TSQ_INVALID_INPUT`
/// for a limit outside 1 to 1,000, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_get_similar_mini_apps(
    client: *const tsq_client,
    id: tsq_str,
    limit: u32,
    out: *mut *mut tsq_mini_apps,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetSimilarMiniApps), out, err, || {
            Ok(discovery(client)?.get_similar_mini_apps(argument::text(id, "id")?, limit)?)
        })
    }
}

/// Finds the mini app of an id, of a home URL in any spelling, or of a domain (its best ranked app). The list has that app,
/// or is empty when there is none.
///
/// Borrows `client` and `id`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_get_mini_app(
    client: *const tsq_client,
    id: tsq_str,
    out: *mut *mut tsq_mini_apps,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::GetMiniApp), out, err, || {
            Ok(discovery(client)?.get_mini_app(argument::text(id, "id")?)?.into_iter().collect())
        })
    }
}

/// Lists suggestions for a search box while the user types, best first: at most `limit`, near-copies once.
///
/// Borrows `client` and `text`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_suggest_mini_apps(
    client: *const tsq_client,
    text: tsq_str,
    limit: u32,
    out: *mut *mut tsq_suggestions,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::SuggestMiniApps), out, err, || {
            Ok(list(discovery(client)?.suggest_mini_apps(argument::text(text, "text")?, limit)?))
        })
    }
}

/// Lists the categories with their numbers of apps, most first. Of `selection` only the networks count.
///
/// Borrows `client` and `selection` (NULL: no filters); returns owned in `out`. Fails like
/// `tsq_discovery_get_trending_mini_apps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_categories(
    client: *const tsq_client,
    selection: *const tsq_selection,
    out: *mut *mut tsq_facets,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Categories), out, err, || {
            Ok(list(discovery(client)?.categories(selection::read(selection)?)?))
        })
    }
}

/// Lists the networks with their numbers of apps, most first. Of `selection` only the categories count. An app that names
/// no network counts for each. When no app of the catalog names one, the list has the networks that calls filtered by.
///
/// Borrows `client` and `selection` (NULL: no filters); returns owned in `out`. Fails like
/// `tsq_discovery_get_trending_mini_apps`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_networks(
    client: *const tsq_client,
    selection: *const tsq_selection,
    out: *mut *mut tsq_facets,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Networks), out, err, || {
            Ok(list(discovery(client)?.networks(selection::read(selection)?)?))
        })
    }
}

/// Receives the state of the catalog after a refresh that changed it; a view that lives until the callback returns. See
/// CALLBACKS in the manual.
pub type tsq_catalog_callback = Option<unsafe extern "C" fn(stats: *const tsq_discovery_stats, user_data: *mut c_void)>;

/// Calls `callback` after each refresh that changed the apps, their texts or an order.
///
/// Borrows `client`; takes `user_data`: `destroy` (may be NULL) destroys it, also when this call fails. Returns the
/// subscription owned in `out`, which may be NULL: the subscription then lasts as long as the handle. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_on_catalog_change(
    client: *const tsq_client,
    callback: tsq_catalog_callback,
    user_data: *mut c_void,
    destroy: tsq_destroy,
    out: *mut *mut tsq_subscription,
    err: *mut *mut tsq_error,
) -> tsq_status {
    let subscribing = Subscribing::default();
    let (subscribed, _subscribing) = (subscribing.clone(), subscribing.hold());
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        let callback = Callback::take(callback, user_data, destroy);
        call_wanted_handle(None, out, err, move || {
            let (callback, discovery) = (callback?, discovery(client)?);
            // Fails on a closed client.
            discovery.stats()?;
            let call = move |stats| {
                subscribed.wait();
                let stats = record::<tsq_discovery_stats>(stats);
                callback.call(|function, user_data| function(handle::view(&stats), user_data));
            };
            Ok(match client::host_loop(client)? {
                None => client::own_subscription(client, discovery.on_catalog_change(call))?.into(),
                Some(host) => host
                    .add_events(call, |queue| Some(discovery.on_catalog_change(move |stats| queue.push(stats))))
                    .into(),
            })
        })
    }
}

/// Receives the result of `tsq_discovery_preload`: NULL when the catalog is loaded, else the error, a view that lives
/// until the callback returns. See CALLBACKS in the manual.
pub type tsq_preload_callback = Option<unsafe extern "C" fn(error: *const tsq_error, user_data: *mut c_void)>;

/// Loads the catalog in the background and returns at once. Calls `callback` when discovery calls answer from memory,
/// or when loading failed. When the client is closed first, `callback` is not called.
///
/// Borrows `client`; takes `user_data`: `destroy` (may be NULL) destroys it, also when this call fails. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`. The callback's error is `TSQ_UNAVAILABLE` when there is no catalog.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_preload(
    client: *const tsq_client,
    callback: tsq_preload_callback,
    user_data: *mut c_void,
    destroy: tsq_destroy,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        let callback = Callback::take(callback, user_data, destroy);
        call_unit(Some(Operation::GetTrendingMiniApps), err, move || {
            let (callback, host) = (callback?, client::host_loop(client)?);
            let client = client::usable(client)?.inner();
            // Fails on a closed client.
            client.discovery().stats()?;
            let call = move |failure: Option<Error>| {
                let report = failure.map(|error| ErrorReport::new(error.into(), None));
                let error = report.as_ref().map_or(std::ptr::null(), handle::view);
                callback.call(|function, user_data| function(error, user_data));
            };
            let (discovery, runtime) = (client.discovery().clone(), client.runtime().clone());
            let load = async move { discovery.get_trending_mini_apps(Timeframe::default(), 1).await.err() };
            match host {
                // On a thread that may block: the callback may call the library.
                None => drop(runtime.clone().spawn(async move {
                    let failure = load.await;
                    runtime.spawn_blocking(move || call(failure));
                })),
                Some(host) => drop(host.add_events(call, |queue| {
                    runtime.spawn(async move { queue.push(load.await) });
                    None
                })),
            }
            Ok(())
        })
    }
}

/// Fetches the catalog, whatever its age, and waits for it. Concurrent calls share one fetch. A catalog that lost most
/// of its apps is refused, and the old one stays.
///
/// Borrows `client`; returns the new state owned in `out`, which may be NULL. Fails with `TSQ_UNAVAILABLE` when the
/// fetch fails (the old catalog stays), `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_refresh(
    client: *const tsq_client,
    out: *mut *mut tsq_discovery_stats,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::RefreshMiniApps), out, err, || Ok(record(discovery(client)?.refresh()?)))
    }
}

/// Like `tsq_discovery_refresh`, but accepts a catalog that lost most of its apps, and each further list as it comes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_force_refresh(
    client: *const tsq_client,
    out: *mut *mut tsq_discovery_stats,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::RefreshMiniApps), out, err, || {
            Ok(record(discovery(client)?.force_refresh()?))
        })
    }
}

/// Reads the state of the catalog. Starts no fetch and never waits.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_get_stats(
    client: *const tsq_client,
    out: *mut *mut tsq_discovery_stats,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || Ok(record(discovery(client)?.stats()?))) }
}

/// Answers an HTTP request to `/api/miniapp-discovery` without headers: `tsq_discovery_handle_request` for a method, a
/// target and a body.
///
/// `method` is the method of the request (`GET`, `POST`, …), `target` its path with
/// query (`/api/miniapp-discovery?category=games&limit=20`). Borrows all; returns owned in `out`. A bad request gets a
/// response too (`TSQ_OK` with status 400, 404, 405, 413, …). Fails with `TSQ_CLOSED`, and `TSQ_INVALID_INPUT` for
/// NULL or text that is not UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_handle(
    client: *const tsq_client,
    method: tsq_str,
    target: tsq_str,
    body: tsq_bytes,
    out: *mut *mut tsq_http_response,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let discovery = discovery(client)?;
            let (method, target) = (argument::text(method, "method")?, argument::text(target, "target")?);
            Ok(record(discovery.handle(method, target, argument::bytes(body, "body")?, &[])?))
        })
    }
}

/// Answers an HTTP request to `/api/miniapp-discovery` or below it, for the HTTP server of the host. Caches, compression and
/// CORS work by the headers `if-none-match`, `accept-encoding` and `origin`.
///
/// Borrows all; returns owned in `out`. A bad request gets a response too (`TSQ_OK` with status 400, 404, 405, 413, …).
/// Fails with `TSQ_CLOSED`, and `TSQ_INVALID_INPUT` for NULL or text that is not UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_handle_request(
    client: *const tsq_client,
    request: *const tsq_http_request,
    out: *mut *mut tsq_http_response,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let discovery = discovery(client)?;
            let request = input(request, "request", |request: &tsq_http_request| request.read())?;
            Ok(record(discovery.handle(request.method, request.target, request.body, &request.headers)?))
        })
    }
}
