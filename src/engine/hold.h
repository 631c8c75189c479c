/* hold: an owner's grant of a name, as far as this daemon keeps it. The lock owns its
 * holds; a hold has one entry for each LOCK that was granted. Private to engine/. */
#ifndef LATCHD_ENGINE_HOLD_H
#define LATCHD_ENGINE_HOLD_H

#include "engine/effect.h"
#include "engine/engine_state.h"
#include "engine/inflight_op.h"
#include "engine/op.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"
#include "util/transition.h"

#include <stdbool.h>
#include <stdint.h>

struct acquire_spec;
struct engine;
struct entry;
struct lock;

/* How sure it is that Redis has the hold:
 *
 *   HELD <──> UNCERTAIN <──> RESTORING
 *
 * From each of them the hold may go to ENDED, which is the end. */
enum hold_state {
    HOLD_HELD,
    HOLD_UNCERTAIN, /* Redis has not confirmed the hold in time */
    /* Redis may have lost the hold, which is uncertain so: a RESTORE puts it back;
     * counted in lock->needs_restore */
    HOLD_RESTORING,
    HOLD_ENDED, /* about to be freed */
};

extern const struct transitions HOLD_TRANSITIONS;

struct hold {
    struct list in_lock; /* newest first */
    struct list in_all;
    struct entry *entries;
    struct lock *lock;
    uint64_t token;
    uint64_t loan_token; /* of the loan that it was granted from; 0: of none */
    /* since when this daemon knows the hold; eng->holds is in this order */
    uint64_t began;
    uint64_t confirmed; /* when the last op that confirmed the hold was sent */
    uint64_t until;     /* the hold is known to be held before this */
    uint64_t due;       /* when the next renewal or check is due */
    struct timer timer;

    /* what is under way so that Redis keeps the hold */
    struct list in_queue; /* in a renew_queue, or on eng->restores */
    struct inflight_op *renewal;
    struct inflight_op *restoring;
    uint64_t not_before; /* no renewal before this, as Redis refused one */
    uint64_t exact_ms;   /* grace: the TTL to set exactly; 0: the TTL is only raised */
    uint8_t renewal_slot;
    /* a rest that this daemon puts back though Redis has not gone back: other names are
     * not concerned */
    bool is_put_back;

    uint32_t attached;
    uint32_t user; /* the user of all its entries */
    uint16_t field_len;
    uint16_t checks;
    /* in which half of its TTL, counted from `began`, the fence key was last renewed */
    uint16_t fence_time;
    enum hold_state state;
    enum lock_kind lock_kind; /* PLAIN, READ, WRITE, PERMITS */
    enum owner_kind kind;
    /* Redis has a keeper key for this hold that names this instance */
    bool keeper_key;
    bool looked; /* checked for the last time before its lease ends */
    /* a message says that the name is free: the hold is to be checked */
    bool freed;
    char field[];
};

static inline struct span hold_field(const struct hold *h)
{
    return span_of(h->field, h->field_len);
}

/* The only way to change the state, and the counts of it: ends the process if that may
 * not follow. */
void hold_set_state(struct engine *eng, struct hold *h, enum hold_state state);
void hold_set_put_back(struct engine *eng, struct hold *h, bool is_put_back);
/* Whether it is to be put back as Redis has gone back. */
static inline bool hold_may_be_lost(const struct hold *h)
{
    return h->state == HOLD_RESTORING && !h->is_put_back;
}
/* Makes a hold without entries; `field`: the owner's field in the Redis hash. */
struct hold *hold_new(struct engine *eng, struct lock *lock, enum lock_kind kind,
                      struct span field, uint64_t token);
struct entry *hold_add_entry(struct engine *eng, struct hold *h,
                             struct acquire_spec *spec);
/* The entry with that entry ID, or NULL. */
struct entry *hold_find_entry(const struct hold *h, struct span entry);
/* The entry that Redis would find for that target, if this daemon knows it. What
 * TARGET_OWNER, TARGET_VALUE and TARGET_ANY mean, only Redis knows. */
struct entry *lock_find_target(const struct lock *lock, const struct target *t);
/* Whether exactly one entry of the hold is known here. */
bool hold_has_one_entry(const struct hold *h);
/* How many permits of a semaphore it has; 0: none, it is a lock's. */
uint32_t hold_permits(const struct hold *h);
/* What a renewal of the hold costs, see op_cost.h. */
uint64_t hold_cost(const struct hold *h);
/* What others are to know of the hold, see lock_req; empty: nothing. */
struct span hold_data(const struct hold *h);
/* An op confirmed the hold, with the lease that the op asked for. */
void hold_confirm(struct engine *eng, struct hold *h, struct asked asked);
/* Redis has not confirmed the hold in time: notifies its connections. */
void hold_set_uncertain(struct engine *eng, struct hold *h);
/* The same for every hold, and renews them all. */
void holds_set_uncertain(struct engine *eng);
/* Forgets a hold that has ended, or that another instance keeps. `over`: its requests
 * are over, see request_over(). */
void hold_forget(struct engine *eng, struct hold *h, bool over);
/* A message says that the name is free, perhaps because of an earlier release: the
 * hold is checked soon. */
void hold_freed(struct engine *eng, struct hold *h);
void hold_on_timer(struct engine *eng, struct hold *h);
/* Sets the hold's timer to its next renewal, check, or end. */
void hold_schedule_renewal(struct engine *eng, struct hold *h);
/* Whether the hold is known to be held at this moment. */
static inline bool hold_is_certain(const struct engine *eng, const struct hold *h)
{
    return h->state == HOLD_HELD && eng->now < h->until;
}

/* The lease that Redis should give the hold now; 0: none, the hold runs out. */
uint64_t hold_lease(const struct engine *eng, const struct hold *h);
/* The lease that the watchdog is to give the hold, as an entry is endless, or a
 * connection keeps one without a fixed lease; or, if `kept_too`, KEEP does. 0: none. */
uint64_t hold_wanted_lease(const struct engine *eng, const struct hold *h,
                           bool kept_too);
/* Whether the releases of all its entries are pending. */
bool hold_is_ending(const struct hold *h);
/* Whether no entry of the hold is renewed by the watchdog. */
enum lease_kind hold_lease_kind(const struct hold *h);

#endif
