/* The user, exact error checks, and a client in the program's folder, for the C programs about tables. */
#ifndef ROWS_H
#define ROWS_H

#include "calls.h"

#define ADA "00000000-0000-4000-8000-0000000000ad"
#define NOBODY "00000000-0000-4000-8000-000000000000"
#define NO_STR \
    { NULL, 0 }

static const char *folder;
static const tsq_str absent = NO_STR;

/* Whether a call failed with exactly this sentence and this SQLSTATE (NULL: none). Frees the error. */
static inline int refused(tsq_status got, tsq_status expected, const void *out, const char *sentence, const char *code) {
    int as_expected = got == expected && out == NULL && tsq_error_kind(err) == expected && says(sentence) &&
                      (code != NULL ? is(tsq_error_code(err), code) : is_absent(tsq_error_code(err)));
    tsq_error_free(err);
    err = NULL;
    return as_expected;
}

#define REFUSED(call, expected, out, sentence, code)                                     \
    do {                                                                                 \
        tsq_status status_ = (call);                                                     \
        check(refused(status_, expected, out, sentence, code), #call, __FILE__, __LINE__); \
    } while (0)

static inline tsq_client *open_client(const char *name) {
    char text[4096];
    tsq_client *client = NULL;
    tsq_config *config = tsq_config_new();
    snprintf(text, sizeof text, "%s/%s", folder, name);
    WORKS(tsq_config_set(config, TSQ_STR("data_dir"), tsq_str_from(text), &err));
    WORKS(tsq_config_set(config, TSQ_STR("catalog_api_key"), TSQ_STR(""), &err));
    WORKS(tsq_client_open(config, &client, &err));
    tsq_config_free(config);
    return client;
}

static inline tsq_str_change set(const char *text) {
    tsq_str_change change;
    change.change = TSQ_SET;
    change.value = tsq_str_from(text);
    return change;
}

#endif
