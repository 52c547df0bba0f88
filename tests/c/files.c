/* Files from C: what is stored, the options, SPEC 7's statuses, and paths that are refused. Also compiled as C++: keep to the
 * common subset.
 *
 * files CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "stored.h"

static tsq_client *anonymous, *service, *user;
static kept user_id;

/* Zeroed inputs as static variables, because C spells a zeroed local {0} and C++ {}. */
static tsq_upload_options no_options;

static void a_file_is_stored_and_described(void) {
    tsq_file_info *stored = NULL;
    tsq_file_info *found = NULL;
    tsq_buffer *content = NULL;
    tsq_string *json = NULL;
    WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("notes/a.txt"), TSQ_BYTES("one line\n"), NULL, &stored, &err));
    CHECK(is(stored->bucket, "assets") && is(stored->path, "notes/a.txt") && stored->size == 9);
    CHECK(is(stored->content_type, "text/plain") && stored->cache_control == 3600 && stored->metadata_len == 0);
    CHECK(is(stored->owner_id, user_id.text) && stored->etag.len > 0);
    CHECK(stored->updated_at > now() - (int64_t)60 * 1000000 && stored->updated_at < now() + (int64_t)60 * 1000000);
    WORKS(tsq_storage_stat(anonymous, TSQ_STR("assets"), TSQ_STR("notes/a.txt"), &found, &err));
    CHECK(found->size == 9 && found->etag.len == stored->etag.len && memcmp(found->etag.ptr, stored->etag.ptr, found->etag.len) == 0);
    CHECK(found->updated_at == stored->updated_at && is(found->owner_id, user_id.text));
    WORKS(tsq_file_info_json(found, &json, &err));
    CHECK(has(tsq_string_view(json), "\"path\":\"notes/a.txt\"") && has(tsq_string_view(json), "\"metadata\":{}"));
    tsq_string_free(json);
    tsq_file_info_free(found);

    WORKS(tsq_storage_download(anonymous, TSQ_STR("assets"), TSQ_STR("notes/a.txt"), &content, &err));
    CHECK(tsq_buffer_view(content).len == 9 && memcmp(tsq_buffer_view(content).ptr, "one line\n", 9) == 0);
    tsq_buffer_free(content);
    WORKS(tsq_storage_download_range(anonymous, TSQ_STR("assets"), TSQ_STR("notes/a.txt"), 4, 8, &content, &err));
    CHECK(tsq_buffer_view(content).len == 4 && memcmp(tsq_buffer_view(content).ptr, "line", 4) == 0);
    tsq_buffer_free(content);
    WORKS(tsq_storage_download_range(anonymous, TSQ_STR("assets"), TSQ_STR("notes/a.txt"), 4, UINT64_MAX, &content, &err));
    CHECK(tsq_buffer_view(content).len == 5);
    tsq_buffer_free(content);
    content = NULL;
    REFUSED_FILE(tsq_storage_download_range(anonymous, TSQ_STR("assets"), TSQ_STR("notes/a.txt"), 5, 4, &content, &err),
                 TSQ_INVALID_INPUT, 400, content, "Download failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_download_range(anonymous, TSQ_STR("assets"), TSQ_STR("notes/a.txt"), 10, 11, &content, &err),
                 TSQ_INVALID_INPUT, 400, content, "Download failed: Invalid file or request");

    /* A result outlives the next write, which makes another version. */
    WORKS(tsq_storage_upload(service, TSQ_STR("assets"), TSQ_STR("notes/a.txt"), TSQ_BYTES("one line\n"), NULL, &found, &err));
    CHECK(is_absent(found->owner_id) || is(found->owner_id, user_id.text));
    CHECK(found->updated_at > stored->updated_at && memcmp(found->etag.ptr, stored->etag.ptr, found->etag.len) != 0);
    tsq_file_info_free(found);
    tsq_file_info_free(stored);

    /* Any bytes, and none. */
    WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("raw"), TSQ_BYTES("\0\xff\0"), NULL, NULL, &err));
    CHECK(holds(anonymous, "assets", "raw", "\0\xff\0", 3));
    WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("raw"), TSQ_BYTES(""), NULL, NULL, &err));
    CHECK(holds(anonymous, "assets", "raw", "", 0));
    WORKS(tsq_storage_delete(user, TSQ_STR("assets"), TSQ_STR("raw"), &err));
    CHECK(is_missing(service, "assets", "raw"));
}

static void a_prefix_is_deleted_and_files_exist_or_not(void) {
    bool found = false;
    uint64_t count = 0;
    WORKS(put(user, "assets", "old/a", "x"));
    WORKS(put(user, "assets", "old/b", "x"));
    WORKS(put(user, "assets", "older", "x"));
    WORKS(tsq_storage_exists(anonymous, TSQ_STR("assets"), TSQ_STR("old/a"), &found, &err));
    CHECK(found);
    /* A refusal keeps all files and sets the outputs to nothing. */
    count = 7;
    REFUSED_FILE(tsq_storage_delete_prefix(anonymous, TSQ_STR("assets"), TSQ_STR("old/"), &count, &err), TSQ_UNAUTHORIZED, 401, NULL,
                 "Delete files failed: Unauthorized file access");
    CHECK(count == 0 && holds_text(anonymous, "assets", "old/a", "x"));
    WORKS(put(service, "assets", "old/c", "of the service"));
    REFUSED_FILE(tsq_storage_delete_prefix(user, TSQ_STR("assets"), TSQ_STR("old/"), &count, &err), TSQ_FORBIDDEN, 403, NULL,
                 "Delete files failed: Forbidden file access");
    CHECK(holds_text(anonymous, "assets", "old/a", "x"));
    WORKS(tsq_storage_delete(service, TSQ_STR("assets"), TSQ_STR("old/c"), &err));
    WORKS(tsq_storage_delete_prefix(user, TSQ_STR("assets"), TSQ_STR("old/"), &count, &err));
    CHECK(count == 2 && is_missing(service, "assets", "old/a") && holds_text(anonymous, "assets", "older", "x"));
    WORKS(tsq_storage_exists(user, TSQ_STR("assets"), TSQ_STR("old/a"), &found, &err));
    CHECK(!found);
    found = true;
    REFUSED_FILE(tsq_storage_exists(user, TSQ_STR("elsewhere"), TSQ_STR("a"), &found, &err), TSQ_NOT_FOUND, 404, NULL,
                 "Check file failed: File not found");
    CHECK(!found);
    CHECK(tsq_storage_exists(user, TSQ_STR("assets"), TSQ_STR("a"), NULL, NULL) == TSQ_INVALID_INPUT);
    CHECK(tsq_storage_delete_prefix(user, TSQ_STR("assets"), TSQ_STR("old"), NULL, NULL) == TSQ_INVALID_INPUT);
    CHECK(holds_text(anonymous, "assets", "older", "x"));
    WORKS(tsq_storage_delete(user, TSQ_STR("assets"), TSQ_STR("older"), &err));
}

static void options_of_an_upload_are_kept(void) {
    tsq_file_metadata metadata[2];
    tsq_file_info *stored = NULL;
    tsq_file_info *none = NULL;
    kept etag;
    tsq_upload_options options = no_options;
    metadata[0].name = TSQ_STR("title");
    metadata[0].value = TSQ_STR("Caf\xc3\xa9");
    metadata[1].name = TSQ_STR("author");
    metadata[1].value = TSQ_STR("");
    options.metadata = metadata;
    options.metadata_len = 2;
    options.content_type = TSQ_STR("text/markdown");
    options.has_cache_control = true;
    options.insert_only = true;
    WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("b"), TSQ_BYTES("#"), &options, &stored, &err));
    CHECK(stored->cache_control == 0 && is(stored->content_type, "text/markdown") && stored->metadata_len == 2);
    CHECK(is(stored->metadata[0].name, "author") && is(stored->metadata[0].value, ""));
    CHECK(is(stored->metadata[1].name, "title") && is(stored->metadata[1].value, "Caf\xc3\xa9"));
    snprintf(etag.text, sizeof etag.text, "%.*s", TSQ_ARG(stored->etag));
    tsq_file_info_free(stored);
    stored = NULL;
    FAILS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("b"), TSQ_BYTES("##"), &options, &none, &err), TSQ_ALREADY_EXISTS, none,
          "Upload failed: Storage error: ");
    CHECK(holds_text(anonymous, "assets", "b", "#"));

    /* if_match: the version, another version, no file. */
    options = no_options;
    options.if_match = of(&etag);
    WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("b"), TSQ_BYTES("##"), &options, NULL, &err));
    FAILS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("b"), TSQ_BYTES("###"), &options, &none, &err), TSQ_CONFLICT, none,
          "Upload failed: Storage error: ");
    options.if_match = TSQ_STR("");
    FAILS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("b"), TSQ_BYTES("###"), &options, &none, &err), TSQ_CONFLICT, none,
          "Upload failed: Storage error: ");
    CHECK(holds_text(anonymous, "assets", "b", "##"));
    WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("c"), TSQ_BYTES("c"), &options, NULL, &err));
    CHECK(holds_text(anonymous, "assets", "c", "c"));
    options.if_match = of(&etag);
    FAILS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("d"), TSQ_BYTES("d"), &options, &none, &err), TSQ_CONFLICT, none,
          "Upload failed: Storage error: ");
    CHECK(is_missing(service, "assets", "d"));

    /* What is out of range is refused and leaves nothing. */
    options = no_options;
    options.has_cache_control = true;
    options.cache_control = 31536001;
    REFUSED_FILE(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("d"), TSQ_BYTES("d"), &options, &none, &err), TSQ_INVALID_INPUT,
                 400, none, "Upload failed: Invalid file or request");
    options = no_options;
    options.content_type = TSQ_STR("text");
    REFUSED_FILE(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("d"), TSQ_BYTES("d"), &options, &none, &err), TSQ_INVALID_INPUT,
                 400, none, "Upload failed: Invalid file or request");
    options.content_type = TSQ_STR("text/plain\r\nx-evil: 1");
    REFUSED_FILE(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("d"), TSQ_BYTES("d"), &options, &none, &err), TSQ_INVALID_INPUT,
                 400, none, "Upload failed: Invalid file or request");
    options = no_options;
    options.metadata = metadata;
    options.metadata_len = 1;
    metadata[0].name = TSQ_STR("two words");
    REFUSED_FILE(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("d"), TSQ_BYTES("d"), &options, &none, &err), TSQ_INVALID_INPUT,
                 400, none, "Upload failed: Invalid file or request");
    metadata[0].name = TSQ_STR("\xff");
    FAILS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("d"), TSQ_BYTES("d"), &options, &none, &err), TSQ_INVALID_INPUT, none,
          "Upload failed: Argument options.metadata[0].name is not UTF-8 at byte 0");
    options.metadata = NULL;
    FAILS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("d"), TSQ_BYTES("d"), &options, &none, &err), TSQ_INVALID_INPUT, none,
          "Upload failed: Argument options.metadata is NULL");
    CHECK(is_missing(service, "assets", "d"));
}

static void a_list_has_pages(void) {
    static const char *const paths[] = {"list/a", "list/b", "list/b/c", "list-d", "list/\xc3\xa9"};
    tsq_file_list *list = NULL;
    tsq_string *json = NULL;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const tsq_status status = put(user, "assets", paths[i], "x");
        /* list/b is a file, so it is no folder. */
        check(i == 2 ? failed(status, TSQ_ALREADY_EXISTS, NULL, "Upload failed: Storage error: ") : worked(status), paths[i], __FILE__, __LINE__);
    }
    WORKS(tsq_storage_list(anonymous, TSQ_STR("assets"), TSQ_STR("list/"), 2, absent, &list, &err));
    CHECK(tsq_file_list_len(list) == 2 && is(tsq_file_list_at(list, 0)->path, "list/a") && is(tsq_file_list_at(list, 1)->path, "list/b"));
    CHECK(tsq_file_list_at(list, 2) == NULL);
    tsq_file_list_free(list);
    WORKS(tsq_storage_list(anonymous, TSQ_STR("assets"), TSQ_STR("list/"), 2, TSQ_STR("list/b"), &list, &err));
    CHECK(tsq_file_list_len(list) == 1 && is(tsq_file_list_at(list, 0)->path, "list/\xc3\xa9"));
    WORKS(tsq_file_list_json(list, &json, &err));
    CHECK(has(tsq_string_view(json), "[{\"bucket\":\"assets\",\"path\":\"list/\xc3\xa9\""));
    tsq_string_free(json);
    tsq_file_list_free(list);
    WORKS(tsq_storage_list(anonymous, TSQ_STR("assets"), TSQ_STR("lis"), 1000, absent, &list, &err));
    CHECK(tsq_file_list_len(list) == 4 && is(tsq_file_list_at(list, 0)->path, "list-d"));
    tsq_file_list_free(list);
    WORKS(tsq_storage_list(anonymous, TSQ_STR("assets"), absent, 1, absent, &list, &err));
    CHECK(tsq_file_list_len(list) == 1);
    tsq_file_list_free(list);
    list = NULL;
    REFUSED_FILE(tsq_storage_list(anonymous, TSQ_STR("assets"), absent, 0, absent, &list, &err), TSQ_INVALID_INPUT, 400, list,
                 "List files failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_list(anonymous, TSQ_STR("assets"), absent, 1001, absent, &list, &err), TSQ_INVALID_INPUT, 400, list,
                 "List files failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_list(anonymous, TSQ_STR("assets"), TSQ_STR("a//"), 10, absent, &list, &err), TSQ_INVALID_INPUT, 400, list,
                 "List files failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_list(anonymous, TSQ_STR("elsewhere"), absent, 10, absent, &list, &err), TSQ_NOT_FOUND, 404, list,
                 "List files failed: File not found");
    CHECK(tsq_file_list_len(NULL) == 0 && tsq_file_list_at(NULL, 0) == NULL);
}

static void a_file_is_copied_and_moved(void) {
    tsq_file_info *made = NULL;
    const tsq_str assets = TSQ_STR("assets");
    WORKS(put(user, "assets", "move/one", "1"));
    WORKS(put(user, "assets", "move/two", "2"));
    WORKS(tsq_storage_copy(user, assets, TSQ_STR("move/one"), TSQ_STR("move/three"), TSQ_OVERWRITE_REFUSE, &made, &err));
    CHECK(is(made->path, "move/three") && made->size == 1 && is(made->owner_id, user_id.text));
    tsq_file_info_free(made);
    made = NULL;
    CHECK(holds_text(anonymous, "assets", "move/one", "1") && holds_text(anonymous, "assets", "move/three", "1"));
    FAILS(tsq_storage_copy(user, assets, TSQ_STR("move/one"), TSQ_STR("move/two"), TSQ_OVERWRITE_REFUSE, &made, &err), TSQ_ALREADY_EXISTS,
          made, "Copy failed: Storage error: ");
    FAILS(tsq_storage_move(user, assets, TSQ_STR("move/one"), TSQ_STR("move/two"), TSQ_OVERWRITE_REFUSE, &made, &err), TSQ_ALREADY_EXISTS,
          made, "Move failed: Storage error: ");
    CHECK(holds_text(anonymous, "assets", "move/one", "1") && holds_text(anonymous, "assets", "move/two", "2"));
    WORKS(tsq_storage_move(user, assets, TSQ_STR("move/one"), TSQ_STR("move/two"), TSQ_OVERWRITE_REPLACE, &made, &err));
    CHECK(is(made->path, "move/two") && is(made->owner_id, user_id.text));
    tsq_file_info_free(made);
    made = NULL;
    CHECK(is_missing(service, "assets", "move/one") && holds_text(anonymous, "assets", "move/two", "1"));
    REFUSED_FILE(tsq_storage_copy(user, assets, TSQ_STR("move/one"), TSQ_STR("move/four"), TSQ_OVERWRITE_REFUSE, &made, &err), TSQ_NOT_FOUND,
                 404, made, "Copy failed: File not found");
    REFUSED_FILE(tsq_storage_move(user, assets, TSQ_STR("move/one"), TSQ_STR("move/four"), TSQ_OVERWRITE_REFUSE, &made, &err), TSQ_NOT_FOUND,
                 404, made, "Move failed: File not found");
    FAILS(tsq_storage_copy(user, assets, TSQ_STR("move/two"), TSQ_STR("move/four"), (tsq_overwrite)7, &made, &err), TSQ_INVALID_INPUT, made,
          "Copy failed: Argument overwrite has an unknown value 7");
    CHECK(is_missing(service, "assets", "move/four"));
}

/* SPEC 7: each status with its message. */
static void failures_have_the_statuses_of_the_table(void) {
    static const char *const small[] = {"max_file_size", "10", NULL};
    tsq_client *opened = NULL;
    tsq_client *client = NULL;
    tsq_buffer *content = NULL;
    tsq_file_info *info = NULL;
    char path[200];
    tsq_str reason;
    REFUSED_FILE(put(user, "assets", "a//b", "x"), TSQ_INVALID_INPUT, 400, NULL, "Upload failed: Invalid file or request");
    CHECK(put(user, "assets", "a//b", "x") == TSQ_INVALID_INPUT);
    reason = tsq_error_reason(err);
    CHECK(is(reason, "segment 2 of the path is empty") && is(tsq_error_operation(err), "upload") && !tsq_error_is_retryable(err));
    CHECK(is(tsq_error_message(err), "Invalid file or request: segment 2 of the path is empty"));
    CHECK(is(tsq_error_explanation(err), "Correct the argument as the message says."));
    tsq_error_free(err);
    err = NULL;
    REFUSED_FILE(put(anonymous, "assets", "a", "x"), TSQ_UNAUTHORIZED, 401, NULL, "Upload failed: Unauthorized file access");
    WORKS(put(service, "assets", "of-the-service", "x"));
    REFUSED_FILE(put(user, "assets", "of-the-service", "y"), TSQ_FORBIDDEN, 403, NULL, "Upload failed: Forbidden file access");
    REFUSED_FILE(tsq_storage_delete(user, TSQ_STR("assets"), TSQ_STR("of-the-service"), &err), TSQ_FORBIDDEN, 403, NULL,
                 "Delete failed: Forbidden file access");
    REFUSED_FILE(tsq_storage_delete(anonymous, TSQ_STR("assets"), TSQ_STR("of-the-service"), &err), TSQ_UNAUTHORIZED, 401, NULL,
                 "Delete failed: Unauthorized file access");
    CHECK(holds_text(anonymous, "assets", "of-the-service", "x"));
    REFUSED_FILE(tsq_storage_download(user, TSQ_STR("assets"), TSQ_STR("nothing"), &content, &err), TSQ_NOT_FOUND, 404, content,
                 "Download failed: File not found");
    REFUSED_FILE(tsq_storage_stat(user, TSQ_STR("assets"), TSQ_STR("nothing"), &info, &err), TSQ_NOT_FOUND, 404, info,
                 "Get file failed: File not found");
    REFUSED_FILE(tsq_storage_delete(user, TSQ_STR("assets"), TSQ_STR("nothing"), &err), TSQ_NOT_FOUND, 404, NULL,
                 "Delete failed: File not found");
    REFUSED_FILE(put(user, "elsewhere", "a", "x"), TSQ_NOT_FOUND, 404, NULL, "Upload failed: File not found");

    opened = open_with("small", small);
    WORKS(tsq_client_as_service(opened, &client, &err));
    WORKS(put(client, "assets", "a", "0123456789"));
    REFUSED_FILE(put(client, "assets", "a", "0123456789a"), TSQ_TOO_LARGE, 413, NULL, "Upload failed: File too large");
    CHECK(holds_text(client, "assets", "a", "0123456789"));
    WORKS(tsq_client_close(opened, &err));
    FAILS(put(client, "assets", "a", "x"), TSQ_CLOSED, NULL, "Upload failed: ");
    tsq_client_free(client);
    tsq_client_free(opened);

    /* SPEC 5.5: the sentence stands without a prefix. */
    snprintf(path, sizeof path, "%s/homebase", user_id.text);
    WORKS(tsq_storage_secure_upload(user, TSQ_STR("private"), tsq_str_from(path), TSQ_BYTES("{}"), of(&user_id), NULL, &info, &err));
    CHECK(info->size == 2 && is(info->owner_id, user_id.text) && is(info->content_type, "application/json"));
    tsq_file_info_free(info);
    info = NULL;
    REFUSED_FILE(tsq_storage_secure_upload(user, TSQ_STR("private"), tsq_str_from(path), TSQ_BYTES("{1}"), TSQ_STR(NOBODY), NULL, &info, &err),
                 TSQ_FORBIDDEN, 403, info, "Unauthorized file upload");
    REFUSED_FILE(tsq_storage_secure_upload(anonymous, TSQ_STR("private"), tsq_str_from(path), TSQ_BYTES("{1}"), of(&user_id), NULL, &info, &err),
                 TSQ_UNAUTHORIZED, 401, info, "Unauthorized file upload");
    FAILS(tsq_storage_secure_upload(user, TSQ_STR("private"), tsq_str_from(path), TSQ_BYTES("{1}"), TSQ_STR("me"), NULL, &info, &err),
          TSQ_INVALID_INPUT, info, "Upload failed: Argument user_id is not a UUID");
    CHECK(holds_text(user, "private", path, "{}"));
}

/* A path with a length, because some have a NUL. */
static void refuse_path(tsq_str path, const char *name) {
    tsq_buffer *content = NULL;
    tsq_file_info *info = NULL;
    tsq_file_writer *writer = NULL;
    tsq_file_reader *reader = NULL;
    const tsq_str assets = TSQ_STR("assets");
    const int before = checks_failed;
    REFUSED_FILE(tsq_storage_upload(service, assets, path, TSQ_BYTES("x"), NULL, &info, &err), TSQ_INVALID_INPUT, 400, info,
                 "Upload failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_open_writer(service, assets, path, NULL, &writer, &err), TSQ_INVALID_INPUT, 400, writer,
                 "Upload failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_download(service, assets, path, &content, &err), TSQ_INVALID_INPUT, 400, content,
                 "Download failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_open_reader(service, assets, path, &reader, &err), TSQ_INVALID_INPUT, 400, reader,
                 "Download failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_stat(service, assets, path, &info, &err), TSQ_INVALID_INPUT, 400, info, "Get file failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_delete(service, assets, path, &err), TSQ_INVALID_INPUT, 400, NULL, "Delete failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_copy(service, assets, TSQ_STR("notes/a.txt"), path, TSQ_OVERWRITE_REPLACE, &info, &err), TSQ_INVALID_INPUT, 400,
                 info, "Copy failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_move(service, assets, path, TSQ_STR("x"), TSQ_OVERWRITE_REPLACE, &info, &err), TSQ_INVALID_INPUT, 400, info,
                 "Move failed: Invalid file or request");
    if (checks_failed != before) {
        fprintf(stderr, "  the path is %s\n", name);
    }
}

static void paths_that_break_the_rule_are_refused(void) {
    static const struct {
        const char *name;
        tsq_str path;
    } paths[] = {
        {"empty", {"", 0}},         {"absent", {NULL, 0}},           {"..", {"..", 2}},
        {"../x", {"../x", 4}},      {"a/../../x", {"a/../../x", 9}}, {"a/..", {"a/..", 4}},
        {".", {".", 1}},            {"a/./b", {"a/./b", 5}},         {"/a", {"/a", 2}},
        {"a/", {"a/", 2}},          {"a//b", {"a//b", 4}},           {"a\\b", {"a\\b", 3}},
        {"a NUL b", {"a\0b", 3}},   {"a NUL", {"a\0", 2}},           {"a newline b", {"a\nb", 3}},
        {"DEL", {"a\x7f", 2}},      {"C1", {"a\xc2\x80", 3}},        {"not NFC", {"e\xcc\x81", 3}},
    };
    static char long_path[2000];
    tsq_str text;
    tsq_file_info *info = NULL;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        refuse_path(paths[i].path, paths[i].name);
    }
    memset(long_path, 'x', sizeof long_path);
    text.ptr = long_path;
    text.len = sizeof long_path;
    refuse_path(text, "2,000 characters");
    text.len = 256;
    refuse_path(text, "a name of 256 bytes");
    text.len = 255;
    WORKS(tsq_storage_upload(service, TSQ_STR("assets"), text, TSQ_BYTES("x"), NULL, NULL, &err));
    WORKS(tsq_storage_delete(service, TSQ_STR("assets"), text, &err));

    /* Percent signs and dots within a name have no meaning. */
    WORKS(put(service, "assets", "%2e%2e/x#12", "percent"));
    WORKS(put(service, "assets", "...", "dots"));
    CHECK(holds_text(service, "assets", "%2e%2e/x#12", "percent") && is_missing(service, "assets", "x#12") && holds_text(service, "assets", "...", "dots"));
    REFUSED_FILE(put(service, "..", "assets/x", "x"), TSQ_NOT_FOUND, 404, NULL, "Upload failed: File not found");
    REFUSED_FILE(put(service, "", "x", "x"), TSQ_NOT_FOUND, 404, NULL, "Upload failed: File not found");
    FAILS(tsq_storage_stat(service, TSQ_STR("assets"), TSQ_STR("a\xff"), &info, &err), TSQ_INVALID_INPUT, info,
          "Get file failed: Argument path is not UTF-8 at byte 1");
    FAILS(tsq_storage_stat(service, TSQ_STR("\xff"), TSQ_STR("a"), &info, &err), TSQ_INVALID_INPUT, info,
          "Get file failed: Argument bucket is not UTF-8 at byte 0");
}

static void null_arguments_are_named(void) {
    tsq_bytes impossible;
    tsq_file_info *info = NULL;
    tsq_file_list *list = NULL;
    tsq_buffer *content = NULL;
    tsq_string *text = NULL;
    tsq_repair_report *report = NULL;
    const tsq_str bucket = TSQ_STR("assets");
    const tsq_str path = TSQ_STR("notes/a.txt");
    FAILS(tsq_storage_upload(NULL, bucket, path, TSQ_BYTES("x"), NULL, &info, &err), TSQ_INVALID_INPUT, info, "Upload failed: Argument client is NULL");
    FAILS(tsq_storage_secure_upload(NULL, bucket, path, TSQ_BYTES("x"), absent, NULL, &info, &err), TSQ_INVALID_INPUT, info, "Argument client is NULL");
    FAILS(tsq_storage_download(NULL, bucket, path, &content, &err), TSQ_INVALID_INPUT, content, "Download failed: Argument client is NULL");
    FAILS(tsq_storage_download_range(NULL, bucket, path, 0, 1, &content, &err), TSQ_INVALID_INPUT, content, "Argument client is NULL");
    FAILS(tsq_storage_stat(NULL, bucket, path, &info, &err), TSQ_INVALID_INPUT, info, "Get file failed: Argument client is NULL");
    FAILS(tsq_storage_list(NULL, bucket, absent, 1, absent, &list, &err), TSQ_INVALID_INPUT, list, "List files failed: Argument client is NULL");
    FAILS(tsq_storage_copy(NULL, bucket, path, path, TSQ_OVERWRITE_REFUSE, &info, &err), TSQ_INVALID_INPUT, info, "Argument client is NULL");
    FAILS(tsq_storage_move(NULL, bucket, path, path, TSQ_OVERWRITE_REFUSE, &info, &err), TSQ_INVALID_INPUT, info, "Argument client is NULL");
    FAILS(tsq_storage_delete(NULL, bucket, path, &err), TSQ_INVALID_INPUT, NULL, "Delete failed: Argument client is NULL");
    FAILS(tsq_storage_signed_url(NULL, bucket, path, TSQ_URL_GET, 1000, NULL, &text, &err), TSQ_INVALID_INPUT, text, "Sign URL failed: Argument client is NULL");
    FAILS(tsq_storage_rotate_url_key(NULL, &err), TSQ_INVALID_INPUT, NULL, "Rotate URL key failed: Argument client is NULL");
    FAILS(tsq_storage_repair(NULL, &report, &err), TSQ_INVALID_INPUT, report, "Repair failed: Argument client is NULL");
    FAILS(tsq_storage_stat(service, bucket, path, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_storage_download(service, bucket, path, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_storage_list(service, bucket, absent, 1, absent, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    impossible.ptr = NULL;
    impossible.len = 1;
    FAILS(tsq_storage_upload(service, bucket, path, impossible, NULL, &info, &err), TSQ_INVALID_INPUT, info, "Upload failed: Argument data is NULL");
    impossible.ptr = (const uint8_t *)folder;
    impossible.len = SIZE_MAX;
    FAILS(tsq_storage_upload(service, bucket, path, impossible, NULL, &info, &err), TSQ_INVALID_INPUT, info, "Argument data has an impossible length");
    CHECK(tsq_storage_stat(service, bucket, TSQ_STR(".."), &info, NULL) == TSQ_INVALID_INPUT && info == NULL);
    FAILS(tsq_file_info_json(NULL, &text, &err), TSQ_INVALID_INPUT, text, "Argument file is NULL");
    FAILS(tsq_file_list_json(NULL, &text, &err), TSQ_INVALID_INPUT, text, "Argument list is NULL");
    FAILS(tsq_repair_report_json(NULL, &text, &err), TSQ_INVALID_INPUT, text, "Argument report is NULL");
    CHECK(tsq_buffer_view(NULL).len == 0 && tsq_buffer_view(NULL).ptr == NULL && is_absent(tsq_error_reason(NULL)));
    tsq_file_info_free(NULL);
    tsq_file_list_free(NULL);
    tsq_buffer_free(NULL);
    tsq_repair_report_free(NULL);
    tsq_storage_path_free(NULL);
    tsq_file_response_free(NULL);
    tsq_file_reader_free(NULL);
    tsq_file_writer_free(NULL);
}

/* SPEC 2.8. */
static void paths_of_the_layout_are_made(void) {
    static const char key[] = "79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664";
    tsq_storage_path *made = NULL;
    WORKS(tsq_space_path_tab_order(TSQ_STR(NOBODY), &made, &err));
    CHECK(is(made->bucket, "spaces") && is(made->path, NOBODY "/tabOrder"));
    tsq_storage_path_free(made);
    WORKS(tsq_space_path_tab(TSQ_STR(NOBODY), TSQ_STR("My tab_1-b"), &made, &err));
    CHECK(is(made->bucket, "spaces") && is(made->path, NOBODY "/tabs/My tab_1-b"));
    tsq_storage_path_free(made);
    WORKS(tsq_space_path_asset(TSQ_STR(NOBODY), TSQ_STR("icons/sun.png"), &made, &err));
    CHECK(is(made->path, NOBODY "/assets/icons/sun.png"));
    tsq_storage_path_free(made);
    WORKS(tsq_private_path_homebase(TSQ_STR(NOBODY), &made, &err));
    CHECK(is(made->bucket, "private") && is(made->path, NOBODY "/homebase"));
    tsq_storage_path_free(made);
    WORKS(tsq_private_path_tab(tsq_str_from(key), TSQ_STR("Notes"), &made, &err));
    CHECK(has(made->path, key) && has(made->path, "/tabs/Notes"));
    tsq_storage_path_free(made);
    WORKS(tsq_asset_path_image(TSQ_STR("logo.png"), &made, &err));
    CHECK(is(made->bucket, "assets") && is(made->path, "images/logo.png"));
    tsq_storage_path_free(made);
    WORKS(tsq_asset_path_video(TSQ_STR("tour.mp4"), &made, &err));
    CHECK(is(made->path, "videos/tour.mp4"));
    tsq_storage_path_free(made);
    made = NULL;
    FAILS(tsq_space_path_tab(TSQ_STR(NOBODY), TSQ_STR("../x"), &made, &err), TSQ_INVALID_INPUT, made, "is no tab name");
    FAILS(tsq_space_path_tab(TSQ_STR(NOBODY), absent, &made, &err), TSQ_INVALID_INPUT, made, "is no tab name");
    FAILS(tsq_space_path_tab(TSQ_STR("17"), TSQ_STR("x"), &made, &err), TSQ_INVALID_INPUT, made, "Argument space_id is not a UUID");
    FAILS(tsq_space_path_asset(TSQ_STR(NOBODY), TSQ_STR(".."), &made, &err), TSQ_INVALID_INPUT, made, "is no valid path");
    FAILS(tsq_private_path_homebase(TSQ_STR(".."), &made, &err), TSQ_INVALID_INPUT, made, "owns no private files");
    FAILS(tsq_asset_path_image(TSQ_STR("a\xff"), &made, &err), TSQ_INVALID_INPUT, made, "Argument name is not UTF-8 at byte 1");
    FAILS(tsq_asset_path_video(TSQ_STR("a"), NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    tsq_session *session = NULL;
    anonymous = open_with("town", NULL);
    WORKS(tsq_client_as_service(anonymous, &service, &err));
    session = meet(service, "user@town.example");
    user_id = keep(id_of(session));
    user = act_as(anonymous, session);
    tsq_session_free(session);

    paths_of_the_layout_are_made();
    a_file_is_stored_and_described();
    a_prefix_is_deleted_and_files_exist_or_not();
    options_of_an_upload_are_kept();
    a_list_has_pages();
    a_file_is_copied_and_moved();
    failures_have_the_statuses_of_the_table();
    paths_that_break_the_rule_are_refused();
    null_arguments_are_named();
    tsq_client_free(user);
    tsq_client_free(service);
    tsq_client_free(anonymous);
    return checks_done("files");
}
