/* Sequences of calls from C that bytes choose, and what the manual promises of each (DESIGN 10): the fuzz target c_calls. Also compiled as
 * C++: keep to the common subset.
 *
 * call_sequences CATALOG FOLDER: replays fuzz/corpus/c_calls, which it finds from the folder of the catalog. FOLDER is not used. With
 * TSQ_FUZZ it has no main: fuzz/src/bin/c_calls.rs gives it the inputs. */
#define _POSIX_C_SOURCE 200809L

#include "sequence_changes.h"
#include "sequence_files.h"
#include "sequence_rows.h"
#include "sequence_users.h"

#include <dirent.h>
#include <time.h>

/* An input has no more calls than these. */
enum { LONGEST = 40 };

/* The clients that every input finds. */
static tsq_client *anonymous, *service;

static void (*const operations[])(void) = {
    make_a_client, make_a_client, open_a_client, close_a_client, ask_a_client, make_a_config, set_an_option,
    create_a_space, create_a_space, create_spaces, update_a_space, read_spaces, read_spaces, change_a_space,
    create_fidgets, create_fidgets, change_a_fidget, read_fidgets, change_a_community, read_communities, read_users,
    change_a_user, use_a_password, end_a_session, move_rows, use_files_of_the_host, upload_a_file, upload_a_file,
    read_a_file, change_a_file, open_a_writer, use_a_writer, use_a_writer, open_a_reader, read_on, send_a_request,
    read_a_response, ask_the_endpoint, sign_a_url, make_a_path, sign_a_file, follow_changes, take_a_change,
    take_a_change, subscribe, unsubscribe, ask_the_feed, list_apps, ask_the_catalog, copy_an_error, return_as_json,
    look_again, free_one, free_one, nothing_is_answered};

/* The calls of the set-up and of the end of an input succeed. */
static void works(tsq_status status, const char *call, int line) {
    current_call = call;
    current_line = line;
    MUST(status == TSQ_OK);
}

#define WORKS(call) works(call, #call, __LINE__)

static void save_the_community(void) {
    static tsq_community_patch none;
    tsq_community_patch patch = none;
    patch.size = sizeof patch;
    patch.brand_config.change = patch.assets_config.change = patch.community_config.change = patch.fidgets_config.change = TSQ_SET;
    patch.brand_config.value = patch.assets_config.value = patch.community_config.value = patch.fidgets_config.value = TSQ_STR("{}");
    patch.navigation_config.change = patch.ui_config.change = patch.admin_email.change = TSQ_CLEAR;
    patch.is_published.change = TSQ_SET;
    patch.is_published.value = true;
    WORKS(tsq_communities_save_community_config(service, TSQ_STR("town"), &patch, NULL, NULL));
}

static void sign_in(void) {
    tsq_session_free(session);
    session = NULL;
    WORKS(tsq_auth_create_session(service, TSQ_STR("ada@example.com"), TSQ_STR("correct horse"), &session, NULL));
}

/* What every input finds: a space with a fidget, and a file. */
static void write_rows(const tsq_client *user) {
    static tsq_new_space no_space;
    static tsq_new_fidget no_fidget;
    tsq_new_space fresh = no_space;
    tsq_new_fidget inside = no_fidget;
    tsq_space *space = NULL;
    tsq_fidget *fidget = NULL;
    fresh.name = TSQ_STR("Harbor");
    fresh.is_public = true;
    inside.kind = TSQ_STR("text");
    inside.config = inside.position = TSQ_STR("{}");
    WORKS(tsq_spaces_create_space(user, &fresh, &space, NULL));
    know(space->id);
    WORKS(tsq_fidgets_create_fidget(user, space->id, &inside, &fidget, NULL));
    know(fidget->id);
    WORKS(tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("a"), TSQ_BYTES("a file of the town"), NULL, NULL, NULL));
    keep(kind_space, space);
    tsq_fidget_free(fidget);
}

static void set_up(const char *path) {
    static tsq_new_registration none;
    tsq_new_registration registration = none;
    tsq_config *config;
    catalog = path;
    WORKS(tsq_set_log(on_log, NULL, NULL, NULL));
    config = config_in_memory(COUNT(options) - 1);
    WORKS(tsq_client_open(config, &anonymous, NULL));
    tsq_config_free(config);
    WORKS(tsq_client_as_service(anonymous, &service, NULL));
    WORKS(tsq_auth_sign_up(service, TSQ_STR("ada@example.com"), TSQ_STR("correct horse"), NULL, NULL));
    sign_in();
    snprintf(ids[0], sizeof ids[0], "%.*s", TSQ_ARG(session->user->id));
    save_the_community();
    registration.space_id = TSQ_STR("00000000-0000-4000-8000-0000000000ee");
    registration.space_name = TSQ_STR("Harbor");
    registration.space_type = TSQ_STR("profile");
    WORKS(tsq_communities_register_space(service, &registration, NULL, NULL));
    WORKS(tsq_discovery_refresh(service, NULL, NULL));
}

static void unlink_keys(void) {
    tsq_identities *linked = NULL;
    WORKS(tsq_auth_identities_of(service, tsq_str_from(ids[0]), &linked, NULL));
    if (linked->public_keys_len > 0) {
        tsq_client *user = NULL;
        WORKS(tsq_client_as_user(anonymous, session->access_token, &user, NULL));
        for (size_t i = 0; i < linked->public_keys_len; i++) {
            WORKS(tsq_auth_unlink_identity(user, linked->public_keys[i], NULL));
        }
        tsq_client_free(user);
    }
    tsq_identities_free(linked);
}

/* Removes what the input has written. */
static void remove_rows(void) {
    static const char *const buckets[] = {"assets", "spaces", "private", "open", "closed"};
    tsq_space_list *spaces = NULL;
    tsq_user_list *users = NULL;
    tsq_community_domain_list *domains = NULL;
    uint64_t deleted;
    WORKS(tsq_spaces_list_spaces(service, 1000, absent, &spaces, NULL));
    for (size_t i = 0; i < tsq_space_list_len(spaces); i++) {
        WORKS(tsq_spaces_delete_space(service, tsq_space_list_at(spaces, i)->id, NULL));
    }
    tsq_space_list_free(spaces);
    for (size_t i = 0; i < COUNT(buckets); i++) {
        WORKS(tsq_storage_delete_prefix(service, tsq_str_from(buckets[i]), absent, &deleted, NULL));
    }
    WORKS(tsq_communities_list_community_domains(service, 1000, absent, &domains, NULL));
    for (size_t i = 0; i < tsq_community_domain_list_len(domains); i++) {
        WORKS(tsq_communities_delete_community_domain(service, tsq_community_domain_list_at(domains, i)->domain, NULL));
    }
    tsq_community_domain_list_free(domains);
    WORKS(tsq_auth_list_users(service, 1000, absent, &users, NULL));
    for (size_t i = 0; i < tsq_user_list_len(users); i++) {
        const tsq_str id = tsq_user_list_at(users, i)->id;
        if (!contains(id, ids[0])) {
            WORKS(tsq_auth_delete_user(service, id, NULL));
        }
    }
    tsq_user_list_free(users);
    save_the_community();
    if (is_session_changed) {
        WORKS(tsq_auth_end_sessions(service, tsq_str_from(ids[0]), &deleted, NULL));
        sign_in();
    }
    unlink_keys();
}

/* Frees all handles in the order in which the pool has them, and waits for the callbacks' data. */
static void free_handles(void) {
    const struct timespec moment = {0, 1000000};
    while (pool_used > handles_kept) {
        forget(handles_kept);
    }
    for (int i = 0; i < 10000 && __atomic_load_n(&data_destroyed, __ATOMIC_ACQUIRE) != data_given; i++) {
        nanosleep(&moment, NULL);
    }
    current_call = "a callback";
    MUST(__atomic_load_n(&data_destroyed, __ATOMIC_ACQUIRE) == data_given);
    MUST(__atomic_load_n(&wrong_views, __ATOMIC_RELAXED) == 0);
}

static void run_sequence(const uint8_t *data, size_t size) {
    tsq_client *user = NULL;
    tsq_client *trusted = NULL;
    input = data;
    input_left = size;
    ids_known = 1;
    clients_opened = 0;
    is_session_changed = 0;
    pool_used = handles_kept = 0;
    keep(kind_client, anonymous)->is_shared = 1;
    handles_kept = pool_used;
    WORKS(tsq_realtime_start(anonymous, NULL));
    WORKS(tsq_client_as_service(anonymous, &trusted, NULL));
    WORKS(tsq_client_as_user(anonymous, session->access_token, &user, NULL));
    keep(kind_client, trusted);
    keep(kind_client, user);
    write_rows(user);
    for (int i = 0; i < LONGEST && input_left > 0; i++) {
        is_refused = 0;
        operations[below(COUNT(operations))]();
        end_loans();
    }
    free_handles();
    remove_rows();
}

#ifdef TSQ_FUZZ

#ifdef __cplusplus
extern "C" {
#endif
void call_sequences_set_up(void);
void call_sequences_run(const uint8_t *data, size_t size);
void __sanitizer_cov_trace_cmpd(double left, double right);
#ifdef __cplusplus
}
#endif

/* gcc calls it where numbers with a fraction are compared; libFuzzer has none. */
void __sanitizer_cov_trace_cmpd(double left, double right) {
    (void)left;
    (void)right;
}

/* fuzz/run starts in its own folder. */
void call_sequences_set_up(void) {
    set_up("../tests/c/catalog.json");
}

void call_sequences_run(const uint8_t *data, size_t size) {
    run_sequence(data, size);
}

#else

/* Replays a file of the corpus. Returns whether it is one. */
static int replay(const char *path) {
    static uint8_t bytes[65536];
    const int failed_before = checks_failed;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return 0;
    }
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (size > 0) {
        uint8_t *copy = (uint8_t *)malloc(size);
        memcpy(copy, bytes, size);
        run_sequence(copy, size);
        free(copy);
    }
    if (checks_failed != failed_before) {
        fprintf(stderr, "the input %s fails\n", path);
    }
    return 1;
}

int main(int argc, char **argv) {
    char folder[4096], path[4608];
    int replayed = 0;
    DIR *listing;
    if (argc != 3) {
        return 2;
    }
    const char *slash = strrchr(argv[1], '/');
    snprintf(folder, sizeof folder, "%.*s../../fuzz/corpus/c_calls", slash == NULL ? 0 : (int)(slash + 1 - argv[1]), argv[1]);
    set_up(argv[1]);
    listing = opendir(folder);
    if (listing != NULL) {
        for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            replayed += entry->d_name[0] != '.' && replay(path);
        }
        closedir(listing);
    }
    CHECK(replayed > 0);
    tsq_session_free(session);
    tsq_client_free(service);
    WORKS(tsq_client_close(anonymous, NULL));
    tsq_client_free(anonymous);
    WORKS(tsq_set_log(NULL, NULL, NULL, NULL));
    return checks_done("call_sequences");
}

#endif
