/* count_log: what was counted here within the last lease.
 *
 * A failover may take a count back, and nobody would send that again: its client has
 * its answer. So when Redis may have lost something, each of these counts is made once
 * more, in its own generation only. One that is still there counts no second time.
 * While Redis is out of reach, nothing gets older: Sentinels may take longer than a
 * lease to replace a master. Private to engine/. */
#ifndef LATCHD_ENGINE_LATCH_COUNT_LOG_H
#define LATCHD_ENGINE_LATCH_COUNT_LOG_H

#include "engine/timer.h"
#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct inflight_op;
struct lock;
struct op_result;

enum {
    COUNT_LOG_MAX = 65536, /* then the oldest count is forgotten */
};

struct count_log {
    struct list list;   /* oldest first */
    struct list due;    /* to be made once more */
    size_t count;       /* in `list` */
    struct timer timer; /* none is made before this */
    bool is_paused;     /* none is forgotten for its age */
};

void count_log_init(struct count_log *log);
/* The request counted in that generation. */
void count_log_add(struct engine *eng, const struct lock *lock, struct span request,
                   uint64_t generation);
/* Redis is out of reach, and is there again. */
void count_log_pause(struct engine *eng);
void count_log_resume(struct engine *eng);
/* Makes the counts of those groups (NULL: all) once more. */
void count_log_replay(struct engine *eng, bool (*concerns)(void *ctx, unsigned group),
                      void *ctx);
/* Sends those that are due. */
void count_log_send(struct engine *eng);
void on_count_again_reply(struct engine *eng, struct inflight_op *w,
                          const struct op_result *r);
void count_log_free(struct engine *eng);

#endif
