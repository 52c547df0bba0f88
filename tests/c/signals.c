/* Signals of the host: the library's threads take none. Also compiled as C++: keep to the common subset.
 *
 * signals CATALOG FOLDER: the catalog is tests/c/catalog.json, the folder is empty. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "rows.h"

static void ignore_event(tsq_auth_event event, const tsq_session *session, void *user_data) {
    (void)event;
    (void)session;
    (void)user_data;
}

/* Starts every kind of thread of a client: workers, writer, catalog, blocking work, callbacks. */
static tsq_client *open_with_all_threads(const char *catalog) {
    char text[4096];
    tsq_client *client = NULL;
    tsq_mini_apps *apps = NULL;
    tsq_session *session = NULL;
    tsq_subscription *subscription = NULL;
    tsq_config *config = tsq_config_new();
    snprintf(text, sizeof text, "%s/town", folder);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    snprintf(text, sizeof text, "file://%s", catalog);
    WORKS(tsq_config_set(config, TSQ_STR("catalog_url"), tsq_str_from(text), &err));
    WORKS(tsq_client_open(config, &client, &err));
    tsq_config_free(config);
    WORKS(tsq_discovery_search_mini_apps(client, TSQ_STR("chess"), NULL, &apps, &err));
    tsq_mini_apps_free(apps);
    WORKS(tsq_auth_on_auth_state_change(client, ignore_event, NULL, NULL, &subscription, &err));
    tsq_subscription_free(subscription);
    WORKS(tsq_auth_sign_up(client, TSQ_STR("ada@example.com"), TSQ_STR("correct horse"), NULL, &err));
    WORKS(tsq_auth_sign_in(client, TSQ_STR("ada@example.com"), TSQ_STR("correct horse"), &session, &err));
    tsq_session_free(session);
    return client;
}

/* The default action of SIGTERM ends the process: a thread that did not block the signal would take it. */
static void a_host_that_masks_a_signal_after_open_receives_it(tsq_client *client) {
    sigset_t signals;
    sigset_t before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, &before) == 0);
    CHECK(!sigismember(&before, SIGTERM));
    for (int i = 0; i < 20; i++) {
        int received = 0;
        CHECK(kill(getpid(), SIGTERM) == 0);
        CHECK(sigwait(&signals, &received) == 0 && received == SIGTERM);
    }
    CHECK(!tsq_client_is_closed(client));
}

int main(int argc, char **argv) {
    tsq_client *client;
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    /* Ends a test that waits for ever. */
    alarm(60);
    client = open_with_all_threads(argv[1]);
    a_host_that_masks_a_signal_after_open_receives_it(client);
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(client);
    return checks_done("signals");
}
