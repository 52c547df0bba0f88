/* Failures of the database as C sees them (DESIGN 9, 10; SPEC 7): the same kinds and SQLSTATEs as in Rust. Also
 * compiled as C++: keep to the common subset.
 *
 * faults CATALOG FOLDER: FOLDER/ruin contains a database without the table spaces; the catalog is not read. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "rows.h"

static tsq_new_space no_space;

static void a_dropped_table_is_reported_as_missing(void) {
    tsq_client *client = open_client("ruin");
    tsq_client *service = NULL;
    tsq_space *none = NULL;
    tsq_space_list *list = NULL;
    tsq_new_space made = no_space;
    made.name = TSQ_STR("Harbour");
    WORKS(tsq_client_as_service(client, &service, &err));
    REFUSED(tsq_spaces_get_space(service, TSQ_STR(NOBODY), &none, &err), TSQ_TABLE_MISSING, none,
            "Get space failed: Database table not found", "42P01");
    REFUSED(tsq_spaces_create_space(service, &made, &none, &err), TSQ_TABLE_MISSING, none,
            "Create space failed: Database table not found", "42P01");
    REFUSED(tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &list, &err), TSQ_TABLE_MISSING, list,
            "Get public spaces failed: Database table not found", "42P01");
    tsq_client_free(service);
    tsq_client_free(client);
}

static void an_unknown_domain_type_is_a_failed_check(void) {
    tsq_client *client = open_client("town");
    tsq_client *service = NULL;
    tsq_community_domain *none = NULL;
    WORKS(tsq_client_as_service(client, &service, &err));
    CHECK(tsq_communities_save_community_domain(service, TSQ_STR("town"), TSQ_STR("t.example"), TSQ_STR("own"), &none, &err) ==
          TSQ_INVALID_INPUT);
    CHECK(none == NULL && is(tsq_error_code(err), "23514"));
    tsq_error_free(err);
    err = NULL;
    tsq_client_free(service);
    tsq_client_free(client);
}

/* Like a full disk: acknowledged writes stay, and reads go on. */
static void a_database_file_at_its_size_limit_is_unavailable(void) {
    enum { LONG = 100000, MOST = 1000 };
    char *text = (char *)malloc(LONG);
    tsq_client *client = open_client("small");
    tsq_client *service = NULL;
    tsq_space *first = NULL;
    tsq_space *found = NULL;
    tsq_new_space made = no_space;
    tsq_status status = TSQ_OK;
    struct rlimit limit = {1 << 21, RLIM_INFINITY};
    int written = 0;
    memset(text, 'x', LONG);
    WORKS(tsq_client_as_service(client, &service, &err));
    made.name = TSQ_STR("Harbour");
    WORKS(tsq_spaces_create_space(service, &made, &first, &err));
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    made.description.ptr = text;
    made.description.len = LONG;
    while (written < MOST && (status = tsq_spaces_create_space(service, &made, NULL, &err)) == TSQ_OK) {
        written++;
    }
    CHECK(written > 0 && written < MOST && status == TSQ_UNAVAILABLE && tsq_error_is_retryable(err));
    CHECK(has(tsq_error_text(err), "Create space failed: Database error: "));
    CHECK(is(tsq_error_code(err), "58030"));
    tsq_error_free(err);
    err = NULL;
    WORKS(tsq_spaces_get_space(service, first->id, &found, &err));
    CHECK(is(found->name, "Harbour"));
    tsq_space_free(found);
    tsq_space_free(first);
    tsq_client_free(service);
    tsq_client_free(client);
    limit.rlim_cur = RLIM_INFINITY;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    free(text);
}

/* A path that root cannot write to either. */
static void a_path_without_write_access_is_named(void) {
    tsq_client *none = NULL;
    tsq_config *config = tsq_config_new();
    WORKS(tsq_config_set(config, TSQ_STR("database_url"), TSQ_STR("sqlite:/proc/closed.db"), &err));
    WORKS(tsq_config_set(config, TSQ_STR("catalog_api_key"), TSQ_STR(""), &err));
    CHECK(tsq_client_open(config, &none, &err) == TSQ_CONFIG && none == NULL);
    CHECK(has(tsq_error_text(err), "Open failed: Cannot use /proc/closed.db as database: "));
    CHECK(is(tsq_error_code(err), "58030"));
    tsq_error_free(err);
    err = NULL;
    tsq_config_free(config);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    a_dropped_table_is_reported_as_missing();
    an_unknown_domain_type_is_a_failed_check();
    a_path_without_write_access_is_named();
    a_database_file_at_its_size_limit_is_unavailable();
    return checks_done("faults");
}
