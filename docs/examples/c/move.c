/* A move: everything of one client into an empty database and file store, compared at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <townsquare.h>

/* Ends the program with the sentence of the error. */
static void check(tsq_status status, tsq_error **err) {
    if (status == TSQ_OK) return;
    fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(*err)));
    exit(1);
}

static tsq_config *folder(tsq_str name) {
    tsq_error *err = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), name, &err), &err);
    return config;
}

static unsigned long long rows_of(const tsq_move_report *report, const char *table) {
    for (size_t i = 0; i < report->tables_len; i++) {
        const tsq_str name = report->tables[i].name;
        if (name.len == strlen(table) && memcmp(name.ptr, table, name.len) == 0) return report->tables[i].rows;
    }
    return 0;
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = NULL, *service = NULL, *ann = NULL;
    tsq_config *town = folder(TSQ_STR("town")), *moved = folder(TSQ_STR("moved"));
    check(tsq_client_open(town, &client, &err), &err);
    const tsq_str address = TSQ_STR("ann@town.example"), password = TSQ_STR("correct horse");
    const tsq_str bucket = TSQ_STR("assets"), path = TSQ_STR("images/harbor.txt");
    tsq_session *session = NULL, *still = NULL;
    check(tsq_auth_sign_up(client, address, password, NULL, &err), &err);
    check(tsq_auth_create_session(client, address, password, &session, &err), &err);
    check(tsq_client_as_service(client, &service, &err), &err);
    check(tsq_storage_upload(service, bucket, path, TSQ_BYTES("a picture"), NULL, NULL, &err), &err);
    tsq_client_free(service);

    /* The target is named as for tsq_client_open. It may as well be postgres://... and s3://.... */
    tsq_move_target target = TSQ_MOVE_TARGET_REFUSED;
    check(tsq_client_check_move(client, moved, &target, &err), &err);
    const tsq_str state = tsq_move_target_name(target);
    printf("target: %.*s\n", TSQ_ARG(state));
    tsq_move_report *report = NULL;
    check(tsq_client_move_to(client, moved, NULL, NULL, NULL, &report, &err), &err);
    printf("users: %llu files: %llu resumed: %s\n", rows_of(report, "users"), (unsigned long long)report->files,
           report->resumed ? "yes" : "no");
    tsq_move_report_free(report);
    tsq_client_free(client);

    check(tsq_client_open(moved, &client, &err), &err);
    check(tsq_client_as_user(client, session->access_token, &ann, &err), &err);
    check(tsq_auth_get_session(ann, &still, &err), &err);
    printf("still signed in: %s\n", still != NULL ? "yes" : "no");
    tsq_buffer *picture = NULL;
    check(tsq_storage_download(client, bucket, path, &picture, &err), &err);
    const tsq_bytes bytes = tsq_buffer_view(picture);
    printf("%.*s\n", (int)bytes.len, (const char *)bytes.ptr);

    tsq_buffer_free(picture);
    tsq_session_free(still);
    tsq_session_free(session);
    tsq_client_free(ann);
    tsq_client_free(client);
    tsq_config_free(moved);
    tsq_config_free(town);
    return 0;
}
