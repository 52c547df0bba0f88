/* For call_sequences.c: operations on configurations, clients and files of the host. */
#ifndef SEQUENCE_CLIENTS_H
#define SEQUENCE_CLIENTS_H

#include "sequence_arguments.h"
#include "sequence_handles.h"

/* The catalog file, and a session of the user, whose tokens an input may replace. */
static const char *catalog;
static tsq_session *session;
static int is_session_changed;

/* The clients that an input has opened: few, because each has threads and a database. */
static int clients_opened;

/* Names of options, of which none is ever used to open a client. */
static void set_an_option(void) {
    static const char *const names[] = {"data_dir", "durability", "refresh_interval", "max_name_size", "catalog_url", "buckets",
                                        "storage_url", "endpoint_origins", "url_signing_key", "database_url", "max_connections"};
    static const char *const values[] = {":memory:", "full", "60", "0", "-1", "1e9", "a=public,b=private", "*", "postgres://u:p@h/d", "true"};
    tsq_config *config = PICK(config);
    const tsq_str name = USUAL(names);
    const tsq_str value = USUAL(values);
    DOES(tsq_config_set(config, name, value, err));
}

static void make_a_config(void) {
    static const char *const urls[] = {"townsquare::memory:", "townsquare:/nowhere?durability=normal&refresh_interval=60", "sqlite::memory:",
                                       "sqlite:/nowhere/x", "postgres://u:p@h/d?max_connections=2", "townsquare:?durability=", "townsquare:%ff"};
    const unsigned way = below(8);
    if (way < 4) {
        keep(kind_config, tsq_config_new());
    } else if (way == 4) {
        MAKES(config, REQUIRED, tsq_config_from_env(out, err));
    } else {
        const tsq_str url = USUAL(urls);
        MAKES(config, REQUIRED, tsq_config_from_url(url, out, err));
    }
}

/* Options with which a client in memory opens. */
static const char *const options[][2] = {
    {"max_name_size", "8"}, {"max_json_size", "32"}, {"inline_file_limit", "0"}, {"max_file_size", "16"}, {"max_bulk_rows", "1"},
    {"change_retention_rows", "100"}, {"max_space_fidgets", "1"}, {"endpoint_origins", "*"}, {"buckets", "open=public,closed=private"}};

static tsq_config *config_in_memory(unsigned choice) {
    tsq_config *config = tsq_config_new();
    tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(":memory:"), NULL);
    tsq_config_set(config, TSQ_STR("catalog_url"), tsq_str_from(catalog), NULL);
    tsq_config_set(config, TSQ_STR("catalog_api_key"), TSQ_STR(""), NULL);
    if (choice < COUNT(options)) {
        tsq_config_set(config, tsq_str_from(options[choice][0]), tsq_str_from(options[choice][1]), NULL);
    }
    return config;
}

static void open_a_client(void) {
    const tsq_client *client = PICK(client);
    tsq_config *config = config_in_memory(below(COUNT(options) + 1));
    const unsigned way = below(3);
    int target;
    if (clients_opened == 0) {
        clients_opened++;
        MAKES(client, REQUIRED, tsq_client_open(config, out, err));
    } else if (way == 0) {
        MAKES(migration_plan, REQUIRED, tsq_client_plan_migrations(config, out, err));
    } else if (way == 1) {
        COUNTS(tsq_move_target, target, tsq_client_check_move(client, config, out, err));
        MUST(target == TSQ_MOVE_TARGET_REFUSED || tsq_move_target_name((int32_t)target).len > 0);
    } else {
        static tsq_move_options none;
        const tsq_move_options *given = OPTIONAL_INPUT(move_options, none);
        is_refused = 1;
        MAKES(move_report, OPTIONAL, tsq_client_move_to(NULL, config, given, NULL, NULL, out, err));
    }
    tsq_config_free(config);
}

static void make_a_client(void) {
    static const char *const keys[] = {"10.0.0.1:80", "::1", "[::1]:80", " device ", ""};
    const tsq_client *client = PICK(client);
    tsq_str text = absent;
    switch (below(5)) {
    case 0:
        MAKES(client, REQUIRED, tsq_client_as_service(client, out, err));
        break;
    case 1:
        MAKES(client, REQUIRED, tsq_client_as_anonymous(client, out, err));
        break;
    case 2:
        text = USUAL(keys);
        MAKES(client, REQUIRED, tsq_client_with_client_key(client, text, out, err));
        if (last_made != NULL) {
            last_made->is_shared = !is_own(client);
        }
        break;
    case 3:
        text = lent(session->access_token.ptr, session->access_token.len);
        MAKES(client, REQUIRED, tsq_client_as_user(client, text, out, err));
        break;
    default:
        text = draw_text();
        MAKES(client, REQUIRED, tsq_client_as_user(client, text, out, err));
        break;
    }
}

static void close_a_client(void) {
    const tsq_client *client = PICK(client);
    if (is_own(client)) {
        DOES(tsq_client_close(client, err));
        MUST(tsq_client_is_closed(client));
    }
}

static void ask_a_client(void) {
    static const char *const positions[] = {"", "0/0", "1"};
    const tsq_client *client = PICK(client);
    tsq_str position;
    tsq_check_depth depth;
    bool was_refused;
    switch (below(9)) {
    case 0:
        MAKES(string, REQUIRED, tsq_client_read_position(client, out, err));
        break;
    case 1:
        position = USUAL(positions);
        DOES(tsq_client_read_after(client, position, err));
        break;
    case 2:
        draw_enum(&depth, 2);
        MAKES(findings, REQUIRED, tsq_client_check(client, depth, out, err));
        break;
    case 3:
        MAKES(string, REQUIRED, tsq_client_metrics_json(client, out, err));
        break;
    case 4:
        MAKES(string, REQUIRED, tsq_client_metrics_prometheus(client, out, err));
        break;
    case 5:
        COUNTS(bool, was_refused, tsq_client_reopen_for_writes(client, out, err));
        MUST(!was_refused);
        break;
    case 6:
        if (is_own(client)) {
            int descriptor;
            COUNTS(int, descriptor, tsq_client_poll_fd(client, out, err));
            MUST(descriptor >= 0);
        }
        DOES(tsq_client_dispatch(client, err));
        break;
    case 7:
        DOES(tsq_client_dispatch(client, err));
        break;
    default:
        MUST(tsq_client_is_closed(client) || client != NULL);
        break;
    }
}

/* Calls that read and write files of the host: none of these paths can be a file. */
static void use_files_of_the_host(void) {
    static const char *const paths[] = {"/dev/null/x", "/dev/null/x/y", "\xff"};
    const tsq_client *client = PICK(client);
    const tsq_str path = lent_text(paths[below(COUNT(paths))]);
    const tsq_str bucket = lent_text("assets");
    const tsq_str name = lent_text("a");
    uint64_t files;
    switch (below(5)) {
    case 0:
        DOES(tsq_client_backup(client, path, err));
        break;
    case 1:
        DOES(tsq_restore(path, path, err));
        break;
    case 2:
        MAKES(file_info, OPTIONAL, tsq_storage_upload_from(client, bucket, name, path, NULL, NULL, NULL, out, err));
        break;
    case 3:
        MAKES(file_info, OPTIONAL, tsq_storage_download_to(client, bucket, name, path, NULL, NULL, out, err));
        break;
    default:
        COUNTS(uint64_t, files, tsq_storage_export_files(client, path, NULL, NULL, out, err));
        MUST(files == 0);
        break;
    }
}

#endif
