/* Changes of rows from C (SPEC 6; DESIGN 5, 10). Also compiled as C++: keep to the common subset.
 *
 * realtime CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "rows.h"

#include <pthread.h>

#define CHANGES 200

/* The state of a callback, which runs on threads of the library. */
typedef struct listener {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* The events as `INSERT|`. */
    char heard[8 * CHANGES];
    int calls;
    int closed;
    /* The kind of the reason that on_close got. */
    tsq_status reason;
    int destroyed;
    int is_running;
    /* When set, the callback ends this subscription. */
    tsq_subscription *ends;
} listener;

static void prepare(listener *self) {
    memset(self, 0, sizeof *self);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
}

static void finish(listener *self) {
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
}

static void hear(const tsq_row_change *change, void *user_data) {
    listener *self = (listener *)user_data;
    tsq_subscription *ends;
    size_t used;
    pthread_mutex_lock(&self->lock);
    self->is_running = 1;
    used = strlen(self->heard);
    snprintf(self->heard + used, sizeof self->heard - used, "%.*s|", TSQ_ARG(tsq_event_type_name(change->event)));
    ends = self->ends;
    pthread_mutex_unlock(&self->lock);
    tsq_subscription_unsubscribe(ends);
    pthread_mutex_lock(&self->lock);
    self->is_running = 0;
    self->calls++;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void closed(const tsq_error *reason, void *user_data) {
    listener *self = (listener *)user_data;
    pthread_mutex_lock(&self->lock);
    /* 100 marks an error: closed during a call, or after the data was destroyed. */
    self->closed += self->is_running || self->destroyed ? 100 : 1;
    self->reason = reason != NULL ? tsq_error_kind(reason) : TSQ_OK;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void destroy(void *user_data) {
    listener *self = (listener *)user_data;
    pthread_mutex_lock(&self->lock);
    self->destroyed += self->is_running ? 100 : 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

/* Waits until `*counter` is `expected`. */
static int reaches(listener *self, const int *counter, int expected) {
    pthread_mutex_lock(&self->lock);
    while (*counter < expected) {
        pthread_cond_wait(&self->changed, &self->lock);
    }
    pthread_mutex_unlock(&self->lock);
    return *counter == expected;
}

static tsq_change_request request_of(const char *table, const char *filter) {
    tsq_change_request request;
    memset(&request, 0, sizeof request);
    request.table = tsq_str_from(table);
    request.filter = tsq_str_from(filter);
    return request;
}

/* Creates a space and writes its id, which has 36 characters, to `id`. */
static void create_space(const tsq_client *service, const char *name, char *id) {
    tsq_space *space = NULL;
    tsq_new_space input;
    memset(&input, 0, sizeof input);
    input.name = tsq_str_from(name);
    WORKS(tsq_spaces_create_space(service, &input, &space, &err));
    snprintf(id, 37, "%.*s", TSQ_ARG(space->id));
    tsq_space_free(space);
}

static void subscriptions_deliver_and_end(const tsq_client *service) {
    listener all, one;
    tsq_subscription *subscription = NULL, *of_space = NULL;
    tsq_change_request request = request_of("spaces", "name=neq.other");
    char id[37];
    prepare(&all);
    prepare(&one);
    request.on_close = closed;
    WORKS(tsq_realtime_subscribe(service, TSQ_STR("all"), &request, hear, &all, destroy, &subscription, &err));
    create_space(service, "other", id);
    create_space(service, "Harbor", id);
    WORKS(tsq_realtime_on_space_changes(service, tsq_str_from(id), hear, &one, destroy, &of_space, &err));
    WORKS(tsq_spaces_delete_space(service, tsq_str_from(id), &err));
    CHECK(reaches(&all, &all.calls, 2) && strcmp(all.heard, "INSERT|DELETE|") == 0);
    CHECK(reaches(&one, &one.calls, 1) && strcmp(one.heard, "DELETE|") == 0);
    tsq_subscription_unsubscribe(subscription);
    CHECK(all.closed == 1 && all.reason == TSQ_OK && all.destroyed == 1);
    tsq_subscription_unsubscribe(subscription);
    create_space(service, "Later", id);
    CHECK(all.calls == 2 && all.closed == 1 && all.destroyed == 1);
    tsq_subscription_unsubscribe(of_space);
    CHECK(one.destroyed == 1 && one.closed == 0);
    tsq_subscription_free(subscription);
    tsq_subscription_free(of_space);
    finish(&all);
    finish(&one);
}

static void hear_catalog(const tsq_discovery_stats *stats, void *user_data) {
    (void)stats;
    (void)user_data;
}

static void hear_session(tsq_auth_event event, const tsq_session *session, void *user_data) {
    (void)event;
    (void)session;
    (void)user_data;
}

/* A handle that is freed ends its subscriptions, and those of no other handle. */
static void subscriptions_end_with_their_handle(const tsq_client *client, const tsq_client *service) {
    listener kept, freed;
    tsq_client *handle = NULL;
    tsq_subscription *subscription = NULL;
    tsq_change_request request = request_of("spaces", "");
    char id[37];
    prepare(&kept);
    prepare(&freed);
    request.on_close = closed;
    WORKS(tsq_client_as_service(client, &handle, &err));
    WORKS(tsq_realtime_subscribe(service, TSQ_STR("kept"), &request, hear, &kept, destroy, &subscription, &err));
    WORKS(tsq_realtime_subscribe(handle, TSQ_STR("freed"), &request, hear, &freed, destroy, NULL, &err));
    create_space(service, "Harbor", id);
    CHECK(reaches(&kept, &kept.calls, 1) && reaches(&freed, &freed.calls, 1));
    WORKS(tsq_discovery_on_catalog_change(handle, hear_catalog, &freed, destroy, NULL, &err));
    WORKS(tsq_auth_on_auth_state_change(handle, hear_session, &freed, destroy, NULL, &err));
    tsq_client_free(handle);
    CHECK(freed.destroyed == 3 && freed.closed == 1);
    create_space(service, "Later", id);
    CHECK(reaches(&kept, &kept.calls, 2) && freed.calls == 1);
    tsq_subscription_unsubscribe(subscription);
    tsq_subscription_free(subscription);
    finish(&kept);
    finish(&freed);
}

static void callbacks_unsubscribe_each_other(const tsq_client *service) {
    listener pair[2];
    tsq_change_request request = request_of("spaces", "");
    tsq_subscription *subscriptions[2] = {NULL, NULL};
    char id[37];
    int i;
    request.on_close = closed;
    for (i = 0; i < 2; i++) {
        prepare(&pair[i]);
        WORKS(tsq_realtime_subscribe(service, TSQ_STR("pair"), &request, hear, &pair[i], destroy, &subscriptions[i], &err));
    }
    for (i = 0; i < 2; i++) {
        pthread_mutex_lock(&pair[i].lock);
        pair[i].ends = subscriptions[1 - i];
        pthread_mutex_unlock(&pair[i].lock);
    }
    create_space(service, "Harbor", id);
    /* Each callback may run and end the other one, or be ended before it runs. */
    for (i = 0; i < 2; i++) {
        tsq_subscription_unsubscribe(subscriptions[i]);
        CHECK(pair[i].destroyed == 1 && pair[i].closed == 1 && pair[i].calls <= 1);
    }
    for (i = 0; i < 2; i++) {
        tsq_subscription_free(subscriptions[i]);
        finish(&pair[i]);
    }
}

static void *wait_for_change(void *stream) {
    tsq_row_change *change = NULL;
    tsq_change_stream_next((tsq_change_stream *)stream, -1, &change, NULL);
    return change;
}

static void a_stream_is_polled(const tsq_client *service) {
    tsq_change_stream *stream = NULL, *again = NULL;
    tsq_change_request request = request_of("spaces", "");
    tsq_row_change *change = NULL;
    tsq_string *json = NULL, *cursor = NULL;
    pthread_t waiting;
    void *late = NULL;
    char id[37], name[32];
    int i;
    WORKS(tsq_realtime_cursor(service, &cursor, &err));
    WORKS(tsq_realtime_changes(service, &request, &stream, &err));
    WORKS(tsq_change_stream_next(stream, 0, &change, &err));
    CHECK(change == NULL && !tsq_change_stream_has_ended(stream));
    for (i = 0; i < CHANGES; i++) {
        snprintf(name, sizeof name, "space %d", i);
        create_space(service, name, id);
    }
    for (i = 0; i < CHANGES; i++) {
        snprintf(name, sizeof name, "\"space %d\"", i);
        WORKS(tsq_change_stream_next(stream, 20000, &change, &err));
        CHECK(change != NULL && change->event == TSQ_EVENT_INSERT && has(change->new_row, name) && is_absent(change->old_row));
        if (i == 0) {
            CHECK(is(change->schema, "public") && is(change->table, "spaces") && change->commit_timestamp > 0);
            WORKS(tsq_row_change_json(change, &json, &err));
            CHECK(has(tsq_string_view(json), "\"eventType\":\"INSERT\"") && has(tsq_string_view(json), "\"commit_timestamp\":"));
            tsq_string_free(json);
        }
        tsq_row_change_free(change);
    }
    WORKS(tsq_spaces_delete_space(service, tsq_str_from(id), &err));
    WORKS(tsq_change_stream_next(stream, 20000, &change, &err));
    CHECK(change != NULL && change->event == TSQ_EVENT_DELETE && is_absent(change->new_row) && has(change->old_row, name));
    tsq_row_change_free(change);
    request.since = tsq_string_view(cursor);
    WORKS(tsq_realtime_changes(service, &request, &again, &err));
    WORKS(tsq_change_stream_next(again, 20000, &change, &err));
    CHECK(change != NULL && has(change->new_row, "\"space 0\""));
    tsq_row_change_free(change);
    tsq_change_stream_free(again);
    tsq_string_free(cursor);
    CHECK(pthread_create(&waiting, NULL, wait_for_change, stream) == 0);
    WORKS(tsq_change_stream_close(stream, &err));
    pthread_join(waiting, &late);
    CHECK(late == NULL && tsq_change_stream_has_ended(stream));
    WORKS(tsq_change_stream_next(stream, -1, &change, &err));
    CHECK(change == NULL);
    tsq_change_stream_free(stream);
}

/* The cursor of now, which the caller frees. */
static tsq_string *cursor_of(const tsq_client *service) {
    tsq_string *cursor = NULL;
    WORKS(tsq_realtime_cursor(service, &cursor, &err));
    return cursor;
}

static void requests_end_at_their_cursor(const tsq_client *service) {
    tsq_change_stream *stream = NULL;
    tsq_subscription *subscription = NULL;
    tsq_change_request request = request_of("spaces", "");
    tsq_row_change *change = NULL;
    tsq_string *start = cursor_of(service), *end = NULL;
    listener past;
    char id[37];
    create_space(service, "before", id);
    end = cursor_of(service);
    create_space(service, "after", id);
    request.since = tsq_string_view(start);
    request.until = tsq_string_view(end);
    WORKS(tsq_realtime_changes(service, &request, &stream, &err));
    WORKS(tsq_change_stream_next(stream, 20000, &change, &err));
    CHECK(change != NULL && has(change->new_row, "\"before\""));
    tsq_row_change_free(change);
    WORKS(tsq_change_stream_next(stream, -1, &change, &err));
    CHECK(change == NULL && tsq_change_stream_has_ended(stream));
    tsq_change_stream_free(stream);
    prepare(&past);
    request.on_close = closed;
    WORKS(tsq_realtime_subscribe(service, TSQ_STR("past"), &request, hear, &past, destroy, &subscription, &err));
    CHECK(reaches(&past, &past.closed, 1) && past.reason == TSQ_OK && strcmp(past.heard, "INSERT|") == 0);
    tsq_subscription_free(subscription);
    CHECK(reaches(&past, &past.destroyed, 1) && past.calls == 1);
    finish(&past);
    /* Without `since`, a request until now has nothing. */
    request = request_of("spaces", "");
    request.until = tsq_string_view(end);
    WORKS(tsq_realtime_changes(service, &request, &stream, &err));
    WORKS(tsq_change_stream_next(stream, -1, &change, &err));
    CHECK(change == NULL && tsq_change_stream_has_ended(stream));
    tsq_change_stream_free(stream);
    tsq_string_free(start);
    tsq_string_free(end);
}

static void foreign_and_malformed_cursors_are_refused(const tsq_client *service) {
    tsq_client *other = open_client("elsewhere");
    tsq_string *foreign = cursor_of(other);
    tsq_change_stream *stream = NULL;
    tsq_subscription *subscription = NULL;
    tsq_change_request request = request_of("spaces", "");
    static const tsq_str not_utf8 = {"0\xff", 2};
    listener all;
    prepare(&all);
    request.until = tsq_string_view(foreign);
    FAILS(tsq_realtime_changes(service, &request, &stream, &err), TSQ_CURSOR_EXPIRED, stream,
          "Read changes failed: The cursor is of another incarnation of the database");
    FAILS(tsq_realtime_subscribe(service, TSQ_STR("bad"), &request, hear, &all, destroy, &subscription, &err), TSQ_CURSOR_EXPIRED,
          subscription, "Subscribe failed: The cursor is of another incarnation of the database");
    CHECK(all.destroyed == 1 && all.calls == 0);
    request.until = TSQ_STR("tomorrow");
    FAILS(tsq_realtime_changes(service, &request, &stream, &err), TSQ_INVALID_INPUT, stream, "The text is no cursor of the change feed");
    request.until = not_utf8;
    FAILS(tsq_realtime_changes(service, &request, &stream, &err), TSQ_INVALID_INPUT, stream,
          "Argument request.until is not UTF-8 at byte 1");
    tsq_string_free(foreign);
    tsq_client_free(other);
    finish(&all);
}

static void a_live_query_follows_its_rows(const tsq_client *service) {
    tsq_live_query *live = NULL;
    tsq_row_change *change = NULL;
    tsq_realtime_stats *stats = NULL;
    char id[37];
    create_space(service, "live one", id);
    WORKS(tsq_realtime_live(service, TSQ_STR("spaces"), TSQ_STR("name=like.live*"), &live, &err));
    CHECK(tsq_live_query_len(live) == 1 && has(tsq_live_query_row_at(live, 0), "live one"));
    CHECK(is_absent(tsq_live_query_row_at(live, 1)));
    create_space(service, "live two", id);
    WORKS(tsq_change_stream_next(tsq_live_query_changes(live), 20000, &change, &err));
    CHECK(change != NULL && has(change->new_row, "live two"));
    tsq_row_change_free(change);
    WORKS(tsq_realtime_get_stats(service, &stats, &err));
    CHECK(stats->subscriptions >= 1 && stats->retained >= 2 && stats->has_oldest && stats->lag_seconds >= 0);
    tsq_realtime_stats_free(stats);
    tsq_live_query_free(live);
}

/* The call that fails with the reason has found the end. */
static void a_stream_that_failed_has_ended(const tsq_client *client, const tsq_client *service) {
    tsq_change_stream *stream = NULL;
    tsq_change_request request = request_of("spaces", "");
    tsq_row_change *change = NULL;
    WORKS(tsq_realtime_changes(client, &request, &stream, &err));
    WORKS(tsq_realtime_stop(service, &err));
    FAILS(tsq_change_stream_next(stream, 20000, &change, &err), TSQ_UNAVAILABLE, change, "switched off");
    CHECK(tsq_change_stream_has_ended(stream));
    tsq_change_stream_free(stream);
}

static void events_are_served(const tsq_client *client) {
    tsq_file_response *response = NULL;
    tsq_http_header wrong;
    unsigned char bytes[4096];
    size_t length = 0;
    wrong.name = TSQ_STR("authorization");
    wrong.value = TSQ_STR("Bearer wrong");
    WORKS(tsq_realtime_start(client, &err));
    WORKS(tsq_realtime_handle_events(client, TSQ_STR("GET"), TSQ_STR("/events?table=spaces"), &wrong, 1, &response, &err));
    CHECK(response->status == 401 && response->body_size < UINT64_MAX);
    tsq_file_response_free(response);
    WORKS(tsq_realtime_handle_events(client, TSQ_STR("GET"), TSQ_STR("/events?table=communityDomains"), NULL, 0, &response, &err));
    CHECK(response->status == 404);
    tsq_file_response_free(response);
    WORKS(tsq_realtime_handle_events(client, TSQ_STR("HEAD"), TSQ_STR("/events?table=spaces"), NULL, 0, &response, &err));
    CHECK(response->status == 200);
    tsq_file_response_free(response);
    WORKS(tsq_realtime_handle_events(client, TSQ_STR("POST"), TSQ_STR("/events?table=spaces"), NULL, 0, &response, &err));
    CHECK(response->status == 405);
    tsq_file_response_free(response);
    WORKS(tsq_realtime_handle_events(client, TSQ_STR("GET"), TSQ_STR("/events?table=spaces"), NULL, 0, &response, &err));
    CHECK(response->status == 200 && response->body_size == UINT64_MAX);
    WORKS(tsq_file_response_read(response, bytes, sizeof bytes, &length, &err));
    CHECK(length > 4 && memcmp(bytes, "id: ", 4) == 0);
    tsq_file_response_free(response);
}

static void bad_requests_fail(const tsq_client *service) {
    listener all;
    tsq_subscription *subscription = NULL;
    tsq_change_stream *stream = NULL;
    tsq_change_request request = request_of("spaces", "colour=eq.red");
    prepare(&all);
    FAILS(tsq_realtime_subscribe(service, TSQ_STR("bad"), &request, hear, &all, destroy, &subscription, &err),
          TSQ_INVALID_INPUT, subscription, "colour");
    CHECK(all.destroyed == 1 && all.closed == 0);
    FAILS(tsq_realtime_subscribe(service, TSQ_STR("bad"), &request, NULL, &all, destroy, &subscription, &err),
          TSQ_INVALID_INPUT, subscription, "callback is NULL");
    CHECK(all.destroyed == 2);
    FAILS(tsq_realtime_changes(service, NULL, &stream, &err), TSQ_INVALID_INPUT, stream, "request is NULL");
    request = request_of("secrets", "");
    FAILS(tsq_realtime_changes(service, &request, &stream, &err), TSQ_INVALID_INPUT, stream, "secrets");
    request = request_of("spaces", "");
    request.event = 4;
    FAILS(tsq_realtime_changes(service, &request, &stream, &err), TSQ_INVALID_INPUT, stream, "event");
    request.event = 0;
    request.on_close = closed;
    FAILS(tsq_realtime_changes(service, &request, &stream, &err), TSQ_INVALID_INPUT, stream, "on_close");
    CHECK(is(tsq_event_type_name(TSQ_EVENT_ANY), "*") && is_absent(tsq_event_type_name(4)));
    CHECK(tsq_live_query_len(NULL) == 0 && tsq_live_query_changes(NULL) == NULL && !tsq_change_stream_has_ended(NULL));
    finish(&all);
}

int main(int argc, char **argv) {
    tsq_client *client, *service = NULL;
    listener last;
    tsq_change_request request = request_of("spaces", "");
    if (argc < 3) {
        return 2;
    }
    folder = argv[2];
    client = open_client("town");
    WORKS(tsq_client_as_service(client, &service, &err));
    subscriptions_deliver_and_end(service);
    subscriptions_end_with_their_handle(client, service);
    callbacks_unsubscribe_each_other(service);
    a_stream_is_polled(service);
    requests_end_at_their_cursor(service);
    foreign_and_malformed_cursors_are_refused(service);
    a_live_query_follows_its_rows(service);
    a_stream_that_failed_has_ended(client, service);
    events_are_served(client);
    bad_requests_fail(service);
    /* A closed client tells its subscriptions. */
    prepare(&last);
    request.on_close = closed;
    WORKS(tsq_realtime_subscribe(client, TSQ_STR("last"), &request, hear, &last, destroy, NULL, &err));
    WORKS(tsq_client_close(client, &err));
    CHECK(reaches(&last, &last.destroyed, 1) && last.closed == 1 && last.reason == TSQ_OK);
    finish(&last);
    tsq_client_free(service);
    tsq_client_free(client);
    return checks_done("realtime");
}
