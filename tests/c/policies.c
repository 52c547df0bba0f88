/* Permissions from C (DESIGN 4, SPEC 5.4) for anonymous, another user, the owner and the service; and identity keys.
 * tests/it has the whole table. Also compiled as C++: keep to the common subset.
 *
 * policies CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "people.h"

/* An Ed25519 seed; its public key is in the claim. */
#define KEY "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"

enum { ANONYMOUS, STRANGER, OWNER, SERVICE, CALLERS };

static const char *const caller_names[CALLERS] = {"anonymous", "another user", "the owner", "the service"};
static tsq_client *callers[CALLERS];
static kept owner, stranger;

/* Zeroed inputs as static variables, because C spells a zeroed local {0} and C++ {}. */
static tsq_new_space no_space;
static tsq_new_fidget no_fidget;
static tsq_space_patch keep_space;
static tsq_community_patch keep_community;
static tsq_new_registration no_registration;

/* A new space of the owner. */
static kept fresh_space(int is_public) {
    kept id;
    tsq_space *made = NULL;
    tsq_new_space space = no_space;
    space.name = TSQ_STR("Harbour");
    space.owner_id = of(&owner);
    space.is_public = is_public != 0;
    WORKS(tsq_spaces_create_space(callers[SERVICE], &space, &made, &err));
    id = keep(made->id);
    tsq_space_free(made);
    return id;
}

static kept fresh_fidget(const kept *space) {
    kept id;
    tsq_fidget *made = NULL;
    tsq_new_fidget fidget = no_fidget;
    fidget.kind = TSQ_STR("tides");
    WORKS(tsq_fidgets_create_fidget(callers[SERVICE], of(space), &fidget, &made, &err));
    id = keep(made->id);
    tsq_fidget_free(made);
    return id;
}

static void fresh_community(const char *id, bool is_published) {
    tsq_community_patch patch = keep_community;
    patch.brand_config = set("{}");
    patch.assets_config = set("{}");
    patch.community_config = set("{}");
    patch.fidgets_config = set("{}");
    patch.is_published.change = TSQ_SET;
    patch.is_published.value = is_published;
    WORKS(tsq_communities_save_community_config(callers[SERVICE], tsq_str_from(id), &patch, NULL, &err));
}

/* An unused id or domain. */
static kept another(const char *format) {
    static int count;
    kept out;
    snprintf(out.text, sizeof out.text, format, ++count);
    return out;
}

/* The attempts. Each creates its rows as the service, then calls as `caller`. */

static tsq_status see_space(const tsq_client *caller, int is_public) {
    const kept id = fresh_space(is_public);
    tsq_space *found = NULL;
    const tsq_status status = tsq_spaces_get_space(caller, of(&id), &found, NULL);
    tsq_space_free(found);
    return status;
}
static tsq_status see_private_space(const tsq_client *caller) { return see_space(caller, 0); }
static tsq_status see_public_space(const tsq_client *caller) { return see_space(caller, 1); }

static tsq_status create_own_space(const tsq_client *caller) {
    tsq_new_space space = no_space;
    space.name = TSQ_STR("Mine");
    return tsq_spaces_create_space(caller, &space, NULL, NULL);
}
static tsq_status create_owners_space(const tsq_client *caller) {
    tsq_new_space space = no_space;
    space.name = TSQ_STR("Yours");
    space.owner_id = of(&owner);
    space.is_public = true;
    return tsq_spaces_create_space(caller, &space, NULL, NULL);
}

static tsq_status rename_space(const tsq_client *caller, int is_public) {
    const kept id = fresh_space(is_public);
    tsq_space_patch patch = keep_space;
    patch.name = set("Port");
    return tsq_spaces_update_space(caller, of(&id), &patch, NULL, NULL);
}
static tsq_status rename_private_space(const tsq_client *caller) { return rename_space(caller, 0); }
static tsq_status rename_public_space(const tsq_client *caller) { return rename_space(caller, 1); }

static tsq_status delete_space(const tsq_client *caller, int is_public) {
    const kept id = fresh_space(is_public);
    return tsq_spaces_delete_space(caller, of(&id), NULL);
}
static tsq_status delete_private_space(const tsq_client *caller) { return delete_space(caller, 0); }
static tsq_status delete_public_space(const tsq_client *caller) { return delete_space(caller, 1); }

static tsq_status delete_a_user(const tsq_client *caller) {
    const kept email = another("guest%d@town.example");
    tsq_session *guest = meet(callers[SERVICE], email.text);
    const tsq_status status = tsq_auth_delete_user(caller, id_of(guest), NULL);
    tsq_session_free(guest);
    return status;
}

static tsq_status save_config(const tsq_client *caller) {
    const kept id = another("town-%d");
    fresh_community(id.text, true);
    return tsq_communities_save_community_config(caller, of(&id), &keep_community, NULL, NULL);
}
static tsq_status register_space(const tsq_client *caller) {
    const kept space = fresh_space(1);
    tsq_new_registration registration = no_registration;
    registration.space_id = of(&space);
    registration.space_name = TSQ_STR("Harbour");
    registration.space_type = TSQ_STR("profile");
    return tsq_communities_register_space(caller, &registration, NULL, NULL);
}

/* Short names for the expected statuses. */
enum { YES = TSQ_OK, NO_ROW = TSQ_NOT_FOUND, DENIED = TSQ_FORBIDDEN, SIGN_IN = TSQ_UNAUTHORIZED };

static const struct row {
    const char *what;
    tsq_status (*attempt)(const tsq_client *caller);
    int expected[CALLERS];
} table[] = {
    /*                                                      anon.   stranger owner   service */
    {"read a private space", see_private_space,             {NO_ROW, NO_ROW, YES,    YES}},
    {"read a public space", see_public_space,               {YES,    YES,    YES,    YES}},
    {"create an own space", create_own_space,      {DENIED, YES,    YES,    YES}},
    {"create a space of the owner's", create_owners_space, {DENIED, DENIED, YES,    YES}},
    {"update a private space", rename_private_space,       {NO_ROW, NO_ROW, YES,    YES}},
    {"update a public space", rename_public_space,         {NO_ROW, NO_ROW, YES,    YES}},
    {"delete a private space", delete_private_space,       {NO_ROW, NO_ROW, YES,    YES}},
    {"delete a public space", delete_public_space,         {NO_ROW, NO_ROW, YES,    YES}},
    {"delete a user", delete_a_user,                       {SIGN_IN, DENIED, DENIED, YES}},
    {"save a community", save_config,                      {SIGN_IN, DENIED, DENIED, YES}},
    {"register a space", register_space,                   {DENIED, DENIED, YES,    YES}},
};

static void every_permission_matches_the_table(void) {
    for (size_t row = 0; row < sizeof table / sizeof table[0]; row++) {
        for (int who = 0; who < CALLERS; who++) {
            const int status = (int)table[row].attempt(callers[who]);
            if (!CHECK(status == table[row].expected[who])) {
                fprintf(stderr, "  %s may %s: status %d, not %d\n", caller_names[who], table[row].what, status,
                        table[row].expected[who]);
            }
        }
    }
}

static void pages_of_fidgets_contain_visible_fidgets_only(void) {
    const kept space = fresh_space(0);
    const kept first = fresh_fidget(&space);
    const kept second = fresh_fidget(&space);
    for (int who = 0; who < CALLERS; who++) {
        const size_t seen = who == OWNER || who == SERVICE ? 1 : 0;
        tsq_fidget_list *page = NULL, *next = NULL;
        WORKS(tsq_fidgets_get_space_fidgets_after(callers[who], of(&space), 1, NULL, &page, &err));
        CHECK(tsq_fidget_list_len(page) == seen);
        if (seen != 0) {
            CHECK(is(tsq_fidget_list_at(page, 0)->id, first.text) || is(tsq_fidget_list_at(page, 0)->id, second.text));
            WORKS(tsq_fidgets_get_space_fidgets_after(callers[who], of(&space), 9, tsq_fidget_list_at(page, 0), &next, &err));
            CHECK(tsq_fidget_list_len(next) == 1);
            tsq_fidget_list_free(next);
            next = NULL;
        }
        tsq_fidget_list_free(page);
        FAILS(tsq_fidgets_get_space_fidgets_after(callers[who], of(&space), 0, NULL, &next, &err), TSQ_INVALID_INPUT, next,
              "Get space fidgets failed: limit is 1 to 1000");
    }
}

static void lists_contain_visible_spaces_only(void) {
    const size_t shown[CALLERS] = {1, 1, 2, 2};
    tsq_session *session = meet(callers[SERVICE], "ida@town.example");
    const kept ida = keep(id_of(session));
    tsq_client *as_ida = act_as(callers[SERVICE], session);
    tsq_client *asking[CALLERS];
    tsq_new_space space = no_space;
    tsq_space_list *list = NULL;
    tsq_session_free(session);
    space.name = TSQ_STR("hidden");
    WORKS(tsq_spaces_create_space(as_ida, &space, NULL, &err));
    space.name = TSQ_STR("shown");
    space.is_public = true;
    WORKS(tsq_spaces_create_space(as_ida, &space, NULL, &err));
    memcpy(asking, callers, sizeof asking);
    asking[OWNER] = as_ida;
    for (int who = 0; who < CALLERS; who++) {
        WORKS(tsq_spaces_get_user_spaces(asking[who], of(&ida), &list, &err));
        CHECK(tsq_space_list_len(list) == shown[who]);
        tsq_space_list_free(list);
        WORKS(tsq_spaces_get_public_spaces(asking[who], 1, 0, &list, &err));
        CHECK(is(tsq_space_list_at(list, 0)->name, "shown"));
        CHECK(is(tsq_space_list_at(list, 0)->owner->id, ida.text));
        CHECK(is(tsq_space_list_at(list, 0)->owner->email, "ida@town.example"));
        tsq_space_list_free(list);
    }
    tsq_client_free(as_ida);
}

/* The 64 hex digits of a claim's public key. */
static kept key_of(tsq_str claim) {
    const char *member = "\"publicKey\":\"";
    kept key;
    key.text[0] = '\0';
    for (size_t at = 0; at + strlen(member) + 64 < claim.len; at++) {
        if (memcmp(claim.ptr + at, member, strlen(member)) == 0) {
            snprintf(key.text, sizeof key.text, "%.64s", claim.ptr + at + strlen(member));
        }
    }
    return key;
}

static tsq_string *claim_for(const kept *user, int64_t timestamp) {
    tsq_string *claim = NULL;
    tsq_string *audience = NULL;
    WORKS(tsq_auth_identity_audience(callers[OWNER], &audience, &err));
    WORKS(tsq_identity_claim(of(user), TSQ_STR(KEY), tsq_string_view(audience), timestamp, &claim, &err));
    tsq_string_free(audience);
    return claim;
}

static void a_linked_identity_key_allows_setting_the_navigation(void) {
    kept key;
    tsq_str keys[1];
    tsq_community_config *config = NULL;
    tsq_community_patch patch = keep_community;
    tsq_string *claim = claim_for(&owner, now());
    key = key_of(tsq_string_view(claim));
    CHECK(strlen(key.text) == 64 && has(tsq_string_view(claim), "\"signature\":\"") && has(tsq_string_view(claim), owner.text));
    fresh_community("keyed", true);
    fresh_community("open", true);
    keys[0] = of(&key);
    patch.admin_identity_public_keys.change = TSQ_SET;
    patch.admin_identity_public_keys.items = keys;
    patch.admin_identity_public_keys.items_len = 1;
    WORKS(tsq_communities_save_community_config(callers[SERVICE], TSQ_STR("keyed"), &patch, NULL, &err));
    REFUSED(tsq_communities_update_navigation(callers[OWNER], TSQ_STR("keyed"), TSQ_STR("[1]"), &config, &err), TSQ_FORBIDDEN, config,
            "Update navigation failed: Database error: permission denied for table community_configs", "42501");

    WORKS(tsq_auth_link_identity(callers[OWNER], tsq_string_view(claim), &err));
    WORKS(tsq_auth_link_identity(callers[OWNER], tsq_string_view(claim), &err));
    WORKS(tsq_communities_update_navigation(callers[OWNER], TSQ_STR("keyed"), TSQ_STR("[1]"), &config, &err));
    CHECK(is(config->navigation_config, "[1]"));
    tsq_community_config_free(config);
    config = NULL;
    /* The key allows nothing else, and no other user. */
    REFUSED(tsq_communities_save_community_config(callers[OWNER], TSQ_STR("keyed"), &keep_community, &config, &err), TSQ_FORBIDDEN,
            config, "Save community config failed: Database error: permission denied for table community_configs", "42501");
    REFUSED(tsq_communities_update_navigation(callers[OWNER], TSQ_STR("open"), TSQ_STR("[1]"), &config, &err), TSQ_FORBIDDEN, config,
            "Update navigation failed: Database error: permission denied for table community_configs", "42501");
    REFUSED(tsq_communities_update_navigation(callers[STRANGER], TSQ_STR("keyed"), TSQ_STR("[2]"), &config, &err), TSQ_FORBIDDEN,
            config, "Update navigation failed: Database error: permission denied for table community_configs", "42501");
    REFUSED(tsq_communities_update_navigation(callers[ANONYMOUS], TSQ_STR("keyed"), TSQ_STR("[2]"), &config, &err), TSQ_UNAUTHORIZED,
            config, "Update navigation failed: Database error: permission denied for table community_configs", "42501");
    tsq_string_free(claim);
}

static void a_claim_is_valid_for_its_user_and_five_minutes(void) {
    tsq_string *claim = claim_for(&owner, now());
    tsq_string *none = NULL;
    FAILS(tsq_auth_link_identity(callers[STRANGER], tsq_string_view(claim), &err), TSQ_UNAUTHORIZED, NULL,
          "Link identity failed: The identity claim is for another user");
    FAILS(tsq_auth_link_identity(callers[ANONYMOUS], tsq_string_view(claim), &err), TSQ_UNAUTHORIZED, NULL,
          "Link identity failed: Nobody is signed in");
    tsq_string_free(claim);
    claim = claim_for(&stranger, now() - (int64_t)6 * 60 * 1000000);
    FAILS(tsq_auth_link_identity(callers[STRANGER], tsq_string_view(claim), &err), TSQ_UNAUTHORIZED, NULL,
          "Link identity failed: The identity claim is older than five minutes");
    tsq_string_free(claim);
    claim = claim_for(&stranger, now());
    REFUSED(tsq_auth_link_identity(callers[STRANGER], tsq_string_view(claim), &err), TSQ_ALREADY_EXISTS, NULL,
            "Link identity failed: Record already exists", "23505");
    tsq_string_free(claim);

    FAILS(tsq_auth_link_identity(callers[OWNER], TSQ_STR("{}"), &err), TSQ_INVALID_INPUT, NULL, "Link identity failed: An identity claim is ");
    FAILS(tsq_auth_link_identity(callers[OWNER], absent, &err), TSQ_INVALID_INPUT, NULL, "Link identity failed: An identity claim is ");
    FAILS(tsq_auth_link_identity(callers[OWNER], TSQ_STR("{"), &err), TSQ_INVALID_INPUT, NULL, "Link identity failed: Argument claim is not JSON");
    FAILS(tsq_identity_claim(TSQ_STR("ida"), TSQ_STR(KEY), absent, 0, &none, &err), TSQ_INVALID_INPUT, none, "Argument user_id is not a UUID");
    FAILS(tsq_identity_claim(of(&owner), TSQ_STR(KEY), absent, INT64_MAX, &none, &err), TSQ_INVALID_INPUT, none, "Argument timestamp is out of range");
    FAILS(tsq_identity_claim(of(&owner), TSQ_STR(KEY), absent, 0, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    CHECK(tsq_identity_claim(of(&owner), TSQ_STR("0102"), absent, 0, &none, &err) == TSQ_INVALID_INPUT && none == NULL);
    CHECK(!strstr(tsq_error_text(err).ptr, "0102"));
    tsq_error_free(err);
    err = NULL;
}

static void a_space_has_at_most_a_thousand_fidgets(void) {
    enum { MOST = 1000 };
    static tsq_new_fidget placed[MOST];
    tsq_new_space full = no_space;
    tsq_space *space = NULL;
    full.name = TSQ_STR("Full");
    WORKS(tsq_spaces_create_space(callers[OWNER], &full, &space, &err));
    for (size_t i = 0; i < MOST; i++) {
        placed[i].kind = TSQ_STR("clock");
    }
    WORKS(tsq_fidgets_create_fidgets(callers[OWNER], space->id, placed, MOST, sizeof *placed, NULL, &err));
    REFUSED(tsq_fidgets_create_fidget(callers[OWNER], space->id, placed, NULL, &err), TSQ_QUOTA_EXCEEDED, NULL,
            "Create fidget failed: Quota exceeded: the space would have more than 1000 fidgets; "
            "the limit is the option max_space_fidgets", NULL);
    WORKS(tsq_fidgets_create_fidget(callers[SERVICE], space->id, placed, NULL, &err));
    WORKS(tsq_spaces_delete_space(callers[OWNER], space->id, &err));
    tsq_space_free(space);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    tsq_session *session = NULL;
    callers[ANONYMOUS] = open_client("town");
    WORKS(tsq_client_as_service(callers[ANONYMOUS], &callers[SERVICE], &err));
    session = meet(callers[SERVICE], "owner@town.example");
    owner = keep(id_of(session));
    callers[OWNER] = act_as(callers[ANONYMOUS], session);
    tsq_session_free(session);
    session = meet(callers[SERVICE], "stranger@town.example");
    stranger = keep(id_of(session));
    callers[STRANGER] = act_as(callers[ANONYMOUS], session);
    tsq_session_free(session);

    every_permission_matches_the_table();
    pages_of_fidgets_contain_visible_fidgets_only();
    lists_contain_visible_spaces_only();
    a_linked_identity_key_allows_setting_the_navigation();
    a_claim_is_valid_for_its_user_and_five_minutes();
    a_space_has_at_most_a_thousand_fidgets();
    for (int who = 0; who < CALLERS; who++) {
        tsq_client_free(callers[who]);
    }
    return checks_done("policies");
}
