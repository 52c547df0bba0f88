/* Who may read and write files (DESIGN 4) from C: anonymous, another user, the owner and the service; over handle_file and signed
 * URLs too. Also compiled as C++: keep to the common subset.
 *
 * files_policies CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "stored.h"

enum { ANONYMOUS, STRANGER, OWNER, SERVICE, CALLERS };

static const char *const caller_names[CALLERS] = {"anonymous", "another user", "the owner", "the service"};
static tsq_client *callers[CALLERS];
static kept owner, space, tokens[CALLERS];
static tsq_file_request no_request;

/* Targets of tsq_client_handle_request, and the statuses of its answers to the owner. */
static const struct {
    const char *target;
    uint16_t status;
} endpoints[] = {
    {"/health", 200},           {"/files/assets/none", 404}, {"/files/assets/a%00b", 400},   {"/events?table=secrets", 404},
    {"/events?table=%zz", 400}, {"/nowhere", 404},           {"/api/miniapp-discovery/x", 404},
};
static tsq_url_options no_limits;

/* A bucket, and the first segment of its paths. */
static const struct area {
    const char *bucket;
    const kept *first;
} areas[] = {{"spaces", &space}, {"private", &owner}, {"assets", NULL}, {"media", NULL}, {"vault", &owner}};
enum { SPACES, PRIVATE, ASSETS, DECLARED_PUBLIC, DECLARED_PRIVATE, AREAS };

/* A path that no file has yet. */
static void fresh_path(int area, char *out, size_t size) {
    static int count;
    snprintf(out, size, "%s/file-%d", areas[area].first != NULL ? areas[area].first->text : "icons", ++count);
}

static tsq_str bucket_of(int area) {
    return tsq_str_from(areas[area].bucket);
}

/* A new file of the owner. */
static void fresh_file(int area, char *path, size_t size) {
    fresh_path(area, path, size);
    WORKS(tsq_storage_upload(callers[OWNER], bucket_of(area), tsq_str_from(path), TSQ_BYTES("of the owner"), NULL, NULL, &err));
}

/* The attempts. */

static tsq_status read_file(const tsq_client *caller, int area) {
    char path[200];
    tsq_buffer *content = NULL;
    tsq_file_info *info = NULL;
    tsq_file_reader *reader = NULL;
    tsq_string *url = NULL;
    tsq_status status;
    fresh_file(area, path, sizeof path);
    status = tsq_storage_download(caller, bucket_of(area), tsq_str_from(path), &content, NULL);
    /* Every way to read is judged alike. */
    CHECK(tsq_storage_stat(caller, bucket_of(area), tsq_str_from(path), &info, NULL) == status);
    CHECK(tsq_storage_open_reader(caller, bucket_of(area), tsq_str_from(path), &reader, NULL) == status);
    CHECK(tsq_storage_signed_url(caller, bucket_of(area), tsq_str_from(path), TSQ_URL_GET, 60000, NULL, &url, NULL) == status);
    CHECK((content != NULL) == (status == TSQ_OK) && (info != NULL) == (status == TSQ_OK));
    CHECK((reader != NULL) == (status == TSQ_OK) && (url != NULL) == (status == TSQ_OK));
    tsq_buffer_free(content);
    tsq_file_info_free(info);
    tsq_file_reader_free(reader);
    tsq_string_free(url);
    return status;
}

static tsq_status list_file(const tsq_client *caller, int area) {
    char path[200];
    tsq_file_list *list = NULL;
    tsq_status status;
    fresh_file(area, path, sizeof path);
    WORKS(tsq_storage_list(caller, bucket_of(area), tsq_str_from(path), 10, absent, &list, &err));
    status = tsq_file_list_len(list) == 1 ? TSQ_OK : TSQ_NOT_FOUND;
    tsq_file_list_free(list);
    return status;
}

static tsq_status create_file(const tsq_client *caller, int area) {
    char path[200];
    tsq_status status;
    fresh_path(area, path, sizeof path);
    status = tsq_storage_upload(caller, bucket_of(area), tsq_str_from(path), TSQ_BYTES("new"), NULL, NULL, NULL);
    CHECK(status == TSQ_OK ? holds_text(callers[SERVICE], areas[area].bucket, path, "new") : is_missing(callers[SERVICE], areas[area].bucket, path));
    return status;
}

static tsq_status overwrite_file(const tsq_client *caller, int area) {
    char path[200];
    tsq_status status;
    fresh_file(area, path, sizeof path);
    status = tsq_storage_upload(caller, bucket_of(area), tsq_str_from(path), TSQ_BYTES("overwritten"), NULL, NULL, NULL);
    CHECK(holds_text(callers[SERVICE], areas[area].bucket, path, status == TSQ_OK ? "overwritten" : "of the owner"));
    return status;
}

static tsq_status delete_file(const tsq_client *caller, int area) {
    char path[200];
    tsq_status status;
    fresh_file(area, path, sizeof path);
    status = tsq_storage_delete(caller, bucket_of(area), tsq_str_from(path), NULL);
    CHECK(status == TSQ_OK ? is_missing(callers[SERVICE], areas[area].bucket, path)
                           : holds_text(callers[SERVICE], areas[area].bucket, path, "of the owner"));
    return status;
}

static tsq_status copy_over_file(const tsq_client *caller, int area) {
    char path[200], target[200];
    tsq_status status;
    fresh_file(area, path, sizeof path);
    fresh_file(area, target, sizeof target);
    WORKS(tsq_storage_upload(callers[OWNER], bucket_of(area), tsq_str_from(path), TSQ_BYTES("source"), NULL, NULL, &err));
    status = tsq_storage_copy(caller, bucket_of(area), tsq_str_from(path), tsq_str_from(target), TSQ_OVERWRITE_REPLACE, NULL, NULL);
    CHECK(holds_text(callers[SERVICE], areas[area].bucket, target, status == TSQ_OK ? "source" : "of the owner"));
    return status;
}

static tsq_status move_file(const tsq_client *caller, int area) {
    char path[200], target[200];
    tsq_status status;
    fresh_file(area, path, sizeof path);
    fresh_path(area, target, sizeof target);
    status = tsq_storage_move(caller, bucket_of(area), tsq_str_from(path), tsq_str_from(target), TSQ_OVERWRITE_REFUSE, NULL, NULL);
    CHECK(holds_text(callers[SERVICE], areas[area].bucket, status == TSQ_OK ? target : path, "of the owner"));
    CHECK(is_missing(callers[SERVICE], areas[area].bucket, status == TSQ_OK ? path : target));
    return status;
}

/* Short names for the expected statuses. */
enum { YES = TSQ_OK, HIDDEN = TSQ_NOT_FOUND, DENIED = TSQ_FORBIDDEN, SIGN_IN = TSQ_UNAUTHORIZED };

static const struct row {
    const char *what;
    tsq_status (*attempt)(const tsq_client *caller, int area);
    int open[CALLERS], shut[CALLERS];
} table[] = {
    /*                                    of a file that every caller sees   of a private file
     *                                    anon.    stranger owner service   anon.    stranger owner service */
    {"read a file", read_file,            {YES,     YES,     YES,  YES},    {HIDDEN,  HIDDEN,  YES, YES}},
    {"list a file", list_file,            {YES,     YES,     YES,  YES},    {HIDDEN,  HIDDEN,  YES, YES}},
    {"overwrite a file", overwrite_file,  {SIGN_IN, DENIED,  YES,  YES},    {SIGN_IN, DENIED,  YES, YES}},
    {"delete a file", delete_file,        {SIGN_IN, DENIED,  YES,  YES},    {HIDDEN,  HIDDEN,  YES, YES}},
    {"copy over a file", copy_over_file,  {SIGN_IN, DENIED,  YES,  YES},    {HIDDEN,  HIDDEN,  YES, YES}},
    {"move a file", move_file,            {SIGN_IN, DENIED,  YES,  YES},    {HIDDEN,  HIDDEN,  YES, YES}},
};

static void expect(const char *what, int area, int who, int status, int expected) {
    if (!CHECK(status == expected)) {
        fprintf(stderr, "  %s may %s in %s: status %d, not %d\n", caller_names[who], what, areas[area].bucket, status, expected);
    }
}

static void every_permission_matches_the_table(void) {
    /* A new file: in the owner's space or folder the owner alone, in shared buckets any user. */
    static const int theirs[CALLERS] = {SIGN_IN, DENIED, YES, YES}, shared[CALLERS] = {SIGN_IN, YES, YES, YES};
    for (int area = 0; area < AREAS; area++) {
        const int is_open = area != PRIVATE && area != DECLARED_PRIVATE;
        for (int who = 0; who < CALLERS; who++) {
            for (size_t row = 0; row < sizeof table / sizeof table[0]; row++) {
                expect(table[row].what, area, who, (int)table[row].attempt(callers[who], area),
                       is_open ? table[row].open[who] : table[row].shut[who]);
            }
            expect("create a file", area, who, (int)create_file(callers[who], area), areas[area].first != NULL ? theirs[who] : shared[who]);
        }
    }
}

/* HTTP */

static tsq_file_response *ask(const tsq_client *client, const char *method, const char *target, const tsq_http_header *headers, size_t headers_len,
                              const char *body) {
    tsq_file_response *response = NULL;
    tsq_file_request request = no_request;
    request.method = tsq_str_from(method);
    request.target = tsq_str_from(target);
    request.headers = headers;
    request.headers_len = headers_len;
    request.body = bytes_of(body);
    WORKS(tsq_storage_handle_file(client, &request, &response, &err));
    return response;
}

static int status_of(tsq_file_response *response) {
    const int status = response != NULL ? response->status : 0;
    tsq_file_response_free(response);
    return status;
}

static tsq_str header_of(const tsq_file_response *response, const char *name) {
    for (size_t i = 0; i < response->headers_len; i++) {
        const tsq_http_header *header = &response->headers[i];
        if (header->name.len == strlen(name) && memcmp(header->name.ptr, name, header->name.len) == 0) {
            return header->value;
        }
    }
    return absent;
}

static int body_is(tsq_file_response *response, const char *expected) {
    char body[200];
    size_t length = 0, read = 0;
    /* Two bytes at a time. */
    do {
        if (!worked(tsq_file_response_read(response, (uint8_t *)body + length, 2, &read, &err))) {
            return 0;
        }
        length += read;
    } while (read > 0 && length + 2 < sizeof body);
    return length == strlen(expected) && memcmp(body, expected, length) == 0;
}

static tsq_http_header header(const char *name, tsq_str value) {
    tsq_http_header out;
    out.name = tsq_str_from(name);
    out.value = value;
    return out;
}

static tsq_http_header bearer(int who) {
    static char text[CALLERS][200];
    snprintf(text[who], sizeof text[who], "Bearer %s", tokens[who].text);
    return header("authorization", tsq_str_from(text[who]));
}

static int32_t cancel(uint8_t *buffer, size_t len, size_t *read, void *user_data) {
    (void)buffer;
    (void)len;
    (void)read;
    ++*(int *)user_data;
    return 1;
}

static int32_t give_once(uint8_t *buffer, size_t len, size_t *read, void *user_data) {
    int *calls = (int *)user_data;
    *read = *calls == 0 && len >= 8 ? 8 : 0;
    memcpy(buffer, "streamed", *read);
    ++*calls;
    return 0;
}

static void requests_act_for_their_bearer(void) {
    char path[200], target[300];
    tsq_http_header headers[2];
    tsq_file_response *response = NULL;
    tsq_file_request request = no_request;
    kept etag;
    int calls = 0;
    size_t read = 1;
    fresh_file(PRIVATE, path, sizeof path);
    snprintf(target, sizeof target, "/private/%s", path);
    /* The handle's own caller has no part in it. */
    CHECK(status_of(ask(callers[SERVICE], "GET", target, NULL, 0, "")) == 404);
    CHECK(status_of(ask(callers[OWNER], "GET", target, NULL, 0, "")) == 404);
    headers[0] = bearer(STRANGER);
    CHECK(status_of(ask(callers[OWNER], "GET", target, headers, 1, "")) == 404);
    CHECK(status_of(ask(callers[OWNER], "PUT", target, headers, 1, "x")) == 403);
    CHECK(status_of(ask(callers[OWNER], "PUT", target, NULL, 0, "x")) == 401);
    CHECK(status_of(ask(callers[OWNER], "DELETE", target, headers, 1, "")) == 404);
    headers[0] = header("authorization", TSQ_STR("Bearer of-nobody"));
    CHECK(status_of(ask(callers[OWNER], "GET", target, headers, 1, "")) == 401);

    headers[0] = bearer(OWNER);
    response = ask(callers[ANONYMOUS], "GET", target, headers, 1, "");
    CHECK(response->status == 200 && response->body_size == 12 && body_is(response, "of the owner"));
    CHECK(is(header_of(response, "content-length"), "12") && is(header_of(response, "x-content-type-options"), "nosniff"));
    etag = keep(header_of(response, "etag"));
    tsq_file_response_free(response);
    response = ask(callers[ANONYMOUS], "HEAD", target, headers, 1, "");
    CHECK(response->status == 200 && is(header_of(response, "content-length"), "12") && body_is(response, ""));
    tsq_file_response_free(response);
    headers[1] = header("range", TSQ_STR("bytes=3-5"));
    response = ask(callers[ANONYMOUS], "GET", target, headers, 2, "");
    CHECK(response->status == 206 && is(header_of(response, "content-range"), "bytes 3-5/12") && body_is(response, "the"));
    tsq_file_response_free(response);
    headers[1] = header("range", TSQ_STR("bytes=12-"));
    CHECK(status_of(ask(callers[ANONYMOUS], "GET", target, headers, 2, "")) == 416);
    headers[1] = header("if-none-match", of(&etag));
    CHECK(status_of(ask(callers[ANONYMOUS], "GET", target, headers, 2, "")) == 304);
    headers[1] = header("if-match", TSQ_STR("\"another\""));
    CHECK(status_of(ask(callers[ANONYMOUS], "PUT", target, headers, 2, "x")) == 412);
    headers[1] = header("if-match", of(&etag));
    CHECK(status_of(ask(callers[ANONYMOUS], "PUT", target, headers, 2, "put")) == 204);
    CHECK(holds_text(callers[OWNER], "private", path, "put"));

    /* A body from a callback. */
    request.method = TSQ_STR("PUT");
    request.target = tsq_str_from(target);
    request.headers = headers;
    request.headers_len = 1;
    request.body_source = give_once;
    request.body_user_data = &calls;
    WORKS(tsq_storage_handle_file(callers[ANONYMOUS], &request, &response, &err));
    CHECK(response->status == 204 && calls == 2 && holds_text(callers[OWNER], "private", path, "streamed"));
    tsq_file_response_free(response);
    response = NULL;
    calls = 0;
    request.body_source = cancel;
    FAILS(tsq_storage_handle_file(callers[ANONYMOUS], &request, &response, &err), TSQ_CANCELLED, response,
          "Handle file failed: A callback cancelled the call");
    CHECK(calls == 1 && holds_text(callers[OWNER], "private", path, "streamed"));

    CHECK(status_of(ask(callers[ANONYMOUS], "DELETE", target, headers, 1, "")) == 204 && is_missing(callers[SERVICE], "private", path));
    CHECK(status_of(ask(callers[ANONYMOUS], "PUT", target, headers, 1, "x")) == 201);
    CHECK(status_of(ask(callers[ANONYMOUS], "POST", target, headers, 1, "x")) == 405);
    CHECK(status_of(ask(callers[ANONYMOUS], "GET", "/assets/../private", NULL, 0, "")) == 400);
    CHECK(status_of(ask(callers[ANONYMOUS], "GET", "/assets/%2e%2e/private", NULL, 0, "")) == 400);
    CHECK(status_of(ask(callers[ANONYMOUS], "GET", "/assets/a%00b", NULL, 0, "")) == 400);
    CHECK(status_of(ask(callers[ANONYMOUS], "GET", "/elsewhere/a", NULL, 0, "")) == 404);

    /* Every endpoint. */
    request = no_request;
    request.method = TSQ_STR("GET");
    request.headers = headers;
    request.headers_len = 1;
    for (size_t i = 0; i < sizeof endpoints / sizeof *endpoints; i++) {
        request.target = tsq_str_from(endpoints[i].target);
        WORKS(tsq_client_handle_request(callers[SERVICE], &request, &response, &err));
        CHECK(response->status == endpoints[i].status);
        tsq_file_response_free(response);
        response = NULL;
    }
    FAILS(tsq_client_handle_request(NULL, &request, &response, &err), TSQ_INVALID_INPUT, response, "Argument client is NULL");
    FAILS(tsq_client_handle_request(callers[OWNER], NULL, &response, &err), TSQ_INVALID_INPUT, response, "Argument request is NULL");

    FAILS(tsq_storage_handle_file(NULL, &request, &response, &err), TSQ_INVALID_INPUT, response, "Handle file failed: Argument client is NULL");
    FAILS(tsq_storage_handle_file(callers[OWNER], NULL, &response, &err), TSQ_INVALID_INPUT, response, "Argument request is NULL");
    FAILS(tsq_storage_handle_file(callers[OWNER], &request, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    request.headers = NULL;
    FAILS(tsq_storage_handle_file(callers[OWNER], &request, &response, &err), TSQ_INVALID_INPUT, response, "Argument request.headers is NULL");
    request = no_request;
    request.target = TSQ_STR("/assets/\xff");
    FAILS(tsq_storage_handle_file(callers[OWNER], &request, &response, &err), TSQ_INVALID_INPUT, response, "Argument request.target is not UTF-8 at byte 8");
    FAILS(tsq_file_response_read(NULL, NULL, 0, &read, &err), TSQ_INVALID_INPUT, NULL, "Argument response is NULL");
    CHECK(read == 0);
}

static void a_signed_url_binds_what_a_put_stores(void) {
    char path[200];
    tsq_url_options options = no_limits;
    tsq_string *url = NULL;
    tsq_string *none = NULL;
    tsq_http_header type = header("content-type", TSQ_STR("text/html"));
    fresh_file(PRIVATE, path, sizeof path);
    options.content_type = TSQ_STR("image/png");
    options.has_max_size = true;
    options.max_size = 4;
    WORKS(tsq_storage_signed_url(callers[OWNER], TSQ_STR("private"), tsq_str_from(path), TSQ_URL_PUT, 60000, &options, &url, &err));
    CHECK(status_of(ask(callers[ANONYMOUS], "PUT", tsq_string_view(url).ptr, &type, 1, "four")) == 415);
    CHECK(status_of(ask(callers[ANONYMOUS], "PUT", tsq_string_view(url).ptr, NULL, 0, "fives")) == 413);
    CHECK(holds_text(callers[OWNER], "private", path, "of the owner"));
    type.value = TSQ_STR("image/png");
    CHECK(status_of(ask(callers[ANONYMOUS], "PUT", tsq_string_view(url).ptr, &type, 1, "four")) == 204);
    CHECK(holds_text(callers[OWNER], "private", path, "four"));
    REFUSED_FILE(tsq_storage_signed_url(callers[OWNER], TSQ_STR("private"), tsq_str_from(path), TSQ_URL_GET, 60000, &options, &none, &err),
                 TSQ_INVALID_INPUT, 400, none, "Sign URL failed: Invalid file or request");
    options.content_type.ptr = "\xff";
    options.content_type.len = 1;
    FAILS(tsq_storage_signed_url(callers[OWNER], TSQ_STR("private"), tsq_str_from(path), TSQ_URL_PUT, 60000, &options, &none, &err),
          TSQ_INVALID_INPUT, none, "Sign URL failed: Argument options.content_type is not UTF-8 at byte 0");
    tsq_string_free(url);
}

static void a_signed_url_acts_for_its_signer(void) {
    char path[200], target[1000];
    tsq_string *get = NULL;
    tsq_string *put_url = NULL;
    tsq_string *none = NULL;
    tsq_file_response *response = NULL;
    fresh_file(PRIVATE, path, sizeof path);
    WORKS(tsq_storage_signed_url(callers[OWNER], TSQ_STR("private"), tsq_str_from(path), TSQ_URL_GET, 60000, NULL, &get, &err));
    WORKS(tsq_storage_signed_url(callers[OWNER], TSQ_STR("private"), tsq_str_from(path), TSQ_URL_PUT, 60000, NULL, &put_url, &err));
    response = ask(callers[ANONYMOUS], "GET", tsq_string_view(get).ptr, NULL, 0, "");
    CHECK(response->status == 200 && body_is(response, "of the owner"));
    tsq_file_response_free(response);
    CHECK(status_of(ask(callers[ANONYMOUS], "PUT", tsq_string_view(put_url).ptr, NULL, 0, "by URL")) == 204);
    CHECK(holds_text(callers[OWNER], "private", path, "by URL"));
    /* For its method, its path and its token alone. */
    const int put_by_get = status_of(ask(callers[ANONYMOUS], "PUT", tsq_string_view(get).ptr, NULL, 0, "x"));
    CHECK(put_by_get == 401 || put_by_get == 403);
    snprintf(target, sizeof target, "/private/%s-other%s", path, strchr(tsq_string_view(get).ptr, '?'));
    const int other_path = status_of(ask(callers[ANONYMOUS], "GET", target, NULL, 0, ""));
    CHECK(other_path == 401 || other_path == 403);
    snprintf(target, sizeof target, "%s", tsq_string_view(get).ptr);
    target[strlen(target) - 1] = target[strlen(target) - 1] == '0' ? '1' : '0';
    const int forged = status_of(ask(callers[ANONYMOUS], "GET", target, NULL, 0, ""));
    CHECK(forged == 401 || forged == 403);
    CHECK(holds_text(callers[OWNER], "private", path, "by URL"));

    REFUSED_FILE(tsq_storage_signed_url(callers[OWNER], TSQ_STR("private"), tsq_str_from(path), TSQ_URL_GET, 0, NULL, &none, &err), TSQ_INVALID_INPUT, 400,
                 none, "Sign URL failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_signed_url(callers[OWNER], TSQ_STR("private"), tsq_str_from(path), TSQ_URL_GET, UINT64_MAX, NULL, &none, &err),
                 TSQ_INVALID_INPUT, 400, none, "Sign URL failed: Invalid file or request");
    FAILS(tsq_storage_signed_url(callers[OWNER], TSQ_STR("private"), tsq_str_from(path), (tsq_url_method)9, 60000, NULL, &none, &err), TSQ_INVALID_INPUT,
          none, "Sign URL failed: Argument method has an unknown value 9");
    REFUSED_FILE(tsq_storage_signed_url(callers[STRANGER], TSQ_STR("private"), tsq_str_from(path), TSQ_URL_PUT, 60000, NULL, &none, &err), TSQ_FORBIDDEN,
                 403, none, "Sign URL failed: Forbidden file access");
    REFUSED_FILE(tsq_storage_signed_url(callers[ANONYMOUS], TSQ_STR("private"), tsq_str_from(path), TSQ_URL_PUT, 60000, NULL, &none, &err),
                 TSQ_UNAUTHORIZED, 401, none, "Sign URL failed: Unauthorized file access");

    CHECK(tsq_storage_rotate_url_key(callers[OWNER], NULL) == TSQ_FORBIDDEN);
    CHECK(tsq_storage_rotate_url_key(callers[ANONYMOUS], NULL) == TSQ_UNAUTHORIZED);
    CHECK(status_of(ask(callers[ANONYMOUS], "GET", tsq_string_view(get).ptr, NULL, 0, "")) == 200);
    WORKS(tsq_storage_rotate_url_key(callers[SERVICE], &err));
    const int rotated = status_of(ask(callers[ANONYMOUS], "GET", tsq_string_view(get).ptr, NULL, 0, ""));
    CHECK(rotated == 401 || rotated == 403);
    tsq_string_free(get);
    tsq_string_free(put_url);
}

int main(int argc, char **argv) {
    static const char *const declared[] = {"buckets", "media=public,vault=private", NULL};
    static tsq_new_space no_space;
    tsq_new_space wanted = no_space;
    tsq_space *made = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    tsq_session *session = NULL;
    callers[ANONYMOUS] = open_with("town", declared);
    WORKS(tsq_client_as_service(callers[ANONYMOUS], &callers[SERVICE], &err));
    session = meet(callers[SERVICE], "owner@town.example");
    owner = keep(id_of(session));
    tokens[OWNER] = keep(session->access_token);
    callers[OWNER] = act_as(callers[ANONYMOUS], session);
    tsq_session_free(session);
    session = meet(callers[SERVICE], "stranger@town.example");
    tokens[STRANGER] = keep(session->access_token);
    callers[STRANGER] = act_as(callers[ANONYMOUS], session);
    tsq_session_free(session);
    wanted.name = TSQ_STR("Harbour");
    /* Lists show the files of public spaces. */
    wanted.is_public = true;
    WORKS(tsq_spaces_create_space(callers[OWNER], &wanted, &made, &err));
    space = keep(made->id);
    tsq_space_free(made);

    every_permission_matches_the_table();
    requests_act_for_their_bearer();
    a_signed_url_binds_what_a_put_stores();
    a_signed_url_acts_for_its_signer();
    for (int who = 0; who < CALLERS; who++) {
        tsq_client_free(callers[who]);
    }
    return checks_done("files_policies");
}
