/* fork() around open clients: which database a child may open, and what becomes of its parent's handles. Also compiled as
 * C++: keep to the common subset.
 *
 * forks CATALOG FOLDER: the folder is empty. `forks FOLDER open` is the program of a child by fork and exec: it opens and
 * writes `town`. */
#define _POSIX_C_SOURCE 200809L

#include "rows.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that hangs is killed by SIGALRM. */
enum { SECONDS = 600 };

static tsq_client *parents_client, *parents_service, *parents_shared;
static tsq_subscription *parents_subscription;
static tsq_change_stream *parents_stream;
/* What the parent's subscription got. Its first call writes to one pipe and waits for the other one. */
static volatile int changes_heard;
static int callback_runs[2], release_callback[2];
/* The id of a public space of the parent. */
static char kept_id[64];
static const char *program;

static void write_space(tsq_client *client, const char *name) {
    tsq_client *service = NULL;
    tsq_new_space made;
    memset(&made, 0, sizeof made);
    made.name = tsq_str_from(name);
    made.is_public = true;
    WORKS(tsq_client_as_service(client, &service, &err));
    WORKS(tsq_spaces_create_space(service, &made, NULL, &err));
    tsq_client_free(service);
}

static size_t count_spaces(tsq_client *client) {
    tsq_space_list *list = NULL;
    size_t count;
    WORKS(tsq_spaces_get_public_spaces(client, 100, 0, &list, &err));
    count = tsq_space_list_len(list);
    tsq_space_list_free(list);
    return count;
}

static void hear_change(const tsq_row_change *change, void *user_data) {
    (void)change;
    (void)user_data;
    if (++changes_heard == 1) {
        char byte;
        CHECK(write(callback_runs[1], "", 1) == 1 && read(release_callback[0], &byte, 1) == 1);
    }
}

static void follow_changes(tsq_client *service) {
    tsq_change_request request;
    char byte;
    memset(&request, 0, sizeof request);
    request.table = TSQ_STR("spaces");
    CHECK(pipe(callback_runs) == 0 && pipe(release_callback) == 0);
    WORKS(tsq_realtime_changes(service, &request, &parents_stream, &err));
    WORKS(tsq_realtime_subscribe(service, TSQ_STR("all"), &request, hear_change, NULL, NULL, &parents_subscription, &err));
    write_space(service, "heard");
    CHECK(read(callback_runs[0], &byte, 1) == 1);
}

/* A child gets none of its parent's changes, and may free what it inherits. It does not wait for the callback, which runs in
 * the parent. */
static void changes_are_refused(void) {
    tsq_row_change *change = NULL;
    tsq_change_stream *stream = NULL;
    tsq_string *cursor = NULL;
    tsq_change_request request;
    int before = changes_heard;
    memset(&request, 0, sizeof request);
    request.table = TSQ_STR("spaces");
    FAILS(tsq_realtime_cursor(parents_service, &cursor, &err), TSQ_CLOSED, cursor, "fork");
    FAILS(tsq_realtime_changes(parents_service, &request, &stream, &err), TSQ_CLOSED, stream, "fork");
    FAILS(tsq_change_stream_next(parents_stream, 0, &change, &err), TSQ_CLOSED, change, "fork");
    tsq_change_stream_free(parents_stream);
    tsq_subscription_unsubscribe(parents_subscription);
    tsq_subscription_free(parents_subscription);
    CHECK(changes_heard == before);
}

/* The parent's stream has the spaces that were created since, in this process and in the program by exec. */
static void stream_goes_on(int count) {
    tsq_row_change *change = NULL;
    int i;
    CHECK(write(release_callback[1], "", 1) == 1);
    for (i = 0; i < count; i++) {
        WORKS(tsq_change_stream_next(parents_stream, SECONDS * 1000, &change, &err));
        CHECK(change != NULL && change->event == TSQ_EVENT_INSERT);
        tsq_row_change_free(change);
        change = NULL;
    }
    WORKS(tsq_change_stream_next(parents_stream, 0, &change, &err));
    CHECK(change == NULL);
    tsq_change_stream_free(parents_stream);
    tsq_subscription_unsubscribe(parents_subscription);
    tsq_subscription_free(parents_subscription);
    CHECK(changes_heard <= count);
    for (i = 0; i < 2; i++) {
        close(callback_runs[i]);
        close(release_callback[i]);
    }
}

/* Reads the id of a space, and so opens a connection that a child inherits. */
static void keep_an_id(tsq_client *client) {
    tsq_space_list *list = NULL;
    tsq_space *space = NULL;
    WORKS(tsq_spaces_get_public_spaces(client, 1, 0, &list, &err));
    snprintf(kept_id, sizeof kept_id, "%.*s", TSQ_ARG(tsq_space_list_at(list, 0)->id));
    tsq_space_list_free(list);
    WORKS(tsq_spaces_get_space(client, tsq_str_from(kept_id), &space, &err));
    tsq_space_free(space);
}

static tsq_config *config_of(const char *name) {
    char text[4096];
    tsq_config *config = tsq_config_new();
    snprintf(text, sizeof text, "%s/%s", folder, name);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    WORKS(tsq_config_set(config, TSQ_STR("catalog_api_key"), TSQ_STR(""), &err));
    return config;
}

/* Runs `body` in a forked child and returns its exit code. */
static int in_child(void (*body)(void)) {
    int status = -1;
    pid_t child;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        checks_failed = 0;
        alarm(SECONDS);
        body();
        _exit(checks_failed == 0 ? 0 : 1);
    }
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Every area refuses a handle of the parent. */
static void reads_are_refused(tsq_client *client) {
    tsq_space *space = NULL;
    tsq_space_list *spaces = NULL;
    tsq_fidget *fidget = NULL;
    tsq_session *session = NULL;
    tsq_discovery_stats *stats = NULL;
    tsq_mini_apps *apps = NULL;
    tsq_string *community = NULL;
    tsq_client *derived = NULL;
    const char *words = "start workers before opening, or spawn them";
    FAILS(tsq_spaces_get_space(client, tsq_str_from(kept_id), &space, &err), TSQ_CLOSED, space, words);
    FAILS(tsq_spaces_get_public_spaces(client, 1, 0, &spaces, &err), TSQ_CLOSED, spaces, words);
    FAILS(tsq_fidgets_get_fidget(client, tsq_str_from(kept_id), &fidget, &err), TSQ_CLOSED, fidget, words);
    FAILS(tsq_communities_resolve_community(client, TSQ_STR("town.example"), &community, &err), TSQ_CLOSED, community,
          words);
    FAILS(tsq_auth_get_session(client, &session, &err), TSQ_CLOSED, session, words);
    FAILS(tsq_discovery_get_trending_mini_apps(client, TSQ_STR("24h"), NULL, &apps, &err), TSQ_CLOSED, apps, words);
    FAILS(tsq_discovery_refresh(client, &stats, &err), TSQ_CLOSED, stats, words);
    FAILS(tsq_client_as_service(client, &derived, &err), TSQ_CLOSED, derived, words);
}

/* In a child of a process that has `town` and the shared client open. */
static void child_of_an_open_client(void) {
    tsq_client *client = NULL;
    tsq_new_space made;
    tsq_config *config = config_of("town");
    FAILS(tsq_client_open(config, &client, &err), TSQ_CONFIG, client, "start workers before opening");
    FAILS(tsq_client_open(config, &client, &err), TSQ_CONFIG, client, "spawn");
    tsq_config_free(config);
    FAILS(tsq_client_shared(NULL, &client, &err), TSQ_CONFIG, client, "start workers before opening");

    /* The parent's handles: nothing is read or written, nothing hangs. */
    memset(&made, 0, sizeof made);
    made.name = TSQ_STR("lost");
    FAILS(tsq_spaces_create_space(parents_client, &made, NULL, &err), TSQ_CLOSED, NULL, "fork");
    FAILS(tsq_client_backup(parents_client, TSQ_STR("lost.db"), &err), TSQ_CLOSED, NULL, "fork");
    reads_are_refused(parents_client);
    reads_are_refused(parents_service);
    reads_are_refused(parents_shared);
    changes_are_refused();
    CHECK(tsq_client_is_closed(parents_client) && tsq_client_is_closed(parents_shared));
    WORKS(tsq_client_close(parents_client, &err));
    tsq_client_free(parents_client);
    tsq_client_free(parents_service);
    tsq_client_free(parents_shared);
}

/* In a child of a process that has closed `town` and the shared client. */
static void child_of_a_closed_client(void) {
    tsq_config *config = config_of("shared");
    tsq_client *client = open_client("town");
    write_space(client, "of a child after close");
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(client);
    client = NULL;
    WORKS(tsq_client_shared(config, &client, &err));
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(client);
    tsq_config_free(config);
}

static void child_by_exec(void) {
    execl(program, program, folder, "open", (char *)NULL);
    CHECK(!"exec works");
}

/* Opens and writes `town`. */
static void open_and_write(void) {
    tsq_client *client = open_client("town");
    write_space(client, "of another process");
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(client);
}

int main(int argc, char **argv) {
    tsq_config *config;
    alarm(SECONDS);
    if (argc < 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    program = argv[0];
    if (strcmp(argv[2], "open") == 0) {
        folder = argv[1];
        open_and_write();
        return checks_done("forks, by exec");
    }
    folder = argv[2];

    /* A worker that starts before the client is opened. */
    CHECK(in_child(open_and_write) == 0);

    parents_client = open_client("town");
    config = config_of("shared");
    WORKS(tsq_client_shared(config, &parents_shared, &err));
    tsq_config_free(config);
    write_space(parents_client, "of the parent");
    WORKS(tsq_client_as_service(parents_client, &parents_service, &err));
    keep_an_id(parents_client);
    follow_changes(parents_service);
    CHECK(in_child(child_of_an_open_client) == 0);
    CHECK(!tsq_client_is_closed(parents_client));
    CHECK(in_child(child_by_exec) == 0);
    write_space(parents_client, "of the parent, again");
    stream_goes_on(3);
    CHECK(count_spaces(parents_client) == 5);
    WORKS(tsq_client_close(parents_shared, &err));
    tsq_client_free(parents_shared);
    tsq_client_free(parents_service);
    WORKS(tsq_client_close(parents_client, &err));
    tsq_client_free(parents_client);

    CHECK(in_child(child_of_a_closed_client) == 0);
    parents_client = open_client("town");
    CHECK(count_spaces(parents_client) == 6);
    tsq_client_free(parents_client);
    return checks_done("forks");
}
