/* For call_sequences.c: what each kind of handle shows, and how it is freed. Every view of a handle is read when it is made, at any time
 * after, and before it is freed, whether or not its client still exists. */
#ifndef SEQUENCE_HANDLES_H
#define SEQUENCE_HANDLES_H

#include "sequence.h"

static void see_all(const tsq_str *texts, size_t count) {
    MUST(texts != NULL || count == 0);
    for (size_t i = 0; i < count; i++) {
        see(texts[i]);
    }
}

static void see_bytes_of(tsq_bytes bytes) {
    MUST(bytes.ptr != NULL || bytes.len == 0);
    see_bytes(bytes.ptr, bytes.len);
}

static void see_headers(const tsq_http_header *headers, size_t count) {
    MUST(headers != NULL || count == 0);
    for (size_t i = 0; i < count; i++) {
        see(headers[i].name);
        see(headers[i].value);
    }
}

/* Ranges lie in the text, in order. */
static void see_ranges(tsq_str text, const tsq_range *ranges, size_t count) {
    size_t end = 0;
    MUST(ranges != NULL || count == 0);
    for (size_t i = 0; i < count; i++) {
        MUST(end <= ranges[i].start && ranges[i].start < ranges[i].end && ranges[i].end <= text.len);
        end = ranges[i].end;
    }
}

#define LOOKS(name) static void look_at_##name(const tsq_##name *it)

LOOKS(string) {
    MUST(tsq_string_view(it).ptr != NULL);
    see(tsq_string_view(it));
}

LOOKS(buffer) {
    see_bytes_of(tsq_buffer_view(it));
}

LOOKS(config) {
    (void)it;
}

LOOKS(client) {
    tsq_client_is_closed(it);
}

LOOKS(subscription) {
    (void)it;
}

LOOKS(change_stream) {
    tsq_change_stream_has_ended(it);
}

LOOKS(live_query) {
    const size_t count = tsq_live_query_len(it);
    for (size_t i = 0; i < count; i++) {
        MUST(tsq_live_query_row_at(it, i).len > 0);
        see(tsq_live_query_row_at(it, i));
    }
    MUST(tsq_live_query_row_at(it, count).ptr == NULL && tsq_live_query_row_at(it, SIZE_MAX).ptr == NULL);
    tsq_change_stream_has_ended(tsq_live_query_changes(it));
}

LOOKS(file_writer) {
    (void)it;
}

LOOKS(row_export) {
    (void)it;
}

LOOKS(fidget) {
    see(it->id);
    see(it->space_id);
    see(it->kind);
    see(it->config);
    see(it->position);
}

#define LOOKS_AT_LIST(list, item)                                                                 \
    LOOKS(list) {                                                                                 \
        const size_t count = tsq_##list##_len(it);                                                \
        for (size_t i = 0; i < count; i++) {                                                      \
            const tsq_##item *at = tsq_##list##_at(it, i);                                        \
            MUST(at != NULL);                                                                     \
            look_at_##item(at);                                                                   \
        }                                                                                         \
        MUST(tsq_##list##_at(it, count) == NULL && tsq_##list##_at(it, SIZE_MAX) == NULL);        \
    }

LOOKS_AT_LIST(fidget_list, fidget)

LOOKS(space) {
    see(it->id);
    see(it->name);
    see(it->description);
    see(it->owner_id);
    if (it->owner != NULL) {
        see(it->owner->id);
        see(it->owner->email);
    }
    if (it->fidgets != NULL) {
        look_at_fidget_list(it->fidgets);
    }
}

LOOKS_AT_LIST(space_list, space)

LOOKS(user) {
    see(it->id);
    see(it->email);
}

LOOKS_AT_LIST(user_list, user)

LOOKS(session) {
    see(it->access_token);
    see(it->refresh_token);
    MUST(it->user != NULL);
    look_at_user(it->user);
}

LOOKS(session_info) {
    see(it->id);
}

LOOKS_AT_LIST(session_infos, session_info)

LOOKS(identities) {
    see_all(it->public_keys, it->public_keys_len);
}

LOOKS(community_config) {
    see(it->id);
    see(it->community_id);
    see(it->brand_config);
    see(it->assets_config);
    see(it->community_config);
    see(it->fidgets_config);
    see(it->navigation_config);
    see(it->ui_config);
    see(it->admin_email);
    see_all(it->admin_identity_public_keys, it->admin_identity_public_keys_len);
}

LOOKS_AT_LIST(community_config_list, community_config)

LOOKS(community_domain) {
    see(it->id);
    see(it->community_id);
    see(it->domain);
    see(it->domain_type);
}

LOOKS_AT_LIST(community_domain_list, community_domain)

LOOKS(space_registration) {
    see(it->space_id);
    see(it->space_name);
    see(it->space_type);
    see(it->identity_public_key);
    see(it->signature);
}

LOOKS_AT_LIST(space_registration_list, space_registration)

LOOKS(file_info) {
    see(it->bucket);
    see(it->path);
    see(it->content_type);
    see(it->etag);
    see(it->owner_id);
    MUST(it->metadata != NULL || it->metadata_len == 0);
    for (size_t i = 0; i < it->metadata_len; i++) {
        see(it->metadata[i].name);
        see(it->metadata[i].value);
    }
}

LOOKS_AT_LIST(file_list, file_info)

LOOKS(file_reader) {
    MUST(tsq_file_reader_info(it) != NULL);
    look_at_file_info(tsq_file_reader_info(it));
}

LOOKS(file_response) {
    MUST(it->status >= 200 && it->status < 600 && it->status != 500);
    see_headers(it->headers, it->headers_len);
}

LOOKS(http_response) {
    MUST(it->status >= 200 && it->status < 600 && it->status != 500);
    see_headers(it->headers, it->headers_len);
    see_bytes_of(it->body);
}

LOOKS(repair_report) {
    see_all(it->mismatched, it->mismatched_len);
}

LOOKS(row_change) {
    see(it->schema);
    see(it->table);
    see(it->new_row);
    see(it->old_row);
    see(it->cursor);
    MUST(tsq_event_type_name((int32_t)it->event).len > 0);
}

LOOKS(move_report) {
    for (size_t i = 0; i < it->tables_len; i++) {
        see(it->tables[i].name);
    }
}

LOOKS(exported_row) {
    see(it->table);
    see(it->values);
}

LOOKS(row_import_report) {
    MUST(it->problems != NULL || it->problems_len == 0);
    for (size_t i = 0; i < it->problems_len; i++) {
        see(it->problems[i].kind);
        see(it->problems[i].column);
        see(it->problems[i].table);
        see(it->problems[i].value);
    }
}

LOOKS(import_report) {
    see_bytes(it, sizeof *it);
}

LOOKS(realtime_stats) {
    see_bytes(&it->subscriptions, sizeof it->subscriptions);
    MUST(it->lag_seconds >= 0);
}

LOOKS(migration_plan) {
    for (size_t i = 0; i < it->migrations_len; i++) {
        see(it->migrations[i].name);
        see(it->migrations[i].about);
    }
}

LOOKS(finding) {
    see(it->code);
    see(it->severity);
    see(it->message);
    see(it->advice);
}

LOOKS_AT_LIST(findings, finding)

LOOKS(storage_path) {
    see(it->bucket);
    see(it->path);
}

LOOKS(discovery_stats) {
    see(it->source);
    see(it->last_error);
    see_all(it->stale_lists, it->stale_lists_len);
}

LOOKS(author) {
    double score = 1;
    see(tsq_author_username(it));
    see(tsq_author_display_name(it));
    see(tsq_author_pfp_url(it));
    tsq_author_fid(it);
    tsq_author_follower_count(it);
    tsq_author_is_power_user(it);
    MUST(tsq_author_score(it, &score) || score == 0);
}

LOOKS(mini_app) {
    static tsq_str (*const texts[])(const tsq_mini_app *) = {
        tsq_mini_app_id,           tsq_mini_app_domain,         tsq_mini_app_name,      tsq_mini_app_description,
        tsq_mini_app_icon_url,     tsq_mini_app_home_url,       tsq_mini_app_category,  tsq_mini_app_hero_image_url,
        tsq_mini_app_tagline,      tsq_mini_app_subtitle,       tsq_mini_app_version,   tsq_mini_app_button_title,
        tsq_mini_app_image_url,    tsq_mini_app_splash_image_url, tsq_mini_app_splash_background_color};
    static size_t (*const counts[])(const tsq_mini_app *) = {tsq_mini_app_networks_len, tsq_mini_app_tags_len, tsq_mini_app_screenshots_len};
    static tsq_str (*const items[])(const tsq_mini_app *, size_t) = {tsq_mini_app_networks_at, tsq_mini_app_tags_at,
                                                                     tsq_mini_app_screenshots_at};
    uint32_t rank = 1;
    for (size_t i = 0; i < COUNT(texts); i++) {
        see(texts[i](it));
    }
    for (size_t list = 0; list < COUNT(counts); list++) {
        const size_t count = counts[list](it);
        for (size_t i = 0; i < count; i++) {
            see(items[list](it, i));
        }
        MUST(items[list](it, count).ptr == NULL && items[list](it, SIZE_MAX).ptr == NULL);
    }
    MUST(tsq_mini_app_trending_rank(it, &rank) || rank == 0);
    tsq_mini_app_follower_count(it);
    tsq_mini_app_last_fetched(it);
    tsq_mini_app_first_seen(it);
    look_at_author(tsq_mini_app_author(it));
}

LOOKS_AT_LIST(mini_apps, mini_app)

LOOKS(suggestion) {
    look_at_mini_app(it->app);
    see(it->text);
    see_ranges(it->text, it->matches, it->matches_len);
}

LOOKS_AT_LIST(suggestions, suggestion)

LOOKS(facet) {
    see(it->name);
}

LOOKS_AT_LIST(facets, facet)

LOOKS(highlight) {
    see(it->field);
    see(it->text);
    see_ranges(it->text, it->matches, it->matches_len);
}

LOOKS_AT_LIST(highlights, highlight)

/* The functions that cannot fail answer NULL. */
static void nothing_is_answered(void) {
    current_call = "a function with a NULL receiver";
    current_line = __LINE__;
    MUST(tsq_version().len > 0 && tsq_mini_apps_total(NULL) == 0);
    look_at_mini_app(NULL);
    look_at_mini_apps(NULL);
    look_at_space_list(NULL);
    look_at_fidget_list(NULL);
    look_at_user_list(NULL);
    look_at_session_infos(NULL);
    look_at_file_list(NULL);
    look_at_community_config_list(NULL);
    look_at_community_domain_list(NULL);
    look_at_space_registration_list(NULL);
    look_at_findings(NULL);
    look_at_facets(NULL);
    look_at_highlights(NULL);
    look_at_suggestions(NULL);
    look_at_live_query(NULL);
    look_at_change_stream(NULL);
    look_at_buffer(NULL);
    MUST(tsq_string_view(NULL).ptr == NULL && tsq_file_reader_info(NULL) == NULL && tsq_live_query_changes(NULL) == NULL);
    MUST(tsq_client_is_closed(NULL) && tsq_error_kind(NULL) == TSQ_OK && tsq_error_text(NULL).ptr == NULL && tsq_error_clone(NULL) == NULL);
    MUST(tsq_error_status(NULL) == 0 && !tsq_error_row(NULL, NULL) && !tsq_error_retry_after_ms(NULL, NULL) && !tsq_error_is_retryable(NULL));
    MUST(tsq_str_from(NULL).ptr == NULL && tsq_status_name((int32_t)below(40)).len != 1);
    tsq_subscription_unsubscribe(NULL);
    tsq_file_writer_abort(NULL);
}

#define LOOK_CASE(name)                                    \
    case kind_##name:                                      \
        look_at_##name((const tsq_##name *)which->pointer); \
        break;
#define FREE_CASE(name)                                 \
    case kind_##name:                                   \
        tsq_##name##_free((tsq_##name *)which->pointer); \
        break;
#define FREE_NULL(name) tsq_##name##_free(NULL);
#define JSON_CASE(name)                                                                                \
    case kind_##name:                                                                                  \
        MAKES(string, REQUIRED, tsq_##name##_json((const tsq_##name *)which.pointer, out, err)); \
        break;

static void look_at(const handle *which) {
    switch (which->what) {
        JSON_KINDS(LOOK_CASE)
        OTHER_KINDS(LOOK_CASE)
    case KINDS:
        break;
    }
}

static void free_handle(const handle *which) {
    current_call = "a function that frees a handle";
    look_at(which);
    switch (which->what) {
        JSON_KINDS(FREE_CASE)
        OTHER_KINDS(FREE_CASE)
    case KINDS:
        break;
    }
}

/* Any handle of the pool, or NULL as one of a kind. */
static handle any_handle(void) {
    handle which;
    const unsigned choice = draw();
    which.pointer = NULL;
    which.what = (kind)(choice % KINDS);
    which.is_shared = 0;
    return choice < 0xe0 && pool_used > 0 ? pool[choice % pool_used] : which;
}

#define IS_CASE(name) case kind_##name:

/* Whether a function returns handles of this kind as JSON. */
static int has_json(kind what) {
    switch (what) {
        JSON_KINDS(IS_CASE)
        return 1;
    default:
        return 0;
    }
}

static void return_as_json(void) {
    handle which = any_handle();
    const size_t first = below(COUNT(pool));
    for (size_t i = 0; i < pool_used && !has_json(which.what); i++) {
        which = pool[(first + i) % pool_used];
    }
    switch (which.what) {
        JSON_KINDS(JSON_CASE)
    default:
        break;
    }
}

static void look_again(void) {
    const handle which = any_handle();
    current_call = "a view of a handle";
    if (which.pointer != NULL) {
        look_at(&which);
    }
}

static void forget(size_t index) {
    const handle which = pool[index];
    if (index < handles_kept) {
        return;
    }
    pool[index] = pool[--pool_used];
    free_handle(&which);
}

static void free_one(void) {
    if (pool_used > 0) {
        forget(below(pool_used));
    }
    if (draw() % 8 == 7) {
        JSON_KINDS(FREE_NULL)
        OTHER_KINDS(FREE_NULL)
    }
}

#endif
