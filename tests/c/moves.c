/* Moving a client's data into an empty place: progress, cancelling, the report. Also compiled as C++: keep to the common subset.
 *
 * moves CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "progress.h"
#include "stored.h"

/* Larger than inline_file_limit. */
enum { LARGE = 300007 };

static tsq_client *anonymous, *user;
static uint8_t old_bytes[LARGE];

static void in_folder(char *out, size_t size, const char *name) {
    snprintf(out, size, "%s/%s", folder, name);
}

static int is_named(const tsq_table_rows *table, const char *name) {
    return table->name.len == strlen(name) && memcmp(table->name.ptr, name, table->name.len) == 0;
}

static tsq_config *config_for(const char *data_dir) {
    tsq_config *config = tsq_config_new();
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(data_dir), &err));
    WORKS(tsq_config_set(config, TSQ_STR("catalog_api_key"), TSQ_STR(""), &err));
    return config;
}

static void a_move_is_cancelled_and_continued(void) {
    char target[4096], other[4096];
    seen progress = fresh_seen(5);
    tsq_move_report *report = NULL;
    tsq_client *moved = NULL;
    tsq_string *json = NULL;
    tsq_move_options without_sessions;
    uint64_t buckets = 0, sessions = 0;
    in_folder(target, sizeof target, "moved");
    in_folder(other, sizeof other, "moved-without-sessions");
    tsq_config *config = config_for(target);

    FAILS(tsq_client_move_to(user, config, NULL, see, &progress, &report, &err), TSQ_CANCELLED, report, "Move failed: A callback cancelled the call");
    CHECK(progress.calls == 5);
    FAILS(tsq_client_open(config, &moved, &err), TSQ_CONFIG, moved, "Open failed: The database has an unfinished move from ");
    progress = fresh_seen(0);
    WORKS(tsq_client_move_to(user, config, NULL, see, &progress, &report, &err));
    CHECK(progress.is_in_order && progress.done == progress.total && progress.done > 0);
    CHECK(report->resumed && report->files > 0 && report->bytes >= LARGE && report->seconds >= 0);
    for (size_t i = 0; i < report->tables_len; i++) {
        if (is_named(&report->tables[i], "buckets")) buckets = report->tables[i].rows;
        if (is_named(&report->tables[i], "sessions")) sessions = report->tables[i].rows;
    }
    CHECK(buckets == 3 && sessions > 0);
    WORKS(tsq_move_report_json(report, &json, &err));
    CHECK(has(tsq_string_view(json), "\"resumed\":true") && has(tsq_string_view(json), "\"rows\":{"));
    tsq_string_free(json);
    tsq_move_report_free(report);
    WORKS(tsq_client_open(config, &moved, &err));
    CHECK(holds(moved, "assets", "outside", old_bytes, LARGE));
    tsq_client_free(moved);

    FAILS(tsq_client_move_to(user, config, NULL, NULL, NULL, &report, &err), TSQ_CONFIG, report, "Move failed: The target of a move is an empty database");
    FAILS(tsq_client_move_to(user, NULL, NULL, NULL, NULL, &report, &err), TSQ_CONFIG, report, "Move failed: The target of a move needs the option");
    FAILS(tsq_client_move_to(NULL, config, NULL, NULL, NULL, &report, &err), TSQ_INVALID_INPUT, report, "Move failed: Argument client is NULL");
    tsq_config_free(config);
    config = config_for(other);
    memset(&without_sessions, 0, sizeof without_sessions);
    without_sessions.without_sessions = true;
    WORKS(tsq_client_move_to(anonymous, config, &without_sessions, NULL, NULL, NULL, &err));
    WORKS(tsq_client_open(config, &moved, &err));
    CHECK(holds(moved, "assets", "outside", old_bytes, LARGE));
    tsq_client_free(moved);
    tsq_config_free(config);
    tsq_move_report_free(NULL);
    FAILS(tsq_move_report_json(NULL, &json, &err), TSQ_INVALID_INPUT, NULL, "Argument report is NULL");
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    tsq_client *service = NULL;
    tsq_session *session = NULL;
    tsq_bytes large;
    for (size_t i = 0; i < LARGE; i++) {
        old_bytes[i] = (uint8_t)(i * 7 + i / 256);
    }
    large.ptr = old_bytes;
    large.len = LARGE;
    anonymous = open_with("town", NULL);
    WORKS(tsq_client_as_service(anonymous, &service, &err));
    session = meet(service, "user@town.example");
    user = act_as(anonymous, session);
    tsq_session_free(session);
    WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("outside"), large, NULL, NULL, &err));
    WORKS(put(user, "assets", "inside", "x"));
    a_move_is_cancelled_and_continued();
    tsq_client_free(user);
    tsq_client_free(service);
    tsq_client_free(anonymous);
    return checks_done("moves");
}
