/*
 * townsquare: a community backend and mini app directory in your process.
 *
 * This file is generated from ffi/src; the manual below is ffi/header.md. C++ programs include townsquare.hpp, which
 * wraps all of it in RAII types.
 *
 *
 * EXAMPLE
 *
 * #include <stdio.h>
 * #include <townsquare.h>
 *
 * int main(void) {
 *     tsq_client *client = NULL;
 *     tsq_mini_apps *apps = NULL;
 *     tsq_error *err = NULL;
 *     tsq_selection first = tsq_selection_first(20);
 *
 *     if (tsq_client_open(NULL, &client, &err) == TSQ_OK &&
 *         tsq_discovery_get_trending_mini_apps(client, TSQ_STR("24h"), &first, &apps, &err) == TSQ_OK) {
 *         for (size_t i = 0; i < tsq_mini_apps_len(apps); i++) {
 *             const tsq_mini_app *app = tsq_mini_apps_at(apps, i);
 *             printf("%.*s  %.*s\n", TSQ_ARG(tsq_mini_app_name(app)), TSQ_ARG(tsq_mini_app_home_url(app)));
 *         }
 *     } else {
 *         fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(err)));
 *     }
 *     int failed = err != NULL;
 *     tsq_error_free(err);
 *     tsq_mini_apps_free(apps);
 *     tsq_client_free(client);
 *     return failed;
 * }
 *
 * Link with -ltownsquare (pkg-config townsquare, or CMake: find_package(townsquare), target townsquare::townsquare).
 *
 *
 * THREADS
 *
 * Every function may be called from any thread, and a handle may be used by any number of threads at once. Only the
 * function that frees a handle wants it for itself. Calls block until they have their answer and need no event loop; what
 * is in memory (every discovery call once the catalog is loaded) is answered on the calling thread without waiting. A
 * client does not survive fork(): open it in the child.
 *
 *
 * OWNERSHIP, in four words
 *
 *   borrows         the function looks at the argument during the call and keeps nothing of it
 *   takes           the function ends the argument; do not use it again
 *   returns owned   the result is yours; end it with the _free function of its type
 *   returns a view  the result belongs to what it was read from and lives as long as that
 *
 * Functions that read one field (tsq_mini_app_name, tsq_error_code, ...) borrow their receiver and return a view that
 * lives as long as the owner at the root: views of an app live as long as its list. Results are independent of the
 * client: a list may be read after the client was closed and freed. All of them are immutable. Every _free function
 * allows NULL.
 *
 *
 * ERRORS
 *
 * Functions that can fail return a tsq_status: TSQ_OK is 0, anything else is the kind of the failure. They take, last, a
 * tsq_error **err. It may be NULL: then you get the status alone, and no error object is made. Otherwise *err is set by
 * every call: to NULL after TSQ_OK, else to an error that you own; so free an error before you pass its variable again.
 * Outputs likewise: a handle after TSQ_OK, NULL after a failure.
 *
 * A NULL handle, text that is not UTF-8, a number out of range: TSQ_INVALID_INPUT, with a message that names the
 * argument. Functions that cannot fail answer NULL receivers and indexes beyond the end with 0, false, NULL or the absent
 * text. A panic inside the library is caught and becomes TSQ_INTERNAL. What the library cannot detect is a handle that was
 * freed, or that it never made.
 *
 * Optional numbers are read by functions that return whether there is one and write it to `out` (0 when there is none).
 *
 *
 * TEXT
 *
 * tsq_str is a pointer and a length, UTF-8, in and out. It is not NUL-terminated unless a function says so, and a NUL
 * inside is a character like any other. TSQ_STR("literal") makes one, tsq_str_from(s) makes one of a C string, and
 * TSQ_ARG(text) passes one to printf's "%.*s". {NULL, 0} is the absent text: as an argument "not given", as a result "has
 * none". Times are int64_t microseconds since 1970-01-01T00:00:00Z.
 *
 *
 * OPTIONS of tsq_config_set, of the query of tsq_config_from_url and, as TOWNSQUARE_<NAME>, of tsq_config_from_env
 *
 *   data_dir                folder of the database; default $TOWNSQUARE_DATA_DIR, else ./townsquare-data
 *   database_url            sqlite:PATH or postgres://…; default the file townsquare.db in data_dir
 *   durability              full (default) or normal: whether a SQLite commit survives power loss
 *   busy_timeout            seconds to wait for another process's write lock; default 10
 *   catalog_url             upstream base URL, or file:///… for a catalog kept by hand; default https://api.neynar.com
 *   catalog_api_key         key of the upstream; default $CATALOG_API_KEY; empty: no discovery
 *   catalog_key_header      header that carries the key; default x-api-key
 *   refresh_interval        seconds a fetched catalog counts as fresh; default 900
 *   catalog_timeout         seconds for one upstream request; default 10
 *   catalog_refresh_timeout seconds for fetching one whole list; default 30
 *   catalog_page_size       rows asked for in one page, 1 to 100; default 100
 *   catalog_max_pages       pages fetched for one list at the most; default 100
 *   catalog_max_page_bytes  largest page or catalog file read, in bytes; default 33554432 (32 MiB)
 *   catalog_tries           tries for one page, 1 to 10; default 3
 *
 *
 * VERSIONS
 *
 * TSQ_VERSION is the version of this header, tsq_version() that of the library. Up to 1.0 they have to agree in the
 * second number; from then on, functions and status numbers are only added.
 */

#ifndef TOWNSQUARE_H
#define TOWNSQUARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The version of this header; `tsq_version` is that of the library. */
#define TSQ_VERSION "0.1.0"

/** A string literal as a `tsq_str`. */
#ifdef __cplusplus
#define TSQ_STR(literal) (tsq_str{("" literal), sizeof("" literal) - 1})
#else
#define TSQ_STR(literal) ((tsq_str){("" literal), sizeof("" literal) - 1})
#endif

/** A `tsq_str` for printf's "%.*s". Evaluates its argument twice: give it a variable or a plain accessor. */
#define TSQ_ARG(text) (int)(text).len, ((text).ptr ? (text).ptr : "")

/// How a call ended. `TSQ_OK` is 0; every other value is the kind of a failure, what a program branches on.
typedef enum {
    /// It worked.
    TSQ_OK = 0,
    /// A unique value is taken.
    TSQ_ALREADY_EXISTS = 1,
    /// A referenced row does not exist.
    TSQ_REFERENCE_MISSING = 2,
    /// A required field has no value.
    TSQ_FIELD_MISSING = 3,
    /// A table of the database is gone.
    TSQ_TABLE_MISSING = 4,
    /// The row or file does not exist, or the caller may not know that it does.
    TSQ_NOT_FOUND = 5,
    /// An argument is NULL, not UTF-8, malformed or out of range; the message names it.
    TSQ_INVALID_INPUT = 6,
    /// The caller is nobody, or its credentials or session are not valid.
    TSQ_UNAUTHORIZED = 7,
    /// A policy denies this to the caller.
    TSQ_FORBIDDEN = 8,
    /// Too many attempts; `tsq_error_retry_after_ms` says when to come back.
    TSQ_RATE_LIMITED = 9,
    /// A file or body is over its size limit.
    TSQ_TOO_LARGE = 10,
    /// An outside system does not answer, or there is nothing to answer from. Worth another try.
    TSQ_UNAVAILABLE = 11,
    /// The client was closed.
    TSQ_CLOSED = 12,
    /// The configuration is wrong; the message names the option.
    TSQ_CONFIG = 13,
    /// A fault of the library or of the database below it.
    TSQ_INTERNAL = 14,
} tsq_status;

/// The publisher of a mini app: a view that lives as long as the app's list, with all texts read from it.
typedef struct tsq_author tsq_author;

/// An open client: a database, a catalog in memory and a caller. Owned, ended with `tsq_client_free`; used from any
/// number of threads at once.
typedef struct tsq_client tsq_client;

/// How a client is opened. Owned by the caller, who ends it with `tsq_config_free`; clients keep a copy.
typedef struct tsq_config tsq_config;

/// What the catalog holds, how old it is, and why it is no newer. Owned, ended with `tsq_discovery_stats_free`.
typedef struct tsq_discovery_stats tsq_discovery_stats;

/// Why a call failed. Owned by the caller, who ends it with `tsq_error_free`.
typedef struct tsq_error tsq_error;

/// Status, headers and body of an answer. Owned, ended with `tsq_http_response_free`; what is read from it lives as
/// long.
typedef struct tsq_http_response tsq_http_response;

/// One mini app: a view into its list. Texts read from it, its author included, live as long as the list; texts that
/// may be absent say so.
typedef struct tsq_mini_app tsq_mini_app;

/// A list of mini apps, best first. Owned, ended with `tsq_mini_apps_free`; it never changes and outlives its client.
typedef struct tsq_mini_apps tsq_mini_apps;

/// Text that the caller owns: read it with `tsq_string_view`, end it with `tsq_string_free`.
typedef struct tsq_string tsq_string;

/// UTF-8 text by pointer and length; not NUL-terminated unless a function says so.
///
/// As an argument it is borrowed for the call. `{NULL, 0}` is the absent text: as an argument "not given", which is
/// the empty text where a text is needed; as a result "has none".
typedef struct {
    /// First byte; NULL for the absent text.
    const char *ptr;
    /// Length in bytes.
    size_t len;
} tsq_str;

/// How many mini apps a call lists, and which. Start from `tsq_selection_first`; NULL in place of one lists the first 50.
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
typedef struct {
    /// The most to list, 1 to 1,000; else the call fails with `TSQ_INVALID_INPUT`.
    uint32_t limit;
    /// Only apps of one of these categories (`games`, `social`, …); none given: of any.
    const tsq_str *categories;
    /// How many categories.
    size_t categories_len;
    /// Only apps that run on one of these networks (`base`, `optimism`, …); none given: on any.
    const tsq_str *networks;
    /// How many networks.
    size_t networks_len;
} tsq_selection;

/// Bytes by pointer and length. `{NULL, 0}` is empty.
typedef struct {
    /// First byte.
    const uint8_t *ptr;
    /// Length in bytes.
    size_t len;
} tsq_bytes;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// The version of the library that is loaded, `0.1.0`; `TSQ_VERSION` is that of the header.
///
/// Returns a view that lives for ever.
tsq_str tsq_version(void);

/// The name of a status: `ok`, `already_exists`, `invalid_input`, …; absent for a number that is none.
///
/// Returns a view that lives for ever.
tsq_str tsq_status_name(int32_t status);

/// The text up to the NUL of a C string; absent for NULL. For literals, `TSQ_STR("…")` needs no call.
///
/// Borrows `text`; returns a view that lives as long as it.
tsq_str tsq_str_from(const char *text);

/// The text itself. A NUL that does not count stands behind its last byte.
///
/// Borrows `string`; returns a view that lives as long as it. Absent for NULL.
tsq_str tsq_string_view(const tsq_string *string);

/// Ends an owned text. Takes `string`; NULL is allowed.
void tsq_string_free(tsq_string *string);

/// The kind of the failure: the status that the call returned. `TSQ_OK` for NULL: no error, no failure.
///
/// Borrows `error`.
tsq_status tsq_error_kind(const tsq_error *error);

/// The whole sentence that a user may be shown, the operation's prefix included:
/// `Search mini apps failed: Argument query is not UTF-8 at byte 3`. NUL-terminated.
///
/// Borrows `error`; returns a view that lives as long as it. Absent for NULL.
tsq_str tsq_error_text(const tsq_error *error);

/// The sentence without the prefix. NUL-terminated.
///
/// Borrows `error`; returns a view that lives as long as it. Absent for NULL.
tsq_str tsq_error_message(const tsq_error *error);

/// The operation that failed, by its name without `tsq_` and noun (`search_mini_apps`); absent when none was under way.
///
/// Borrows `error`; returns a view that lives for ever.
tsq_str tsq_error_operation(const tsq_error *error);

/// The SQLSTATE of a database's failure (`23505`, `42P01`, …); absent when it has none.
///
/// Borrows `error`; returns a view that lives as long as it.
tsq_str tsq_error_code(const tsq_error *error);

/// The file store's status (404, 413, …): true and written to `out`, or false and `out` 0 for a failure without one.
///
/// Borrows `error`; `out` may be NULL.
bool tsq_error_status(const tsq_error *error,
                      uint16_t *out);

/// How long to wait before another try, in milliseconds: true and written to `out`, or false and `out` 0 where that
/// is not known.
///
/// Borrows `error`; `out` may be NULL.
bool tsq_error_retry_after_ms(const tsq_error *error,
                              uint64_t *out);

/// Whether the same call may succeed later without a change of its arguments. False for NULL.
///
/// Borrows `error`.
bool tsq_error_is_retryable(const tsq_error *error);

/// Ends an error. Takes `error`; NULL is allowed.
void tsq_error_free(tsq_error *error);

/// A configuration with every option at its default. Returns owned.
tsq_config *tsq_config_new(void);

/// The configuration that a URL spells: `townsquare:DATA_DIR`, `sqlite:PATH` or `postgres://…`, with options by name
/// in the query: `townsquare:/var/lib/town?durability=normal&refresh_interval=60`.
///
/// Borrows `url`; returns owned in `out`. Fails with `TSQ_CONFIG` for another scheme, an unknown option or a value
/// that does not fit.
tsq_status tsq_config_from_url(tsq_str url,
                               tsq_config **out,
                               tsq_error **err);

/// Every option that has an environment variable `TOWNSQUARE_<NAME>`, from there.
///
/// Returns owned in `out`. Fails with `TSQ_CONFIG` naming the first variable whose value does not fit.
tsq_status tsq_config_from_env(tsq_config **out, tsq_error **err);

/// Sets one option by its name; the manual's section OPTIONS lists them. Values are text: `"60"`, `"normal"`.
///
/// Borrows all. Fails with `TSQ_CONFIG` naming the option when it is unknown or the value does not fit; the
/// configuration is then as it was.
tsq_status tsq_config_set(tsq_config *config, tsq_str name, tsq_str value, tsq_error **err);

/// Ends a configuration. Takes `config`; NULL is allowed.
void tsq_config_free(tsq_config *config);

/// Opens a client; creates its folder and database when they are missing.
///
/// Borrows `config` (NULL: the defaults), which may be changed or freed afterwards; returns owned in `out`. Fails with
/// `TSQ_CONFIG` for options that cannot work, `TSQ_UNAVAILABLE` or `TSQ_INTERNAL` when the database does not open.
tsq_status tsq_client_open(const tsq_config *config,
                           tsq_client **out,
                           tsq_error **err);

/// The client of this process: the first call opens it, later calls return a further handle of the same one.
///
/// Borrows `config`: NULL means the defaults in the first call and "whatever it was opened with" later. Returns owned
/// in `out`; freeing all handles leaves the client open, `tsq_client_close` closes it. Fails as `tsq_client_open` does,
/// and with `TSQ_CONFIG` for other options than those of the first call.
tsq_status tsq_client_shared(const tsq_config *config,
                             tsq_client **out,
                             tsq_error **err);

/// Closes the client, for all its handles: waits for what is under way, flushes, ends its threads. Later calls on it
/// fail with `TSQ_CLOSED`; lists and other results stay. Closing again does nothing.
///
/// Borrows `client`.
tsq_status tsq_client_close(const tsq_client *client,
                            tsq_error **err);

/// Whether the client was closed. True for NULL.
///
/// Borrows `client`.
bool tsq_client_is_closed(const tsq_client *client);

/// Ends a handle, and closes the client when it was the last one. Takes `client`; NULL is allowed. No other thread may
/// be inside a call with this handle.
void tsq_client_free(tsq_client *client);

/// The selection of the first `limit` apps, without filters.
tsq_selection tsq_selection_first(uint32_t limit);

/// The mini apps that trend, best first. `timeframe` is `1h`, `6h`, `12h`, `24h` or `7d`; absent: `24h`.
///
/// The first call of a process may wait for the catalog; later ones answer from memory. Without a catalog key the list
/// is empty. Borrows `client`, `timeframe` and `selection` (NULL: the first 50); returns owned in `out`. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_UNAVAILABLE` (no catalog to answer from), `TSQ_CLOSED`.
tsq_status tsq_discovery_get_trending_mini_apps(const tsq_client *client,
                                                tsq_str timeframe,
                                                const tsq_selection *selection,
                                                tsq_mini_apps **out,
                                                tsq_error **err);

/// The mini apps of any of these categories, in the order they trend.
///
/// Borrows `client`, `categories` (an array of `categories_len`) and `selection` (NULL: the first 50); returns owned in
/// `out`. Fails as `tsq_discovery_get_trending_mini_apps` does.
tsq_status tsq_discovery_get_mini_apps_by_category(const tsq_client *client,
                                                   const tsq_str *categories,
                                                   size_t categories_len,
                                                   const tsq_selection *selection,
                                                   tsq_mini_apps **out,
                                                   tsq_error **err);

/// The mini apps that match what somebody typed, best match first: word prefixes, several words, small typos; case and
/// accents do not count.
///
/// Borrows `client`, `query` and `selection` (NULL: the first 50); returns owned in `out`. Fails as
/// `tsq_discovery_get_trending_mini_apps` does.
tsq_status tsq_discovery_search_mini_apps(const tsq_client *client,
                                          tsq_str query,
                                          const tsq_selection *selection,
                                          tsq_mini_apps **out,
                                          tsq_error **err);

/// Fetches the catalog now, whatever its age, and waits for it. Calls at the same time share one fetch. A catalog that
/// lost most of its apps is refused: the old one stays.
///
/// Borrows `client`; returns the new state owned in `out`, which may be NULL. Fails with `TSQ_UNAVAILABLE` when the
/// fetch does (the old catalog stays), `TSQ_CLOSED`.
tsq_status tsq_discovery_refresh(const tsq_client *client,
                                 tsq_discovery_stats **out,
                                 tsq_error **err);

/// Like `tsq_discovery_refresh`, but takes the new catalog even when it lost most of its apps.
tsq_status tsq_discovery_force_refresh(const tsq_client *client, tsq_discovery_stats **out, tsq_error **err);

/// The state of the catalog as it is; fetches nothing.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`.
tsq_status tsq_discovery_get_stats(const tsq_client *client, tsq_discovery_stats **out, tsq_error **err);

/// Answers one HTTP request to `/api/miniapp-discovery`: mount it in whatever server the host has.
///
/// `method` is the request's (`GET`, `POST`, …), `target` its path with query
/// (`/api/miniapp-discovery?category=games&limit=20`). Borrows all; returns owned in `out`. A bad request is an answer
/// like any other (`TSQ_OK` with status 400, 404, 405, 413, …); fails with `TSQ_CLOSED`, and `TSQ_INVALID_INPUT` for
/// NULL or text that is not UTF-8.
tsq_status tsq_discovery_handle(const tsq_client *client,
                                tsq_str method,
                                tsq_str target,
                                tsq_bytes body,
                                tsq_http_response **out,
                                tsq_error **err);

/// How many apps the list has; 0 for NULL.
///
/// Borrows `apps`.
size_t tsq_mini_apps_len(const tsq_mini_apps *apps);

/// The app at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `apps`; returns a view that lives as long as the list. Costs nothing: no copy, nothing to free.
const tsq_mini_app *tsq_mini_apps_at(const tsq_mini_apps *apps, size_t index);

/// The list as a JSON array of `tsq_mini_app_json`'s objects.
///
/// Borrows `apps`; returns owned in `out`.
tsq_status tsq_mini_apps_json(const tsq_mini_apps *apps, tsq_string **out, tsq_error **err);

/// Ends a list, and with it all views of its apps. Takes `apps`; NULL is allowed.
void tsq_mini_apps_free(tsq_mini_apps *apps);

/// The app's id: its normalised home URL without the scheme. One app, one id.
tsq_str tsq_mini_app_id(const tsq_mini_app *app);

/// Host of the home URL.
tsq_str tsq_mini_app_domain(const tsq_mini_app *app);

/// Display name, at most 200 characters.
tsq_str tsq_mini_app_name(const tsq_mini_app *app);

/// What the app says of itself, at most 2,000 characters; may be absent.
tsq_str tsq_mini_app_description(const tsq_mini_app *app);

/// URL of the icon or, without one, of the app's image; empty when the catalog has neither.
tsq_str tsq_mini_app_icon_url(const tsq_mini_app *app);

/// Where the app is opened: http or https.
tsq_str tsq_mini_app_home_url(const tsq_mini_app *app);

/// One of the catalog's categories, or the app's own word; may be absent.
tsq_str tsq_mini_app_category(const tsq_mini_app *app);

/// How many networks the app asks for; 0 when it names none and so runs on any.
size_t tsq_mini_app_networks_len(const tsq_mini_app *app);

/// The network at `index`, counted from 0; absent beyond the end.
tsq_str tsq_mini_app_networks_at(const tsq_mini_app *app, size_t index);

/// How many search tags the app has.
size_t tsq_mini_app_tags_len(const tsq_mini_app *app);

/// The search tag at `index`, counted from 0; absent beyond the end.
tsq_str tsq_mini_app_tags_at(const tsq_mini_app *app, size_t index);

/// How many screenshots the app has.
size_t tsq_mini_app_screenshots_len(const tsq_mini_app *app);

/// The URL of the screenshot at `index`, counted from 0; absent beyond the end.
tsq_str tsq_mini_app_screenshots_at(const tsq_mini_app *app, size_t index);

/// Who published the app; NULL when the catalog does not say.
///
/// Returns a view that lives as long as the list.
const tsq_author *tsq_mini_app_author(const tsq_mini_app *app);

/// Engagement: followers of the app's author; 0 without one.
uint64_t tsq_mini_app_follower_count(const tsq_mini_app *app);

/// Engagement: the app's place in the trending order that it was listed from, counted from 1: true and written to `out`,
/// or false and `out` 0 when that order has it not. `out` may be NULL.
bool tsq_mini_app_trending_rank(const tsq_mini_app *app,
                                uint32_t *out);

/// URL of a wide picture; may be absent.
tsq_str tsq_mini_app_hero_image_url(const tsq_mini_app *app);

/// A line of promotion; may be absent.
tsq_str tsq_mini_app_tagline(const tsq_mini_app *app);

/// A line of explanation; may be absent.
tsq_str tsq_mini_app_subtitle(const tsq_mini_app *app);

/// Version of the app's manifest.
tsq_str tsq_mini_app_version(const tsq_mini_app *app);

/// The text of the button that opens the app; may be absent.
tsq_str tsq_mini_app_button_title(const tsq_mini_app *app);

/// URL of the picture shown in a feed; may be absent.
tsq_str tsq_mini_app_image_url(const tsq_mini_app *app);

/// URL of the picture shown while the app loads; may be absent.
tsq_str tsq_mini_app_splash_image_url(const tsq_mini_app *app);

/// Colour behind that picture, as the catalog has it (`#rrggbb`); may be absent.
tsq_str tsq_mini_app_splash_background_color(const tsq_mini_app *app);

/// When this record was fetched: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_mini_app_last_fetched(const tsq_mini_app *app);

/// The app as a JSON object: the endpoint's shape, camelCase.
///
/// Borrows `app`; returns owned in `out`.
tsq_status tsq_mini_app_json(const tsq_mini_app *app, tsq_string **out, tsq_error **err);

/// Farcaster id.
uint64_t tsq_author_fid(const tsq_author *author);

/// Handle, without `@`.
tsq_str tsq_author_username(const tsq_author *author);

/// Name as shown; may be absent.
tsq_str tsq_author_display_name(const tsq_author *author);

/// URL of the profile picture; may be absent.
tsq_str tsq_author_pfp_url(const tsq_author *author);

/// How many follow the author.
uint64_t tsq_author_follower_count(const tsq_author *author);

/// The catalog's quality score, 0 to 1: true and written to `out`, or false and `out` 0 for an author without one. `out`
/// may be NULL.
bool tsq_author_score(const tsq_author *author,
                      double *out);

/// Whether older catalogs gave the author a power badge.
bool tsq_author_is_power_user(const tsq_author *author);

/// Apps of the catalog.
size_t tsq_discovery_stats_total(const tsq_discovery_stats *stats);

/// Rows received when it was fetched.
size_t tsq_discovery_stats_received(const tsq_discovery_stats *stats);

/// Rows of those left out: malformed, or marked `noindex`.
size_t tsq_discovery_stats_skipped(const tsq_discovery_stats *stats);

/// Rows of those that repeated an earlier one.
size_t tsq_discovery_stats_duplicates(const tsq_discovery_stats *stats);

/// Whether a catalog key is set; without one, discovery is empty.
bool tsq_discovery_stats_has_api_key(const tsq_discovery_stats *stats);

/// Where the catalog came from: `upstream`, `file`, `database` or `none`.
///
/// Returns a view that lives for ever.
tsq_str tsq_discovery_stats_source(const tsq_discovery_stats *stats);

/// When the catalog was fetched, in microseconds since 1970-01-01T00:00:00Z: true and written to `out`, or false and
/// `out` 0 when there is none. `out` may be NULL.
bool tsq_discovery_stats_fetched_at(const tsq_discovery_stats *stats,
                                    int64_t *out);

/// Older than the refresh interval, or the last attempt to renew it failed.
bool tsq_discovery_stats_is_stale(const tsq_discovery_stats *stats);

/// Whether a refresh is under way.
bool tsq_discovery_stats_is_refreshing(const tsq_discovery_stats *stats);

/// Why the last refresh failed; absent once one succeeds.
///
/// Returns a view that lives as long as `stats`.
tsq_str tsq_discovery_stats_last_error(const tsq_discovery_stats *stats);

/// Ends a snapshot. Takes `stats`; NULL is allowed.
void tsq_discovery_stats_free(tsq_discovery_stats *stats);

/// The HTTP status: 200, 204, 400, 404, 405, 413, 500, 503; 0 for NULL.
uint16_t tsq_http_response_status(const tsq_http_response *response);

/// How many headers there are.
size_t tsq_http_response_headers_len(const tsq_http_response *response);

/// The name of the header at `index`, counted from 0; absent beyond the end.
tsq_str tsq_http_response_header_name_at(const tsq_http_response *response, size_t index);

/// The value of the header at `index`, counted from 0; absent beyond the end.
tsq_str tsq_http_response_header_value_at(const tsq_http_response *response, size_t index);

/// The body: JSON, or empty.
tsq_bytes tsq_http_response_body(const tsq_http_response *response);

/// Ends an answer. Takes `response`; NULL is allowed.
void tsq_http_response_free(tsq_http_response *response);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOWNSQUARE_H */
