/* Files from C in bounded memory: writers, readers, callbacks, files of the host, export, repair and signed files. Also compiled
 * as C++: keep to the common subset.
 *
 * files_stream CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "progress.h"
#include "stored.h"

#include <dirent.h>
#include <sys/stat.h>

/* Larger than inline_file_limit, and no multiple of a chunk. */
enum { LARGE = 300007 };

static tsq_client *anonymous, *service, *user;
static kept user_id;
static uint8_t old_bytes[LARGE], new_bytes[LARGE];
static tsq_upload_options no_options;

static tsq_bytes large(const uint8_t *bytes, size_t length) {
    tsq_bytes out;
    out.ptr = bytes;
    out.len = length;
    return out;
}

static void in_folder(char *out, size_t size, const char *name) {
    snprintf(out, size, "%s/%s", folder, name);
}

/* The number of files in FOLDER/name; 0 without such a folder. */
static int files_in(const char *name) {
    char path[4096];
    int count = 0;
    DIR *listing;
    in_folder(path, sizeof path, name);
    listing = opendir(path);
    if (listing != NULL) {
        for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
            count += entry->d_name[0] != '.';
        }
        closedir(listing);
    }
    return count;
}

static int nothing_is_staged(void) {
    return files_in("town/files/.townsquare/staging") == 0;
}

static void write_host_file(const char *name, const uint8_t *bytes, size_t length) {
    char path[4096];
    FILE *file;
    in_folder(path, sizeof path, name);
    file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
}

/* Whether FOLDER/name has exactly these bytes. */
static int host_file_holds(const char *name, const uint8_t *bytes, size_t length) {
    char path[4096];
    uint8_t *content = (uint8_t *)malloc(length + 1);
    size_t read = 0;
    FILE *file;
    in_folder(path, sizeof path, name);
    file = fopen(path, "rb");
    if (file != NULL) {
        read = fread(content, 1, length + 1, file);
        fclose(file);
    }
    const int same = file != NULL && read == length && memcmp(content, bytes, length) == 0;
    free(content);
    return same;
}

static void a_writer_stores_what_was_written(void) {
    tsq_file_writer *writer = NULL;
    tsq_file_info *info = NULL;
    tsq_upload_options options = no_options;
    WORKS(tsq_storage_open_writer(user, TSQ_STR("assets"), TSQ_STR("w"), NULL, &writer, &err));
    WORKS(tsq_file_writer_write(writer, TSQ_BYTES("one "), &err));
    WORKS(tsq_file_writer_write(writer, TSQ_BYTES(""), &err));
    CHECK(is_missing(service, "assets", "w"));
    WORKS(tsq_file_writer_write(writer, TSQ_BYTES("line"), &err));
    WORKS(tsq_file_writer_finish(writer, &info, &err));
    CHECK(info->size == 8 && is(info->path, "w") && is(info->owner_id, user_id.text));
    tsq_file_info_free(info);
    info = NULL;
    FAILS(tsq_file_writer_finish(writer, &info, &err), TSQ_INVALID_INPUT, info, "Upload failed: The writer is finished or aborted");
    FAILS(tsq_file_writer_write(writer, TSQ_BYTES("x"), &err), TSQ_INVALID_INPUT, NULL, "Upload failed: The writer is finished or aborted");
    tsq_file_writer_abort(writer);
    tsq_file_writer_free(writer);
    CHECK(holds_text(anonymous, "assets", "w", "one line"));

    /* Over the inline limit, with options. */
    options.content_type = TSQ_STR("video/mp4");
    WORKS(tsq_storage_open_writer(user, TSQ_STR("assets"), TSQ_STR("w"), &options, &writer, &err));
    for (size_t at = 0; at < LARGE; at += 4096) {
        WORKS(tsq_file_writer_write(writer, large(old_bytes + at, LARGE - at < 4096 ? LARGE - at : 4096), &err));
    }
    CHECK(holds_text(anonymous, "assets", "w", "one line"));
    WORKS(tsq_file_writer_finish(writer, &info, &err));
    CHECK(info->size == LARGE && is(info->content_type, "video/mp4"));
    tsq_file_info_free(info);
    tsq_file_writer_free(writer);
    CHECK(holds(anonymous, "assets", "w", old_bytes, LARGE) && nothing_is_staged());
    options.insert_only = true;
    writer = NULL;
    if (tsq_storage_open_writer(user, TSQ_STR("assets"), TSQ_STR("w"), &options, &writer, NULL) == TSQ_OK) {
        /* It fails at the latest when it finishes. */
        CHECK(tsq_file_writer_finish(writer, NULL, NULL) == TSQ_ALREADY_EXISTS);
    }
    tsq_file_writer_free(writer);
    CHECK(holds(anonymous, "assets", "w", old_bytes, LARGE));
}

static void an_aborted_writer_leaves_nothing(void) {
    tsq_file_writer *writer = NULL;
    tsq_file_info *info = NULL;
    for (int way = 0; way < 4; way++) {
        const size_t length = way % 2 == 0 ? 10 : LARGE;
        WORKS(tsq_storage_open_writer(user, TSQ_STR("assets"), TSQ_STR("aborted"), NULL, &writer, &err));
        WORKS(tsq_file_writer_write(writer, large(old_bytes, length), &err));
        if (way < 2) {
            tsq_file_writer_abort(writer);
            FAILS(tsq_file_writer_finish(writer, &info, &err), TSQ_INVALID_INPUT, info, "The writer is finished or aborted");
        }
        tsq_file_writer_free(writer);
        CHECK(is_missing(service, "assets", "aborted") && nothing_is_staged());
    }
    writer = NULL;
    REFUSED_FILE(tsq_storage_open_writer(anonymous, TSQ_STR("elsewhere"), TSQ_STR("x"), NULL, &writer, &err), TSQ_NOT_FOUND, 404, writer,
                 "Upload failed: File not found");
    /* A policy refuses the writer when it is opened, or when it finishes. */
    if (tsq_storage_open_writer(anonymous, TSQ_STR("assets"), TSQ_STR("x"), NULL, &writer, NULL) == TSQ_OK) {
        CHECK(tsq_file_writer_finish(writer, NULL, NULL) == TSQ_UNAUTHORIZED);
    }
    tsq_file_writer_free(writer);
    CHECK(is_missing(service, "assets", "x"));
    FAILS(tsq_file_writer_write(NULL, TSQ_BYTES("x"), &err), TSQ_INVALID_INPUT, NULL, "Upload failed: Argument writer is NULL");
    FAILS(tsq_file_writer_finish(NULL, &info, &err), TSQ_INVALID_INPUT, info, "Upload failed: Argument writer is NULL");
    FAILS(tsq_storage_open_writer(user, TSQ_STR("assets"), TSQ_STR("x"), NULL, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    tsq_file_writer_abort(NULL);
}

static void a_writer_over_the_size_limit_fails(void) {
    static const char *const small[] = {"max_file_size", "1000", NULL};
    tsq_client *client = open_with("small", small);
    tsq_client *trusted = NULL;
    tsq_file_writer *writer = NULL;
    tsq_status status;
    WORKS(tsq_client_as_service(client, &trusted, &err));
    WORKS(tsq_storage_open_writer(trusted, TSQ_STR("assets"), TSQ_STR("x"), NULL, &writer, &err));
    WORKS(tsq_file_writer_write(writer, large(old_bytes, 1000), &err));
    REFUSED_FILE(tsq_file_writer_write(writer, large(old_bytes, 1), &err), TSQ_TOO_LARGE, 413, NULL, "Upload failed: File too large");
    status = tsq_file_writer_finish(writer, NULL, &err);
    REFUSED_FILE(status, TSQ_TOO_LARGE, 413, NULL, "Upload failed: File too large");
    tsq_file_writer_free(writer);
    CHECK(is_missing(trusted, "assets", "x"));
    tsq_client_free(trusted);
    tsq_client_free(client);
}

/* Reads to the end in pieces of `piece` bytes. */
static int reads(tsq_file_reader *reader, const uint8_t *expected, size_t length, size_t piece) {
    uint8_t *buffer = (uint8_t *)malloc(piece);
    size_t done = 0, read = 0;
    int same = 1;
    do {
        same = worked(tsq_file_reader_read(reader, buffer, piece, &read, &err)) && read <= piece && done + read <= length &&
               memcmp(buffer, expected + done, read) == 0 && same;
        done += read;
    } while (same && read > 0);
    free(buffer);
    return same && done == length;
}

static void a_reader_gives_one_version(void) {
    /* From small to large and back, over the inline limit. */
    static const size_t lengths[][2] = {{10, 20}, {LARGE, LARGE}, {10, LARGE}, {LARGE, 10}};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        tsq_file_reader *reader = NULL;
        tsq_file_reader *deleted = NULL;
        uint8_t piece[100];
        size_t read = 0;
        const size_t length = lengths[i][0];
        WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("r"), large(old_bytes, length), NULL, NULL, &err));
        WORKS(tsq_storage_open_reader(anonymous, TSQ_STR("assets"), TSQ_STR("r"), &reader, &err));
        WORKS(tsq_storage_open_reader(anonymous, TSQ_STR("assets"), TSQ_STR("r"), &deleted, &err));
        WORKS(tsq_file_reader_read(reader, piece, 5, &read, &err));
        CHECK(read > 0 && read <= 5 && memcmp(piece, old_bytes, read) == 0);
        WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("r"), large(new_bytes, lengths[i][1]), NULL, NULL, &err));
        CHECK(tsq_file_reader_info(reader)->size == length && is(tsq_file_reader_info(reader)->path, "r"));
        CHECK(reads(reader, old_bytes + read, length - read, 777));
        CHECK(holds(anonymous, "assets", "r", new_bytes, lengths[i][1]));

        /* Random access does not move the position, which is at the end. */
        WORKS(tsq_file_reader_read_at(reader, 2, piece, 3, &read, &err));
        CHECK(read == 3 && memcmp(piece, old_bytes + 2, 3) == 0);
        WORKS(tsq_file_reader_read_at(reader, length - 4, piece, sizeof piece, &read, &err));
        CHECK(read == 4 && memcmp(piece, old_bytes + length - 4, 4) == 0);
        WORKS(tsq_file_reader_read_at(reader, length, piece, sizeof piece, &read, &err));
        CHECK(read == 0);
        WORKS(tsq_file_reader_read(reader, piece, sizeof piece, &read, &err));
        CHECK(read == 0);
        read = 7;
        REFUSED_FILE(tsq_file_reader_read_at(reader, length + 1, piece, sizeof piece, &read, &err), TSQ_INVALID_INPUT, 400, NULL,
                     "Download failed: Invalid file or request");
        CHECK(read == 0);
        REFUSED_FILE(tsq_file_reader_read_at(reader, UINT64_MAX, piece, sizeof piece, &read, &err), TSQ_INVALID_INPUT, 400, NULL,
                     "Download failed: Invalid file or request");

        WORKS(tsq_storage_delete(user, TSQ_STR("assets"), TSQ_STR("r"), &err));
        CHECK(reads(deleted, old_bytes, length, 65536) && is_missing(service, "assets", "r"));
        FAILS(tsq_file_reader_read(reader, NULL, 1, &read, &err), TSQ_INVALID_INPUT, NULL, "Download failed: Argument buffer is NULL");
        FAILS(tsq_file_reader_read(reader, piece, SIZE_MAX, &read, &err), TSQ_INVALID_INPUT, NULL, "Argument buffer has an impossible length");
        FAILS(tsq_file_reader_read(reader, piece, 1, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
        WORKS(tsq_file_reader_read(reader, NULL, 0, &read, &err));
        tsq_file_reader_free(reader);
        tsq_file_reader_free(deleted);
    }
    tsq_file_reader *none = NULL;
    size_t read = 1;
    CHECK(tsq_file_reader_info(NULL) == NULL);
    FAILS(tsq_file_reader_read(NULL, NULL, 0, &read, &err), TSQ_INVALID_INPUT, NULL, "Argument reader is NULL");
    REFUSED_FILE(tsq_storage_open_reader(anonymous, TSQ_STR("assets"), TSQ_STR("r"), &none, &err), TSQ_NOT_FOUND, 404, none,
                 "Download failed: File not found");
}

/* A writer and a reader of a client that is closed fail, and a response fails or ends. All are freed; nothing hangs. */
static void handles_outlive_their_client(void) {
    static tsq_file_request no_request;
    tsq_client *client = open_with("closed", NULL);
    tsq_client *trusted = NULL;
    tsq_file_writer *small = NULL;
    tsq_file_writer *staged = NULL;
    tsq_file_writer *none = NULL;
    tsq_file_reader *reader = NULL;
    tsq_file_reader *inline_reader = NULL;
    tsq_file_response *response = NULL;
    tsq_file_request request = no_request;
    uint8_t piece[100];
    size_t read = 0;
    WORKS(tsq_client_as_service(client, &trusted, &err));
    WORKS(tsq_storage_upload(trusted, TSQ_STR("assets"), TSQ_STR("r"), large(old_bytes, LARGE), NULL, NULL, &err));
    WORKS(tsq_storage_open_writer(trusted, TSQ_STR("assets"), TSQ_STR("small"), NULL, &small, &err));
    WORKS(tsq_storage_open_writer(trusted, TSQ_STR("assets"), TSQ_STR("staged"), NULL, &staged, &err));
    WORKS(tsq_file_writer_write(small, TSQ_BYTES("x"), &err));
    WORKS(tsq_file_writer_write(staged, large(old_bytes, LARGE), &err));
    WORKS(tsq_storage_open_reader(trusted, TSQ_STR("assets"), TSQ_STR("r"), &reader, &err));
    WORKS(tsq_storage_upload(trusted, TSQ_STR("assets"), TSQ_STR("inline"), TSQ_BYTES("bytes"), NULL, NULL, &err));
    WORKS(tsq_storage_open_reader(trusted, TSQ_STR("assets"), TSQ_STR("inline"), &inline_reader, &err));
    /* The rest of its bytes is in memory. */
    WORKS(tsq_file_reader_read(inline_reader, piece, 2, &read, &err));
    CHECK(read == 2 && memcmp(piece, "by", 2) == 0);
    request.method = TSQ_STR("GET");
    request.target = TSQ_STR("/assets/r");
    WORKS(tsq_storage_handle_file(trusted, &request, &response, &err));
    WORKS(tsq_client_close(client, &err));
    FAILS(tsq_file_writer_finish(small, NULL, &err), TSQ_CLOSED, NULL, "Upload failed: ");
    FAILS(tsq_file_writer_finish(staged, NULL, &err), TSQ_CLOSED, NULL, "Upload failed: ");
    CHECK(tsq_file_reader_info(reader)->size == LARGE);
    FAILS(tsq_file_reader_read(reader, piece, sizeof piece, &read, &err), TSQ_CLOSED, NULL, "Download failed: The client is closed");
    FAILS(tsq_file_reader_read_at(reader, 1, piece, sizeof piece, &read, &err), TSQ_CLOSED, NULL,
          "Download failed: The client is closed");
    CHECK(tsq_file_reader_info(inline_reader)->size == 5);
    FAILS(tsq_file_reader_read(inline_reader, piece, 1, &read, &err), TSQ_CLOSED, NULL, "Download failed: The client is closed");
    FAILS(tsq_file_reader_read_at(inline_reader, 0, piece, 1, &read, &err), TSQ_CLOSED, NULL, "Download failed: The client is closed");
    tsq_file_response_read(response, piece, sizeof piece, &read, NULL);
    FAILS(tsq_storage_open_writer(trusted, TSQ_STR("assets"), TSQ_STR("x"), NULL, &none, &err), TSQ_CLOSED, none, "Upload failed: ");
    tsq_file_writer_free(small);
    tsq_file_writer_free(staged);
    tsq_file_reader_free(reader);
    tsq_file_reader_free(inline_reader);
    tsq_file_response_free(response);
    tsq_client_free(trusted);
    tsq_client_free(client);
    CHECK(files_in("closed/files/.townsquare/staging") == 0);
}

static void files_of_the_host_come_and_go_with_progress(void) {
    static const size_t lengths[] = {10, LARGE, 0};
    char source[4096], target[4096];
    tsq_file_info *info = NULL;
    in_folder(source, sizeof source, "source.bin");
    in_folder(target, sizeof target, "out/target.bin");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        seen up = fresh_seen(0), down = fresh_seen(0);
        const size_t length = lengths[i];
        write_host_file("source.bin", old_bytes, length);
        WORKS(tsq_storage_upload_from(user, TSQ_STR("assets"), TSQ_STR("h"), tsq_str_from(source), NULL, see, &up, &info, &err));
        CHECK(info->size == length && is(info->owner_id, user_id.text) && holds(anonymous, "assets", "h", old_bytes, length));
        CHECK(up.is_in_order && up.done == length && (up.calls > 0 || length == 0));
        tsq_file_info_free(info);
        WORKS(tsq_storage_download_to(anonymous, TSQ_STR("assets"), TSQ_STR("h"), tsq_str_from(target), see, &down, &info, &err));
        CHECK(info->size == length && host_file_holds("out/target.bin", old_bytes, length) && files_in("out") == 1);
        CHECK(down.is_in_order && down.done == length && (down.calls > 0 || length == 0));
        tsq_file_info_free(info);
        info = NULL;
        if (length == 0) {
            continue;
        }

        /* Cancelled, both stay as they were. */
        write_host_file("source.bin", new_bytes, length);
        write_host_file("out/target.bin", new_bytes, 3);
        up = fresh_seen(1);
        down = fresh_seen(1);
        FAILS(tsq_storage_upload_from(user, TSQ_STR("assets"), TSQ_STR("h"), tsq_str_from(source), NULL, see, &up, &info, &err), TSQ_CANCELLED,
              info, "Upload failed: A callback cancelled the call");
        CHECK(up.calls == 1 && holds(anonymous, "assets", "h", old_bytes, length) && nothing_is_staged());
        up = fresh_seen(1);
        FAILS(tsq_storage_upload_from(user, TSQ_STR("assets"), TSQ_STR("new"), tsq_str_from(source), NULL, see, &up, &info, &err),
              TSQ_CANCELLED, info, "Upload failed: A callback cancelled the call");
        CHECK(is_missing(service, "assets", "new") && nothing_is_staged());
        FAILS(tsq_storage_download_to(user, TSQ_STR("assets"), TSQ_STR("h"), tsq_str_from(target), see, &down, &info, &err), TSQ_CANCELLED, info,
              "Download failed: A callback cancelled the call");
        CHECK(down.calls == 1 && host_file_holds("out/target.bin", new_bytes, 3) && files_in("out") == 1);
    }
    WORKS(tsq_storage_upload_from(user, TSQ_STR("assets"), TSQ_STR("h"), tsq_str_from(source), NULL, NULL, NULL, NULL, &err));
    WORKS(tsq_storage_download_to(user, TSQ_STR("assets"), TSQ_STR("h"), tsq_str_from(target), NULL, NULL, NULL, &err));
    REFUSED_FILE(tsq_storage_upload_from(user, TSQ_STR("assets"), TSQ_STR("new"), TSQ_STR("/nowhere/at all"), NULL, NULL, NULL, &info, &err),
                 TSQ_INVALID_INPUT, 400, info, "Upload failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_download_to(user, TSQ_STR("assets"), TSQ_STR("h"), TSQ_STR("/nowhere/at all"), NULL, NULL, &info, &err),
                 TSQ_INVALID_INPUT, 400, info, "Download failed: Invalid file or request");
    REFUSED_FILE(tsq_storage_download_to(user, TSQ_STR("assets"), TSQ_STR("new"), tsq_str_from(target), NULL, NULL, &info, &err), TSQ_NOT_FOUND,
                 404, info, "Download failed: File not found");
    REFUSED_FILE(tsq_storage_upload_from(anonymous, TSQ_STR("assets"), TSQ_STR("new"), tsq_str_from(source), NULL, NULL, NULL, &info, &err),
                 TSQ_UNAUTHORIZED, 401, info, "Upload failed: Unauthorized file access");
    FAILS(tsq_storage_upload_from(NULL, absent, absent, absent, NULL, NULL, NULL, &info, &err), TSQ_INVALID_INPUT, info, "Argument client is NULL");
    FAILS(tsq_storage_download_to(NULL, absent, absent, absent, NULL, NULL, &info, &err), TSQ_INVALID_INPUT, info, "Argument client is NULL");
    CHECK(is_missing(service, "assets", "new"));
}

/* A source or a sink of `bytes`, which fails at call number `fail_at`. */
typedef struct stream {
    const uint8_t *bytes;
    size_t length, at;
    int calls, fail_at;
} stream;

static stream stream_of(const uint8_t *bytes, size_t length, int fail_at) {
    stream out;
    memset(&out, 0, sizeof out);
    out.bytes = bytes;
    out.length = length;
    out.fail_at = fail_at;
    return out;
}

static int32_t give(uint8_t *buffer, size_t len, size_t *read, void *user_data) {
    stream *self = (stream *)user_data;
    size_t next = self->length - self->at;
    next = next > len ? len : next;
    next = next > 1000 ? 1000 : next;
    memcpy(buffer, self->bytes + self->at, next);
    self->at += next;
    *read = next;
    return ++self->calls == self->fail_at;
}

static int32_t boast(uint8_t *buffer, size_t len, size_t *read, void *user_data) {
    (void)buffer;
    (void)user_data;
    *read = len + 1;
    return 0;
}

static int32_t receive(const uint8_t *data, size_t len, void *user_data) {
    stream *self = (stream *)user_data;
    if (len > self->length - self->at || memcmp(self->bytes + self->at, data, len) != 0) {
        return 1;
    }
    self->at += len;
    return ++self->calls == self->fail_at;
}

static void callbacks_give_and_receive_a_file(void) {
    static const size_t lengths[] = {0, 10, LARGE};
    tsq_file_info *info = NULL;
    stream none = stream_of(old_bytes, 10, 1);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        stream up = stream_of(old_bytes, lengths[i], 0);
        stream down = stream_of(old_bytes, lengths[i], 0);
        WORKS(tsq_storage_upload_stream(user, TSQ_STR("assets"), TSQ_STR("s"), give, &up, NULL, &info, &err));
        CHECK(info->size == lengths[i] && holds(anonymous, "assets", "s", old_bytes, lengths[i]));
        tsq_file_info_free(info);
        WORKS(tsq_storage_download_stream(anonymous, TSQ_STR("assets"), TSQ_STR("s"), receive, &down, &info, &err));
        CHECK(info->size == lengths[i] && down.at == lengths[i]);
        tsq_file_info_free(info);
        info = NULL;
    }
    for (int at = 1; at <= 200; at += 199) {
        stream up = stream_of(new_bytes, LARGE, at);
        FAILS(tsq_storage_upload_stream(user, TSQ_STR("assets"), TSQ_STR("s"), give, &up, NULL, &info, &err), TSQ_CANCELLED, info,
              "Upload failed: A callback cancelled the call");
        CHECK(up.calls == at && holds(anonymous, "assets", "s", old_bytes, LARGE) && nothing_is_staged());
    }
    FAILS(tsq_storage_download_stream(user, TSQ_STR("assets"), TSQ_STR("s"), receive, &none, &info, &err), TSQ_CANCELLED, info,
          "Download failed: A callback cancelled the call");
    CHECK(none.calls == 0);
    FAILS(tsq_storage_upload_stream(user, TSQ_STR("assets"), TSQ_STR("new"), boast, NULL, NULL, &info, &err), TSQ_INVALID_INPUT, info,
          "Upload failed: The callback read more bytes than fit");
    FAILS(tsq_storage_upload_stream(user, TSQ_STR("assets"), TSQ_STR("new"), NULL, NULL, NULL, &info, &err), TSQ_INVALID_INPUT, info,
          "Upload failed: Argument source is NULL");
    FAILS(tsq_storage_download_stream(user, TSQ_STR("assets"), TSQ_STR("s"), NULL, NULL, &info, &err), TSQ_INVALID_INPUT, info,
          "Download failed: Argument target is NULL");
    FAILS(tsq_storage_upload_stream(NULL, absent, absent, give, NULL, NULL, &info, &err), TSQ_INVALID_INPUT, info, "Argument client is NULL");
    FAILS(tsq_storage_download_stream(NULL, absent, absent, receive, NULL, &info, &err), TSQ_INVALID_INPUT, info, "Argument client is NULL");
    CHECK(is_missing(service, "assets", "new"));
}

/* Calls the library, and may not close the client. */
static int32_t call_inside(uint64_t done, uint64_t total, void *user_data) {
    (void)done;
    (void)total;
    *(tsq_status *)user_data = tsq_client_close(anonymous, NULL);
    return tsq_storage_upload(service, TSQ_STR("assets"), TSQ_STR("inside"), TSQ_BYTES("x"), NULL, NULL, NULL) != TSQ_OK;
}

static void a_callback_may_call_the_library(void) {
    char source[4096];
    tsq_status closing = TSQ_OK;
    in_folder(source, sizeof source, "source.bin");
    write_host_file("source.bin", old_bytes, LARGE);
    WORKS(tsq_storage_upload_from(user, TSQ_STR("assets"), TSQ_STR("outside"), tsq_str_from(source), NULL, call_inside, &closing, NULL, &err));
    CHECK(closing == TSQ_INVALID_INPUT && !tsq_client_is_closed(anonymous));
    CHECK(holds(anonymous, "assets", "outside", old_bytes, LARGE) && holds_text(anonymous, "assets", "inside", "x"));
}

static void the_service_exports_and_repairs(void) {
    char target[4096];
    uint64_t count = 0;
    seen progress = fresh_seen(0);
    tsq_file_list *list = NULL;
    tsq_repair_report *report = NULL;
    tsq_string *json = NULL;
    in_folder(target, sizeof target, "exported");
    WORKS(tsq_storage_list(service, TSQ_STR("assets"), absent, 1000, absent, &list, &err));
    WORKS(tsq_storage_export_files(service, tsq_str_from(target), see, &progress, &count, &err));
    CHECK(count == tsq_file_list_len(list) && count > 0 && progress.is_in_order && progress.done == count && progress.total == count);
    tsq_file_list_free(list);
    CHECK(host_file_holds("exported/assets/outside", old_bytes, LARGE) && host_file_holds("exported/assets/inside", (const uint8_t *)"x", 1));
    count = 7;
    REFUSED_FILE(tsq_storage_export_files(service, tsq_str_from(target), NULL, NULL, &count, &err), TSQ_INVALID_INPUT, 400, NULL,
                 "Export files failed: Invalid file or request");
    CHECK(count == 0);
    in_folder(target, sizeof target, "cancelled");
    progress = fresh_seen(1);
    FAILS(tsq_storage_export_files(service, tsq_str_from(target), see, &progress, &count, &err), TSQ_CANCELLED, NULL,
          "Export files failed: A callback cancelled the call");
    FAILS(tsq_storage_export_files(service, tsq_str_from(target), NULL, NULL, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    in_folder(target, sizeof target, "refused");
    CHECK(tsq_storage_export_files(user, tsq_str_from(target), NULL, NULL, &count, NULL) == TSQ_FORBIDDEN);
    CHECK(tsq_storage_export_files(anonymous, tsq_str_from(target), NULL, NULL, &count, NULL) == TSQ_UNAUTHORIZED);
    CHECK(files_in("refused") == 0);

    WORKS(tsq_storage_repair(service, &report, &err));
    CHECK(report->finished == 0 && report->orphans_removed == 0 && report->rows_removed == 0 && report->mismatched_len == 0);
    WORKS(tsq_repair_report_json(report, &json, &err));
    CHECK(has(tsq_string_view(json), "\"mismatched\":[]"));
    tsq_string_free(json);
    tsq_repair_report_free(report);
    WORKS(tsq_storage_repair(service, NULL, &err));
    report = NULL;
    CHECK(tsq_storage_repair(user, &report, NULL) == TSQ_FORBIDDEN && report == NULL);
    CHECK(tsq_storage_repair(anonymous, &report, NULL) == TSQ_UNAUTHORIZED && report == NULL);
}

/* UPSTREAM 3. */
static void signed_files_verify_and_decrypt(void) {
    static const char key[] = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    static const char other[] = "1102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    static tsq_sign_options no_sign_options;
    tsq_sign_options options = no_sign_options;
    tsq_upload_options verified = no_options;
    tsq_string *made = NULL;
    tsq_string *none = NULL;
    tsq_buffer *content = NULL;
    tsq_buffer *no_content = NULL;
    char forged[2000];
    char tab[200];
    options.file_name = TSQ_STR("Home");
    options.has_timestamp = true;
    options.timestamp = 0;
    WORKS(tsq_signed_file_sign(TSQ_STR("{\"a\":1}"), tsq_str_from(key), &options, &made, &err));
    CHECK(tsq_signed_file_verify(tsq_string_view(made)));
    CHECK(has(tsq_string_view(made), "\"publicKey\":\"79b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664\""));
    CHECK(has(tsq_string_view(made), "\"fileName\":\"Home\"") && has(tsq_string_view(made), "\"timestamp\":\"1970-01-01T00:00:00.000Z\""));
    FAILS(tsq_signed_file_decrypt(tsq_string_view(made), tsq_str_from(key), &no_content, &err), TSQ_INVALID_INPUT, no_content, "is not encrypted");

    /* A forged copy does not verify, and upload with `verify` refuses it. */
    snprintf(forged, sizeof forged, "%.*s", TSQ_ARG(tsq_string_view(made)));
    *strstr(forged, "Home") = 'R';
    CHECK(!tsq_signed_file_verify(tsq_str_from(forged)) && !tsq_signed_file_verify(TSQ_STR("{")) && !tsq_signed_file_verify(absent));
    CHECK(!tsq_signed_file_verify(TSQ_STR("{\"publicKey\":\"nounspace\",\"signature\":\"not applicable, machine generated file\"}")));
    CHECK(!tsq_signed_file_verify(TSQ_STR("\xff")));
    verified.verify = true;
    snprintf(tab, sizeof tab, "%s/tabs/Home", user_id.text);
    REFUSED_FILE(tsq_storage_upload(user, TSQ_STR("private"), tsq_str_from(tab), bytes_of(forged), &verified, NULL, &err), TSQ_INVALID_INPUT, 400, NULL,
                 "Upload failed: Invalid file or request");
    CHECK(is_missing(service, "private", tab));
    WORKS(tsq_storage_upload(user, TSQ_STR("private"), tsq_str_from(tab), bytes_of(tsq_string_view(made).ptr), &verified, NULL, &err));
    CHECK(holds_text(user, "private", tab, tsq_string_view(made).ptr));
    tsq_string_free(made);

    WORKS(tsq_signed_file_encrypt(TSQ_BYTES("a\0secret"), tsq_str_from(key), NULL, &made, &err));
    CHECK(tsq_signed_file_verify(tsq_string_view(made)) && has(tsq_string_view(made), "\"isEncrypted\":true"));
    WORKS(tsq_signed_file_decrypt(tsq_string_view(made), tsq_str_from(key), &content, &err));
    CHECK(tsq_buffer_view(content).len == 8 && memcmp(tsq_buffer_view(content).ptr, "a\0secret", 8) == 0);
    tsq_buffer_free(content);
    FAILS(tsq_signed_file_decrypt(tsq_string_view(made), tsq_str_from(other), &no_content, &err), TSQ_INVALID_INPUT, no_content, "is of another key");
    tsq_string_free(made);
    FAILS(tsq_signed_file_decrypt(TSQ_STR("{"), tsq_str_from(key), &no_content, &err), TSQ_INVALID_INPUT, no_content, "Argument signed is not JSON");
    FAILS(tsq_signed_file_decrypt(absent, tsq_str_from(key), &no_content, &err), TSQ_INVALID_INPUT, no_content, "does not verify");
    options.timestamp = INT64_MAX;
    FAILS(tsq_signed_file_sign(absent, tsq_str_from(key), &options, &none, &err), TSQ_INVALID_INPUT, none, "Argument options.timestamp is out of range");
    CHECK(tsq_signed_file_sign(absent, TSQ_STR("0102"), NULL, &none, &err) == TSQ_INVALID_INPUT && none == NULL);
    CHECK(!strstr(tsq_error_text(err).ptr, "0102"));
    tsq_error_free(err);
    err = NULL;
    FAILS(tsq_signed_file_encrypt(TSQ_BYTES("x"), tsq_str_from(key), NULL, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
}

int main(int argc, char **argv) {
    char path[4096];
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    tsq_session *session = NULL;
    for (size_t i = 0; i < LARGE; i++) {
        old_bytes[i] = (uint8_t)(i * 7 + i / 256);
        new_bytes[i] = (uint8_t)(i * 11 + i / 256 + 1);
    }
    in_folder(path, sizeof path, "out");
    CHECK(mkdir(path, 0700) == 0);
    anonymous = open_with("town", NULL);
    WORKS(tsq_client_as_service(anonymous, &service, &err));
    session = meet(service, "user@town.example");
    user_id = keep(id_of(session));
    user = act_as(anonymous, session);
    tsq_session_free(session);

    a_writer_stores_what_was_written();
    an_aborted_writer_leaves_nothing();
    a_writer_over_the_size_limit_fails();
    a_reader_gives_one_version();
    handles_outlive_their_client();
    files_of_the_host_come_and_go_with_progress();
    callbacks_give_and_receive_a_file();
    a_callback_may_call_the_library();
    the_service_exports_and_repairs();
    signed_files_verify_and_decrypt();
    tsq_client_free(user);
    tsq_client_free(service);
    tsq_client_free(anonymous);
    return checks_done("files_stream");
}
