/* Prints the committed changes of a table as lines of JSON until its input ends, whoever makes them.
 *
 *   watch DATA_DIR TABLE CURSOR_FILE
 *
 * One loop waits for the input and for the library: the callbacks run on the thread of the loop. The file keeps the position after
 * the last change that was printed, so the next run begins with the changes that were made meanwhile. */
#define _POSIX_C_SOURCE 200809L

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <townsquare.h>
#include <unistd.h>

typedef struct {
    char cursor[1024];
    int has_ended;
} watcher;

/* Prints an error and frees it. Returns the exit code of a failure. */
static int failed(tsq_error *err) {
    fprintf(stderr, "watch: %.*s\n", TSQ_ARG(tsq_error_text(err)));
    fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_explanation(err)));
    tsq_error_free(err);
    return 1;
}

static void print_change(const tsq_row_change *change, void *user_data) {
    watcher *self = (watcher *)user_data;
    tsq_string *json = NULL;
    tsq_error *err = NULL;
    if (tsq_row_change_json(change, &json, &err) != TSQ_OK) {
        failed(err);
        return;
    }
    const tsq_str line = tsq_string_view(json);
    printf("%.*s\n", TSQ_ARG(line));
    fflush(stdout);
    tsq_string_free(json);
    snprintf(self->cursor, sizeof self->cursor, "%.*s", TSQ_ARG(change->cursor));
}

/* The subscription has ended by itself: the host was away for too long, or the change log was switched off. */
static void print_end(const tsq_error *reason, void *user_data) {
    watcher *self = (watcher *)user_data;
    self->has_ended = reason != NULL;
    if (reason != NULL) fprintf(stderr, "watch: %.*s\n", TSQ_ARG(tsq_error_text(reason)));
}

static void read_cursor(const char *path, watcher *self) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return;
    if (fgets(self->cursor, sizeof self->cursor, file) == NULL) self->cursor[0] = '\0';
    fclose(file);
}

static int write_cursor(const char *path, const watcher *self) {
    FILE *file = self->cursor[0] != '\0' ? fopen(path, "w") : NULL;
    if (file == NULL) return self->cursor[0] == '\0' ? 0 : 1;
    const int written = fputs(self->cursor, file);
    return fclose(file) != 0 || written < 0;
}

/* Waits for the input and for the library, until one of them ends. */
static int run(const tsq_client *service, watcher *self) {
    tsq_error *err = NULL;
    struct pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {0, POLLIN, 0}};
    char ignored[256];
    if (tsq_client_poll_fd(service, &waits[1].fd, &err) != TSQ_OK) return failed(err);
    while (!self->has_ended && poll(waits, 2, -1) > 0) {
        if (waits[1].revents != 0 && tsq_client_dispatch(service, &err) != TSQ_OK) return failed(err);
        if (waits[0].revents != 0 && read(STDIN_FILENO, ignored, sizeof ignored) <= 0) break;
    }
    return self->has_ended;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: watch DATA_DIR TABLE CURSOR_FILE\n");
        return 2;
    }
    watcher self;
    memset(&self, 0, sizeof self);
    tsq_error *err = NULL;
    tsq_config *config = tsq_config_new();
    tsq_client *client = NULL, *service = NULL;
    tsq_subscription *subscription = NULL;
    tsq_change_request request;
    memset(&request, 0, sizeof request);
    int descriptor = 0, failure = 1;

    read_cursor(argv[3], &self);
    request.table = tsq_str_from(argv[2]);
    if (self.cursor[0] != '\0') request.since = tsq_str_from(self.cursor);
    request.on_close = print_end;
    /* Before the subscription, so that its callback runs in the loop. */
    if (tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(argv[1]), &err) == TSQ_OK &&
        tsq_client_open(config, &client, &err) == TSQ_OK && tsq_client_as_service(client, &service, &err) == TSQ_OK &&
        tsq_client_poll_fd(service, &descriptor, &err) == TSQ_OK &&
        tsq_realtime_subscribe(service, TSQ_STR("watch"), &request, print_change, &self, NULL, &subscription, &err) == TSQ_OK) {
        fprintf(stderr, "watching %s\n", argv[2]);
        failure = run(service, &self);
        tsq_subscription_unsubscribe(subscription);
        if (write_cursor(argv[3], &self) != 0) {
            perror(argv[3]);
            failure = 1;
        }
    } else {
        failed(err);
    }
    tsq_subscription_free(subscription);
    tsq_client_free(service);
    tsq_client_free(client);
    tsq_config_free(config);
    return failure;
}
