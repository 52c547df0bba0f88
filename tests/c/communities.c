/* Communities, their domains and registered spaces from C (DESIGN 9, 10; SPEC 2.2 to 2.4, 4.3, 7, 8). Also compiled as
 * C++: keep to the common subset.
 *
 * communities CATALOG FOLDER: FOLDER/town contains a database with one user, ADA; the catalog is not read. */
#include "rows.h"

#define FIFTY "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"

/* Zeroed inputs as static variables, because C spells a zeroed local {0} and C++ {}. */
static tsq_community_patch keep_community;
static tsq_new_registration no_registration;

static tsq_community_patch whole_community(void) {
    tsq_community_patch patch = keep_community;
    patch.brand_config = set("{\"name\":\"Town\"}");
    patch.assets_config = set("[]");
    patch.community_config = set("1");
    patch.fidgets_config = set("null");
    return patch;
}

static void configurations_are_inserted_and_updated(const tsq_client *service, const tsq_client *client) {
    tsq_community_config *config = NULL;
    tsq_string *json = NULL;
    tsq_community_patch patch = whole_community();
    tsq_str names[2] = {NO_STR, NO_STR};
    WORKS(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, &config, &err));
    CHECK(config->id.len == 36 && is(config->community_id, "town"));
    CHECK(is(config->brand_config, "{\"name\":\"Town\"}") && is(config->assets_config, "[]"));
    CHECK(is(config->community_config, "1") && is(config->fidgets_config, "null"));
    CHECK(is_absent(config->navigation_config) && is_absent(config->ui_config));
    CHECK(config->admin_identity_public_keys == NULL && config->admin_identity_public_keys_len == 0);
    CHECK(config->is_published && !config->custom_domain_authorized);
    CHECK(is_absent(config->admin_email) && config->updated_at > 0);
    tsq_community_config_free(config);

    /* An empty list is not NULL. */
    patch = keep_community;
    patch.admin_identity_public_keys.change = TSQ_SET;
    WORKS(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, &config, &err));
    CHECK(config->admin_identity_public_keys != NULL && config->admin_identity_public_keys_len == 0);
    tsq_community_config_free(config);

    /* Kept columns do not change. */
    patch = keep_community;
    names[0] = TSQ_STR("0xaa");
    names[1] = TSQ_STR("0xbb");
    patch.admin_identity_public_keys.change = TSQ_SET;
    patch.admin_identity_public_keys.items = names;
    patch.admin_identity_public_keys.items_len = 2;
    patch.custom_domain_authorized.change = TSQ_SET;
    patch.custom_domain_authorized.value = true;
    patch.ui_config = set("{\"dark\":true}");
    patch.admin_email = set("ada@example.com");
    WORKS(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, &config, &err));
    CHECK(is(config->brand_config, "{\"name\":\"Town\"}") && is(config->ui_config, "{\"dark\":true}"));
    CHECK(config->admin_identity_public_keys_len == 2 && is(config->admin_identity_public_keys[1], "0xbb"));
    CHECK(config->custom_domain_authorized && is(config->admin_email, "ada@example.com"));
    WORKS(tsq_community_config_json(config, &json, &err));
    CHECK(has(tsq_string_view(json), "\"community_id\":\"town\"") && has(tsq_string_view(json), "[\"0xaa\",\"0xbb\"]"));
    tsq_string_free(json);
    tsq_community_config_free(config);

    WORKS(tsq_communities_update_navigation(service, TSQ_STR("town"), TSQ_STR("{\"items\":[]}"), &config, &err));
    CHECK(is(config->navigation_config, "{\"items\":[]}"));
    tsq_community_config_free(config);
    WORKS(tsq_communities_get_active_community_config(client, TSQ_STR("town"), &json, &err));
    CHECK(is(tsq_string_view(json), "{\"brand\":{\"name\":\"Town\"},\"assets\":[],\"community\":1,\"fidgets\":null,"
                                    "\"navigation\":{\"items\":[]},\"ui\":{\"dark\":true}}"));
    tsq_string_free(json);
    WORKS(tsq_communities_update_navigation(service, TSQ_STR("town"), absent, &config, &err));
    CHECK(is_absent(config->navigation_config));
    tsq_community_config_free(config);
    config = NULL;
    REFUSED(tsq_communities_update_navigation(service, TSQ_STR("village"), absent, &config, &err), TSQ_NOT_FOUND, config,
            "Update navigation failed: Record not found", NULL);

    /* An unpublished configuration is NULL without an error. */
    patch = keep_community;
    patch.is_published.change = TSQ_SET;
    WORKS(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, NULL, &err));
    WORKS(tsq_communities_get_active_community_config(client, TSQ_STR("town"), &json, &err));
    CHECK(json == NULL && is_absent(tsq_string_view(json)));
    patch.is_published.value = true;
    WORKS(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, NULL, &err));
    WORKS(tsq_communities_get_active_community_config(client, TSQ_STR("village"), &json, &err));
    CHECK(json == NULL);
}

static void a_configuration_needs_its_required_columns(const tsq_client *service) {
    tsq_community_config *config = NULL;
    tsq_string *json = NULL;
    tsq_community_patch patch = whole_community();
    patch.fidgets_config = keep_community.fidgets_config;
    REFUSED(tsq_communities_save_community_config(service, TSQ_STR("village"), &patch, &config, &err), TSQ_FIELD_MISSING, config,
            "Save community config failed: Required field is missing", "23502");
    patch = whole_community();
    patch.brand_config.change = TSQ_CLEAR;
    REFUSED(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, &config, &err), TSQ_FIELD_MISSING, config,
            "Save community config failed: Required field is missing", "23502");
    patch = whole_community();
    REFUSED(tsq_communities_save_community_config(service, TSQ_STR(FIFTY "f"), &patch, &config, &err), TSQ_INVALID_INPUT, config,
            "Save community config failed: Database error: value too long for type character varying(50)", "22001");
    WORKS(tsq_communities_save_community_config(service, TSQ_STR(FIFTY), &patch, NULL, &err));
    patch.ui_config = set("{oops}");
    FAILS(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, &config, &err), TSQ_INVALID_INPUT, config,
          "Save community config failed: Argument patch.ui_config is not JSON: ");
    FAILS(tsq_communities_save_community_config(service, TSQ_STR("town"), NULL, &config, &err), TSQ_INVALID_INPUT, config,
          "Argument patch is NULL");
    FAILS(tsq_communities_get_active_community_config(service, TSQ_STR("town"), NULL, &err), TSQ_INVALID_INPUT, NULL,
          "Argument out is NULL");
    FAILS(tsq_communities_get_active_community_config(NULL, TSQ_STR("town"), &json, &err), TSQ_INVALID_INPUT, json,
          "Argument client is NULL");
    tsq_community_config_free(NULL);
    tsq_community_domain_free(NULL);
    tsq_space_registration_free(NULL);
}

static void a_domain_resolves_to_its_community(const tsq_client *service, const tsq_client *client) {
    tsq_community_domain *domain = NULL;
    tsq_string *text = NULL;
    WORKS(tsq_communities_save_community_domain(service, TSQ_STR("town"), TSQ_STR(" https://WWW.Town.Example:443/x "), TSQ_STR("custom"),
                                                &domain, &err));
    CHECK(is(domain->domain, "town.example") && is(domain->domain_type, "custom"));
    CHECK(is(domain->community_id, "town") && domain->id.len == 36);
    CHECK(domain->created_at > 0 && domain->updated_at >= domain->created_at);
    WORKS(tsq_community_domain_json(domain, &text, &err));
    CHECK(has(tsq_string_view(text), "\"domain_type\":\"custom\""));
    tsq_string_free(text);
    tsq_community_domain_free(domain);
    domain = NULL;
    WORKS(tsq_communities_resolve_community(client, TSQ_STR("town.example:8080"), &text, &err));
    CHECK(is(tsq_string_view(text), "town"));
    tsq_string_free(text);
    WORKS(tsq_communities_resolve_community(client, TSQ_STR("elsewhere.example"), &text, &err));
    CHECK(text == NULL);

    REFUSED(tsq_communities_save_community_domain(service, TSQ_STR(FIFTY), TSQ_STR("town.example"), TSQ_STR("custom"), &domain, &err),
            TSQ_ALREADY_EXISTS, domain, "Save community domain failed: Record already exists", "23505");
    REFUSED(tsq_communities_save_community_domain(service, TSQ_STR("village"), TSQ_STR("v.example"), TSQ_STR("custom"), &domain, &err),
            TSQ_REFERENCE_MISSING, domain, "Save community domain failed: Referenced record not found", "23503");
    FAILS(tsq_communities_save_community_domain(service, TSQ_STR("town"), TSQ_STR("t.example"), TSQ_STR("own"), &domain, &err),
          TSQ_INVALID_INPUT, domain, "Save community domain failed: Database error: ");
    WORKS(tsq_communities_delete_community_domain(service, TSQ_STR("Town.Example"), &err));
    REFUSED(tsq_communities_delete_community_domain(service, TSQ_STR("town.example"), &err), TSQ_NOT_FOUND, NULL,
            "Delete community domain failed: Record not found", NULL);
}

static void spaces_are_registered_once(const tsq_client *service, const tsq_client *client) {
    int32_t fid = 42;
    tsq_string *json = NULL;
    tsq_space_registration *made = NULL;
    tsq_new_registration registration = no_registration;
    registration.space_id = TSQ_STR(ADA);
    registration.space_type = TSQ_STR("navPage");
    REFUSED(tsq_communities_register_space(service, &registration, &made, &err), TSQ_FIELD_MISSING, made,
            "Register space failed: Required field is missing", "23502");
    registration.space_name = TSQ_STR("Harbour");
    FAILS(tsq_communities_register_space(client, &registration, &made, &err), TSQ_FORBIDDEN, made,
          "Register space failed: Database error: new row violates row-level security policy");
    WORKS(tsq_communities_get_space_registration(client, TSQ_STR(ADA), &made, &err));
    CHECK(made == NULL);
    registration.fid = &fid;
    registration.signature = TSQ_STR("0xcc");
    WORKS(tsq_communities_register_space(service, &registration, &made, &err));
    CHECK(is(made->space_id, ADA) && is(made->space_name, "Harbour"));
    CHECK(is(made->space_type, "navPage") && is(made->signature, "0xcc"));
    CHECK(made->has_fid && made->fid == 42 && is_absent(made->identity_public_key));
    CHECK(made->timestamp > 0);
    tsq_space_registration_free(made);
    made = NULL;
    REFUSED(tsq_communities_register_space(service, &registration, &made, &err), TSQ_ALREADY_EXISTS, made,
            "Register space failed: Record already exists", "23505");
    WORKS(tsq_communities_get_space_registration(client, TSQ_STR(ADA), &made, &err));
    WORKS(tsq_space_registration_json(made, &json, &err));
    CHECK(has(tsq_string_view(json), "\"spaceType\":\"navPage\"") && has(tsq_string_view(json), "\"fid\":42"));
    tsq_string_free(json);
    tsq_space_registration_free(made);
    made = NULL;
    registration = no_registration;
    registration.space_type = TSQ_STR("token");
    registration.space_id = TSQ_STR("x");
    FAILS(tsq_communities_register_space(service, &registration, &made, &err), TSQ_INVALID_INPUT, made,
          "Register space failed: Argument registration.space_id is not a UUID");
    registration.space_type = absent;
    FAILS(tsq_communities_register_space(service, &registration, &made, &err), TSQ_INVALID_INPUT, made, "Register space failed: ");
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    tsq_client *service = NULL;
    tsq_client *client = open_client("town");
    WORKS(tsq_client_as_service(client, &service, &err));
    configurations_are_inserted_and_updated(service, client);
    a_configuration_needs_its_required_columns(service);
    a_domain_resolves_to_its_community(service, client);
    spaces_are_registered_once(service, client);
    tsq_client_free(service);
    tsq_client_free(client);
    return checks_done("communities");
}
