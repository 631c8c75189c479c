/* survey: who holds and who waits, also for a latch, for the status page. A survey
 * reads the engine and changes nothing, and the engine stores nothing for it.
 *
 * Holds are listed oldest first and waits longest first, at the cost of the rows that
 * are listed. To find the names with the most waiters, all names have to be visited, a
 * bounded step at a time. Spans live until the next call that changes the engine. */
#ifndef LATCHD_ENGINE_SURVEY_H
#define LATCHD_ENGINE_SURVEY_H

#include "engine/engine.h"
#include "engine/op.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

struct wait_view {
    struct span name;
    struct waiter_info waiter; /* waited_ms: since the LOCK first came */
    struct span held_by;       /* the owner of the newest hold here; empty: none here */
    size_t ahead;              /* so many waiters are ahead, at most SURVEY_AHEAD_MAX */
    bool lent;                 /* Redis has lent the name to this daemon */
};

enum { SURVEY_AHEAD_MAX = 100 };

struct name_view {
    struct span name;
    size_t holds;
    size_t waiting;
    bool is_latch;            /* they wait for a latch, which nobody holds */
    struct hold_view newest;  /* the newest hold, if there are holds */
    uint64_t longest_wait_ms; /* of the first SURVEY_AHEAD_MAX */
    bool lent;                /* Redis has lent the name to this daemon */
};

typedef void hold_view_fn(void *ctx, const struct hold_view *view);
typedef void wait_view_fn(void *ctx, const struct wait_view *view);
typedef void name_view_fn(void *ctx, const struct name_view *view);

/* Call `fn` for at most `count` holds, or waits. */
void survey_holds(const struct engine *eng, size_t count, hold_view_fn *fn, void *ctx);
void survey_waits(const struct engine *eng, size_t count, wait_view_fn *fn, void *ctx);

/* One step over the names that are held or waited for here; works like engine_scan().
 */
uint64_t survey_names(struct engine *eng, uint64_t cursor, size_t count,
                      name_view_fn *fn, void *ctx);
/* False: no client of this daemon holds or waits for the name. */
bool survey_name(const struct engine *eng, struct span name, struct name_view *ret);

/* The holds of a name here, newest first, and its waiters, as they stand in line: at
 * most `count` of each. */
void survey_holds_of(const struct engine *eng, struct span name, size_t count,
                     hold_view_fn *fn, void *ctx);
void survey_waits_of(const struct engine *eng, struct span name, size_t count,
                     wait_view_fn *fn, void *ctx);

#endif
