/* gather: simple ops of a loop turn, kept until they leave together as one script call.
 *
 * Simple is what happens most: an anonymous request asks for a plain lock, or ends its
 * hold where nobody here is next. What is kept is a copy. No two that are kept are of
 * one name, so that their order says nothing. Pure: no link, no clock.
 *
 * The caller owns the struct. A zeroed one is empty and valid. */
#ifndef LATCHD_STORE_GATHER_H
#define LATCHD_STORE_GATHER_H

#include "core/op.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    GATHER_MAX = 32, /* ops of one call: less than 1 ms of Redis, however slow it is */
    GATHER_TEXT_MAX = 8192,
};

struct gather_list {
    struct op ops[GATHER_MAX]; /* of one kind */
    uint64_t ends[GATHER_MAX]; /* how their names end */
    size_t count;
};

struct gather {
    struct gather_list releases, acquires;
    size_t text_len;
    char text[GATHER_TEXT_MAX];
};

/* It may be kept. */
bool gather_is_simple(const struct op *op);
/* What is kept must leave before this one is sent, or kept: it is about one of those
 * names, or about several names; or, if it is simple, there is no room. */
bool gather_is_in_the_way(const struct gather *g, const struct op *op, bool simple);
/* It is simple, and nothing is in the way. */
void gather_add(struct gather *g, const struct op *op);
/* What was kept has left. */
void gather_clear(struct gather *g);

#endif
