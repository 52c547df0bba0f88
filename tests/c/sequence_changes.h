/* For call_sequences.c: operations on changes, subscriptions, the catalog and errors. */
#ifndef SEQUENCE_CHANGES_H
#define SEQUENCE_CHANGES_H

#include "sequence_arguments.h"
#include "sequence_handles.h"

static const char *const tables_with_changes[] = {"spaces", "fidgets", "users", "community_configs"};
static const char *const filters[] = {"is_public=is.true", "name=eq.Harbor", "id=in.(a,b)", "name=neq.x&is_public=eq.false", "created_at=gt.2026-01-01"};

/* What callbacks are given: memory that `destroy` frees, once. Callbacks may run on threads of the library. */
static unsigned data_given, data_destroyed, wrong_views;

static void *give_data(void) {
    void *data = malloc(1);
    if (data == NULL) {
        abort();
    }
    *(uint8_t *)data = 7;
    data_given++;
    return data;
}

static void destroy_data(void *data) {
    see_bytes(data, 1);
    *(uint8_t *)data = 0xdd;
    free(data);
    __atomic_add_fetch(&data_destroyed, 1, __ATOMIC_RELEASE);
}

static void note_text(tsq_str text) {
    if (!is_text(text)) {
        __atomic_add_fetch(&wrong_views, 1, __ATOMIC_RELAXED);
    }
}

static void on_change(const tsq_row_change *change, void *data) {
    see_bytes(data, 1);
    note_text(change->table);
    note_text(change->new_row);
    note_text(change->old_row);
    note_text(change->cursor);
}

static void on_close(const tsq_error *reason, void *data) {
    see_bytes(data, 1);
    note_text(tsq_error_text(reason));
}

static void on_session(tsq_auth_event event, const tsq_session *at, void *data) {
    see_bytes(data, 1);
    note_text(tsq_auth_event_name((int32_t)event));
    note_text(at == NULL ? absent : at->access_token);
}

static void on_catalog(const tsq_discovery_stats *stats, void *data) {
    see_bytes(data, 1);
    note_text(stats->source);
}

static void on_preload(const tsq_error *reason, void *data) {
    see_bytes(data, 1);
    note_text(tsq_error_text(reason));
}

static void on_log(const tsq_log_event *event, void *data) {
    (void)data;
    note_text(event->target);
    note_text(event->message);
}

/* A position of the feed, seldom one that an earlier call returned. */
static tsq_str draw_cursor(void) {
    const tsq_row_change *change = draw() % 4 == 3 ? PICK(row_change) : NULL;
    const tsq_string *cursor = draw() % 4 == 3 ? PICK(string) : NULL;
    const tsq_str view = change != NULL ? change->cursor : tsq_string_view(cursor);
    return view.ptr != NULL ? lent(view.ptr, view.len) : draw() % 8 == 7 ? draw_text() : absent;
}

static tsq_change_request draw_change_request(void) {
    static const int32_t events[] = {0, 1, 2, 3, 0, 4, -1, INT32_MAX};
    static tsq_change_request none;
    tsq_change_request values = none;
    values.table = USUAL(tables_with_changes);
    values.event = events[below(COUNT(events))];
    values.filter = draw() % 2 == 0 ? absent : USUAL(filters);
    values.since = draw_cursor();
    values.until = draw_cursor();
    values.schema = draw() % 4 < 3 ? absent : draw_text();
    return values;
}

static void follow_changes(void) {
    const tsq_client *client = PICK(client);
    if (draw() % 2 == 0) {
        const tsq_str table = USUAL(tables_with_changes);
        const tsq_str filter = draw() % 2 == 0 ? absent : USUAL(filters);
        MAKES(live_query, REQUIRED, tsq_realtime_live(client, table, filter, out, err));
    } else {
        tsq_change_request values = draw_change_request();
        if (draw() % 16 == 15) {
            values.on_close = on_close;
            is_refused = 1;
        }
        const tsq_change_request *request = INPUT(change_request, values);
        MAKES(change_stream, REQUIRED, tsq_realtime_changes(client, request, out, err));
    }
}

static void take_a_change(void) {
    tsq_change_stream *stream = PICK(change_stream);
    const unsigned way = below(4);
    if (stream == NULL) {
        stream = tsq_live_query_changes(PICK(live_query));
    }
    if (stream == NULL && way < 2) {
        follow_changes();
    } else if (way < 3) {
        MAKES(row_change, PERHAPS, tsq_change_stream_next(stream, 0, out, err));
    } else {
        DOES(tsq_change_stream_close(stream, err));
    }
}

static void subscribe(void) {
    const tsq_client *client = PICK(client);
    const unsigned way = below(6);
    void *data = give_data();
    /* Without `out` the subscription lasts as long as the handle, which must not be of the set-up. */
    const int presence = OPTIONAL;
    if (!is_own(client)) {
        client = NULL;
    }
    if (way == 0) {
        const tsq_str channel = draw_text();
        tsq_change_request values = draw_change_request();
        values.on_close = draw() % 2 == 0 ? NULL : on_close;
        const tsq_change_request *request = INPUT(change_request, values);
        tsq_change_callback callback = draw() % 16 == 15 ? NULL : on_change;
        MAKES(subscription, presence, tsq_realtime_subscribe(client, channel, request, callback, data, destroy_data, out, err));
    } else if (way == 1) {
        const tsq_str id = draw_id();
        MAKES(subscription, presence, tsq_realtime_on_space_changes(client, id, on_change, data, destroy_data, out, err));
    } else if (way == 2) {
        const tsq_str id = draw_id();
        MAKES(subscription, presence, tsq_realtime_on_fidget_changes(client, id, on_change, data, destroy_data, out, err));
    } else if (way == 3) {
        MAKES(subscription, presence, tsq_auth_on_auth_state_change(client, on_session, data, destroy_data, out, err));
    } else if (way == 4) {
        MAKES(subscription, presence, tsq_discovery_on_catalog_change(client, on_catalog, data, destroy_data, out, err));
    } else {
        DOES(tsq_discovery_preload(client, on_preload, data, destroy_data, err));
    }
}

static void unsubscribe(void) {
    tsq_subscription_unsubscribe(PICK(subscription));
}

static void ask_the_feed(void) {
    const tsq_client *client = PICK(client);
    switch (below(4)) {
    case 0:
        MAKES(string, REQUIRED, tsq_realtime_cursor(client, out, err));
        break;
    case 1:
        MAKES(realtime_stats, REQUIRED, tsq_realtime_get_stats(client, out, err));
        break;
    case 2:
        DOES(tsq_realtime_start(client, err));
        break;
    default:
        DOES(tsq_realtime_stop(client, err));
        break;
    }
}

static const char *const categories[] = {"games", "finance", "Games", "\xff", ""};
static const char *const networks[] = {"base", "eip155:10", "optimism", "1", ""};

static tsq_selection draw_selection(void) {
    static tsq_selection none;
    tsq_selection values = none;
    values.limit = draw_limit();
    values.offset = draw() % 2 == 0 ? 0 : draw_number();
    draw_bool(&values.is_collapsed);
    values.categories = draw_texts(&values.categories_len, categories, COUNT(categories));
    values.networks = draw_texts(&values.networks_len, networks, COUNT(networks));
    return values;
}

static void list_apps(void) {
    static const char *const times[] = {"24h", "7d", "1h", "30d"};
    static const char *const queries[] = {"chess", "tip jar", "blok", "\xc3\xa9", "games OR finance"};
    const tsq_client *client = PICK(client);
    const unsigned way = below(6);
    DRAW_OPTIONS(selection, values, selection);
    if (way == 0) {
        const tsq_str time = USUAL(times);
        MAKES(mini_apps, REQUIRED, tsq_discovery_get_trending_mini_apps(client, time, selection, out, err));
    } else if (way == 1) {
        size_t count;
        const tsq_str *names = draw_texts(&count, categories, COUNT(categories));
        MAKES(mini_apps, REQUIRED, tsq_discovery_get_mini_apps_by_category(client, names, count, selection, out, err));
    } else if (way == 2) {
        const tsq_str query = USUAL(queries);
        MAKES(mini_apps, REQUIRED, tsq_discovery_search_mini_apps(client, query, selection, out, err));
    } else if (way == 3) {
        MAKES(mini_apps, REQUIRED, tsq_discovery_get_new_mini_apps(client, selection, out, err));
    } else if (way == 4) {
        MAKES(facets, REQUIRED, tsq_discovery_categories(client, selection, out, err));
    } else {
        MAKES(facets, REQUIRED, tsq_discovery_networks(client, selection, out, err));
    }
}

static void ask_the_catalog(void) {
    static const char *const names[] = {"tip.example.org", "https://tip.example.org/", "chess.example.com", "chess", "ch", "play"};
    const tsq_client *client = PICK(client);
    const tsq_mini_apps *apps = PICK(mini_apps);
    const tsq_mini_app *app = tsq_mini_apps_at(apps, below(4));
    const unsigned way = below(8);
    const tsq_str text = way < 4 ? USUAL(names) : absent;
    const uint32_t limit = draw_limit();
    switch (way) {
    case 0:
        MAKES(mini_apps, REQUIRED, tsq_discovery_get_similar_mini_apps(client, text, limit, out, err));
        break;
    case 1:
        MAKES(mini_apps, REQUIRED, tsq_discovery_get_mini_app(client, text, out, err));
        break;
    case 2:
        MAKES(suggestions, REQUIRED, tsq_discovery_suggest_mini_apps(client, text, limit, out, err));
        break;
    case 3:
        MAKES(highlights, REQUIRED, tsq_mini_app_highlights(app, text, out, err));
        break;
    case 4:
        MAKES(string, REQUIRED, tsq_mini_app_json(app, out, err));
        break;
    case 5:
        MAKES(discovery_stats, OPTIONAL, tsq_discovery_refresh(client, out, err));
        break;
    case 6:
        MAKES(discovery_stats, OPTIONAL, tsq_discovery_force_refresh(client, out, err));
        break;
    default:
        MAKES(discovery_stats, REQUIRED, tsq_discovery_get_stats(client, out, err));
        break;
    }
}

static void copy_an_error(void) {
    const tsq_error *error = PICK(error);
    tsq_error *copy = tsq_error_clone(error);
    MUST((copy == NULL) == (error == NULL));
    if (copy != NULL) {
        MUST(tsq_error_kind(copy) == tsq_error_kind(error));
        keep(kind_error, copy);
    }
}

#endif
