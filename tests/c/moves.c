/* Moving a client's data into an empty place: the check of a target, progress, cancelling, the report. Also compiled as C++: keep to the common subset.
 *
 * moves CATALOG FOLDER: the folder is empty; the catalog is not read. */
#define _POSIX_C_SOURCE 200809L

#include "progress.h"
#include "stored.h"

#include <unistd.h>

/* Larger than inline_file_limit. */
enum { LARGE = 300007 };

static tsq_client *anonymous, *user;
static uint8_t old_bytes[LARGE];

static int is_named(const tsq_table_rows *table, const char *name) {
    return table->name.len == strlen(name) && memcmp(table->name.ptr, name, table->name.len) == 0;
}

/* Whether a move is refused with this sentence. */
static int refuses(const tsq_client *client, const tsq_config *target, const char *sentence) {
    tsq_move_target state = TSQ_MOVE_TARGET_EMPTY;
    const tsq_status status = tsq_client_check_move(client, target, &state, &err);
    return failed(status, TSQ_CONFIG, NULL, sentence) && state == TSQ_MOVE_TARGET_REFUSED;
}

/* What the target is for a move of `client`. */
static tsq_move_target checked(const tsq_client *client, const tsq_config *target) {
    tsq_move_target state = TSQ_MOVE_TARGET_REFUSED;
    WORKS(tsq_client_check_move(client, target, &state, &err));
    return state;
}

static void a_target_is_checked_and_not_changed(void) {
    static const char *const in_memory[] = {"data_dir", ":memory:", NULL};
    char folder_of_target[4096];
    tsq_client *other = NULL;
    tsq_config *config = NULL;
    tsq_move_target state = TSQ_MOVE_TARGET_EMPTY;
    snprintf(folder_of_target, sizeof folder_of_target, "%s/checked", folder);
    config = config_with("checked", NULL);
    CHECK(checked(user, config) == TSQ_MOVE_TARGET_NEW && checked(anonymous, config) == TSQ_MOVE_TARGET_NEW);
    CHECK(access(folder_of_target, F_OK) != 0);
    WORKS(tsq_client_open(config, &other, &err));
    tsq_client_free(other);
    CHECK(checked(user, config) == TSQ_MOVE_TARGET_EMPTY);
    WORKS(tsq_client_open(config, &other, &err));
    WORKS(tsq_auth_sign_up(other, TSQ_STR("mine@town.example"), TSQ_STR(PASSWORD), NULL, &err));
    tsq_client_free(other);
    CHECK(refuses(user, config, "Move failed: The target of a move is an empty database, and this one has rows in users"));

    FAILS(tsq_client_check_move(NULL, config, &state, &err), TSQ_INVALID_INPUT, NULL, "Move failed: Argument client is NULL");
    CHECK(state == TSQ_MOVE_TARGET_REFUSED);
    FAILS(tsq_client_check_move(user, config, NULL, &err), TSQ_INVALID_INPUT, NULL, "Move failed: Argument out is NULL");
    tsq_config_free(config);
    CHECK(refuses(user, NULL, "Move failed: The target of a move needs the option data_dir or database_url"));
    config = config_with("town", NULL);
    CHECK(refuses(user, config, "Move failed: The target of a move is another database than its source"));
    tsq_config_free(config);
    config = config_with("memory", in_memory);
    CHECK(refuses(user, config, "Move failed: Option data_dir: a target in memory is lost after the move"));
    tsq_config_free(config);
    CHECK(is(tsq_move_target_name(TSQ_MOVE_TARGET_NEW), "new") && is(tsq_move_target_name(TSQ_MOVE_TARGET_EMPTY), "empty"));
    CHECK(is(tsq_move_target_name(TSQ_MOVE_TARGET_UNFINISHED), "unfinished"));
    CHECK(is_absent(tsq_move_target_name(TSQ_MOVE_TARGET_REFUSED)) && is_absent(tsq_move_target_name(4)) && is_absent(tsq_move_target_name(-1)));
}

static void a_move_is_cancelled_and_continued(void) {
    seen progress = fresh_seen(5);
    tsq_move_report *report = NULL;
    tsq_client *moved = NULL;
    tsq_string *json = NULL;
    tsq_move_options without_sessions;
    uint64_t buckets = 0, sessions = 0;
    tsq_config *config = config_with("moved", NULL);

    FAILS(tsq_client_move_to(user, config, NULL, see, &progress, &report, &err), TSQ_CANCELLED, report, "Move failed: A callback cancelled the call");
    CHECK(progress.calls == 5);
    FAILS(tsq_client_open(config, &moved, &err), TSQ_CONFIG, moved, "Open failed: The database has an unfinished move from ");
    CHECK(checked(user, config) == TSQ_MOVE_TARGET_UNFINISHED);
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
    CHECK(refuses(user, config, "Move failed: The target of a move is an empty database"));
    FAILS(tsq_client_move_to(user, NULL, NULL, NULL, NULL, &report, &err), TSQ_CONFIG, report, "Move failed: The target of a move needs the option");
    FAILS(tsq_client_move_to(NULL, config, NULL, NULL, NULL, &report, &err), TSQ_INVALID_INPUT, report, "Move failed: Argument client is NULL");
    tsq_config_free(config);
    config = config_with("moved-without-sessions", NULL);
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

/* The last test of the source: it takes no writes afterwards, until it is reopened. */
static void a_move_follows_a_source_that_is_written(void) {
    tsq_move_options following;
    tsq_move_report *report = NULL;
    tsq_client *moved = NULL;
    bool was_moved = true;
    tsq_config *config = config_with("followed", NULL);
    memset(&following, 0, sizeof following);
    following.follow_ms = 10000;
    WORKS(tsq_client_reopen_for_writes(anonymous, &was_moved, &err));
    CHECK(!was_moved);
    WORKS(tsq_client_move_to(anonymous, config, &following, NULL, NULL, &report, &err));
    CHECK(!report->resumed && report->files > 0);
    tsq_move_report_free(report);
    WORKS(tsq_client_open(config, &moved, &err));
    CHECK(holds(moved, "assets", "outside", old_bytes, LARGE));
    tsq_client_free(moved);
    tsq_config_free(config);
    CHECK(put(user, "assets", "late", "x") == TSQ_UNAVAILABLE && !tsq_error_is_retryable(err));
    tsq_error_free(err);
    err = NULL;
    CHECK(failed(put(user, "assets", "late", "x"), TSQ_UNAVAILABLE, NULL, "the database has moved to another place"));
    WORKS(tsq_client_reopen_for_writes(anonymous, &was_moved, &err));
    CHECK(was_moved);
    WORKS(put(user, "assets", "late", "x"));
    FAILS(tsq_client_reopen_for_writes(anonymous, NULL, &err), TSQ_INVALID_INPUT, NULL, "Reopen for writes failed: Argument out is NULL");
    FAILS(tsq_client_reopen_for_writes(NULL, &was_moved, &err), TSQ_INVALID_INPUT, NULL, "Reopen for writes failed: Argument client is NULL");
    CHECK(!was_moved);
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
    a_target_is_checked_and_not_changed();
    a_move_is_cancelled_and_continued();
    a_move_follows_a_source_that_is_written();
    tsq_client_free(user);
    tsq_client_free(service);
    tsq_client_free(anonymous);
    return checks_done("moves");
}
