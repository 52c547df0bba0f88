/* Accounts and sessions from C (DESIGN 8, 10; SPEC 5.3, 7). Also compiled as C++: keep to the common subset.
 *
 * auth CATALOG FOLDER: the folder is empty and belongs to this program; the catalog is not read. */
#include "people.h"

#define ANN "ann@town.example"
#define BOB "bob@town.example"

#define ENDED "Session has ended"

/* Zeroed inputs as static variables, because C spells a zeroed local {0} and C++ {}. */
static tsq_user_patch keep_user;
static tsq_new_space no_space;

/* The byte 0xff occurs in no UTF-8 text. */
static const tsq_str not_utf8 = {"horse\xff", 6};

static void sign_up_does_not_sign_in(const tsq_client *client) {
    tsq_user *user = NULL;
    tsq_session *session = NULL;
    tsq_string *json = NULL;
    WORKS(tsq_auth_sign_up(client, TSQ_STR("  Ann@Town.Example "), TSQ_STR(PASSWORD), &user, &err));
    CHECK(user->id.len == 36 && is(user->email, ANN));
    CHECK(user->created_at > 0 && user->updated_at == user->created_at);
    WORKS(tsq_user_json(user, &json, &err));
    CHECK(has(tsq_string_view(json), "\"email\":\"" ANN "\"") && has(tsq_string_view(json), "\"id\":\""));
    CHECK(has(tsq_string_view(json), "\"created_at\":\""));
    tsq_string_free(json);
    tsq_user_free(user);
    user = NULL;
    WORKS(tsq_auth_get_session(client, &session, &err));
    CHECK(session == NULL);
    WORKS(tsq_auth_sign_out(client, &err));
    REFUSED(tsq_auth_refresh_session(client, &session, &err), TSQ_UNAUTHORIZED, session,
            "Refresh session failed: Nobody is signed in", NULL);

    REFUSED(tsq_auth_sign_up(client, TSQ_STR("ANN@town.example"), TSQ_STR(PASSWORD), &user, &err), TSQ_ALREADY_EXISTS, user,
            "Sign up failed: Record already exists", "23505");
    FAILS(tsq_auth_sign_up(client, TSQ_STR("ann"), TSQ_STR(PASSWORD), &user, &err), TSQ_INVALID_INPUT, user, "Sign up failed: ");
    REFUSED(tsq_auth_sign_up(client, TSQ_STR(BOB), TSQ_STR("1234567"), &user, &err), TSQ_INVALID_INPUT, user,
            "Sign up failed: password is 8 to 1024 bytes long", NULL);
    WORKS(tsq_auth_sign_up(client, TSQ_STR(BOB), TSQ_STR(PASSWORD), NULL, &err));
}

static void a_session_has_two_tokens_and_a_user(const tsq_client *client) {
    tsq_session *session = NULL;
    tsq_session *found = NULL;
    tsq_string *json = NULL;
    tsq_str token;
    WORKS(tsq_auth_sign_in(client, TSQ_STR(" ANN@town.example"), TSQ_STR(PASSWORD), &session, &err));
    token = session->access_token;
    CHECK(token.len == 68 && memcmp(token.ptr, "tsa_", 4) == 0);
    token = session->refresh_token;
    CHECK(token.len == 68 && memcmp(token.ptr, "tsr_", 4) == 0);
    CHECK(session->expires_at > now() + (int64_t)59 * 60 * 1000000);
    CHECK(session->expires_at <= now() + (int64_t)61 * 60 * 1000000);
    CHECK(is(session->user->email, ANN));
    WORKS(tsq_session_json(session, &json, &err));
    CHECK(has(tsq_string_view(json), "{\"access_token\":\"tsa_") && has(tsq_string_view(json), "\"refresh_token\":\"tsr_"));
    CHECK(has(tsq_string_view(json), "\"user\":{\"id\":\"") && has(tsq_string_view(json), "\"expires_at\":\""));
    tsq_string_free(json);
    WORKS(tsq_auth_get_session(client, &found, &err));
    CHECK(is(found->access_token, keep(session->access_token).text));
    CHECK(is(id_of(found), keep(id_of(session)).text));
    tsq_session_free(found);
    tsq_session_free(session);
    WORKS(tsq_auth_sign_out(client, &err));
}

static void a_private_space_is_visible_to_its_owner_only(const tsq_client *client, const tsq_client *service) {
    kept space;
    tsq_space *made = NULL;
    tsq_session *session = NULL;
    tsq_client *ann = NULL;
    tsq_client *bob = NULL;
    tsq_new_space harbour = no_space;
    harbour.name = TSQ_STR("Harbour");
    WORKS(tsq_auth_sign_in(client, TSQ_STR(ANN), TSQ_STR(PASSWORD), &session, &err));
    WORKS(tsq_spaces_create_space(client, &harbour, &made, &err));
    CHECK(is(made->owner_id, keep(id_of(session)).text));
    space = keep(made->id);
    tsq_space_free(made);
    made = NULL;

    ann = act_as(service, session);
    tsq_session_free(session);
    WORKS(tsq_spaces_get_space(ann, of(&space), &made, &err));
    CHECK(is(made->name, "Harbour"));
    tsq_space_free(made);
    made = NULL;
    /* A sign-in on a handle with a fixed caller only creates a session. */
    WORKS(tsq_auth_sign_in(ann, TSQ_STR(BOB), TSQ_STR(PASSWORD), &session, &err));
    bob = act_as(client, session);
    REFUSED(tsq_spaces_get_space(bob, of(&space), &made, &err), TSQ_NOT_FOUND, made, "Get space failed: Record not found", NULL);
    WORKS(tsq_spaces_get_space(ann, of(&space), &made, &err));
    tsq_space_free(made);
    made = NULL;

    /* After sign-out this handle is anonymous; other handles of the session fail. */
    WORKS(tsq_auth_sign_out(client, &err));
    REFUSED(tsq_spaces_get_space(client, of(&space), &made, &err), TSQ_NOT_FOUND, made, "Get space failed: Record not found", NULL);
    REFUSED(tsq_spaces_get_space(ann, of(&space), &made, &err), TSQ_UNAUTHORIZED, made, "Get space failed: " ENDED, NULL);
    REFUSED(tsq_spaces_get_space(bob, of(&space), &made, &err), TSQ_NOT_FOUND, made, "Get space failed: Record not found", NULL);
    WORKS(tsq_spaces_delete_space(service, of(&space), &err));
    tsq_session_free(session);
    tsq_client_free(bob);
    tsq_client_free(ann);
}

static void a_wrong_password_and_an_unknown_address_fail_alike(const tsq_client *client) {
    tsq_session *session = NULL;
    const char *sentence = "Sign in failed: Invalid login credentials";
    REFUSED(tsq_auth_sign_in(client, TSQ_STR(ANN), TSQ_STR(WRONG_PASSWORD), &session, &err), TSQ_UNAUTHORIZED, session, sentence, NULL);
    REFUSED(tsq_auth_sign_in(client, TSQ_STR("cyd@town.example"), TSQ_STR(PASSWORD), &session, &err), TSQ_UNAUTHORIZED, session,
            sentence, NULL);
    /* The absent text reads as the empty text. */
    REFUSED(tsq_auth_sign_in(client, absent, absent, &session, &err), TSQ_UNAUTHORIZED, session, sentence, NULL);
}

static void the_eleventh_failed_sign_in_is_rate_limited(const tsq_client *client) {
    uint64_t wait = 0;
    tsq_session *session = NULL;
    for (int i = 0; i < 10; i++) {
        FAILS(tsq_auth_sign_in(client, TSQ_STR("dan@town.example"), TSQ_STR(WRONG_PASSWORD), &session, &err), TSQ_UNAUTHORIZED,
              session, "Sign in failed: Invalid login credentials");
    }
    CHECK(tsq_auth_sign_in(client, TSQ_STR("Dan@town.example"), TSQ_STR(WRONG_PASSWORD), &session, &err) == TSQ_RATE_LIMITED);
    CHECK(has(tsq_error_text(err), "Sign in failed: Too many failed attempts; try again in "));
    CHECK(tsq_error_retry_after_ms(err, &wait) && wait > 0 && wait <= 30000);
    CHECK(tsq_error_is_retryable(err) && is(tsq_error_operation(err), "sign_in"));
    tsq_error_free(err);
    err = NULL;
}

static void refreshing_invalidates_both_old_tokens(const tsq_client *client, const tsq_client *service) {
    kept access, refresh;
    tsq_client *handle = NULL;
    tsq_session *session = NULL;
    WORKS(tsq_auth_sign_in(client, TSQ_STR(ANN), TSQ_STR(PASSWORD), &session, &err));
    access = keep(session->access_token);
    refresh = keep(session->refresh_token);
    tsq_session_free(session);
    WORKS(tsq_auth_refresh_session(client, &session, &err));
    REFUSED(tsq_client_as_user(client, of(&access), &handle, &err), TSQ_UNAUTHORIZED, handle, "Act as user failed: " ENDED, NULL);
    handle = act_as(client, session);
    tsq_client_free(handle);
    handle = NULL;
    tsq_session_free(session);
    session = NULL;
    WORKS(tsq_auth_refresh_session(client, NULL, &err));

    /* Reuse of an old refresh token ends the session in every handle. */
    REFUSED(tsq_auth_refresh_session_of(service, of(&refresh), &session, &err), TSQ_UNAUTHORIZED, session,
            "Refresh session failed: " ENDED, NULL);
    WORKS(tsq_auth_get_session(client, &session, &err));
    CHECK(session == NULL);
    FAILS(tsq_auth_refresh_session_of(service, TSQ_STR("tsr_unheard-of"), &session, &err), TSQ_UNAUTHORIZED, session,
          "Refresh session failed: ");
    FAILS(tsq_client_as_user(service, TSQ_STR(""), &handle, &err), TSQ_UNAUTHORIZED, handle, "Act as user failed: ");
}

static void set_session_resumes_a_stored_session(const tsq_client *client, const tsq_client *service) {
    kept refresh;
    tsq_session *session = NULL;
    tsq_session *taken = NULL;
    tsq_client *handle = NULL;
    WORKS(tsq_auth_sign_in(service, TSQ_STR(ANN), TSQ_STR(PASSWORD), &session, &err));
    refresh = keep(session->refresh_token);
    tsq_session_free(session);
    WORKS(tsq_auth_refresh_session_of(service, of(&refresh), &session, &err));
    WORKS(tsq_auth_set_session(client, session->refresh_token, &taken, &err));
    CHECK(is(taken->user->email, ANN));
    tsq_session_free(session);
    session = NULL;
    handle = act_as(client, taken);
    FAILS(tsq_auth_set_session(handle, taken->refresh_token, &session, &err), TSQ_INVALID_INPUT, session,
          "Set session failed: This handle has a fixed caller");
    WORKS(tsq_auth_get_session(handle, &session, &err));
    CHECK(is(session->refresh_token, ""));
    tsq_session_free(session);
    session = NULL;
    FAILS(tsq_auth_set_session(client, TSQ_STR("tsr_unheard-of"), &session, &err), TSQ_UNAUTHORIZED, session, "Set session failed: ");
    tsq_client_free(handle);
    tsq_session_free(taken);
    WORKS(tsq_auth_sign_out(client, &err));
}

static void update_user_needs_the_current_password(const tsq_client *client, const tsq_client *service) {
    tsq_user *user = NULL;
    tsq_session *elsewhere = NULL;
    tsq_client *handle = NULL;
    tsq_space_list *spaces = NULL;
    tsq_user_patch patch = keep_user;
    patch.email = TSQ_STR("Bobby@town.example");
    patch.password = TSQ_STR("another horse");
    REFUSED(tsq_auth_update_user(client, TSQ_STR(PASSWORD), &patch, &user, &err), TSQ_UNAUTHORIZED, user,
            "Update user failed: Nobody is signed in", NULL);
    WORKS(tsq_auth_sign_in(service, TSQ_STR(BOB), TSQ_STR(PASSWORD), &elsewhere, &err));
    handle = act_as(service, elsewhere);
    tsq_session_free(elsewhere);
    WORKS(tsq_auth_sign_in(client, TSQ_STR(BOB), TSQ_STR(PASSWORD), NULL, &err));
    REFUSED(tsq_auth_update_user(client, TSQ_STR(WRONG_PASSWORD), &patch, &user, &err), TSQ_UNAUTHORIZED, user,
            "Update user failed: Invalid login credentials", NULL);
    WORKS(tsq_auth_update_user(client, TSQ_STR(PASSWORD), &patch, &user, &err));
    CHECK(is(user->email, "bobby@town.example") && user->updated_at > user->created_at);
    tsq_user_free(user);
    user = NULL;
    /* update_user ends the other sessions. */
    REFUSED(tsq_spaces_get_public_spaces(handle, TSQ_DEFAULT_PAGE, 0, &spaces, &err), TSQ_UNAUTHORIZED, spaces,
            "Get public spaces failed: " ENDED, NULL);
    WORKS(tsq_auth_update_user(client, TSQ_STR("another horse"), &keep_user, NULL, &err));
    patch = keep_user;
    patch.email = TSQ_STR(ANN);
    REFUSED(tsq_auth_update_user(client, TSQ_STR("another horse"), &patch, &user, &err), TSQ_ALREADY_EXISTS, user,
            "Update user failed: Record already exists", "23505");
    patch.email = not_utf8;
    FAILS(tsq_auth_update_user(client, TSQ_STR("another horse"), &patch, &user, &err), TSQ_INVALID_INPUT, user,
          "Update user failed: Argument patch.email is not UTF-8 at byte 5");
    FAILS(tsq_auth_update_user(client, TSQ_STR("another horse"), NULL, &user, &err), TSQ_INVALID_INPUT, user, "Argument patch is NULL");

    REFUSED(tsq_auth_delete_own_user(client, TSQ_STR(PASSWORD), &err), TSQ_UNAUTHORIZED, NULL,
            "Delete user failed: Invalid login credentials", NULL);
    WORKS(tsq_auth_delete_own_user(client, TSQ_STR("another horse"), &err));
    REFUSED(tsq_auth_delete_own_user(client, TSQ_STR("another horse"), &err), TSQ_UNAUTHORIZED, NULL,
            "Delete user failed: Nobody is signed in", NULL);
    tsq_client_free(handle);
}

static void the_service_deletes_any_user(const tsq_client *client, const tsq_client *service) {
    tsq_session *session = meet(service, "eve@town.example");
    tsq_client *eve = act_as(client, session);
    tsq_session *found = NULL;
    WORKS(tsq_auth_delete_user(service, id_of(session), &err));
    REFUSED(tsq_auth_delete_user(service, id_of(session), &err), TSQ_NOT_FOUND, NULL, "Delete user failed: Record not found", NULL);
    FAILS(tsq_auth_delete_user(service, TSQ_STR("eve"), &err), TSQ_INVALID_INPUT, NULL,
          "Delete user failed: Argument user_id is not a UUID");
    WORKS(tsq_auth_get_session(eve, &found, &err));
    CHECK(found == NULL);
    tsq_client_free(eve);
    tsq_session_free(session);
}

static void sign_out_scopes_end_their_sessions(const tsq_client *client, const tsq_client *service) {
    tsq_session *session = meet(service, "ida@town.example");
    tsq_client *ida = act_as(client, session);
    tsq_session *found = NULL;
    int unknown = 7;
    tsq_sign_out_scope scope;
    WORKS(tsq_auth_sign_out_scope(client, TSQ_SIGN_OUT_GLOBAL, &err));
    WORKS(tsq_auth_sign_in(client, TSQ_STR("ida@town.example"), TSQ_STR(PASSWORD), NULL, &err));
    WORKS(tsq_auth_sign_out_scope(client, TSQ_SIGN_OUT_OTHERS, &err));
    REFUSED(tsq_auth_sign_out_scope(ida, TSQ_SIGN_OUT_OTHERS, &err), TSQ_UNAUTHORIZED, NULL, "Sign out failed: " ENDED, NULL);
    WORKS(tsq_auth_get_session(client, &found, &err));
    CHECK(found != NULL);
    tsq_session_free(found);
    tsq_session_free(session);
    WORKS(tsq_auth_sign_in(service, TSQ_STR("ida@town.example"), TSQ_STR(PASSWORD), &session, &err));
    memcpy(&scope, &unknown, sizeof scope);
    REFUSED(tsq_auth_sign_out_scope(client, scope, &err), TSQ_INVALID_INPUT, NULL,
            "Sign out failed: Argument scope has an unknown value 7", NULL);
    WORKS(tsq_auth_sign_out_scope(client, TSQ_SIGN_OUT_GLOBAL, &err));
    tsq_client_free(ida);
    ida = NULL;
    REFUSED(tsq_client_as_user(client, session->access_token, &ida, &err), TSQ_UNAUTHORIZED, ida, "Act as user failed: " ENDED, NULL);
    tsq_session_free(session);
}

static void a_mailed_token_recovers_and_verifies(const tsq_client *client, const tsq_client *service) {
    tsq_session *session = meet(service, "joy@town.example");
    tsq_session *recovered = NULL;
    tsq_session *none = NULL;
    tsq_user *user = NULL;
    tsq_string *token = NULL;
    kept id = keep(id_of(session));
    /* A handle with a client key has limits of its own and the caller of its client. */
    tsq_client *peer = NULL;
    tsq_session *handed_out = NULL;
    WORKS(tsq_client_with_client_key(service, TSQ_STR("203.0.113.7"), &peer, &err));
    WORKS(tsq_auth_create_session(peer, TSQ_STR("joy@town.example"), TSQ_STR(PASSWORD), &handed_out, &err));
    CHECK(is(handed_out->user->email, "joy@town.example"));
    tsq_session_free(handed_out);
    handed_out = NULL;
    for (int guess = 0; guess < 10; guess++) {
        REFUSED(tsq_auth_create_session(service, TSQ_STR("joy@town.example"), TSQ_STR(WRONG_PASSWORD), &handed_out, &err),
                TSQ_UNAUTHORIZED, handed_out, "Sign in failed: Invalid login credentials", NULL);
    }
    REFUSED(tsq_auth_create_session(service, TSQ_STR("joy@town.example"), TSQ_STR(PASSWORD), &handed_out, &err),
            TSQ_RATE_LIMITED, handed_out, "Sign in failed: Too many failed attempts; try again in 30 s", NULL);
    WORKS(tsq_auth_create_session(peer, TSQ_STR("joy@town.example"), TSQ_STR(PASSWORD), &handed_out, &err));
    tsq_session_free(handed_out);
    /* SQLite has no replicas, so nothing has a position; a text that is none is refused all the same. */
    tsq_string *position = NULL;
    WORKS(tsq_client_read_position(service, &position, &err));
    CHECK(tsq_string_view(position).len == 0);
    WORKS(tsq_client_read_after(peer, tsq_string_view(position), &err));
    WORKS(tsq_client_read_after(peer, TSQ_STR("6b0f-1-16b3748"), &err));
    tsq_string_free(position);
    CHECK(tsq_client_read_after(peer, TSQ_STR("yesterday"), &err) == TSQ_INVALID_INPUT);
    CHECK(has(tsq_error_text(err), "Read after failed: "));
    tsq_error_free(err);
    err = NULL;
    tsq_client_free(peer);
    CHECK(!session->user->has_email_verified_at && session->user->email_verified_at == 0);
    WORKS(tsq_auth_create_recovery_token(service, TSQ_STR("nobody@town.example"), &token, &err));
    CHECK(token == NULL);
    REFUSED(tsq_auth_create_recovery_token(client, TSQ_STR("joy@town.example"), &token, &err), TSQ_UNAUTHORIZED, token,
            "Create recovery token failed: Database error: permission denied for table users", "42501");
    WORKS(tsq_auth_create_recovery_token(service, TSQ_STR("joy@town.example"), &token, &err));
    WORKS(tsq_auth_recover(client, tsq_string_view(token), TSQ_STR("another horse"), &recovered, &err));
    CHECK(is(recovered->user->email, "joy@town.example"));
    REFUSED(tsq_auth_recover(client, tsq_string_view(token), TSQ_STR("another horse"), &none, &err), TSQ_UNAUTHORIZED, none,
            "Recover failed: The recovery token is not valid", NULL);
    tsq_string_free(token);
    token = NULL;
    tsq_session_free(recovered);
    tsq_session_free(session);

    REFUSED(tsq_auth_create_verification_token(client, of(&id), &token, &err), TSQ_FORBIDDEN, token,
            "Create verification token failed: Database error: permission denied for table users", "42501");
    WORKS(tsq_auth_create_verification_token(service, of(&id), &token, &err));
    WORKS(tsq_auth_verify_email(client, tsq_string_view(token), &user, &err));
    CHECK(user->has_email_verified_at && user->email_verified_at > user->created_at);
    tsq_user_free(user);
    user = NULL;
    REFUSED(tsq_auth_verify_email(client, tsq_string_view(token), &user, &err), TSQ_UNAUTHORIZED, user,
            "Verify email failed: The verification token is not valid", NULL);
    tsq_string_free(token);
    WORKS(tsq_auth_sign_out(client, &err));
}

static void the_service_finds_users_and_sets_passwords(const tsq_client *client, const tsq_client *service) {
    tsq_session *session = meet(service, "kim@town.example");
    tsq_session *found = NULL;
    tsq_user *user = NULL;
    tsq_client *kim = act_as(client, session);
    WORKS(tsq_auth_find_user(service, TSQ_STR(" KIM@town.example"), &user, &err));
    CHECK(is(user->id, keep(id_of(session)).text));
    tsq_user_free(user);
    user = NULL;
    WORKS(tsq_auth_find_user(service, TSQ_STR("nobody@town.example"), &user, &err));
    CHECK(user == NULL);
    FAILS(tsq_auth_find_user(kim, TSQ_STR("kim@town.example"), &user, &err), TSQ_FORBIDDEN, user, "Find user failed: ");
    FAILS(tsq_auth_set_password(kim, id_of(session), TSQ_STR("another horse"), &err), TSQ_FORBIDDEN, NULL, "Set password failed: ");
    FAILS(tsq_auth_set_password(service, TSQ_STR("kim"), TSQ_STR("another horse"), &err), TSQ_INVALID_INPUT, NULL,
          "Set password failed: Argument user_id is not a UUID");
    WORKS(tsq_auth_set_password(service, id_of(session), TSQ_STR("another horse"), &err));
    WORKS(tsq_auth_get_session(kim, &found, &err));
    CHECK(found == NULL);
    WORKS(tsq_auth_sign_in(service, TSQ_STR("kim@town.example"), TSQ_STR("another horse"), NULL, &err));
    tsq_client_free(kim);
    tsq_session_free(session);
}

#define BCRYPT "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe"

static void the_service_imports_password_hashes(const tsq_client *client, const tsq_client *service) {
    tsq_session *session = meet(service, "nan@town.example");
    tsq_client *nan = act_as(client, session);
    tsq_import_report *report = NULL;
    tsq_string *json = NULL;
    static tsq_new_credential rows[2];
    rows[0].email = TSQ_STR("NAN@town.example");
    rows[0].password_hash = TSQ_STR(BCRYPT);
    WORKS(tsq_auth_import_credentials(service, rows, 1, sizeof *rows, &report, &err));
    CHECK(report->imported == 0 && report->unchanged == 1);
    WORKS(tsq_import_report_json(report, &json, &err));
    CHECK(is(tsq_string_view(json), "{\"imported\":0,\"unchanged\":1}"));
    tsq_string_free(json);
    json = NULL;
    tsq_import_report_free(report);
    report = NULL;
    WORKS(tsq_auth_sign_in(service, TSQ_STR("nan@town.example"), TSQ_STR(PASSWORD), NULL, &err));
    WORKS(tsq_auth_import_credentials(service, NULL, 0, sizeof(tsq_new_credential), NULL, &err));

    rows[1].user_id = TSQ_STR("00000000-0000-4000-8000-000000000000");
    rows[1].password_hash = TSQ_STR(BCRYPT);
    FAILS(tsq_auth_import_credentials(service, rows, 2, sizeof *rows, &report, &err), TSQ_REFERENCE_MISSING, report,
          "Import credentials failed: Referenced record not found");
    rows[1].user_id = id_of(session);
    FAILS(tsq_auth_import_credentials(service, rows, 2, sizeof *rows, &report, &err), TSQ_INVALID_INPUT, report,
          "Import credentials failed: rows[0] and rows[1] name the same user");
    rows[1].user_id = TSQ_STR(BCRYPT);
    REFUSED(tsq_auth_import_credentials(service, rows, 2, sizeof *rows, &report, &err), TSQ_INVALID_INPUT, report,
            "Import credentials failed: Argument rows[1].user_id is not a UUID", NULL);
    rows[1].user_id = absent;
    FAILS(tsq_auth_import_credentials(service, rows, 2, sizeof *rows, &report, &err), TSQ_INVALID_INPUT, report,
          "Import credentials failed: rows[1].user_id or email is required");
    rows[1].email = TSQ_STR("nan@town.example");
    rows[1].password_hash = TSQ_STR("marked");
    REFUSED(tsq_auth_import_credentials(service, rows, 2, sizeof *rows, &report, &err), TSQ_INVALID_INPUT, report,
            "Import credentials failed: rows[1].password_hash is neither a bcrypt hash ($2a$, $2b$, $2y$) nor an Argon2 hash in "
            "PHC format", NULL);
    rows[1].password_hash = not_utf8;
    FAILS(tsq_auth_import_credentials(service, rows, 2, sizeof *rows, &report, &err), TSQ_INVALID_INPUT, report,
          "Import credentials failed: Argument rows[1].password_hash is not UTF-8 at byte 5");
    FAILS(tsq_auth_import_credentials(service, NULL, 1, sizeof(tsq_new_credential), &report, &err), TSQ_INVALID_INPUT, report, "Argument rows is NULL");

    FAILS(tsq_auth_import_credentials(nan, rows, 1, sizeof *rows, &report, &err), TSQ_FORBIDDEN, report,
          "Import credentials failed: Database error: permission denied for table users");
    WORKS(tsq_auth_sign_out(nan, &err));
    FAILS(tsq_auth_import_credentials(nan, rows, 1, sizeof *rows, &report, &err), TSQ_FORBIDDEN, report, "Import credentials failed: ");
    WORKS(tsq_auth_sign_out(client, &err));
    FAILS(tsq_auth_import_credentials(client, rows, 1, sizeof *rows, &report, &err), TSQ_UNAUTHORIZED, report, "Import credentials failed: ");
    FAILS(tsq_import_report_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "Argument report is NULL");
    tsq_import_report_free(NULL);
    tsq_client_free(nan);
    tsq_session_free(session);
}

static void identity_keys_are_listed_and_unlinked(const tsq_client *client, const tsq_client *service) {
    const char *key = "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    tsq_session *session = meet(service, "lou@town.example");
    tsq_client *lou = act_as(client, session);
    tsq_identities *keys = NULL;
    tsq_string *audience = NULL;
    tsq_string *claim = NULL;
    tsq_string *json = NULL;
    kept linked;
    WORKS(tsq_auth_identities(lou, &keys, &err));
    CHECK(keys->public_keys_len == 0);
    tsq_identities_free(keys);
    keys = NULL;
    WORKS(tsq_identity_claim(id_of(session), tsq_str_from(key), TSQ_STR("elsewhere"), now(), &claim, &err));
    REFUSED(tsq_auth_link_identity(lou, tsq_string_view(claim), &err), TSQ_UNAUTHORIZED, NULL,
            "Link identity failed: The identity claim is for another audience", NULL);
    tsq_string_free(claim);
    claim = NULL;
    WORKS(tsq_auth_identity_audience(lou, &audience, &err));
    WORKS(tsq_identity_claim(id_of(session), tsq_str_from(key), tsq_string_view(audience), now(), &claim, &err));
    CHECK(has(tsq_string_view(claim), "{\"audience\":\""));
    WORKS(tsq_auth_link_identity(lou, tsq_string_view(claim), &err));
    tsq_string_free(claim);
    tsq_string_free(audience);
    WORKS(tsq_auth_identities(lou, &keys, &err));
    CHECK(keys->public_keys_len == 1 && keys->public_keys[0].len == 64);
    linked = keep(keys->public_keys[0]);
    tsq_identities_free(keys);
    keys = NULL;
    WORKS(tsq_auth_identities_of(service, id_of(session), &keys, &err));
    CHECK(keys->public_keys_len == 1 && is(keys->public_keys[0], linked.text));
    WORKS(tsq_identities_json(keys, &json, &err));
    CHECK(has(tsq_string_view(json), linked.text) && tsq_string_view(json).len == 68);
    tsq_string_free(json);
    tsq_identities_free(keys);
    tsq_identities_free(NULL);
    keys = NULL;
    WORKS(tsq_auth_unlink_identity(lou, of(&linked), &err));
    REFUSED(tsq_auth_unlink_identity(lou, of(&linked), &err), TSQ_NOT_FOUND, NULL, "Unlink identity failed: Record not found", NULL);
    FAILS(tsq_auth_identities(service, &keys, &err), TSQ_UNAUTHORIZED, keys, "List identities failed: Nobody is signed in");
    WORKS(tsq_auth_identities_of(service, TSQ_STR(NOBODY), &keys, &err));
    CHECK(keys->public_keys_len == 0);
    tsq_identities_free(keys);
    keys = NULL;
    REFUSED(tsq_auth_identities_of(lou, id_of(session), &keys, &err), TSQ_FORBIDDEN, keys,
            "List identities failed: Database error: permission denied for table users", "42501");
    REFUSED(tsq_auth_identities_of(client, id_of(session), &keys, &err), TSQ_UNAUTHORIZED, keys,
            "List identities failed: Database error: permission denied for table users", "42501");
    FAILS(tsq_auth_identities_of(service, TSQ_STR("lou"), &keys, &err), TSQ_INVALID_INPUT, keys, "Argument user_id is not a UUID");
    FAILS(tsq_auth_identities_of(service, id_of(session), NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    tsq_client_free(lou);
    tsq_session_free(session);
}

static void a_new_password_replaces_the_tokens(const tsq_client *client, const tsq_client *service) {
    tsq_session *session = meet(service, "mia@town.example");
    tsq_session *renewed = NULL;
    tsq_client *mia = act_as(client, session);
    tsq_client *none = NULL;
    tsq_user_patch patch = keep_user;
    patch.password = TSQ_STR("another horse");
    WORKS(tsq_auth_update_user(mia, TSQ_STR(PASSWORD), &patch, NULL, &err));
    WORKS(tsq_auth_get_session(mia, &renewed, &err));
    CHECK(renewed->refresh_token.len == 68 && !is(renewed->access_token, keep(session->access_token).text));
    REFUSED(tsq_client_as_user(client, session->access_token, &none, &err), TSQ_UNAUTHORIZED, none, "Act as user failed: " ENDED, NULL);
    tsq_session_free(renewed);
    tsq_client_free(mia);
    tsq_session_free(session);
}

/* REFUSED compares the whole sentence, so no message contains the password. */
static void invalid_arguments_are_named_and_passwords_are_not_repeated(const tsq_client *client) {
    tsq_user *user = NULL;
    tsq_session *session = NULL;
    tsq_client *handle = NULL;
    tsq_string *json = NULL;
    REFUSED(tsq_auth_sign_up(client, TSQ_STR("fay@town.example"), not_utf8, &user, &err), TSQ_INVALID_INPUT, user,
            "Sign up failed: Argument password is not UTF-8 at byte 5", NULL);
    REFUSED(tsq_auth_sign_in(client, not_utf8, TSQ_STR(PASSWORD), &session, &err), TSQ_INVALID_INPUT, session,
            "Sign in failed: Argument email is not UTF-8 at byte 5", NULL);
    REFUSED(tsq_auth_sign_in(client, TSQ_STR(ANN), not_utf8, &session, &err), TSQ_INVALID_INPUT, session,
            "Sign in failed: Argument password is not UTF-8 at byte 5", NULL);
    REFUSED(tsq_auth_refresh_session_of(client, not_utf8, &session, &err), TSQ_INVALID_INPUT, session,
            "Refresh session failed: Argument refresh_token is not UTF-8 at byte 5", NULL);
    REFUSED(tsq_auth_set_session(client, not_utf8, &session, &err), TSQ_INVALID_INPUT, session,
            "Set session failed: Argument refresh_token is not UTF-8 at byte 5", NULL);
    REFUSED(tsq_client_as_user(client, not_utf8, &handle, &err), TSQ_INVALID_INPUT, handle,
            "Act as user failed: Argument access_token is not UTF-8 at byte 5", NULL);
    REFUSED(tsq_auth_delete_own_user(client, not_utf8, &err), TSQ_INVALID_INPUT, NULL,
            "Delete user failed: Argument current_password is not UTF-8 at byte 5", NULL);

    FAILS(tsq_auth_sign_up(NULL, TSQ_STR(ANN), TSQ_STR(PASSWORD), &user, &err), TSQ_INVALID_INPUT, user, "Argument client is NULL");
    FAILS(tsq_auth_sign_in(NULL, TSQ_STR(ANN), TSQ_STR(PASSWORD), &session, &err), TSQ_INVALID_INPUT, session, "client is NULL");
    FAILS(tsq_auth_sign_out(NULL, &err), TSQ_INVALID_INPUT, NULL, "Sign out failed: Argument client is NULL");
    FAILS(tsq_auth_get_session(NULL, &session, &err), TSQ_INVALID_INPUT, session, "Get session failed: Argument client is NULL");
    FAILS(tsq_auth_get_session(client, NULL, &err), TSQ_INVALID_INPUT, NULL, "Get session failed: Argument out is NULL");
    FAILS(tsq_auth_refresh_session(NULL, &session, &err), TSQ_INVALID_INPUT, session, "Argument client is NULL");
    FAILS(tsq_auth_refresh_session_of(client, absent, NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_auth_link_identity(NULL, TSQ_STR("{}"), &err), TSQ_INVALID_INPUT, NULL, "Link identity failed: Argument client is NULL");
    FAILS(tsq_client_as_user(NULL, TSQ_STR("x"), &handle, &err), TSQ_INVALID_INPUT, handle, "Act as user failed: Argument client is NULL");
    FAILS(tsq_client_as_user(client, TSQ_STR("x"), NULL, &err), TSQ_INVALID_INPUT, NULL, "Act as user failed: Argument out is NULL");
    FAILS(tsq_user_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "Argument user is NULL");
    FAILS(tsq_session_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "Argument session is NULL");
    tsq_session_free(NULL);
    tsq_user_free(NULL);
    /* Without an error object the status is the only result. */
    CHECK(tsq_auth_sign_in(client, TSQ_STR(ANN), not_utf8, NULL, NULL) == TSQ_INVALID_INPUT);
}

static void calls_on_a_closed_client_fail_and_results_stay_valid(const tsq_client *client, const tsq_client *service) {
    tsq_session *session = meet(service, "gus@town.example");
    tsq_user *user = NULL;
    tsq_session *none = NULL;
    tsq_client *gus = act_as(client, session);
    tsq_client *handle = NULL;
    WORKS(tsq_client_close(client, &err));
    FAILS(tsq_auth_sign_up(client, TSQ_STR("hal@town.example"), TSQ_STR(PASSWORD), &user, &err), TSQ_CLOSED, user, "Sign up failed: ");
    FAILS(tsq_auth_sign_in(service, TSQ_STR(ANN), TSQ_STR(PASSWORD), &none, &err), TSQ_CLOSED, none, "Sign in failed: ");
    FAILS(tsq_auth_get_session(gus, &none, &err), TSQ_CLOSED, none, "Get session failed: ");
    FAILS(tsq_auth_sign_out(gus, &err), TSQ_CLOSED, NULL, "Sign out failed: ");
    FAILS(tsq_auth_refresh_session_of(client, session->refresh_token, &none, &err), TSQ_CLOSED, none, "Refresh session failed: ");
    FAILS(tsq_auth_delete_user(service, id_of(session), &err), TSQ_CLOSED, NULL, "Delete user failed: ");
    FAILS(tsq_client_as_user(client, session->access_token, &handle, &err), TSQ_CLOSED, handle, "Act as user failed: ");
    CHECK(is(session->user->email, "gus@town.example"));
    tsq_client_free(gus);
    tsq_session_free(session);
}

/* On a client of its own: a wrong password counts. */
static void a_password_may_have_a_nul_character(void) {
    const tsq_str whole = TSQ_STR("correct\0horse");
    tsq_client *client = open_client("nul");
    tsq_session *session = NULL;
    WORKS(tsq_auth_sign_up(client, TSQ_STR(ANN), whole, NULL, &err));
    FAILS(tsq_auth_sign_in(client, TSQ_STR(ANN), TSQ_STR("correct"), &session, &err), TSQ_UNAUTHORIZED, session, "Sign in failed: ");
    WORKS(tsq_auth_sign_in(client, TSQ_STR(ANN), whole, &session, &err));
    tsq_session_free(session);
    FAILS(tsq_auth_sign_up(client, TSQ_STR("b\0@town.example"), TSQ_STR(PASSWORD), NULL, &err), TSQ_INVALID_INPUT, NULL,
          "Sign up failed: ");
    tsq_client_free(client);
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
    sign_up_does_not_sign_in(client);
    a_session_has_two_tokens_and_a_user(client);
    a_private_space_is_visible_to_its_owner_only(client, service);
    a_wrong_password_and_an_unknown_address_fail_alike(client);
    the_eleventh_failed_sign_in_is_rate_limited(client);
    refreshing_invalidates_both_old_tokens(client, service);
    set_session_resumes_a_stored_session(client, service);
    update_user_needs_the_current_password(client, service);
    the_service_deletes_any_user(client, service);
    sign_out_scopes_end_their_sessions(client, service);
    a_mailed_token_recovers_and_verifies(client, service);
    the_service_finds_users_and_sets_passwords(client, service);
    the_service_imports_password_hashes(client, service);
    identity_keys_are_listed_and_unlinked(client, service);
    a_new_password_replaces_the_tokens(client, service);
    invalid_arguments_are_named_and_passwords_are_not_repeated(client);
    a_password_may_have_a_nul_character();
    calls_on_a_closed_client_fail_and_results_stay_valid(client, service);
    tsq_client_free(service);
    tsq_client_free(client);
    return checks_done("auth");
}
