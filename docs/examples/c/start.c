/* The first program of the book: find mini apps, sign up, and make a space. */
#include <stdio.h>
#include <stdlib.h>
#include <townsquare.h>

/* Ends the program with the sentence of the error. */
static void check(tsq_status status, tsq_error **err) {
    if (status == TSQ_OK) return;
    fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(*err)));
    exit(1);
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(":memory:"), &err), &err);
    check(tsq_config_set(config, TSQ_STR("catalog_url"), TSQ_STR("sample:"), &err), &err);
    check(tsq_client_open(config, &client, &err), &err);
    tsq_config_free(config);

    tsq_mini_apps *apps = NULL;
    const tsq_selection first = TSQ_SELECTION(3);
    check(tsq_discovery_search_mini_apps(client, TSQ_STR("chess"), &first, &apps, &err), &err);
    for (size_t i = 0; i < tsq_mini_apps_len(apps); i++) {
        const tsq_mini_app *app = tsq_mini_apps_at(apps, i);
        printf("%.*s %.*s\n", TSQ_ARG(tsq_mini_app_name(app)), TSQ_ARG(tsq_mini_app_home_url(app)));
    }
    tsq_mini_apps_free(apps);

    const tsq_str address = TSQ_STR("ann@town.example"), password = TSQ_STR("correct horse");
    check(tsq_auth_sign_up(client, address, password, NULL, &err), &err);
    check(tsq_auth_sign_in(client, address, password, NULL, &err), &err); /* from here on the client acts for Ann */
    tsq_new_space harbor = {0};
    harbor.name = TSQ_STR("Harbor");
    harbor.is_public = true;
    check(tsq_spaces_create_space(client, &harbor, NULL, &err), &err);

    tsq_space_list *spaces = NULL;
    check(tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &spaces, &err), &err);
    for (size_t i = 0; i < tsq_space_list_len(spaces); i++)
        printf("public space: %.*s\n", TSQ_ARG(tsq_space_list_at(spaces, i)->name));
    tsq_space_list_free(spaces);
    tsq_client_free(client);
    return 0;
}
