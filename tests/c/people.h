/* Users, sessions and handles for the C programs about sign-in. */
#ifndef PEOPLE_H
#define PEOPLE_H

#include "rows.h"

#include <time.h>

#define PASSWORD "correct horse"
#define WRONG_PASSWORD "wrong \"horse\""

/* A copy of an id or a token as a C string. */
typedef struct kept {
    char text[80];
} kept;

static inline kept keep(tsq_str text) {
    kept out;
    snprintf(out.text, sizeof out.text, "%.*s", TSQ_ARG(text));
    return out;
}

static inline tsq_str of(const kept *kept) {
    return tsq_str_from(kept->text);
}

/* Signs a user up and in. `service` keeps its caller. */
static inline tsq_session *meet(const tsq_client *service, const char *email) {
    tsq_session *session = NULL;
    WORKS(tsq_auth_sign_up(service, tsq_str_from(email), TSQ_STR(PASSWORD), NULL, &err));
    WORKS(tsq_auth_sign_in(service, tsq_str_from(email), TSQ_STR(PASSWORD), &session, &err));
    return session;
}

/* A handle that acts as the user of the session. */
static inline tsq_client *act_as(const tsq_client *client, const tsq_session *session) {
    tsq_client *handle = NULL;
    WORKS(tsq_client_as_user(client, session->access_token, &handle, &err));
    return handle;
}

static inline tsq_str id_of(const tsq_session *session) {
    return session->user->id;
}

static inline int64_t now(void) {
    return (int64_t)time(NULL) * 1000000;
}

#endif
