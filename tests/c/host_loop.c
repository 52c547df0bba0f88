/* Callbacks on the host's own thread: tsq_client_poll_fd and tsq_client_dispatch with poll(2). Also compiled as C++: keep to the
 * common subset.
 *
 * host_loop CATALOG FOLDER: the catalog is tests/c/catalog.json, the folder is empty. */
#define _POSIX_C_SOURCE 200809L

#include "people.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 60000, MANY = 300 };

static const char *catalog;
static pthread_t main_thread;

/* What the callbacks of a subscription recorded. Without a lock: they run on the thread that dispatches. */
typedef struct listener {
    /* The events as `INSERT|` or `SIGNED_IN|`. */
    char heard[16 * MANY];
    int calls;
    int on_other_thread;
    int closed;
    /* The kind of the reason that on_close got. */
    tsq_status reason;
    int destroyed;
    /* What the callback does: it ends this subscription, frees this handle, and dispatches on this one. */
    tsq_subscription *ends;
    tsq_client *frees;
    const tsq_client *dispatches;
} listener;

static void note(listener *self, tsq_str event) {
    const size_t used = strlen(self->heard);
    snprintf(self->heard + used, sizeof self->heard - used, "%.*s|", TSQ_ARG(event));
    self->calls++;
    self->on_other_thread += !pthread_equal(pthread_self(), main_thread);
}

static void hear_change(const tsq_row_change *change, void *user_data) {
    listener *self = (listener *)user_data;
    note(self, tsq_event_type_name(change->event));
    tsq_subscription_unsubscribe(self->ends);
    tsq_client_free(self->frees);
    self->frees = NULL;
    if (self->dispatches != NULL) tsq_client_dispatch(self->dispatches, NULL);
}

static void hear_session(tsq_auth_event event, const tsq_session *session, void *user_data) {
    (void)session;
    note((listener *)user_data, tsq_auth_event_name(event));
}

static void hear_catalog(const tsq_discovery_stats *stats, void *user_data) {
    note((listener *)user_data, stats->source);
}

static void hear_load(const tsq_error *error, void *user_data) {
    note((listener *)user_data, error == NULL ? TSQ_STR("loaded") : tsq_error_text(error));
}

static void closed(const tsq_error *reason, void *user_data) {
    listener *self = (listener *)user_data;
    self->closed += self->destroyed ? 100 : 1;
    self->reason = reason != NULL ? tsq_error_kind(reason) : TSQ_OK;
}

static void destroy(void *user_data) {
    ((listener *)user_data)->destroyed++;
}

static int heard(const listener *self, const char *events) {
    return self->on_other_thread == 0 && is(tsq_str_from(self->heard), events);
}

static int is_readable(int descriptor, int wait_ms) {
    struct pollfd waits;
    waits.fd = descriptor;
    waits.events = POLLIN;
    waits.revents = 0;
    return poll(&waits, 1, wait_ms) == 1 && waits.revents == POLLIN;
}

static int descriptor_of(const tsq_client *client) {
    int descriptor = 0;
    WORKS(tsq_client_poll_fd(client, &descriptor, &err));
    return descriptor;
}

/* Dispatches until the counter is at least `expected`. */
static int reaches(const tsq_client *client, const int *counter, int expected) {
    const int descriptor = descriptor_of(client);
    while (*counter < expected && is_readable(descriptor, LONG_MS)) WORKS(tsq_client_dispatch(client, &err));
    return *counter == expected;
}

/* Dispatches until nothing waits. */
static void settle(const tsq_client *client) {
    const int descriptor = descriptor_of(client);
    while (is_readable(descriptor, 0)) WORKS(tsq_client_dispatch(client, &err));
}

static tsq_change_request requested(const char *filter) {
    tsq_change_request request;
    memset(&request, 0, sizeof request);
    request.table = TSQ_STR("spaces");
    request.filter = tsq_str_from(filter);
    request.on_close = closed;
    return request;
}

static tsq_subscription *subscribe(const tsq_client *client, const char *filter, listener *self) {
    tsq_subscription *subscription = NULL;
    const tsq_change_request request = requested(filter);
    WORKS(tsq_realtime_subscribe(client, TSQ_STR("test"), &request, hear_change, self, destroy, &subscription, &err));
    return subscription;
}

static void create_space(const tsq_client *service, const char *name) {
    tsq_new_space input;
    memset(&input, 0, sizeof input);
    input.name = tsq_str_from(name);
    WORKS(tsq_spaces_create_space(service, &input, NULL, &err));
}

static void changes_come_when_the_host_dispatches(const tsq_client *service) {
    static listener self;
    const int descriptor = descriptor_of(service);
    tsq_subscription *subscription = subscribe(service, "name=eq.One", &self);
    settle(service);
    CHECK(!is_readable(descriptor, 0) && self.calls == 0);
    create_space(service, "Other");
    create_space(service, "One");
    CHECK(is_readable(descriptor, LONG_MS) && self.calls == 0);
    CHECK(reaches(service, &self.calls, 1) && heard(&self, "INSERT|"));
    settle(service);
    CHECK(!is_readable(descriptor, 0));
    /* More than one turn: the descriptor stays readable. */
    for (int i = 1; i < MANY; i++) create_space(service, "One");
    CHECK(reaches(service, &self.calls, MANY) && self.on_other_thread == 0);
    create_space(service, "One");
    CHECK(is_readable(descriptor, LONG_MS));
    tsq_subscription_unsubscribe(subscription);
    CHECK(self.closed == 1 && self.reason == TSQ_OK && self.destroyed == 1);
    settle(service);
    tsq_subscription_unsubscribe(subscription);
    tsq_subscription_free(subscription);
    CHECK(self.calls == MANY && self.closed == 1 && self.destroyed == 1);
}

static void a_callback_may_end_itself_and_others_and_dispatch(const tsq_client *service) {
    static listener first, second, third;
    tsq_client *handle = NULL;
    WORKS(tsq_client_as_service(service, &handle, &err));
    first.ends = subscribe(service, "name=eq.Quay", &first);
    first.dispatches = service;
    second.ends = subscribe(service, "name=eq.Quay", &second);
    tsq_subscription_free(subscribe(handle, "name=eq.Pier", &third));
    third.frees = handle;
    settle(service);
    create_space(service, "Quay");
    create_space(service, "Quay");
    CHECK(reaches(service, &first.destroyed, 1) && reaches(service, &second.destroyed, 1));
    CHECK(heard(&first, "INSERT|") && heard(&second, "INSERT|") && first.closed == 1 && second.closed == 1);
    create_space(service, "Pier");
    create_space(service, "Pier");
    CHECK(reaches(service, &third.destroyed, 1) && heard(&third, "INSERT|") && third.closed == 1);
    tsq_subscription_free(first.ends);
    tsq_subscription_free(second.ends);
}

static void events_of_the_session_and_the_catalog_come_too(const tsq_client *client) {
    static listener session, late, list, load;
    tsq_subscription *of_session = NULL, *of_late = NULL, *of_catalog = NULL;
    WORKS(tsq_auth_on_auth_state_change(client, hear_session, &session, destroy, &of_session, &err));
    WORKS(tsq_auth_on_auth_state_change(client, hear_session, &late, destroy, &of_late, &err));
    CHECK(reaches(client, &session.calls, 1) && heard(&session, "INITIAL_SESSION|"));
    WORKS(tsq_auth_sign_in(client, TSQ_STR("ann@town.example"), TSQ_STR(PASSWORD), NULL, &err));
    WORKS(tsq_auth_sign_out(client, &err));
    CHECK(reaches(client, &session.calls, 3) && heard(&session, "INITIAL_SESSION|SIGNED_IN|SIGNED_OUT|"));
    settle(client);
    WORKS(tsq_auth_sign_in(client, TSQ_STR("ann@town.example"), TSQ_STR(PASSWORD), NULL, &err));
    /* Unsubscribing delivers what happened before, on this thread. */
    tsq_subscription_unsubscribe(of_late);
    CHECK(heard(&late, "INITIAL_SESSION|SIGNED_IN|SIGNED_OUT|SIGNED_IN|") && late.destroyed == 1);
    WORKS(tsq_discovery_on_catalog_change(client, hear_catalog, &list, destroy, &of_catalog, &err));
    WORKS(tsq_discovery_preload(client, hear_load, &load, destroy, &err));
    CHECK(reaches(client, &load.destroyed, 1) && heard(&load, "loaded|"));
    CHECK(reaches(client, &list.calls, 1) && list.on_other_thread == 0);
    tsq_subscription_unsubscribe(of_session);
    tsq_subscription_unsubscribe(of_catalog);
    CHECK(session.destroyed == 1 && list.destroyed == 1);
    tsq_subscription_free(of_session);
    tsq_subscription_free(of_late);
    tsq_subscription_free(of_catalog);
}

static void a_subscription_on_the_loop_ends_at_its_cursor(const tsq_client *service) {
    static listener self;
    tsq_change_request request = requested("");
    tsq_subscription *subscription = NULL;
    tsq_string *start = NULL, *end = NULL;
    WORKS(tsq_realtime_cursor(service, &start, &err));
    create_space(service, "Before");
    WORKS(tsq_realtime_cursor(service, &end, &err));
    create_space(service, "After");
    request.since = tsq_string_view(start);
    request.until = tsq_string_view(end);
    WORKS(tsq_realtime_subscribe(service, TSQ_STR("past"), &request, hear_change, &self, destroy, &subscription, &err));
    CHECK(reaches(service, &self.closed, 1) && self.reason == TSQ_OK && heard(&self, "INSERT|"));
    tsq_subscription_free(subscription);
    CHECK(self.destroyed == 1);
    tsq_string_free(start);
    tsq_string_free(end);
    settle(service);
}

/* Takes changes of a stream until there is none. */
static int taken(tsq_change_stream *stream) {
    int count = 0;
    for (;; count++) {
        tsq_row_change *change = NULL;
        WORKS(tsq_change_stream_next(stream, 0, &change, &err));
        if (change == NULL) return count;
        tsq_row_change_free(change);
    }
}

static void streams_make_the_descriptor_readable(const tsq_client *service) {
    tsq_change_stream *stream = NULL;
    tsq_live_query *live = NULL;
    tsq_change_request request = requested("name=eq.Mole");
    const int descriptor = descriptor_of(service);
    request.on_close = NULL;
    WORKS(tsq_realtime_changes(service, &request, &stream, &err));
    WORKS(tsq_realtime_live(service, TSQ_STR("spaces"), TSQ_STR("name=eq.Mole"), &live, &err));
    CHECK(is_readable(descriptor, 0));
    for (int round = 0; round < 3; round++) {
        int found = round == 0 ? 2 : 0;
        while (found < 2 && is_readable(descriptor, LONG_MS)) {
            WORKS(tsq_client_dispatch(service, &err));
            found += taken(stream) + taken(tsq_live_query_changes(live));
        }
        CHECK(found == 2);
        WORKS(tsq_client_dispatch(service, &err));
        CHECK(taken(stream) == 0 && taken(tsq_live_query_changes(live)) == 0);
        settle(service);
        CHECK(!is_readable(descriptor, 0));
        create_space(service, "Mole");
    }
    WORKS(tsq_change_stream_close(stream, &err));
    CHECK(is_readable(descriptor, LONG_MS));
    tsq_live_query_free(live);
    tsq_change_stream_free(stream);
    settle(service);
}

static void a_session_that_ends_tells_why(const tsq_client *client, const tsq_client *service) {
    static listener self;
    tsq_session *session = meet(service, "ben@town.example");
    tsq_client *ben = act_as(client, session);
    CHECK(descriptor_of(ben) == descriptor_of(client));
    tsq_subscription_free(subscribe(ben, "", &self));
    settle(client);
    WORKS(tsq_auth_delete_user(service, id_of(session), &err));
    CHECK(reaches(client, &self.destroyed, 1) && self.closed == 1 && self.reason == TSQ_UNAUTHORIZED);
    tsq_client_free(ben);
    tsq_session_free(session);
}

/* A callback whose subscription another thread ends while it runs: by unsubscribing, or by freeing its handle. */
typedef struct slow {
    tsq_subscription *subscription;
    tsq_client *owner;
    pthread_t thread;
    pthread_mutex_t lock;
    int runs;
    int has_unsubscribed;
    int is_early;
    int destroyed;
} slow;

static void *unsubscribe(void *user_data) {
    slow *self = (slow *)user_data;
    if (self->owner == NULL) tsq_subscription_unsubscribe(self->subscription);
    tsq_client_free(self->owner);
    pthread_mutex_lock(&self->lock);
    self->has_unsubscribed = 1;
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void hear_slowly(const tsq_row_change *change, void *user_data) {
    slow *self = (slow *)user_data;
    (void)change;
    self->runs++;
    if (pthread_create(&self->thread, NULL, unsubscribe, self) != 0) return;
    /* The other thread has time to return too early. */
    poll(NULL, 0, 100);
    pthread_mutex_lock(&self->lock);
    self->is_early = self->has_unsubscribed || self->destroyed;
    pthread_mutex_unlock(&self->lock);
}

static void destroy_slow(void *user_data) {
    ((slow *)user_data)->destroyed++;
}

static void ends_only_after_a_callback_that_runs(const tsq_client *service, const tsq_client *owner, slow *self) {
    tsq_change_request request = requested("name=eq.Slow");
    request.on_close = NULL;
    pthread_mutex_init(&self->lock, NULL);
    WORKS(tsq_realtime_subscribe(owner, TSQ_STR("slow"), &request, hear_slowly, self, destroy_slow, &self->subscription, &err));
    settle(service);
    create_space(service, "Slow");
    create_space(service, "Slow");
    CHECK(reaches(service, &self->runs, 1));
    pthread_join(self->thread, NULL);
    settle(service);
    CHECK(self->runs == 1 && self->has_unsubscribed && !self->is_early && self->destroyed == 1);
    tsq_subscription_free(self->subscription);
    pthread_mutex_destroy(&self->lock);
}

static void unsubscribing_waits_for_a_callback_that_runs(const tsq_client *service) {
    static slow self;
    ends_only_after_a_callback_that_runs(service, service, &self);
}

/* The host frees what the callback uses after that. */
static void freeing_a_handle_waits_for_its_callback(const tsq_client *client, const tsq_client *service) {
    static slow self;
    WORKS(tsq_client_as_service(client, &self.owner, &err));
    ends_only_after_a_callback_that_runs(service, self.owner, &self);
}

#ifndef ADDRESS_SANITIZER
/* Not under AddressSanitizer: the child of a process with threads may wait for ever for a lock of its allocator. */
static void a_child_process_has_no_loop(const tsq_client *service) {
    static listener self;
    tsq_subscription *subscription = subscribe(service, "", &self);
    const pid_t child = fork();
    if (child == 0) {
        int descriptor = 7;
        const int refused = tsq_client_poll_fd(service, &descriptor, NULL) == TSQ_CLOSED && descriptor == 0 &&
                            tsq_client_dispatch(service, NULL) == TSQ_CLOSED;
        tsq_subscription_unsubscribe(subscription);
        _exit(refused && self.destroyed == 0 ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    tsq_subscription_unsubscribe(subscription);
    CHECK(self.destroyed == 1);
    tsq_subscription_free(subscription);
}
#endif

static void calls_without_a_loop_are_refused(const tsq_client *client) {
    int descriptor = 7;
    FAILS(tsq_client_dispatch(client, &err), TSQ_INVALID_INPUT, NULL, "needs an earlier tsq_client_poll_fd");
    FAILS(tsq_client_dispatch(NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument client is NULL");
    FAILS(tsq_client_poll_fd(client, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_client_poll_fd(NULL, &descriptor, &err), TSQ_INVALID_INPUT, NULL, "Argument client is NULL");
    CHECK(descriptor == 0);
}

static void closing_ends_what_is_on_the_loop(tsq_client *client, tsq_client *service) {
    static listener of_client, of_service, of_session, of_load;
    int descriptor = 7;
    tsq_subscription_free(subscribe(client, "", &of_client));
    tsq_subscription_free(subscribe(service, "", &of_service));
    WORKS(tsq_auth_on_auth_state_change(client, hear_session, &of_session, destroy, NULL, &err));
    WORKS(tsq_discovery_preload(client, hear_load, &of_load, destroy, &err));
    WORKS(tsq_client_close(service, &err));
    CHECK(of_service.closed == 1 && of_service.destroyed == 1 && of_client.destroyed == 0);
    WORKS(tsq_client_close(client, &err));
    CHECK(of_client.closed == 1 && of_client.reason == TSQ_OK && of_client.destroyed == 1 && of_client.calls == 0);
    CHECK(of_session.destroyed == 1 && of_load.destroyed == 1);
    FAILS(tsq_client_dispatch(client, &err), TSQ_CLOSED, NULL, "closed");
    FAILS(tsq_client_poll_fd(client, &descriptor, &err), TSQ_CLOSED, NULL, "closed");
    tsq_client_free(client);
    tsq_client_free(service);
    CHECK(of_client.destroyed == 1 && of_service.destroyed == 1);
}

static void freeing_ends_what_is_on_the_loop(void) {
    static listener self, of_session;
    tsq_client *client = open_client("other");
    (void)descriptor_of(client);
    tsq_subscription *subscription = subscribe(client, "", &self);
    WORKS(tsq_auth_on_auth_state_change(client, hear_session, &of_session, destroy, NULL, &err));
    tsq_client_free(client);
    CHECK(self.closed == 1 && self.destroyed == 1 && of_session.destroyed == 1);
    tsq_subscription_unsubscribe(subscription);
    tsq_subscription_free(subscription);
}

/* Also the last handle of the client, in the dispatch that it makes, with changes waiting. */
static void a_callback_may_free_the_handle_that_dispatches(void) {
    static listener self;
    tsq_client *client = open_client("third"), *service = NULL;
    (void)descriptor_of(client);
    WORKS(tsq_client_as_service(client, &service, &err));
    tsq_subscription_free(subscribe(service, "", &self));
    tsq_client_free(client);
    settle(service);
    for (int i = 0; i < 5; i++) create_space(service, "Quay");
    self.frees = service;
    while (self.calls == 0 && is_readable(descriptor_of(service), LONG_MS)) WORKS(tsq_client_dispatch(service, &err));
    CHECK(heard(&self, "INSERT|") && self.closed == 1 && self.destroyed == 1);
}

int main(int argc, char **argv) {
    tsq_client *client = NULL, *service = NULL;
    tsq_config *config = tsq_config_new();
    char data_dir[4096];
    if (argc < 3) return 2;
    catalog = argv[1];
    folder = argv[2];
    main_thread = pthread_self();
    snprintf(data_dir, sizeof data_dir, "%s/town", folder);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(data_dir), &err));
    WORKS(tsq_config_set(config, TSQ_STR("catalog_url"), tsq_str_from(catalog), &err));
    if (getenv("TSQ_TEST_DATABASE_URL") != NULL) {
        WORKS(tsq_config_set(config, TSQ_STR("database_url"), tsq_str_from(getenv("TSQ_TEST_DATABASE_URL")), &err));
    }
    WORKS(tsq_client_open(config, &client, &err));
    tsq_config_free(config);
    calls_without_a_loop_are_refused(client);
    (void)descriptor_of(client);
    WORKS(tsq_client_as_service(client, &service, &err));
    WORKS(tsq_auth_sign_up(service, TSQ_STR("ann@town.example"), TSQ_STR(PASSWORD), NULL, &err));
    changes_come_when_the_host_dispatches(service);
    a_callback_may_end_itself_and_others_and_dispatch(service);
    events_of_the_session_and_the_catalog_come_too(client);
    a_subscription_on_the_loop_ends_at_its_cursor(service);
    streams_make_the_descriptor_readable(service);
    a_session_that_ends_tells_why(client, service);
    unsubscribing_waits_for_a_callback_that_runs(service);
    freeing_a_handle_waits_for_its_callback(client, service);
#ifndef ADDRESS_SANITIZER
    a_child_process_has_no_loop(service);
#endif
    freeing_ends_what_is_on_the_loop();
    a_callback_may_free_the_handle_that_dispatches();
    closing_ends_what_is_on_the_loop(client, service);
    return checks_done("host_loop");
}
