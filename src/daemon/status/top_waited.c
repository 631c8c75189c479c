#include "daemon/status/top_waited.h"

#include <stdlib.h>
#include <string.h>

static void on_name(void *ctx, const struct name_view *view)
{
    struct top_waited_round *r = ctx;
    size_t at = r->count;

    if (view->waiting == 0 || view->name.len > LATCHD_NAME_MAX) {
        return;
    }
    while (at > 0 && r->names[at - 1].waiting < view->waiting) {
        at--;
    }
    if (at == TOP_WAITED_MAX) {
        return;
    }
    r->count += r->count < TOP_WAITED_MAX;
    memmove(&r->names[at + 1], &r->names[at],
            (r->count - at - 1) * sizeof(r->names[0]));
    r->names[at].waiting = view->waiting;
    r->names[at].len = view->name.len;
    memcpy(r->names[at].name, view->name.ptr, view->name.len);
}

void top_waited_step(struct top_waited *c, struct engine *engine, size_t count)
{
    c->cursor = survey_names(engine, c->cursor, count, on_name, &c->now);
    if (c->cursor == 0) {
        c->last = c->now;
        c->now.count = 0;
    }
}

/* --- telling ---------------------------------------------------------- */

/* Names of both rounds, and of those who wait longest: each once. */
struct gathering {
    const struct engine *engine;
    size_t count;
    struct name_view views[3 * TOP_WAITED_MAX];
};

static void gather_name(struct gathering *g, struct span name)
{
    struct name_view view;

    for (size_t i = 0; i < g->count; i++) {
        if (span_eq(g->views[i].name, name)) {
            return;
        }
    }
    if (g->count < sizeof(g->views) / sizeof(g->views[0]) &&
        survey_name(g->engine, name, &view) && view.waiting > 0) {
        g->views[g->count++] = view;
    }
}

static void gather_round(struct gathering *g, const struct top_waited_round *r)
{
    for (size_t i = 0; i < r->count; i++) {
        gather_name(g, span_of(r->names[i].name, r->names[i].len));
    }
}

static void gather_wait(void *ctx, const struct wait_view *view)
{
    gather_name(ctx, view->name);
}

static int most_first(const void *a, const void *b)
{
    const struct name_view *x = a;
    const struct name_view *y = b;

    if (x->waiting != y->waiting) {
        return x->waiting < y->waiting ? 1 : -1;
    }
    return (x->longest_wait_ms < y->longest_wait_ms) -
           (x->longest_wait_ms > y->longest_wait_ms);
}

void top_waited_each(const struct top_waited *c, const struct engine *engine,
                     size_t max, top_waited_fn *fn, void *ctx)
{
    struct gathering g = { .engine = engine };

    gather_round(&g, &c->now);
    gather_round(&g, &c->last);
    survey_waits(engine, TOP_WAITED_MAX, gather_wait, &g);
    qsort(g.views, g.count, sizeof(g.views[0]), most_first);
    for (size_t i = 0; i < g.count && i < max; i++) {
        fn(ctx, &g.views[i]);
    }
}
