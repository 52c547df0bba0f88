//! Discovery: trending, categories, search, refresh, and the HTTP endpoint without a server (SPEC 4.1, 4.2).
//!
//! Invariant: each function is the core's method of the same name, with nothing before it but reading the arguments.

use townsquare::{Operation, Timeframe, blocking};

use crate::{
    boundary::{produce, produce_if_wanted},
    client::tsq_client,
    discovery_stats::tsq_discovery_stats,
    error::{Failure, tsq_error},
    handle,
    http_response::tsq_http_response,
    mini_apps::tsq_mini_apps,
    selection::{self, tsq_selection},
    status::tsq_status,
    text::{self, tsq_bytes, tsq_str},
};

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn discovery<'a>(client: *const tsq_client) -> Result<blocking::Discovery<'a>, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { handle::required(client, "client") }?.discovery())
}

/// The mini apps that trend, best first. `timeframe` is `1h`, `6h`, `12h`, `24h` or `7d`; absent: `24h`.
///
/// The first call of a process may wait for the catalog; later ones answer from memory. Without a catalog key the list
/// is empty. Borrows `client`, `timeframe` and `selection` (NULL: the first 50); returns owned in `out`. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_UNAVAILABLE` (no catalog to answer from), `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_get_trending_mini_apps(
    client: *const tsq_client,
    timeframe: tsq_str,
    selection: *const tsq_selection,
    out: *mut *mut tsq_mini_apps,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::GetTrendingMiniApps), out, err, || {
            let discovery = discovery(client)?;
            let timeframe = text::optional(timeframe, "timeframe")?;
            let timeframe = timeframe.map_or(Ok(Timeframe::default()), str::parse)?;
            Ok(discovery.get_trending_mini_apps(timeframe, selection::read(selection)?)?)
        })
    }
}

/// The mini apps of any of these categories, in the order they trend.
///
/// Borrows `client`, `categories` (an array of `categories_len`) and `selection` (NULL: the first 50); returns owned in
/// `out`. Fails as `tsq_discovery_get_trending_mini_apps` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_get_mini_apps_by_category(
    client: *const tsq_client,
    categories: *const tsq_str,
    categories_len: usize,
    selection: *const tsq_selection,
    out: *mut *mut tsq_mini_apps,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::GetMiniAppsByCategory), out, err, || {
            let discovery = discovery(client)?;
            let categories = text::list(categories, categories_len, "categories")?;
            Ok(discovery.get_mini_apps_by_category(categories, selection::read(selection)?)?)
        })
    }
}

/// The mini apps that match what somebody typed, best match first: word prefixes, several words, small typos; case and
/// accents do not count.
///
/// Borrows `client`, `query` and `selection` (NULL: the first 50); returns owned in `out`. Fails as
/// `tsq_discovery_get_trending_mini_apps` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_search_mini_apps(
    client: *const tsq_client,
    query: tsq_str,
    selection: *const tsq_selection,
    out: *mut *mut tsq_mini_apps,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::SearchMiniApps), out, err, || {
            let discovery = discovery(client)?;
            Ok(discovery.search_mini_apps(text::required(query, "query")?, selection::read(selection)?)?)
        })
    }
}

/// Fetches the catalog now, whatever its age, and waits for it. Calls at the same time share one fetch. A catalog that
/// lost most of its apps is refused: the old one stays.
///
/// Borrows `client`; returns the new state owned in `out`, which may be NULL. Fails with `TSQ_UNAVAILABLE` when the
/// fetch does (the old catalog stays), `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_refresh(
    client: *const tsq_client,
    out: *mut *mut tsq_discovery_stats,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce_if_wanted(Some(Operation::RefreshMiniApps), out, err, || Ok(discovery(client)?.refresh()?)) }
}

/// Like `tsq_discovery_refresh`, but takes the new catalog even when it lost most of its apps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_force_refresh(
    client: *const tsq_client,
    out: *mut *mut tsq_discovery_stats,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce_if_wanted(Some(Operation::RefreshMiniApps), out, err, || Ok(discovery(client)?.force_refresh()?)) }
}

/// The state of the catalog as it is; fetches nothing.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_discovery_get_stats(
    client: *const tsq_client,
    out: *mut *mut tsq_discovery_stats,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || Ok(discovery(client)?.stats()?)) }
}

/// Answers one HTTP request to `/api/miniapp-discovery`: mount it in whatever server the host has.
///
/// `method` is the request's (`GET`, `POST`, …), `target` its path with query
/// (`/api/miniapp-discovery?category=games&limit=20`). Borrows all; returns owned in `out`. A bad request is an answer
/// like any other (`TSQ_OK` with status 400, 404, 405, 413, …); fails with `TSQ_CLOSED`, and `TSQ_INVALID_INPUT` for
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
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(None, out, err, || {
            let discovery = discovery(client)?;
            let (method, target) = (text::required(method, "method")?, text::required(target, "target")?);
            Ok(discovery.handle(method, target, text::bytes(body, "body")?)?)
        })
    }
}
