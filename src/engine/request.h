/* request: what became of each request ID, while the request may be sent again.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_REQUEST_H
#define LATCHD_ENGINE_REQUEST_H

#include "engine/objects.h"
#include "engine/op.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mlock;

/* The state of a request with an ID. Key: id, NUL, name. */
struct request {
    struct table_node in_requests;
    struct list in_over;
    struct waiter *waiter;
    struct entry *entry;
    /* the request is an MLOCK, and the name in `key` is empty; or NULL */
    struct mlock *mlock;
    uint64_t over_at; /* 0: not over */
    /* the answer of the UNLOCK that ended it; -1: it ended otherwise */
    int64_t answer;
    struct span owner;
    uint32_t user;
    enum lock_kind lock_kind;
    bool found; /* as in acquire_spec */
    size_t key_len;
    char key[];
};

struct request *request_find(const struct engine *eng, struct span name,
                             struct span id);
struct request *request_new(struct engine *eng, struct span name,
                            const struct acquire_spec *spec);
void request_over(struct engine *eng, struct request *request, int64_t answer);
/* Frees a request that nothing refers to and that is not over. */
void request_idle(struct engine *eng, struct request *request);
void request_expire(struct engine *eng);
void requests_free(struct engine *eng);

#endif
