/* A large file goes up and down in bounded memory from C, with progress; uploads that are refused or have no end. Also compiled as
 * C++: keep to the common subset.
 *
 * files_large CATALOG FOLDER: the folder is empty; the catalog is not read. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "stored.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* 2 GiB, and the memory that a transfer may use over that of an idle client. */
#define SIZE ((uint64_t)2 << 30)
#define ALLOWANCE ((uint64_t)32 << 20)

/* The number after `name` in /proc/self/status, in bytes; 0 without it. */
static uint64_t memory(const char *name) {
    char line[200];
    unsigned long long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            sscanf(line + strlen(name), ":%llu", &kilobytes);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return (uint64_t)kilobytes << 10;
}

/* What the file has at a position: every 8 bytes their number. */
static void expected(uint64_t at, uint8_t *bytes, size_t len) {
    for (size_t i = 0; i < len; i += 8) {
        const uint64_t number = (at + i) / 8;
        memcpy(bytes + i, &number, 8);
    }
}

/* How far a stream is. */
typedef struct position {
    uint64_t at, total;
    int calls;
} position;

static int32_t give(uint8_t *buffer, size_t len, size_t *read, void *user_data) {
    position *self = (position *)user_data;
    const uint64_t left = SIZE - self->at;
    len = left < len ? (size_t)left : len - len % 8;
    expected(self->at, buffer, len);
    self->at += len;
    *read = len;
    return 0;
}

static int32_t receive(const uint8_t *data, size_t len, void *user_data) {
    static uint8_t wanted[4096];
    position *self = (position *)user_data;
    while (len > 0) {
        const size_t offset = (size_t)(self->at % sizeof wanted);
        const size_t next = len < sizeof wanted - offset ? len : sizeof wanted - offset;
        expected(self->at - offset, wanted, sizeof wanted);
        if (memcmp(data, wanted + offset, next) != 0) {
            return 1;
        }
        self->at += next;
        data += next;
        len -= next;
    }
    return 0;
}

static int32_t see(uint64_t done, uint64_t total, void *user_data) {
    position *self = (position *)user_data;
    self->calls += done >= self->at && done <= total;
    self->at = done;
    self->total = total;
    return 0;
}

static position start(void) {
    position out;
    memset(&out, 0, sizeof out);
    return out;
}

/* Memory of the host that is larger than the memory of the machine: only its mapping is there. */
static void bodies_that_are_refused_are_not_copied(const tsq_client *client, const tsq_client *service) {
    static tsq_file_request no_request;
    tsq_file_request request = no_request;
    tsq_file_response *response = NULL;
    tsq_file_info *none = NULL;
    const tsq_str assets = TSQ_STR("assets");
    tsq_bytes body;
    void *mapped;
    body.len = (size_t)64 << 30;
    mapped = mmap(NULL, body.len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
        printf("skipped: 64 GiB cannot be mapped\n");
        return;
    }
    body.ptr = (const uint8_t *)mapped;
    REFUSED_FILE(tsq_storage_upload(service, assets, TSQ_STR("huge"), body, NULL, &none, &err), TSQ_TOO_LARGE, 413, none,
                 "Upload failed: File too large");
    request.method = TSQ_STR("PUT");
    request.target = TSQ_STR("/assets/huge");
    request.body = body;
    WORKS(tsq_storage_handle_file(client, &request, &response, &err));
    CHECK(response != NULL && response->status == 401);
    tsq_file_response_free(response);
    munmap(mapped, body.len);
}

/* An upload whose source has no end, and the client that is closed meanwhile. */
typedef struct endless_upload {
    tsq_client *client;
    pthread_mutex_t lock;
    int calls, calls_when_closed;
} endless_upload;

static int32_t drip(uint8_t *buffer, size_t len, size_t *read, void *user_data) {
    endless_upload *self = (endless_upload *)user_data;
    int calls;
    usleep(1000);
    pthread_mutex_lock(&self->lock);
    calls = ++self->calls;
    pthread_mutex_unlock(&self->lock);
    buffer[0] = 'x';
    *read = len > 0 ? 1 : 0;
    return calls > 20000;
}

static void *close_during_upload(void *user_data) {
    endless_upload *self = (endless_upload *)user_data;
    int calls = 0;
    while (calls < 10) {
        usleep(1000);
        pthread_mutex_lock(&self->lock);
        calls = self->calls;
        pthread_mutex_unlock(&self->lock);
    }
    tsq_client_close(self->client, NULL);
    pthread_mutex_lock(&self->lock);
    self->calls_when_closed = self->calls;
    pthread_mutex_unlock(&self->lock);
    return NULL;
}

static void an_upload_ends_with_its_client(void) {
    static endless_upload upload;
    tsq_client *trusted = NULL;
    tsq_file_info *none = NULL;
    pthread_t closer;
    upload.client = open_with("endless", NULL);
    pthread_mutex_init(&upload.lock, NULL);
    WORKS(tsq_client_as_service(upload.client, &trusted, &err));
    CHECK(pthread_create(&closer, NULL, close_during_upload, &upload) == 0);
    FAILS(tsq_storage_upload_stream(trusted, TSQ_STR("assets"), TSQ_STR("endless"), drip, &upload, NULL, &none, &err), TSQ_CLOSED, none,
          "Upload failed: ");
    pthread_join(closer, NULL);
    /* The call that ran, and at most one whose bytes the writer then refused. */
    CHECK(upload.calls <= upload.calls_when_closed + 2);
    pthread_mutex_destroy(&upload.lock);
    tsq_client_free(trusted);
    tsq_client_free(upload.client);
}

int main(int argc, char **argv) {
    static const char *const options[] = {"max_file_size", "4294967296", NULL};
    const tsq_str assets = TSQ_STR("assets"), path = TSQ_STR("large");
    char host[4096];
    position at;
    tsq_client *client = NULL;
    tsq_client *service = NULL;
    tsq_file_info *info = NULL;
    uint64_t idle = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    snprintf(host, sizeof host, "%s/host.bin", folder);
    client = open_with("town", options);
    WORKS(tsq_client_as_service(client, &service, &err));
    WORKS(tsq_storage_upload(service, assets, TSQ_STR("small"), TSQ_BYTES("x"), NULL, NULL, &err));
    idle = memory("VmRSS");

    at = start();
    WORKS(tsq_storage_upload_stream(service, assets, path, give, &at, NULL, &info, &err));
    CHECK(at.at == SIZE && info != NULL && info->size == SIZE);
    tsq_file_info_free(info);
    at = start();
    WORKS(tsq_storage_download_stream(client, assets, path, receive, &at, NULL, &err));
    CHECK(at.at == SIZE);
    at = start();
    WORKS(tsq_storage_download_to(client, assets, path, tsq_str_from(host), see, &at, NULL, &err));
    CHECK(at.at == SIZE && at.total == SIZE && at.calls > 100);
    WORKS(tsq_storage_delete(service, assets, path, &err));
    at = start();
    WORKS(tsq_storage_upload_from(service, assets, path, tsq_str_from(host), NULL, see, &at, NULL, &err));
    CHECK(at.at == SIZE && at.total == SIZE && at.calls > 100);
    remove(host);
    at = start();
    WORKS(tsq_storage_download_stream(client, assets, path, receive, &at, NULL, &err));
    CHECK(at.at == SIZE);

    bodies_that_are_refused_are_not_copied(client, service);

    /* The most that the process used; 0 on systems without /proc. */
    const uint64_t most = memory("VmHWM");
    if (!CHECK(most <= idle + ALLOWANCE)) {
        fprintf(stderr, "  %llu bytes over idle\n", (unsigned long long)(most - idle));
    }
    tsq_client_free(service);
    tsq_client_free(client);
    an_upload_ends_with_its_client();
    return checks_done("files_large");
}
