/* Clients, configuration, errors and discovery from C (DESIGN 10, SPEC 4.1, 4.2). Also compiled as C++: keep to the
 * common subset.
 *
 * discovery CATALOG FOLDER: the catalog is tests/c/catalog.json, the folder is empty. */
#include "apps.h"

#include <pthread.h>
#include <stdlib.h>

static const char *catalog;
static const char *folder;

/* A configuration with its own data folder, and with the catalog of the test or (NULL) without a key. */
static tsq_config *configure(const char *name, const char *file) {
    char text[4096];
    tsq_config *config = tsq_config_new();
    CHECK(config != NULL);
    snprintf(text, sizeof text, "%s/%s", folder, name);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    if (file != NULL) {
        snprintf(text, sizeof text, "file://%s", file);
        WORKS(tsq_config_set(config, TSQ_STR("catalog_url"), tsq_str_from(text), &err));
    } else {
        WORKS(tsq_config_set(config, TSQ_STR("catalog_api_key"), TSQ_STR(""), &err));
    }
    return config;
}

static tsq_client *open_client(const char *name, const char *file) {
    tsq_client *client = NULL;
    tsq_config *config = configure(name, file);
    WORKS(tsq_client_open(config, &client, &err));
    CHECK(client != NULL && !tsq_client_is_closed(client));
    tsq_config_free(config);
    return client;
}

static void header_and_library_agree(void) {
    CHECK(is(tsq_version(), TSQ_VERSION));
    CHECK(TSQ_OK == 0);
    CHECK(is(tsq_status_name(TSQ_OK), "ok"));
    CHECK(is(tsq_status_name(TSQ_ALREADY_EXISTS), "already_exists"));
    CHECK(is(tsq_status_name(TSQ_INTERNAL), "internal"));
    CHECK(is_absent(tsq_status_name(TSQ_QUOTA_EXCEEDED + 1)));
    CHECK(is_absent(tsq_status_name(-1)));
    CHECK(is(tsq_str_from("a word"), "a word"));
    CHECK(is_absent(tsq_str_from(NULL)));
}

static void an_invalid_option_is_named(void) {
    tsq_config *other = NULL;
    tsq_config *config = tsq_config_new();
    FAILS(tsq_config_set(config, TSQ_STR("colour"), TSQ_STR("red"), &err), TSQ_CONFIG, NULL, "colour");
    FAILS(tsq_config_set(config, TSQ_STR("refresh_interval"), TSQ_STR("soon"), &err), TSQ_CONFIG, NULL, "refresh_interval");
    FAILS(tsq_config_set(config, TSQ_STR("buckets"), TSQ_STR("a/b=public"), &err), TSQ_CONFIG, NULL,
          "1 to 63 of a-z, 0-9, - and _");
    WORKS(tsq_config_set(config, TSQ_STR("buckets"), TSQ_STR("media=public"), &err));
    WORKS(tsq_config_set(config, TSQ_STR("refresh_interval"), TSQ_STR("60"), &err));
    tsq_config_free(config);

    WORKS(tsq_config_from_url(TSQ_STR("townsquare:/srv/town?durability=normal"), &other, &err));
    tsq_config_free(other);
    FAILS(tsq_config_from_url(TSQ_STR("ftp://x"), &other, &err), TSQ_CONFIG, other, "URL");
    WORKS(tsq_config_from_env(&other, &err));
    tsq_config_free(other);
}

static void a_failed_open_names_the_option(void) {
    tsq_client *client = NULL;
    tsq_config *config = configure("unopened", catalog);
    WORKS(tsq_config_set(config, TSQ_STR("catalog_tries"), TSQ_STR("99"), &err));
    CHECK(tsq_client_open(config, &client, &err) == TSQ_CONFIG);
    CHECK(client == NULL);
    CHECK(is(tsq_error_operation(err), "open"));
    CHECK(has(tsq_error_text(err), "Open failed: "));
    CHECK(has(tsq_error_message(err), "catalog_tries"));
    CHECK(!tsq_error_is_retryable(err));
    CHECK(is_absent(tsq_error_code(err)));
    CHECK(tsq_error_status(err) == 500);
    CHECK(is(tsq_error_explanation(err), "Correct the option as the message says."));
    tsq_error_free(err);
    err = NULL;
    tsq_config_free(config);
}

static void every_field_of_an_app_is_readable(const tsq_client *client) {
    uint32_t rank = 0;
    double score = 0;
    tsq_mini_apps *apps = trending(client, NULL);
    const tsq_mini_app *app = tsq_mini_apps_at(apps, 0);
    CHECK(is(tsq_mini_app_id(app), "chess.example.com/play"));
    CHECK(is(tsq_mini_app_domain(app), "chess.example.com"));
    CHECK(is(tsq_mini_app_name(app), "Chess Caf\xc3\xa9"));
    CHECK(is(tsq_mini_app_description(app), "Play chess against friends."));
    CHECK(is(tsq_mini_app_icon_url(app), "https://chess.example.com/icon.png"));
    CHECK(has(tsq_mini_app_home_url(app), "https://"));
    CHECK(is(tsq_mini_app_category(app), "games"));
    CHECK(tsq_mini_app_networks_len(app) == 2);
    CHECK(is(tsq_mini_app_networks_at(app, 0), "base"));
    CHECK(is(tsq_mini_app_networks_at(app, 1), "optimism"));
    CHECK(is_absent(tsq_mini_app_networks_at(app, 2)));
    CHECK(tsq_mini_app_tags_len(app) == 2);
    CHECK(is(tsq_mini_app_tags_at(app, 1), "board"));
    CHECK(tsq_mini_app_screenshots_len(app) == 2);
    CHECK(is(tsq_mini_app_screenshots_at(app, 0), "https://chess.example.com/1.png"));
    CHECK(is(tsq_mini_app_hero_image_url(app), "https://chess.example.com/hero.png"));
    CHECK(is(tsq_mini_app_tagline(app), "Your move"));
    CHECK(is(tsq_mini_app_subtitle(app), "Blitz and bullet"));
    CHECK(is(tsq_mini_app_version(app), "1.2.3"));
    CHECK(is(tsq_mini_app_button_title(app), "Play now"));
    CHECK(is(tsq_mini_app_image_url(app), "https://chess.example.com/feed.png"));
    CHECK(is(tsq_mini_app_splash_image_url(app), "https://chess.example.com/splash.png"));
    CHECK(is(tsq_mini_app_splash_background_color(app), "#102030"));
    CHECK(tsq_mini_app_follower_count(app) == 1200);
    CHECK(tsq_mini_app_trending_rank(app, &rank) && rank == 1);
    CHECK(tsq_mini_app_trending_rank(app, NULL));
    /* After 2020, in microseconds. */
    CHECK(tsq_mini_app_last_fetched(app) > INT64_C(1577836800000000));

    const tsq_author *author = tsq_mini_app_author(app);
    CHECK(tsq_author_fid(author) == 7);
    CHECK(is(tsq_author_username(author), "ada"));
    CHECK(is(tsq_author_display_name(author), "Ada L."));
    CHECK(is(tsq_author_pfp_url(author), "https://chess.example.com/ada.png"));
    CHECK(tsq_author_follower_count(author) == 1200);
    CHECK(tsq_author_score(author, &score) && score == 0.75);
    CHECK(!tsq_author_is_power_user(author));

    /* Absent fields. */
    author = tsq_mini_app_author(tsq_mini_apps_at(apps, 1));
    CHECK(author != NULL && !tsq_author_score(author, &score) && score == 0);
    CHECK(is_absent(tsq_author_display_name(author)));
    app = tsq_mini_apps_at(apps, 2);
    CHECK(is(tsq_mini_app_name(app), "Pixel Farm"));
    CHECK(tsq_mini_app_author(app) == NULL);
    CHECK(is_absent(tsq_mini_app_description(app)));
    CHECK(is_absent(tsq_mini_app_category(app)));
    CHECK(tsq_mini_app_networks_len(app) == 0);
    CHECK(tsq_mini_app_follower_count(app) == 0);
    CHECK(tsq_mini_apps_at(apps, 4) == NULL);
    CHECK(tsq_mini_apps_at(apps, SIZE_MAX) == NULL);
    tsq_mini_apps_free(apps);
}

static void lists_are_filtered_and_ordered(const tsq_client *client) {
    tsq_mini_apps *apps = NULL;
    tsq_str games[1] = {TSQ_STR("games")};
    tsq_str several[2] = {TSQ_STR("finance"), TSQ_STR("games")};
    tsq_str base[1] = {TSQ_STR("base")};
    tsq_selection two = TSQ_SELECTION(2);
    tsq_selection most = TSQ_SELECTION(1000);
    tsq_selection on_base = most;
    tsq_selection games_on_base = most;
    on_base.networks = base;
    on_base.networks_len = 1;
    games_on_base = on_base;
    games_on_base.categories = games;
    games_on_base.categories_len = 1;

    CHECK(lists(trending(client, NULL), "Chess Caf\xc3\xa9|Tip Jar|Pixel Farm|Block Builder"));
    CHECK(lists(trending(client, &two), "Chess Caf\xc3\xa9|Tip Jar"));
    /* An app that names no network runs on any (UPSTREAM 1). */
    CHECK(lists(trending(client, &on_base), "Chess Caf\xc3\xa9|Pixel Farm"));
    CHECK(lists(trending(client, &games_on_base), "Chess Caf\xc3\xa9"));

    WORKS(tsq_discovery_get_mini_apps_by_category(client, games, 1, NULL, &apps, &err));
    CHECK(lists(apps, "Chess Caf\xc3\xa9|Block Builder"));
    WORKS(tsq_discovery_get_mini_apps_by_category(client, several, 2, &two, &apps, &err));
    CHECK(lists(apps, "Chess Caf\xc3\xa9|Tip Jar"));

    /* Without the accent, a prefix, a typo, and a category without a match. */
    WORKS(tsq_discovery_search_mini_apps(client, TSQ_STR("cafe"), NULL, &apps, &err));
    CHECK(lists(apps, "Chess Caf\xc3\xa9"));
    /* A search may have a NUL character: it stands between words. */
    WORKS(tsq_discovery_search_mini_apps(client, TSQ_STR("cafe\0chess"), NULL, &apps, &err));
    CHECK(lists(apps, "Chess Caf\xc3\xa9"));
    WORKS(tsq_discovery_search_mini_apps(client, TSQ_STR("pix"), NULL, &apps, &err));
    CHECK(lists(apps, "Pixel Farm"));
    WORKS(tsq_discovery_search_mini_apps(client, TSQ_STR("biulder"), &most, &apps, &err));
    CHECK(lists(apps, "Block Builder"));
    WORKS(tsq_discovery_search_mini_apps(client, TSQ_STR("tip"), &games_on_base, &apps, &err));
    CHECK(lists(apps, ""));

    /* Absent: the default timeframe. */
    WORKS(tsq_discovery_get_trending_mini_apps(client, tsq_str_from(NULL), &two, &apps, &err));
    CHECK(lists(apps, "Chess Caf\xc3\xa9|Tip Jar"));
}

static void bad_arguments_are_named(const tsq_client *client) {
    tsq_mini_apps *apps = NULL;
    tsq_str day = TSQ_STR("24h");
    tsq_str bad = TSQ_STR("caf\xc3");
    tsq_str null_with_length = {NULL, 3};
    tsq_str endless = {"x", SIZE_MAX};
    tsq_str items[2] = {TSQ_STR("games"), TSQ_STR("\xff")};
    tsq_selection selection = TSQ_SELECTION(0);

    FAILS(tsq_discovery_get_trending_mini_apps(client, day, &selection, &apps, &err), TSQ_INVALID_INPUT, apps, "Get trending mini apps failed: ");
    selection.limit = 1001;
    FAILS(tsq_discovery_search_mini_apps(client, TSQ_STR("chess"), &selection, &apps, &err), TSQ_INVALID_INPUT,
                apps, "Search mini apps failed: ");
    FAILS(tsq_discovery_get_trending_mini_apps(client, TSQ_STR("2h"), NULL, &apps, &err), TSQ_INVALID_INPUT, apps, "Get trending mini apps failed: Unknown timeframe");
    FAILS(tsq_discovery_search_mini_apps(client, bad, NULL, &apps, &err), TSQ_INVALID_INPUT, apps, "Argument query is not UTF-8 at byte 3");
    FAILS(tsq_discovery_search_mini_apps(client, null_with_length, NULL, &apps, &err), TSQ_INVALID_INPUT, apps, "Argument query is NULL");
    FAILS(tsq_discovery_search_mini_apps(client, endless, NULL, &apps, &err), TSQ_INVALID_INPUT, apps, "Argument query has an impossible length");
    FAILS(tsq_discovery_get_mini_apps_by_category(client, items, 2, NULL, &apps, &err), TSQ_INVALID_INPUT, apps, "Argument categories[1] is not UTF-8");
    FAILS(tsq_discovery_get_mini_apps_by_category(client, NULL, 2, NULL, &apps, &err), TSQ_INVALID_INPUT, apps, "Argument categories is NULL");
    selection = TSQ_SELECTION(5);
    selection.networks = items;
    selection.networks_len = 2;
    FAILS(tsq_discovery_get_trending_mini_apps(client, day, &selection, &apps, &err), TSQ_INVALID_INPUT, apps, "Argument selection.networks[1] is not UTF-8");

    /* The message is the text without the prefix; both are NUL-terminated. */
    CHECK(tsq_discovery_search_mini_apps(client, bad, NULL, &apps, &err) == TSQ_INVALID_INPUT);
    CHECK(is(tsq_error_message(err), "Argument query is not UTF-8 at byte 3"));
    CHECK(strcmp(tsq_error_text(err).ptr, "Search mini apps failed: Argument query is not UTF-8 at byte 3") == 0);
    CHECK(is(tsq_error_operation(err), "search_mini_apps"));
    tsq_error_free(err);
    err = NULL;
}

static void null_arguments_are_errors_and_null_receivers_read_as_absent(const tsq_client *client) {
    uint64_t wait = 1;
    uint32_t rank = 1;
    double score = 1;
    tsq_bytes nothing = {NULL, 0};
    tsq_bytes null_with_length = {NULL, 9};
    tsq_str day = TSQ_STR("24h");
    tsq_client *opened = NULL;
    tsq_mini_apps *apps = NULL;
    tsq_discovery_stats *stats = NULL;
    tsq_http_response *response = NULL;
    tsq_string *json = NULL;

    /* Functions that can fail, with and without an error object. */
    FAILS(tsq_config_set(NULL, day, day, &err), TSQ_INVALID_INPUT, NULL, "Argument config is NULL");
    FAILS(tsq_config_from_url(day, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_config_from_env(NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_client_open(NULL, NULL, &err), TSQ_INVALID_INPUT, NULL, "Open failed: Argument out is NULL");
    FAILS(tsq_client_shared(NULL, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_client_close(NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument client is NULL");
    FAILS(tsq_discovery_get_trending_mini_apps(NULL, day, NULL, &apps, &err), TSQ_INVALID_INPUT, apps, "Argument client is NULL");
    FAILS(tsq_discovery_get_trending_mini_apps(client, day, NULL, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_discovery_get_mini_apps_by_category(NULL, NULL, 0, NULL, &apps, &err), TSQ_INVALID_INPUT, apps, "Argument client is NULL");
    FAILS(tsq_discovery_search_mini_apps(NULL, day, NULL, &apps, &err), TSQ_INVALID_INPUT, apps, "Argument client is NULL");
    FAILS(tsq_discovery_refresh(NULL, &stats, &err), TSQ_INVALID_INPUT, stats, "Argument client is NULL");
    FAILS(tsq_discovery_force_refresh(NULL, NULL, &err), TSQ_INVALID_INPUT, NULL, "client is NULL");
    FAILS(tsq_discovery_get_stats(NULL, &stats, &err), TSQ_INVALID_INPUT, stats, "client is NULL");
    FAILS(tsq_discovery_get_stats(client, NULL, &err), TSQ_INVALID_INPUT, NULL, "out is NULL");
    FAILS(tsq_discovery_handle(NULL, day, day, nothing, &response, &err), TSQ_INVALID_INPUT, response, "client is NULL");
    FAILS(tsq_discovery_handle(client, day, day, null_with_length, &response, &err), TSQ_INVALID_INPUT, response, "Argument body is NULL");
    FAILS(tsq_mini_apps_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "Argument apps is NULL");
    FAILS(tsq_mini_app_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "Argument app is NULL");
    CHECK(tsq_client_open(NULL, NULL, NULL) == TSQ_INVALID_INPUT);
    CHECK(tsq_config_set(NULL, day, day, NULL) == TSQ_INVALID_INPUT);
    CHECK(tsq_discovery_refresh(NULL, NULL, NULL) == TSQ_INVALID_INPUT);
    CHECK(tsq_discovery_search_mini_apps(NULL, day, NULL, NULL, NULL) == TSQ_INVALID_INPUT);
    CHECK(opened == NULL && tsq_client_is_closed(NULL));

    /* Functions that cannot fail return zero, false, NULL or the absent text. */
    CHECK(tsq_error_kind(NULL) == TSQ_OK && !tsq_error_is_retryable(NULL));
    CHECK(is_absent(tsq_error_text(NULL)) && is_absent(tsq_error_message(NULL)));
    CHECK(is_absent(tsq_error_operation(NULL)) && is_absent(tsq_error_code(NULL)));
    CHECK(tsq_error_status(NULL) == 0 && is_absent(tsq_error_explanation(NULL)) && is_absent(tsq_error_reason(NULL)));
    CHECK(!tsq_error_retry_after_ms(NULL, &wait) && wait == 0);
    CHECK(tsq_mini_apps_len(NULL) == 0 && tsq_mini_apps_at(NULL, 0) == NULL);
    CHECK(is_absent(tsq_mini_app_id(NULL)) && is_absent(tsq_mini_app_domain(NULL)));
    CHECK(is_absent(tsq_mini_app_name(NULL)) && is_absent(tsq_mini_app_description(NULL)));
    CHECK(is_absent(tsq_mini_app_icon_url(NULL)) && is_absent(tsq_mini_app_home_url(NULL)));
    CHECK(is_absent(tsq_mini_app_category(NULL)) && is_absent(tsq_mini_app_version(NULL)));
    CHECK(tsq_mini_app_networks_len(NULL) == 0 && is_absent(tsq_mini_app_networks_at(NULL, 0)));
    CHECK(tsq_mini_app_tags_len(NULL) == 0 && is_absent(tsq_mini_app_tags_at(NULL, 0)));
    CHECK(tsq_mini_app_screenshots_len(NULL) == 0 && is_absent(tsq_mini_app_screenshots_at(NULL, 0)));
    CHECK(is_absent(tsq_mini_app_hero_image_url(NULL)) && is_absent(tsq_mini_app_tagline(NULL)));
    CHECK(is_absent(tsq_mini_app_subtitle(NULL)) && is_absent(tsq_mini_app_button_title(NULL)));
    CHECK(is_absent(tsq_mini_app_image_url(NULL)) && is_absent(tsq_mini_app_splash_image_url(NULL)));
    CHECK(is_absent(tsq_mini_app_splash_background_color(NULL)));
    CHECK(tsq_mini_app_author(NULL) == NULL && tsq_mini_app_last_fetched(NULL) == 0);
    CHECK(tsq_mini_app_follower_count(NULL) == 0);
    CHECK(!tsq_mini_app_trending_rank(NULL, &rank) && rank == 0);
    CHECK(tsq_author_fid(NULL) == 0 && tsq_author_follower_count(NULL) == 0 && !tsq_author_is_power_user(NULL));
    CHECK(is_absent(tsq_author_username(NULL)) && is_absent(tsq_author_display_name(NULL)));
    CHECK(is_absent(tsq_author_pfp_url(NULL)) && !tsq_author_score(NULL, &score) && score == 0);
    CHECK(is_absent(tsq_string_view(NULL)));

    tsq_config_free(NULL);
    tsq_client_free(NULL);
    tsq_mini_apps_free(NULL);
    tsq_discovery_stats_free(NULL);
    tsq_http_response_free(NULL);
    tsq_string_free(NULL);
    tsq_error_free(NULL);
}

static void results_are_json_on_request(const tsq_client *client) {
    tsq_string *json = NULL;
    tsq_selection two = TSQ_SELECTION(2);
    tsq_mini_apps *apps = trending(client, &two);
    WORKS(tsq_mini_apps_json(apps, &json, &err));
    tsq_str text = tsq_string_view(json);
    CHECK(has(text, "[{\"id\":\"chess.example.com/play\""));
    CHECK(has(text, "\"homeUrl\":"));
    CHECK(has(text, "\"trendingRank\":2"));
    CHECK(strlen(text.ptr) == text.len);
    tsq_string_free(json);
    WORKS(tsq_mini_app_json(tsq_mini_apps_at(apps, 1), &json, &err));
    CHECK(has(tsq_string_view(json), "\"name\":\"Tip Jar\""));
    CHECK(!tsq_string_view(json).ptr[tsq_string_view(json).len]);
    tsq_string_free(json);
    tsq_mini_apps_free(apps);
}

static void stats_show_the_state_of_the_catalog(const tsq_client *client) {
    tsq_discovery_stats *stats = NULL;
    WORKS(tsq_discovery_refresh(client, &stats, &err));
    CHECK(stats->total == 4);
    CHECK(stats->received == 6);
    CHECK(stats->skipped == 1);
    CHECK(stats->duplicates == 1);
    CHECK(is(stats->source, "file"));
    CHECK(stats->has_fetched_at && stats->fetched_at > INT64_C(1577836800000000));
    CHECK(!stats->is_stale);
    CHECK(!stats->is_refreshing);
    CHECK(is_absent(stats->last_error));
    CHECK(stats->stale_lists_len == 0 && !stats->truncated);
    tsq_discovery_stats_free(stats);
    WORKS(tsq_discovery_refresh(client, NULL, &err));
    WORKS(tsq_discovery_force_refresh(client, NULL, &err));
    WORKS(tsq_discovery_get_stats(client, &stats, &err));
    CHECK(stats->total == 4);
    tsq_discovery_stats_free(stats);
}

/* Sends a request and checks the status and a part of the body; a header is looked for by name when it is given. */
static int answers(const tsq_client *client, const char *method, const char *target, const char *body, size_t length,
                   unsigned expected, const char *part, const char *header, const char *value) {
    tsq_http_response *response = NULL;
    tsq_bytes sent;
    int found = header == NULL;
    int as_expected;
    sent.ptr = (const uint8_t *)body;
    sent.len = length;
    WORKS(tsq_discovery_handle(client, tsq_str_from(method), tsq_str_from(target), sent, &response, &err));
    tsq_bytes bytes = response->body;
    tsq_str text = {(const char *)bytes.ptr, bytes.len};
    for (size_t i = 0; header != NULL && i < response->headers_len; i++) {
        tsq_str name = response->headers[i].name;
        if (name.len == strlen(header) && memcmp(name.ptr, header, name.len) == 0) {
            found = has(response->headers[i].value, value);
        }
    }
    as_expected = response->status == expected && found && has(text, part);
    if (!as_expected) {
        fprintf(stderr, "  %s %s: %u %.*s\n", method, target, response->status, TSQ_ARG(text));
    }
    tsq_http_response_free(response);
    return as_expected;
}

static void the_endpoint_reads_headers(const tsq_client *client) {
    tsq_http_header headers[] = {{TSQ_STR("If-None-Match"), TSQ_STR("*")}};
    tsq_http_request request;
    tsq_http_response *response = NULL;
    memset(&request, 0, sizeof request);
    request.method = TSQ_STR("GET");
    request.target = TSQ_STR("/api/miniapp-discovery/categories");
    WORKS(tsq_discovery_handle_request(client, &request, &response, &err));
    CHECK(response->status == 200 && response->body.len > 0);
    tsq_http_response_free(response);
    request.headers = headers;
    request.headers_len = 1;
    WORKS(tsq_discovery_handle_request(client, &request, &response, &err));
    CHECK(response->status == 304 && response->body.len == 0);
    tsq_http_response_free(response);
    response = NULL;
    FAILS(tsq_discovery_handle_request(client, NULL, &response, &err), TSQ_INVALID_INPUT, response, "Argument request is NULL");
    request.headers = NULL;
    FAILS(tsq_discovery_handle_request(client, &request, &response, &err), TSQ_INVALID_INPUT, response, "Argument request.headers is NULL");
    FAILS(tsq_discovery_handle_request(NULL, &request, &response, &err), TSQ_INVALID_INPUT, response, "client is NULL");
}

static void the_endpoint_answers_without_a_server(const tsq_client *client) {
    const char *path = "/api/miniapp-discovery";
    const char *search = "{\"action\":\"search\",\"query\":\"chess\"}";
    const char *unknown = "{\"action\":\"dance\"}";
    const size_t huge = (size_t)32 << 20;
    CHECK(answers(client, "GET", "/api/miniapp-discovery?category=games&limit=1&trending=true", NULL, 0, 200,
                  "\"id\":\"chess.example.com/play\"", "content-type", "application/json"));
    CHECK(answers(client, "GET", "/api/miniapp-discovery?limit=0", NULL, 0, 400, "\"success\":false", NULL, NULL));
    CHECK(answers(client, "GET", "/elsewhere", NULL, 0, 404, "\"success\":false", NULL, NULL));
    CHECK(answers(client, "POST", path, search, strlen(search), 200, "\"count\":1", NULL, NULL));
    CHECK(answers(client, "POST", path, unknown, strlen(unknown), 400, "\"success\":false", NULL, NULL));
    CHECK(answers(client, "POST", path, "\xff{", 2, 400, "\"success\":false", NULL, NULL));
    CHECK(answers(client, "DELETE", path, NULL, 0, 405, "\"success\":false", "allow", "POST"));
    CHECK(answers(client, "OPTIONS", path, NULL, 0, 204, "", "allow", "GET"));
    char *body = (char *)calloc(huge, 1);
    CHECK(body != NULL);
    CHECK(answers(client, "POST", path, body, huge, 413, "\"success\":false", NULL, NULL));
    free(body);
}

static void without_a_key_lists_are_empty(void) {
    tsq_mini_apps *apps = NULL;
    tsq_discovery_stats *stats = NULL;
    tsq_client *client = open_client("keyless", NULL);
    CHECK(lists(trending(client, NULL), ""));
    WORKS(tsq_discovery_search_mini_apps(client, TSQ_STR("chess"), NULL, &apps, &err));
    CHECK(lists(apps, ""));
    WORKS(tsq_discovery_refresh(client, &stats, &err));
    CHECK(!stats->has_api_key);
    CHECK(stats->total == 0);
    CHECK(is(stats->source, "none"));
    CHECK(!stats->has_fetched_at && stats->fetched_at == 0);
    tsq_discovery_stats_free(stats);
    tsq_client_free(client);
}

static void reads_without_a_catalog_are_unavailable(void) {
    tsq_mini_apps *apps = NULL;
    char text[4096];
    snprintf(text, sizeof text, "%s/no-such-catalog.json", folder);
    tsq_client *client = open_client("catalogless", text);
    CHECK(tsq_discovery_get_trending_mini_apps(client, TSQ_STR("24h"), NULL, &apps, &err) == TSQ_UNAVAILABLE);
    CHECK(apps == NULL);
    CHECK(tsq_error_is_retryable(err));
    CHECK(is(tsq_error_operation(err), "get_trending_mini_apps"));
    CHECK(has(tsq_error_text(err), "Get trending mini apps failed: "));
    tsq_error_free(err);
    err = NULL;
    tsq_client_free(client);
}

enum { THREADS = 8, ROUNDS = 200 };

static void *list_and_search(void *argument) {
    const tsq_client *client = (const tsq_client *)argument;
    tsq_error *mine = NULL;
    size_t wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        tsq_mini_apps *apps = NULL;
        wrong += tsq_discovery_get_trending_mini_apps(client, TSQ_STR("7d"), NULL, &apps, &mine) != TSQ_OK;
        wrong += tsq_mini_apps_len(apps) != 4;
        tsq_mini_apps_free(apps);
        wrong += tsq_discovery_search_mini_apps(client, TSQ_STR("chess"), NULL, &apps, &mine) != TSQ_OK;
        wrong += tsq_mini_apps_len(apps) != 1;
        tsq_mini_apps_free(apps);
        if (round % 50 == 0) {
            wrong += tsq_discovery_refresh(client, NULL, &mine) != TSQ_OK;
        }
        wrong += tsq_discovery_search_mini_apps(client, TSQ_STR("\xff"), NULL, &apps, &mine) != TSQ_INVALID_INPUT;
        tsq_error_free(mine);
    }
    return wrong == 0 ? NULL : argument;
}

static void threads_share_a_client(tsq_client *client) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, list_and_search, client) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong = client;
        CHECK(pthread_join(threads[i], &wrong) == 0);
        CHECK(wrong == NULL);
    }
}

static void shared_handles_are_one_client(void) {
    tsq_client *first = NULL;
    tsq_client *second = NULL;
    tsq_client *third = NULL;
    tsq_config *config = configure("shared", catalog);
    WORKS(tsq_client_shared(config, &first, &err));
    WORKS(tsq_client_shared(config, &second, &err));
    WORKS(tsq_config_set(config, TSQ_STR("refresh_interval"), TSQ_STR("61"), &err));
    FAILS(tsq_client_shared(config, &third, &err), TSQ_CONFIG, third, "Open failed: ");
    tsq_config_free(config);
    CHECK(lists(trending(second, NULL), "Chess Caf\xc3\xa9|Tip Jar|Pixel Farm|Block Builder"));
    WORKS(tsq_client_close(first, &err));
    CHECK(tsq_client_is_closed(second));
    tsq_client_free(first);
    tsq_client_free(second);
}

static void calls_on_a_closed_client_fail_and_lists_stay_valid(void) {
    tsq_bytes nothing = {NULL, 0};
    tsq_mini_apps *none = NULL;
    tsq_discovery_stats *stats = NULL;
    tsq_http_response *response = NULL;
    tsq_client *client = open_client("closed", catalog);
    tsq_mini_apps *apps = trending(client, NULL);
    WORKS(tsq_client_close(client, &err));
    CHECK(tsq_client_is_closed(client));
    WORKS(tsq_client_close(client, &err));
    FAILS(tsq_discovery_get_trending_mini_apps(client, TSQ_STR("24h"), NULL, &none, &err), TSQ_CLOSED, none, "Get trending mini apps failed: ");
    FAILS(tsq_discovery_search_mini_apps(client, TSQ_STR("x"), NULL, &none, &err), TSQ_CLOSED, none, "");
    FAILS(tsq_discovery_refresh(client, &stats, &err), TSQ_CLOSED, stats, "");
    FAILS(tsq_discovery_get_stats(client, &stats, &err), TSQ_CLOSED, stats, "");
    FAILS(tsq_discovery_handle(client, TSQ_STR("GET"), TSQ_STR("/"), nothing, &response, &err), TSQ_CLOSED,
                response, "");
    tsq_client_free(client);
    CHECK(lists(apps, "Chess Caf\xc3\xa9|Tip Jar|Pixel Farm|Block Builder"));
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    catalog = argv[1];
    folder = argv[2];

    header_and_library_agree();
    an_invalid_option_is_named();
    a_failed_open_names_the_option();

    tsq_client *client = open_client("town", catalog);
    every_field_of_an_app_is_readable(client);
    lists_are_filtered_and_ordered(client);
    bad_arguments_are_named(client);
    null_arguments_are_errors_and_null_receivers_read_as_absent(client);
    results_are_json_on_request(client);
    stats_show_the_state_of_the_catalog(client);
    the_endpoint_answers_without_a_server(client);
    the_endpoint_reads_headers(client);
    threads_share_a_client(client);
    tsq_client_free(client);

    without_a_key_lists_are_empty();
    reads_without_a_catalog_are_unavailable();
    shared_handles_are_one_client();
    calls_on_a_closed_client_fail_and_lists_stay_valid();
    return checks_done("discovery");
}
