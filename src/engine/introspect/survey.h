/* survey: who holds and who waits, for pages that many look at. Reads the engine and
 * changes nothing; nothing is kept for it while nobody looks.
 *
 * Holds are told oldest first and waits longest first, at the cost of what is told. To
 * find the names with the most waiters all names have to be gone through, a bounded
 * step at a time. Spans live until the engine is next told something. */
#ifndef LATCHD_ENGINE_INTROSPECT_SURVEY_H
#define LATCHD_ENGINE_INTROSPECT_SURVEY_H

#include "engine/engine.h"
#include "engine/op.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

struct hold_view {
    struct span name;
    struct span owner;   /* a writer's without its `:write` */
    enum lock_kind kind; /* PLAIN (for FAIR as well), READ, WRITE */
    uint64_t token;
    uint64_t held_ms; /* by this daemon's knowledge */
    uint64_t left_ms; /* of the lease, as far as it is vouched for */
    uint64_t conn;    /* one that keeps it; 0: none does */
    bool fixed;       /* it was taken with a LEASE: nobody renews it */
    bool uncertain;
};

struct wait_view {
    struct span name;
    struct waiter_info waiter; /* waited_ms: since it first came */
    struct span held_by;       /* here, its newest hold; empty: nobody here */
    size_t ahead;              /* it stands behind so many, at most SURVEY_AHEAD_MAX */
};

enum { SURVEY_AHEAD_MAX = 100 };

struct name_view {
    struct span name;
    size_t holds;
    size_t waiting;
    struct hold_view newest;  /* if there are holds */
    uint64_t longest_wait_ms; /* of the one at the front */
};

typedef void hold_view_fn(void *ctx, const struct hold_view *view);
typedef void wait_view_fn(void *ctx, const struct wait_view *view);
typedef void name_view_fn(void *ctx, const struct name_view *view);

/* At most `count` of them. */
void survey_holds(const struct engine *eng, size_t count, hold_view_fn *fn, void *ctx);
void survey_waits(const struct engine *eng, size_t count, wait_view_fn *fn, void *ctx);

/* One step over the names that are held or waited for here; as engine_scan(). */
uint64_t survey_names(struct engine *eng, uint64_t cursor, size_t count,
                      name_view_fn *fn, void *ctx);
/* False: nobody here has to do with it. */
bool survey_name(const struct engine *eng, struct span name, struct name_view *ret);

/* Who has to do with it here, at most `count` of each: its holds, newest first, and its
 * waiters, as they stand in line. */
void survey_holds_of(const struct engine *eng, struct span name, size_t count,
                     hold_view_fn *fn, void *ctx);
void survey_waits_of(const struct engine *eng, struct span name, size_t count,
                     wait_view_fn *fn, void *ctx);

#endif
