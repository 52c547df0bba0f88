/* Backup and restore on SQLite: a copy while others write, a check of it, and the town as it was. */
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

static tsq_client *open_folder(tsq_str folder) {
    tsq_error *err = NULL;
    tsq_client *client = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), folder, &err), &err);
    check(tsq_client_open(config, &client, &err), &err);
    tsq_config_free(config);
    return client;
}

static void add_space(const tsq_client *client, tsq_str name) {
    tsq_error *err = NULL;
    tsq_client *service = NULL;
    check(tsq_client_as_service(client, &service, &err), &err);
    tsq_new_space space = {0};
    space.name = name;
    space.is_public = true;
    check(tsq_spaces_create_space(service, &space, NULL, &err), &err);
    tsq_client_free(service);
}

static size_t count_spaces(const tsq_client *client) {
    tsq_error *err = NULL;
    tsq_space_list *spaces = NULL;
    check(tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &spaces, &err), &err);
    const size_t count = tsq_space_list_len(spaces);
    tsq_space_list_free(spaces);
    return count;
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = open_folder(TSQ_STR("town"));
    add_space(client, TSQ_STR("Harbor"));
    check(tsq_client_backup(client, TSQ_STR("town-copy.db"), &err), &err); /* rows and files of one moment; writers go on */
    add_space(client, TSQ_STR("Written after the backup"));
    printf("in the town: %zu\n", count_spaces(client));
    tsq_client_free(client);

    /* The folder must not have a database yet. Everything is restored, or nothing. */
    check(tsq_restore(TSQ_STR("town-copy.db"), TSQ_STR("restored"), &err), &err);
    client = open_folder(TSQ_STR("restored"));
    printf("in the copy: %zu\n", count_spaces(client));
    tsq_findings *findings = NULL;
    check(tsq_client_check(client, TSQ_CHECK_FULL, &findings, &err), &err);
    printf("broken: [");
    const char *separator = "";
    for (size_t i = 0; i < tsq_findings_len(findings); i++) {
        const tsq_finding *finding = tsq_findings_at(findings, i);
        fprintf(stderr, "%.*s %.*s %.*s %.*s\n", TSQ_ARG(finding->severity), TSQ_ARG(finding->code), TSQ_ARG(finding->message),
                TSQ_ARG(finding->advice));
        if (finding->severity.len != 5 || memcmp(finding->severity.ptr, "error", 5) != 0) continue;
        printf("%s'%.*s'", separator, TSQ_ARG(finding->code));
        separator = ", ";
    }
    puts("]");
    tsq_findings_free(findings);
    tsq_client_free(client);
    return 0;
}
