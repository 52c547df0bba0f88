/* A host that ends while the library's threads work: the status of exit stays, and so do the rows. Also compiled as C++: keep
 * to the common subset.
 *
 * exits CATALOG FOLDER: the folder is empty. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rows.h"

#define ROWS 50
#define THREADS 4

static int running[2];

/* Tells main that it runs, and runs until the process ends. */
static void hear_for_ever(const tsq_row_change *change, void *user_data) {
    (void)change;
    (void)user_data;
    if (write(running[1], "r", 1) != 1) abort();
    for (;;) pause();
}

static tsq_client *service_of(const tsq_client *client) {
    tsq_client *service = NULL;
    WORKS(tsq_client_as_service(client, &service, &err));
    return service;
}

static tsq_status create_space(const tsq_client *service) {
    tsq_new_space input;
    memset(&input, 0, sizeof input);
    input.name = TSQ_STR("Harbor");
    return tsq_spaces_create_space(service, &input, NULL, NULL);
}

/* In a child: leaves main while a callback runs and the client is open. */
static void exit_while_a_callback_runs(void) {
    char byte;
    tsq_change_request request;
    tsq_subscription *subscription = NULL;
    tsq_client *client = open_client("town");
    tsq_client *service = service_of(client);
    memset(&request, 0, sizeof request);
    request.table = TSQ_STR("spaces");
    WORKS(tsq_realtime_subscribe(service, TSQ_STR("test"), &request, hear_for_ever, NULL, NULL, &subscription, &err));
    for (int i = 0; i < ROWS; i++) CHECK(create_space(service) == TSQ_OK);
    CHECK(read(running[0], &byte, 1) == 1);
    exit(checks_failed == 0 ? 0 : 1);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int calls;
static int ended;
static int wrong;

/* Writes until the client is closed. The host does not join it. */
static void *write_until_closed(void *service) {
    tsq_status status;
    do {
        status = create_space((const tsq_client *)service);
        pthread_mutex_lock(&lock);
        calls += status == TSQ_OK;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    } while (status == TSQ_OK);
    pthread_mutex_lock(&lock);
    wrong += status != TSQ_CLOSED;
    ended++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* In a child: closes while detached threads are in calls, frees the handle that no thread uses, and returns from main. */
static int close_beside_detached_threads(void) {
    tsq_client *client = open_client("port");
    tsq_client *service = service_of(client);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, write_until_closed, service) == 0);
        CHECK(pthread_detach(thread) == 0);
    }
    pthread_mutex_lock(&lock);
    while (calls < ROWS) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(client);
    /* The handle of the threads stays: one may still be in a call. */
    pthread_mutex_lock(&lock);
    CHECK(wrong == 0);
    pthread_mutex_unlock(&lock);
    return checks_failed == 0 ? 0 : 1;
}

static int status_of(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

static size_t stored(const char *name) {
    tsq_client *client = open_client(name);
    tsq_client *service = service_of(client);
    tsq_space_list *list = NULL;
    size_t count;
    WORKS(tsq_spaces_list_spaces(service, 1000, absent, &list, &err));
    count = tsq_space_list_len(list);
    CHECK(create_space(service) == TSQ_OK);
    tsq_space_list_free(list);
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(service);
    tsq_client_free(client);
    return count;
}

int main(int argc, char **argv) {
    pid_t child;
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    /* Ends a test that waits for ever. */
    alarm(600);
    CHECK(pipe(running) == 0);
    child = fork();
    if (child == 0) exit_while_a_callback_runs();
    CHECK(status_of(child) == 0);
    child = fork();
    if (child == 0) return close_beside_detached_threads();
    CHECK(status_of(child) == 0);
    CHECK(stored("town") == ROWS);
    CHECK(stored("port") >= ROWS);
    return checks_done("exits");
}
