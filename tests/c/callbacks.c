/* The rules of callbacks from C (DESIGN 5, 10): closing inside one, the output before the first call, preload, the log.
 * Also compiled as C++: keep to the common subset.
 *
 * callbacks CATALOG FOLDER: the catalog is tests/c/catalog.json, the folder is empty. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "rows.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

static const char *catalog;

/* What callbacks recorded. They run on threads of the library. */
typedef struct record {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int calls;
    int destroyed;
    /* The status of the last preload. */
    tsq_status status;
    /* The status of tsq_client_close or tsq_set_log inside the callback, and its message. */
    tsq_status inner;
    char message[256];
    /* The client that the callback closes. */
    tsq_client *client;
    /* Where the callback expects its subscription, and how often it was missing. */
    tsq_subscription *subscription;
    int missing;
} record;

static void prepare(record *self, tsq_client *client) {
    memset(self, 0, sizeof *self);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
    self->client = client;
}

static void finish(record *self) {
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
}

static void destroy(void *user_data) {
    record *self = (record *)user_data;
    pthread_mutex_lock(&self->lock);
    self->destroyed++;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

/* Waits, at most a minute, for this number of calls and of destroyed data. */
static int becomes(record *self, int calls, int destroyed) {
    struct timespec deadline;
    int timed_out = 0;
    int as_expected;
    timespec_get(&deadline, TIME_UTC);
    deadline.tv_sec += 60;
    pthread_mutex_lock(&self->lock);
    while ((self->calls < calls || self->destroyed < destroyed) && !timed_out) {
        timed_out = pthread_cond_timedwait(&self->changed, &self->lock, &deadline) != 0;
    }
    as_expected = self->calls >= calls && self->destroyed == destroyed;
    if (!as_expected) {
        fprintf(stderr, "  called %d times, destroyed %d times\n", self->calls, self->destroyed);
    }
    pthread_mutex_unlock(&self->lock);
    return as_expected;
}

/* Records the result of a call inside a callback. */
static void called(record *self, tsq_status inner, tsq_error *error) {
    pthread_mutex_lock(&self->lock);
    self->inner = inner;
    snprintf(self->message, sizeof self->message, "%.*s", TSQ_ARG(tsq_error_text(error)));
    self->calls++;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    tsq_error_free(error);
}

static void close_on_event(tsq_auth_event event, const tsq_session *session, void *user_data) {
    record *self = (record *)user_data;
    tsq_error *error = NULL;
    const tsq_status status = tsq_client_close(self->client, &error);
    (void)event;
    (void)session;
    called(self, status, error);
}

static void close_on_preload(const tsq_error *loaded, void *user_data) {
    record *self = (record *)user_data;
    tsq_error *error = NULL;
    const tsq_status status = tsq_client_close(self->client, &error);
    self->status = tsq_error_kind(loaded);
    called(self, status, error);
}

static tsq_client *open_catalog(const char *name, const char *path) {
    char text[4096];
    tsq_client *client = NULL;
    tsq_config *config = tsq_config_new();
    snprintf(text, sizeof text, "%s/%s", folder, name);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    snprintf(text, sizeof text, "file://%s", path);
    WORKS(tsq_config_set(config, TSQ_STR("catalog_url"), tsq_str_from(text), &err));
    WORKS(tsq_client_open(config, &client, &err));
    tsq_config_free(config);
    return client;
}

static void closing_inside_a_callback_is_refused(void) {
    record closing;
    tsq_subscription *subscription = NULL;
    tsq_client *client = open_client("close");
    tsq_client *service = NULL;
    prepare(&closing, client);
    WORKS(tsq_auth_on_auth_state_change(client, close_on_event, &closing, destroy, &subscription, &err));
    CHECK(becomes(&closing, 1, 0));
    CHECK(closing.inner == TSQ_INVALID_INPUT && has(tsq_str_from(closing.message), "tsq_client_close was called inside a callback"));
    CHECK(!tsq_client_is_closed(client));
    tsq_subscription_unsubscribe(subscription);
    tsq_subscription_free(subscription);
    CHECK(closing.destroyed == 1);
    finish(&closing);

    /* A handle of another caller may be closed there: that waits for nothing, and ends the subscription. */
    WORKS(tsq_client_as_service(client, &service, &err));
    prepare(&closing, service);
    WORKS(tsq_auth_on_auth_state_change(service, close_on_event, &closing, destroy, &subscription, &err));
    CHECK(becomes(&closing, 1, 1));
    CHECK(closing.inner == TSQ_OK && tsq_client_is_closed(service) && !tsq_client_is_closed(client));
    tsq_subscription_free(subscription);
    tsq_client_free(service);
    WORKS(tsq_client_close(client, &err));
    CHECK(tsq_client_is_closed(client));
    tsq_client_free(client);
    finish(&closing);
}

/* A destroy that tries to close the client. */
static void close_on_destroy(void *user_data) {
    record *self = (record *)user_data;
    tsq_error *error = NULL;
    const tsq_status status = tsq_client_close(self->client, &error);
    called(self, status, error);
    destroy(user_data);
}

static void ignore_event(tsq_auth_event event, const tsq_session *session, void *user_data) {
    (void)event;
    (void)session;
    (void)user_data;
}

static void ignore_change(const tsq_row_change *change, void *user_data) {
    (void)change;
    (void)user_data;
}

static void ignore_stats(const tsq_discovery_stats *stats, void *user_data) {
    (void)stats;
    (void)user_data;
}

static void ignore_preload(const tsq_error *error, void *user_data) {
    (void)error;
    (void)user_data;
}

/* Whether the data was destroyed once, and the destroy could not close the client. */
static int was_refused(record *closing) {
    const int refused = closing->calls == 1 && closing->destroyed == 1 && closing->inner == TSQ_INVALID_INPUT &&
                        !tsq_client_is_closed(closing->client);
    closing->calls = closing->destroyed = 0;
    closing->inner = TSQ_OK;
    return refused;
}

static void closing_inside_the_destroy_of_a_failing_call_is_refused(void) {
    static tsq_change_request no_request;
    tsq_change_request request = no_request;
    record closing;
    tsq_subscription *subscription = NULL;
    tsq_client *client = open_client("destroy");
    int descriptor = -1;
    prepare(&closing, client);
    /* On threads of the library, and on the loop of the host. */
    for (int round = 0; round < 2; round++) {
        FAILS(tsq_auth_on_auth_state_change(client, NULL, &closing, close_on_destroy, &subscription, &err), TSQ_INVALID_INPUT,
              subscription, "Argument callback is NULL");
        CHECK(was_refused(&closing));
        FAILS(tsq_auth_on_auth_state_change(NULL, ignore_event, &closing, close_on_destroy, &subscription, &err),
              TSQ_INVALID_INPUT, subscription, "Argument client is NULL");
        CHECK(was_refused(&closing));
        request.table = TSQ_STR("no such table");
        FAILS(tsq_realtime_subscribe(client, TSQ_STR("a"), &request, ignore_change, &closing, close_on_destroy, &subscription, &err),
              TSQ_INVALID_INPUT, subscription, "Subscribe failed: ");
        CHECK(was_refused(&closing));
        request.table = TSQ_STR("spaces");
        request.filter = TSQ_STR("no filter");
        FAILS(tsq_realtime_subscribe(client, TSQ_STR("a"), &request, ignore_change, &closing, close_on_destroy, &subscription, &err),
              TSQ_INVALID_INPUT, subscription, "Subscribe failed: ");
        CHECK(was_refused(&closing));
        FAILS(tsq_realtime_subscribe(client, TSQ_STR("a"), NULL, ignore_change, &closing, close_on_destroy, &subscription, &err),
              TSQ_INVALID_INPUT, subscription, "Subscribe failed: ");
        CHECK(was_refused(&closing));
        FAILS(tsq_discovery_on_catalog_change(NULL, ignore_stats, &closing, close_on_destroy, &subscription, &err),
              TSQ_INVALID_INPUT, subscription, "Argument client is NULL");
        CHECK(was_refused(&closing));
        FAILS(tsq_discovery_preload(NULL, ignore_preload, &closing, close_on_destroy, &err), TSQ_INVALID_INPUT, NULL,
              "Argument client is NULL");
        CHECK(was_refused(&closing));
        WORKS(tsq_set_log(NULL, &closing, close_on_destroy, &err));
        CHECK(was_refused(&closing));
#ifndef _WIN32
        WORKS(tsq_client_poll_fd(client, &descriptor, &err));
#endif
    }
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(client);
    finish(&closing);
}

static void note_subscription(tsq_auth_event event, const tsq_session *session, void *user_data) {
    record *self = (record *)user_data;
    /* No lock: the library promises that the output is set before the first call. */
    self->missing += self->subscription == NULL;
    (void)event;
    (void)session;
    called(self, TSQ_OK, NULL);
}

enum { SUBSCRIPTIONS = 50 };

/* On one processor and at idle priority, so that the callback's thread runs before the subscribing call returns. */
static void *subscribe_idly(void *client) {
    int missing = 0;
#ifdef __linux__
    struct sched_param none;
    memset(&none, 0, sizeof none);
    sched_setscheduler(0, SCHED_IDLE, &none);
#endif
    for (int i = 0; i < SUBSCRIPTIONS; i++) {
        record noting;
        prepare(&noting, NULL);
        missing += tsq_auth_on_auth_state_change((const tsq_client *)client, note_subscription, &noting, destroy, &noting.subscription,
                                                 NULL) != TSQ_OK;
        missing += !becomes(&noting, 1, 0);
        tsq_subscription_unsubscribe(noting.subscription);
        missing += noting.missing;
        tsq_subscription_free(noting.subscription);
        finish(&noting);
    }
    return missing == 0 ? NULL : client;
}

static void the_output_is_set_before_the_first_call(void) {
    pthread_t thread;
    record warm;
    void *missing = NULL;
    tsq_subscription *subscription = NULL;
    tsq_client *client = NULL;
#ifdef __linux__
    cpu_set_t all, one;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
#endif
    client = open_client("output");
    /* Starts the callback's thread at normal priority. */
    prepare(&warm, client);
    warm.subscription = (tsq_subscription *)1;
    WORKS(tsq_auth_on_auth_state_change(client, note_subscription, &warm, destroy, &subscription, &err));
    CHECK(becomes(&warm, 1, 0));
    CHECK(pthread_create(&thread, NULL, subscribe_idly, client) == 0);
    CHECK(pthread_join(thread, &missing) == 0);
    CHECK(missing == NULL);
    tsq_subscription_unsubscribe(subscription);
    tsq_subscription_free(subscription);
    tsq_client_free(client);
    finish(&warm);
#ifdef __linux__
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
#endif
}

static void preload_loads_the_catalog_and_reports(void) {
    char path[4096];
    record loading;
    tsq_discovery_stats *stats = NULL;
    tsq_client *client = open_catalog("preload", catalog);
    WORKS(tsq_discovery_get_stats(client, &stats, &err));
    CHECK(is(stats->source, "none") && stats->total == 0);
    tsq_discovery_stats_free(stats);
    prepare(&loading, client);
    WORKS(tsq_discovery_preload(client, close_on_preload, &loading, destroy, &err));
    CHECK(becomes(&loading, 1, 1));
    CHECK(loading.status == TSQ_OK && loading.inner == TSQ_INVALID_INPUT && loading.calls == 1);
    WORKS(tsq_discovery_get_stats(client, &stats, &err));
    CHECK(is(stats->source, "file") && stats->total == 4);
    tsq_discovery_stats_free(stats);

    FAILS(tsq_discovery_preload(client, NULL, &loading, destroy, &err), TSQ_INVALID_INPUT, NULL, "Argument callback is NULL");
    FAILS(tsq_discovery_preload(NULL, close_on_preload, &loading, destroy, &err), TSQ_INVALID_INPUT, NULL, "Argument client is NULL");
    WORKS(tsq_client_close(client, &err));
    FAILS(tsq_discovery_preload(client, close_on_preload, &loading, destroy, &err), TSQ_CLOSED, NULL, "");
    CHECK(becomes(&loading, 1, 4) && loading.calls == 1);
    tsq_client_free(client);
    finish(&loading);

    snprintf(path, sizeof path, "%s/no-such-catalog.json", folder);
    client = open_catalog("preload-fails", path);
    prepare(&loading, client);
    WORKS(tsq_discovery_preload(client, close_on_preload, &loading, destroy, &err));
    CHECK(becomes(&loading, 1, 1) && loading.status == TSQ_UNAVAILABLE);
    tsq_client_free(client);
    finish(&loading);

    client = open_client("preload-keyless");
    prepare(&loading, client);
    WORKS(tsq_discovery_preload(client, close_on_preload, &loading, destroy, &err));
    CHECK(becomes(&loading, 1, 1) && loading.status == TSQ_OK);
    tsq_client_free(client);
    finish(&loading);
}

static void log_event(const tsq_log_event *event, void *user_data) {
    record *self = (record *)user_data;
    tsq_error *error = NULL;
    const tsq_status status = tsq_set_log(NULL, NULL, NULL, &error);
    pthread_mutex_lock(&self->lock);
    /* Anything else than an event of the library counts as missing. */
    self->missing += event->level < TSQ_LOG_ERROR || event->level > TSQ_LOG_TRACE || event->message.len == 0 ||
                     event->target.len < strlen("townsquare") || memcmp(event->target.ptr, "townsquare", strlen("townsquare")) != 0;
    pthread_mutex_unlock(&self->lock);
    called(self, status, error);
}

static void fail_to_load(tsq_client *client) {
    tsq_mini_apps *apps = NULL;
    FAILS(tsq_discovery_get_trending_mini_apps(client, absent, NULL, &apps, &err), TSQ_UNAVAILABLE, apps, "");
}

static void the_log_callback_receives_events_until_it_is_replaced(void) {
    char path[4096];
    record first, second;
    tsq_client *client;
    int calls;
    prepare(&first, NULL);
    prepare(&second, NULL);
    WORKS(tsq_set_log(log_event, &first, destroy, &err));
    snprintf(path, sizeof path, "%s/no-such-catalog.json", folder);
    client = open_catalog("log", path);
    fail_to_load(client);
    CHECK(becomes(&first, 1, 0) && first.missing == 0);
    CHECK(first.inner == TSQ_INVALID_INPUT && has(tsq_str_from(first.message), "tsq_set_log was called inside a log callback"));
    tsq_client_free(client);

    WORKS(tsq_set_log(log_event, &second, destroy, &err));
    CHECK(first.destroyed == 1);
    calls = first.calls;
    client = open_catalog("log-again", path);
    fail_to_load(client);
    CHECK(becomes(&second, 1, 0) && first.calls == calls);
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(client);
    WORKS(tsq_set_log(NULL, NULL, NULL, &err));
    CHECK(second.destroyed == 1);
    finish(&first);
    finish(&second);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    catalog = argv[1];
    folder = argv[2];
    closing_inside_a_callback_is_refused();
    closing_inside_the_destroy_of_a_failing_call_is_refused();
    the_output_is_set_before_the_first_call();
    preload_loads_the_catalog_and_reports();
    the_log_callback_receives_events_until_it_is_replaced();
    return checks_done("callbacks");
}
