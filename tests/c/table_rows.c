/* Rows of whole tables from C (DESIGN 10): the export, the import, and the plan of the migrations. Also compiled as C++: keep to the
 * common subset.
 *
 * table_rows CATALOG FOLDER: FOLDER/town contains a database with one user, ADA; the catalog is not read. */
#include "people.h"

#include <stdlib.h>

#define TABLES 6

static const char *const names[TABLES] = {"community_configs", "community_domains", "spaceRegistrations", "users", "spaces", "fidgets"};

static tsq_new_space no_space;
static tsq_new_fidget no_fidget;
static tsq_community_patch keep_community;
static tsq_new_registration no_registration;

/* The rows of a table as a JSON array; the caller frees it. `*count` is their number. */
static char *rows_of(const tsq_client *service, const char *table, size_t *count) {
    tsq_row_export *rows = NULL;
    tsq_exported_row *row = NULL;
    tsq_str name = tsq_str_from(table);
    size_t length = 1;
    char *text = (char *)malloc(3);
    *count = 0;
    text[0] = '[';
    WORKS(tsq_client_export_rows(service, &name, 1, &rows, &err));
    for (;;) {
        WORKS(tsq_row_export_next(rows, &row, &err));
        if (row == NULL) {
            break;
        }
        CHECK(is(row->table, table) && row->values.len > 2 && row->values.ptr[0] == '{');
        text = (char *)realloc(text, length + row->values.len + 3);
        if (*count > 0) {
            text[length++] = ',';
        }
        memcpy(text + length, row->values.ptr, row->values.len);
        length += row->values.len;
        ++*count;
        tsq_exported_row_free(row);
        row = NULL;
    }
    WORKS(tsq_row_export_next(rows, &row, &err));
    CHECK(row == NULL);
    tsq_row_export_free(rows);
    text[length] = ']';
    text[length + 1] = '\0';
    return text;
}

static void fill(const tsq_client *service) {
    tsq_space *space = NULL;
    tsq_new_space harbor = no_space;
    tsq_new_fidget clock = no_fidget;
    tsq_community_patch patch = keep_community;
    tsq_new_registration registration = no_registration;
    harbor.name = TSQ_STR("'; DROP TABLE spaces; -- \"x\" \xc3\xa9");
    harbor.owner_id = TSQ_STR(ADA);
    WORKS(tsq_spaces_create_space(service, &harbor, &space, &err));
    harbor.owner_id = absent;
    WORKS(tsq_spaces_create_space(service, &harbor, NULL, &err));
    clock.kind = TSQ_STR("clock");
    clock.config = TSQ_STR("{\"a\":[1,null,1.5]}");
    clock.position = TSQ_STR("null");
    WORKS(tsq_fidgets_create_fidget(service, space->id, &clock, NULL, &err));
    patch.brand_config = patch.assets_config = patch.community_config = patch.fidgets_config = set("{\"b\":1}");
    WORKS(tsq_communities_save_community_config(service, TSQ_STR("harbor"), &patch, NULL, &err));
    WORKS(tsq_communities_save_community_domain(service, TSQ_STR("harbor"), TSQ_STR("harbor.example"), TSQ_STR("custom"), NULL, &err));
    registration.space_id = space->id;
    registration.space_name = TSQ_STR("Harbor");
    registration.space_type = TSQ_STR("profile");
    WORKS(tsq_communities_register_space(service, &registration, NULL, &err));
    tsq_space_free(space);
}

static void every_table_is_exported_and_imported(const tsq_client *service, const tsq_client *other) {
    size_t table;
    for (table = 0; table < TABLES; table++) {
        size_t count = 0;
        size_t again = 0;
        tsq_row_import_report *report = NULL;
        char *rows = rows_of(service, names[table], &count);
        char *copied;
        CHECK(count > 0);
        WORKS(tsq_client_import_rows(other, tsq_str_from(names[table]), tsq_str_from(rows), true, &report, &err));
        CHECK(report->inserted == count && report->unchanged == 0 && report->problems_len == 0);
        tsq_row_import_report_free(report);
        report = NULL;
        WORKS(tsq_client_import_rows(other, tsq_str_from(names[table]), tsq_str_from(rows), false, &report, &err));
        CHECK(report->inserted == count && report->unchanged == 0 && report->problems_len == 0);
        tsq_row_import_report_free(report);
        report = NULL;
        WORKS(tsq_client_import_rows(other, tsq_str_from(names[table]), tsq_str_from(rows), false, &report, &err));
        CHECK(report->inserted == 0 && report->unchanged == count);
        tsq_row_import_report_free(report);
        copied = rows_of(other, names[table], &again);
        CHECK(again == count && strcmp(copied, rows) == 0);
        free(copied);
        free(rows);
    }
}

static void an_export_is_of_one_moment_and_of_all_tables(const tsq_client *service) {
    tsq_row_export *rows = NULL;
    tsq_exported_row *row = NULL;
    tsq_string *json = NULL;
    tsq_new_space late = no_space;
    size_t seen = 0;
    size_t place = 0;
    late.name = TSQ_STR("late");
    WORKS(tsq_client_export_rows(service, NULL, 0, &rows, &err));
    WORKS(tsq_spaces_create_space(service, &late, NULL, &err));
    for (;;) {
        WORKS(tsq_row_export_next(rows, &row, &err));
        if (row == NULL) {
            break;
        }
        while (place < TABLES && !(row->table.len == strlen(names[place]) && memcmp(row->table.ptr, names[place], row->table.len) == 0)) {
            place++;
        }
        CHECK(place < TABLES);
        if (seen++ == 0) {
            WORKS(tsq_exported_row_json(row, &json, &err));
            CHECK(has(tsq_string_view(json), "{\"table\":\"community_configs\",\"row\":{\"admin_email\":"));
            tsq_string_free(json);
            json = NULL;
        }
        tsq_exported_row_free(row);
        row = NULL;
    }
    tsq_row_export_free(rows);
    CHECK(seen == 7);
    FAILS(tsq_exported_row_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "Argument row is NULL");
    tsq_exported_row_free(NULL);
    tsq_row_export_free(NULL);
}

static void a_fault_names_its_row_and_column(const tsq_client *service) {
    static const char *const rows =
        "[{\"id\":\"5f0d1c1e-0c7c-4a55-9d43-7f5a3c5a1b11\",\"name\":\"a\",\"description\":null,\"owner_id\":null,\"is_public\":true,"
        "\"created_at\":\"2026-01-02T03:04:05Z\",\"updated_at\":\"2026-01-02T03:04:05Z\"},"
        "{\"id\":\"5f0d1c1e-0c7c-4a55-9d43-7f5a3c5a1b12\",\"name\":\"b\",\"description\":null,\"owner_id\":\"" NOBODY "\",\"is_public\":true,"
        "\"created_at\":\"2026-01-02T03:04:05Z\",\"updated_at\":\"2026-01-02T03:04:05Z\"}]";
    tsq_row_import_report *report = NULL;
    tsq_string *json = NULL;
    tsq_space *space = NULL;
    size_t row = 9;
    WORKS(tsq_client_import_rows(service, TSQ_STR("spaces"), tsq_str_from(rows), true, &report, &err));
    CHECK(report->inserted == 1 && report->problems_len == 1 && report->problems[0].row == 1);
    CHECK(is(report->problems[0].kind, "reference_missing") && is(report->problems[0].column, "owner_id"));
    CHECK(is(report->problems[0].table, "users") && is(report->problems[0].value, NOBODY));
    WORKS(tsq_row_import_report_json(report, &json, &err));
    CHECK(has(tsq_string_view(json), "\"kind\":\"reference_missing\""));
    tsq_string_free(json);
    json = NULL;
    tsq_row_import_report_free(report);
    report = NULL;
    CHECK(tsq_client_import_rows(service, TSQ_STR("spaces"), tsq_str_from(rows), false, &report, &err) == TSQ_REFERENCE_MISSING);
    CHECK(report == NULL && tsq_error_row(err, &row) && row == 1 && is(tsq_error_column(err), "owner_id"));
    tsq_error_free(err);
    err = NULL;
    FAILS(tsq_spaces_get_space(service, TSQ_STR("5f0d1c1e-0c7c-4a55-9d43-7f5a3c5a1b11"), &space, &err), TSQ_NOT_FOUND, space,
          "Record not found");

    FAILS(tsq_client_import_rows(service, TSQ_STR("spaces"), TSQ_STR("[{}]"), false, &report, &err), TSQ_FIELD_MISSING, report,
          "Import rows failed: Required field is missing: rows[0].id");
    FAILS(tsq_client_import_rows(service, TSQ_STR("spaces"), TSQ_STR("{}"), false, &report, &err), TSQ_INVALID_INPUT, report,
          "Import rows failed: Argument rows is not a JSON array of objects");
    FAILS(tsq_client_import_rows(service, TSQ_STR("spaces"), absent, false, &report, &err), TSQ_INVALID_INPUT, report,
          "Argument rows is not a JSON array of objects");
    FAILS(tsq_client_import_rows(service, TSQ_STR("spaces"), TSQ_STR("[1]"), false, &report, &err), TSQ_INVALID_INPUT, report,
          "Argument rows[0] is not a JSON object");
    FAILS(tsq_client_import_rows(service, TSQ_STR("spaces"), TSQ_STR("["), false, &report, &err), TSQ_INVALID_INPUT, report,
          "Argument rows is not JSON");
    FAILS(tsq_client_import_rows(service, TSQ_STR("sessions"), TSQ_STR("[]"), false, &report, &err), TSQ_INVALID_INPUT, report,
          "table is one of community_configs");
    WORKS(tsq_client_import_rows(service, TSQ_STR("spaces"), TSQ_STR("[]"), false, NULL, &err));
    FAILS(tsq_row_import_report_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "Argument report is NULL");
    tsq_row_import_report_free(NULL);
}

static void other_callers_are_refused(const tsq_client *client, const tsq_client *service) {
    const tsq_str unknown = TSQ_STR("sessions");
    tsq_session *session = meet(service, "bob@town.example");
    tsq_client *bob = act_as(client, session);
    tsq_row_export *rows = NULL;
    tsq_row_import_report *report = NULL;
    REFUSED(tsq_client_export_rows(client, NULL, 0, &rows, &err), TSQ_UNAUTHORIZED, rows,
            "Export rows failed: Database error: permission denied for table users", "42501");
    REFUSED(tsq_client_export_rows(bob, NULL, 0, &rows, &err), TSQ_FORBIDDEN, rows,
            "Export rows failed: Database error: permission denied for table users", "42501");
    REFUSED(tsq_client_import_rows(client, TSQ_STR("spaces"), TSQ_STR("[]"), true, &report, &err), TSQ_UNAUTHORIZED, report,
            "Import rows failed: Database error: permission denied for table users", "42501");
    REFUSED(tsq_client_import_rows(bob, TSQ_STR("spaces"), TSQ_STR("[]"), false, &report, &err), TSQ_FORBIDDEN, report,
            "Import rows failed: Database error: permission denied for table users", "42501");
    FAILS(tsq_client_export_rows(service, &unknown, 1, &rows, &err), TSQ_INVALID_INPUT, rows, "table is one of community_configs");
    FAILS(tsq_client_export_rows(service, NULL, 0, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_client_export_rows(NULL, NULL, 0, &rows, &err), TSQ_INVALID_INPUT, rows, "Argument client is NULL");
    tsq_client_free(bob);
    tsq_session_free(session);
}

static void the_plan_says_what_a_database_lacks(void) {
    char text[4096];
    tsq_config *config = tsq_config_new();
    tsq_migration_plan *plan = NULL;
    tsq_string *json = NULL;
    snprintf(text, sizeof text, "%s/town", folder);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    WORKS(tsq_client_plan_migrations(config, &plan, &err));
    CHECK(plan->is_current && !plan->is_new && plan->migrations_len > 0 && plan->migrations[0].is_applied);
    CHECK(plan->migrations[0].name.len > 5 && plan->migrations[0].about.len > 5);
    WORKS(tsq_migration_plan_json(plan, &json, &err));
    CHECK(has(tsq_string_view(json), "\"is_new\":false") && has(tsq_string_view(json), "\"is_applied\":true"));
    tsq_string_free(json);
    json = NULL;
    tsq_migration_plan_free(plan);
    plan = NULL;
    snprintf(text, sizeof text, "%s/nowhere", folder);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    WORKS(tsq_client_plan_migrations(config, &plan, &err));
    CHECK(!plan->is_current && plan->is_new && !plan->migrations[0].is_applied);
    tsq_migration_plan_free(plan);
    plan = NULL;
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(""), &err));
    WORKS(tsq_config_set(config, TSQ_STR("database_url"), TSQ_STR("mysql://x"), &err));
    FAILS(tsq_client_plan_migrations(config, &plan, &err), TSQ_CONFIG, plan, "Open failed: ");
    FAILS(tsq_client_plan_migrations(config, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_migration_plan_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "Argument plan is NULL");
    tsq_migration_plan_free(NULL);
    tsq_config_free(config);
}

int main(int argc, char **argv) {
    tsq_client *client;
    tsq_client *other;
    tsq_client *service = NULL;
    tsq_client *target = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    client = open_client("town");
    other = open_client("other");
    WORKS(tsq_client_as_service(client, &service, &err));
    WORKS(tsq_client_as_service(other, &target, &err));
    fill(service);
    every_table_is_exported_and_imported(service, target);
    an_export_is_of_one_moment_and_of_all_tables(service);
    a_fault_names_its_row_and_column(service);
    other_callers_are_refused(client, service);
    the_plan_says_what_a_database_lacks();
    tsq_client_free(target);
    tsq_client_free(other);
    tsq_client_free(service);
    tsq_client_free(client);
    return checks_done("table_rows");
}
