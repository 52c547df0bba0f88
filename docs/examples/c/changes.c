/* Changes: a stream, what leaves a caller's view, a filter, and a cursor that goes on after a pause. */
#include <stdio.h>
#include <stdlib.h>
#include <townsquare.h>

/* Ends the program with the sentence of the error. */
static void check(tsq_status status, tsq_error **err) {
    if (status == TSQ_OK) return;
    fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(*err)));
    exit(1);
}

/* Prints at most `count` changes, and stores the position after them. */
static void print_changes(tsq_change_stream *stream, int count, char *cursor, size_t size) {
    tsq_error *err = NULL;
    for (int i = 0; i < count; i++) {
        tsq_row_change *change = NULL;
        check(tsq_change_stream_next(stream, 10 * 1000, &change, &err), &err);
        if (change == NULL) return; /* the end of the stream, or no change within ten seconds */
        const tsq_str event = tsq_event_type_name((int32_t)change->event);
        printf("%.*s of %.*s\n", TSQ_ARG(event), TSQ_ARG(change->table));
        snprintf(cursor, size, "%.*s", TSQ_ARG(change->cursor));
        tsq_row_change_free(change);
    }
}

static void create_space(const tsq_client *service, const char *name, bool is_public, tsq_space **out) {
    tsq_error *err = NULL;
    tsq_new_space space = {0};
    space.name = tsq_str_from(name);
    space.is_public = is_public;
    check(tsq_spaces_create_space(service, &space, out, &err), &err);
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = NULL, *service = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(":memory:"), &err), &err);
    check(tsq_client_open(config, &client, &err), &err);
    tsq_config_free(config);
    check(tsq_client_as_service(client, &service, &err), &err);
    tsq_space *harbor = NULL;
    create_space(service, "Harbor", true, &harbor);

    /* The stream is live when the call returns. It acts for the caller of its handle: here an anonymous one. */
    tsq_change_stream *stream = NULL;
    tsq_change_request request = {0};
    request.table = TSQ_STR("spaces");
    check(tsq_realtime_changes(client, &request, &stream, &err), &err);
    create_space(service, "Secret", false, NULL); /* private: the stream does not show it */
    tsq_space_patch patch = {0};
    patch.name.change = TSQ_SET;
    patch.name.value = TSQ_STR("Quay");
    check(tsq_spaces_update_space(service, harbor->id, &patch, NULL, &err), &err);
    tsq_space_patch hidden = {0};
    hidden.is_public.change = TSQ_SET;
    check(tsq_spaces_update_space(service, harbor->id, &hidden, NULL, &err), &err);
    char cursor[1024] = ""; /* store it with the work that it stands for */
    print_changes(stream, 2, cursor, sizeof cursor);
    tsq_change_stream_free(stream);

    /* While nobody listens, the log goes on. */
    tsq_new_fidget fidget = {0};
    fidget.kind = TSQ_STR("clock");
    check(tsq_fidgets_create_fidget(service, harbor->id, &fidget, NULL, &err), &err);
    fidget.kind = TSQ_STR("chess");
    check(tsq_fidgets_create_fidget(service, harbor->id, &fidget, NULL, &err), &err);
    check(tsq_spaces_delete_space(service, harbor->id, &err), &err);

    /* From the cursor on, without gap and repeat, up to now. */
    char filter[128], last[1024];
    tsq_string *now = NULL;
    check(tsq_realtime_cursor(service, &now, &err), &err);
    snprintf(filter, sizeof filter, "space_id=eq.%.*s", TSQ_ARG(harbor->id));
    tsq_change_request of_harbor = {0};
    of_harbor.table = TSQ_STR("fidgets");
    of_harbor.filter = tsq_str_from(filter);
    of_harbor.since = tsq_str_from(cursor);
    of_harbor.until = tsq_string_view(now);
    check(tsq_realtime_changes(service, &of_harbor, &stream, &err), &err);
    print_changes(stream, 1000, last, sizeof last);
    tsq_change_stream_free(stream);
    tsq_string_free(now);

    /* Rows first, then their changes. */
    tsq_live_query *live = NULL;
    tsq_row_change *change = NULL;
    check(tsq_realtime_live(service, TSQ_STR("spaces"), TSQ_STR("name=eq.Secret"), &live, &err), &err);
    printf("rows now: %zu\n", tsq_live_query_len(live));
    create_space(service, "Secret", false, NULL);
    check(tsq_change_stream_next(tsq_live_query_changes(live), -1, &change, &err), &err);
    const tsq_str event = tsq_event_type_name((int32_t)change->event);
    printf("then: %.*s\n", TSQ_ARG(event));
    tsq_row_change_free(change);
    tsq_live_query_free(live);

    request.filter = TSQ_STR("colour=eq.red");
    if (tsq_realtime_changes(client, &request, &stream, &err) == TSQ_INVALID_INPUT)
        printf("%.*s\n", TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);
    tsq_space_free(harbor);
    tsq_client_free(service);
    tsq_client_free(client);
    return 0;
}
