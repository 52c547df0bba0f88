/* Spaces, fidgets and communities from C (DESIGN 4, 9, 10; SPEC 2.2 to 2.7, 4.3, 4.5, 7). Also compiled as C++: keep to
 * the common subset.
 *
 * tables CATALOG FOLDER: FOLDER/town contains a database with one user, ADA; the catalog is not read. */
#include "rows.h"

/* Zeroed inputs as static variables, because C spells a zeroed local {0} and C++ {}. */
static tsq_new_space no_space;
static tsq_space_patch keep_space;
static tsq_new_fidget no_fidget;
static tsq_fidget_patch keep_fidget;
static tsq_community_patch keep_community;

static int same(tsq_str one, tsq_str other) {
    return one.ptr != NULL && one.len == other.len && memcmp(one.ptr, other.ptr, one.len) == 0;
}

static tsq_space *make_space(const tsq_client *client, const char *name, bool is_public) {
    tsq_space *space = NULL;
    tsq_new_space made = no_space;
    made.name = tsq_str_from(name);
    made.owner_id = TSQ_STR(ADA);
    made.is_public = is_public;
    WORKS(tsq_spaces_create_space(client, &made, &space, &err));
    return space;
}

static tsq_fidget *make_fidget(const tsq_client *client, const tsq_space *space, const char *kind) {
    tsq_fidget *fidget = NULL;
    tsq_new_fidget made = no_fidget;
    made.kind = tsq_str_from(kind);
    WORKS(tsq_fidgets_create_fidget(client, space->id, &made, &fidget, &err));
    return fidget;
}

static void the_service_creates_reads_updates_and_deletes_spaces(const tsq_client *service) {
    tsq_space *found = NULL;
    tsq_space *changed = NULL;
    tsq_string *json = NULL;
    tsq_space_patch patch = keep_space;
    tsq_space *made = make_space(service, "Harbour", false);
    CHECK(made->id.len == 36 && is(made->name, "Harbour") && is(made->owner_id, ADA));
    CHECK(is_absent(made->description) && !made->is_public);
    CHECK(made->created_at > INT64_C(1600000000000000) && made->updated_at == made->created_at);
    CHECK(made->fidgets == NULL && made->owner == NULL);

    WORKS(tsq_spaces_get_space(service, made->id, &found, &err));
    CHECK(same(found->id, made->id) && found->created_at == made->created_at);
    WORKS(tsq_space_json(found, &json, &err));
    CHECK(has(tsq_string_view(json), "\"name\":\"Harbour\"") && has(tsq_string_view(json), "\"description\":null"));
    CHECK(!strstr(tsq_string_view(json).ptr, "fidgets") && !strstr(tsq_string_view(json).ptr, "\"owner\""));
    tsq_string_free(json);

    /* A zeroed patch, two columns, and a column set to NULL. */
    WORKS(tsq_spaces_update_space(service, made->id, &patch, &changed, &err));
    CHECK(changed->updated_at == made->updated_at);
    tsq_space_free(changed);
    patch.description = set("Where ships are");
    patch.is_public.change = TSQ_SET;
    patch.is_public.value = true;
    WORKS(tsq_spaces_update_space(service, made->id, &patch, &changed, &err));
    CHECK(is(changed->name, "Harbour") && is(changed->description, "Where ships are"));
    CHECK(changed->is_public && changed->updated_at >= made->updated_at);
    tsq_space_free(changed);
    patch = keep_space;
    patch.description.change = TSQ_CLEAR;
    WORKS(tsq_spaces_update_space(service, made->id, &patch, &changed, &err));
    CHECK(is_absent(changed->description) && changed->is_public);
    tsq_space_free(changed);
    patch.description = set("again");
    WORKS(tsq_spaces_update_space(service, made->id, &patch, NULL, &err));
    patch.description.value = absent;
    WORKS(tsq_spaces_update_space(service, made->id, &patch, &changed, &err));
    CHECK(is_absent(changed->description));
    tsq_space_free(changed);
    patch = keep_space;
    patch.name.change = TSQ_CLEAR;
    REFUSED(tsq_spaces_update_space(service, made->id, &patch, NULL, &err), TSQ_FIELD_MISSING, NULL,
            "Update space failed: Required field is missing", "23502");

    WORKS(tsq_spaces_delete_space(service, made->id, &err));
    REFUSED(tsq_spaces_delete_space(service, made->id, &err), TSQ_NOT_FOUND, NULL,
            "Delete space failed: Record not found", NULL);
    tsq_space_free(found);
    found = NULL;
    REFUSED(tsq_spaces_get_space(service, made->id, &found, &err), TSQ_NOT_FOUND, found,
            "Get space failed: Record not found", NULL);
    tsq_space_free(made);
}

static void fidgets_are_created_moved_changed_and_deleted(const tsq_client *service) {
    tsq_fidget *fidget = NULL;
    tsq_fidget_list *list = NULL;
    tsq_space *whole = NULL;
    tsq_string *json = NULL;
    tsq_new_fidget made[2] = {no_fidget, no_fidget};
    tsq_fidget_patch patch = keep_fidget;
    tsq_position positions[2] = {{NO_STR, NO_STR}, {NO_STR, NO_STR}};
    tsq_space *space = make_space(service, "Market", true);
    REFUSED(tsq_spaces_get_space_with_fidgets(service, space->id, &whole, &err), TSQ_NOT_FOUND, whole,
            "Get space with fidgets failed: Record not found", NULL);
    made[0].kind = TSQ_STR("feed");
    made[0].config = TSQ_STR("{\"of\":[1,9007199254740993,\"caf\xc3\xa9\"]}");
    made[0].position = TSQ_STR("[0,0]");
    made[1].kind = TSQ_STR("links");
    WORKS(tsq_fidgets_create_fidgets(service, space->id, made, 2, sizeof *made, &list, &err));
    CHECK(tsq_fidget_list_len(list) == 2 && tsq_fidget_list_at(list, 2) == NULL);
    CHECK(is(tsq_fidget_list_at(list, 0)->kind, "feed"));
    CHECK(is(tsq_fidget_list_at(list, 0)->config, "{\"of\":[1,9007199254740993,\"caf\xc3\xa9\"]}"));
    CHECK(same(tsq_fidget_list_at(list, 0)->space_id, space->id));
    CHECK(is_absent(tsq_fidget_list_at(list, 1)->config) && is_absent(tsq_fidget_list_at(list, 1)->position));

    WORKS(tsq_fidgets_get_fidget(service, tsq_fidget_list_at(list, 0)->id, &fidget, &err));
    CHECK(is(fidget->position, "[0,0]") && fidget->created_at == fidget->updated_at);
    WORKS(tsq_fidget_json(fidget, &json, &err));
    CHECK(has(tsq_string_view(json), "\"type\":\"feed\"") && has(tsq_string_view(json), "\"position\":[0,0]"));
    tsq_string_free(json);
    tsq_fidget_free(fidget);

    positions[0].fidget_id = tsq_fidget_list_at(list, 0)->id;
    positions[1].fidget_id = tsq_fidget_list_at(list, 1)->id;
    positions[1].position = TSQ_STR("{\"x\":1.5}");
    {
        tsq_fidget_list *moved = NULL;
        WORKS(tsq_fidgets_save_positions(service, space->id, positions, 2, &moved, &err));
        CHECK(tsq_fidget_list_len(moved) == 2);
        tsq_fidget_list_free(moved);
        moved = NULL;
        positions[1].fidget_id = TSQ_STR(NOBODY);
        REFUSED(tsq_fidgets_save_positions(service, space->id, positions, 2, &moved, &err), TSQ_NOT_FOUND, moved,
                "Save positions failed: Record not found", NULL);
        positions[1].fidget_id = positions[0].fidget_id;
        REFUSED(tsq_fidgets_save_positions(service, space->id, positions, 2, &moved, &err), TSQ_INVALID_INPUT, moved,
                "Save positions failed: Argument positions[1].fidget_id was named before", NULL);
    }
    WORKS(tsq_spaces_get_space_with_fidgets(service, space->id, &whole, &err));
    CHECK(tsq_fidget_list_len(whole->fidgets) == 2);
    for (size_t i = 0; i < 2; i++) {
        const tsq_fidget *one = tsq_fidget_list_at(whole->fidgets, i);
        if (is_absent(one->config)) {
            CHECK(is(one->position, "{\"x\":1.5}"));
        } else {
            CHECK(is_absent(one->position));
        }
    }
    WORKS(tsq_space_json(whole, &json, &err));
    CHECK(has(tsq_string_view(json), "\"fidgets\":[{\"id\":") && has(tsq_string_view(json), "\"name\":\"Market\""));
    tsq_string_free(json);
    tsq_space_free(whole);

    patch.kind = set("gallery");
    patch.config = set("null");
    WORKS(tsq_fidgets_update_fidget(service, positions[0].fidget_id, &patch, &fidget, &err));
    CHECK(is(fidget->kind, "gallery") && is(fidget->config, "null"));
    tsq_fidget_free(fidget);
    patch = keep_fidget;
    patch.config.change = TSQ_CLEAR;
    WORKS(tsq_fidgets_update_fidget(service, positions[0].fidget_id, &patch, &fidget, &err));
    CHECK(is(fidget->kind, "gallery") && is_absent(fidget->config));
    tsq_fidget_free(fidget);
    WORKS(tsq_fidgets_delete_fidget(service, positions[0].fidget_id, &err));
    tsq_fidget_list_free(list);
    WORKS(tsq_fidgets_get_space_fidgets(service, space->id, &list, &err));
    CHECK(tsq_fidget_list_len(list) == 1);
    WORKS(tsq_fidget_list_json(list, &json, &err));
    CHECK(has(tsq_string_view(json), "[{\"id\":\""));
    tsq_string_free(json);
    tsq_fidget_list_free(list);
    WORKS(tsq_spaces_delete_space(service, space->id, &err));
    tsq_space_free(space);
}

static void lists_of_spaces_contain_fidgets_or_owners(const tsq_client *client, const tsq_client *service) {
    tsq_new_space made[3] = {no_space, no_space, no_space};
    tsq_space_list *list = NULL;
    tsq_string *json = NULL;
    tsq_fidget *fidget = NULL;
    made[0].name = TSQ_STR("one");
    made[1].name = TSQ_STR("two");
    made[2].name = TSQ_STR("three");
    made[0].is_public = made[1].is_public = true;
    made[0].owner_id = made[2].owner_id = TSQ_STR(ADA);
    made[1].owner_id = TSQ_STR("no id");
    REFUSED(tsq_spaces_create_spaces(service, made, 3, sizeof *made, &list, &err), TSQ_INVALID_INPUT, list,
            "Create spaces failed: Argument spaces[1].owner_id is not a UUID", NULL);
    made[1].owner_id = TSQ_STR(NOBODY);
    REFUSED(tsq_spaces_create_spaces(service, made, 3, sizeof *made, &list, &err), TSQ_REFERENCE_MISSING, list,
            "Create spaces failed: Referenced record not found", "23503");
    WORKS(tsq_spaces_get_user_spaces(service, TSQ_STR(ADA), &list, &err));
    CHECK(tsq_space_list_len(list) == 0);
    tsq_space_list_free(list);
    made[1].owner_id = absent;
    WORKS(tsq_spaces_create_spaces(service, made, 3, sizeof *made, &list, &err));
    CHECK(tsq_space_list_len(list) == 3 && is(tsq_space_list_at(list, 2)->name, "three"));
    CHECK(is_absent(tsq_space_list_at(list, 1)->owner_id) && tsq_space_list_at(list, 3) == NULL);
    fidget = make_fidget(service, tsq_space_list_at(list, 0), "feed");
    tsq_fidget_free(fidget);
    tsq_space_list_free(list);

    WORKS(tsq_spaces_get_user_spaces(service, TSQ_STR(ADA), &list, &err));
    CHECK(tsq_space_list_len(list) == 2);
    for (size_t i = 0; i < tsq_space_list_len(list); i++) {
        const tsq_space *space = tsq_space_list_at(list, i);
        CHECK(tsq_fidget_list_len(space->fidgets) == (space->is_public ? 1 : 0));
    }
    tsq_space_list_free(list);

    /* Anonymous callers see the two public spaces. */
    WORKS(tsq_spaces_get_public_spaces(client, TSQ_DEFAULT_PAGE, 0, &list, &err));
    CHECK(tsq_space_list_len(list) == 2 && tsq_space_list_at(list, 0)->fidgets == NULL);
    for (size_t i = 0; i < tsq_space_list_len(list); i++) {
        const tsq_owner *owner = tsq_space_list_at(list, i)->owner;
        if (is_absent(tsq_space_list_at(list, i)->owner_id)) {
            CHECK(owner == NULL);
        } else {
            CHECK(is(owner->id, ADA) && is(owner->email, "ada@example.com"));
        }
    }
    WORKS(tsq_space_list_json(list, &json, &err));
    CHECK(has(tsq_string_view(json), "\"owner\":null") && has(tsq_string_view(json), "\"email\":\"ada@example.com\""));
    tsq_string_free(json);
    tsq_space_list_free(list);
    WORKS(tsq_spaces_get_public_spaces(client, 1, 2, &list, &err));
    CHECK(tsq_space_list_len(list) == 0);
    tsq_space_list_free(list);
    list = NULL;
    FAILS(tsq_spaces_get_public_spaces(client, 0, 0, &list, &err), TSQ_INVALID_INPUT, list, "Get public spaces failed: ");
    FAILS(tsq_spaces_get_public_spaces(client, 1001, 0, &list, &err), TSQ_INVALID_INPUT, list, "Get public spaces failed: ");
}

/* Makes pages of two of all public spaces, with a new and a deleted space between them. */
static void pages_after_a_space_are_stable(const tsq_client *client, const tsq_client *service) {
    tsq_space_list *all = NULL;
    tsq_space_list *page = NULL;
    tsq_space_list *none = NULL;
    tsq_space *owned = NULL;
    tsq_space *made[5];
    size_t seen = 0;
    for (size_t i = 0; i < 5; i++) {
        made[i] = make_space(service, "Row", true);
    }
    WORKS(tsq_spaces_get_public_spaces(client, 1000, 0, &all, &err));
    do {
        size_t len = tsq_space_list_len(page);
        const tsq_space *last = len > 0 ? tsq_space_list_at(page, len - 1) : NULL;
        tsq_space_list *next = NULL;
        if (last != NULL) {
            tsq_space_free(make_space(service, "Newer", true));
            WORKS(tsq_spaces_delete_space(service, last->id, &err));
        }
        WORKS(tsq_spaces_get_public_spaces_after(client, 2, last, &next, &err));
        tsq_space_list_free(page);
        page = next;
        for (size_t i = 0; i < tsq_space_list_len(page); i++, seen++) {
            CHECK(seen < tsq_space_list_len(all) && same(tsq_space_list_at(page, i)->id, tsq_space_list_at(all, seen)->id));
            CHECK(tsq_space_list_at(page, i)->owner == NULL || is(tsq_space_list_at(page, i)->owner->id, ADA));
        }
    } while (tsq_space_list_len(page) == 2);
    CHECK(seen == tsq_space_list_len(all));
    tsq_space_list_free(page);
    page = NULL;

    /* By id, and after a space of another call; both must be public now. */
    WORKS(tsq_spaces_get_public_spaces(client, 2, 0, &page, &err));
    WORKS(tsq_spaces_get_public_spaces_after_id(client, 1, tsq_space_list_at(page, 0)->id, &none, &err));
    CHECK(tsq_space_list_len(none) == 1 && same(tsq_space_list_at(none, 0)->id, tsq_space_list_at(page, 1)->id));
    tsq_space_list_free(none);
    WORKS(tsq_spaces_get_space(client, tsq_space_list_at(page, 0)->id, &owned, &err));
    WORKS(tsq_spaces_get_public_spaces_after(client, 1, owned, &none, &err));
    CHECK(tsq_space_list_len(none) == 1 && same(tsq_space_list_at(none, 0)->id, tsq_space_list_at(page, 1)->id));
    tsq_space_list_free(none);
    none = NULL;
    WORKS(tsq_spaces_delete_space(service, owned->id, &err));
    FAILS(tsq_spaces_get_public_spaces_after(client, 1, owned, &none, &err), TSQ_INVALID_INPUT, none,
          "Get public spaces failed: after names no public space: ");
    REFUSED(tsq_spaces_get_public_spaces_after_id(client, 1, TSQ_STR(NOBODY), &none, &err), TSQ_INVALID_INPUT, none,
            "Get public spaces failed: after names no public space: " NOBODY, NULL);
    FAILS(tsq_spaces_get_public_spaces_after_id(client, 1, TSQ_STR("x"), &none, &err), TSQ_INVALID_INPUT, none,
          "Get public spaces failed: Argument after is not a UUID");
    FAILS(tsq_spaces_get_public_spaces_after(client, 0, NULL, &none, &err), TSQ_INVALID_INPUT, none,
          "Get public spaces failed: limit is 1 to 1000");
    FAILS(tsq_spaces_get_public_spaces_after(NULL, 1, NULL, &none, &err), TSQ_INVALID_INPUT, none,
          "Get public spaces failed: Argument client is NULL");
    FAILS(tsq_spaces_get_public_spaces_after(client, 1, NULL, NULL, &err), TSQ_INVALID_INPUT, NULL,
          "Get public spaces failed: Argument out is NULL");
    tsq_space_free(owned);
    tsq_space_list_free(page);
    tsq_space_list_free(all);
    for (size_t i = 0; i < 5; i++) {
        tsq_space_free(made[i]);
    }
}

static void anonymous_writes_are_refused(const tsq_client *client, const tsq_client *service) {
    tsq_space *none = NULL;
    tsq_fidget *no = NULL;
    tsq_fidget_list *list = NULL;
    tsq_new_space made = no_space;
    tsq_new_fidget placed = no_fidget;
    tsq_space_patch patch = keep_space;
    tsq_space *hidden = make_space(service, "Cellar", false);
    made.name = TSQ_STR("Mine");
    made.owner_id = TSQ_STR(ADA);
    placed.kind = TSQ_STR("feed");
    patch.name = set("Taken");
    REFUSED(tsq_spaces_create_space(client, &made, &none, &err), TSQ_FORBIDDEN, none,
            "Create space failed: Database error: new row violates row-level security policy for table \"spaces\"", "42501");
    REFUSED(tsq_spaces_get_space(client, hidden->id, &none, &err), TSQ_NOT_FOUND, none,
            "Get space failed: Record not found", NULL);
    REFUSED(tsq_spaces_update_space(client, hidden->id, &patch, &none, &err), TSQ_NOT_FOUND, none,
            "Update space failed: Record not found", NULL);
    REFUSED(tsq_spaces_delete_space(client, hidden->id, &err), TSQ_NOT_FOUND, NULL,
            "Delete space failed: Record not found", NULL);
    FAILS(tsq_fidgets_create_fidget(client, hidden->id, &placed, &no, &err), TSQ_FORBIDDEN, no,
          "Create fidget failed: Database error: new row violates row-level security policy for table \"fidgets\"");
    WORKS(tsq_fidgets_get_space_fidgets(client, hidden->id, &list, &err));
    CHECK(tsq_fidget_list_len(list) == 0);
    tsq_fidget_list_free(list);
    REFUSED(tsq_communities_save_community_config(client, TSQ_STR("town"), &keep_community, NULL, &err), TSQ_UNAUTHORIZED, NULL,
            "Save community config failed: Database error: permission denied for table community_configs", "42501");
    REFUSED(tsq_communities_save_community_domain(client, TSQ_STR("town"), TSQ_STR("x.example"), TSQ_STR("custom"), NULL, &err),
            TSQ_UNAUTHORIZED, NULL,
            "Save community domain failed: Database error: permission denied for table community_domains", "42501");
    FAILS(tsq_communities_delete_community_domain(client, TSQ_STR("x.example"), &err), TSQ_UNAUTHORIZED, NULL, "permission denied");
    FAILS(tsq_communities_update_navigation(client, TSQ_STR("town"), absent, NULL, &err), TSQ_UNAUTHORIZED, NULL, "permission denied");
    WORKS(tsq_spaces_delete_space(service, hidden->id, &err));
    tsq_space_free(hidden);
}

static void invalid_arguments_are_named(const tsq_client *service) {
    tsq_space *none = NULL;
    tsq_fidget *no = NULL;
    tsq_new_space made = no_space;
    tsq_new_fidget placed = no_fidget;
    tsq_space_patch patch = keep_space;
    int odd = 7;
    REFUSED(tsq_spaces_create_space(service, &made, &none, &err), TSQ_FIELD_MISSING, none,
            "Create space failed: Required field is missing", "23502");
    made.name = TSQ_STR("Nowhere");
    made.owner_id = TSQ_STR(NOBODY);
    REFUSED(tsq_spaces_create_space(service, &made, &none, &err), TSQ_REFERENCE_MISSING, none,
            "Create space failed: Referenced record not found", "23503");
    made.name = TSQ_STR("nul\0nul");
    FAILS(tsq_spaces_create_space(service, &made, &none, &err), TSQ_INVALID_INPUT, none, "name contains a NUL");
    made.name = TSQ_STR("\xff");
    FAILS(tsq_spaces_create_space(service, &made, &none, &err), TSQ_INVALID_INPUT, none, "Argument space.name is not UTF-8 at byte 0");
    FAILS(tsq_spaces_create_space(NULL, &made, &none, &err), TSQ_INVALID_INPUT, none, "Argument client is NULL");
    FAILS(tsq_spaces_create_space(service, NULL, &none, &err), TSQ_INVALID_INPUT, none, "Argument space is NULL");
    FAILS(tsq_spaces_create_spaces(service, NULL, 1, sizeof(tsq_new_space), NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument spaces is NULL");
    FAILS(tsq_spaces_get_space(service, TSQ_STR("17"), &none, &err), TSQ_INVALID_INPUT, none, "Get space failed: Argument id is not a UUID");
    FAILS(tsq_spaces_get_space(service, absent, &none, &err), TSQ_INVALID_INPUT, none, "Argument id is not a UUID");
    FAILS(tsq_spaces_get_space(service, TSQ_STR(NOBODY), NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_spaces_update_space(service, TSQ_STR(NOBODY), NULL, &none, &err), TSQ_INVALID_INPUT, none, "Argument patch is NULL");
    memcpy(&patch.name.change, &odd, sizeof patch.name.change);
    FAILS(tsq_spaces_update_space(service, TSQ_STR(NOBODY), &patch, &none, &err), TSQ_INVALID_INPUT, none,
          "Argument patch.name has an unknown change 7");
    placed.kind = TSQ_STR("feed");
    REFUSED(tsq_fidgets_create_fidget(service, TSQ_STR(NOBODY), &placed, &no, &err), TSQ_REFERENCE_MISSING, no,
            "Create fidget failed: Referenced record not found", "23503");
    placed.config = TSQ_STR("{\"half\":");
    FAILS(tsq_fidgets_create_fidget(service, TSQ_STR(NOBODY), &placed, &no, &err), TSQ_INVALID_INPUT, no,
          "Create fidget failed: Argument fidget.config is not JSON: EOF");
    FAILS(tsq_communities_update_navigation(service, TSQ_STR("town"), TSQ_STR("'x'"), NULL, &err), TSQ_INVALID_INPUT, NULL,
          "Argument navigation_config is not JSON");
    CHECK(tsq_space_list_len(NULL) == 0 && tsq_space_list_at(NULL, 0) == NULL);
    CHECK(tsq_fidget_list_len(NULL) == 0 && tsq_fidget_list_at(NULL, 0) == NULL);
    tsq_space_free(NULL);
    tsq_space_list_free(NULL);
    tsq_fidget_free(NULL);
    tsq_fidget_list_free(NULL);
}

/* C may store any byte in a bool. */
#define CHOSEN "0f0f0f0f-0000-4000-8000-00000000000c"

/* Whether a call failed with this kind, row (-1: none) and column (NULL: none). Frees the error. */
static int refused_at(tsq_status got, tsq_status expected, int row, const char *column) {
    size_t found = 99;
    bool has_row = tsq_error_row(err, &found);
    int as_expected = got == expected && has_row == (row >= 0) && found == (row >= 0 ? (size_t)row : 0) &&
                      (column != NULL ? is(tsq_error_column(err), column) : is_absent(tsq_error_column(err)));
    tsq_error_free(err);
    err = NULL;
    return as_expected;
}

static void a_create_with_an_id_can_be_repeated(const tsq_client *client, const tsq_client *service) {
    tsq_space *space = NULL;
    tsq_space *again = NULL;
    tsq_fidget *fidget = NULL;
    tsq_fidget *same_fidget = NULL;
    tsq_new_space made = no_space;
    tsq_new_fidget placed = no_fidget;
    made.name = TSQ_STR("Chosen");
    made.id = TSQ_STR(CHOSEN);
    WORKS(tsq_spaces_create_space(service, &made, &space, &err));
    WORKS(tsq_spaces_create_space(service, &made, &again, &err));
    CHECK(is(space->id, CHOSEN) && same(again->id, space->id) && again->created_at == space->created_at);
    tsq_space_free(again);
    again = NULL;
    made.description = TSQ_STR("other");
    REFUSED(tsq_spaces_create_space(service, &made, &again, &err), TSQ_ALREADY_EXISTS, again,
            "Create space failed: Record already exists", "23505");
    made.id = TSQ_STR("no id");
    REFUSED(tsq_spaces_create_space(service, &made, &again, &err), TSQ_INVALID_INPUT, again,
            "Create space failed: Argument space.id is not a UUID", NULL);

    placed.kind = TSQ_STR("clock");
    placed.config = TSQ_STR("{\"speed\":1.50}");
    placed.id = TSQ_STR(CHOSEN);
    WORKS(tsq_fidgets_create_fidget(service, space->id, &placed, &fidget, &err));
    WORKS(tsq_fidgets_create_fidget(service, space->id, &placed, &same_fidget, &err));
    CHECK(is(fidget->id, CHOSEN) && same(fidget->id, same_fidget->id) && is(fidget->config, "{\"speed\":1.5}"));
    tsq_fidget_free(fidget);
    tsq_fidget_free(same_fidget);
    /* A stranger. */
    CHECK(tsq_fidgets_create_fidget(client, space->id, &placed, NULL, NULL) == TSQ_FORBIDDEN);
    WORKS(tsq_spaces_delete_space(service, space->id, &err));
    tsq_space_free(space);
}

static void rows_of_one_call_keep_their_order(const tsq_client *service) {
    enum { COUNT = 200 };
    static tsq_new_fidget placed[COUNT];
    static char kinds[COUNT][8];
    tsq_fidget_list *list = NULL;
    tsq_space *space = make_space(service, "Row", false);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(kinds[i], sizeof kinds[i], "%d", (int)i);
        placed[i].kind = tsq_str_from(kinds[i]);
    }
    WORKS(tsq_fidgets_create_fidgets(service, space->id, placed, COUNT, sizeof *placed, NULL, &err));
    WORKS(tsq_fidgets_get_space_fidgets(service, space->id, &list, &err));
    CHECK(tsq_fidget_list_len(list) == COUNT);
    for (size_t i = 0; i < tsq_fidget_list_len(list); i++) {
        CHECK(is(tsq_fidget_list_at(list, i)->kind, kinds[i]));
    }
    tsq_fidget_list_free(list);

    /* Errors name the row and the column. */
    placed[150].kind = absent;
    CHECK(refused_at(tsq_fidgets_create_fidgets(service, space->id, placed, COUNT, sizeof *placed, NULL, &err), TSQ_FIELD_MISSING, 150, "type"));
    CHECK(refused_at(tsq_fidgets_create_fidget(service, space->id, &placed[150], NULL, &err), TSQ_FIELD_MISSING, -1, "type"));
    placed[150].kind = TSQ_STR("\xff");
    CHECK(refused_at(tsq_fidgets_create_fidgets(service, space->id, placed, COUNT, sizeof *placed, NULL, &err), TSQ_INVALID_INPUT, 150, NULL));
    CHECK(!tsq_error_row(NULL, NULL) && is_absent(tsq_error_column(NULL)));
    WORKS(tsq_spaces_delete_space(service, space->id, &err));
    tsq_space_free(space);
}

static void numbers_that_would_change_and_large_values_are_refused(const tsq_client *service) {
    static const char *const numbers[] = {"18446744073709551616", "-9223372036854775809", "1e400", "0.10000000000000000001"};
    static char large[(1 << 20) + 1];
    tsq_fidget *none = NULL;
    tsq_new_fidget placed = no_fidget;
    tsq_space_patch patch = keep_space;
    tsq_space *space = make_space(service, "Numbers", true);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        placed.kind = TSQ_STR("x");
        placed.config = tsq_str_from(numbers[i]);
        FAILS(tsq_fidgets_create_fidget(service, space->id, &placed, &none, &err), TSQ_INVALID_INPUT, none,
              "Create fidget failed: Argument fidget.config has a");
    }
    memset(large, 'x', sizeof large);
    patch.name.change = TSQ_SET;
    patch.name.value.ptr = large;
    patch.name.value.len = sizeof large;
    REFUSED(tsq_spaces_update_space(service, space->id, &patch, NULL, &err), TSQ_TOO_LARGE, NULL,
            "Update space failed: name has 1048577 bytes; the limit, option max_name_size, is 1024", NULL);
    patch = keep_space;
    patch.is_public.change = TSQ_CLEAR;
    REFUSED(tsq_spaces_update_space(service, space->id, &patch, NULL, &err), TSQ_FIELD_MISSING, NULL,
            "Update space failed: Required field is missing", "23502");
    WORKS(tsq_spaces_delete_space(service, space->id, &err));
    tsq_space_free(space);
}

static void any_non_zero_byte_is_true(const tsq_client *service) {
    tsq_space *space = NULL;
    tsq_space *found = NULL;
    tsq_string *json = NULL;
    tsq_new_space made = no_space;
    tsq_space_patch patch = keep_space;
    unsigned char byte = 0;
    made.name = TSQ_STR("Byte");
    memset(&made.is_public, 0xff, 1);
    WORKS(tsq_spaces_create_space(service, &made, &space, &err));
    memcpy(&byte, &space->is_public, 1);
    CHECK(byte == 1);
    patch.is_public.change = TSQ_SET;
    memset(&patch.is_public.value, 0x80, 1);
    WORKS(tsq_spaces_update_space(service, space->id, &patch, NULL, &err));
    WORKS(tsq_spaces_get_space(service, space->id, &found, &err));
    memcpy(&byte, &found->is_public, 1);
    CHECK(byte == 1);
    WORKS(tsq_space_json(found, &json, &err));
    CHECK(has(tsq_string_view(json), "\"is_public\":true"));
    WORKS(tsq_spaces_delete_space(service, space->id, &err));
    tsq_string_free(json);
    tsq_space_free(found);
    tsq_space_free(space);
}

static void any_text_is_read_back_unchanged(const tsq_client *service) {
    static const char *const TEXTS[] = {
        "'; DROP TABLE spaces; --", "\"%_\\$1 ?1 :name @x", "\xf0\x9f\x8f\xa0 \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\r\n\t", ""};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        tsq_space *found = NULL;
        tsq_space *space = make_space(service, TEXTS[i], false);
        WORKS(tsq_spaces_get_space(service, space->id, &found, &err));
        CHECK(is(found->name, TEXTS[i]));
        WORKS(tsq_spaces_delete_space(service, space->id, &err));
        tsq_space_free(found);
        tsq_space_free(space);
    }
}

static void a_backup_is_restored(const tsq_client *client) {
    char copy[4096], other[4096];
    tsq_space_list *list = NULL;
    tsq_client *restored = NULL;
    snprintf(copy, sizeof copy, "%s/copy.db", folder);
    snprintf(other, sizeof other, "%s/restored", folder);
    WORKS(tsq_client_backup(client, tsq_str_from(copy), &err));
    FAILS(tsq_client_backup(client, tsq_str_from(copy), &err), TSQ_INVALID_INPUT, NULL, "Backup failed: ");
    FAILS(tsq_client_backup(NULL, tsq_str_from(copy), &err), TSQ_INVALID_INPUT, NULL, "Backup failed: Argument client is NULL");
    WORKS(tsq_restore(tsq_str_from(copy), tsq_str_from(other), &err));
    FAILS(tsq_restore(tsq_str_from(copy), tsq_str_from(other), &err), TSQ_CONFIG, NULL, "Restore failed: ");
    FAILS(tsq_restore(TSQ_STR("/no/such/copy"), tsq_str_from(other), &err), TSQ_CONFIG, NULL, "Restore failed: ");
    restored = open_client("restored");
    WORKS(tsq_spaces_get_public_spaces(restored, TSQ_DEFAULT_PAGE, 0, &list, &err));
    CHECK(tsq_space_list_len(list) == 2);
    tsq_space_list_free(list);
    tsq_client_free(restored);
}

static void closing_a_handle_of_another_caller_closes_it_alone(tsq_client *client, tsq_client *service) {
    tsq_space *none = NULL;
    tsq_space_list *list = NULL;
    tsq_client *other = NULL;
    tsq_client *of_other = NULL;
    tsq_space *kept = make_space(service, "Kept", false);
    WORKS(tsq_client_as_service(client, &other, &err));
    WORKS(tsq_client_close(other, &err));
    WORKS(tsq_client_close(other, &err));
    CHECK(tsq_client_is_closed(other) && !tsq_client_is_closed(service) && !tsq_client_is_closed(client));
    REFUSED(tsq_spaces_get_space(other, kept->id, &none, &err), TSQ_CLOSED, none, "Get space failed: The handle is closed", NULL);
    FAILS(tsq_client_as_service(other, &of_other, &err), TSQ_CLOSED, of_other, "The handle is closed");
    WORKS(tsq_spaces_get_space(service, kept->id, &none, &err));
    tsq_space_free(none);
    none = NULL;
    WORKS(tsq_spaces_get_public_spaces(client, 1, 0, &list, &err));
    tsq_space_list_free(list);

    /* An opened client closes for all its handles. */
    WORKS(tsq_client_close(client, &err));
    CHECK(tsq_client_is_closed(client) && tsq_client_is_closed(service));
    REFUSED(tsq_spaces_get_space(service, kept->id, &none, &err), TSQ_CLOSED, none, "Get space failed: The client is closed", NULL);
    tsq_client_free(other);
    other = NULL;
    FAILS(tsq_client_as_service(NULL, &other, &err), TSQ_INVALID_INPUT, other, "Argument client is NULL");
    tsq_client_free(service);
    tsq_client_free(client);
    CHECK(is(kept->name, "Kept"));
    tsq_space_free(kept);
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

    the_service_creates_reads_updates_and_deletes_spaces(service);
    fidgets_are_created_moved_changed_and_deleted(service);
    lists_of_spaces_contain_fidgets_or_owners(client, service);
    anonymous_writes_are_refused(client, service);
    invalid_arguments_are_named(service);
    a_create_with_an_id_can_be_repeated(client, service);
    rows_of_one_call_keep_their_order(service);
    numbers_that_would_change_and_large_values_are_refused(service);
    any_non_zero_byte_is_true(service);
    any_text_is_read_back_unchanged(service);
    a_backup_is_restored(client);
    pages_after_a_space_are_stable(client, service);
    closing_a_handle_of_another_caller_closes_it_alone(client, service);
    return checks_done("tables");
}
