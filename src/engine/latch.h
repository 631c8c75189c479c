#ifndef LATCHD_ENGINE_LATCH_H
#define LATCHD_ENGINE_LATCH_H

#include "engine/name_watch.h"
#include "engine/objects.h"
#include "engine/op.h"
#include "engine/timer.h"
#include "util/list.h"
#include "util/recent.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct latch_req;

/* Count log: what was counted here within the last lease.
 *
 * A failover may take a count back, and nobody would send that again: its client has
 * its answer. So when Redis may have lost something, each of these counts is made once
 * more, in its own generation only. One that is still there counts no second time.
 * While Redis is out of reach, nothing gets older: Sentinels may take longer than a
 * lease to replace a master. */

enum {
    COUNT_LOG_MAX = 65536, /* then the oldest count is forgotten */
};

struct count_log {
    struct recent counts;
    struct list due;    /* to be made once more */
    struct timer timer; /* none is made before this */
    bool is_paused;     /* none is forgotten for its age */
};

void count_log_init(struct engine *eng);
/* Redis is out of reach, and is there again. */
void count_log_pause(struct engine *eng);
void count_log_resume(struct engine *eng);
/* Makes the counts of those groups (NULL: all) once more. */
void count_log_replay(struct engine *eng, bool (*concerns)(void *ctx, unsigned group),
                      void *ctx);
/* Sends those that are due. */
void count_log_send(struct engine *eng);
void on_count_again_reply(struct engine *eng, struct inflight_op *o,
                          const struct op_result *r);
void count_log_free(struct engine *eng);

/* Latch watch: LATCH AWAIT, which waits until a latch is opened.
 *
 * A lock has a watch (name_watch.h) while an AWAIT waits for its name. The watch
 * listens on Redisson's channel of the latch, looks into Redis at each message, and at
 * least every `recheck`. What an AWAIT waits for is one generation of the latch: the
 * one that the first look after the AWAIT came has found. That generation ends open or
 * gone, also if the latch was set anew before anybody looked. */

struct latch_watch {
    struct name_watch watch; /* on eng->latch_watches */
    struct latch_told told;  /* while it is known */
    /* The generation that was set when `0` came. Redisson leaves no other sign that it
     * has opened it. */
    uint64_t heard_open;
    uint64_t heard_after; /* the last op that was sent before that */
};

void request_await(struct engine *eng, const struct latch_req *req);
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

/* Request latch: LATCH SET, COUNT, DELETE and INFO: one op each. */

/* Any LATCH but AWAIT. */
void request_latch(struct engine *eng, const struct latch_req *req);
void on_latch_reply(struct engine *eng, struct inflight_op *o,
                    const struct op_result *r);

#endif
