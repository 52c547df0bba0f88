/* A progress callback that records what it gets. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdint.h>
#include <string.h>

/* What a progress callback saw; it cancels at call number `cancel_at`. */
typedef struct seen {
    uint64_t done, total;
    int calls, is_in_order, cancel_at;
} seen;

static inline seen fresh_seen(int cancel_at) {
    seen out;
    memset(&out, 0, sizeof out);
    out.is_in_order = 1;
    out.cancel_at = cancel_at;
    return out;
}

static inline int32_t see(uint64_t done, uint64_t total, void *user_data) {
    seen *self = (seen *)user_data;
    self->calls++;
    self->is_in_order = self->is_in_order && done >= self->done && done <= total && (self->calls == 1 || total == self->total);
    self->done = done;
    self->total = total;
    return self->calls == self->cancel_at;
}

#endif
