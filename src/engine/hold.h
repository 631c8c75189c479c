/* hold: an owner's grant of a name, as far as this daemon keeps it. The lock owns its
 * holds; a hold has one entry for each LOCK that was granted. Private to engine/. */
#ifndef LATCHD_ENGINE_HOLD_H
#define LATCHD_ENGINE_HOLD_H

#include "engine/effect.h"
#include "engine/engine_state.h"
#include "engine/inflight_op.h"
#include "engine/objects.h"
#include "engine/op.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"
#include "util/transition.h"

#include <stdbool.h>
#include <stdint.h>

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

/* Whether Redis tells when something changes the name, see engine_on_touched():
 *
 *   YOUNG --age--> ASKED --the store says so--> ON --told--> LOOKING
 *                    ^  '---- a renewal is sent ----'           |
 *                    '-- an op confirms the hold -- OFF <-------'
 *
 * PROBING is as LOOKING. Where Redis may have forgotten all it watched, ON becomes
 * DOUBTED until the few that are PROBING say what happened.
 *
 * A renewal changes the name as well: what Redis tells before it is asked again may be
 * of that, and counts for nothing. A hold that was looked at for nothing is watched
 * again from its next renewal only, as others may change the name all the time. */
enum hold_watch {
    WATCH_YOUNG, /* most holds end before it would be of use */
    WATCH_OFF,
    WATCH_ASKED,
    WATCH_ON,
    WATCH_DOUBTED, /* it was ON, then all names were flushed: see holds_touched() */
    WATCH_LOOKING, /* a renewal is due that shows whether the hold is lost */
    WATCH_PROBING, /* the same, for all that are DOUBTED */
};

/* How a rest's hold ended. But for RELEASED, the hold may be another daemon's by now.
 */
enum rest_origin {
    REST_RELEASED, /* Redis has said so */
    REST_GIVEN_UP, /* its client released it, and Redis has not said so */
    REST_RAN_OUT,  /* nobody released it */
};

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
    enum owner_kind owner_kind;
    enum rest_origin origin; /* of a rest */
    /* Redis has a keeper key for this hold that names this instance */
    bool keeper_key;
    bool looked; /* checked for the last time before its lease ends */
    /* a message says that the name is free: the hold is to be checked */
    bool freed;
    enum hold_watch watch;
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
struct hold *hold_new(struct engine *eng, struct lock *lock, enum lock_kind lock_kind,
                      struct span field, uint64_t token);
struct entry *hold_add_entry(struct engine *eng, struct hold *h,
                             struct acquire_spec *spec);
/* The entry with that entry ID, or NULL. */
struct entry *hold_find_entry(const struct hold *h, struct span entry);
/* The entry that Redis would find for that target, if this daemon knows it. What
 * TARGET_OWNER, TARGET_VALUE and TARGET_ANY mean, only Redis knows. */
struct entry *lock_find_target(const struct lock *lock, const struct target *target);
/* Whether exactly one entry of the hold is known here. */
bool hold_has_one_entry(const struct hold *h);
/* How many permits of a semaphore it has; 0: none, it is a lock's. */
uint32_t hold_permits(const struct hold *h);
/* The cost of a renewal of the hold, see op_cost(). */
uint64_t hold_cost(const struct hold *h);
/* The data of the hold for others, see lock_req; empty: none. */
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
/* A renewal is about to be sent. */
void hold_renewal_sent(struct engine *eng, struct hold *h);
/* The store watches the name since it was asked to. `missing`: it may be gone. */
void hold_watched(struct engine *eng, struct hold *h, bool missing);
/* Something changed the name: the hold is looked at, at once. */
void hold_touched(struct engine *eng, struct hold *h);
/* Anything may have changed, and Redis watches none of these holds any more: looks at a
 * few, and at all if one of these is gone. While some are looked at for the same `ctx`,
 * others are looked at afterwards. `concerns` NULL: all groups. */
void holds_touched(struct engine *eng, engine_concerns_fn *concerns, void *ctx);
/* Answers came of holds that were looked at. `gone`: one of the few is. */
void holds_on_looks(struct engine *eng, bool gone);
/* None of these holds is watched any more; they are asked for by their renewals. */
void holds_not_watched(struct engine *eng, engine_concerns_fn *concerns, void *ctx);
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
/* Whether the releases of all its entries are pending. */
bool hold_is_ending(const struct hold *h);
/* Whether no entry of the hold is renewed by the watchdog. */
enum lease_kind hold_lease_kind(const struct hold *h);

/* The entry that the request means, if that is known here and not ending. */
struct entry *entry_of_request(const struct pending_request *c);
/* Whether a client is coming back to that entry, so that nothing may end it meanwhile.
 */
bool entry_is_being_renewed(const struct entry *e);

/* Renewal: the lease to ask for; 0: nothing is to be asked. A hold that is left to run
 * out is still looked at: raising its TTL to CHECK_LEASE_MS changes nothing. */
uint64_t hold_renewal_lease(const struct engine *eng, const struct hold *h);
/* Makes a hold due for renewal now. */
void renew_request(struct engine *eng, struct hold *h);

/* Leases that are being shortened: by a RENEW LEASE, or for a grace. */

/* Ops in flight that may shorten the lease of the hold with this field. A lease
 * shortening outlives its hold, which may be forgotten and come back meanwhile. */
struct lease_shortening {
    struct list in_lock;
    uint64_t op; /* the last op sent that may shorten the lease */
    /* until when the hold counts as held before that op is answered, as the shortest of
     * those leases may be what Redis has */
    uint64_t until;
    bool to_grace; /* that op is for a grace, not a client's RENEW LEASE */
    size_t field_len;
    char field[];
};

/* Notes that an op which is about to be sent may shorten the lease. Until that op or a
 * later one is confirmed, the hold counts as held for no longer than the shorter
 * lease, whatever becomes of the op. */
void hold_shorten_lease(struct engine *eng, struct hold *h, struct asked asked,
                        bool to_grace);
/* A RENEW LEASE was confirmed, which set the lease exactly: the hold counts as held
 * until then, or for as long as a later shortening in flight leaves it. */
void hold_set_until(struct hold *h, uint64_t until);
/* Notes the RENEW LEASEs that were sent after op `op_id`, which made the hold known
 * here. */
void hold_shorten_by_requests(struct engine *eng, struct entry *e, uint64_t op_id);
/* The op `op_id` did not run, or may not have: asks for the wanted lease again. */
void hold_shortening_failed(struct engine *eng, struct hold *h, uint64_t op_id);
/* Whether a lease shortening of that field, sent after op `op_id`, has taken back what
 * that op gave. */
bool lock_shortened_since(const struct engine *eng, const struct lock *lock,
                          struct span field, uint64_t op_id);
/* Forgets the shortenings of a lock that is about to be freed. */
void lock_drop_shortenings(struct lock *lock);

/* A hold that was to be put back needs that no more. */
void hold_mark_restored(struct engine *eng, struct hold *h);
/* Queues a hold for a RESTORE: the first one, or another one, as the result of the last
 * one said nothing. */
void restore_again(struct engine *eng, struct hold *h);

/* Rest: a hold with ATLEAST that ends before its time leaves a rest. Until that time a
 * field of the rest keeps the name in Redis, so that nobody is granted it.
 *
 * Here a rest is a hold of OWNER_REST with a fixed end and without connections: so that
 * it is looked at now and then, and is put back where Redis loses it. No client has it,
 * and so its end is no loss. */

static inline bool hold_is_rest(const struct hold *h)
{
    return h->owner_kind == OWNER_REST;
}

/* Until when the name stays taken, whatever ends the hold; 0: no longer than the hold.
 * It may be later than Redis says: by the way of the answer that told of it, or, where
 * an ID's grant was found again, by the time since. Redis's end is what counts, unless
 * Redis loses it. */
uint64_t hold_atleast_until(const struct hold *h);
/* The same as a time from now; 0: it is over. */
uint64_t hold_atleast_left(const struct engine *eng, const struct hold *h);
/* The token of the hold that a rest came after, of its hash field; 0: it is no rest's.
 */
uint64_t rest_field_token(struct span field);
/* Redis said at `asked` that the name rests, for that long from now on, after the hold
 * with that token. */
void rest_begin(struct engine *eng, struct lock *lock, uint64_t token, uint64_t left_ms,
                struct asked asked);
/* The same of a hold that is forgotten here, though Redis may have it still, or may
 * have lost it: a RESTORE puts the rest in its place. `may_be_lost`: Redis has gone
 * back, so that others have to wait for that. `origin`: if nobody released the
 * hold, and Redis has it again, kept by another daemon, a client has come back to it.
 */
void rest_put_back(struct engine *eng, struct lock *lock, uint64_t token,
                   uint64_t left_ms, bool may_be_lost, enum rest_origin origin);
/* Forgets a hold that its client gave up, though Redis has not said so; `over` as in
 * hold_forget(). */
void hold_forget_unanswered(struct engine *eng, struct hold *h, bool over);

/* Loss: reports a hold that was lost, with the cause as far as it is known here, or
 * that has expired; forgets the hold, and asks Redis who has the name. */

/* The hold is not in Redis any more, and Redis does not say why. */
void hold_lost(struct engine *eng, struct hold *h);
/* The lease of the hold is over. That is no loss if nobody was to renew it, as its
 * client gave it a LEASE or has left, and Redis is not known to have lost it before. */
void hold_expired(struct engine *eng, struct hold *h);
/* Another owner has the name: `taker`; empty: not known, or anonymous. */
void hold_lost_to(struct engine *eng, struct hold *h, struct span taker);
/* The client of connection `conn` freed the hold by force; 0: the client is gone. */
void hold_lost_by_force(struct engine *eng, struct hold *h, uint64_t conn);
/* Redis says that the given hold exists: reports what cannot be true beside it as
 * lost. Returns the hold if it is known already, else NULL. `token` 0: not known. */
struct hold *lock_accept_holder(struct engine *eng, struct lock *lock,
                                enum lock_kind lock_kind, struct span field,
                                uint64_t token);

#endif
