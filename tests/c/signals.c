/* Signals of the host: the library's threads take none, a handler interrupts no call, and SIGPIPE and SIGXFSZ that the host ignores
 * are failures of a call. Also compiled as C++: keep to the common subset.
 *
 * signals CATALOG FOLDER: the catalog is tests/c/catalog.json, the folder is empty. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
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

static pthread_t main_thread;
static volatile sig_atomic_t handled;
static volatile sig_atomic_t handled_elsewhere;

static void count_signal(int signal) {
    (void)signal;
    handled++;
    if (!pthread_equal(pthread_self(), main_thread)) handled_elsewhere++;
}

static int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static volatile sig_atomic_t sending = 1;

/* Signals the process until main has seen enough. This thread blocks the signal, so main is the only thread that may take it. */
static void *send_signals(void *unused) {
    const struct timespec pause = {0, 2000000};
    while (sending) {
        kill(getpid(), SIGUSR1);
        nanosleep(&pause, NULL);
    }
    return unused;
}

/* Without SA_RESTART, a system call that waits would fail with EINTR. */
static void a_signal_with_a_handler_interrupts_no_call(const tsq_client *client) {
    struct sigaction action;
    sigset_t signals;
    pthread_t sender;
    tsq_client *service = NULL;
    tsq_change_request request;
    tsq_change_stream *stream = NULL;
    tsq_row_change *change = NULL;
    tsq_session *session = NULL;
    memset(&action, 0, sizeof action);
    action.sa_handler = count_signal;
    main_thread = pthread_self();
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    WORKS(tsq_client_as_service(client, &service, &err));
    memset(&request, 0, sizeof request);
    request.table = TSQ_STR("spaces");
    WORKS(tsq_realtime_changes(service, &request, &stream, &err));
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
    CHECK(pthread_create(&sender, NULL, send_signals, NULL) == 0);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &signals, NULL) == 0);

    /* On a loaded machine the sender may send few signals in one wait. */
    for (int i = 0; i < 60 && handled <= 10; i++) {
        const int64_t begun = milliseconds();
        WORKS(tsq_change_stream_next(stream, 300, &change, &err));
        CHECK(change == NULL && milliseconds() - begun >= 300);
    }
    CHECK(handled > 10);
    for (int i = 0; i < 20; i++) {
        tsq_new_space input;
        memset(&input, 0, sizeof input);
        input.name = TSQ_STR("Harbor");
        WORKS(tsq_spaces_create_space(service, &input, NULL, &err));
        WORKS(tsq_change_stream_next(stream, 10000, &change, &err));
        CHECK(change != NULL);
        tsq_row_change_free(change);
    }
    WORKS(tsq_auth_create_session(service, TSQ_STR("ada@example.com"), TSQ_STR("correct horse"), &session, &err));
    tsq_session_free(session);

    sending = 0;
    CHECK(pthread_join(sender, NULL) == 0);
    CHECK(handled_elsewhere == 0);
    CHECK(signal(SIGUSR1, SIG_DFL) != SIG_ERR);
    tsq_change_stream_free(stream);
    tsq_client_free(service);
}

static void the_library_installs_no_handler(const struct sigaction *before) {
    for (int number = 1; number < NSIG; number++) {
        struct sigaction now;
        if (sigaction(number, NULL, &now) != 0) continue;
        if (!check(now.sa_handler == before[number].sa_handler, "a signal has the handler of before", __FILE__, __LINE__))
            fprintf(stderr, "  signal %d\n", number);
    }
}

/* Reads the beginning of each request, and resets the connection. */
static void *reset_connections(void *listener) {
    const struct linger now = {1, 0};
    char ignored[512];
    for (;;) {
        const int connection = accept(*(int *)listener, NULL, NULL);
        if (connection < 0) return NULL;
        if (read(connection, ignored, sizeof ignored) < 0) perror("read");
        setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(connection);
    }
}

/* A write to a connection that the server has reset may raise SIGPIPE. */
static void a_server_that_resets_connections_is_a_failure(void) {
    static uint8_t bytes[8 << 20];
    char text[4096];
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    pthread_t server;
    tsq_client *client = NULL, *service = NULL;
    tsq_file_info *info = NULL;
    tsq_bytes large;
    tsq_config *config = tsq_config_new();
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 16) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    CHECK(pthread_create(&server, NULL, reset_connections, &listener) == 0);
    snprintf(text, sizeof text, "%s/remote", folder);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    WORKS(tsq_config_set(config, TSQ_STR("catalog_api_key"), TSQ_STR(""), &err));
    snprintf(text, sizeof text, "s3://town/x?endpoint=http://127.0.0.1:%d&region=us-east-1&access_key_id=a&secret_access_key=b",
             (int)ntohs(address.sin_port));
    WORKS(tsq_config_set(config, TSQ_STR("storage_url"), tsq_str_from(text), &err));
    CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    WORKS(tsq_client_open(config, &client, &err));
    WORKS(tsq_client_as_service(client, &service, &err));
    large.ptr = bytes;
    large.len = sizeof bytes;
    FAILS(tsq_storage_upload(service, TSQ_STR("assets"), TSQ_STR("a.bin"), large, NULL, &info, &err), TSQ_UNAVAILABLE, info,
          "Storage error: ");
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(service);
    tsq_client_free(client);
    tsq_config_free(config);
    shutdown(listener, SHUT_RDWR);
    CHECK(pthread_join(server, NULL) == 0);
    close(listener);
    CHECK(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
}

/* The default action of SIGXFSZ would end the process. */
static void a_limit_on_file_sizes_is_a_failure(const tsq_client *client) {
    static uint8_t bytes[1 << 20];
    struct rlimit limit;
    rlim_t before;
    tsq_client *service = NULL;
    tsq_file_info *info = NULL;
    tsq_bytes large;
    large.ptr = bytes;
    large.len = sizeof bytes;
    WORKS(tsq_client_as_service(client, &service, &err));
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    before = limit.rlim_cur;
    limit.rlim_cur = 4096;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    FAILS(tsq_storage_upload(service, TSQ_STR("assets"), TSQ_STR("a.bin"), large, NULL, &info, &err), TSQ_UNAVAILABLE, info,
          "Storage error: ");
    {
        tsq_new_space input;
        tsq_space *space = NULL;
        memset(&input, 0, sizeof input);
        input.name = TSQ_STR("Harbor");
        FAILS(tsq_spaces_create_space(service, &input, &space, &err), TSQ_UNAVAILABLE, space, "Create space failed: ");
    }
    limit.rlim_cur = before;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(signal(SIGXFSZ, SIG_DFL) == SIG_IGN);
    WORKS(tsq_storage_upload(service, TSQ_STR("assets"), TSQ_STR("a.bin"), large, NULL, &info, &err));
    tsq_file_info_free(info);
    tsq_client_free(service);
}

int main(int argc, char **argv) {
    struct sigaction before[NSIG];
    tsq_client *client;
    memset(before, 0, sizeof before);
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    /* Ends a test that waits for ever. */
    alarm(600);
    for (int number = 1; number < NSIG; number++) sigaction(number, NULL, &before[number]);
    client = open_with_all_threads(argv[1]);
    the_library_installs_no_handler(before);
    a_signal_with_a_handler_interrupts_no_call(client);
    a_limit_on_file_sizes_is_a_failure(client);
    a_server_that_resets_connections_is_a_failure();
    the_library_installs_no_handler(before);
    a_host_that_masks_a_signal_after_open_receives_it(client);
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(client);
    return checks_done("signals");
}
