/* For call_sequences.c: the input as a source of arguments, the pool of handles, and what the manual promises of each call. Each
 * argument is drawn in a statement of its own, because C does not say in which order the arguments of a call are evaluated. */
#ifndef SEQUENCE_H
#define SEQUENCE_H

#include "check.h"

#include <stdlib.h>

/* The bytes of the input that no argument has used. */
static const uint8_t *input;
static size_t input_left;

/* The next byte; 0 after the end. */
static unsigned draw(void) {
    if (input_left == 0) {
        return 0;
    }
    input_left--;
    return *input++;
}

static unsigned below(size_t count) {
    return draw() % (unsigned)count;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The call that is checked, for the report. */
static const char *current_call = "no call";
static int current_line;

/* A check of the current call. Under the fuzzer the first one that does not hold ends the process. */
static int must(int holds, const char *claim) {
    if (!check(holds, claim, current_call, current_line)) {
#ifdef TSQ_FUZZ
        abort();
#endif
    }
    return holds;
}

#define MUST(claim) must(!!(claim), #claim)

/* What views showed, so that every byte is read. Callbacks add to it, too. */
static unsigned bytes_seen;

static void see_bytes(const void *bytes, size_t length) {
    const uint8_t *at = (const uint8_t *)bytes;
    unsigned sum = 0;
    for (size_t i = 0; i < length; i++) {
        sum += at[i];
    }
    __atomic_add_fetch(&bytes_seen, sum, __ATOMIC_RELAXED);
}

/* The length of the character at `at`; 0 if it is not UTF-8. */
static size_t character(const uint8_t *at, size_t left) {
    const uint8_t first = at[0];
    const size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    if (length == 0 || length > left) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f) || (first == 0xf0 && at[1] < 0x90) ||
        (first == 0xf4 && at[1] > 0x8f)) {
        return 0;
    }
    return length;
}

/* Whether a text of the library is absent, or readable and UTF-8. Callbacks call it, too. */
static int is_text(tsq_str text) {
    const uint8_t *at = (const uint8_t *)text.ptr;
    if (at == NULL) {
        return text.len == 0;
    }
    see_bytes(at, text.len);
    for (size_t i = 0, length; i < text.len; i += length) {
        length = character(at + i, text.len - i);
        if (length == 0) {
            return 0;
        }
    }
    return 1;
}

static void see(tsq_str text) {
    MUST(is_text(text));
}

/* Memory that a call borrows: exactly as long as the argument says, and overwritten and freed after the call. */
typedef struct loan {
    void *bytes;
    size_t length;
} loan;

static loan loans[256];
static size_t loans_made;

/* A copy of `length` bytes, or zeros. */
static void *lend(const void *bytes, size_t length) {
    void *copy = malloc(length == 0 ? 1 : length);
    if (copy == NULL || loans_made == COUNT(loans)) {
        abort();
    }
    if (bytes == NULL) {
        memset(copy, 0, length);
    } else if (length > 0) {
        memcpy(copy, bytes, length);
    }
    loans[loans_made].bytes = copy;
    loans[loans_made].length = length;
    loans_made++;
    return copy;
}

static void end_loans(void) {
    while (loans_made > 0) {
        loans_made--;
        memset(loans[loans_made].bytes, 0xdd, loans[loans_made].length);
        free(loans[loans_made].bytes);
    }
}

/* The kinds of handles: all, and those with a function that returns them as JSON. */
#define JSON_KINDS(X)                                                                                                       \
    X(space) X(space_list) X(fidget) X(fidget_list) X(user) X(user_list) X(session) X(session_infos) X(identities)          \
    X(community_config) X(community_config_list) X(community_domain) X(community_domain_list) X(space_registration)         \
    X(space_registration_list) X(file_info) X(file_list) X(repair_report) X(row_change) X(exported_row)                     \
    X(row_import_report) X(import_report) X(migration_plan) X(move_report) X(findings) X(mini_apps) X(suggestions)          \
    X(facets) X(highlights)
#define OTHER_KINDS(X)                                                                                                      \
    X(string) X(buffer) X(error) X(config) X(client) X(subscription) X(change_stream) X(live_query) X(file_writer)          \
    X(file_reader) X(file_response) X(row_export) X(discovery_stats) X(http_response) X(realtime_stats) X(storage_path)

#define KIND_NAME(name) kind_##name,
typedef enum kind { JSON_KINDS(KIND_NAME) OTHER_KINDS(KIND_NAME) KINDS } kind;

typedef struct handle {
    void *pointer;
    kind what;
    /* Closing this client closes all clients of the input's set-up: it is never done. */
    int is_shared;
} handle;

/* The first ones are of the set-up: no input frees them. */
static handle pool[64];
static size_t pool_used, handles_kept;

/* Reads all that a handle shows, frees it. */
static void look_at(const handle *which);
static void free_handle(const handle *which);

/* Puts a new handle into the pool. */
static handle *keep(kind what, void *pointer) {
    handle fresh;
    fresh.pointer = pointer;
    fresh.what = what;
    fresh.is_shared = 0;
    look_at(&fresh);
    if (pool_used == COUNT(pool)) {
        free_handle(&fresh);
        return NULL;
    }
    pool[pool_used] = fresh;
    return &pool[pool_used++];
}

/* A handle of this kind; seldom NULL, and NULL if there is none. */
static void *pick(kind what) {
    size_t count = 0;
    const unsigned choice = draw();
    for (size_t i = 0; i < pool_used; i++) {
        count += pool[i].what == what;
    }
    if (count == 0 || choice >= 0xf8) {
        return NULL;
    }
    for (size_t i = 0, left = choice % count; i < pool_used; i++) {
        if (pool[i].what == what && left-- == 0) {
            return pool[i].pointer;
        }
    }
    return NULL;
}

#define PICK(name) ((tsq_##name *)pick(kind_##name))

/* Whether this client may be closed, signed in and out, and given subscriptions without a handle. */
static int is_own(const tsq_client *client) {
    for (size_t i = 0; i < pool_used; i++) {
        if (pool[i].pointer == (const void *)client) {
            return !pool[i].is_shared;
        }
    }
    return 1;
}

/* Set where an argument makes the call invalid: then it must not succeed. */
static int is_refused;

/* No call may leave this in an output: it is no address. */
static void *unset(void) {
    return (void *)(uintptr_t)0x7e57;
}

static tsq_error *error_made;
static int has_error_place;

/* The last argument of a call: NULL one time in eight. */
static tsq_error **error_place(void) {
    has_error_place = draw() % 8 != 7;
    error_made = (tsq_error *)unset();
    return has_error_place ? &error_made : NULL;
}

/* What every error promises. */
static void look_at_error(const tsq_error *error) {
    uint64_t wait = 1;
    size_t row = 1;
    const tsq_str text = tsq_error_text(error);
    MUST(tsq_error_kind(error) != TSQ_OK && tsq_error_kind(error) != TSQ_INTERNAL);
    MUST(text.ptr != NULL && text.len > 0);
    see(text);
    MUST(tsq_error_message(error).len > 0 && tsq_error_explanation(error).len > 0);
    see(tsq_error_message(error));
    see(tsq_error_operation(error));
    see(tsq_error_code(error));
    see(tsq_error_explanation(error));
    see(tsq_error_reason(error));
    see(tsq_error_column(error));
    MUST(tsq_error_status(error) >= 400 && tsq_error_status(error) < 600);
    MUST(tsq_error_retry_after_ms(error, &wait) || wait == 0);
    MUST(tsq_error_row(error, &row) || row == 0);
    tsq_error_is_retryable(error);
}

/* Checks the status and the error of a call. Returns whether it succeeded. */
static int succeeded(tsq_status status) {
    const int is_ok = status == TSQ_OK;
    MUST(status != TSQ_INTERNAL && tsq_status_name((int32_t)status).len > 0);
    MUST(!is_ok || !is_refused);
    if (has_error_place) {
        MUST(error_made != (tsq_error *)unset());
        MUST((error_made == NULL) == is_ok);
        if (error_made != NULL) {
            MUST(tsq_error_kind(error_made) == status);
            look_at_error(error_made);
            if (draw() % 4 == 3) {
                keep(kind_error, error_made);
            } else {
                tsq_error_free(error_made);
            }
            error_made = NULL;
        }
    }
    is_refused = 0;
    return is_ok;
}

/* Whether a call needs its output: REQUIRED; or `out` may be NULL: OPTIONAL; or the output may be: PERHAPS. */
enum presence { REQUIRED, OPTIONAL, PERHAPS };

/* Whether `out` is given. Without a required one the call must fail. */
static int is_given(int presence) {
    const int given = draw() % 16 != 15;
    is_refused = is_refused || (!given && presence != OPTIONAL);
    return given;
}

#define NOTE(call) (void)(current_call = #call, current_line = __LINE__)

/* A call that returns a handle in `out`. Its last two arguments are `out` and `err`. */
#define MAKES(name, presence, call)                                                      \
    do {                                                                                 \
        tsq_##name *made_ = (tsq_##name *)unset();                                       \
        tsq_##name **out = is_given(presence) ? &made_ : NULL;                           \
        tsq_error **err = error_place();                                                 \
        NOTE(call);                                                                      \
        const int ok_ = succeeded(call);                                                 \
        made(kind_##name, presence, ok_, out != NULL, made_);                            \
    } while (0)

static handle *last_made;

static void made(kind what, int presence, int is_ok, int given, void *pointer) {
    last_made = NULL;
    if (!given) {
        return;
    }
    MUST(pointer != unset());
    MUST(is_ok ? pointer != NULL || presence == PERHAPS : pointer == NULL);
    if (pointer != NULL && pointer != unset()) {
        last_made = keep(what, pointer);
    }
}

/* A call without an output, whose last argument is `err`. */
#define DOES(call)                               \
    do {                                         \
        tsq_error **err = error_place();         \
        NOTE(call);                              \
        succeeded(call);                         \
    } while (0)

/* A call that writes a number to `out`: 0 after a failure. */
#define COUNTS(type, number, call)                                \
    do {                                                          \
        type made_ = (type)1;                                     \
        type *out = is_given(REQUIRED) ? &made_ : NULL;           \
        tsq_error **err = error_place();                          \
        NOTE(call);                                               \
        const int ok_ = succeeded(call);                          \
        MUST(ok_ || out == NULL || made_ == (type)0);             \
        (number) = ok_ && out != NULL ? made_ : (type)0;          \
    } while (0)

#endif
