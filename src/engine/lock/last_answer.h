/* last_answer: why the waiters of a name do not have it, as far as is known: Redis's
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
 * goes on asking, gets another answer. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_LAST_ANSWER_H
#define LATCHD_ENGINE_LOCK_LAST_ANSWER_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct lock;
struct engine;
struct waiter;

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
    uint32_t undecided; /* waiters whose wait the next answer ends */
    uint64_t until;     /* HELD, WITHHELD: the answer counts before this */
    uint64_t held_at;   /* when the name was last known to be held */
    uint64_t served_at; /* when a waiter of this name was last granted it */
    /* The last op that may have found a grant that no client was given: too few
     * replicas acknowledged it, or it was undone. */
    uint64_t ungiven_op;
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

/* Redis said that the name is held. `ttl_ms` < 0: the rest of the lease is not known.
 */
void last_answer_held(struct engine *eng, struct lock *lock, int64_t ttl_ms);
void last_answer_withheld(struct engine *eng, struct lock *lock, uint64_t until);
void last_answer_unacked(struct engine *eng, struct lock *lock);
void last_answer_refused(struct engine *eng, struct lock *lock, struct span text);
/* A waiter of this name was granted it. */
void last_answer_served(struct engine *eng, struct lock *lock);
/* Redis had, until now, a grant of this name that no client is given. */
void last_answer_ungiven(struct engine *eng, struct lock *lock);
/* The holder may hold no longer: Redis said so, or may say so when asked. */
void last_answer_over(struct engine *eng, struct lock *lock);
/* The same when the holder's hold was known here. */
void last_answer_hold_gone(struct engine *eng, struct lock *lock);
/* Forgets the answer, as no waiter is left that it was for. */
void last_answer_forget(struct lock *lock);
static inline void last_answer_fini(struct last_answer *a)
{
    free(a->refusal);
    a->refusal = NULL;
}

#endif
