/* For call_sequences.c: operations on files, signed files, paths and requests over HTTP. */
#ifndef SEQUENCE_FILES_H
#define SEQUENCE_FILES_H

#include "sequence_arguments.h"
#include "sequence_handles.h"

static tsq_upload_options draw_upload_options(void) {
    static const char *const types[] = {"text/plain", "image/svg+xml", "application/json"};
    static const char *const names[] = {"a", "b", "x-y"};
    static tsq_upload_options none;
    tsq_upload_options values = none;
    tsq_file_metadata metadata[2];
    values.content_type = USUAL(types);
    if (draw() % 4 == 0) {
        const tsq_file_info *info = PICK(file_info);
        values.if_match = info == NULL ? draw_text() : lent(info->etag.ptr, info->etag.len);
    }
    values.metadata_len = draw() % 4 == 0 ? below(COUNT(metadata) + 1) : 0;
    for (size_t i = 0; i < values.metadata_len; i++) {
        metadata[i].name = USUAL(names);
        metadata[i].value = USUAL(names);
    }
    values.metadata = (const tsq_file_metadata *)lend(metadata, sizeof metadata[0] * values.metadata_len);
    draw_bool(&values.has_cache_control);
    values.cache_control = (uint32_t)draw_number();
    if (draw() % 4 == 0) {
        draw_bool(&values.insert_only);
        draw_bool(&values.verify);
    }
    return values;
}

/* A source that gives the bytes in pieces, and a target that takes some; a negative number cancels at that call. */
typedef struct pieces {
    const uint8_t *bytes;
    size_t left;
    int calls;
} pieces;

static int32_t give_piece(uint8_t *buffer, size_t length, size_t *read, void *user_data) {
    pieces *source = (pieces *)user_data;
    const size_t count = source->left < length ? source->left : length;
    if (--source->calls == 0) {
        return 1;
    }
    if (count > 0) {
        memcpy(buffer, source->bytes, count);
        source->bytes += count;
        source->left -= count;
    }
    *read = count;
    return 0;
}

static int32_t take_piece(const uint8_t *bytes, size_t length, void *user_data) {
    pieces *target = (pieces *)user_data;
    see_bytes(bytes, length);
    return --target->calls == 0;
}

static pieces draw_pieces(void) {
    pieces drawn;
    const tsq_bytes bytes = draw_bytes();
    drawn.bytes = bytes.ptr;
    drawn.left = bytes.ptr == NULL || bytes.len > 70000 ? 0 : bytes.len;
    drawn.calls = draw() % 4 == 3 ? 1 : 1 << 30;
    is_refused = 0;
    return drawn;
}

static void upload_a_file(void) {
    const tsq_client *client = PICK(client);
    const tsq_str bucket = draw_bucket();
    const tsq_str path = draw_path();
    const unsigned way = below(4);
    DRAW_OPTIONS(upload_options, values, chosen);
    if (way == 0) {
        pieces source = draw_pieces();
        MAKES(file_info, OPTIONAL, tsq_storage_upload_stream(client, bucket, path, give_piece, &source, chosen, out, err));
    } else if (way == 1) {
        const tsq_bytes bytes = draw_bytes();
        const tsq_str user_id = draw_id();
        MAKES(file_info, OPTIONAL, tsq_storage_secure_upload(client, bucket, path, bytes, user_id, chosen, out, err));
    } else {
        const tsq_bytes bytes = draw_bytes();
        MAKES(file_info, OPTIONAL, tsq_storage_upload(client, bucket, path, bytes, chosen, out, err));
    }
}

static void read_a_file(void) {
    const tsq_client *client = PICK(client);
    const tsq_str bucket = draw_bucket();
    const tsq_str path = draw_path();
    const unsigned way = below(6);
    bool exists;
    if (way == 0) {
        MAKES(buffer, REQUIRED, tsq_storage_download(client, bucket, path, out, err));
    } else if (way == 1) {
        const uint64_t start = draw_number();
        const uint64_t end = draw_number();
        MAKES(buffer, REQUIRED, tsq_storage_download_range(client, bucket, path, start, end, out, err));
    } else if (way == 2) {
        pieces target = draw_pieces();
        MAKES(file_info, OPTIONAL, tsq_storage_download_stream(client, bucket, path, take_piece, &target, out, err));
    } else if (way == 3) {
        MAKES(file_info, REQUIRED, tsq_storage_stat(client, bucket, path, out, err));
    } else if (way == 4) {
        COUNTS(bool, exists, tsq_storage_exists(client, bucket, path, out, err));
        see_bytes(&exists, sizeof exists);
    } else {
        const uint32_t limit = draw_limit();
        const tsq_str after = draw_path();
        MAKES(file_list, REQUIRED, tsq_storage_list(client, bucket, path, limit, after, out, err));
    }
}

static void change_a_file(void) {
    const tsq_client *client = PICK(client);
    const tsq_str bucket = draw_bucket();
    const tsq_str path = draw_path();
    const unsigned way = below(4);
    if (way < 2) {
        const tsq_str target = draw_path();
        tsq_overwrite overwrite;
        draw_enum(&overwrite, 2);
        if (way == 0) {
            MAKES(file_info, OPTIONAL, tsq_storage_copy(client, bucket, path, target, overwrite, out, err));
        } else {
            MAKES(file_info, OPTIONAL, tsq_storage_move(client, bucket, path, target, overwrite, out, err));
        }
    } else if (way == 2) {
        DOES(tsq_storage_delete(client, bucket, path, err));
    } else {
        uint64_t deleted;
        COUNTS(uint64_t, deleted, tsq_storage_delete_prefix(client, bucket, path, out, err));
        MUST(deleted < 100);
    }
}

static void open_a_writer(void) {
    const tsq_client *client = PICK(client);
    const tsq_str bucket = draw_bucket();
    const tsq_str path = draw_path();
    DRAW_OPTIONS(upload_options, values, chosen);
    MAKES(file_writer, REQUIRED, tsq_storage_open_writer(client, bucket, path, chosen, out, err));
}

static void use_a_writer(void) {
    tsq_file_writer *writer = PICK(file_writer);
    const unsigned way = below(4);
    if (writer == NULL && way < 3) {
        open_a_writer();
    } else if (way < 2) {
        const tsq_bytes bytes = draw_bytes();
        DOES(tsq_file_writer_write(writer, bytes, err));
    } else if (way == 2) {
        MAKES(file_info, OPTIONAL, tsq_file_writer_finish(writer, out, err));
    } else {
        tsq_file_writer_abort(writer);
    }
}

static void open_a_reader(void) {
    const tsq_client *client = PICK(client);
    const tsq_str bucket = draw_bucket();
    const tsq_str path = draw_path();
    MAKES(file_reader, REQUIRED, tsq_storage_open_reader(client, bucket, path, out, err));
}

/* Memory for bytes, exactly as long as the call is told. */
static uint8_t *draw_buffer(size_t *length) {
    const unsigned way = draw();
    *length = way < 64 ? way : (size_t)1 << way % 13;
    if (way >= 252) {
        is_refused = is_refused || *length > 0;
        return NULL;
    }
    uint8_t *buffer = (uint8_t *)lend(NULL, *length);
    if (way >= 248) {
        *length = SIZE_MAX;
        is_refused = 1;
    }
    return buffer;
}

static void read_on(void) {
    tsq_file_reader *reader = PICK(file_reader);
    size_t length, read;
    if (reader == NULL && draw() % 4 < 3) {
        open_a_reader();
        return;
    }
    uint8_t *buffer = draw_buffer(&length);
    if (draw() % 2 == 0) {
        COUNTS(size_t, read, tsq_file_reader_read(reader, buffer, length, out, err));
    } else {
        const uint64_t offset = draw_number();
        COUNTS(size_t, read, tsq_file_reader_read_at(reader, offset, buffer, length, out, err));
    }
    MUST(read <= length);
    see_bytes(buffer, read);
}

static const char *const methods[] = {"GET", "GET", "GET", "HEAD", "OPTIONS", "PUT", "POST", "DELETE"};

static const tsq_http_header *draw_headers(size_t *count) {
    static const char *const names[] = {"accept-encoding", "Range", "if-none-match", "origin", "Authorization", "if-match", "content-type",
                                        "Last-Event-ID"};
    static const char *const values[] = {"gzip", "bytes=0-1", "bytes=5-", "*", "https://a.example", "Bearer x", "bytes=1-0,3-"};
    tsq_http_header drawn[3];
    *count = below(COUNT(drawn) + 1);
    for (size_t i = 0; i < *count; i++) {
        drawn[i].name = USUAL(names);
        drawn[i].value = USUAL(values);
    }
    return (const tsq_http_header *)lend(drawn, sizeof drawn[0] * *count);
}

static const char *const targets[] = {"/files/assets/a", "/assets/a", "/health", "/directory", "/events?table=spaces",
                                      "/api/miniapp-discovery?limit=2", "/api/miniapp-discovery/stats", "/private/x", "/", ""};

static void send_a_request(void) {
    static tsq_file_request none;
    tsq_file_request values = none;
    pieces source = draw_pieces();
    const tsq_client *client = PICK(client);
    const unsigned way = below(4);
    values.method = USUAL(methods);
    values.target = USUAL(targets);
    values.headers = draw_headers(&values.headers_len);
    values.body = draw_bytes();
    if (draw() % 4 == 0) {
        values.body_source = give_piece;
        values.body_user_data = &source;
        is_refused = 0;
    }
    const tsq_file_request *request = INPUT(file_request, values);
    if (way == 0) {
        MAKES(file_response, REQUIRED, tsq_storage_handle_file(client, request, out, err));
    } else if (way == 1) {
        is_refused = 0;
        MAKES(file_response, REQUIRED,
              tsq_realtime_handle_events(client, values.method, values.target, values.headers, values.headers_len, out, err));
    } else {
        MAKES(file_response, REQUIRED, tsq_client_handle_request(client, request, out, err));
    }
}

/* A stream of events waits for the next one: its body is not read. */
static int is_stream_of_events(const tsq_file_response *response) {
    for (size_t i = 0; response != NULL && i < response->headers_len; i++) {
        if (contains(response->headers[i].value, "text/event-stream")) {
            return 1;
        }
    }
    return 0;
}

static void read_a_response(void) {
    tsq_file_response *response = PICK(file_response);
    size_t length, read;
    if (response == NULL && draw() % 4 < 3) {
        send_a_request();
        return;
    }
    uint8_t *buffer = draw_buffer(&length);
    if (!is_stream_of_events(response)) {
        COUNTS(size_t, read, tsq_file_response_read(response, buffer, length, out, err));
        MUST(read <= length);
        see_bytes(buffer, read);
    }
}

static void ask_the_endpoint(void) {
    static tsq_http_request none;
    tsq_http_request values = none;
    const tsq_client *client = PICK(client);
    const unsigned way = below(2);
    values.method = USUAL(methods);
    values.target = USUAL(targets);
    values.body = draw_bytes();
    if (way == 0) {
        MAKES(http_response, REQUIRED, tsq_discovery_handle(client, values.method, values.target, values.body, out, err));
    } else {
        values.headers = draw_headers(&values.headers_len);
        const tsq_http_request *request = INPUT(http_request, values);
        MAKES(http_response, REQUIRED, tsq_discovery_handle_request(client, request, out, err));
    }
}

static tsq_url_options draw_url_options(void) {
    static tsq_url_options none;
    tsq_url_options values = none;
    values.content_type = draw() % 2 == 0 ? absent : draw_text();
    draw_bool(&values.has_max_size);
    values.max_size = draw_number();
    return values;
}

static void sign_a_url(void) {
    const tsq_client *client = PICK(client);
    const tsq_str bucket = draw_bucket();
    const tsq_str path = draw_path();
    const uint64_t time = draw() % 4 < 3 ? 60000 : draw_number();
    tsq_url_method method;
    draw_enum(&method, 2);
    if (draw() % 8 == 7) {
        is_refused = 0;
        if (draw() % 2 == 0) {
            DOES(tsq_storage_rotate_url_key(client, err));
        } else {
            MAKES(repair_report, OPTIONAL, tsq_storage_repair(client, out, err));
        }
        return;
    }
    DRAW_OPTIONS(url_options, values, chosen);
    MAKES(string, REQUIRED, tsq_storage_signed_url(client, bucket, path, method, time, chosen, out, err));
}

static void make_a_path(void) {
    static const char *const names[] = {"Fidgets", "a b-c_d", "a/b", "\xc3\xa9"};
    const unsigned way = below(7);
    const tsq_str id = way < 5 ? draw_id() : absent;
    const tsq_str name = way == 0 || way == 3 ? absent : USUAL(names);
    switch (way) {
    case 0:
        MAKES(storage_path, REQUIRED, tsq_space_path_tab_order(id, out, err));
        break;
    case 1:
        MAKES(storage_path, REQUIRED, tsq_space_path_tab(id, name, out, err));
        break;
    case 2:
        MAKES(storage_path, REQUIRED, tsq_space_path_asset(id, name, out, err));
        break;
    case 3:
        MAKES(storage_path, REQUIRED, tsq_private_path_homebase(id, out, err));
        break;
    case 4:
        MAKES(storage_path, REQUIRED, tsq_private_path_tab(id, name, out, err));
        break;
    case 5:
        MAKES(storage_path, REQUIRED, tsq_asset_path_image(name, out, err));
        break;
    default:
        MAKES(storage_path, REQUIRED, tsq_asset_path_video(name, out, err));
        break;
    }
}

static tsq_sign_options draw_sign_options(void) {
    static tsq_sign_options none;
    tsq_sign_options values = none;
    values.file_type = draw_text();
    values.file_name = draw_text();
    draw_bool(&values.has_timestamp);
    values.timestamp = (int64_t)draw_number();
    return values;
}

static void sign_a_file(void) {
    static const char *const keys[] = {"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20",
                                       "0102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F20"};
    const unsigned way = below(4);
    const tsq_str key = way < 3 ? USUAL(keys) : absent;
    if (way == 0) {
        const tsq_str text = draw_text();
        DRAW_OPTIONS(sign_options, values, chosen);
        MAKES(string, REQUIRED, tsq_signed_file_sign(text, key, chosen, out, err));
    } else if (way == 1) {
        const tsq_bytes bytes = draw_bytes();
        DRAW_OPTIONS(sign_options, values, chosen);
        MAKES(string, REQUIRED, tsq_signed_file_encrypt(bytes, key, chosen, out, err));
    } else if (way == 2) {
        const tsq_str signed_file = draw_returned();
        MAKES(buffer, REQUIRED, tsq_signed_file_decrypt(signed_file, key, out, err));
    } else {
        const tsq_str signed_file = draw_returned();
        MUST(!tsq_signed_file_verify(signed_file) || !is_refused);
    }
}

#endif
