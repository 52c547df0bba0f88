/* Reads on a standby that has stopped to follow (option database_replica_url): what a client reads there, and what it reads after
 * a position. Also compiled as C++: keep to the common subset.
 *
 * replica CATALOG FOLDER: the database and its standby are those of the environment. The catalog is not read. */
#define _POSIX_C_SOURCE 200809L

#include "people.h"

#include <stdlib.h>

static kept space;

static tsq_client *as_anonymous(const tsq_client *client) {
    tsq_client *handle = NULL;
    WORKS(tsq_client_as_anonymous(client, &handle, &err));
    return handle;
}

static tsq_client *as_service(const tsq_client *client) {
    tsq_client *handle = NULL;
    WORKS(tsq_client_as_service(client, &handle, &err));
    return handle;
}

static tsq_client *open_town(const char *replica) {
    tsq_client *client = NULL;
    tsq_config *config = tsq_config_new();
    WORKS(tsq_config_set(config, TSQ_STR("database_url"), tsq_str_from(getenv("TSQ_TEST_DATABASE_URL")), &err));
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(folder), &err));
    WORKS(tsq_config_set(config, TSQ_STR("catalog_api_key"), TSQ_STR(""), &err));
    if (replica != NULL) {
        WORKS(tsq_config_set(config, TSQ_STR("database_replica_url"), tsq_str_from(replica), &err));
        WORKS(tsq_config_set(config, TSQ_STR("database_replica_wait"), TSQ_STR("0.001"), &err));
        WORKS(tsq_config_set(config, TSQ_STR("database_replica_max_lag"), TSQ_STR("3600"), &err));
    }
    WORKS(tsq_client_open(config, &client, &err));
    tsq_config_free(config);
    return client;
}

static void rename_space(const tsq_client *service, const char *name) {
    tsq_space_patch patch;
    memset(&patch, 0, sizeof patch);
    patch.name = set(name);
    WORKS(tsq_spaces_update_space(service, of(&space), &patch, NULL, &err));
}

/* The name of the space, as the handle reads it. */
static kept name_of_space(const tsq_client *handle) {
    kept name;
    tsq_space *read = NULL;
    memset(&name, 0, sizeof name);
    WORKS(tsq_spaces_get_space(handle, of(&space), &read, &err));
    if (read != NULL) {
        name = keep(read->name);
    }
    tsq_space_free(read);
    return name;
}

static int reads(const tsq_client *handle, const char *expected) {
    const kept name = name_of_space(handle);
    if (strcmp(name.text, expected) != 0) {
        fprintf(stderr, "  reads \"%s\", not \"%s\"\n", name.text, expected);
        return 0;
    }
    return 1;
}

static void sleep_shortly(void) {
    const struct timespec pause = {0, 10 * 1000 * 1000};
    nanosleep(&pause, NULL);
}

/* Waits until the client reads on the standby. */
static void wait_for_standby(const tsq_client *client) {
    int waits = 6000, is_used = 0;
    for (; waits > 0 && !is_used; waits--) {
        tsq_client *handle = as_anonymous(client);
        tsq_string *text = NULL;
        CHECK(reads(handle, "old"));
        WORKS(tsq_client_metrics_prometheus(client, &text, &err));
        is_used = !contains(tsq_string_view(text), "townsquare_replica_reads_total{answered_by=\"replica\"} 0");
        tsq_string_free(text);
        tsq_client_free(handle);
        sleep_shortly();
    }
    CHECK(is_used);
}

/* Has the standby pause: whoever started it waits for a space with this name. */
static void pause_standby(const tsq_client *service) {
    tsq_new_space command;
    tsq_space *made = NULL;
    int waits = 6000, is_done = 0;
    memset(&command, 0, sizeof command);
    command.name = TSQ_STR("pause");
    WORKS(tsq_spaces_create_space(service, &command, &made, &err));
    for (; waits > 0 && !is_done; waits--) {
        tsq_space *now_named = NULL;
        WORKS(tsq_spaces_get_space(service, made->id, &now_named, &err));
        is_done = contains(now_named->name, "done");
        tsq_space_free(now_named);
        sleep_shortly();
    }
    tsq_space_free(made);
    CHECK(is_done);
}

static void a_position_lets_another_client_read_what_was_written(const tsq_client *service, const tsq_client *client) {
    tsq_string *position = NULL;
    tsq_client *told = as_anonymous(client), *other = as_anonymous(client);
    WORKS(tsq_client_read_position(service, &position, &err));
    CHECK(tsq_string_view(position).len > 0);
    CHECK(reads(told, "old"));
    WORKS(tsq_client_read_after(told, tsq_string_view(position), &err));
    CHECK(reads(told, "new"));
    CHECK(reads(other, "old"));
    FAILS(tsq_client_read_after(other, TSQ_STR("1-1-'; DROP TABLE spaces; --"), &err), TSQ_INVALID_INPUT, NULL,
          "Read after failed: ");
    CHECK(reads(other, "old"));
    tsq_string_free(position);
    tsq_client_free(other);
    tsq_client_free(told);
}

static void a_client_reads_what_it_has_written(const tsq_client *client) {
    tsq_client *service = as_service(client), *anonymous = as_anonymous(client);
    rename_space(service, "newer");
    CHECK(reads(anonymous, "newer"));
    tsq_client_free(anonymous);
    tsq_client_free(service);
}

int main(int argc, char **argv) {
    tsq_client *writer, *service, *client;
    tsq_new_space fresh;
    tsq_space *made = NULL;
    if (argc != 3) {
        return 2;
    }
    folder = argv[2];
    writer = open_town(NULL);
    service = as_service(writer);
    memset(&fresh, 0, sizeof fresh);
    fresh.name = TSQ_STR("old");
    fresh.is_public = true;
    WORKS(tsq_spaces_create_space(service, &fresh, &made, &err));
    space = keep(made->id);
    tsq_space_free(made);
    client = open_town(getenv("TSQ_TEST_REPLICA_URL"));
    wait_for_standby(client);
    pause_standby(service);
    rename_space(service, "new");
    a_position_lets_another_client_read_what_was_written(service, client);
    a_client_reads_what_it_has_written(client);
    tsq_client_free(client);
    tsq_client_free(service);
    tsq_client_free(writer);
    return checks_done("replica");
}
