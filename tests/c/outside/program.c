/* A program outside of the repository: it opens a client and writes and reads a row. C99 and newer.
 *
 * program FOLDER: the data folder, which does not exist. */
#include <stdio.h>
#include <string.h>
#include <townsquare.h>

int main(int argc, char **argv) {
    tsq_config *config = tsq_config_new();
    tsq_client *client = NULL;
    tsq_client *service = NULL;
    tsq_space *space = NULL;
    tsq_error *err = NULL;
    tsq_new_space harbor = {0};
    int found = 0;

    harbor.name = TSQ_STR("Harbor");
    if (argc == 2 && tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(argv[1]), &err) == TSQ_OK &&
        tsq_client_open(config, &client, &err) == TSQ_OK && tsq_client_as_service(client, &service, &err) == TSQ_OK &&
        tsq_spaces_create_space(service, &harbor, &space, &err) == TSQ_OK) {
        found = space->name.len == 6 && memcmp(space->name.ptr, "Harbor", 6) == 0;
        printf("townsquare %s: %.*s\n", TSQ_VERSION, TSQ_ARG(space->name));
    }
    if (err != NULL) fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);
    tsq_space_free(space);
    tsq_client_free(service);
    tsq_client_free(client);
    tsq_config_free(config);
    return found ? 0 : 1;
}
