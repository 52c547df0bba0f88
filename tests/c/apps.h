/* Lists of mini apps for the C programs. */
#ifndef APPS_H
#define APPS_H

#include "calls.h"

static inline tsq_mini_apps *trending(const tsq_client *client, const tsq_selection *selection) {
    tsq_mini_apps *apps = NULL;
    WORKS(tsq_discovery_get_trending_mini_apps(client, TSQ_STR("24h"), selection, &apps, &err));
    CHECK(apps != NULL);
    return apps;
}

/* Whether the list is these names, separated by '|'. Frees the list. */
static inline int lists(tsq_mini_apps *apps, const char *names) {
    char text[1024] = "";
    for (size_t i = 0; i < tsq_mini_apps_len(apps); i++) {
        tsq_str name = tsq_mini_app_name(tsq_mini_apps_at(apps, i));
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.*s", i == 0 ? "" : "|", TSQ_ARG(name));
    }
    tsq_mini_apps_free(apps);
    return is(tsq_str_from(text), names);
}

#endif
