/* The sizes of inputs (manual, INPUTS): every function with an input or an array of inputs. Also compiled as C++: keep to the
 * common subset.
 *
 * inputs CATALOG FOLDER: the folder is empty; the catalog is not read. */
#include "stored.h"

#define BCRYPT "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe"
#define KEY "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"

static tsq_client *service, *user;
static kept space_id, fidget_id;

static tsq_new_space no_space;
static tsq_new_fidget no_fidget;

/* The calls of the table below: each fills in the members that a call needs, and passes `size`. */

static tsq_status create_space(void *memory, size_t size) {
    tsq_new_space *space = (tsq_new_space *)memory;
    space->size = size;
    space->name = TSQ_STR("Harbor");
    return tsq_spaces_create_space(service, space, NULL, &err);
}

static tsq_status update_space(void *memory, size_t size) {
    tsq_space_patch *patch = (tsq_space_patch *)memory;
    patch->size = size;
    patch->name = set("Quay");
    return tsq_spaces_update_space(service, of(&space_id), patch, NULL, &err);
}

static tsq_status create_fidget(void *memory, size_t size) {
    tsq_new_fidget *fidget = (tsq_new_fidget *)memory;
    fidget->size = size;
    fidget->kind = TSQ_STR("clock");
    return tsq_fidgets_create_fidget(service, of(&space_id), fidget, NULL, &err);
}

static tsq_status update_fidget(void *memory, size_t size) {
    tsq_fidget_patch *patch = (tsq_fidget_patch *)memory;
    patch->size = size;
    patch->kind = set("feed");
    return tsq_fidgets_update_fidget(service, of(&fidget_id), patch, NULL, &err);
}

static tsq_status save_community(void *memory, size_t size) {
    tsq_community_patch *patch = (tsq_community_patch *)memory;
    patch->size = size;
    patch->brand_config = patch->assets_config = patch->community_config = patch->fidgets_config = set("{}");
    return tsq_communities_save_community_config(service, TSQ_STR("town"), patch, NULL, &err);
}

/* A space is registered once: the call registers a new one. */
static tsq_status register_space(void *memory, size_t size) {
    tsq_new_registration *registration = (tsq_new_registration *)memory;
    tsq_new_space made = no_space;
    tsq_space *space = NULL;
    tsq_status status = TSQ_OK;
    made.name = TSQ_STR("Registered");
    WORKS(tsq_spaces_create_space(service, &made, &space, &err));
    registration->size = size;
    registration->space_id = space->id;
    registration->space_name = TSQ_STR("Registered");
    registration->space_type = TSQ_STR("profile");
    status = tsq_communities_register_space(service, registration, NULL, &err);
    if (status != TSQ_OK) {
        CHECK(tsq_spaces_delete_space(service, space->id, NULL) == TSQ_OK);
    }
    tsq_space_free(space);
    return status;
}

static tsq_status update_user(void *memory, size_t size) {
    tsq_user_patch *patch = (tsq_user_patch *)memory;
    patch->size = size;
    patch->email = TSQ_STR("user@town.example");
    return tsq_auth_update_user(user, TSQ_STR(PASSWORD), patch, NULL, &err);
}

/* The target is the source, which the library says after it has read the options. */
static tsq_status move_to(void *memory, size_t size) {
    tsq_move_options *options = (tsq_move_options *)memory;
    tsq_config *config = config_with("town", NULL);
    tsq_status status = TSQ_OK;
    options->size = size;
    status = tsq_client_move_to(user, config, options, NULL, NULL, NULL, &err);
    tsq_config_free(config);
    return status;
}

static tsq_status search(void *memory, size_t size) {
    tsq_selection *selection = (tsq_selection *)memory;
    tsq_mini_apps *apps = NULL;
    tsq_status status = TSQ_OK;
    selection->size = size;
    selection->limit = 10;
    status = tsq_discovery_search_mini_apps(user, TSQ_STR("game"), selection, &apps, &err);
    tsq_mini_apps_free(apps);
    return status;
}

static tsq_status handle_discovery(void *memory, size_t size) {
    tsq_http_request *request = (tsq_http_request *)memory;
    tsq_http_response *response = NULL;
    tsq_status status = TSQ_OK;
    request->size = size;
    request->method = TSQ_STR("GET");
    request->target = TSQ_STR("/api/miniapp-discovery");
    status = tsq_discovery_handle_request(user, request, &response, &err);
    tsq_http_response_free(response);
    return status;
}

static tsq_status handle_file(void *memory, size_t size) {
    tsq_file_request *request = (tsq_file_request *)memory;
    tsq_file_response *response = NULL;
    tsq_status status = TSQ_OK;
    request->size = size;
    request->method = TSQ_STR("GET");
    request->target = TSQ_STR("/assets/notes");
    status = tsq_storage_handle_file(user, request, &response, &err);
    tsq_file_response_free(response);
    return status;
}

static tsq_status handle_request(void *memory, size_t size) {
    tsq_file_request *request = (tsq_file_request *)memory;
    tsq_file_response *response = NULL;
    tsq_status status = TSQ_OK;
    request->size = size;
    request->method = TSQ_STR("GET");
    request->target = TSQ_STR("/health");
    status = tsq_client_handle_request(user, request, &response, &err);
    tsq_file_response_free(response);
    return status;
}

static tsq_status upload(void *memory, size_t size) {
    tsq_upload_options *options = (tsq_upload_options *)memory;
    options->size = size;
    options->content_type = TSQ_STR("text/plain");
    return tsq_storage_upload(user, TSQ_STR("assets"), TSQ_STR("notes"), TSQ_BYTES("text"), options, NULL, &err);
}

static tsq_status sign_url(void *memory, size_t size) {
    tsq_url_options *options = (tsq_url_options *)memory;
    tsq_string *url = NULL;
    tsq_status status = TSQ_OK;
    options->size = size;
    options->content_type = TSQ_STR("text/plain");
    status = tsq_storage_signed_url(user, TSQ_STR("assets"), TSQ_STR("notes"), TSQ_URL_PUT, 60000, options, &url, &err);
    tsq_string_free(url);
    return status;
}

static tsq_status sign_file(void *memory, size_t size) {
    tsq_sign_options *options = (tsq_sign_options *)memory;
    tsq_string *file = NULL;
    tsq_status status = TSQ_OK;
    options->size = size;
    options->file_name = TSQ_STR("notes");
    status = tsq_signed_file_sign(TSQ_STR("{}"), TSQ_STR(KEY), options, &file, &err);
    tsq_string_free(file);
    return status;
}

static tsq_status encrypt_file(void *memory, size_t size) {
    tsq_sign_options *options = (tsq_sign_options *)memory;
    tsq_string *file = NULL;
    tsq_status status = TSQ_OK;
    options->size = size;
    options->file_name = TSQ_STR("notes");
    status = tsq_signed_file_encrypt(TSQ_BYTES("text"), TSQ_STR(KEY), options, &file, &err);
    tsq_string_free(file);
    return status;
}

static tsq_status open_changes(void *memory, size_t size) {
    tsq_change_request *request = (tsq_change_request *)memory;
    tsq_change_stream *stream = NULL;
    tsq_status status = TSQ_OK;
    request->size = size;
    request->table = TSQ_STR("spaces");
    status = tsq_realtime_changes(user, request, &stream, &err);
    tsq_change_stream_free(stream);
    return status;
}

static void ignore(const tsq_row_change *change, void *user_data) {
    (void)change;
    (void)user_data;
}

static tsq_status subscribe(void *memory, size_t size) {
    tsq_change_request *request = (tsq_change_request *)memory;
    tsq_subscription *subscription = NULL;
    tsq_status status = TSQ_OK;
    request->size = size;
    request->table = TSQ_STR("spaces");
    status = tsq_realtime_subscribe(user, TSQ_STR("channel"), request, ignore, NULL, NULL, &subscription, &err);
    tsq_subscription_unsubscribe(subscription);
    tsq_subscription_free(subscription);
    return status;
}

/* Arrays of one item. */

static size_t item_size(size_t size, size_t first) {
    return size == 0 ? first : size;
}

static tsq_status create_spaces(void *memory, size_t size) {
    tsq_new_space *spaces = (tsq_new_space *)memory;
    spaces->size = size;
    spaces->name = TSQ_STR("Harbor");
    return tsq_spaces_create_spaces(service, spaces, 1, item_size(size, sizeof *spaces), NULL, &err);
}

static tsq_status create_fidgets(void *memory, size_t size) {
    tsq_new_fidget *fidgets = (tsq_new_fidget *)memory;
    fidgets->size = size;
    fidgets->kind = TSQ_STR("clock");
    return tsq_fidgets_create_fidgets(service, of(&space_id), fidgets, 1, item_size(size, sizeof *fidgets), NULL, &err);
}

static tsq_status import_credentials(void *memory, size_t size) {
    tsq_new_credential *rows = (tsq_new_credential *)memory;
    rows->size = size;
    rows->email = TSQ_STR("user@town.example");
    rows->password_hash = TSQ_STR(BCRYPT);
    return tsq_auth_import_credentials(service, rows, 1, item_size(size, sizeof *rows), NULL, &err);
}

typedef struct input {
    /* The name of `size` in errors. */
    const char *name;
    size_t size;
    tsq_status works;
    tsq_status (*call)(void *memory, size_t size);
} input;

static const input inputs[] = {
    {"space.size", sizeof(tsq_new_space), TSQ_OK, create_space},
    {"patch.size", sizeof(tsq_space_patch), TSQ_OK, update_space},
    {"fidget.size", sizeof(tsq_new_fidget), TSQ_OK, create_fidget},
    {"patch.size", sizeof(tsq_fidget_patch), TSQ_OK, update_fidget},
    {"patch.size", sizeof(tsq_community_patch), TSQ_OK, save_community},
    {"registration.size", sizeof(tsq_new_registration), TSQ_OK, register_space},
    {"patch.size", sizeof(tsq_user_patch), TSQ_OK, update_user},
    {"options.size", sizeof(tsq_move_options), TSQ_CONFIG, move_to},
    {"selection.size", sizeof(tsq_selection), TSQ_OK, search},
    {"request.size", sizeof(tsq_http_request), TSQ_OK, handle_discovery},
    {"request.size", sizeof(tsq_file_request), TSQ_OK, handle_file},
    {"request.size", sizeof(tsq_file_request), TSQ_OK, handle_request},
    {"options.size", sizeof(tsq_upload_options), TSQ_OK, upload},
    {"options.size", sizeof(tsq_url_options), TSQ_OK, sign_url},
    {"options.size", sizeof(tsq_sign_options), TSQ_OK, sign_file},
    {"options.size", sizeof(tsq_sign_options), TSQ_OK, encrypt_file},
    {"request.size", sizeof(tsq_change_request), TSQ_OK, open_changes},
    {"request.size", sizeof(tsq_change_request), TSQ_OK, subscribe},
};

static const input arrays[] = {
    {"spaces[0].size", sizeof(tsq_new_space), TSQ_OK, create_spaces},
    {"fidgets[0].size", sizeof(tsq_new_fidget), TSQ_OK, create_fidgets},
    {"rows[0].size", sizeof(tsq_new_credential), TSQ_OK, import_credentials},
};

/* The number of spaces of the database. */
static size_t spaces_stored(void) {
    tsq_space_list *list = NULL;
    size_t count = 0;
    WORKS(tsq_spaces_list_spaces(service, 1000, absent, &list, &err));
    count = tsq_space_list_len(list);
    tsq_space_list_free(list);
    return count;
}

/* Whether a call with this size has this result, and words in its error. */
static int gives(const input *row, void *memory, size_t size, tsq_status expected, const char *words) {
    const tsq_status status = row->call(memory, size);
    const int as_expected = status == expected && (words == NULL || contains(tsq_error_text(err), words));
    if (!as_expected) {
        fprintf(stderr, "  %s %zu of %zu: status %d: %.*s, not %s\n", row->name, size, row->size, (int)status,
                TSQ_ARG(tsq_error_text(err)), words == NULL ? "" : words);
    }
    tsq_error_free(err);
    err = NULL;
    return as_expected;
}

/* Whether a size is refused with a sentence of `name`: Argument NAME is SIZE, … */
static int refuses(const input *row, void *memory, size_t size, const char *name, const char *reason) {
    char words[200];
    snprintf(words, sizeof words, "Argument %s is %zu, %s", name, size, reason);
    return gives(row, memory, size, TSQ_INVALID_INPUT, words);
}

static void known_sizes_are_read(const input *row) {
    /* Valgrind reports a read behind the struct. */
    void *exact = calloc(1, row->size);
    CHECK(gives(row, exact, 0, row->works, NULL));
    CHECK(gives(row, exact, row->size, row->works, NULL));
    free(exact);
}

static void a_later_struct_is_read_while_its_further_members_are_zero(const input *row) {
    char reason[100];
    const size_t later = row->size + 16;
    uint8_t *memory = (uint8_t *)calloc(1, later);
    const size_t before = spaces_stored();
    snprintf(reason, sizeof reason, "and a member after byte %zu is not 0: the library is older than the header", row->size);
    memory[row->size] = 1;
    CHECK(refuses(row, memory, later, row->name, reason));
    memory[row->size] = 0;
    memory[later - 1] = 255;
    CHECK(refuses(row, memory, later, row->name, reason));
    CHECK(spaces_stored() == before);
    CHECK(gives(row, memory, 0, row->works, NULL));
    memory[later - 1] = 0;
    CHECK(gives(row, memory, later, row->works, NULL));
    free(memory);
}

/* `name` is the size that the library reads first: in an array the one of an item. */
static void other_sizes_are_refused(const input *row, const char *name) {
    uint8_t *memory = (uint8_t *)calloc(1, row->size);
    const size_t before = spaces_stored();
    char small[100];
    snprintf(small, sizeof small, "less than the %zu bytes of the struct: set it to sizeof", row->size);
    CHECK(refuses(row, memory, 1, name, small));
    CHECK(refuses(row, memory, row->size - sizeof(size_t), name, small));
    CHECK(refuses(row, memory, row->size - 1, name, small));
    CHECK(refuses(row, memory, row->size + 1, name, "not the size of a struct: set it to sizeof"));
    CHECK(refuses(row, memory, 1 << 20, name, "not the size of a struct: set it to sizeof"));
    CHECK(refuses(row, memory, SIZE_MAX, name, "not the size of a struct: set it to sizeof"));
    CHECK(spaces_stored() == before);
    free(memory);
}

/* A later version of tsq_new_space. */
typedef struct later_space {
    tsq_new_space space;
    uint64_t member;
} later_space;

static void items_are_as_far_apart_as_the_program_says(void) {
    later_space later[3];
    char words[200];
    tsq_space_list *list = NULL;
    size_t before = spaces_stored();
    size_t row = 99;
    memset(later, 0, sizeof later);
    for (size_t i = 0; i < 3; i++) {
        later[i].space.name = TSQ_STR("Later");
        later[i].space.size = sizeof *later;
    }
    WORKS(tsq_spaces_create_spaces(service, &later[0].space, 3, sizeof *later, &list, &err));
    CHECK(tsq_space_list_len(list) == 3 && is(tsq_space_list_at(list, 2)->name, "Later"));
    tsq_space_list_free(list);
    list = NULL;
    CHECK(spaces_stored() == before + 3);

    later[2].member = 1;
    CHECK(tsq_spaces_create_spaces(service, &later[0].space, 3, sizeof *later, &list, &err) == TSQ_INVALID_INPUT);
    snprintf(words, sizeof words, "Argument spaces[2].size is %zu, and a member after byte %zu is not 0", sizeof *later,
             sizeof(tsq_new_space));
    CHECK(list == NULL && has(tsq_error_text(err), words) && tsq_error_row(err, &row) && row == 2);
    tsq_error_free(err);
    err = NULL;
    CHECK(spaces_stored() == before + 3);
    later[0].space.size = sizeof(tsq_new_space);
    later[1].space.size = later[2].space.size = 0;
    WORKS(tsq_spaces_create_spaces(service, &later[0].space, 3, sizeof *later, NULL, &err));
    CHECK(spaces_stored() == before + 6);

    later[1].space.size = sizeof *later;
    snprintf(words, sizeof words, "Argument spaces[0].size is %zu, and the items are %zu bytes apart", sizeof *later,
             sizeof(tsq_new_space));
    FAILS(tsq_spaces_create_spaces(service, &later[1].space, 1, sizeof(tsq_new_space), &list, &err), TSQ_INVALID_INPUT, list, words);
    FAILS(tsq_spaces_create_spaces(service, NULL, 0, 0, &list, &err), TSQ_INVALID_INPUT, list, "Argument item_size is 0, less than the ");
    FAILS(tsq_spaces_create_spaces(service, &later[0].space, SIZE_MAX, sizeof *later, &list, &err), TSQ_INVALID_INPUT, list,
          "Argument spaces has an impossible length");
    CHECK(spaces_stored() == before + 6);
}

int main(int argc, char **argv) {
    tsq_client *anonymous = NULL;
    tsq_session *session = NULL;
    tsq_space *space = NULL;
    tsq_fidget *fidget = NULL;
    tsq_new_space made = no_space;
    tsq_new_fidget placed = no_fidget;
    if (argc != 3) {
        fprintf(stderr, "usage: %s CATALOG FOLDER\n", argv[0]);
        return 2;
    }
    folder = argv[2];
    anonymous = open_with("town", NULL);
    WORKS(tsq_client_as_service(anonymous, &service, &err));
    session = meet(service, "user@town.example");
    user = act_as(anonymous, session);
    tsq_session_free(session);
    WORKS(tsq_realtime_start(service, &err));
    made.name = TSQ_STR("Market");
    WORKS(tsq_spaces_create_space(service, &made, &space, &err));
    space_id = keep(space->id);
    placed.kind = TSQ_STR("clock");
    WORKS(tsq_fidgets_create_fidget(service, space->id, &placed, &fidget, &err));
    fidget_id = keep(fidget->id);
    tsq_fidget_free(fidget);
    tsq_space_free(space);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        known_sizes_are_read(&inputs[i]);
        a_later_struct_is_read_while_its_further_members_are_zero(&inputs[i]);
        other_sizes_are_refused(&inputs[i], inputs[i].name);
    }
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        known_sizes_are_read(&arrays[i]);
        a_later_struct_is_read_while_its_further_members_are_zero(&arrays[i]);
        other_sizes_are_refused(&arrays[i], "item_size");
    }
    items_are_as_far_apart_as_the_program_says();
    tsq_client_free(user);
    tsq_client_free(service);
    tsq_client_free(anonymous);
    return checks_done("inputs");
}
