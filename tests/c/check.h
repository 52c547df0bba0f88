/* Checks of the C and C++ programs: a counting assertion and comparisons of tsq_str. Everything is static, because each
 * program is one file. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <string.h>
#include <townsquare.h>

static int checks_made;
static int checks_failed;

static inline int check(int holds, const char *claim, const char *file, int line) {
    checks_made++;
    if (!holds) {
        checks_failed++;
        fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, claim);
    }
    return holds;
}

/* The counters are not synchronised: call it on the main thread only. */
#define CHECK(claim) check(!!(claim), #claim, __FILE__, __LINE__)

/* The exit code of main: 0 when all checks passed. */
static inline int checks_done(const char *program) {
    printf("%s: %d checks, %d failed\n", program, checks_made, checks_failed);
    return checks_failed == 0 && checks_made > 0 ? 0 : 1;
}

static inline int is(tsq_str text, const char *expected) {
    int same = text.ptr != NULL && text.len == strlen(expected) && memcmp(text.ptr, expected, text.len) == 0;
    if (!same) {
        fprintf(stderr, "  got \"%.*s\", not \"%s\"\n", TSQ_ARG(text), expected);
    }
    return same;
}

static inline int is_absent(tsq_str text) {
    return text.ptr == NULL && text.len == 0;
}

static inline int contains(tsq_str text, const char *part) {
    size_t length = strlen(part);
    for (size_t i = 0; text.ptr != NULL && i + length <= text.len; i++) {
        if (memcmp(text.ptr + i, part, length) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Says so if a text does not contain a part. */
static inline int has(tsq_str text, const char *part) {
    if (contains(text, part)) {
        return 1;
    }
    fprintf(stderr, "  \"%.*s\" has no \"%s\"\n", TSQ_ARG(text), part);
    return 0;
}

#endif
