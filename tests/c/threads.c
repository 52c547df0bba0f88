/* Calls and callbacks on several threads, for Helgrind and ThreadSanitizer (ffi/races). Also compiled as C++: keep to the
 * common subset.
 *
 * threads CATALOG FOLDER [race]: the catalog is tests/c/catalog.json, the folder is empty. With `race` the program has a
 * data race of its own, which the tools must report in spite of the suppressions. */
#include "rows.h"

#include <pthread.h>

/* Helgrind reports the host's reads of memory that a thread of the library wrote. */
#if defined(__has_include)
#if __has_include(<valgrind/helgrind.h>)
#include <valgrind/helgrind.h>
#define IS_FROM_LIBRARY(text) VALGRIND_HG_DISABLE_CHECKING((text).ptr, (text).len)
#endif
#endif
#ifndef IS_FROM_LIBRARY
#define IS_FROM_LIBRARY(text) ((void)(text))
#endif

static const char *catalog;

/* Counts calls of a callback under a lock of the program. */
typedef struct counter {
    pthread_mutex_t lock;
    int calls;
    int destroyed;
} counter;

static void count_event(tsq_auth_event event, const tsq_session *session, void *user_data) {
    counter *self = (counter *)user_data;
    pthread_mutex_lock(&self->lock);
    self->calls += session == NULL && event == TSQ_INITIAL_SESSION;
    pthread_mutex_unlock(&self->lock);
}

static void count_destroy(void *user_data) {
    counter *self = (counter *)user_data;
    pthread_mutex_lock(&self->lock);
    self->destroyed++;
    pthread_mutex_unlock(&self->lock);
}

static void count_change(const tsq_row_change *change, void *user_data) {
    counter *self = (counter *)user_data;
    IS_FROM_LIBRARY(change->table);
    pthread_mutex_lock(&self->lock);
    self->calls += is(change->table, "spaces");
    pthread_mutex_unlock(&self->lock);
}

static void count_load(const tsq_error *error, void *user_data) {
    counter *self = (counter *)user_data;
    pthread_mutex_lock(&self->lock);
    self->calls += error == NULL;
    pthread_mutex_unlock(&self->lock);
}

enum { THREADS = 4, ROUNDS = 3 };

static counter loads;
static int races;
static int is_racing;

/* Larger than the option inline_file_limit. */
enum { LARGE = 100000 };

static uint8_t large[LARGE];

static int32_t count_progress(uint64_t done, uint64_t total, void *user_data) {
    *(int *)user_data += done <= total;
    return 0;
}

/* All threads write to the same two files, which change whole. Returns 0 on success. */
static int store_and_read(const tsq_client *service, const tsq_client *client) {
    static const tsq_str assets = {"assets", 6}, small_path = {"small", 5}, large_path = {"large", 5};
    tsq_file_info *info = NULL;
    tsq_buffer *content = NULL;
    tsq_file_writer *writer = NULL;
    tsq_file_reader *reader = NULL;
    uint8_t byte = 1;
    size_t read = 0;
    int progress = 0;
    char target[4096];
    int wrong = tsq_storage_upload(service, assets, small_path, TSQ_BYTES("small"), NULL, &info, NULL) != TSQ_OK;
    if (info != NULL) {
        IS_FROM_LIBRARY(info->path);
        wrong += !is(info->path, "small");
    }
    tsq_file_info_free(info);
    wrong += tsq_storage_download(client, assets, small_path, &content, NULL) != TSQ_OK;
    wrong += tsq_buffer_view(content).len != 5;
    tsq_buffer_free(content);
    wrong += tsq_storage_open_writer(service, assets, large_path, NULL, &writer, NULL) != TSQ_OK;
    for (int half = 0; half < 2; half++) {
        tsq_bytes bytes;
        bytes.ptr = large;
        bytes.len = LARGE / 2;
        wrong += tsq_file_writer_write(writer, bytes, NULL) != TSQ_OK;
    }
    wrong += tsq_file_writer_finish(writer, NULL, NULL) != TSQ_OK;
    tsq_file_writer_free(writer);
    wrong += tsq_storage_open_reader(client, assets, large_path, &reader, NULL) != TSQ_OK;
    wrong += tsq_file_reader_read_at(reader, LARGE - 1, &byte, 1, &read, NULL) != TSQ_OK;
    wrong += read != 1;
    tsq_file_reader_free(reader);
    /* A name of its own for each thread. */
    snprintf(target, sizeof target, "%s/%p", folder, (void *)&byte);
    wrong += tsq_storage_download_to(client, assets, large_path, tsq_str_from(target), count_progress, &progress, NULL, NULL) != TSQ_OK;
    return wrong + (progress == 0);
}

/* A subscription and a stream of changes while other threads write. Returns 0 on success. */
static int follow_changes(const tsq_client *service) {
    tsq_subscription *subscription = NULL;
    tsq_change_stream *stream = NULL;
    tsq_row_change *change = NULL;
    tsq_change_request request;
    tsq_new_space made;
    counter changes;
    int wrong;
    memset(&request, 0, sizeof request);
    memset(&made, 0, sizeof made);
    memset(&changes, 0, sizeof changes);
    pthread_mutex_init(&changes.lock, NULL);
    request.table = TSQ_STR("spaces");
    made.name = TSQ_STR("Quay");
    wrong = tsq_realtime_subscribe(service, TSQ_STR("all"), &request, count_change, &changes, count_destroy, &subscription, NULL) != TSQ_OK;
    wrong += tsq_realtime_changes(service, &request, &stream, NULL) != TSQ_OK;
    wrong += tsq_spaces_create_space(service, &made, NULL, NULL) != TSQ_OK;
    /* The stream has this space, or one of another thread. */
    wrong += tsq_change_stream_next(stream, -1, &change, NULL) != TSQ_OK || change == NULL;
    if (change != NULL) {
        IS_FROM_LIBRARY(change->table);
        wrong += !is(change->table, "spaces");
    }
    tsq_row_change_free(change);
    tsq_change_stream_free(stream);
    tsq_subscription_unsubscribe(subscription);
    tsq_subscription_free(subscription);
    pthread_mutex_lock(&changes.lock);
    wrong += changes.destroyed != 1;
    pthread_mutex_unlock(&changes.lock);
    pthread_mutex_destroy(&changes.lock);
    return wrong;
}

/* Returns NULL on success, because CHECK is for the main thread only. */
static void *use_the_client(void *argument) {
    tsq_client *client = (tsq_client *)argument;
    tsq_client *service = NULL;
    int wrong = tsq_client_as_service(client, &service, NULL) != TSQ_OK;
    for (int round = 0; round < ROUNDS; round++) {
        tsq_mini_apps *apps = NULL;
        tsq_space *space = NULL;
        tsq_space_list *list = NULL;
        tsq_error *error = NULL;
        tsq_subscription *subscription = NULL;
        tsq_new_space made;
        counter events;
        memset(&made, 0, sizeof made);
        memset(&events, 0, sizeof events);
        pthread_mutex_init(&events.lock, NULL);
        wrong += tsq_discovery_preload(client, count_load, &loads, count_destroy, NULL) != TSQ_OK;
        wrong += tsq_discovery_search_mini_apps(client, TSQ_STR("chess"), NULL, &apps, NULL) != TSQ_OK;
        wrong += tsq_mini_apps_len(apps) != 1;
        tsq_mini_apps_free(apps);
        wrong += tsq_auth_on_auth_state_change(client, count_event, &events, count_destroy, &subscription, NULL) != TSQ_OK;
        made.name = TSQ_STR("Harbour");
        made.is_public = true;
        wrong += tsq_spaces_create_space(service, &made, &space, NULL) != TSQ_OK;
        if (space != NULL) {
            IS_FROM_LIBRARY(space->name);
            wrong += !is(space->name, "Harbour");
        }
        tsq_space_free(space);
        wrong += tsq_spaces_get_public_spaces(client, 10, 0, &list, NULL) != TSQ_OK;
        wrong += tsq_space_list_len(list) == 0;
        tsq_space_list_free(list);
        wrong += tsq_spaces_get_space(client, TSQ_STR(NOBODY), &space, &error) != TSQ_NOT_FOUND;
        tsq_error_free(error);
        wrong += store_and_read(service, client);
        wrong += follow_changes(service);
        tsq_subscription_unsubscribe(subscription);
        tsq_subscription_free(subscription);
        pthread_mutex_lock(&events.lock);
        wrong += events.destroyed != 1;
        pthread_mutex_unlock(&events.lock);
        pthread_mutex_destroy(&events.lock);
        if (is_racing) {
            races++;
        }
    }
    tsq_client_free(service);
    return wrong == 0 ? NULL : client;
}

int main(int argc, char **argv) {
    char text[4096];
    pthread_t threads[THREADS];
    tsq_client *client = NULL;
    tsq_config *config = tsq_config_new();
    if (argc < 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER [race]\n", argv[0]);
        return 2;
    }
    catalog = argv[1];
    folder = argv[2];
    is_racing = argc > 3;
    pthread_mutex_init(&loads.lock, NULL);
    snprintf(text, sizeof text, "%s/town", folder);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    snprintf(text, sizeof text, "file://%s", catalog);
    WORKS(tsq_config_set(config, TSQ_STR("catalog_url"), tsq_str_from(text), &err));
    WORKS(tsq_client_open(config, &client, &err));
    tsq_config_free(config);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, use_the_client, client) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong = client;
        CHECK(pthread_join(threads[i], &wrong) == 0);
        CHECK(wrong == NULL);
    }
    WORKS(tsq_client_close(client, &err));
    tsq_client_free(client);
    pthread_mutex_lock(&loads.lock);
    CHECK(loads.destroyed == THREADS * ROUNDS && loads.calls <= THREADS * ROUNDS);
    pthread_mutex_unlock(&loads.lock);
    CHECK(races <= THREADS * ROUNDS);
    return checks_done("threads");
}
