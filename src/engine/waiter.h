/* waiter: one LOCK that waits. The lock's queue owns its waiters. Private to engine/.
 */
#ifndef LATCHD_ENGINE_WAITER_H
#define LATCHD_ENGINE_WAITER_H

#include "engine/effect.h"
#include "engine/objects.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"
#include "util/transition.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether a waiter has a place in Redis's fair queue. ASKED: perhaps. */
enum fair_place { PLACE_NONE, PLACE_ASKED, PLACE_TOLD };

/* Whether a waiter is to ask Redis for itself, beside the head; counted in
 * lock->probes. */
enum waiter_probe {
    PROBE_NONE,
    PROBE_REENTER, /* to find what its owner, or its ID, holds already */
    PROBE_JOIN,    /* it may be granted beside other readers as well */
};

/* A waiter that tries once waits for the end of another daemon's loan, see
 * waiter_outlast_loan():
 *
 *   NOT_YET --the name is lent--> NOW --somebody holds it, or too long--> OVER */
enum outlasting { OUTLASTS_NOT_YET, OUTLASTS_NOW, OUTLASTS_OVER };

/* How the wait of a waiter's client stands:
 *
 *   QUEUED ──> EXPIRING ──> EXPIRING_AWAITS_HEAD
 *      └────> AWAITS_HEAD ───────────┘
 *
 * From each of them the waiter goes to RETAINED when no client waits any more, and back
 * to QUEUED when one sends the LOCK again. REMOVED is the end. */
enum waiter_state {
    WAITER_QUEUED,
    /* WAIT 0: the next answer to the head decides; counted in last_answer.awaiting */
    WAITER_AWAITS_HEAD,
    WAITER_EXPIRING, /* its time is over: its own next answer decides */
    /* its time is over: whichever comes next of its own answer and the head's decides
     */
    WAITER_EXPIRING_AWAITS_HEAD,
    WAITER_RETAINED, /* its place is kept for KEEP, no connection waits */
    WAITER_REMOVED,  /* off the queue, about to be freed */
};

extern const struct transitions WAITER_TRANSITIONS;

struct waiter {
    struct list in_queue;
    struct list in_session;
    struct list in_all;
    struct lock *lock;
    struct session *session; /* NULL: retained for KEEP, no connection waits */
    uint64_t call;           /* which of its connection's calls: see waiter_call() */
    struct acquire_spec *spec;
    struct request *request; /* NULL: the LOCK had no ID */
    /* an op in flight that may grant the lock to this waiter */
    struct inflight_op *in_flight;
    /* the member of an MLOCK that this waiter waits for, or NULL */
    struct mlock_member *member;
    struct timer timer;
    /* when the waiter arrived, or first asked if it polls; eng->waiters is in this
     * order, as far as POLLER_PASSES_MAX allows */
    uint64_t began;
    uint64_t since;    /* when the client last sent the LOCK */
    uint64_t deadline; /* UINT64_MAX: none */
    /* the last op that named the waiter's place in the fair queue */
    uint64_t place_op;
    enum fair_place place;
    bool polls; /* its client asks again: this wait is a part of a longer one */
    uint64_t undo_token; /* token of its last grant that was undone; 0: none was */
    enum waiter_state state;
    enum waiter_probe probe;
    enum outlasting outlasting;
    bool once;       /* WAIT 0 */
    bool is_surplus; /* WAIT 0 beyond max-waiters: the waiter keeps no place */
    /* one of its ops may have been granted without the engine knowing */
    bool maybe_granted;
    /* sent in a batch behind others, and not by another request since */
    bool in_run;
    bool often;   /* its name was asked for shortly before: see acquire.h */
    int64_t rank; /* see wait_queue.h */
    /* QUEUE beyond which nobody waits: it tries once, and keeps no place */
    bool queue_full;
    bool has_place;         /* counted in lock->places */
    struct list in_waits[]; /* in the wait graph; one element, of a named owner only */
};

/* Whether the waiter's time is over. */
static inline bool waiter_is_expiring(const struct waiter *w)
{
    return w->state == WAITER_EXPIRING || w->state == WAITER_EXPIRING_AWAITS_HEAD;
}

/* Whether the next answer to its own op ends the wait, whatever that answer is. */
static inline bool waiter_ends_next(const struct waiter *w)
{
    return w->once || waiter_is_expiring(w);
}

/* Whether the next answer to the head's op ends the wait. */
static inline bool waiter_awaits_head(const struct waiter *w)
{
    return w->state == WAITER_AWAITS_HEAD || w->state == WAITER_EXPIRING_AWAITS_HEAD;
}

/* Where the answer goes, while a connection waits. */
struct call_ref waiter_call(const struct waiter *w);
/* How long ago the client asked, or was gone: see struct claim. */
uint64_t waiter_asked_ago_ms(const struct engine *eng, const struct waiter *w);
struct waiter *waiter_new(struct engine *eng, struct lock *lock, struct session *s,
                          const struct lock_req *req, struct acquire_spec *spec);
/* The lease to ask for: KEEP, while no connection waits for the grant. */
uint64_t waiter_lease(const struct engine *eng, const struct waiter *w);
/* A client that sent the LOCK again takes the waiter over, with the new terms. */
void waiter_bind(struct engine *eng, struct waiter *w, struct session *s,
                 const struct lock_req *req);
/* Sets since when the client has been waiting. */
void waiter_set_since(struct engine *eng, struct waiter *w, uint64_t since);
/* The waiter was the head, and another one stands before it now: what only the head
 * finds out is found out for the waiter in another way. */
void waiter_on_passed(struct engine *eng, struct waiter *w);
/* Answers null or an error and ends the wait. The place is retained if the waiter has
 * a KEEP and `keep` allows it. */
void waiter_end_null(struct engine *eng, struct waiter *w, bool keep);
void waiter_end_error(struct engine *eng, struct waiter *w, enum lock_error error,
                      struct span text, bool keep);
/* Ends a wait whose time is over, or that tries once: with null if others hold the
 * lock, otherwise with the error that withholds it from everybody. */
void waiter_end_unserved(struct engine *eng, struct waiter *w);
/* Ends a wait beyond its QUEUE. */
void waiter_end_queue_full(struct engine *eng, struct waiter *w);
/* Redis said that the name is lent to another daemon, which alone knows whether anybody
 * holds it. So a head that tries once waits for the end of the loan: its daemon hears
 * of a listener, and returns the name, or has Redis tell who holds. False: the answer
 * counts. */
bool waiter_outlast_loan(struct engine *eng, struct waiter *w);
/* Whether it would begin to wait so. */
bool waiter_may_outlast(const struct waiter *w);
/* Redis said that somebody holds the name. */
void waiter_end_outlasting(struct engine *eng, struct waiter *w);
/* Has the wait end with the head's next answer, which tells how. */
void waiter_await_answer(struct engine *eng, struct waiter *w);
/* waiter_end_unserved(), as soon as it is known which: now, or with the head's next
 * answer. */
void waiter_decide(struct engine *eng, struct waiter *w);
/* The waiter's connection is gone: ends the wait, or retains the place for KEEP. */
void waiter_detach(struct engine *eng, struct waiter *w);
/* Takes the waiter off the queue and frees it; undoes what it may have been granted. */
void waiter_remove(struct engine *eng, struct waiter *w);
/* Ends the wait as if its time were over. */
void waiter_expire(struct engine *eng, struct waiter *w);
void waiter_on_timer(struct engine *eng, struct waiter *w);

#endif
