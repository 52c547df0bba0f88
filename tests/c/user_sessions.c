/* The sessions of any user from C, as the service lists and ends them (DESIGN 8, 10). Also compiled as C++: keep to the common subset.
 *
 * user_sessions CATALOG FOLDER: the folder is empty and belongs to this program; the catalog is not read. */
#include "people.h"

#define ENDED "Session has ended"

static void the_service_lists_and_ends_sessions(const tsq_client *client, const tsq_client *service) {
    tsq_session *first = meet(service, "uma@town.example");
    tsq_session *latest = NULL;
    tsq_client *uma = act_as(client, first);
    tsq_client *none = NULL;
    tsq_session_infos *sessions = NULL;
    tsq_string *json = NULL;
    const tsq_session_info *info;
    uint64_t ended = 9;
    kept id;
    WORKS(tsq_auth_create_session(service, TSQ_STR("uma@town.example"), TSQ_STR(PASSWORD), &latest, &err));
    WORKS(tsq_auth_sessions_of(service, id_of(first), &sessions, &err));
    CHECK(tsq_session_infos_len(sessions) == 2 && tsq_session_infos_at(sessions, 2) == NULL);
    info = tsq_session_infos_at(sessions, 0);
    CHECK(info->id.len == 36 && info->created_at >= tsq_session_infos_at(sessions, 1)->created_at);
    CHECK(info->created_at < now() + 2000000 && info->created_at - info->refreshed_at < 1000000);
    CHECK(info->refreshed_at - info->created_at < 1000000);
    CHECK(info->expires_at > latest->expires_at);
    id = keep(info->id);
    WORKS(tsq_session_infos_json(sessions, &json, &err));
    CHECK(has(tsq_string_view(json), "[{\"id\":\"") && has(tsq_string_view(json), id.text));
    CHECK(has(tsq_string_view(json), "\"refreshed_at\":\"") && !contains(tsq_string_view(json), "token"));
    tsq_string_free(json);
    json = NULL;
    tsq_session_infos_free(sessions);
    sessions = NULL;

    REFUSED(tsq_auth_end_session(service, TSQ_STR(NOBODY), of(&id), &err), TSQ_NOT_FOUND, NULL, "End session failed: Record not found", NULL);
    WORKS(tsq_auth_end_session(service, id_of(first), of(&id), &err));
    REFUSED(tsq_auth_end_session(service, id_of(first), of(&id), &err), TSQ_NOT_FOUND, NULL, "End session failed: Record not found", NULL);
    REFUSED(tsq_client_as_user(client, latest->access_token, &none, &err), TSQ_UNAUTHORIZED, none, "Act as user failed: " ENDED, NULL);
    REFUSED(tsq_auth_sessions_of(uma, id_of(first), &sessions, &err), TSQ_FORBIDDEN, sessions,
            "List sessions failed: Database error: permission denied for table users", "42501");
    REFUSED(tsq_auth_sessions_of(client, id_of(first), &sessions, &err), TSQ_UNAUTHORIZED, sessions,
            "List sessions failed: Database error: permission denied for table users", "42501");
    REFUSED(tsq_auth_end_session(uma, id_of(first), of(&id), &err), TSQ_FORBIDDEN, NULL,
            "End session failed: Database error: permission denied for table users", "42501");
    REFUSED(tsq_auth_end_sessions(uma, id_of(first), &ended, &err), TSQ_FORBIDDEN, NULL,
            "End sessions failed: Database error: permission denied for table users", "42501");
    CHECK(ended == 0);
    FAILS(tsq_auth_sessions_of(service, TSQ_STR("uma"), &sessions, &err), TSQ_INVALID_INPUT, sessions, "Argument user_id is not a UUID");
    FAILS(tsq_auth_sessions_of(service, id_of(first), NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_auth_end_session(service, id_of(first), TSQ_STR("x"), &err), TSQ_INVALID_INPUT, NULL, "Argument session_id is not a UUID");
    FAILS(tsq_auth_end_sessions(service, id_of(first), NULL, &err), TSQ_INVALID_INPUT, NULL, "Argument out is NULL");
    FAILS(tsq_session_infos_json(NULL, &json, &err), TSQ_INVALID_INPUT, json, "Argument list is NULL");

    WORKS(tsq_auth_end_sessions(service, id_of(first), &ended, &err));
    CHECK(ended == 1);
    WORKS(tsq_auth_end_sessions(service, TSQ_STR(NOBODY), &ended, &err));
    CHECK(ended == 0);
    REFUSED(tsq_client_as_user(client, first->access_token, &none, &err), TSQ_UNAUTHORIZED, none, "Act as user failed: " ENDED, NULL);
    WORKS(tsq_auth_sessions_of(service, id_of(first), &sessions, &err));
    CHECK(tsq_session_infos_len(sessions) == 0 && tsq_session_infos_len(NULL) == 0 && tsq_session_infos_at(NULL, 0) == NULL);
    tsq_session_infos_free(sessions);
    tsq_session_infos_free(NULL);
    tsq_client_free(uma);
    tsq_session_free(latest);
    tsq_session_free(first);
}

int main(int argc, char **argv) {
    tsq_client *client;
    tsq_client *service = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    client = open_client("town");
    WORKS(tsq_client_as_service(client, &service, &err));
    the_service_lists_and_ends_sessions(client, service);
    tsq_client_free(service);
    tsq_client_free(client);
    return checks_done("user_sessions");
}
