/* latch_watch: LATCH AWAIT, which waits until a latch is opened.
 *
 * A lock has a watch (name_watch.h) while an AWAIT waits for its name. The watch
 * listens on Redisson's channel of the latch, looks into Redis at each message, and at
 * least every `recheck`. What an AWAIT waits for is one generation of the latch: the
 * one that the first look after the AWAIT came has found. That generation ends open or
 * gone, also if the latch was set anew before anybody looked. Private to engine/. */
#ifndef LATCHD_ENGINE_LATCH_LATCH_WATCH_H
#define LATCHD_ENGINE_LATCH_LATCH_WATCH_H

#include "engine/op_result.h"
#include "engine/watch/name_watch.h"

#include <stddef.h>
#include <stdint.h>

struct engine;
struct latch_req;
struct lock;

struct latch_watch {
    struct name_watch watch; /* on eng->latch_watches */
    struct latch_told told;  /* while it is known */
    /* The generation that was set when `0` came. Redisson leaves no other sign that it
     * has opened it. */
    uint64_t heard_open;
    uint64_t heard_after; /* the last op that was sent before that */
};

void request_await(struct engine *eng, const struct latch_req *req);
/* Op `op_id` found that, or has made it so. */
void latch_watch_learn(struct engine *eng, struct lock *lock, uint64_t op_id,
                       const struct latch_told *told);
void latch_watch_on_message(struct engine *eng, struct lock *lock, struct span payload);
/* Something may have changed: the watch of the lock, if there is one, looks again. */
void latch_watch_note(struct engine *eng, struct lock *lock);
/* Redis may have gone back: what its marks say of other generations than those that are
 * awaited may be about another past. */
void latch_watches_distrust(struct engine *eng);
/* How many AWAITs wait here for that name. */
size_t latch_watch_waiting(const struct lock *lock);
/* Sends what the watch of the lock needs, or frees a watch that nobody needs. */
void latch_watch_step(struct engine *eng, struct lock *lock);
void latch_watch_free(struct engine *eng, struct lock *lock);

#endif
