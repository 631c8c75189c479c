/* lock: a name that a client of this daemon holds or waits for. The engine's table of
 * names owns the locks. Helpers mark a lock dirty with lock_touch(), and only
 * lock_step() sends ops for it. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_H
#define LATCHD_ENGINE_LOCK_H

#include "engine/engine_state.h"
#include "engine/objects.h"
#include "engine/op.h"
#include "engine/timer.h"
#include "engine/waiter.h"
#include "engine/yield.h"
#include "latchd/protocol.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"
#include "util/transition.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct fair;
struct hold_index;
struct latch_watch;
struct leader_watch;

/* Last answer: why the waiters of a name do not have it, as far as is known: Redis's
 * last answer to the head of the queue, or that one of the waiters was granted the
 * name. A wait that ends is answered from this. Null means one thing: somebody else
 * holds the name, or stood further in front and had it. Whatever else withholds the
 * name from everybody is reported as the error that it is.
 *
 *   NONE      nobody has asked yet, or the answer does not count any more: the name
 *             was released, a message came, Redis was away, or the answer is too old
 *   HELD      Redis said that the name is held; this counts until the head asks again
 *   WITHHELD  the name is free, but for a while nobody is granted it
 *   UNACKED   Redis granted the name, but too few replicas acknowledged that
 *   REFUSED   Redis refused; its text is stored
 *
 * Any of these may follow any other. UNACKED and REFUSED stay until the head, which
 * goes on asking, gets another answer. */

enum last_answer_kind {
    ANSWER_NONE,
    ANSWER_HELD,
    ANSWER_WITHHELD,
    ANSWER_UNACKED,
    ANSWER_REFUSED,
};

enum { ANSWER_TEXT_MAX = 256 }; /* bytes of a refusal that are stored */

struct last_answer {
    enum last_answer_kind kind;
    uint32_t awaiting;  /* waiters whose wait the next answer ends */
    uint64_t until;     /* HELD, WITHHELD: the answer counts before this */
    uint64_t held_at;   /* when the name was last known to be held */
    uint64_t served_at; /* when a waiter of this name was last granted it */
    /* The last op that may have found a grant that no client was given: too few
     * replicas acknowledged it, or it was undone. */
    uint64_t withdrawn_op;
    char *refusal; /* REFUSED */
};

/* The answer that counts now. While a hold of this daemon is certain, that is HELD,
 * whatever Redis said; but not of a hold whose release Redis has not answered in time.
 */
enum last_answer_kind last_answer_now(const struct engine *eng,
                                      const struct lock *lock);
/* Whether it is known how to answer that waiter, should its wait end now. */
bool last_answer_decides(const struct engine *eng, const struct waiter *w);
/* The text of a refusal that still counts; else the text for a Redis that does not
 * answer. */
struct span last_answer_text(const struct engine *eng, const struct lock *lock);

/* Redis said that the name is held. `ttl_ms`: what is left of the lease, or TTL_*.
 */
void last_answer_held(struct engine *eng, struct lock *lock, int64_t ttl_ms);
void last_answer_withheld(struct lock *lock, uint64_t until);
void last_answer_unacked(struct lock *lock);
void last_answer_refused(struct lock *lock, struct span text);
/* A waiter of this name was granted it. */
void last_answer_served(struct engine *eng, struct lock *lock);
/* Redis had, until now, a grant of this name that no client is given. */
void last_answer_withdrawn(struct engine *eng, struct lock *lock);
/* The holder may hold no longer: Redis said so, or may say so when asked. */
void last_answer_over(struct lock *lock);
/* The same when the holder's hold was known here. */
void last_answer_hold_gone(struct engine *eng, struct lock *lock);
/* Forgets the answer, as no waiter is left that it was for. */
void last_answer_forget(struct lock *lock);

static inline void last_answer_fini(struct last_answer *answer)
{
    free(answer->refusal);
    answer->refusal = NULL;
}

/* Subscription: whether this daemon hears of the name by its channel:
 *
 *   NONE ──> ASKED <──> ON <──> SURE
 *
 * ON and SURE go back to ASKED when the link breaks, and all to NONE when nobody waits.
 */
enum sub_state {
    SUB_NONE,
    SUB_ASKED, /* not confirmed yet, or not again */
    SUB_ON,    /* confirmed; a message may have come before that */
    SUB_SURE,  /* an op sent since then, and since the last message, found it held: a
                * message will tell when that is over */
};

extern const struct transitions SUB_TRANSITIONS;

/* Lock state: whether the head of the queue has to ask Redis. At most one op that may
 * change who holds is in flight for a name, an ACQUIRE for the head or a RELEASE: a
 * second one is a transition that the table lacks. Beside it are only joins of readers
 * and `parallel_releases`.
 *
 *   IDLE ───────────── sent ─────────────> ASKING ──────── answered ──> IDLE
 *    │  ^                                   ^  │  ^
 *    │  │ nobody waits, or             sent │  │  │ the waiters behind know enough
 *    │  │ the head knows enough             │  │  │
 *    v  │                                   │  v  │
 *   MUST_ASK ───────────────────────────────┘ MUST_RETRY ─ answered ──> MUST_ASK
 *       └───── a release is sent before that ────^
 *
 * Three words are used for this. To *ask* is to send an op for a waiter: lock_ask() has
 * the head do so, waiter_probe_later() another one. The *answer* is its result, from
 * when the op was sent (`struct asked`); it counts no more if it predates the store's
 * last failure (answer_predates_store()), or a message. last_answer is what the waiters
 * behind know from it. To *retry* is to ask once more because of the answer:
 * waiter_retry().
 *
 * lock_step() sends what the state asks for, unless something else of the lock comes
 * first. These have states of their own, as a name may be ASKING in any of them: holds
 * that have to be put back (`needs_restore`), a loan (enum loan_state), a pause (enum
 * lock_pause), releases (enum release_state). The head of an IDLE lock sleeps; the
 * subscription says how it is woken. */
enum lock_state {
    LOCK_IDLE,     /* nobody waits, or the head knows enough */
    LOCK_MUST_ASK, /* what the head knows counts no more */
    LOCK_ASKING,
    LOCK_MUST_RETRY, /* ASKING, and the answer will not be enough: MUST_ASK follows */
};

extern const struct transitions LOCK_TRANSITIONS;

/* Pauses of a name; each includes those before it. */
enum lock_pause {
    PAUSE_ALL,  /* nothing is sent: others get their chance, or Redis failed */
    PAUSE_ASKS, /* nobody asks, nor is handed the lock: a grant was not acknowledged */
    PAUSE_HEAD, /* the head does not ask, unless its wait ends: see yield.h */
    LOCK_PAUSES
};

/* Where the last waiters of each PRIORITY above 0 went: see wait_queue.c. */
struct priority_marks {
    struct list *last[LATCHD_PRIORITY_MAX];
};

struct lock {
    struct table_node in_names;
    /* one hold; many of readers, and of permits */
    struct list holds;
    struct hold *writer;      /* the hold of the writer, or NULL */
    struct hold_index *index; /* index of the holds, if they are many */
    /* A semaphore's, as far as a client or Redis has said it: what it is made with
     * should Redis have lost it. 0: not known. */
    uint32_t limit;
    uint32_t permits_here; /* of all holds of this daemon */

    /* what is under way */
    struct list queue;
    struct list releases;
    /* releases in flight that are sent beside each other, as other readers stay */
    struct list parallel_releases;
    struct list shortenings;
    /* RENEW and REGRANT requests, which may attach a client to a hold */
    struct list renews;
    /* pending requests, sent when all holds are put back */
    struct list waiting_for_restore;
    struct loan *loan;                 /* see loan.h; NULL: the name is not lent */
    struct leader_watch *leader_watch; /* NULL: nobody here follows the leader */
    struct latch_watch *latch_watch;   /* NULL: nobody here awaits the latch */
    struct fair *fair;                 /* see fair.c; NULL: no fair queue is known of */
    struct priority_marks *marks;      /* NULL: no waiter came with a PRIORITY */
    struct timer wake;
    struct last_answer last_answer;
    uint64_t doubt_op; /* the last op sent at the last lock_doubt_seen() */
    uint64_t paused_until[LOCK_PAUSES];
    struct yields yields;
    /* since when the name was found to be a foreign library's each time that its
     * waiters asked; NEVER: it is none. Those with waiters are in eng->foreign_names.
     */
    uint64_t foreign_since;

    uint64_t exempt; /* exempt from the quarantine that ends at this time */
    uint32_t parallel_release_count;
    uint32_t waiting;
    uint32_t places;  /* waiters that do not try once only: see QUEUE */
    uint32_t probes;  /* waiters that still have to ask for themselves */
    uint32_t writers; /* waiters for the write lock */
    uint32_t hold_count;
    uint32_t refs; /* ops in flight and pending requests that point here */
    /* holds that have to be put back; no op but RESTORE is sent before that */
    uint32_t needs_restore;
    uint32_t group;
    enum sub_state sub;
    enum lock_state state;
    enum lock_class lock_class;
    /* the readers at the front of the queue are to ask, all at once */
    bool readers_in;
    bool dirty;        /* in eng->dirty */
    bool exempt_reads; /* `exempt` is for reads only */
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
void lock_pause(struct engine *eng, struct lock *lock, enum lock_pause pause,
                uint64_t ms);
/* Until when the pause lasts that stops this. */
uint64_t lock_paused_until(const struct lock *lock, enum lock_pause pause);
bool lock_is_paused(const struct engine *eng, const struct lock *lock,
                    enum lock_pause pause);
/* The same; if so, lock_step() runs again when the pause is over. */
bool lock_awaits_pause(struct engine *eng, struct lock *lock, enum lock_pause pause);
/* Makes the head ask, whatever its last answer was. */
void lock_ask(struct engine *eng, struct lock *lock);
/* An op that may change who holds is sent. `for_head`: its answer tells the head what
 * it has to know. */
void lock_begin_asking(struct lock *lock, struct inflight_op *o, bool for_head);
/* The op that made the lock ASKING is answered. */
void lock_end_asking(struct lock *lock);
void lock_set_state(struct lock *lock, enum lock_state state);

static inline bool lock_is_asking(const struct lock *lock)
{
    return lock->state == LOCK_ASKING || lock->state == LOCK_MUST_RETRY;
}

/* Whether the head asks as soon as it may. */
static inline bool lock_must_ask(const struct lock *lock)
{
    return lock->state == LOCK_MUST_ASK || lock->state == LOCK_MUST_RETRY;
}

/* Op `op_id` found the name held by a hold of kind `by`; `ttl_ms` as in
 * last_answer_held(). */
void lock_seen(struct engine *eng, struct lock *lock, uint64_t op_id, int64_t ttl_ms,
               enum lock_kind by);
/* In how many ms the head asks again for a name whose lease ends in `ttl_ms`. */
uint64_t lock_recheck_in(const struct engine *eng, int64_t ttl_ms);
void lock_set_sub(struct lock *lock, enum sub_state sub);
/* The channel is subscribed, or a message came: answers to ops sent before say no more
 * that the name is held. */
void lock_doubt_seen(const struct engine *eng, struct lock *lock);
void lock_unsubscribe(struct engine *eng, struct lock *lock);

/* The name is a foreign library's, or not, or nobody waits for it any more. */
void lock_note_foreign(struct engine *eng, struct lock *lock, bool is_foreign);

/* Hold index: finds the holds of a name by field, token or owner. The functions return
 * NULL if no such hold is known here. */

void index_add(struct engine *eng, struct hold *h);
void index_remove(struct hold *h);
struct hold *lock_hold_of(const struct lock *lock, struct span field);
struct hold *lock_hold_with(const struct lock *lock, uint64_t token);
/* The owner's hold of that kind; with PLAIN its write hold or, without one, its read
 * or plain hold. */
struct hold *lock_held_by(const struct lock *lock, struct span owner,
                          enum lock_kind lock_kind);

/* Lock kinds: which holds can exist beside each other. */

/* The kind of hold that a LOCK of this kind gets: PLAIN for FAIR. */
enum lock_kind lock_kind_of_hold(enum lock_kind lock_kind);
/* Whether a client of this daemon holds or waits, so that the name keeps its lock
 * class. */
bool lock_in_use(const struct lock *lock);
/* The class that a request means which does not say one, as far as is known here. */
enum lock_class lock_class_guess(const struct lock *lock);
void lock_set_class(struct engine *eng, struct lock *lock, enum lock_class lock_class);
/* Whether a hold that is certain prevents a grant of `spec`, so that asking Redis is
 * of no use. */
bool lock_blocks(const struct engine *eng, const struct lock *lock,
                 const struct acquire_spec *spec);
/* Whether another owner certainly holds the name alone, so that `spec` cannot hold it
 * already. */
bool lock_excludes(const struct engine *eng, const struct lock *lock,
                   const struct acquire_spec *spec);
/* Whether a reader of this daemon certainly holds the name. */
bool lock_is_read_here(const struct engine *eng, const struct lock *lock);
/* The holds known here that cannot be true beside the given one, at most `max` (at
 * least 1). Returns how many. An empty field is an anonymous owner's. */
size_t lock_contradicted_holds(const struct lock *lock, enum lock_kind lock_kind,
                               struct span field, uint64_t token, struct hold **ret,
                               size_t max);
/* The token of the hold here that excludes everybody else; 0: there is none. */
uint64_t lock_leader_token(const struct lock *lock);
/* Whether a hold of this daemon on that name is not certain now. */
bool lock_is_uncertain(const struct engine *eng, const struct lock *lock);

/* Permits: what Redis says of a semaphore's permits. */

/* A grant, or a release, tells what is left: the head asks if there is something, and
 * sleeps otherwise. */
void permits_seen(struct engine *eng, struct lock *lock, const struct op_result *r);

/* Probe: the waiters that are to ask Redis for themselves, beside the head of their
 * queue; the scheduler sends that. */

/* The only way to change what the waiter is to ask, and the count of who asks. */
void waiter_set_probe(struct waiter *w, enum waiter_probe probe);
/* Makes a waiter probe or join, as soon as Redis is up and no undo of the waiter's is
 * pending. */
void waiter_probe_later(struct engine *eng, struct waiter *w, enum waiter_probe probe);
/* Makes a waiter ask once more: as the head, or for itself. */
void waiter_retry(struct engine *eng, struct waiter *w);

#endif
