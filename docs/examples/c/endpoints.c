/* HTTP: one function answers every endpoint, for whatever server the program has. */
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

/* Answers a request, with the value of its header `Authorization` or "". */
static tsq_file_response *answer(const tsq_client *peer, const char *method, const char *target, const char *body,
                                 const char *authorization) {
    tsq_error *err = NULL;
    tsq_file_response *response = NULL;
    tsq_file_request request = {0};
    const tsq_http_header header = {TSQ_STR("authorization"), tsq_str_from(authorization)};
    request.method = tsq_str_from(method);
    request.target = tsq_str_from(target);
    request.headers = &header;
    request.headers_len = header.value.len > 0 ? 1 : 0;
    request.body.ptr = (const uint8_t *)body;
    request.body.len = strlen(body);
    check(tsq_client_handle_request(peer, &request, &response, &err), &err);
    return response;
}

/* Prints the status and the text behind it, and frees the response. */
static void print_status(tsq_file_response *response, const char *text) {
    printf("%d%s\n", response->status, text);
    tsq_file_response_free(response);
}

/* Prints the status and the body, and frees the response. A longer body needs a loop: 0 bytes are its end. */
static void print_body(tsq_file_response *response) {
    tsq_error *err = NULL;
    uint8_t body[256];
    size_t length = 0;
    check(tsq_file_response_read(response, body, sizeof body, &length, &err), &err);
    printf("%d %.*s\n", response->status, (int)length, (const char *)body);
    tsq_file_response_free(response);
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = NULL, *peer = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(":memory:"), &err), &err);
    check(tsq_config_set(config, TSQ_STR("catalog_url"), TSQ_STR("sample:"), &err), &err);
    check(tsq_client_open(config, &client, &err), &err);
    tsq_config_free(config);

    const tsq_str address = TSQ_STR("ann@town.example"), password = TSQ_STR("correct horse");
    tsq_session *session = NULL;
    char bearer[256];
    check(tsq_auth_sign_up(client, address, password, NULL, &err), &err);
    check(tsq_auth_create_session(client, address, password, &session, &err), &err);
    snprintf(bearer, sizeof bearer, "Bearer %.*s", TSQ_ARG(session->access_token));
    tsq_session_free(session);

    /* A server answers each peer on a handle of its own, so that the limits count for that peer. */
    check(tsq_client_with_client_key(client, TSQ_STR("203.0.113.7"), &peer, &err), &err);
    print_body(answer(peer, "GET", "/health", "", ""));
    tsq_file_response *apps = answer(peer, "GET", "/api/miniapp-discovery?category=games&limit=1", "", "");
    for (size_t i = 0; i < apps->headers_len; i++) {
        const tsq_http_header header = apps->headers[i];
        if (strncmp(header.name.ptr, "content-type", header.name.len) == 0)
            printf("%d %.*s\n", apps->status, TSQ_ARG(header.value));
    }
    tsq_file_response_free(apps);

    const char *file = "/files/assets/notes/a.txt", *events = "/events?table=spaces";
    print_status(answer(peer, "PUT", file, "hello", bearer), "");
    print_body(answer(peer, "GET", file, "", ""));
    print_status(answer(peer, "PUT", file, "mine", ""), " without a token");
    print_status(answer(peer, "GET", file, "", "Bearer guess"), " with a wrong token");
    print_status(answer(peer, "GET", events, "", ""), " while the change log is off");
    check(tsq_realtime_start(client, &err), &err);
    print_status(answer(peer, "GET", events, "", ""), " afterwards");
    tsq_client_free(peer);
    tsq_client_free(client);
    return 0;
}
