/* script_batch: simple ops of a loop turn, kept until they leave together as one script
 * call.
 *
 * Simple is what happens most: an anonymous request asks for a plain lock, or ends its
 * hold where nobody here is next. What is kept is a copy. No two that are kept are of
 * one name, so that their order says nothing. Pure: no link, no clock.
 *
 * The caller owns the struct. A zeroed one is empty and valid. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_BATCH_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_BATCH_H

#include "backend/script/script_codec.h"

#include <stdbool.h>
#include <stddef.h>

enum { SCRIPT_BATCH_TEXT_MAX = 8192 };

struct script_batch_list {
    struct op ops[SCRIPT_BATCH_MAX]; /* of one kind */
    uint64_t ends[SCRIPT_BATCH_MAX]; /* the ends of their names */
    size_t count;
};

struct script_batch {
    struct script_batch_list releases, acquires;
    size_t text_len;
    char text[SCRIPT_BATCH_TEXT_MAX];
};

/* Whether the op may be kept. */
bool script_batch_is_simple(const struct op *op);
/* Whether the kept ops must leave before this one is sent, or kept: it is about one of
 * their names, or about several names; or, if it is simple, there is no room. */
bool script_batch_is_in_the_way(const struct script_batch *g, const struct op *op,
                                bool simple);
/* Keeps a copy of the op, which is simple and has nothing in its way. */
void script_batch_add(struct script_batch *g, const struct op *op);
/* The kept ops have left. */
void script_batch_clear(struct script_batch *g);

#endif
