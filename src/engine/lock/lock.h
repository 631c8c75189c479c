/* lock: a name that a client of this daemon holds or waits for. The engine's table of
 * names owns the locks. Helpers mark a lock dirty with lock_touch(), and only
 * lock_step() sends ops for it. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_LOCK_H
#define LATCHD_ENGINE_LOCK_LOCK_H

#include "engine/lock/lock_sharing.h"
#include "engine/op.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"
#include "util/transition.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct hold;
struct lock_activity;
struct waiter;

/* Whether this daemon hears of the name by its channel:
 *
 *   NONE ──> ASKED <──> ON
 *
 * ON goes back to ASKED when the link breaks, and both to NONE when nobody waits. */
enum sub_state { SUB_NONE, SUB_ASKED, SUB_ON };

extern const struct transitions SUB_TRANSITIONS;

struct lock {
    struct table_node in_names;
    /* one hold; many of readers, and of permits */
    struct list holds;
    /* LOCK_INACTIVE, which is read only, while the lock is inactive; see
     * lock_activity.c
     */
    struct lock_activity *activity;
    struct lock_sharing *sharing; /* LOCK_UNSHARED, likewise, for most locks */
    uint64_t exempt; /* exempt from the quarantine that ends at this time */
    uint32_t hold_count;
    uint32_t refs; /* ops in flight and pending requests that point here */
    /* holds that have to be put back; no op but RESTORE is sent before that */
    uint32_t needs_restore;
    uint32_t group;
    enum sub_state sub : 7;
    enum lock_class lock_class : 3;
    /* the readers at the front of the queue are to ask, all at once */
    bool readers_in : 1;
    bool dirty : 1;        /* in eng->dirty */
    bool exempt_reads : 1; /* `exempt` is for reads only */
    bool ask : 1;          /* the head is to ask Redis */
    /* the lock was released for others' sake: the next message does not make the head
     * ask at once, either */
    bool yielded : 1;
    uint16_t name_len;
    char name[];
};

struct lock *lock_of(struct table_node *n);
/* The lock of that name, or NULL. */
struct lock *lock_find(const struct engine *eng, struct span name);
/* The group of a name, see engine_setup. */
uint32_t lock_group(const struct engine *eng, struct span name);
/* The lock of that name, made if it is new. */
struct lock *lock_get(struct engine *eng, struct span name);
struct span lock_name(const struct lock *lock);
/* The first waiter, or NULL. */
struct waiter *lock_head(const struct lock *lock);
bool waiter_is_head(const struct waiter *w);
/* The newest hold known here, or NULL. */
struct hold *lock_hold(const struct lock *lock);
/* Marks the lock dirty: engine_settle() runs lock_step() for it. */
void lock_touch(struct engine *eng, struct lock *lock);
/* Sends nothing for the lock for that long. */
void lock_pause(struct engine *eng, struct lock *lock, uint64_t ms);
/* Makes the head ask, whatever its last answer was. */
void lock_ask(struct engine *eng, struct lock *lock);
/* Op `op_id` found the name held in mode `by`. `ttl_ms` < 0: the rest of the lease is
 * not known. */
void lock_seen(struct engine *eng, struct lock *lock, uint64_t op_id, int64_t ttl_ms,
               enum lock_kind by);
/* In how many ms the head asks again for a name whose lease ends in `ttl_ms`. */
uint64_t lock_recheck_in(const struct engine *eng, int64_t ttl_ms);
/* The only way to change the state: ends the process if that may not follow. */
void lock_set_sub(struct lock *lock, enum sub_state sub);
void lock_unsubscribe(struct engine *eng, struct lock *lock);

#endif
