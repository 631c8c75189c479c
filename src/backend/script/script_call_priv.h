/* script_call_priv: what the keys and arguments of a script call are written from, and
 * who writes them. A part of script_call, for nobody else.
 *
 * The build makes script_write.c from the tags of the scripts (lua_order.py): for each
 * script a function that writes its words in the order in which the script declares
 * them, each word by the function of its name in script_keys.h or script_args.h. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_CALL_PRIV_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_CALL_PRIV_H

#include "backend/script/script_call.h"

#include <stdbool.h>

/* Texts belong to the ops. */
struct script_source {
    struct buf *out;
    const struct op *op; /* the first of `op_count`, which are of one kind */
    size_t op_count;     /* more than one: a batch of simple ops */
    const char *instance;
    struct op_times times;
    size_t short_count; /* RENEW: so many of the first are short (renew.lua) */
    bool one_word;      /* a batch: what is said of the first is true of all */
    uint32_t block_us; /* acquires of several locks: the block of those that are lent */
    /* What the words are about now. A select_...() of script_select.h changes these
     * fields, and they stay so until the next one. */
    struct span name;
    const struct claim *claim;         /* who is granted the lock, or given it back */
    const struct target *target;       /* what is released or attached to */
    const struct op_release *released; /* one of a batch */
    const struct renew_item *renewed;
    struct span field, entry, member;
    uint64_t token;
    uint64_t lease_ms;
    uint64_t loan_token; /* see op.h; 0: none */
    uint64_t for_ms;     /* how long this instance has had the entry */
};

typedef void script_writer(struct script_source *from);

extern script_writer *const SCRIPT_WRITERS[LUA_COUNT];

#endif
