/* call_fifo: the calls of a link that have no answer yet, in order.
 *
 * The caller owns the struct, which owns its array. A zeroed one is empty and valid. */
#ifndef LATCHD_BACKEND_REDIS_CALL_FIFO_H
#define LATCHD_BACKEND_REDIS_CALL_FIFO_H

#include "engine/op.h"

#include <stddef.h>
#include <stdint.h>

/* An op, or a command of the link's own. */
struct redis_call {
    uint64_t op_id;
    uint64_t sent_us;     /* our boot clock */
    uint64_t deadline_us; /* op: Redis's clock */
    uint8_t what;         /* enum call_what of redis_link.c */
    uint8_t op_kind;
    uint8_t item_count;
    uint8_t more;   /* ops: how many calls behind this one share its reply */
    uint32_t group; /* op */
};

struct call_fifo {
    struct redis_call *ring;
    size_t room; /* a power of two */
    size_t first;
    size_t count;
};

void call_fifo_fini(struct call_fifo *f);
struct redis_call *call_fifo_push(struct call_fifo *f);
/* The oldest call, or NULL. */
const struct redis_call *call_fifo_first(const struct call_fifo *f);
/* Returns false if the fifo was empty. */
bool call_fifo_pop(struct call_fifo *f, struct redis_call *ret);

#endif
