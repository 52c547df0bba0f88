/* What the C programs share: calls that have to work, and calls that have to fail and how. */
#ifndef CALLS_H
#define CALLS_H

#include "check.h"

/* What the calls below set: each leaves it NULL. */
static tsq_error *err;

/* Fails as expected: this status, an error object that agrees, and no output. Frees the error. */
static inline int failed(tsq_status got, tsq_status expected, const void *out, const char *words) {
    int as_expected = got == expected && out == NULL && err != NULL && tsq_error_kind(err) == expected &&
                      has(tsq_error_text(err), words);
    if (got != expected) {
        fprintf(stderr, "  status %d, not %d: %.*s\n", (int)got, (int)expected, TSQ_ARG(tsq_error_text(err)));
    }
    tsq_error_free(err);
    err = NULL;
    return as_expected;
}

static inline int worked(tsq_status status) {
    int as_expected = status == TSQ_OK && err == NULL;
    if (!as_expected) {
        fprintf(stderr, "  status %d: %.*s\n", (int)status, TSQ_ARG(tsq_error_text(err)));
    }
    tsq_error_free(err);
    err = NULL;
    return as_expected;
}

/* The call comes first: the output is looked at when it has returned. */
#define FAILS(call, expected, out, words)                                       \
    do {                                                                        \
        tsq_status status_ = (call);                                            \
        check(failed(status_, expected, out, words), #call, __FILE__, __LINE__); \
    } while (0)

#define WORKS(call)                                            \
    do {                                                       \
        tsq_status status_ = (call);                           \
        check(worked(status_), #call, __FILE__, __LINE__);     \
    } while (0)

#endif
