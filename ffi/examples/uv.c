/* Prints the committed changes of spaces as lines of JSON from a loop of libuv, until its input ends.
 *
 *   uv DATA_DIR
 *
 * The callbacks run on the thread of the loop. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <string.h>
#include <townsquare.h>
#include <uv.h>

static void print_error(tsq_error *err) {
    fprintf(stderr, "uv: %.*s\n", TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);
}

static void print_change(const tsq_row_change *change, void *user_data) {
    tsq_string *json = NULL;
    tsq_error *err = NULL;
    (void)user_data;
    if (tsq_row_change_json(change, &json, &err) != TSQ_OK) {
        print_error(err);
        return;
    }
    const tsq_str line = tsq_string_view(json);
    printf("%.*s\n", TSQ_ARG(line));
    fflush(stdout);
    tsq_string_free(json);
}

/* The library has callbacks for this thread. */
static void dispatch(uv_poll_t *handle, int status, int events) {
    tsq_error *err = NULL;
    (void)events;
    if (status == 0 && tsq_client_dispatch((const tsq_client *)handle->data, &err) == TSQ_OK) return;
    if (err != NULL) print_error(err);
    uv_stop(handle->loop);
}

static void allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    static char ignored[256];
    (void)handle;
    (void)suggested;
    *buffer = uv_buf_init(ignored, sizeof ignored);
}

static void ignore_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer) {
    (void)buffer;
    if (count < 0) uv_stop(stream->loop);
}

static void close_handle(uv_handle_t *handle, void *unused) {
    (void)unused;
    uv_close(handle, NULL);
}

/* Runs the loop until the input ends, and closes it. */
static int run(tsq_client *service, int descriptor) {
    uv_loop_t loop;
    uv_poll_t library;
    uv_pipe_t input;
    if (uv_loop_init(&loop) != 0) return 1;
    int failure = uv_poll_init(&loop, &library, descriptor) != 0 || uv_pipe_init(&loop, &input, 0) != 0;
    library.data = service;
    if (!failure && uv_pipe_open(&input, 0) == 0 && uv_poll_start(&library, UV_READABLE, dispatch) == 0 &&
        uv_read_start((uv_stream_t *)&input, allocate, ignore_input) == 0) {
        fprintf(stderr, "watching spaces\n");
        uv_run(&loop, UV_RUN_DEFAULT);
    } else {
        failure = 1;
    }
    uv_walk(&loop, close_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return failure;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: uv DATA_DIR\n");
        return 2;
    }
    tsq_error *err = NULL;
    tsq_config *config = tsq_config_new();
    tsq_client *client = NULL, *service = NULL;
    tsq_subscription *subscription = NULL;
    tsq_change_request request;
    int descriptor = 0, failure = 1;

    memset(&request, 0, sizeof request);
    request.table = TSQ_STR("spaces");
    /* Before the subscription, so that its callback runs in the loop. */
    if (tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(argv[1]), &err) == TSQ_OK &&
        tsq_client_open(config, &client, &err) == TSQ_OK && tsq_client_as_service(client, &service, &err) == TSQ_OK &&
        tsq_client_poll_fd(service, &descriptor, &err) == TSQ_OK &&
        tsq_realtime_subscribe(service, TSQ_STR("uv"), &request, print_change, NULL, NULL, &subscription, &err) == TSQ_OK) {
        failure = run(service, descriptor);
    } else {
        print_error(err);
    }
    tsq_subscription_unsubscribe(subscription);
    tsq_subscription_free(subscription);
    tsq_client_free(service);
    tsq_client_free(client);
    tsq_config_free(config);
    return failure;
}
