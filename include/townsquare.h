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
 * lives as long as the owner at the root: views of an app live as long as its list. A type with a _free function may be
 * either: a call returns it owned, through a tsq_space **; a list shows it as a view, a const tsq_space *. Results are independent of the
 * client: a list may be read after the client was closed and freed. All of them are immutable. Every _free function
 * allows NULL.
 *
 *
 * ERRORS
 *
 * Functions that can fail return a tsq_status: TSQ_OK is 0, anything else is the kind of the failure. They take, last, a
 * tsq_error **err. It may be NULL: then you get the status alone, and no error object is made. Otherwise *err is set by
 * every call: to NULL after TSQ_OK, else to an error that you own; so free an error before you pass its variable again.
 * Outputs likewise: a handle after TSQ_OK (NULL where a function says that there may be none), NULL after a failure.
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
 * TABLES: tsq_spaces_, tsq_fidgets_, tsq_communities_
 *
 * A client acts for its caller: for nobody when it is opened, for the user who signs in, past every policy after
 * tsq_client_as_service. What a caller may not see does not exist for it: TSQ_NOT_FOUND.
 *
 * Ids are UUIDs as text. JSON columns are JSON as text, in and out; the absent text is SQL's NULL, and the text null is a
 * value. Structs that say what to make or to change are plain: zero them ({0} in C, {} in C++), then fill in what there is. In a
 * patch each column has a tsq_change beside its value: TSQ_KEEP, which is 0, TSQ_CLEAR or TSQ_SET.
 *
 *     tsq_space_patch patch = {0};
 *     patch.description.change = TSQ_CLEAR;
 *     patch.is_public.change = TSQ_SET;
 *     patch.is_public.value = true;
 *     tsq_spaces_update_space(client, id, &patch, NULL, &err);
 *
 *
 * SIGN-IN: tsq_auth_
 *
 * tsq_auth_sign_in makes the client act as that user, tsq_auth_sign_out as nobody again. A server with many users leaves its
 * client as it is: it hands out the tokens of the sessions that tsq_auth_sign_in makes on a handle of tsq_client_as_service,
 * and answers each request on a handle of tsq_client_as_user. What is asked for a session that has ended, here or in another
 * process, fails with TSQ_UNAUTHORIZED.
 *
 * Passwords, tokens and private keys are borrowed for the call and appear in no message. A session shows its tokens, in
 * tsq_session_json too: who has them is the user.
 *
 *
 * CALLBACKS
 *
 * A callback is a function, the user_data that it is given, and a destroy that ends the data. Callbacks run on threads of
 * the library, one at a time for each subscription, in the order of what they hear. They may take their time, call the
 * library, and unsubscribe themselves; what they are shown is a view that lives until they return. They may not close the
 * client, which waits for them, and nothing may be thrown out of them (townsquare.hpp sees to that).
 *
 * After tsq_subscription_unsubscribe a callback is not running and never runs again. tsq_client_free does not wait for one
 * that is running: unsubscribe first where it uses what ends with the client. Whatever ends it, also that it could not be
 * subscribed at all, user_data is destroyed exactly once, when nothing can reach it any more.
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
 *   persist_session         true or false (default): whether the signed-in user's session is kept in data_dir
 *   expose_owner_email      true (default) or false: whether public spaces show their owners' e-mail addresses
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

/// How many public spaces a page has when nothing else is said.
#define TSQ_DEFAULT_PAGE 20

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

/// What happened to a handle's session.
typedef enum {
    /// What a callback hears first: the session there is, or none.
    TSQ_INITIAL_SESSION = 0,
    /// Somebody signed in.
    TSQ_SIGNED_IN = 1,
    /// The session ended.
    TSQ_SIGNED_OUT = 2,
    /// The session has new tokens.
    TSQ_TOKEN_REFRESHED = 3,
    /// The signed-in user has another address or password.
    TSQ_USER_UPDATED = 4,
} tsq_auth_event;

/// What a partial update does to one column.
typedef enum {
    /// The column stays as it is.
    TSQ_KEEP = 0,
    /// The column becomes NULL.
    TSQ_CLEAR = 1,
    /// The column becomes the value beside this.
    TSQ_SET = 2,
} tsq_change;

/// The publisher of a mini app: a view that lives as long as the app's list, with all texts read from it.
typedef struct tsq_author tsq_author;

/// An open client: a database, a catalog in memory and a caller. Owned, ended with `tsq_client_free`; used from any
/// number of threads at once.
typedef struct tsq_client tsq_client;

/// A community's configuration. Owned, ended with `tsq_community_config_free`; all that is read from it lives as long as
/// it. It never changes and outlives its client.
typedef struct tsq_community_config tsq_community_config;

/// A domain of a community. Owned, ended with `tsq_community_domain_free`; all that is read from it lives as long as it.
/// It never changes and outlives its client.
typedef struct tsq_community_domain tsq_community_domain;

/// How a client is opened. Owned by the caller, who ends it with `tsq_config_free`; clients keep a copy.
typedef struct tsq_config tsq_config;

/// What the catalog holds, how old it is, and why it is no newer. Owned, ended with `tsq_discovery_stats_free`.
typedef struct tsq_discovery_stats tsq_discovery_stats;

/// Why a call failed. Owned by the caller, who ends it with `tsq_error_free`.
typedef struct tsq_error tsq_error;

/// One fidget, a widget placed in a space. Owned where a call returns it by itself, and then ended with
/// `tsq_fidget_free`; else a view into its list. All that is read from it lives as long as the fidget or the list.
typedef struct tsq_fidget tsq_fidget;

/// A list of fidgets, oldest first unless the call says otherwise. Owned where a call returns it, and then ended with
/// `tsq_fidget_list_free`; a view where a space has it. It never changes and outlives its client.
typedef struct tsq_fidget_list tsq_fidget_list;

/// Status, headers and body of an answer. Owned, ended with `tsq_http_response_free`; what is read from it lives as
/// long.
typedef struct tsq_http_response tsq_http_response;

/// One mini app: a view into its list. Texts read from it, its author included, live as long as the list; texts that
/// may be absent say so.
typedef struct tsq_mini_app tsq_mini_app;

/// A list of mini apps, best first. Owned, ended with `tsq_mini_apps_free`; it never changes and outlives its client.
typedef struct tsq_mini_apps tsq_mini_apps;

/// The owner of a public space: a view into its list.
typedef struct tsq_owner tsq_owner;

/// One session, with the two tokens that stand for it: who has them is the user. Owned where a call returns it, and then
/// ended with `tsq_session_free`; else a view that a callback is given. All that is read from it lives as long. It never
/// changes, also when its client's session does, and outlives its client.
typedef struct tsq_session tsq_session;

/// One space. Owned where a call returns it by itself, and then ended with `tsq_space_free`; else a view into its list.
/// All that is read from it lives as long as the space or the list. It never changes and outlives its client.
typedef struct tsq_space tsq_space;

/// A list of spaces, in the order of the call that returned them. Owned, ended with `tsq_space_list_free`; it never
/// changes and outlives its client.
typedef struct tsq_space_list tsq_space_list;

/// A registered space. Owned, ended with `tsq_space_registration_free`; all that is read from it lives as long as it. It
/// never changes and outlives its client.
typedef struct tsq_space_registration tsq_space_registration;

/// Text that the caller owns: read it with `tsq_string_view`, end it with `tsq_string_free`.
typedef struct tsq_string tsq_string;

/// A subscription. It lasts until `tsq_subscription_unsubscribe`, or until the client handle that it was made with is
/// freed; for the process's own client (`tsq_client_shared`), which nobody's freeing ends, until it is unsubscribed. Owned,
/// ended with `tsq_subscription_free`; it may outlive its client.
typedef struct tsq_subscription tsq_subscription;

/// One user. Owned where a call returns it by itself, and then ended with `tsq_user_free`; else a view into its session.
/// All that is read from it lives as long as the user or the session. It never changes and outlives its client.
typedef struct tsq_user tsq_user;

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

/// What changes of one's own account. Zeroed, it changes nothing: `tsq_user_patch patch = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
typedef struct {
    /// Another e-mail address; absent: it stays.
    tsq_str email;
    /// Another password, 8 to 1,024 bytes; absent: it stays.
    tsq_str password;
} tsq_user_patch;

/// Hears of a handle's session: what happened, and the session as it is from then on (NULL: none), a view that lives
/// until the function returns. See CALLBACKS in the manual.
typedef void (*tsq_auth_callback)(tsq_auth_event event, const tsq_session *session, void *user_data);

/// Ends a callback's `user_data`: called exactly once, on any thread, when the callback is not running and never will
/// again; also when the call that takes the callback fails. May be NULL.
typedef void (*tsq_destroy)(void *user_data);

/// A space to be made. Zero it, then fill in: `tsq_new_space space = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
typedef struct {
    /// Display name; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str name;
    /// What it is about; may be absent.
    tsq_str description;
    /// The user it belongs to (a UUID); absent: the caller. Only the service may name somebody else.
    tsq_str owner_id;
    /// Whether everyone may see it.
    bool is_public;
} tsq_new_space;

/// A change of a text or of JSON (as text).
typedef struct {
    /// What to do.
    tsq_change change;
    /// The new value, looked at for `TSQ_SET` alone; the absent text there clears.
    tsq_str value;
} tsq_str_change;

/// A change of a truth value.
typedef struct {
    /// What to do.
    tsq_change change;
    /// The new value, looked at for `TSQ_SET` alone.
    bool value;
} tsq_bool_change;

/// What changes of a space. Zeroed, it changes nothing: `tsq_space_patch patch = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
typedef struct {
    /// Display name; cleared, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str_change name;
    /// What it is about.
    tsq_str_change description;
    /// Whether everyone may see it.
    tsq_bool_change is_public;
} tsq_space_patch;

/// A fidget to be made. Zero it, then fill in: `tsq_new_fidget fidget = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
typedef struct {
    /// What kind of widget it is; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str kind;
    /// Its settings: any JSON, as text; may be absent.
    tsq_str config;
    /// Where it is: any JSON, as text; may be absent.
    tsq_str position;
} tsq_new_fidget;

/// A new place of a fidget.
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
typedef struct {
    /// The fidget (a UUID).
    tsq_str fidget_id;
    /// Where it is from now on: any JSON, as text; absent: nowhere.
    tsq_str position;
} tsq_position;

/// What changes of a fidget. Zeroed, it changes nothing: `tsq_fidget_patch patch = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
typedef struct {
    /// What kind of widget it is; cleared, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str_change kind;
    /// Its settings: any JSON, as text.
    tsq_str_change config;
    /// Where it is: any JSON, as text.
    tsq_str_change position;
} tsq_fidget_patch;

/// A change of a list of texts.
typedef struct {
    /// What to do.
    tsq_change change;
    /// The new texts, looked at for `TSQ_SET` alone.
    const tsq_str *items;
    /// How many texts.
    size_t items_len;
} tsq_strs_change;

/// What is saved of a community's configuration: what is kept stays as it is or, in a new row, takes the table's
/// default. Zeroed, it keeps everything: `tsq_community_patch patch = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
typedef struct {
    /// Brand: any JSON, as text; required in a new row.
    tsq_str_change brand_config;
    /// Assets: any JSON, as text; required in a new row.
    tsq_str_change assets_config;
    /// The community itself: any JSON, as text; required in a new row.
    tsq_str_change community_config;
    /// Fidgets it offers: any JSON, as text; required in a new row.
    tsq_str_change fidgets_config;
    /// Navigation: any JSON, as text.
    tsq_str_change navigation_config;
    /// Look: any JSON, as text.
    tsq_str_change ui_config;
    /// Public keys whose holders may edit the navigation.
    tsq_strs_change admin_identity_public_keys;
    /// Whether everyone may see it; true in a new row.
    tsq_bool_change is_published;
    /// Whether it may have a domain of its own; false in a new row.
    tsq_bool_change custom_domain_authorized;
    /// Whom to write to.
    tsq_str_change admin_email;
} tsq_community_patch;

/// A registration to be made. Zero it, then fill in: `tsq_new_registration registration = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
typedef struct {
    /// The space (a UUID); required.
    tsq_str space_id;
    /// The space's name; required: absent, the call fails with `TSQ_FIELD_MISSING`.
    tsq_str space_name;
    /// `profile`, `token`, `proposal`, `channel` or `navPage`; required.
    tsq_str space_type;
    /// Farcaster id; NULL for none.
    const int32_t *fid;
    /// The key it is registered with; may be absent.
    tsq_str identity_public_key;
    /// The registration's signature; may be absent.
    tsq_str signature;
} tsq_new_registration;

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

/// The same client past every policy, for trusted code: a further handle, with the service for its caller.
///
/// Borrows `client`, whose own caller stays who it is; returns owned in `out`. Closing either closes both.
tsq_status tsq_client_as_service(const tsq_client *client, tsq_client **out, tsq_error **err);

/// The same client as the user of a session, for servers with many users: a further handle, whose caller stays.
///
/// Borrows all; returns owned in `out`. Closing either closes both. Fails with `TSQ_UNAUTHORIZED` for a token that is none,
/// whose session has ended, or that has expired; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`. A session that ends later makes every
/// call on the handle fail with `TSQ_UNAUTHORIZED`.
tsq_status tsq_client_as_user(const tsq_client *client,
                              tsq_str access_token,
                              tsq_client **out,
                              tsq_error **err);

/// Writes a consistent copy of the SQLite database to the file `target`, which must not exist, while writers go on.
///
/// Borrows all. Fails with `TSQ_INVALID_INPUT` when the target exists, or the database is PostgreSQL, which has tools of
/// its own for that; `TSQ_CLOSED`.
tsq_status tsq_client_backup(const tsq_client *client,
                             tsq_str target,
                             tsq_error **err);

/// Puts a copy made by `tsq_client_backup` into a data folder that has no database and that no client has open.
///
/// Borrows all. Fails with `TSQ_CONFIG` for a copy that is none of the library's, damaged, or of a newer version, and for
/// a folder that has a database.
tsq_status tsq_restore(tsq_str source,
                       tsq_str data_dir,
                       tsq_error **err);

/// Closes the client, for all its handles: calls off reads, finishes writes, ends its threads. Later calls on it
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

/// Makes an account; signs nobody in. The address is kept trimmed and in lower case; a password has 8 to 1,024 bytes.
///
/// Borrows all; returns the user owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for an address that has
/// an account, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_sign_up(const tsq_client *client,
                            tsq_str email,
                            tsq_str password,
                            tsq_user **out,
                            tsq_error **err);

/// Signs in: the client acts as this user from here on. A handle of `tsq_client_as_user` or `tsq_client_as_service` keeps
/// its caller and only makes a session, to be handed out.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` for an unknown address
/// and for a wrong password alike, `TSQ_RATE_LIMITED` for an address with too many failures (`tsq_error_retry_after_ms`),
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_sign_in(const tsq_client *client,
                            tsq_str email,
                            tsq_str password,
                            tsq_session **out,
                            tsq_error **err);

/// Ends the session, for every handle and process that uses it. Works when nobody is signed in, too.
///
/// Borrows `client`. Fails with `TSQ_CLOSED`, and as the database does.
tsq_status tsq_auth_sign_out(const tsq_client *client, tsq_error **err);

/// The session, if there is one and it has not ended; an access token that is too old is refreshed first.
///
/// Borrows `client`; returns owned in `out`: NULL when nobody is signed in. Fails with `TSQ_CLOSED`, and as the database
/// does.
tsq_status tsq_auth_get_session(const tsq_client *client,
                                tsq_session **out,
                                tsq_error **err);

/// New tokens for the client's session; both old ones die. It happens by itself before the access token ends.
///
/// Borrows `client`; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` when nobody is
/// signed in or the session has ended, `TSQ_CLOSED`.
tsq_status tsq_auth_refresh_session(const tsq_client *client,
                                    tsq_session **out,
                                    tsq_error **err);

/// New tokens for the session of this refresh token, for servers: no handle changes, unless the session is its own.
///
/// Borrows all; returns the session owned in `out`. Fails with `TSQ_UNAUTHORIZED` for a token that is none, has expired or
/// was used before, which also ends its session; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_refresh_session_of(const tsq_client *client,
                                       tsq_str refresh_token,
                                       tsq_session **out,
                                       tsq_error **err);

/// Takes up a session that was kept elsewhere: the client acts as its user from here on, with new tokens.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails as `tsq_auth_refresh_session_of` does, and with
/// `TSQ_INVALID_INPUT` on a handle of `tsq_client_as_user` or `tsq_client_as_service`.
tsq_status tsq_auth_set_session(const tsq_client *client,
                                tsq_str refresh_token,
                                tsq_session **out,
                                tsq_error **err);

/// Changes the signed-in user's address or password, and ends all the user's other sessions. A patch of nothing only
/// checks the password.
///
/// Borrows all; returns the user as it is now owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` when nobody
/// is signed in or the password is wrong, `TSQ_RATE_LIMITED`, `TSQ_ALREADY_EXISTS` for an address that has an account,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_update_user(const tsq_client *client,
                                tsq_str current_password,
                                const tsq_user_patch *patch,
                                tsq_user **out,
                                tsq_error **err);

/// Deletes one's own account with everything that belongs to it: spaces, fidgets, sessions.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` when nobody is signed in or the password is wrong, `TSQ_RATE_LIMITED`,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_delete_own_user(const tsq_client *client,
                                    tsq_str current_password,
                                    tsq_error **err);

/// Deletes a user with everything that belongs to it; the service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for an unknown user, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for anybody but the
/// service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_auth_delete_user(const tsq_client *client,
                                tsq_str user_id,
                                tsq_error **err);

/// Links an identity key to the signed-in user, by a claim of `tsq_identity_claim`. Again does nothing. Who has linked one
/// of a community's `admin_identity_public_keys` may set its navigation.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` when nobody is signed in, and for a claim that is wrong, another user's, older
/// than five minutes or from the future; `TSQ_ALREADY_EXISTS` for a key that another user has linked; `TSQ_INVALID_INPUT`
/// for what is no claim; `TSQ_CLOSED`.
tsq_status tsq_auth_link_identity(const tsq_client *client,
                                  tsq_str claim,
                                  tsq_error **err);

/// Has `callback` called with `TSQ_INITIAL_SESSION` and the session there is, then with every event of this handle's
/// session, in order. See CALLBACKS in the manual.
///
/// Borrows `client`; takes `user_data`: `destroy` (which may be NULL) ends it, also when this call fails. Returns the
/// subscription owned in `out`, which may be NULL: it then lasts as long as the handle. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_auth_on_auth_state_change(const tsq_client *client,
                                         tsq_auth_callback callback,
                                         void *user_data,
                                         tsq_destroy destroy,
                                         tsq_subscription **out,
                                         tsq_error **err);

/// The user's id: a UUID.
tsq_str tsq_user_id(const tsq_user *user);

/// The e-mail address, trimmed and in lower case.
tsq_str tsq_user_email(const tsq_user *user);

/// When the user signed up: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_user_created_at(const tsq_user *user);

/// When the user last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_user_updated_at(const tsq_user *user);

/// The user as a JSON object: the columns by their names.
///
/// Borrows `user`; returns owned in `out`.
tsq_status tsq_user_json(const tsq_user *user, tsq_string **out, tsq_error **err);

/// Ends a user that a call returned by itself. Takes `user`; NULL is allowed.
void tsq_user_free(tsq_user *user);

/// Shows who is calling (`tsq_client_as_user`), for an hour. A secret.
tsq_str tsq_session_access_token(const tsq_session *session);

/// Gets the next pair of tokens, once, within 30 days. A secret; empty where only the access token is known, on a handle
/// of `tsq_client_as_user`.
tsq_str tsq_session_refresh_token(const tsq_session *session);

/// When the access token ends: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_session_expires_at(const tsq_session *session);

/// Whose session it is; NULL for NULL.
///
/// Returns a view: it is not to be freed.
const tsq_user *tsq_session_user(const tsq_session *session);

/// The session as a JSON object: `access_token`, `refresh_token`, `expires_at` and `user`. It holds both tokens: keep it
/// out of logs.
///
/// Borrows `session`; returns owned in `out`.
tsq_status tsq_session_json(const tsq_session *session,
                            tsq_string **out,
                            tsq_error **err);

/// Ends a session object that a call returned; the session itself goes on. Takes `session`; NULL is allowed.
void tsq_session_free(tsq_session *session);

/// The name of an event: `INITIAL_SESSION`, `SIGNED_IN`, …; absent for a number that is none.
///
/// Returns a view that lives for ever.
tsq_str tsq_auth_event_name(int32_t event);

/// Ends the subscription. After it returns the callback is not running, never runs again, and its `user_data` was
/// destroyed: it waits for a callback that runs on another thread. From inside the callback it returns at once; the
/// callback never runs after that time, and its data is destroyed when it has returned. Again does nothing.
///
/// Borrows `subscription`; NULL is allowed.
void tsq_subscription_unsubscribe(const tsq_subscription *subscription);

/// Ends the handle and leaves the subscription as it is. Takes `subscription`; NULL is allowed.
void tsq_subscription_free(tsq_subscription *subscription);

/// A claim for `tsq_auth_link_identity` that the user holds this Ed25519 key, as JSON:
/// `{"publicKey", "signature", "timestamp", "userId"}`. `private_key` is the key's seed in 64 hex digits; the claim counts
/// for five minutes from `timestamp`, microseconds since 1970-01-01T00:00:00Z. Needs no client: it is made where the key is.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
tsq_status tsq_identity_claim(tsq_str user_id,
                              tsq_str private_key,
                              int64_t timestamp,
                              tsq_string **out,
                              tsq_error **err);

/// Inserts a space. It belongs to the caller unless the service names somebody else.
///
/// Borrows `client` and `space`; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` without
/// a name, `TSQ_REFERENCE_MISSING` for an owner who does not exist, `TSQ_FORBIDDEN` for a space that would not be the
/// caller's own, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_create_space(const tsq_client *client,
                                   const tsq_new_space *space,
                                   tsq_space **out,
                                   tsq_error **err);

/// Inserts spaces in one transaction: all of them or none.
///
/// Borrows `client` and `items` (an array of `items_len`); returns the rows, in the order given, owned in `out`, which
/// may be NULL. Fails as `tsq_spaces_create_space` does, for the first that fails.
tsq_status tsq_spaces_create_spaces(const tsq_client *client,
                                    const tsq_new_space *items,
                                    size_t items_len,
                                    tsq_space_list **out,
                                    tsq_error **err);

/// One space by its id.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when there is none that the caller may see,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_get_space(const tsq_client *client,
                                tsq_str id,
                                tsq_space **out,
                                tsq_error **err);

/// Changes what `patch` names and nothing else; a patch of nothing changes nothing.
///
/// Borrows all; returns the row as it is now owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when there is
/// no such space of the caller's, `TSQ_FIELD_MISSING` when the name is cleared, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_update_space(const tsq_client *client,
                                   tsq_str id,
                                   const tsq_space_patch *patch,
                                   tsq_space **out,
                                   tsq_error **err);

/// Deletes a space and its fidgets.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` when there is no such space of the caller's, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_delete_space(const tsq_client *client,
                                   tsq_str id,
                                   tsq_error **err);

/// The spaces of a user with their fidgets, newest first, those of one moment by id; an unknown user has none.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_get_user_spaces(const tsq_client *client,
                                      tsq_str user_id,
                                      tsq_space_list **out,
                                      tsq_error **err);

/// Public spaces with their owners, newest first, those of one moment by id: rows `offset` to `offset + limit - 1`.
/// `TSQ_DEFAULT_PAGE` and 0 are the first page. The owner's e-mail address is shown to every reader, unless the client
/// was opened not to.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for a limit that is not 1 to 1,000,
/// `TSQ_CLOSED`.
tsq_status tsq_spaces_get_public_spaces(const tsq_client *client,
                                        uint32_t limit,
                                        uint64_t offset,
                                        tsq_space_list **out,
                                        tsq_error **err);

/// One space with its fidgets, oldest first; only a space that has a fidget matches.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when there is none with a fidget that the caller may
/// see, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_spaces_get_space_with_fidgets(const tsq_client *client,
                                             tsq_str id,
                                             tsq_space **out,
                                             tsq_error **err);

/// How many spaces the list has; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_space_list_len(const tsq_space_list *list);

/// The space at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_space *tsq_space_list_at(const tsq_space_list *list, size_t index);

/// The list as a JSON array of `tsq_space_json`'s objects.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_space_list_json(const tsq_space_list *list, tsq_string **out, tsq_error **err);

/// Ends a list that a call returned, and with it all views of its spaces. Takes `list`; NULL is allowed.
void tsq_space_list_free(tsq_space_list *list);

/// The space's id: a UUID.
tsq_str tsq_space_id(const tsq_space *space);

/// Display name.
tsq_str tsq_space_name(const tsq_space *space);

/// What it is about; may be absent.
tsq_str tsq_space_description(const tsq_space *space);

/// The user it belongs to: a UUID; may be absent.
tsq_str tsq_space_owner_id(const tsq_space *space);

/// Whether everyone may see it.
bool tsq_space_is_public(const tsq_space *space);

/// When it was made: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_space_created_at(const tsq_space *space);

/// When it last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_space_updated_at(const tsq_space *space);

/// Its fidgets, oldest first, from the calls that return spaces with them (`tsq_spaces_get_user_spaces`,
/// `tsq_spaces_get_space_with_fidgets`); NULL from the others.
///
/// Returns a view: it is not to be freed.
const tsq_fidget_list *tsq_space_fidgets(const tsq_space *space);

/// Its owner, from `tsq_spaces_get_public_spaces`; NULL from other calls, and for a space without an owner.
///
/// Returns a view.
const tsq_owner *tsq_space_owner(const tsq_space *space);

/// The space as a JSON object: its columns by their names, and `fidgets` or `owner` from the calls that return them.
///
/// Borrows `space`; returns owned in `out`.
tsq_status tsq_space_json(const tsq_space *space,
                          tsq_string **out,
                          tsq_error **err);

/// Ends a space that a call returned by itself. Takes `space`; NULL is allowed.
void tsq_space_free(tsq_space *space);

/// The user's id: a UUID.
tsq_str tsq_owner_id(const tsq_owner *owner);

/// The user's e-mail address; absent where the client does not expose it.
tsq_str tsq_owner_email(const tsq_owner *owner);

/// Places a fidget in a space.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` without a kind,
/// `TSQ_REFERENCE_MISSING` for a space that does not exist (the service), `TSQ_FORBIDDEN` for a space that is not the
/// caller's, `TSQ_INVALID_INPUT` also for JSON deeper than 100, `TSQ_CLOSED`.
tsq_status tsq_fidgets_create_fidget(const tsq_client *client,
                                     tsq_str space_id,
                                     const tsq_new_fidget *fidget,
                                     tsq_fidget **out,
                                     tsq_error **err);

/// Places fidgets in a space in one transaction: all of them or none.
///
/// Borrows all (`items` is an array of `items_len`); returns the rows, in the order given, owned in `out`, which may be
/// NULL. Fails as `tsq_fidgets_create_fidget` does, for the first that fails.
tsq_status tsq_fidgets_create_fidgets(const tsq_client *client,
                                      tsq_str space_id,
                                      const tsq_new_fidget *items,
                                      size_t items_len,
                                      tsq_fidget_list **out,
                                      tsq_error **err);

/// Saves the positions of a space's fidgets in one transaction, as after a drag.
///
/// Borrows all (`positions` is an array of `positions_len`); returns the fidgets that were named, oldest first, owned in
/// `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when one of them is not a fidget of that space, or the space is
/// not the caller's; `TSQ_INVALID_INPUT`, also for a fidget named twice; `TSQ_CLOSED`. Nothing changes then.
tsq_status tsq_fidgets_save_positions(const tsq_client *client,
                                      tsq_str space_id,
                                      const tsq_position *positions,
                                      size_t positions_len,
                                      tsq_fidget_list **out,
                                      tsq_error **err);

/// One fidget by its id.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` when there is none that the caller may see,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_fidgets_get_fidget(const tsq_client *client,
                                  tsq_str id,
                                  tsq_fidget **out,
                                  tsq_error **err);

/// Changes what `patch` names and nothing else; a patch of nothing changes nothing.
///
/// Borrows all; returns the row as it is now owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` when there is
/// no such fidget in a space of the caller's, `TSQ_FIELD_MISSING` when the kind is cleared, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_fidgets_update_fidget(const tsq_client *client,
                                     tsq_str id,
                                     const tsq_fidget_patch *patch,
                                     tsq_fidget **out,
                                     tsq_error **err);

/// Takes a fidget out of its space.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` when there is no such fidget in a space of the caller's, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_fidgets_delete_fidget(const tsq_client *client,
                                     tsq_str id,
                                     tsq_error **err);

/// The fidgets of a space, oldest first, those of one moment by id; none for a space that is missing or hidden.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_fidgets_get_space_fidgets(const tsq_client *client,
                                         tsq_str space_id,
                                         tsq_fidget_list **out,
                                         tsq_error **err);

/// How many fidgets the list has; 0 for NULL.
///
/// Borrows `list`.
size_t tsq_fidget_list_len(const tsq_fidget_list *list);

/// The fidget at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
const tsq_fidget *tsq_fidget_list_at(const tsq_fidget_list *list, size_t index);

/// The list as a JSON array of `tsq_fidget_json`'s objects.
///
/// Borrows `list`; returns owned in `out`.
tsq_status tsq_fidget_list_json(const tsq_fidget_list *list, tsq_string **out, tsq_error **err);

/// Ends a list that a call returned, and with it all views of its fidgets. Takes `list`; NULL is allowed.
void tsq_fidget_list_free(tsq_fidget_list *list);

/// The fidget's id: a UUID.
tsq_str tsq_fidget_id(const tsq_fidget *fidget);

/// The space it is in: a UUID; may be absent.
tsq_str tsq_fidget_space_id(const tsq_fidget *fidget);

/// What kind of widget it is: the column `type`.
tsq_str tsq_fidget_kind(const tsq_fidget *fidget);

/// Its settings, as JSON text; may be absent.
tsq_str tsq_fidget_config(const tsq_fidget *fidget);

/// Where it is, as JSON text; may be absent.
tsq_str tsq_fidget_position(const tsq_fidget *fidget);

/// When it was made: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_fidget_created_at(const tsq_fidget *fidget);

/// When it last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_fidget_updated_at(const tsq_fidget *fidget);

/// The fidget as a JSON object: its columns by their names.
///
/// Borrows `fidget`; returns owned in `out`.
tsq_status tsq_fidget_json(const tsq_fidget *fidget, tsq_string **out, tsq_error **err);

/// Ends a fidget that a call returned by itself. Takes `fidget`; NULL is allowed.
void tsq_fidget_free(tsq_fidget *fidget);

/// Inserts a community's configuration, or updates the one with that id; the service only.
///
/// Borrows all; returns the row as it is now owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` for a new
/// row without its four required configurations, `TSQ_INVALID_INPUT` (also for an id of more than 50 characters),
/// `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for anybody but the service, `TSQ_CLOSED`.
tsq_status tsq_communities_save_community_config(const tsq_client *client,
                                                 tsq_str community_id,
                                                 const tsq_community_patch *patch,
                                                 tsq_community_config **out,
                                                 tsq_error **err);

/// The published configuration of a community as its clients read it: a JSON object with the keys `brand`, `assets`,
/// `community`, `fidgets`, `navigation` and `ui`.
///
/// Borrows all; returns owned in `out`: NULL, whose view is the absent text, when nothing is published. Fails with
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_communities_get_active_community_config(const tsq_client *client,
                                                       tsq_str community_id,
                                                       tsq_string **out,
                                                       tsq_error **err);

/// Sets a community's domain of a type in place of the one it had; the service only. The domain is stored normalised:
/// trimmed, in lower case, without scheme, port, path and a leading `www.`. `domain_type` is `blank_subdomain` or
/// `custom`.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for a domain that is
/// taken, `TSQ_REFERENCE_MISSING` for an unknown community, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for
/// anybody but the service, `TSQ_CLOSED`.
tsq_status tsq_communities_save_community_domain(const tsq_client *client,
                                                 tsq_str community_id,
                                                 tsq_str domain,
                                                 tsq_str domain_type,
                                                 tsq_community_domain **out,
                                                 tsq_error **err);

/// Takes a domain away from its community; the service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for a domain that nobody has, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for anybody but the service, `TSQ_CLOSED`.
tsq_status tsq_communities_delete_community_domain(const tsq_client *client,
                                                   tsq_str domain,
                                                   tsq_error **err);

/// Sets a community's navigation and nothing else of it. `navigation_config` is any JSON, as text; absent, it clears.
///
/// Borrows all; returns the row as it is now owned in `out`, which may be NULL. Fails with `TSQ_NOT_FOUND` for an unknown
/// community, `TSQ_INVALID_INPUT`, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers who may not, `TSQ_CLOSED`.
tsq_status tsq_communities_update_navigation(const tsq_client *client,
                                             tsq_str community_id,
                                             tsq_str navigation_config,
                                             tsq_community_config **out,
                                             tsq_error **err);

/// The id of the community that answers at a host, as an HTTP `Host` header has it: by its domain, or by its own id.
///
/// Borrows all; returns owned in `out`: NULL, whose view is the absent text, when nothing published answers there. Fails
/// with `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
tsq_status tsq_communities_resolve_community(const tsq_client *client,
                                             tsq_str host,
                                             tsq_string **out,
                                             tsq_error **err);

/// Registers a space, once; the service or the space's owner.
///
/// Borrows all; returns the row owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for a space that is
/// registered, `TSQ_FIELD_MISSING` without a name, `TSQ_FORBIDDEN` for somebody else's space, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_communities_register_space(const tsq_client *client,
                                          const tsq_new_registration *registration,
                                          tsq_space_registration **out,
                                          tsq_error **err);

/// The registration of a space.
///
/// Borrows all; returns owned in `out`: NULL when the space is not registered. Fails with `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
tsq_status tsq_communities_get_space_registration(const tsq_client *client,
                                                  tsq_str space_id,
                                                  tsq_space_registration **out,
                                                  tsq_error **err);

/// The row's id: a UUID.
tsq_str tsq_community_config_id(const tsq_community_config *config);

/// The community, at most 50 characters.
tsq_str tsq_community_config_community_id(const tsq_community_config *config);

/// When it last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_community_config_updated_at(const tsq_community_config *config);

/// Brand, as JSON text.
tsq_str tsq_community_config_brand_config(const tsq_community_config *config);

/// Assets, as JSON text.
tsq_str tsq_community_config_assets_config(const tsq_community_config *config);

/// The community itself, as JSON text.
tsq_str tsq_community_config_community_config(const tsq_community_config *config);

/// Fidgets it offers, as JSON text.
tsq_str tsq_community_config_fidgets_config(const tsq_community_config *config);

/// Navigation, as JSON text; may be absent.
tsq_str tsq_community_config_navigation_config(const tsq_community_config *config);

/// Look, as JSON text; may be absent.
tsq_str tsq_community_config_ui_config(const tsq_community_config *config);

/// How many public keys' holders may edit the navigation: true and written to `out`, or false and `out` 0 when the column
/// has no list. `out` may be NULL.
bool tsq_community_config_admin_identity_public_keys_len(const tsq_community_config *config,
                                                         size_t *out);

/// The public key at `index`, counted from 0; absent beyond the end.
tsq_str tsq_community_config_admin_identity_public_keys_at(const tsq_community_config *config, size_t index);

/// Whether everyone may see it.
bool tsq_community_config_is_published(const tsq_community_config *config);

/// Whether it may have a domain of its own.
bool tsq_community_config_custom_domain_authorized(const tsq_community_config *config);

/// Whom to write to; may be absent.
tsq_str tsq_community_config_admin_email(const tsq_community_config *config);

/// The configuration as a JSON object: its columns by their names.
///
/// Borrows `config`; returns owned in `out`.
tsq_status tsq_community_config_json(const tsq_community_config *config, tsq_string **out, tsq_error **err);

/// Ends a configuration. Takes `config`; NULL is allowed.
void tsq_community_config_free(tsq_community_config *config);

/// The row's id: a UUID.
tsq_str tsq_community_domain_id(const tsq_community_domain *domain);

/// The community it leads to.
tsq_str tsq_community_domain_community_id(const tsq_community_domain *domain);

/// The domain, normalised.
tsq_str tsq_community_domain_domain(const tsq_community_domain *domain);

/// `blank_subdomain` or `custom`.
tsq_str tsq_community_domain_domain_type(const tsq_community_domain *domain);

/// When it was made: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_community_domain_created_at(const tsq_community_domain *domain);

/// When it last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_community_domain_updated_at(const tsq_community_domain *domain);

/// The domain as a JSON object: its columns by their names.
///
/// Borrows `domain`; returns owned in `out`.
tsq_status tsq_community_domain_json(const tsq_community_domain *domain, tsq_string **out, tsq_error **err);

/// Ends a domain. Takes `domain`; NULL is allowed.
void tsq_community_domain_free(tsq_community_domain *domain);

/// The space: a UUID; it need not exist any more.
tsq_str tsq_space_registration_space_id(const tsq_space_registration *registration);

/// Farcaster id: true and written to `out`, or false and `out` 0 for a registration without one. `out` may be NULL.
bool tsq_space_registration_fid(const tsq_space_registration *registration,
                                int32_t *out);

/// The space's name.
tsq_str tsq_space_registration_space_name(const tsq_space_registration *registration);

/// `profile`, `token`, `proposal`, `channel` or `navPage`.
tsq_str tsq_space_registration_space_type(const tsq_space_registration *registration);

/// The key it was registered with; may be absent.
tsq_str tsq_space_registration_identity_public_key(const tsq_space_registration *registration);

/// The registration's signature; may be absent.
tsq_str tsq_space_registration_signature(const tsq_space_registration *registration);

/// When it was registered: microseconds since 1970-01-01T00:00:00Z.
int64_t tsq_space_registration_timestamp(const tsq_space_registration *registration);

/// The registration as a JSON object: its columns by their names, camelCase.
///
/// Borrows `registration`; returns owned in `out`.
tsq_status tsq_space_registration_json(const tsq_space_registration *registration,
                                       tsq_string **out,
                                       tsq_error **err);

/// Ends a registration. Takes `registration`; NULL is allowed.
void tsq_space_registration_free(tsq_space_registration *registration);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOWNSQUARE_H */
