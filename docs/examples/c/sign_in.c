/* Sign-in: accounts, sessions for many users, rotating tokens, a forgotten password, and the end of every session. */
#include <stdio.h>
#include <stdlib.h>
#include <townsquare.h>

/* Ends the program with the sentence of the error. */
static void check(tsq_status status, tsq_error **err) {
    if (status == TSQ_OK) return;
    fprintf(stderr, "%.*s\n", TSQ_ARG(tsq_error_text(*err)));
    exit(1);
}

static void print_caller(const char *before, const tsq_client *client) {
    tsq_error *err = NULL;
    tsq_session *session = NULL;
    check(tsq_auth_get_session(client, &session, &err), &err);
    const tsq_str caller = session != NULL ? session->user->email : TSQ_STR("nobody");
    printf("%s: %.*s\n", before, TSQ_ARG(caller));
    tsq_session_free(session);
}

/* Prints what is wrong with a token, which opens no handle. */
static void print_refusal(const char *before, const tsq_client *client, tsq_str token) {
    tsq_error *err = NULL;
    tsq_client *handle = NULL;
    const tsq_status status = tsq_client_as_user(client, token, &handle, &err);
    const tsq_str name = tsq_status_name((int32_t)status);
    printf("%s: %.*s\n", before, TSQ_ARG(name));
    tsq_error_free(err);
    tsq_client_free(handle);
}

int main(void) {
    tsq_error *err = NULL;
    tsq_client *client = NULL, *ann = NULL, *service = NULL;
    tsq_config *config = tsq_config_new();
    check(tsq_config_set(config, TSQ_STR("data_dir"), TSQ_STR(":memory:"), &err), &err);
    check(tsq_client_open(config, &client, &err), &err);
    tsq_config_free(config);

    const tsq_str address = TSQ_STR("ann@town.example"), password = TSQ_STR("correct horse");
    tsq_user *user = NULL;
    check(tsq_auth_sign_up(client, TSQ_STR("  Ann@Town.example "), password, &user, &err), &err);
    printf("signed up: %.*s\n", TSQ_ARG(user->email));
    tsq_user_free(user);

    /* A server signs users in by create_session. The caller of `client` stays anonymous. */
    tsq_session *session = NULL, *renewed = NULL, *wrong = NULL;
    check(tsq_auth_create_session(client, address, password, &session, &err), &err);
    check(tsq_client_as_user(client, session->access_token, &ann, &err), &err);
    print_caller("the handle acts for", ann);
    print_caller("the client acts for", client);

    if (tsq_auth_create_session(client, address, TSQ_STR("wrong horse"), &wrong, &err) == TSQ_UNAUTHORIZED)
        printf("%.*s\n", TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);
    if (tsq_auth_create_session(client, TSQ_STR("nobody@town.example"), password, &wrong, &err) == TSQ_UNAUTHORIZED)
        printf("%.*s\n", TSQ_ARG(tsq_error_text(err)));
    tsq_error_free(err);

    /* New tokens replace the old ones: the old access token ends. */
    check(tsq_auth_refresh_session_of(client, session->refresh_token, &renewed, &err), &err);
    print_refusal("the old token", client, session->access_token);

    /* Ann forgot her password. The program mails her this token; nobody else must see it. */
    tsq_string *token = NULL;
    check(tsq_client_as_service(client, &service, &err), &err);
    check(tsq_auth_create_recovery_token(service, address, &token, &err), &err);
    check(tsq_auth_recover(client, tsq_string_view(token), TSQ_STR("a new password"), NULL, &err), &err);
    print_caller("recovered", client);

    /* A recovery ends every earlier session, on every device. */
    print_refusal("the renewed token", client, renewed->access_token);

    check(tsq_auth_sign_out(client, &err), &err);
    print_caller("the client acts for", client);
    tsq_string_free(token);
    tsq_session_free(renewed);
    tsq_session_free(session);
    tsq_client_free(service);
    tsq_client_free(ann);
    tsq_client_free(client);
    return 0;
}
