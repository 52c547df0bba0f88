/* Subscriptions to the events of a session from C (DESIGN 8, 10; SPEC 5.3, 6.4). Also compiled as C++: keep to the common subset.
 *
 * auth_events CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "people.h"

#include <pthread.h>

#define ANN "ann@town.example"

/* The state of a callback, which runs on threads of the library. */
typedef struct listener {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* The events as `EVENT:address|` or `EVENT:-|`. */
    char heard[1024];
    int calls;
    int destroyed;
    int is_running;
    /* When set, the callback calls the library on this handle. */
    const tsq_client *works_for;
    /* Whether the callback unsubscribes itself. */
    int leaves;
    tsq_subscription *subscription;
} listener;

static void prepare(listener *self) {
    memset(self, 0, sizeof *self);
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->changed, NULL);
}

static void finish(listener *self) {
    tsq_subscription_free(self->subscription);
    pthread_cond_destroy(&self->changed);
    pthread_mutex_destroy(&self->lock);
}

static void hear(tsq_auth_event event, const tsq_session *session, void *user_data) {
    listener *self = (listener *)user_data;
    tsq_subscription *own = NULL;
    tsq_session *found = NULL;
    size_t used;
    pthread_mutex_lock(&self->lock);
    self->is_running = 1;
    self->calls++;
    used = strlen(self->heard);
    snprintf(self->heard + used, sizeof self->heard - used, "%.*s:%.*s|", TSQ_ARG(tsq_auth_event_name(event)),
             session != NULL ? (int)session->user->email.len : 1,
             session != NULL ? session->user->email.ptr : "-");
    own = self->leaves ? self->subscription : NULL;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
    if (self->works_for != NULL) {
        /* Takes as long as a password hash. */
        tsq_auth_sign_in(self->works_for, TSQ_STR("nobody@town.example"), TSQ_STR(WRONG_PASSWORD), &found, NULL);
        tsq_auth_get_session(self->works_for, &found, NULL);
        tsq_session_free(found);
    }
    tsq_subscription_unsubscribe(own);
    pthread_mutex_lock(&self->lock);
    self->is_running = 0;
    pthread_mutex_unlock(&self->lock);
}

static void destroy(void *user_data) {
    listener *self = (listener *)user_data;
    pthread_mutex_lock(&self->lock);
    /* 100 marks an error: destroyed while the callback runs. */
    self->destroyed += self->is_running ? 100 : 1;
    pthread_cond_broadcast(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

/* Waits, at most a minute, for this number of calls and of destroyed data. */
static int becomes(listener *self, int calls, int destroyed) {
    struct timespec deadline;
    int timed_out = 0;
    int as_expected;
    timespec_get(&deadline, TIME_UTC);
    deadline.tv_sec += 60;
    pthread_mutex_lock(&self->lock);
    while ((self->calls < calls || self->destroyed < destroyed) && !timed_out) {
        timed_out = pthread_cond_timedwait(&self->changed, &self->lock, &deadline) != 0;
    }
    as_expected = self->calls == calls && self->destroyed == destroyed;
    if (!as_expected) {
        fprintf(stderr, "  called %d times, destroyed %d times: %s\n", self->calls, self->destroyed, self->heard);
    }
    pthread_mutex_unlock(&self->lock);
    return as_expected;
}

static void subscribe(const tsq_client *client, listener *self) {
    pthread_mutex_lock(&self->lock);
    WORKS(tsq_auth_on_auth_state_change(client, hear, self, destroy, &self->subscription, &err));
    pthread_mutex_unlock(&self->lock);
}

static void sign_in(const tsq_client *client) {
    WORKS(tsq_auth_sign_in(client, TSQ_STR(ANN), TSQ_STR(PASSWORD), NULL, &err));
}

static void events_have_names(void) {
    CHECK(TSQ_INITIAL_SESSION == 0 && is(tsq_auth_event_name(TSQ_INITIAL_SESSION), "INITIAL_SESSION"));
    CHECK(is(tsq_auth_event_name(TSQ_SIGNED_IN), "SIGNED_IN") && is(tsq_auth_event_name(TSQ_SIGNED_OUT), "SIGNED_OUT"));
    CHECK(is(tsq_auth_event_name(TSQ_TOKEN_REFRESHED), "TOKEN_REFRESHED") && is(tsq_auth_event_name(TSQ_USER_UPDATED), "USER_UPDATED"));
    CHECK(is_absent(tsq_auth_event_name(-1)) && is_absent(tsq_auth_event_name(5)));
}

static void events_are_delivered_in_order(const tsq_client *client) {
    listener first, second;
    tsq_user_patch patch;
    memset(&patch, 0, sizeof patch);
    patch.email = TSQ_STR("anna@town.example");
    prepare(&first);
    prepare(&second);
    subscribe(client, &first);
    sign_in(client);
    subscribe(client, &second);
    WORKS(tsq_auth_refresh_session(client, NULL, &err));
    WORKS(tsq_auth_update_user(client, TSQ_STR(PASSWORD), &patch, NULL, &err));
    patch.email = TSQ_STR(ANN);
    WORKS(tsq_auth_update_user(client, TSQ_STR(PASSWORD), &patch, NULL, &err));
    WORKS(tsq_auth_sign_out(client, &err));
    WORKS(tsq_auth_sign_out(client, &err));
    CHECK(becomes(&first, 6, 0) && becomes(&second, 5, 0));
    tsq_subscription_unsubscribe(first.subscription);
    tsq_subscription_unsubscribe(second.subscription);
    tsq_subscription_unsubscribe(second.subscription);
    CHECK(first.destroyed == 1 && second.destroyed == 1);
    CHECK(is(tsq_str_from(first.heard), "INITIAL_SESSION:-|SIGNED_IN:" ANN "|TOKEN_REFRESHED:" ANN "|"
                                        "USER_UPDATED:anna@town.example|USER_UPDATED:" ANN "|SIGNED_OUT:-|"));
    CHECK(is(tsq_str_from(second.heard), "INITIAL_SESSION:" ANN "|TOKEN_REFRESHED:" ANN "|USER_UPDATED:anna@town.example|"
                                         "USER_UPDATED:" ANN "|SIGNED_OUT:-|"));
    sign_in(client);
    WORKS(tsq_auth_sign_out(client, &err));
    CHECK(becomes(&first, 6, 1) && becomes(&second, 5, 1));
    finish(&first);
    finish(&second);
}

static void unsubscribe_waits_for_a_running_callback(const tsq_client *client, const tsq_client *service) {
    for (int round = 0; round < 3; round++) {
        listener busy;
        prepare(&busy);
        busy.works_for = round == 0 ? client : service;
        subscribe(client, &busy);
        CHECK(becomes(&busy, 1, 0));
        tsq_subscription_unsubscribe(busy.subscription);
        CHECK(!busy.is_running && busy.destroyed == 1 && busy.calls == 1);
        finish(&busy);
    }
}

static void a_callback_may_unsubscribe_itself(const tsq_client *client) {
    listener leaving;
    prepare(&leaving);
    leaving.leaves = 1;
    subscribe(client, &leaving);
    sign_in(client);
    WORKS(tsq_auth_sign_out(client, &err));
    CHECK(becomes(&leaving, 1, 1));
    tsq_subscription_unsubscribe(leaving.subscription);
    CHECK(is(tsq_str_from(leaving.heard), "INITIAL_SESSION:-|"));
    finish(&leaving);
}

enum { THREADS = 8, ROUNDS = 50 };

/* Returns NULL on success, because CHECK is for the main thread only. */
static void *subscribe_and_unsubscribe(void *client) {
    int wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        listener passing;
        prepare(&passing);
        passing.leaves = round % 2;
        pthread_mutex_lock(&passing.lock);
        wrong += tsq_auth_on_auth_state_change((const tsq_client *)client, hear, &passing, destroy, &passing.subscription, NULL) != TSQ_OK;
        pthread_mutex_unlock(&passing.lock);
        tsq_subscription_unsubscribe(passing.subscription);
        wrong += passing.is_running || passing.destroyed != 1;
        finish(&passing);
    }
    return wrong == 0 ? NULL : client;
}

static void threads_subscribe_and_unsubscribe_while_the_session_changes(tsq_client *client) {
    pthread_t threads[THREADS];
    sign_in(client);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, subscribe_and_unsubscribe, client) == 0);
    }
    for (int i = 0; i < 20; i++) {
        WORKS(tsq_auth_refresh_session(client, NULL, &err));
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong = client;
        CHECK(pthread_join(threads[i], &wrong) == 0);
        CHECK(wrong == NULL);
    }
    WORKS(tsq_auth_sign_out(client, &err));
}

static void a_freed_subscription_lasts_until_its_handle_is_freed(const tsq_client *service) {
    listener lasting, unnamed, bare;
    tsq_session *session = NULL;
    tsq_client *handle = NULL;
    WORKS(tsq_auth_sign_in(service, TSQ_STR(ANN), TSQ_STR(PASSWORD), &session, &err));
    handle = act_as(service, session);
    prepare(&lasting);
    prepare(&unnamed);
    prepare(&bare);
    subscribe(handle, &lasting);
    tsq_subscription_free(lasting.subscription);
    lasting.subscription = NULL;
    WORKS(tsq_auth_on_auth_state_change(handle, hear, &unnamed, destroy, NULL, &err));
    WORKS(tsq_auth_on_auth_state_change(handle, hear, &bare, NULL, &bare.subscription, &err));
    WORKS(tsq_auth_sign_out(handle, &err));
    CHECK(becomes(&lasting, 2, 0) && becomes(&unnamed, 2, 0) && becomes(&bare, 2, 0));
    tsq_subscription_unsubscribe(bare.subscription);
    tsq_client_free(handle);
    CHECK(becomes(&lasting, 2, 1) && becomes(&unnamed, 2, 1) && becomes(&bare, 2, 0));
    CHECK(is(tsq_str_from(lasting.heard), "INITIAL_SESSION:" ANN "|SIGNED_OUT:-|"));
    finish(&lasting);
    finish(&unnamed);
    finish(&bare);
    tsq_session_free(session);
}

/* Calls fail until tsq_auth_get_session; the callback is called by the first of them. */
static void a_session_that_ends_elsewhere_is_told_once(const tsq_client *client, const tsq_client *service) {
    listener told;
    tsq_session *session = NULL;
    tsq_session *none = NULL;
    tsq_space_list *spaces = NULL;
    uint64_t ended = 0;
    prepare(&told);
    WORKS(tsq_auth_sign_in(client, TSQ_STR(ANN), TSQ_STR(PASSWORD), &session, &err));
    subscribe(client, &told);
    WORKS(tsq_auth_end_sessions(service, session->user->id, &ended, &err));
    CHECK(ended == 1);
    FAILS(tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &spaces, &err), TSQ_UNAUTHORIZED, spaces, "Session has ended");
    CHECK(becomes(&told, 2, 0));
    FAILS(tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &spaces, &err), TSQ_UNAUTHORIZED, spaces, "Session has ended");
    WORKS(tsq_auth_get_session(client, &none, &err));
    WORKS(tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &spaces, &err));
    tsq_subscription_unsubscribe(told.subscription);
    CHECK(none == NULL && is(tsq_str_from(told.heard), "INITIAL_SESSION:" ANN "|SIGNED_OUT:-|"));
    finish(&told);
    tsq_space_list_free(spaces);
    tsq_session_free(session);
}

static void a_failed_subscribe_destroys_its_data(const tsq_client *client) {
    listener unheard;
    prepare(&unheard);
    FAILS(tsq_auth_on_auth_state_change(client, NULL, &unheard, destroy, &unheard.subscription, &err), TSQ_INVALID_INPUT,
          unheard.subscription, "Argument callback is NULL");
    CHECK(unheard.destroyed == 1);
    FAILS(tsq_auth_on_auth_state_change(NULL, hear, &unheard, destroy, &unheard.subscription, &err), TSQ_INVALID_INPUT,
          unheard.subscription, "Argument client is NULL");
    CHECK(unheard.destroyed == 2 && unheard.calls == 0);
    FAILS(tsq_auth_on_auth_state_change(NULL, NULL, NULL, NULL, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument callback is NULL");
    tsq_subscription_unsubscribe(NULL);
    finish(&unheard);
}

static void closing_ends_subscriptions_and_refuses_new_ones(tsq_client *client, tsq_client *service) {
    listener late, later;
    prepare(&late);
    prepare(&later);
    subscribe(client, &late);
    CHECK(becomes(&late, 1, 0));
    WORKS(tsq_client_close(client, &err));
    FAILS(tsq_auth_sign_in(client, TSQ_STR(ANN), TSQ_STR(PASSWORD), NULL, &err), TSQ_CLOSED, NULL, "Sign in failed: ");
    FAILS(tsq_auth_on_auth_state_change(client, hear, &later, destroy, &later.subscription, &err), TSQ_CLOSED, later.subscription,
          "The client is closed");
    CHECK(becomes(&later, 0, 1));
    tsq_client_free(service);
    tsq_client_free(client);
    CHECK(becomes(&late, 1, 1));
    tsq_subscription_unsubscribe(late.subscription);
    finish(&late);
    finish(&later);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    tsq_client *service = NULL;
    tsq_client *client = open_client("town");
    WORKS(tsq_client_as_service(client, &service, &err));
    tsq_session_free(meet(service, ANN));
    events_have_names();
    events_are_delivered_in_order(client);
    unsubscribe_waits_for_a_running_callback(client, service);
    a_callback_may_unsubscribe_itself(client);
    threads_subscribe_and_unsubscribe_while_the_session_changes(client);
    a_freed_subscription_lasts_until_its_handle_is_freed(service);
    a_session_that_ends_elsewhere_is_told_once(client, service);
    a_failed_subscribe_destroys_its_data(client);
    closing_ends_subscriptions_and_refuses_new_ones(client, service);
    return checks_done("auth_events");
}
