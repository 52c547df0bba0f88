/* Texts as bytes, and exact checks of files and their errors, for the C programs about files. */
#ifndef STORED_H
#define STORED_H

#include "people.h"

#include <stdlib.h>

static inline tsq_bytes bytes_of(const char *text) {
    tsq_bytes bytes;
    bytes.ptr = (const uint8_t *)text;
    bytes.len = strlen(text);
    return bytes;
}

/* Whether a call failed with this status, this HTTP status and exactly this sentence, and left no output. `http` is 0 for any
 * status. Frees the error. */
static inline int refused_file(tsq_status got, tsq_status expected, unsigned http, const void *out, const char *sentence) {
    uint16_t status = tsq_error_status(err);
    int as_expected = got == expected && out == NULL && tsq_error_kind(err) == expected && says(sentence) &&
                      (http == 0 ? status >= 400 : status == http) && tsq_error_explanation(err).len > 0;
    if (!as_expected) {
        fprintf(stderr, "  status %d, HTTP status %u: %.*s (%.*s)\n", (int)got, status, TSQ_ARG(tsq_error_text(err)),
                TSQ_ARG(tsq_error_reason(err)));
    }
    tsq_error_free(err);
    err = NULL;
    return as_expected;
}

#define REFUSED_FILE(call, expected, http, out, sentence)                                      \
    do {                                                                                       \
        tsq_status status_ = (call);                                                           \
        check(refused_file(status_, expected, http, out, sentence), #call, __FILE__, __LINE__); \
    } while (0)

/* The configuration of a client whose data is in FOLDER/name; that of `town` is where the environment says, if it does. `options`
 * are pairs of names and values, ended by NULL. */
static inline tsq_config *config_with(const char *name, const char *const *options) {
    char text[4096];
    tsq_config *config = tsq_config_new();
    snprintf(text, sizeof text, "%s/%s", folder, name);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    WORKS(tsq_config_set(config, TSQ_STR("catalog_api_key"), TSQ_STR(""), &err));
    if (strcmp(name, "town") == 0 && getenv("TSQ_TEST_DATABASE_URL") != NULL) {
        WORKS(tsq_config_set(config, TSQ_STR("database_url"), tsq_str_from(getenv("TSQ_TEST_DATABASE_URL")), &err));
        WORKS(tsq_config_set(config, TSQ_STR("storage_url"), tsq_str_from(getenv("TSQ_TEST_STORAGE_URL")), &err));
    }
    for (; options != NULL && *options != NULL; options += 2) {
        WORKS(tsq_config_set(config, tsq_str_from(options[0]), tsq_str_from(options[1]), &err));
    }
    return config;
}

/* A client with the configuration of `config_with`. */
static inline tsq_client *open_with(const char *name, const char *const *options) {
    tsq_client *client = NULL;
    tsq_config *config = config_with(name, options);
    WORKS(tsq_client_open(config, &client, &err));
    tsq_config_free(config);
    return client;
}

/* Whether the file has exactly these bytes for the caller. */
static inline int holds(const tsq_client *client, const char *bucket, const char *path, const void *expected, size_t length) {
    tsq_buffer *content = NULL;
    tsq_file_info *info = NULL;
    tsq_bytes bytes;
    int same;
    const tsq_status status = tsq_storage_download(client, tsq_str_from(bucket), tsq_str_from(path), &content, &err);
    bytes = tsq_buffer_view(content);
    same = worked(status) && bytes.len == length && (length == 0 || memcmp(bytes.ptr, expected, length) == 0);
    same = same && worked(tsq_storage_stat(client, tsq_str_from(bucket), tsq_str_from(path), &info, &err)) && info->size == length;
    if (!same) {
        fprintf(stderr, "  %s/%s has %zu bytes, not the expected %zu\n", bucket, path, bytes.len, length);
    }
    tsq_buffer_free(content);
    tsq_file_info_free(info);
    return same;
}

static inline int holds_text(const tsq_client *client, const char *bucket, const char *path, const char *text) {
    return holds(client, bucket, path, text, strlen(text));
}

static inline int is_missing(const tsq_client *client, const char *bucket, const char *path) {
    tsq_file_info *info = NULL;
    const tsq_status status = tsq_storage_stat(client, tsq_str_from(bucket), tsq_str_from(path), &info, &err);
    return refused_file(status, TSQ_NOT_FOUND, 404, info, "Get file failed: File not found");
}

static inline tsq_status put(const tsq_client *client, const char *bucket, const char *path, const char *text) {
    return tsq_storage_upload(client, tsq_str_from(bucket), tsq_str_from(path), bytes_of(text), NULL, NULL, &err);
}

#endif
