/* Prints the committed changes of a table as lines of JSON until its input ends, whoever makes them.
 *
 *   watch DATA_DIR TABLE CURSOR_FILE
 *
 * One loop waits for the input and for the library: the callbacks run on the thread of the loop. The file keeps the position after
 * the last change that was printed, from the first run on: the next run begins with the changes that were made meanwhile, however
 * this one ends. A run that is killed between printing and storing prints these changes again. */
#define _POSIX_C_SOURCE 200809L

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <townsquare.h>
#include <unistd.h>

typedef struct {
    const char *file;
    /* The position after the last change that was printed, and the one that the file has. */
    char cursor[1024], stored[1024];
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

/* The position of the run before, or, at the first run, of now. */
static tsq_status begin(const tsq_client *service, watcher *self, tsq_error **err) {
    tsq_string *now = NULL;
    FILE *file = fopen(self->file, "r");
    if (file != NULL) {
        if (fgets(self->cursor, sizeof self->cursor, file) == NULL) self->cursor[0] = '\0';
        fclose(file);
    }
    if (self->cursor[0] != '\0') return TSQ_OK;
    const tsq_status status = tsq_realtime_cursor(service, &now, err);
    if (status == TSQ_OK) snprintf(self->cursor, sizeof self->cursor, "%.*s", TSQ_ARG(tsq_string_view(now)));
    tsq_string_free(now);
    return status;
}

/* Stores the position, in one step: a crash leaves the old file or the new one. Returns the exit code. */
static int store(watcher *self) {
    char made[4096];
    if (strcmp(self->cursor, self->stored) == 0) return 0;
    const int length = snprintf(made, sizeof made, "%s.new", self->file);
    FILE *file = length > 0 && length < (int)sizeof made ? fopen(made, "w") : NULL;
    const int failed = file == NULL || fputs(self->cursor, file) < 0;
    if ((file != NULL && fclose(file) != 0) || failed || rename(made, self->file) != 0) {
        perror(self->file);
        return 1;
    }
    memcpy(self->stored, self->cursor, sizeof self->stored);
    return 0;
}

/* Waits for the input and for the library, until one of them ends. */
static int run(const tsq_client *service, watcher *self) {
    tsq_error *err = NULL;
    struct pollfd waits[2] = {{STDIN_FILENO, POLLIN, 0}, {0, POLLIN, 0}};
    char ignored[256];
    if (tsq_client_poll_fd(service, &waits[1].fd, &err) != TSQ_OK) return failed(err);
    while (!self->has_ended && poll(waits, 2, -1) > 0) {
        if (waits[1].revents != 0 && tsq_client_dispatch(service, &err) != TSQ_OK) return failed(err);
        if (store(self) != 0) return 1;
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

    self.file = argv[3];
    request.table = tsq_str_from(argv[2]);
    request.on_close = print_end;
    /* Before the subscription, so that its callback runs in the loop. */
    if (tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(argv[1]), &err) == TSQ_OK &&
        tsq_client_open(config, &client, &err) == TSQ_OK && tsq_client_as_service(client, &service, &err) == TSQ_OK &&
        tsq_client_poll_fd(service, &descriptor, &err) == TSQ_OK && begin(service, &self, &err) == TSQ_OK) {
        request.since = tsq_str_from(self.cursor);
        if (store(&self) != 0) {
            failure = 1;
        } else if (tsq_realtime_subscribe(service, TSQ_STR("watch"), &request, print_change, &self, NULL, &subscription, &err) ==
                   TSQ_OK) {
            fprintf(stderr, "watching %s\n", argv[2]);
            failure = run(service, &self);
            tsq_subscription_unsubscribe(subscription);
        } else {
            failed(err);
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
