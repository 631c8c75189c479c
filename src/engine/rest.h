/* rest: a hold with ATLEAST that ends before its time leaves a rest. Until that time a
 * field of the rest keeps the name in Redis, so that nobody is granted it.
 *
 * Here a rest is a hold of OWNER_REST with a fixed end and without connections: so that
 * it is looked at now and then, and is put back where Redis loses it. No client has it,
 * and so its end is no loss. Private to engine/. */
#ifndef LATCHD_ENGINE_REST_H
#define LATCHD_ENGINE_REST_H

#include "engine/entry.h"
#include "engine/hold.h"
#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct lock;

static inline bool hold_is_rest(const struct hold *h)
{
    return h->kind == OWNER_REST;
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

#endif
