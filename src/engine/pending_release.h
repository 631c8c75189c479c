/* pending_release: a release or undo that is sent again until Redis has answered it.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_PENDING_RELEASE_H
#define LATCHD_ENGINE_PENDING_RELEASE_H

#include "engine/objects.h"
#include "engine/op.h"
#include "util/list.h"
#include "util/span.h"
#include "util/transition.h"

#include <stdbool.h>
#include <stdint.h>

/* Why a release is made; decided when it is made, and never changed. */
enum release_cause {
    RELEASE_REQUESTED, /* a client gave the entry up */
    RELEASE_FORCED,    /* FORCEUNLOCK: the whole hold, of any keeper */
    RELEASE_ENDED,     /* no client asked: grace, KEEP or a fixed lease is over */
    RELEASE_UNDO,      /* of a grant that may not even have happened */
    /* REQUESTED or ENDED once more, as Redis may have lost that, see release_log.h */
    RELEASE_REQUESTED_AGAIN,
    RELEASE_ENDED_AGAIN,
};

/* Where a release is on its way to Redis and back. The answer to a sending ends the
 * release, or leads to the next sending:
 *
 *   QUEUED ──> SENT, PARALLEL ──> NOT_RUN ──> SENT
 *                      └────────> MAYBE_RUN <──> SENT_AGAIN
 *
 * A target that Redis lacks is lost, unless it may have been this release that ended
 * the target: in SENT_AGAIN. */
enum release_state {
    RELEASE_QUEUED,     /* never sent */
    RELEASE_SENT,       /* in flight, and no earlier sending has run */
    RELEASE_PARALLEL,   /* the same, first sending, on lock->parallel_releases */
    RELEASE_NOT_RUN,    /* to be sent again; none of the sendings has run */
    RELEASE_MAYBE_RUN,  /* to be sent again; one of the sendings may have run */
    RELEASE_SENT_AGAIN, /* in flight, and an earlier sending may have run */
};

extern const struct transitions RELEASE_TRANSITIONS;

/* A release that Redis must still confirm, whether or not its client is still
 * connected. */
struct pending_release {
    struct list in_lock;
    enum release_cause cause;
    struct target target; /* into data[] */
    /* the entry that this release ends, while the entry exists */
    struct entry *local;
    struct pending_request *call; /* the request that waits for the answer, or NULL */
    /* the claim sent with it for the hand-over; a repetition must name the same */
    struct acquire_spec *next;
    /* the waiter that the client wants to be next; NULL: the first one */
    struct acquire_spec *to;
    uint64_t next_asked; /* when its client asked for it */
    uint64_t since;      /* when the release was made */
    uint64_t give_up_at; /* the lease has ended the hold by then */
    enum release_state state;
    unsigned tries; /* sendings, up to RELEASE_TRIES_MAX */
    /* the hold was certain when this was first sent: not there on repetition means
     * released */
    bool was_held;
    bool leave_tombstone; /* as in op_release */
    bool skips_rest;      /* the same */
    /* sent so that others may have been granted the lock after it */
    bool may_free;
    enum lock_class lock_class; /* that it is sent for */
    bool may_be_parallel;       /* a client's release of one reader among others */
    bool returns_loan;          /* of this lock: see loan.h */
    bool guessed; /* `lock_class` is a guess, as nothing is known of the name here */
    char data[];
};

static inline bool release_is_forced(const struct pending_release *d)
{
    return d->cause == RELEASE_FORCED;
}

/* Whether no client asked for the release: it may end only what this daemon keeps. */
static inline bool release_is_if_keeper(const struct pending_release *d)
{
    return d->cause == RELEASE_ENDED || d->cause == RELEASE_UNDO ||
           d->cause == RELEASE_ENDED_AGAIN;
}

static inline bool release_is_replay(const struct pending_release *d)
{
    return d->cause == RELEASE_REQUESTED_AGAIN || d->cause == RELEASE_ENDED_AGAIN;
}

/* Whether the release, if sent late, may end another hold than was meant. */
static inline bool release_is_vague(const struct pending_release *d)
{
    return d->target.kind == TARGET_OWNER || d->target.kind == TARGET_VALUE ||
           d->target.kind == TARGET_ANY;
}

/* Whether the release was ever sent, so that it may run or have run. */
static inline bool release_was_sent(const struct pending_release *d)
{
    return d->state != RELEASE_QUEUED;
}

static inline bool release_is_in_flight(const struct pending_release *d)
{
    return d->state == RELEASE_SENT || d->state == RELEASE_PARALLEL ||
           d->state == RELEASE_SENT_AGAIN;
}

/* Whether it was this release that ended what Redis lacks: an earlier sending may have
 * run, when the hold was certain. */
static inline bool release_may_have_ended_it(const struct pending_release *d)
{
    return d->was_held && d->state == RELEASE_SENT_AGAIN;
}

/* A release of that target, on the lock's list; lock_step() sends it. */
struct pending_release *pending_release_new(struct engine *eng, struct lock *lock,
                                            enum release_cause cause,
                                            const struct target *target);
/* The same for an entry that is known here, which is ending from then on. */
struct pending_release *pending_release_for_entry(struct engine *eng, struct entry *e,
                                                  enum release_cause cause);
/* The ID of the request that an UNLOCK ends, as far as that is known here; or empty. */
struct span release_request_id(const struct pending_release *d);
/* Whether a FORCEUNLOCK means that hold. */
bool release_forces(const struct pending_release *d, const struct hold *h);
void pending_release_free(struct engine *eng, struct lock *lock,
                          struct pending_release *d);
/* Makes the release and its local entry forget each other. */
void pending_release_unlink(struct pending_release *d);
/* The only way to change the state: ends the process if that may not follow. */
void pending_release_set_state(struct pending_release *d, enum release_state state);
/* The first sending goes beside those of other readers, out of the queue. */
void pending_release_set_parallel(struct lock *lock, struct pending_release *d);
/* The release is in flight, and is not ended by the answer: it waits to be sent again,
 * before all others. `ran`: that sending may have run. */
void pending_release_requeue(struct lock *lock, struct pending_release *d, bool ran);
/* Undoes what `spec` may have been granted. False: nothing is undone, as the
 * request of that spec goes on. */
bool pending_release_undo(struct engine *eng, struct lock *lock,
                          const struct acquire_spec *spec);
/* Whether that release undoes what `spec` may have been granted. */
bool pending_release_undoes(const struct pending_release *d,
                            const struct acquire_spec *spec);
/* Whether another release of the lock than that one, for no client, ends what a claim
 * with `spec` gets: it undoes that, or ends what its request was granted before. */
bool lock_ends_later(const struct lock *lock, const struct pending_release *d,
                     const struct acquire_spec *spec);
/* Drops an undo of that spec that has not been sent yet, as its request goes on.
 * Returns whether there was one. */
bool pending_release_cancel_undo(struct engine *eng, struct lock *lock,
                                 const struct acquire_spec *spec);
/* A client has come back to that hold or entry: drops releases that are for no client.
 * False: one may be in flight already, or the owner gave the entry up. */
bool pending_release_withdraw(struct engine *eng, struct lock *lock, struct span field,
                              struct span entry);
/* Whether that release, which is for no client, is put off: a client is coming back to
 * what it ends by RENEW, whose answer drops the release or leads back to it. */
bool pending_release_awaits_renewal(const struct lock *lock,
                                    const struct pending_release *d);
/* Releases a local entry without a client's request, if this instance keeps it. */
void pending_release_end_entry(struct engine *eng, struct entry *e);
/* Makes the release that Redis is sent for that UNLOCK or FORCEUNLOCK, of what is not
 * known here. A target that may be another hold by then goes under an ID, so that the
 * answer is found again when it is sent twice. */
struct pending_release *pending_release_for_call(struct engine *eng,
                                                 struct pending_request *c);

/* Loans: a hold that ends in memory, and a loan that goes back to Redis. */

/* Answers an UNLOCK of that entry, or of a token without one, if Redis is not needed:
 * the hold ends in memory, or ended there before. */
bool unlock_in_memory(struct engine *eng, struct entry *e, const struct hold_req *req);
/* Releases an idle loan in Redis, for the head of the queue if there is one. */
void loan_return(struct engine *eng, struct lock *lock);
/* Redis may have lost the loan, if there is one: its holder is about to be put back
 * into a field of its own. */
void loan_on_restore(struct engine *eng, struct lock *lock);

#endif
