/* Discovery: trending apps, filters, search with a typing error, similar apps and categories. */
#include <stdio.h>
#include <stdlib.h>
#include <townsquare.h>

/* Ends the program with the sentence of the error. */
static void check(tsq_status status, tsq_error **err) {
    if (status == TSQ_OK) return;
    fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(*err)));
    exit(1);
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(":memory:"), &err), &err);
    check(tsq_config_set(config, TSQ_STR("catalog_url"), TSQ_STR("sample:"), &err), &err);
    check(tsq_client_open(config, &client, &err), &err);
    tsq_config_free(config);

    tsq_mini_apps *apps = NULL;
    tsq_selection selection = TSQ_SELECTION(3);
    check(tsq_discovery_get_trending_mini_apps(client, TSQ_STR("24h"), &selection, &apps, &err), &err);
    for (size_t i = 0; i < tsq_mini_apps_len(apps); i++) {
        const tsq_mini_app *app = tsq_mini_apps_at(apps, i);
        uint32_t rank = 0;
        tsq_mini_app_trending_rank(app, &rank);
        printf("trending: %u %.*s\n", (unsigned)rank, TSQ_ARG(tsq_mini_app_name(app)));
    }
    tsq_mini_apps_free(apps);

    const tsq_str games = TSQ_STR("games"), base = TSQ_STR("base");
    selection = TSQ_SELECTION(2);
    selection.networks = &base;
    selection.networks_len = 1;
    check(tsq_discovery_get_mini_apps_by_category(client, &games, 1, &selection, &apps, &err), &err);
    for (size_t i = 0; i < tsq_mini_apps_len(apps); i++)
        printf("game on base: %.*s\n", TSQ_ARG(tsq_mini_app_name(tsq_mini_apps_at(apps, i))));
    tsq_mini_apps_free(apps);

    /* The first word has the British spelling, and the last one is not finished: the app is "Harbor Chess". */
    selection = TSQ_SELECTION(1);
    check(tsq_discovery_search_mini_apps(client, TSQ_STR("harbour ches"), &selection, &apps, &err), &err);
    const tsq_mini_app *found = tsq_mini_apps_at(apps, 0);
    printf("found: %.*s %.*s\n", TSQ_ARG(tsq_mini_app_name(found)), TSQ_ARG(tsq_mini_app_home_url(found)));

    /* The id is a view: it lives as long as the list of the app. */
    tsq_mini_apps *similar = NULL;
    check(tsq_discovery_get_similar_mini_apps(client, tsq_mini_app_id(found), 2, &similar, &err), &err);
    for (size_t i = 0; i < tsq_mini_apps_len(similar); i++)
        printf("similar: %.*s\n", TSQ_ARG(tsq_mini_app_name(tsq_mini_apps_at(similar, i))));
    tsq_mini_apps_free(similar);
    tsq_mini_apps_free(apps);

    tsq_facets *categories = NULL;
    check(tsq_discovery_categories(client, NULL, &categories, &err), &err);
    for (size_t i = 0; i < 3 && i < tsq_facets_len(categories); i++) {
        const tsq_facet *category = tsq_facets_at(categories, i);
        printf("category: %.*s %zu\n", TSQ_ARG(category->name), category->count);
    }
    tsq_facets_free(categories);

    tsq_discovery_stats *stats = NULL;
    check(tsq_discovery_get_stats(client, &stats, &err), &err);
    printf("catalog: %zu apps, %s\n", stats->total, stats->is_stale ? "stale" : "fresh");
    tsq_discovery_stats_free(stats);

    selection = TSQ_SELECTION(5000);
    if (tsq_discovery_search_mini_apps(client, TSQ_STR("chess"), &selection, &apps, &err) != TSQ_OK)
        printf("%.*s\n", TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);
    tsq_client_free(client);
    return 0;
}
