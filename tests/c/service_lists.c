/* Lists of whole tables for the service, a new owner, and the anonymous handle from C (DESIGN 4, 10): conversions, lifetimes and
 * errors. Also compiled as C++: keep to the common subset.
 *
 * service_lists CATALOG FOLDER: FOLDER/town contains a database with one user, ADA; the catalog is not read. */
#include "rows.h"

static tsq_new_space no_space;
static tsq_community_patch keep_community;
static tsq_new_registration no_registration;

static void spaces_and_users_are_listed(const tsq_client *service, const tsq_client *client) {
    tsq_space *space = NULL;
    tsq_space_list *spaces = NULL;
    tsq_user_list *users = NULL;
    tsq_string *json = NULL;
    tsq_new_space fresh = no_space;
    fresh.name = TSQ_STR("Harbor");
    WORKS(tsq_spaces_create_space(service, &fresh, NULL, &err));
    WORKS(tsq_spaces_create_space(service, &fresh, NULL, &err));
    WORKS(tsq_spaces_list_spaces(service, 1, absent, &spaces, &err));
    CHECK(tsq_space_list_len(spaces) == 1);
    {
        tsq_space_list *rest = NULL;
        WORKS(tsq_spaces_list_spaces(service, 100, tsq_space_list_at(spaces, 0)->id, &rest, &err));
        CHECK(tsq_space_list_len(rest) == 1);
        tsq_space_list_free(rest);
    }
    WORKS(tsq_spaces_set_owner(service, tsq_space_list_at(spaces, 0)->id, TSQ_STR(ADA), &space, &err));
    CHECK(is(space->owner_id, ADA));
    tsq_space_free(space);
    space = NULL;
    FAILS(tsq_spaces_set_owner(service, tsq_space_list_at(spaces, 0)->id, TSQ_STR(NOBODY), &space, &err),
          TSQ_REFERENCE_MISSING, space, "Set owner failed: Referenced record not found");
    FAILS(tsq_spaces_get_space_with_fidgets(service, tsq_space_list_at(spaces, 0)->id, &space, &err), TSQ_NOT_FOUND, space,
          "Record not found");
    WORKS(tsq_spaces_get_space_with_any_fidgets(service, tsq_space_list_at(spaces, 0)->id, &space, &err));
    CHECK(space->fidgets != NULL && tsq_fidget_list_len(space->fidgets) == 0);
    tsq_space_free(space);
    tsq_space_list_free(spaces);

    WORKS(tsq_auth_list_users(service, 10, absent, &users, &err));
    CHECK(tsq_user_list_len(users) == 1 && is(tsq_user_list_at(users, 0)->id, ADA));
    CHECK(tsq_user_list_at(users, 1) == NULL);
    WORKS(tsq_user_list_json(users, &json, &err));
    CHECK(has(tsq_string_view(json), "ada@example.com"));
    tsq_string_free(json);
    tsq_user_list_free(users);
    users = NULL;
    FAILS(tsq_auth_list_users(client, 10, absent, &users, &err), TSQ_UNAUTHORIZED, users, "permission denied for table users");
    FAILS(tsq_auth_list_users(service, 0, absent, &users, &err), TSQ_INVALID_INPUT, users, "limit is 1 to 1000");
    FAILS(tsq_auth_list_users(service, 1, TSQ_STR("x"), &users, &err), TSQ_INVALID_INPUT, users, "after");
    CHECK(tsq_user_list_len(NULL) == 0 && tsq_user_list_at(NULL, 0) == NULL);
    tsq_user_list_free(NULL);
}

static void communities_are_listed(const tsq_client *service) {
    tsq_community_config_list *configs = NULL;
    tsq_community_domain_list *domains = NULL;
    tsq_space_registration_list *registrations = NULL;
    tsq_string *json = NULL;
    tsq_community_patch patch = keep_community;
    tsq_new_registration registration = no_registration;
    patch.brand_config = patch.assets_config = patch.community_config = patch.fidgets_config = set("{}");
    WORKS(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, NULL, &err));
    WORKS(tsq_communities_save_community_domain(service, TSQ_STR("town"), TSQ_STR("town.example"), TSQ_STR("custom"), NULL, &err));
    registration.space_id = TSQ_STR(ADA);
    registration.space_name = TSQ_STR("Harbor");
    registration.space_type = TSQ_STR("profile");
    WORKS(tsq_communities_register_space(service, &registration, NULL, &err));

    WORKS(tsq_communities_list_community_configs(service, 10, absent, &configs, &err));
    CHECK(tsq_community_config_list_len(configs) == 1 && tsq_community_config_list_at(configs, 1) == NULL);
    CHECK(is(tsq_community_config_list_at(configs, 0)->community_id, "town"));
    WORKS(tsq_community_config_list_json(configs, &json, &err));
    CHECK(has(tsq_string_view(json), "\"community_id\":\"town\""));
    tsq_string_free(json);
    tsq_community_config_list_free(configs);

    WORKS(tsq_communities_list_community_domains(service, 10, absent, &domains, &err));
    CHECK(tsq_community_domain_list_len(domains) == 1 && is(tsq_community_domain_list_at(domains, 0)->domain, "town.example"));
    WORKS(tsq_community_domain_list_json(domains, &json, &err));
    CHECK(has(tsq_string_view(json), "town.example"));
    tsq_string_free(json);
    tsq_community_domain_list_free(domains);

    WORKS(tsq_communities_list_space_registrations(service, 10, absent, &registrations, &err));
    CHECK(tsq_space_registration_list_len(registrations) == 1);
    CHECK(is(tsq_space_registration_list_at(registrations, 0)->space_id, ADA));
    WORKS(tsq_space_registration_list_json(registrations, &json, &err));
    CHECK(has(tsq_string_view(json), "Harbor"));
    tsq_string_free(json);
    tsq_space_registration_list_free(registrations);
}

static void an_anonymous_handle_closes_alone(const tsq_client *service, const tsq_client *client) {
    tsq_client *anonymous = NULL;
    tsq_user_list *users = NULL;
    WORKS(tsq_client_as_anonymous(service, &anonymous, &err));
    FAILS(tsq_auth_list_users(anonymous, 10, absent, &users, &err), TSQ_UNAUTHORIZED, users, "permission denied");
    WORKS(tsq_client_close(anonymous, &err));
    CHECK(tsq_client_is_closed(anonymous) && !tsq_client_is_closed(service) && !tsq_client_is_closed(client));
    tsq_client_free(anonymous);
}

int main(int argc, char **argv) {
    tsq_client *client = NULL, *service = NULL;
    if (argc != 3) {
        return 2;
    }
    folder = argv[2];
    client = open_client("town");
    WORKS(tsq_client_as_service(client, &service, &err));
    spaces_and_users_are_listed(service, client);
    communities_are_listed(service);
    an_anonymous_handle_closes_alone(service, client);
    tsq_client_free(service);
    tsq_client_free(client);
    return checks_done("service_lists");
}
