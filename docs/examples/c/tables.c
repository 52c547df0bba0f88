/* Tables and policies: who sees a private space, who may change a public one, and what the service may do. */
#include <stdio.h>
#include <stdlib.h>
#include <townsquare.h>

/* Ends the program with the sentence of the error. */
static void check(tsq_status status, tsq_error **err) {
    if (status == TSQ_OK) return;
    fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(*err)));
    exit(1);
}

/* Creates an account and returns a handle that acts for it. */
static tsq_client *user(const tsq_client *client, tsq_str address) {
    tsq_error *err = NULL;
    tsq_client *handle = NULL;
    tsq_session *session = NULL;
    check(tsq_auth_sign_up(client, address, TSQ_STR("correct horse"), NULL, &err), &err);
    check(tsq_auth_create_session(client, address, TSQ_STR("correct horse"), &session, &err), &err);
    check(tsq_client_as_user(client, session->access_token, &handle, &err), &err);
    tsq_session_free(session);
    return handle;
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = NULL, *service = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(":memory:"), &err), &err);
    check(tsq_client_open(config, &client, &err), &err);
    tsq_config_free(config);
    tsq_client *ann = user(client, TSQ_STR("ann@town.example")), *bob = user(client, TSQ_STR("bob@town.example"));

    /* Ann's space is private: for Bob it does not exist. */
    tsq_space *space = NULL, *seen = NULL;
    tsq_new_space harbor = {0};
    harbor.name = TSQ_STR("Harbor");
    harbor.description = TSQ_STR("Boards and tides");
    check(tsq_spaces_create_space(ann, &harbor, &space, &err), &err);
    tsq_new_fidget fidget = {0};
    fidget.kind = TSQ_STR("chess");
    fidget.position = TSQ_STR("[0, 0]");
    check(tsq_fidgets_create_fidget(ann, space->id, &fidget, NULL, &err), &err);
    fidget.kind = TSQ_STR("tides");
    fidget.position = TSQ_STR("[4, 0]");
    check(tsq_fidgets_create_fidget(ann, space->id, &fidget, NULL, &err), &err);
    if (tsq_spaces_get_space(bob, space->id, &seen, &err) == TSQ_NOT_FOUND)
        printf("Bob: %.*s\n", TSQ_ARG(tsq_error_message(err)));
    tsq_error_free(err);

    /* Ann publishes it. Now Bob sees it, with its fidgets, and still cannot change it. */
    tsq_space_patch patch = {0};
    patch.is_public.change = TSQ_SET;
    patch.is_public.value = true;
    check(tsq_spaces_update_space(ann, space->id, &patch, NULL, &err), &err);
    check(tsq_spaces_get_space_with_fidgets(bob, space->id, &seen, &err), &err);
    printf("Bob sees: %.*s", TSQ_ARG(seen->name));
    for (size_t i = 0; i < tsq_fidget_list_len(seen->fidgets); i++)
        printf(" %.*s", TSQ_ARG(tsq_fidget_list_at(seen->fidgets, i)->kind));
    printf("\n");
    tsq_space_free(seen);
    tsq_space_patch rename = {0};
    rename.name.change = TSQ_SET;
    rename.name.value = TSQ_STR("Bob's");
    if (tsq_spaces_update_space(bob, space->id, &rename, NULL, &err) == TSQ_NOT_FOUND)
        printf("Bob: %.*s\n", TSQ_ARG(tsq_error_message(err)));
    tsq_error_free(err);
    fidget.kind = TSQ_STR("clock");
    if (tsq_fidgets_create_fidget(bob, space->id, &fidget, NULL, &err) != TSQ_OK) {
        const tsq_str kind = tsq_status_name((int32_t)tsq_error_kind(err));
        printf("Bob: %.*s %.*s\n", TSQ_ARG(kind), TSQ_ARG(tsq_error_code(err)));
    }
    tsq_error_free(err);

    /* Communities are the work of the service: trusted code of the program itself. */
    check(tsq_client_as_service(client, &service, &err), &err);
    tsq_community_patch community = {0};
    community.brand_config.change = TSQ_SET;
    community.brand_config.value = TSQ_STR("\"blue\"");
    community.assets_config.change = community.community_config.change = community.fidgets_config.change = TSQ_SET;
    community.assets_config.value = community.community_config.value = community.fidgets_config.value = TSQ_STR("{}");
    check(tsq_communities_save_community_config(service, TSQ_STR("harbor"), &community, NULL, &err), &err);
    const tsq_str domain = TSQ_STR("Harbor.Example"), type = TSQ_STR("custom");
    check(tsq_communities_save_community_domain(service, TSQ_STR("harbor"), domain, type, NULL, &err), &err);
    tsq_string *resolved = NULL, *active = NULL;
    check(tsq_communities_resolve_community(client, TSQ_STR("harbor.example"), &resolved, &err), &err);
    printf("community of harbor.example: %.*s\n", TSQ_ARG(tsq_string_view(resolved)));
    check(tsq_communities_get_active_community_config(client, TSQ_STR("harbor"), &active, &err), &err);
    printf("published: %s\n", active != NULL ? "yes" : "no");
    tsq_string_free(active);
    tsq_string_free(resolved);

    /* Deleting a space deletes its fidgets. */
    tsq_space_list *spaces = NULL;
    check(tsq_spaces_delete_space(ann, space->id, &err), &err);
    check(tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &spaces, &err), &err);
    printf("public spaces: %zu\n", tsq_space_list_len(spaces));
    tsq_space_list_free(spaces);
    tsq_space_free(space);
    tsq_client_free(service);
    tsq_client_free(bob);
    tsq_client_free(ann);
    tsq_client_free(client);
    return 0;
}
