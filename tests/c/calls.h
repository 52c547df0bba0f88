/* Macros of the C programs for calls that must succeed and calls that must fail. */
#ifndef CALLS_H
#define CALLS_H

#include "check.h"

/* The error variable of all calls; WORKS and FAILS leave it NULL. */
static tsq_error *err;

/* Whether the text of the error is this sentence and, if there is one, the reason. */
static inline int says(const char *sentence) {
    tsq_str text = tsq_error_text(err);
    tsq_str reason = tsq_error_reason(err);
    size_t length = text.len - (reason.ptr == NULL ? 0 : reason.len + 2);
    return length == strlen(sentence) && memcmp(text.ptr, sentence, length) == 0 &&
           (reason.ptr == NULL || memcmp(text.ptr + length, ": ", 2) == 0) &&
           (reason.ptr == NULL || memcmp(text.ptr + length + 2, reason.ptr, reason.len) == 0);
}

/* Whether a call failed with this status, an error object of this kind, these words, and no output. Frees the error. */
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

/* A macro, so that the output is read after the call. */
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
