/* Communities, their domains and registered spaces from C (DESIGN 9, 10; SPEC 2.2 to 2.4, 4.3, 7, 8). Also compiled as
 * C++: keep to the common subset.
 *
 * communities CATALOG FOLDER: in FOLDER/town lies a database with one user, ADA; the catalog is not looked at. */
#include "rows.h"

#define FIFTY "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee"

/* All zeros, so nothing given and nothing changed: C wants {0} for that and C++ {}. */
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
    size_t keys = 7;
    tsq_community_patch patch = whole_community();
    tsq_str names[2] = {NO_STR, NO_STR};
    WORKS(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, &config, &err));
    CHECK(tsq_community_config_id(config).len == 36 && is(tsq_community_config_community_id(config), "town"));
    CHECK(is(tsq_community_config_brand_config(config), "{\"name\":\"Town\"}") && is(tsq_community_config_assets_config(config), "[]"));
    CHECK(is(tsq_community_config_community_config(config), "1") && is(tsq_community_config_fidgets_config(config), "null"));
    CHECK(is_absent(tsq_community_config_navigation_config(config)) && is_absent(tsq_community_config_ui_config(config)));
    CHECK(!tsq_community_config_admin_identity_public_keys_len(config, &keys) && keys == 0);
    CHECK(is_absent(tsq_community_config_admin_identity_public_keys_at(config, 0)));
    CHECK(tsq_community_config_is_published(config) && !tsq_community_config_custom_domain_authorized(config));
    CHECK(is_absent(tsq_community_config_admin_email(config)) && tsq_community_config_updated_at(config) > 0);
    tsq_community_config_free(config);

    /* What is kept stays. */
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
    CHECK(is(tsq_community_config_brand_config(config), "{\"name\":\"Town\"}") && is(tsq_community_config_ui_config(config), "{\"dark\":true}"));
    CHECK(tsq_community_config_admin_identity_public_keys_len(config, &keys) && keys == 2);
    CHECK(is(tsq_community_config_admin_identity_public_keys_at(config, 1), "0xbb"));
    CHECK(tsq_community_config_custom_domain_authorized(config) && is(tsq_community_config_admin_email(config), "ada@example.com"));
    WORKS(tsq_community_config_json(config, &json, &err));
    CHECK(has(tsq_string_view(json), "\"community_id\":\"town\"") && has(tsq_string_view(json), "[\"0xaa\",\"0xbb\"]"));
    tsq_string_free(json);
    tsq_community_config_free(config);

    WORKS(tsq_communities_update_navigation(service, TSQ_STR("town"), TSQ_STR("{\"items\":[]}"), &config, &err));
    CHECK(is(tsq_community_config_navigation_config(config), "{\"items\":[]}"));
    tsq_community_config_free(config);
    WORKS(tsq_communities_get_active_community_config(client, TSQ_STR("town"), &json, &err));
    CHECK(is(tsq_string_view(json), "{\"brand\":{\"name\":\"Town\"},\"assets\":[],\"community\":1,\"fidgets\":null,"
                                    "\"navigation\":{\"items\":[]},\"ui\":{\"dark\":true}}"));
    tsq_string_free(json);
    WORKS(tsq_communities_update_navigation(service, TSQ_STR("town"), absent, &config, &err));
    CHECK(is_absent(tsq_community_config_navigation_config(config)));
    tsq_community_config_free(config);
    config = NULL;
    REFUSED(tsq_communities_update_navigation(service, TSQ_STR("village"), absent, &config, &err), TSQ_NOT_FOUND, config,
            "Update navigation failed: Record not found", NULL);

    /* What is not published is not there: no text, and no error. */
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

static void a_configuration_needs_what_the_table_needs(const tsq_client *service) {
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

static void domains_lead_to_communities(const tsq_client *service, const tsq_client *client) {
    tsq_community_domain *domain = NULL;
    tsq_string *text = NULL;
    WORKS(tsq_communities_save_community_domain(service, TSQ_STR("town"), TSQ_STR(" https://WWW.Town.Example:443/x "), TSQ_STR("custom"),
                                                &domain, &err));
    CHECK(is(tsq_community_domain_domain(domain), "town.example") && is(tsq_community_domain_domain_type(domain), "custom"));
    CHECK(is(tsq_community_domain_community_id(domain), "town") && tsq_community_domain_id(domain).len == 36);
    CHECK(tsq_community_domain_created_at(domain) > 0 && tsq_community_domain_updated_at(domain) >= tsq_community_domain_created_at(domain));
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
    int32_t read = 7;
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
    CHECK(is(tsq_space_registration_space_id(made), ADA) && is(tsq_space_registration_space_name(made), "Harbour"));
    CHECK(is(tsq_space_registration_space_type(made), "navPage") && is(tsq_space_registration_signature(made), "0xcc"));
    CHECK(tsq_space_registration_fid(made, &read) && read == 42 && is_absent(tsq_space_registration_identity_public_key(made)));
    CHECK(tsq_space_registration_timestamp(made) > 0);
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
    a_configuration_needs_what_the_table_needs(service);
    domains_lead_to_communities(service, client);
    spaces_are_registered_once(service, client);
    tsq_client_free(service);
    tsq_client_free(client);
    return checks_done("communities");
}
