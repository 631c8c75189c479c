/* top_waited: the names that most wait for, found by going through all names, a bounded
 * step at a time. A round through very many names takes its time; what is found on the
 * way counts at once. */
#ifndef LATCHD_DAEMON_STATUS_TOP_WAITED_H
#define LATCHD_DAEMON_STATUS_TOP_WAITED_H

#include "engine/survey.h"
#include "util/buf.h"

#include "latchd/protocol.h"

enum {
    TOP_WAITED_MAX = 32,
    TOP_WAITED_STEP = 512,    /* names to a step */
    TOP_WAITED_FIRST = 16384, /* to the first, so that a page that is opened has some */
};

struct top_waited_name {
    size_t waiting; /* when it was seen */
    size_t len;
    char name[LATCHD_NAME_MAX];
};

/* The best of a round, most first. */
struct top_waited_round {
    size_t count;
    struct top_waited_name names[TOP_WAITED_MAX];
};

struct top_waited {
    uint64_t cursor;
    struct top_waited_round last, now;
};

/* `count`: names to go through, about. */
void top_waited_step(struct top_waited *c, struct engine *engine, size_t count);
typedef void top_waited_fn(void *ctx, const struct name_view *view);
/* As they are now: those that are waited for, most first, each once, at most `max`.
 * Also looks at the names of those who wait longest. */
void top_waited_each(const struct top_waited *c, const struct engine *engine,
                     size_t max, top_waited_fn *fn, void *ctx);

#endif
