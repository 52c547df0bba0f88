/* What README promises about loss, hanging and delivery, from C (DESIGN 3, 5, 7). Also compiled as C++: keep to the common subset.
 *
 * guarantees CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "stored.h"

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#define THREADS 8
#define ROUNDS 6

static const size_t SIZES[] = {10, 100 * 1000, 3 * 1000 * 1000};

/* What a thread that uploads reports. */
typedef struct uploader {
    const tsq_client *service;
    int number;
    int succeeded;
    pthread_t thread;
} uploader;

static void *upload_all(void *data) {
    uploader *self = (uploader *)data;
    int round;
    for (round = 0; round < ROUNDS; round++) {
        tsq_bytes bytes;
        uint8_t *content;
        bytes.len = SIZES[(self->number + round) % 3];
        content = (uint8_t *)malloc(bytes.len);
        memset(content, 'a' + self->number, bytes.len);
        bytes.ptr = content;
        self->succeeded +=
            tsq_storage_upload(self->service, TSQ_STR("assets"), TSQ_STR("one/path"), bytes, NULL, NULL, NULL) == TSQ_OK;
        free(content);
    }
    return NULL;
}

/* Small and large files take different ways to the disk. */
static void uploads_to_one_path_all_return_and_leave_one_of_them(const tsq_client *service) {
    uploader uploaders[THREADS];
    tsq_buffer *content = NULL;
    tsq_bytes bytes;
    size_t i;
    for (i = 0; i < THREADS; i++) {
        uploaders[i].service = service;
        uploaders[i].number = (int)i;
        uploaders[i].succeeded = 0;
        CHECK(pthread_create(&uploaders[i].thread, NULL, upload_all, &uploaders[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(uploaders[i].thread, NULL);
        CHECK(uploaders[i].succeeded == ROUNDS);
    }
    WORKS(tsq_storage_download(service, TSQ_STR("assets"), TSQ_STR("one/path"), &content, &err));
    bytes = tsq_buffer_view(content);
    CHECK(bytes.len == SIZES[0] || bytes.len == SIZES[1] || bytes.len == SIZES[2]);
    for (i = 0; i < bytes.len && bytes.ptr[i] == bytes.ptr[0]; i++) {
    }
    CHECK(i == bytes.len);
    tsq_buffer_free(content);
}

static void create_space(const tsq_client *client, const char *name, bool is_public) {
    tsq_new_space input;
    memset(&input, 0, sizeof input);
    input.name = tsq_str_from(name);
    input.is_public = is_public;
    WORKS(tsq_spaces_create_space(client, &input, NULL, &err));
}

static tsq_change_stream *follow(const tsq_client *client, const char *filter) {
    tsq_change_stream *stream = NULL;
    tsq_change_request request;
    memset(&request, 0, sizeof request);
    request.table = TSQ_STR("spaces");
    request.filter = tsq_str_from(filter);
    WORKS(tsq_realtime_changes(client, &request, &stream, &err));
    return stream;
}

static void filters_find_values_of_every_type(const tsq_client *service) {
    tsq_change_stream *stream = follow(service, "is_public=eq.true");
    tsq_row_change *change = NULL;
    create_space(service, "hidden", false);
    create_space(service, "shown", true);
    WORKS(tsq_change_stream_next(stream, 20000, &change, &err));
    CHECK(change != NULL && has(change->new_row, "\"shown\""));
    tsq_row_change_free(change);
    tsq_change_stream_free(stream);
}

static void a_stream_ends_with_the_session_of_its_user(const tsq_client *service) {
    tsq_session *session = meet(service, "stream@town.example");
    tsq_client *user = act_as(service, session);
    tsq_change_stream *stream = follow(user, "");
    tsq_row_change *change = NULL;
    WORKS(tsq_auth_sign_out(user, &err));
    FAILS(tsq_change_stream_next(stream, 20000, &change, &err), TSQ_UNAUTHORIZED, change, "");
    tsq_change_stream_free(stream);
    tsq_client_free(user);
    tsq_session_free(session);
}

static void count_sign_out(tsq_auth_event event, const tsq_session *session, void *user_data) {
    (void)session;
    *(int *)user_data += event == TSQ_SIGNED_OUT;
}

/* No lock: the count is read after `unsubscribe`, and no callback runs then. */
static void events_before_unsubscribe_are_delivered(const tsq_client *client) {
    int round;
    WORKS(tsq_auth_sign_up(client, TSQ_STR("leaver@town.example"), TSQ_STR(PASSWORD), NULL, &err));
    for (round = 0; round < 5; round++) {
        int signed_out = 0;
        tsq_subscription *subscription = NULL;
        WORKS(tsq_auth_sign_in(client, TSQ_STR("leaver@town.example"), TSQ_STR(PASSWORD), NULL, &err));
        WORKS(tsq_auth_on_auth_state_change(client, count_sign_out, &signed_out, NULL, &subscription, &err));
        WORKS(tsq_auth_sign_out(client, &err));
        tsq_subscription_unsubscribe(subscription);
        CHECK(signed_out == 1);
        tsq_subscription_free(subscription);
    }
}

static void a_delete_of_nothing_is_404_and_a_stale_version_412(const tsq_client *service) {
    tsq_upload_options options;
    REFUSED_FILE(tsq_storage_delete(service, TSQ_STR("assets"), TSQ_STR("never"), &err), TSQ_NOT_FOUND, 404, NULL,
                 "Delete failed: File not found");
    memset(&options, 0, sizeof options);
    options.if_match = TSQ_STR("stale");
    FAILS(tsq_storage_upload(service, TSQ_STR("assets"), TSQ_STR("one/path"), bytes_of("x"), &options, NULL, &err), TSQ_CONFLICT,
          NULL, "");
}

static void a_copy_refuses_cursors_of_the_original(const tsq_client *service) {
    char backup[4096], data_dir[4096];
    tsq_string *cursor = NULL;
    tsq_change_stream *stream = NULL;
    tsq_change_request request;
    tsq_client *copy, *of_copy = NULL;
    tsq_buffer *content = NULL;
    snprintf(backup, sizeof backup, "%s/backup.db", folder);
    snprintf(data_dir, sizeof data_dir, "%s/copy", folder);
    WORKS(tsq_realtime_cursor(service, &cursor, &err));
    WORKS(tsq_client_backup(service, tsq_str_from(backup), &err));
    WORKS(tsq_restore(tsq_str_from(backup), tsq_str_from(data_dir), &err));
    FAILS(tsq_restore(tsq_str_from(backup), tsq_str_from(data_dir), &err), TSQ_CONFIG, NULL, "");
    copy = open_client("copy");
    WORKS(tsq_client_as_service(copy, &of_copy, &err));
    memset(&request, 0, sizeof request);
    request.table = TSQ_STR("spaces");
    request.since = tsq_string_view(cursor);
    FAILS(tsq_realtime_changes(of_copy, &request, &stream, &err), TSQ_CURSOR_EXPIRED, stream, "");
    /* The file came along. */
    WORKS(tsq_storage_download(of_copy, TSQ_STR("assets"), TSQ_STR("one/path"), &content, &err));
    tsq_buffer_free(content);
    tsq_string_free(cursor);
    /* Without it, descriptors of the copy would close while a later check counts them. */
    WORKS(tsq_client_close(copy, &err));
    tsq_client_free(of_copy);
    tsq_client_free(copy);
}

static int open_descriptors(void) {
    int count = 0;
    DIR *descriptors = opendir("/proc/self/fd");
    if (descriptors == NULL) {
        return 0;
    }
    while (readdir(descriptors) != NULL) {
        count++;
    }
    closedir(descriptors);
    return count;
}

static void close_leaves_no_descriptor(void) {
    const int before = open_descriptors();
    tsq_client *client = open_client("descriptors"), *service = NULL;
    uint8_t *content = (uint8_t *)calloc(1, SIZES[1]);
    tsq_bytes bytes;
    int number, opened;
    WORKS(tsq_client_as_service(client, &service, &err));
    opened = open_descriptors();
    bytes.ptr = content;
    bytes.len = SIZES[1];
    for (number = 0; number < 60; number++) {
        char path[32];
        snprintf(path, sizeof path, "many/%d", number);
        WORKS(tsq_storage_upload(service, TSQ_STR("assets"), tsq_str_from(path), bytes, NULL, NULL, &err));
    }
    CHECK(open_descriptors() <= opened + 24);
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(service);
    tsq_client_free(client);
    CHECK(open_descriptors() == before);
    free(content);
}

static void writes_to_a_removed_database_fail(void) {
    char file[4096];
    tsq_client *client = open_client("removed"), *service = NULL;
    tsq_new_space input;
    memset(&input, 0, sizeof input);
    input.name = TSQ_STR("lost");
    WORKS(tsq_client_as_service(client, &service, &err));
    snprintf(file, sizeof file, "%s/removed/townsquare.db", folder);
    CHECK(unlink(file) == 0);
    FAILS(tsq_spaces_create_space(service, &input, NULL, &err), TSQ_UNAVAILABLE, NULL, "");
    tsq_client_free(service);
    tsq_client_free(client);
}

static void open_without_migrations_creates_nothing(void) {
    char text[4096];
    tsq_client *client = NULL;
    tsq_config *config = tsq_config_new();
    snprintf(text, sizeof text, "%s/new", folder);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    WORKS(tsq_config_set(config, TSQ_STR("migrate"), TSQ_STR("false"), &err));
    FAILS(tsq_client_open(config, &client, &err), TSQ_CONFIG, client, "");
    strncat(text, "/townsquare.db", sizeof text - strlen(text) - 1);
    CHECK(access(text, F_OK) != 0);
    tsq_config_free(config);
}

int main(int argc, char **argv) {
    tsq_client *client, *service = NULL;
    if (argc < 3) {
        return 2;
    }
    folder = argv[2];
    client = open_client("town");
    WORKS(tsq_client_as_service(client, &service, &err));
    uploads_to_one_path_all_return_and_leave_one_of_them(service);
    filters_find_values_of_every_type(service);
    a_stream_ends_with_the_session_of_its_user(service);
    events_before_unsubscribe_are_delivered(client);
    a_delete_of_nothing_is_404_and_a_stale_version_412(service);
    a_copy_refuses_cursors_of_the_original(service);
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(service);
    tsq_client_free(client);
    close_leaves_no_descriptor();
    writes_to_a_removed_database_fail();
    open_without_migrations_creates_nothing();
    return checks_done("guarantees");
}
