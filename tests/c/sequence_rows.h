/* For call_sequences.c: operations on spaces, fidgets, communities and the rows of tables. */
#ifndef SEQUENCE_ROWS_H
#define SEQUENCE_ROWS_H

#include "sequence_arguments.h"
#include "sequence_handles.h"

static tsq_new_space draw_new_space(void) {
    static const char *const names[] = {"Harbor", "Caf\xc3\xa9", "x"};
    static unsigned spaces_named;
    static tsq_new_space none;
    tsq_new_space fresh = none;
    char id[40];
    fresh.name = USUAL(names);
    fresh.description = draw() % 2 == 0 ? absent : draw_text();
    fresh.owner_id = draw() % 4 < 3 ? absent : draw_id();
    draw_bool(&fresh.is_public);
    switch (draw() % 8) {
    case 0:
        /* An id of a deleted space is not free again: each is used once. */
        snprintf(id, sizeof id, "00000000-0000-4000-8000-%012x", ++spaces_named);
        fresh.id = lent_text(id);
        know(fresh.id);
        break;
    case 1:
        fresh.id = draw_id();
        break;
    default:
        break;
    }
    return fresh;
}

static void create_a_space(void) {
    const tsq_client *client = PICK(client);
    const tsq_new_space fresh = draw_new_space();
    const tsq_new_space *space = INPUT(new_space, fresh);
    MAKES(space, OPTIONAL, tsq_spaces_create_space(client, space, out, err));
    if (last_made != NULL) {
        know(((const tsq_space *)last_made->pointer)->id);
    }
}

static void create_spaces(void) {
    tsq_new_space fresh[3];
    const tsq_client *client = PICK(client);
    const size_t count = below(COUNT(fresh) + 1);
    for (size_t i = 0; i < count; i++) {
        fresh[i] = draw_new_space();
    }
    const tsq_new_space *spaces = count == 0 && draw() % 2 == 0 ? NULL : (tsq_new_space *)lend(fresh, sizeof fresh[0] * count);
    const size_t item_size = draw_item_size(sizeof fresh[0]);
    MAKES(space_list, OPTIONAL, tsq_spaces_create_spaces(client, spaces, count, item_size, out, err));
}

static void update_a_space(void) {
    static tsq_space_patch none;
    const tsq_client *client = PICK(client);
    const tsq_str id = draw_id();
    tsq_space_patch values = none;
    draw_change(&values.name);
    draw_change(&values.description);
    draw_enum(&values.is_public.change, 3);
    draw_bool(&values.is_public.value);
    const tsq_space_patch *patch = INPUT(space_patch, values);
    MAKES(space, OPTIONAL, tsq_spaces_update_space(client, id, patch, out, err));
}

static void read_spaces(void) {
    const tsq_client *client = PICK(client);
    const unsigned way = below(8);
    const tsq_str id = way < 6 ? draw_id() : absent;
    const uint32_t limit = draw_limit();
    const uint64_t offset = draw_number();
    const tsq_space *after = PICK(space);
    const tsq_space_list *page = PICK(space_list);
    switch (way) {
    case 0:
        MAKES(space, REQUIRED, tsq_spaces_get_space(client, id, out, err));
        break;
    case 1:
        MAKES(space, REQUIRED, tsq_spaces_get_space_with_fidgets(client, id, out, err));
        break;
    case 2:
        MAKES(space, REQUIRED, tsq_spaces_get_space_with_any_fidgets(client, id, out, err));
        break;
    case 3:
        MAKES(space_list, REQUIRED, tsq_spaces_get_user_spaces(client, id, out, err));
        break;
    case 4:
        MAKES(space_list, REQUIRED, tsq_spaces_list_spaces(client, limit, id, out, err));
        break;
    case 5:
        MAKES(space_list, REQUIRED, tsq_spaces_get_public_spaces_after_id(client, limit, id, out, err));
        break;
    case 6:
        MAKES(space_list, REQUIRED, tsq_spaces_get_public_spaces(client, limit, offset, out, err));
        break;
    default:
        if (after == NULL) {
            after = tsq_space_list_at(page, offset % 4);
        }
        MAKES(space_list, REQUIRED, tsq_spaces_get_public_spaces_after(client, limit, after, out, err));
        break;
    }
}

static void change_a_space(void) {
    const tsq_client *client = PICK(client);
    const tsq_str id = draw_id();
    if (draw() % 2 == 0) {
        DOES(tsq_spaces_delete_space(client, id, err));
    } else {
        const tsq_str owner = draw_id();
        MAKES(space, OPTIONAL, tsq_spaces_set_owner(client, id, owner, out, err));
    }
}

static tsq_new_fidget draw_new_fidget(void) {
    static const char *const kinds[] = {"text", "image", "x"};
    static tsq_new_fidget none;
    tsq_new_fidget fresh = none;
    fresh.kind = USUAL(kinds);
    fresh.config = draw_json();
    fresh.position = draw_json();
    fresh.id = draw() % 8 < 7 ? absent : draw_id();
    return fresh;
}

static void create_fidgets(void) {
    tsq_new_fidget fresh[3];
    const tsq_client *client = PICK(client);
    const tsq_str space_id = draw_id();
    const size_t count = below(COUNT(fresh) + 1);
    for (size_t i = 0; i < count; i++) {
        fresh[i] = draw_new_fidget();
    }
    if (count == 1) {
        const tsq_new_fidget *fidget = INPUT(new_fidget, fresh[0]);
        MAKES(fidget, OPTIONAL, tsq_fidgets_create_fidget(client, space_id, fidget, out, err));
        if (last_made != NULL) {
            know(((const tsq_fidget *)last_made->pointer)->id);
        }
    } else {
        const tsq_new_fidget *fidgets = count == 0 ? NULL : (tsq_new_fidget *)lend(fresh, sizeof fresh[0] * count);
        const size_t item_size = draw_item_size(sizeof fresh[0]);
        MAKES(fidget_list, OPTIONAL, tsq_fidgets_create_fidgets(client, space_id, fidgets, count, item_size, out, err));
    }
}

static void change_a_fidget(void) {
    static tsq_fidget_patch none;
    const tsq_client *client = PICK(client);
    const tsq_str id = draw_id();
    const unsigned way = below(4);
    if (way == 0) {
        DOES(tsq_fidgets_delete_fidget(client, id, err));
    } else if (way == 1) {
        tsq_position moved[2];
        const size_t count = below(COUNT(moved) + 1);
        for (size_t i = 0; i < count; i++) {
            moved[i].fidget_id = draw_id();
            moved[i].position = draw_json();
        }
        const tsq_position *positions = count == 0 ? NULL : (tsq_position *)lend(moved, sizeof moved[0] * count);
        MAKES(fidget_list, OPTIONAL, tsq_fidgets_save_positions(client, id, positions, count, out, err));
    } else {
        tsq_fidget_patch values = none;
        draw_change(&values.kind);
        draw_change(&values.config);
        draw_change(&values.position);
        const tsq_fidget_patch *patch = INPUT(fidget_patch, values);
        MAKES(fidget, OPTIONAL, tsq_fidgets_update_fidget(client, id, patch, out, err));
    }
}

static void read_fidgets(void) {
    const tsq_client *client = PICK(client);
    const tsq_str id = draw_id();
    const uint32_t limit = draw_limit();
    const tsq_fidget *after = PICK(fidget);
    switch (below(3)) {
    case 0:
        MAKES(fidget, REQUIRED, tsq_fidgets_get_fidget(client, id, out, err));
        break;
    case 1:
        MAKES(fidget_list, REQUIRED, tsq_fidgets_get_space_fidgets(client, id, out, err));
        break;
    default:
        MAKES(fidget_list, REQUIRED, tsq_fidgets_get_space_fidgets_after(client, id, limit, after, out, err));
        break;
    }
}

/* Communities and registrations cannot be deleted: inputs change the one of the set-up. */
static tsq_str draw_community(void) {
    static const char *const texts[] = {"town", "town", "town", "", "\xff", "012345678901234567890123456789012345678901234567890"};
    return lent_text(texts[below(COUNT(texts))]);
}

static void change_a_community(void) {
    static const char *const domains[] = {"town.example", "a.town.example", "TOWN.example:80", "x"};
    static const char *const types[] = {"custom", "blank_subdomain"};
    static tsq_community_patch none;
    const tsq_client *client = PICK(client);
    const tsq_str community = draw_community();
    const unsigned way = below(4);
    if (way == 0) {
        tsq_community_patch values = none;
        tsq_strs_change *keys = &values.admin_identity_public_keys;
        draw_change(&values.brand_config);
        draw_change(&values.ui_config);
        draw_change(&values.admin_email);
        draw_enum(&values.is_published.change, 3);
        draw_bool(&values.is_published.value);
        draw_enum(&keys->change, 3);
        keys->items = draw_texts(&keys->items_len, hostile, 8);
        is_refused = 0;
        const tsq_community_patch *patch = INPUT(community_patch, values);
        MAKES(community_config, OPTIONAL, tsq_communities_save_community_config(client, community, patch, out, err));
    } else if (way == 1) {
        const tsq_str json = draw_json();
        MAKES(community_config, OPTIONAL, tsq_communities_update_navigation(client, community, json, out, err));
    } else {
        const tsq_str domain = USUAL(domains);
        const tsq_str type = USUAL(types);
        if (way == 2) {
            MAKES(community_domain, OPTIONAL, tsq_communities_save_community_domain(client, community, domain, type, out, err));
        } else {
            DOES(tsq_communities_delete_community_domain(client, domain, err));
        }
    }
}

static void read_communities(void) {
    static const char *const hosts[] = {"town.example", "A.town.example.:443", "localhost", "town"};
    static const char *const types[] = {"profile", "token"};
    static tsq_new_registration none;
    tsq_new_registration values = none;
    const tsq_client *client = PICK(client);
    const unsigned way = below(7);
    const uint32_t limit = draw_limit();
    const tsq_str text = way < 2 ? USUAL(hosts) : way == 2 ? draw_id() : absent;
    const tsq_str after = way == 3 || way == 4 ? draw_text() : absent;
    switch (way) {
    case 0:
        MAKES(string, PERHAPS, tsq_communities_get_active_community_config(client, text, out, err));
        break;
    case 1:
        MAKES(string, PERHAPS, tsq_communities_resolve_community(client, text, out, err));
        break;
    case 2:
        MAKES(space_registration, PERHAPS, tsq_communities_get_space_registration(client, text, out, err));
        break;
    case 3:
        MAKES(community_config_list, REQUIRED, tsq_communities_list_community_configs(client, limit, after, out, err));
        break;
    case 4:
        MAKES(community_domain_list, REQUIRED, tsq_communities_list_community_domains(client, limit, after, out, err));
        break;
    case 5:
        MAKES(space_registration_list, REQUIRED, tsq_communities_list_space_registrations(client, limit, absent, out, err));
        break;
    default:
        values.space_id = TSQ_STR("00000000-0000-4000-8000-0000000000ee");
        values.space_name = draw_text();
        values.space_type = USUAL(types);
        values.fid = draw() % 2 == 0 ? NULL : (const int32_t *)lend("1234", 4);
        values.signature = draw_text();
        {
            const tsq_new_registration *registration = INPUT(new_registration, values);
            MAKES(space_registration, OPTIONAL, tsq_communities_register_space(client, registration, out, err));
        }
        break;
    }
}

#define EVE                                                                                                     \
    "[{\"id\":\"00000000-0000-4000-8000-00000000f00d\",\"email\":\"eve@example.com\","                              \
    "\"created_at\":\"2026-01-01T00:00:00.000000Z\",\"updated_at\":\"2026-01-01T00:00:00.000000Z\"}]"

/* Rows as an export shows them. */
static void move_rows(void) {
    static const char *const tables[] = {"spaces", "fidgets", "users", "community_configs", "community_domains", "spaceRegistrations"};
    static const char *const rows[] = {EVE, "[]", "[{}]", EVE, "[{\"id\":1}]", "{}", "[null]"};
    const tsq_client *client = PICK(client);
    tsq_row_export *exported = PICK(row_export);
    const unsigned way = below(3);
    if (way == 0) {
        size_t count;
        const tsq_str *names = draw_texts(&count, tables, COUNT(tables));
        MAKES(row_export, REQUIRED, tsq_client_export_rows(client, names, count, out, err));
    } else if (way == 1 && exported == NULL && draw() % 4 < 3) {
        MAKES(row_export, REQUIRED, tsq_client_export_rows(client, NULL, 0, out, err));
    } else if (way == 1) {
        MAKES(exported_row, PERHAPS, tsq_row_export_next(exported, out, err));
    } else {
        tsq_str table = USUAL(tables);
        const tsq_exported_row *row = PICK(exported_row);
        tsq_str values = USUAL(rows);
        if (row != NULL) {
            char text[2048];
            snprintf(text, sizeof text, "[%.*s]", TSQ_ARG(row->values));
            values = lent_text(text);
            table = lent(row->table.ptr, row->table.len);
            is_refused = 0;
        }
        const bool dry_run = draw() % 4 != 3;
        MAKES(row_import_report, OPTIONAL, tsq_client_import_rows(client, table, values, dry_run, out, err));
    }
}

#endif
