/* last_answer: what is known of why those who wait for a name do not have it: what
 * Redis said last to the first of them, or that one of them was served. A wait that
 * ends is answered by that. Null means one thing: somebody else holds the name, or
 * stood in front and had it; whatever else keeps the name from everybody is told as the
 * error that it is.
 *
 *   NONE      nobody has asked yet, or what was heard counts no more: the name was
 *             released, a message came, Redis was away, or the answer is too old
 *   HELD      by somebody, as Redis said; believed until the head is to ask again
 *   WITHHELD  nobody holds the name, but for a while it is granted to nobody anew
 *   UNACKED   it was granted, but too few replicas acknowledged that
 *   REFUSED   Redis refused, in the words that are kept
 *
 * Any of them may follow any other. The last two last until the head, which asks again
 * and again, hears something else. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_LAST_ANSWER_H
#define LATCHD_ENGINE_LOCK_LAST_ANSWER_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

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

enum { ANSWER_TEXT_MAX = 256 }; /* so much is kept of a refusal */

struct last_answer {
    enum last_answer_kind kind;
    uint64_t until;     /* HELD, WITHHELD: it is believed before this */
    uint64_t held_at;   /* when somebody was last known to hold it */
    uint64_t served_at; /* when somebody who waited here was last granted it */
    char *refusal;      /* REFUSED */
};

/* What counts now. A hold here that is certain is HELD, whatever was heard. */
enum last_answer_kind last_answer_now(const struct engine *eng,
                                      const struct lock *lock);
/* It is known what that waiter is to be told, should its wait end now. */
bool last_answer_decides(const struct engine *eng, const struct waiter *w);
/* Its words, while that counts; else those for a Redis that says nothing. */
struct span last_answer_text(const struct engine *eng, const struct lock *lock);

/* `ttl_ms` < 0: not known. */
void last_answer_held(struct engine *eng, struct lock *lock, int64_t ttl_ms);
void last_answer_withheld(struct engine *eng, struct lock *lock, uint64_t until);
void last_answer_unacked(struct engine *eng, struct lock *lock);
void last_answer_refused(struct engine *eng, struct lock *lock, struct span text);
/* Somebody who waited here has it now. */
void last_answer_served(struct engine *eng, struct lock *lock);
/* Whoever held it may not do so any more: Redis said so, or may say so when asked. */
void last_answer_over(struct engine *eng, struct lock *lock);
/* The same of a hold that was known here. */
void last_answer_hold_gone(struct engine *eng, struct lock *lock);
/* Nobody waits who heard it. */
void last_answer_forget(struct lock *lock);
void last_answer_fini(struct last_answer *a);

#endif
