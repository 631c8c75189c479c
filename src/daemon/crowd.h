/* crowd: the names that most wait for, found by going through all names, a bounded step
 * at a time. A round through very many names takes its time; what is found on the way
 * counts at once. */
#ifndef LATCHD_DAEMON_CROWD_H
#define LATCHD_DAEMON_CROWD_H

#include "core/survey.h"
#include "util/buf.h"

#include "latchd/protocol.h"

enum {
    CROWD_MAX = 32,
    CROWD_STEP = 512,    /* names to a step */
    CROWD_FIRST = 16384, /* to the first, so that a page that is opened has some */
};

struct crowd_name {
    size_t waiting; /* when it was seen */
    size_t len;
    char name[LATCHD_NAME_MAX];
};

/* The best of a round, most first. */
struct crowd_round {
    size_t count;
    struct crowd_name names[CROWD_MAX];
};

struct crowd {
    uint64_t cursor;
    struct crowd_round last, now;
};

/* `count`: names to go through, about. */
void crowd_step(struct crowd *c, struct locks *locks, size_t count);
typedef void crowd_fn(void *ctx, const struct name_view *view);
/* As they are now: those that are waited for, most first, each once, at most `max`.
 * Also looks at the names of those who wait longest. */
void crowd_each(const struct crowd *c, const struct locks *locks, size_t max,
                crowd_fn *fn, void *ctx);

#endif
