/* hold: an owner's grant of a name, as far as this daemon keeps it. The lock owns it;
 * its entries are one for each LOCK that was granted. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_HOLD_H
#define LATCHD_ENGINE_LOCK_HOLD_H

#include "engine/effect.h"
#include "engine/inflight_op.h"
#include "engine/op.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

struct acquire_spec;
struct engine;
struct entry;
struct lock;

struct hold {
    struct list in_lock; /* newest first */
    struct list in_all;
    struct list in_renew_queue; /* on a struct due: to be renewed; on l->restores */
    struct entry *entries;
    struct lock *lock;
    uint64_t token;
    uint64_t began;      /* here; l->holds is in this order */
    uint64_t confirmed;  /* when the last confirmed op on it was sent */
    uint64_t until;      /* we vouch for it before this */
    uint64_t due;        /* next renewal or check */
    uint64_t fence_at;   /* when the fence key's TTL was last raised */
    uint64_t not_before; /* Redis refused: no renewal before this */
    struct inflight_op *renewal;
    struct inflight_op *restoring;
    struct timer timer;
    uint64_t exact_ms : 40; /* grace: the TTL to set, not only to raise; 0: none */
    uint64_t renewal_slot : 8;
    uint16_t field_len;
    uint32_t checks;
    uint32_t attached;
    uint32_t user;                /* of all its entries */
    enum lock_kind lock_kind : 4; /* PLAIN, READ, WRITE */
    enum owner_kind kind : 4;
    enum lock_state state : 4; /* HELD or UNCERTAIN */
    bool keeper_key : 1;       /* Redis has a keeper key of ours for it */
    bool needs_restore : 1;    /* Redis may have lost it: it is to be put back */
    bool looked : 1;           /* for the last time before it runs out */
    bool freed : 1;            /* a message says so: it is to be looked at */
    char field[];
};

static inline struct span hold_field(const struct hold *h)
{
    return span_of(h->field, h->field_len);
}

struct hold *hold_new(struct engine *eng, struct lock *lock, enum lock_kind kind,
                      struct span field, uint64_t token);
struct entry *hold_add_entry(struct engine *eng, struct hold *h,
                             struct acquire_spec *spec);
struct entry *hold_find_entry(const struct hold *h, struct span entry);
/* What Redis would find for that target, if it is known here; TARGET_OWNER and
 * TARGET_ANY are only known there. */
struct entry *lock_find_target(const struct lock *lock, const struct target *t);
bool hold_has_one_entry(const struct hold *h); /* it has one entry here */
/* Confirmed by that op, with the lease that it asked for. */
void hold_confirm(struct engine *eng, struct hold *h, struct asked asked);
void hold_set_uncertain(struct engine *eng, struct hold *h);
/* Gone without our doing: tell everybody, then forget it. */
/* Ended or kept elsewhere: forget it. `answer`: see request_over(). */
void hold_forget(struct engine *eng, struct hold *h, bool over);
/* By somebody's message, perhaps of a release before it: it is looked at soon. */
void hold_freed(struct engine *eng, struct hold *h);
void hold_on_timer(struct engine *eng, struct hold *h);
void hold_schedule_renewal(struct engine *eng, struct hold *h);
bool hold_is_certain(const struct engine *eng, const struct hold *h);
/* The lease that Redis should give it now; 0: it is left to run out. */
uint64_t hold_lease(const struct engine *eng, const struct hold *h);
/* Every entry's release is on the way. */
bool hold_is_ending(const struct hold *h);
/* When a lease that was asked for at `sent` is over for us. */
uint64_t lease_valid_until(uint64_t sent, uint64_t lease_ms);

#endif
