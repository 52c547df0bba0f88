/* A directory page from C: pages and totals, one app, facets, new and similar apps, suggestions, highlights and changes
 * (DESIGN 6). Also compiled as C++: keep to the common subset.
 *
 * directory CATALOG FOLDER: the catalog is tests/c/catalog.json, the folder is empty. */
#include "apps.h"

static tsq_client *open_client(const char *catalog, const char *folder) {
    char text[4096];
    tsq_client *client = NULL;
    tsq_config *config = tsq_config_new();
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(folder), &err));
    snprintf(text, sizeof text, "file://%s", catalog);
    WORKS(tsq_config_set(config, TSQ_STR("catalog_url"), tsq_str_from(text), &err));
    WORKS(tsq_client_open(config, &client, &err));
    tsq_config_free(config);
    return client;
}

static void pages_have_a_total(const tsq_client *client) {
    tsq_mini_apps *apps = NULL;
    tsq_selection page = TSQ_SELECTION(2);
    page.offset = 1;
    apps = trending(client, &page);
    CHECK(tsq_mini_apps_total(apps) == 4);
    CHECK(lists(apps, "Tip Jar|Pixel Farm"));
    WORKS(tsq_discovery_get_new_mini_apps(client, &page, &apps, &err));
    CHECK(tsq_mini_apps_total(apps) == 4);
    CHECK(tsq_mini_app_first_seen(tsq_mini_apps_at(apps, 0)) > INT64_C(1577836800000000));
    CHECK(lists(apps, "Tip Jar|Pixel Farm"));
    page = TSQ_SELECTION(10);
    page.is_collapsed = true;
    WORKS(tsq_discovery_search_mini_apps(client, TSQ_STR("chess"), &page, &apps, &err));
    CHECK(tsq_mini_apps_total(apps) == 1);
    CHECK(lists(apps, "Chess Caf\xc3\xa9"));
    CHECK(tsq_mini_apps_total(NULL) == 0);
}

static void an_app_is_found_by_its_address(const tsq_client *client) {
    tsq_mini_apps *apps = NULL;
    WORKS(tsq_discovery_get_mini_app(client, TSQ_STR("https://CHESS.example.com/play/"), &apps, &err));
    CHECK(lists(apps, "Chess Caf\xc3\xa9"));
    WORKS(tsq_discovery_get_mini_app(client, TSQ_STR("tip.example.org"), &apps, &err));
    CHECK(lists(apps, "Tip Jar"));
    WORKS(tsq_discovery_get_mini_app(client, TSQ_STR("unknown.example"), &apps, &err));
    CHECK(lists(apps, ""));
    apps = NULL;
    WORKS(tsq_discovery_get_similar_mini_apps(client, TSQ_STR("chess.example.com"), 5, &apps, &err));
    CHECK(lists(apps, "Block Builder"));
    apps = NULL;
    FAILS(tsq_discovery_get_similar_mini_apps(client, TSQ_STR("unknown.example"), 5, &apps, &err), TSQ_NOT_FOUND, apps,
          "Get similar mini apps failed: ");
}

static void facets_suggestions_and_highlights_are_records(const tsq_client *client) {
    tsq_facets *facets = NULL;
    tsq_suggestions *suggestions = NULL;
    tsq_highlights *highlights = NULL;
    tsq_string *json = NULL;
    WORKS(tsq_discovery_categories(client, NULL, &facets, &err));
    CHECK(is(tsq_facets_at(facets, 0)->name, "games") && tsq_facets_at(facets, 0)->count == 2);
    CHECK(tsq_facets_len(facets) == 2 && tsq_facets_at(facets, 2) == NULL);
    WORKS(tsq_facets_json(facets, &json, &err));
    CHECK(has(tsq_string_view(json), "{\"name\":\"games\",\"count\":2}"));
    tsq_string_free(json);
    tsq_facets_free(facets);
    WORKS(tsq_discovery_networks(client, NULL, &facets, &err));
    CHECK(tsq_facets_len(facets) >= 2);
    tsq_facets_free(facets);

    WORKS(tsq_discovery_suggest_mini_apps(client, TSQ_STR("caf"), 8, &suggestions, &err));
    CHECK(tsq_suggestions_len(suggestions) == 1 && tsq_suggestions_at(suggestions, 1) == NULL);
    const tsq_suggestion *suggestion = tsq_suggestions_at(suggestions, 0);
    CHECK(is(suggestion->text, "Chess Caf\xc3\xa9") && is(tsq_mini_app_id(suggestion->app), "chess.example.com/play"));
    CHECK(suggestion->matches_len == 1 && suggestion->matches[0].start == 6 && suggestion->matches[0].end == 9);
    WORKS(tsq_mini_app_highlights(suggestion->app, TSQ_STR("chess"), &highlights, &err));
    const tsq_highlight *highlight = tsq_highlights_at(highlights, 0);
    CHECK(is(highlight->field, "name") && highlight->matches_len == 1 && highlight->matches[0].end == 5);
    WORKS(tsq_highlights_json(highlights, &json, &err));
    CHECK(has(tsq_string_view(json), "\"field\":\"description\""));
    tsq_string_free(json);
    tsq_highlights_free(highlights);
    WORKS(tsq_suggestions_json(suggestions, &json, &err));
    CHECK(has(tsq_string_view(json), "\"matches\":[[6,9]]"));
    tsq_string_free(json);
    tsq_suggestions_free(suggestions);
    suggestions = NULL;
    FAILS(tsq_discovery_suggest_mini_apps(client, TSQ_STR("x"), 0, &suggestions, &err), TSQ_INVALID_INPUT, suggestions, "limit");
    CHECK(tsq_facets_len(NULL) == 0 && tsq_suggestions_at(NULL, 0) == NULL && tsq_highlights_len(NULL) == 0);
    tsq_facets_free(NULL);
    tsq_suggestions_free(NULL);
    tsq_highlights_free(NULL);
}

static void ignore_change(const tsq_discovery_stats *stats, void *user_data) {
    (void)stats;
    (void)user_data;
}

static void count_destroyed(void *user_data) { ++*(int *)user_data; }

static void a_subscription_to_changes_ends(const tsq_client *client) {
    int destroyed = 0;
    tsq_subscription *subscription = NULL;
    WORKS(tsq_discovery_on_catalog_change(client, ignore_change, &destroyed, count_destroyed, &subscription, &err));
    tsq_subscription_unsubscribe(subscription);
    CHECK(destroyed == 1);
    tsq_subscription_free(subscription);
    subscription = NULL;
    FAILS(tsq_discovery_on_catalog_change(NULL, ignore_change, &destroyed, count_destroyed, &subscription, &err),
          TSQ_INVALID_INPUT, subscription, "client is NULL");
    CHECK(destroyed == 2);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    tsq_client *client = open_client(argv[1], argv[2]);
    pages_have_a_total(client);
    an_app_is_found_by_its_address(client);
    facets_suggestions_and_highlights_are_records(client);
    a_subscription_to_changes_ends(client);
    tsq_client_free(client);
    return checks_done("directory");
}
