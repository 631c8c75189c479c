/* lock: a name that somebody here holds or waits for. The engine's table of names owns
 * it; helpers mark it dirty (lock_touch()), and only lock_step() sends for it. Private
 * to engine/. */
#ifndef LATCHD_ENGINE_LOCK_LOCK_H
#define LATCHD_ENGINE_LOCK_LOCK_H

#include "engine/op.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct hold;
struct hold_index;
struct lock_activity;
struct waiter;

enum sub_state { SUB_NONE, SUB_ASKED, SUB_ON };

struct lock {
    struct table_node in_names;
    struct list in_dirty;
    struct list holds;        /* one; of a read/write lock there may be many readers */
    struct hold *writer;      /* the one of them that writes */
    struct hold_index *index; /* of the holds, if they are many */
    struct lock_activity
        *activity;   /* LOCK_AT_REST at rest: to be read only; see lock_activity.c */
    uint64_t exempt; /* from the quarantine that ends then */
    uint32_t hold_count;
    uint32_t refs; /* works and calls that point here */
    uint32_t
        needs_restore; /* holds that are to be put back: till then nothing is asked */
    uint32_t group;
    enum sub_state sub : 8;
    bool rw : 1;           /* a read/write lock */
    bool readers_in : 1;   /* the readers at the front are to ask, all at once */
    bool exempt_reads : 1; /* only reads are exempt */
    bool ask : 1;          /* the head is to ask */
    bool yielded : 1;      /* it yielded: the next message is not rushed at, either */
    uint16_t name_len;
    char name[];
};

struct lock *lock_of(struct table_node *n);
struct lock *lock_find(const struct engine *eng, struct span name);
/* See engine_setup. */
uint32_t lock_group(const struct engine *eng, struct span name);
struct lock *lock_get(struct engine *eng, struct span name);
struct span lock_name(const struct lock *lock);
struct waiter *lock_head(const struct lock *lock);
/* The newest hold here, or NULL. */
struct hold *lock_hold(const struct lock *lock);
/* Look at it before the engine returns. */
void lock_touch(struct engine *eng, struct lock *lock);
/* Nothing is sent for it for so long. */
void lock_pause(struct engine *eng, struct lock *lock, uint64_t ms);
/* The head is to ask, whatever it believed. */
void lock_ask(struct engine *eng, struct lock *lock);
/* Somebody was just seen to hold it as `by`, by op `op_id`; `ttl_ms` < 0: not known. */
void lock_seen(struct engine *eng, struct lock *lock, uint64_t op_id, int64_t ttl_ms,
               enum lock_kind by);
/* When the head of one that is held so long is to ask again. */
uint64_t lock_recheck_in(const struct engine *eng, int64_t ttl_ms);
void lock_unsubscribe(struct engine *eng, struct lock *lock);
void lock_step(struct engine *eng, struct lock *lock);
void lock_free(struct engine *eng, struct lock *lock);
void lock_on_timer(struct engine *eng, struct lock *lock);

#endif
