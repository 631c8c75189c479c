/* waiter: one LOCK that waits. The lock's queue owns it.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_WAITER_H
#define LATCHD_ENGINE_LOCK_WAITER_H

#include "engine/effect.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

struct acquire_spec;
struct engine;
struct inflight_op;
struct lock;
struct lock_req;
struct mlock_member;
struct request;
struct session;

/* Whether it stands in Redis's fair queue. ASKED: perhaps. */
enum fair_place { PLACE_NONE, PLACE_ASKED, PLACE_TOLD };

struct waiter {
    struct list in_queue;
    struct list in_session;
    struct list in_all;
    struct lock *lock;
    struct session *session; /* NULL: kept, nobody is connected */
    struct call_ref call;
    struct acquire_spec *spec;
    struct request *request;       /* NULL: no ID */
    struct inflight_op *in_flight; /* an op in flight that may grant it */
    struct mlock_member *member;   /* of an MLOCK, whose wait this is; or NULL */
    struct timer timer;
    uint64_t began;         /* when it joined the queue; l->waiters is in this order */
    uint64_t since;         /* when it was asked for last */
    uint64_t deadline;      /* UINT64_MAX: none */
    uint64_t place_op : 63; /* the last op that named it for the fair queue */
    bool undecided : 1;     /* it waits for the head's answer; in desk->undecided */
    uint64_t undone : 54;   /* token of its last grant that was; 0: none was */
    enum fair_place place : 2;
    bool once : 1;          /* WAIT 0 */
    bool no_room : 1;       /* WAIT 0 beyond max-waiters: it keeps no place */
    bool probe : 1;         /* must ask for itself before it queues in earnest */
    bool join : 1;          /* and then to be granted beside others, not only again */
    bool expiring : 1;      /* its time is up, the next answer decides */
    bool maybe_granted : 1; /* an op of it may have been granted without our knowing */
    bool retained : 1;      /* counted in stats.retained_waiters */
    bool in_run : 1;        /* asked for behind others, and not by another call since */
    struct list in_waits[]; /* one, of a named owner only */
};

struct waiter *waiter_new(struct engine *eng, struct lock *lock, struct session *s,
                          const struct lock_req *req, struct acquire_spec *spec);
bool waiter_is_head(const struct waiter *w);
/* The lease to ask for: a grant that nobody is there to take is held for KEEP only. */
uint64_t waiter_lease(const struct engine *eng, const struct waiter *w);
void waiter_bind(struct engine *eng, struct waiter *w, struct session *s,
                 const struct lock_req *req);
/* It has been waiting since then. */
void waiter_set_since(struct engine *eng, struct waiter *w, uint64_t since);
/* Answers and ends the wait; the place is kept if it has a KEEP and `keep` allows it.
 */
void waiter_end_null(struct engine *eng, struct waiter *w, bool keep);
void waiter_end_error(struct engine *eng, struct waiter *w, enum lock_error error,
                      struct span text, bool keep);
/* Its time is over, or it is to try once: null, if others hold the lock; otherwise what
 * keeps it from everybody. */
void waiter_end_unserved(struct engine *eng, struct waiter *w);
/* The same as soon as it is known which: now, or with the head's next answer. */
void waiter_decide(struct engine *eng, struct waiter *w);
/* The connection is gone. */
void waiter_detach(struct engine *eng, struct waiter *w);
/* Off the queue and freed; undoes what it may have been granted. */
void waiter_remove(struct engine *eng, struct waiter *w);
void waiter_on_timer(struct engine *eng, struct waiter *w);

#endif
