/* A host that loads the library with dlopen and is not linked with it.
 *
 * loading unload LIBRARY FOLDER: unloads the library while threads of a client still end.
 * loading panic LIBRARY FOLDER: a panic becomes an error and a log event.
 * loading copies LIBRARY FOLDER COPY: the library and a copy of its file serve a folder each in one process, and not one folder. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include "check.h"

static void *library;

/* Reads a function pointer of the library. */
static void load(const char *name, void *function) {
    void *symbol = dlsym(library, name);
    CHECK(symbol != NULL);
    memcpy(function, &symbol, sizeof symbol);
}

static const char *path;
static const char *folder;
static int closes;

static tsq_status open_client(const char *data_dir, tsq_client **out, tsq_error **err) {
    tsq_config *(*config_new)(void);
    tsq_status (*config_set)(tsq_config *, tsq_str, tsq_str, tsq_error **);
    void (*config_free)(tsq_config *);
    tsq_status (*client_open)(const tsq_config *, tsq_client **, tsq_error **);
    tsq_config *config;
    tsq_status status;
    tsq_str name = {"data_dir", 8};
    tsq_str value;
    load("tsq_config_new", &config_new);
    load("tsq_config_set", &config_set);
    load("tsq_config_free", &config_free);
    load("tsq_client_open", &client_open);
    value.ptr = data_dir;
    value.len = strlen(data_dir);
    config = config_new();
    CHECK(config_set(config, name, value, NULL) == TSQ_OK);
    status = client_open(config, out, err);
    config_free(config);
    return status;
}

/* On a thread that ends: the thread-local values of a living thread keep a library in memory. */
static void *use_a_client(void *unused) {
    tsq_status (*client_close)(const tsq_client *, tsq_error **);
    void (*client_free)(tsq_client *);
    tsq_client *client = NULL;
    (void)unused;
    load("tsq_client_close", &client_close);
    load("tsq_client_free", &client_free);
    CHECK(open_client(folder, &client, NULL) == TSQ_OK);
    if (closes) {
        CHECK(client_close(client, NULL) == TSQ_OK);
    }
    client_free(client);
    return NULL;
}

static void unload_after_use(void) {
    pthread_t thread;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    CHECK(pthread_create(&thread, NULL, use_a_client, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(dlclose(library) == 0);
    /* Finds the library only if it is still in memory. */
    library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    CHECK(library != NULL);
    if (library != NULL) {
        CHECK(dlclose(library) == 0);
    }
}

static int events;

static void count_panics(const tsq_log_event *event, void *user_data) {
    (void)user_data;
    events += event->level == TSQ_LOG_ERROR && has(event->message, "the library panicked: on purpose") &&
              has(event->message, "call.rs");
}

/* Returns 77 for a release build, which has no function that panics. */
static int log_a_panic(void) {
    tsq_status (*set_log)(tsq_log_callback, void *, tsq_destroy, tsq_error **);
    tsq_status (*test_panic)(tsq_error **);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    if (dlsym(library, "townsquare_test_panic") == NULL) {
        return 77;
    }
    load("tsq_set_log", &set_log);
    load("townsquare_test_panic", &test_panic);
    CHECK(test_panic(NULL) == TSQ_INTERNAL);
    CHECK(events == 0);
    CHECK(set_log(count_panics, NULL, NULL, NULL) == TSQ_OK);
    CHECK(test_panic(NULL) == TSQ_INTERNAL);
    CHECK(events == 1);
    return checks_done("loading");
}

/* The folder of an open client of another copy is refused. */
static void refuse_the_folder_of_the_other_copy(const char *data_dir) {
    tsq_str (*error_message)(const tsq_error *);
    void (*error_free)(tsq_error *);
    tsq_client *client = NULL;
    tsq_error *error = NULL;
    load("tsq_error_message", &error_message);
    load("tsq_error_free", &error_free);
    CHECK(open_client(data_dir, &client, &error) == TSQ_CONFIG);
    CHECK(client == NULL && error != NULL && has(error_message(error), "Another copy of the library"));
    error_free(error);
}

/* Opens, writes with and closes a client of each copy, while the other copy's client is open. */
static int use_two_copies(const char *other_path) {
    void *copies[2];
    tsq_client *clients[2] = {NULL, NULL};
    tsq_client *services[2] = {NULL, NULL};
    char folders[2][4096];
    copies[0] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    copies[1] = dlopen(other_path, RTLD_NOW | RTLD_LOCAL);
    CHECK(copies[0] != NULL && copies[1] != NULL && copies[0] != copies[1]);
    for (int i = 0; i < 2; i++) {
        tsq_status (*as_service)(const tsq_client *, tsq_client **, tsq_error **);
        library = copies[i];
        load("tsq_client_as_service", &as_service);
        snprintf(folders[i], sizeof folders[i], "%s-%d", folder, i);
        CHECK(open_client(folders[i], &clients[i], NULL) == TSQ_OK);
        CHECK(as_service(clients[i], &services[i], NULL) == TSQ_OK);
    }
    refuse_the_folder_of_the_other_copy(folders[0]);
    library = copies[0];
    refuse_the_folder_of_the_other_copy(folders[1]);
    for (int row = 0; row < 20; row++) {
        for (int i = 0; i < 2; i++) {
            tsq_status (*create_space)(const tsq_client *, const tsq_new_space *, tsq_space **, tsq_error **);
            tsq_new_space input;
            library = copies[i];
            load("tsq_spaces_create_space", &create_space);
            memset(&input, 0, sizeof input);
            input.name.ptr = "Harbor";
            input.name.len = 6;
            CHECK(create_space(services[i], &input, NULL, NULL) == TSQ_OK);
        }
    }
    for (int i = 0; i < 2; i++) {
        tsq_status (*list_spaces)(const tsq_client *, uint32_t, tsq_str, tsq_space_list **, tsq_error **);
        size_t (*list_len)(const tsq_space_list *);
        void (*list_free)(tsq_space_list *);
        tsq_status (*client_close)(const tsq_client *, tsq_error **);
        void (*client_free)(tsq_client *);
        tsq_space_list *list = NULL;
        const tsq_str absent = {NULL, 0};
        library = copies[i];
        load("tsq_spaces_list_spaces", &list_spaces);
        load("tsq_space_list_len", &list_len);
        load("tsq_space_list_free", &list_free);
        load("tsq_client_close", &client_close);
        load("tsq_client_free", &client_free);
        CHECK(list_spaces(services[i], 100, absent, &list, NULL) == TSQ_OK && list_len(list) == 20);
        list_free(list);
        CHECK(client_close(clients[i], NULL) == TSQ_OK);
        if (i == 0) {
            /* The other copy may take over what is closed, even before it is freed. */
            void (*other_free)(tsq_client *);
            tsq_client *other = NULL;
            library = copies[1];
            load("tsq_client_free", &other_free);
            CHECK(open_client(folders[0], &other, NULL) == TSQ_OK);
            other_free(other);
        }
        client_free(services[i]);
        client_free(clients[i]);
        CHECK(dlclose(copies[i]) == 0);
    }
    return checks_done("loading");
}

int main(int argc, char **argv) {
    struct timespec a_little = {0, 300000000};
    if (argc != (argc > 1 && strcmp(argv[1], "copies") == 0 ? 5 : 4)) {
        fprintf(stderr, "usage: %s unload|panic LIBRARY FOLDER, or copies LIBRARY FOLDER COPY\n", argv[0]);
        return 2;
    }
    path = argv[2];
    folder = argv[3];
    if (strcmp(argv[1], "panic") == 0) {
        return log_a_panic();
    }
    if (strcmp(argv[1], "copies") == 0) {
        return use_two_copies(argv[4]);
    }
    for (int round = 0; round < 4; round++) {
        closes = round % 2 == 0;
        unload_after_use();
    }
    nanosleep(&a_little, NULL);
    return checks_done("loading");
}
