/* Files: upload, download and list under policies, an overwrite that notices others, and a signed URL. */
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

/* Prints the bytes and frees them. */
static void print_bytes(tsq_buffer *buffer) {
    const tsq_bytes bytes = tsq_buffer_view(buffer);
    printf("%.*s\n", (int)bytes.len, (const char *)bytes.ptr);
    tsq_buffer_free(buffer);
}

/* Returns the status of a request for a file without an `Authorization`. */
static int status_of(const tsq_client *client, tsq_str target) {
    tsq_error *err = NULL;
    tsq_file_response *response = NULL;
    tsq_file_request request = {0};
    request.method = TSQ_STR("GET");
    request.target = target;
    check(tsq_storage_handle_file(client, &request, &response, &err), &err);
    const int status = response->status;
    tsq_file_response_free(response);
    return status;
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = NULL, *strangers = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(":memory:"), &err), &err);
    check(tsq_client_open(config, &client, &err), &err);
    tsq_config_free(config);

    const tsq_str address = TSQ_STR("ann@town.example"), password = TSQ_STR("correct horse");
    tsq_user *user = NULL;
    tsq_space *space = NULL;
    tsq_new_space harbor = {0};
    harbor.name = TSQ_STR("Harbor");
    harbor.is_public = true;
    check(tsq_auth_sign_up(client, address, password, &user, &err), &err);
    check(tsq_auth_sign_in(client, address, password, NULL, &err), &err);
    check(tsq_spaces_create_space(client, &harbor, &space, &err), &err);
    check(tsq_client_as_anonymous(client, &strangers, &err), &err);

    /* The path begins with the id of Ann's space, so she may write there. Everybody may read it. */
    char path_text[128], folder_text[128], homebase_text[128];
    snprintf(path_text, sizeof path_text, "%.*s/assets/tides.json", TSQ_ARG(space->id));
    snprintf(folder_text, sizeof folder_text, "%.*s/", TSQ_ARG(space->id));
    snprintf(homebase_text, sizeof homebase_text, "%.*s/homebase", TSQ_ARG(user->id));
    const tsq_str path = tsq_str_from(path_text), folder = tsq_str_from(folder_text), homebase = tsq_str_from(homebase_text);
    const tsq_str spaces = TSQ_STR("spaces"), private_files = TSQ_STR("private");
    tsq_file_info *info = NULL;
    check(tsq_storage_upload(client, spaces, path, TSQ_BYTES("{\"high\": \"06:12\"}"), NULL, &info, &err), &err);
    printf("%d bytes, %.*s\n", (int)info->size, TSQ_ARG(info->content_type));
    tsq_buffer *buffer = NULL;
    check(tsq_storage_download(strangers, spaces, path, &buffer, &err), &err);
    print_bytes(buffer);
    check(tsq_storage_download_range(strangers, spaces, path, 1, 7, &buffer, &err), &err);
    print_bytes(buffer);

    /* A private file exists for its owner alone. */
    check(tsq_storage_upload(client, private_files, homebase, TSQ_BYTES("{}"), NULL, NULL, &err), &err);
    if (tsq_storage_download(strangers, private_files, homebase, &buffer, &err) == TSQ_NOT_FOUND)
        printf("%.*s\n", TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);
    if (tsq_storage_upload(strangers, spaces, path, TSQ_BYTES("mine now"), NULL, NULL, &err) == TSQ_UNAUTHORIZED)
        printf("%.*s\n", TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);

    /* Somebody else writes first: the etag that we read is not the current one. */
    check(tsq_storage_upload(client, spaces, path, TSQ_BYTES("{\"high\": \"06:40\"}"), NULL, NULL, &err), &err);
    tsq_upload_options unchanged = {0};
    unchanged.if_match = info->etag;
    if (tsq_storage_upload(client, spaces, path, TSQ_BYTES("{\"high\": \"06:15\"}"), &unchanged, NULL, &err) == TSQ_CONFLICT)
        printf("status %d\n", tsq_error_status(err));
    tsq_error_free(err);
    tsq_file_info_free(info);

    /* A signed URL acts for Ann, for one file and one method. A browser may use it. */
    tsq_string *url = NULL;
    check(tsq_storage_signed_url(client, private_files, homebase, TSQ_URL_GET, 60 * 1000, NULL, &url, &err), &err);
    const tsq_str target = tsq_string_view(url);
    tsq_str bare = target;
    bare.len = strcspn(target.ptr, "?");
    printf("by URL: %d\n", status_of(client, target));
    printf("without the signature: %d\n", status_of(client, bare));
    tsq_string_free(url);

    tsq_file_list *files = NULL;
    check(tsq_storage_list(client, spaces, folder, 100, TSQ_STR(""), &files, &err), &err);
    for (size_t i = 0; i < tsq_file_list_len(files); i++) {
        const tsq_str name = tsq_file_list_at(files, i)->path;
        printf("file: %.*s\n", (int)(name.len - folder.len), name.ptr + folder.len);
    }
    tsq_file_list_free(files);
    uint64_t deleted = 0;
    snprintf(folder_text, sizeof folder_text, "%.*s/assets/", TSQ_ARG(space->id));
    check(tsq_storage_delete_prefix(client, spaces, tsq_str_from(folder_text), &deleted, &err), &err);
    printf("deleted: %d\n", (int)deleted);

    tsq_space_free(space);
    tsq_user_free(user);
    tsq_client_free(strangers);
    tsq_client_free(client);
    return 0;
}
