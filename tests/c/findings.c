/* What a client says of itself, from C: findings, their lifetime and refused arguments; metrics. Also compiled as C++: keep to the
 * common subset.
 *
 * findings CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "stored.h"

static uint8_t large[70000];

/* Puts a file without a row into the folder of the objects. */
static void plant_an_orphan(void) {
    char path[4096];
    FILE *orphan;
    snprintf(path, sizeof path, "%s/town/files/assets/stray", folder);
    orphan = fopen(path, "wb");
    CHECK(orphan != NULL && fputs("of nobody", orphan) >= 0 && fclose(orphan) == 0);
}

static void metrics_count_calls(const tsq_client *client) {
    tsq_string *text = NULL;
    WORKS(tsq_client_metrics_json(client, &text, &err));
    CHECK(strstr(tsq_string_view(text).ptr, "\"townsquare_operations_total\":{\"kind\":\"counter\"") != NULL);
    CHECK(strstr(tsq_string_view(text).ptr, "{\"operation\":\"upload\",\"outcome\":\"ok\"}") != NULL);
    tsq_string_free(text);
    WORKS(tsq_client_metrics_prometheus(client, &text, &err));
    CHECK(strstr(tsq_string_view(text).ptr, "\ntownsquare_operations_total{operation=\"upload\",outcome=\"ok\"} ") != NULL);
    tsq_string_free(text);
    FAILS(tsq_client_metrics_json(NULL, &text, &err), TSQ_INVALID_INPUT, NULL, "Get metrics failed: Argument client is NULL");
    CHECK(text == NULL);
}

static void a_healthy_client_has_no_findings(const tsq_client *client) {
    tsq_findings *findings = NULL;
    tsq_string *json = NULL;
    WORKS(tsq_client_check(client, TSQ_CHECK_QUICK, &findings, &err));
    CHECK(findings != NULL && tsq_findings_len(findings) == 0 && tsq_findings_at(findings, 0) == NULL);
    WORKS(tsq_findings_json(findings, &json, &err));
    CHECK(is(tsq_string_view(json), "[]"));
    tsq_string_free(json);
    tsq_findings_free(findings);
    findings = NULL;
    WORKS(tsq_client_check(client, TSQ_CHECK_FULL, &findings, &err));
    CHECK(tsq_findings_len(findings) == 0);
    tsq_findings_free(findings);
}

/* Returns findings, which outlive their client. */
static tsq_findings *a_finding_has_four_texts(const tsq_client *client) {
    tsq_findings *findings = NULL;
    tsq_string *json = NULL;
    const tsq_finding *finding;
    plant_an_orphan();
    WORKS(tsq_client_check(client, TSQ_CHECK_QUICK, &findings, &err));
    CHECK(tsq_findings_len(findings) == 1 && tsq_findings_at(findings, 1) == NULL);
    finding = tsq_findings_at(findings, 0);
    CHECK(is(finding->code, "orphan_object") && is(finding->severity, "warning"));
    CHECK(is(finding->message, "The object assets/stray belongs to no file.") && has(finding->advice, "repair()"));
    WORKS(tsq_findings_json(findings, &json, &err));
    CHECK(has(tsq_string_view(json), "[{\"code\":\"orphan_object\",\"severity\":\"warning\",\"message\":\"The object"));
    tsq_string_free(json);
    return findings;
}

static void arguments_are_checked(const tsq_client *client) {
    tsq_findings *findings = NULL;
    tsq_string *json = NULL;
    FAILS(tsq_client_check(client, (tsq_check_depth)7, &findings, &err), TSQ_INVALID_INPUT, findings,
          "Check failed: Argument depth has an unknown value 7");
    FAILS(tsq_client_check(NULL, TSQ_CHECK_QUICK, &findings, &err), TSQ_INVALID_INPUT, findings, "client is NULL");
    FAILS(tsq_client_check(client, TSQ_CHECK_QUICK, NULL, &err), TSQ_INVALID_INPUT, NULL, "out is NULL");
    FAILS(tsq_findings_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "list is NULL");
    CHECK(tsq_findings_len(NULL) == 0 && tsq_findings_at(NULL, 0) == NULL);
    tsq_findings_free(NULL);
}

int main(int argc, char **argv) {
    tsq_client *client = NULL;
    tsq_client *service = NULL;
    tsq_findings *findings = NULL;
    tsq_findings *none = NULL;
    tsq_bytes bytes;
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    client = open_client("town");
    WORKS(tsq_client_as_service(client, &service, &err));
    bytes.ptr = large;
    bytes.len = sizeof large;
    WORKS(tsq_storage_upload(service, TSQ_STR("assets"), TSQ_STR("large"), bytes, NULL, NULL, &err));
    metrics_count_calls(client);
    a_healthy_client_has_no_findings(client);
    arguments_are_checked(client);
    findings = a_finding_has_four_texts(service);
    WORKS(tsq_client_close(client, &err));
    FAILS(tsq_client_check(client, TSQ_CHECK_QUICK, &none, &err), TSQ_CLOSED, none, "Check failed: The client is closed");
    tsq_client_free(service);
    tsq_client_free(client);
    CHECK(is(tsq_findings_at(findings, 0)->code, "orphan_object"));
    tsq_findings_free(findings);
    return checks_done("findings");
}
