/* Makes a bucket equal to a folder: uploads new and changed files, and deletes those that the folder no longer has.
 *
 *   sync DATA_DIR FOLDER BUCKET
 *
 * A file is unchanged if its size and its time are those of the last upload, which stores the time in the metadata. If a file or a
 * folder cannot be read, nothing is deleted and the exit code is 1; only a file of the bucket where the folder now has a folder, or
 * below what is now a file, is deleted first, because the two cannot share a name. */
#define _XOPEN_SOURCE 700

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <townsquare.h>

enum { PATH_SIZE = 4096, PAGE = 500 };

typedef struct {
    const tsq_client *client;
    const char *folder;
    tsq_str bucket;
    int uploaded, unchanged, deleted, failed;
} sync_state;

/* Reports what went wrong with a file and goes on. */
static void report(sync_state *self, const char *path, tsq_error *err) {
    fprintf(stderr, "%s: %.*s\n", path, TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);
    self->failed++;
}

/* Whether the bucket has the file with this size and this time. */
static bool is_current(const sync_state *self, tsq_str path, uint64_t size, const char *mtime) {
    tsq_file_info *info = NULL;
    bool current = false;
    if (tsq_storage_stat(self->client, self->bucket, path, &info, NULL) != TSQ_OK) return false;
    for (size_t i = 0; i < info->metadata_len && info->size == size; i++) {
        const tsq_file_metadata *entry = &info->metadata[i];
        if (entry->name.len == 5 && memcmp(entry->name.ptr, "mtime", 5) == 0)
            current = entry->value.len == strlen(mtime) && memcmp(entry->value.ptr, mtime, entry->value.len) == 0;
    }
    tsq_file_info_free(info);
    return current;
}

static void upload(sync_state *self, const char *source, const char *path, const struct stat *file) {
    char mtime[64];
    tsq_error *err = NULL;
    tsq_file_metadata metadata = {TSQ_STR("mtime"), {NULL, 0}};
    tsq_upload_options options;
    memset(&options, 0, sizeof options);
    snprintf(mtime, sizeof mtime, "%lld.%09ld", (long long)file->st_mtim.tv_sec, (long)file->st_mtim.tv_nsec);
    metadata.value = tsq_str_from(mtime);
    options.metadata = &metadata;
    options.metadata_len = 1;
    if (is_current(self, tsq_str_from(path), (uint64_t)file->st_size, mtime)) {
        self->unchanged++;
    } else if (tsq_storage_upload_from(self->client, self->bucket, tsq_str_from(path), tsq_str_from(source), &options, NULL,
                                       NULL, NULL, &err) == TSQ_OK) {
        self->uploaded++;
    } else {
        report(self, path, err);
    }
}

/* Uploads the files below a folder; `below` is its path in the bucket: "" or "notes/". Links and devices are left out. */
static void upload_folder(sync_state *self, const char *folder, const char *below) {
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        perror(folder);
        self->failed++;
        return;
    }
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        char source[PATH_SIZE], path[PATH_SIZE], inside[PATH_SIZE + 1];
        struct stat file;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        const int length = snprintf(source, sizeof source, "%s/%s", folder, entry->d_name);
        snprintf(path, sizeof path, "%s%s", below, entry->d_name);
        if (length < 0 || length >= PATH_SIZE || lstat(source, &file) != 0) {
            perror(entry->d_name);
            self->failed++;
        } else if (S_ISDIR(file.st_mode)) {
            snprintf(inside, sizeof inside, "%s/", path);
            upload_folder(self, source, inside);
        } else if (S_ISREG(file.st_mode)) {
            upload(self, source, path, &file);
        }
    }
    closedir(entries);
}

static bool is_folder(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 && S_ISDIR(file.st_mode);
}

/* Whether the folder lacks a file of the bucket. With `in_the_way`: whether it has a folder there, or a file above. */
static bool is_missing(const char *source, bool in_the_way) {
    struct stat file;
    if (lstat(source, &file) == 0) return in_the_way ? S_ISDIR(file.st_mode) : !S_ISREG(file.st_mode);
    return !in_the_way || errno == ENOTDIR;
}

/* Deletes the files of the bucket that the folder does not have, or of these only those that are in the way of others. */
static void delete_others(sync_state *self, bool in_the_way) {
    char path[PATH_SIZE] = "", source[2 * PATH_SIZE];
    for (size_t found = PAGE; found > 0;) {
        tsq_file_list *page = NULL;
        tsq_error *err = NULL;
        const tsq_str after = {path[0] != '\0' ? path : NULL, strlen(path)};
        if (tsq_storage_list(self->client, self->bucket, TSQ_STR(""), PAGE, after, &page, &err) != TSQ_OK) {
            report(self, "list", err);
            return;
        }
        found = tsq_file_list_len(page);
        for (size_t i = 0; i < found; i++) {
            const tsq_str name = tsq_file_list_at(page, i)->path;
            snprintf(path, sizeof path, "%.*s", TSQ_ARG(name));
            snprintf(source, sizeof source, "%s/%s", self->folder, path);
            if (!is_missing(source, in_the_way)) continue;
            if (tsq_storage_delete(self->client, self->bucket, name, &err) == TSQ_OK) self->deleted++;
            else report(self, path, err);
        }
        tsq_file_list_free(page);
    }
}

int main(int argc, char **argv) {
    tsq_config *config = tsq_config_new();
    tsq_client *client = NULL, *service = NULL;
    tsq_error *err = NULL;
    sync_state self;
    memset(&self, 0, sizeof self);
    if (argc != 4) {
        fprintf(stderr, "usage: sync DATA_DIR FOLDER BUCKET\n");
        self.failed++;
    } else if (tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(argv[1]), &err) == TSQ_OK &&
               tsq_client_open(config, &client, &err) == TSQ_OK && tsq_client_as_service(client, &service, &err) == TSQ_OK) {
        self.client = service;
        self.folder = argv[2];
        self.bucket = tsq_str_from(argv[3]);
        if (is_folder(argv[2])) delete_others(&self, true);
        upload_folder(&self, argv[2], "");
        if (self.failed == 0) delete_others(&self, false);
        printf("%d uploaded, %d unchanged, %d deleted, %d failed\n", self.uploaded, self.unchanged, self.deleted, self.failed);
    } else {
        report(&self, argv[1], err);
    }
    tsq_client_free(service);
    tsq_client_free(client);
    tsq_config_free(config);
    return self.failed != 0;
}
