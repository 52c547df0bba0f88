/* For call_sequences.c: operations on users, sessions and identities. */
#ifndef SEQUENCE_USERS_H
#define SEQUENCE_USERS_H

#include "sequence_clients.h"

#include <time.h>

static void read_users(void) {
    static const char *const addresses[] = {"ada@example.com", "ADA@example.com", "nobody@example.com"};
    const tsq_client *client = PICK(client);
    const unsigned way = below(9);
    const tsq_str id = way > 3 && way < 8 ? draw_id() : absent;
    const tsq_str address = way < 2 ? USUAL(addresses) : absent;
    const uint32_t limit = draw_limit();
    switch (way) {
    case 0:
        MAKES(user, PERHAPS, tsq_auth_find_user(client, address, out, err));
        break;
    case 1:
        MAKES(string, PERHAPS, tsq_auth_create_recovery_token(client, address, out, err));
        break;
    case 2:
        MAKES(session, PERHAPS, tsq_auth_get_session(client, out, err));
        break;
    case 3:
        MAKES(identities, REQUIRED, tsq_auth_identities(client, out, err));
        break;
    case 4:
        MAKES(identities, REQUIRED, tsq_auth_identities_of(client, id, out, err));
        break;
    case 5:
        MAKES(user_list, REQUIRED, tsq_auth_list_users(client, limit, id, out, err));
        break;
    case 6:
        MAKES(session_infos, REQUIRED, tsq_auth_sessions_of(client, id, out, err));
        if (last_made != NULL && tsq_session_infos_len((const tsq_session_infos *)last_made->pointer) > 0) {
            know(tsq_session_infos_at((const tsq_session_infos *)last_made->pointer, 0)->id);
        }
        break;
    case 7:
        MAKES(string, REQUIRED, tsq_auth_create_verification_token(client, id, out, err));
        break;
    default:
        MAKES(string, REQUIRED, tsq_auth_identity_audience(client, out, err));
        break;
    }
}

/* No call that hashes a password. */
static void change_a_user(void) {
    static const char *const keys[] = {"0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20", "00"};
    static tsq_new_credential no_credential;
    tsq_new_credential credential = no_credential;
    const tsq_client *client = PICK(client);
    const unsigned way = below(8);
    const tsq_str id = draw_id();
    const int64_t moment = draw() % 2 == 0 ? (int64_t)time(NULL) * 1000000 : (int64_t)draw_number();
    tsq_str text = draw_returned();
    if ((way == 4 || way == 5) && draw() % 2 == 0) {
        text = lent(session->refresh_token.ptr, session->refresh_token.len);
        is_session_changed = 1;
    }
    /* Not every call takes all of them. */
    is_refused = 0;
    switch (way) {
    case 0: {
        const tsq_str key = USUAL(keys);
        const tsq_str audience = draw_returned();
        MAKES(string, REQUIRED, tsq_identity_claim(id, key, audience, moment, out, err));
        break;
    }
    case 1:
        DOES(tsq_auth_link_identity(client, text, err));
        break;
    case 2:
        DOES(tsq_auth_unlink_identity(client, text, err));
        break;
    case 3:
        MAKES(user, OPTIONAL, tsq_auth_verify_email(client, text, out, err));
        break;
    case 4:
        MAKES(session, REQUIRED, tsq_auth_refresh_session_of(client, text, out, err));
        break;
    case 5:
        if (is_own(client)) {
            MAKES(session, OPTIONAL, tsq_auth_set_session(client, text, out, err));
        }
        break;
    case 6: {
        credential.user_id = draw() % 2 == 0 ? id : absent;
        credential.email = text;
        credential.password_hash = draw_text();
        const tsq_new_credential *rows = (const tsq_new_credential *)lend(&credential, sizeof credential);
        const size_t item_size = draw_item_size(sizeof credential);
        MAKES(import_report, OPTIONAL, tsq_auth_import_credentials(client, rows, 1, item_size, out, err));
        break;
    }
    default:
        if (draw() % 2 == 0) {
            text = lent_text("00000000-0000-4000-8000-00000000f00d");
        }
        /* Not the user of the set-up: to sign up again takes long. */
        if (text.len != 36 || text.ptr == NULL || memcmp(text.ptr, ids[0], 36) != 0) {
            DOES(tsq_auth_delete_user(client, text, err));
        }
        break;
    }
}

/* Ends sessions, also the one of the set-up. */
static void end_a_session(void) {
    const tsq_client *client = PICK(client);
    const unsigned way = below(5);
    const tsq_str id = draw_id();
    const tsq_str session_id = draw_id();
    tsq_sign_out_scope scope;
    uint64_t ended;
    draw_enum(&scope, 3);
    is_session_changed = 1;
    is_refused = 0;
    switch (way) {
    case 0:
        DOES(tsq_auth_sign_out(client, err));
        break;
    case 1:
        DOES(tsq_auth_sign_out_scope(client, scope, err));
        break;
    case 2:
        DOES(tsq_auth_end_session(client, id, session_id, err));
        break;
    case 3:
        COUNTS(uint64_t, ended, tsq_auth_end_sessions(client, id, out, err));
        MUST(ended < 8);
        break;
    default:
        MAKES(session, OPTIONAL, tsq_auth_refresh_session(client, out, err));
        break;
    }
}

/* Calls with a password that fail before it is hashed. */
static void use_a_password(void) {
    static tsq_user_patch none;
    tsq_user_patch values = none;
    const tsq_client *client = PICK(client);
    const unsigned way = below(6);
    const tsq_str text = draw_returned();
    const tsq_str password = lent_text("short");
    is_refused = 1;
    values.password = password;
    switch (way) {
    case 0:
        MAKES(user, OPTIONAL, tsq_auth_sign_up(client, text, password, out, err));
        break;
    case 1:
        DOES(tsq_auth_set_password(client, text, password, err));
        break;
    case 2:
        MAKES(session, OPTIONAL, tsq_auth_recover(client, text, password, out, err));
        break;
    case 3:
        MAKES(session, OPTIONAL, tsq_auth_sign_in(NULL, text, password, out, err));
        break;
    case 4:
        DOES(tsq_auth_delete_own_user(NULL, text, err));
        break;
    default: {
        const tsq_user_patch *patch = INPUT(user_patch, values);
        MAKES(user, OPTIONAL, tsq_auth_update_user(NULL, text, patch, out, err));
        break;
    }
    }
}

#endif
