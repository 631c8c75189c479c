/* The announcements between daemons. A fixed time each way, as a die would make
 * others of all schedules. */
#include "sim/world/sim_world.h"

#include "util/alloc.h"

#include <stdlib.h>

enum { YOUNG_MS = 3000 };

static void travels(struct sim *s, enum event_kind kind, size_t daemon, uint64_t gen,
                    struct span text)
{
    struct event *e = sim_event(s, kind, s->now + s->profile.rtt_ms);

    e->daemon = daemon;
    e->gen = gen;
    e->text = xmalloc(text.len);
    e->text_len = text.len;
    memcpy(e->text, text.ptr, text.len);
}

void peers_announce(struct sim *s, struct sim_daemon *d, struct span text)
{
    TRACE(s, "d%zu: announces %.*s", d->index, S(text));
    if (s->daemon_count > 1 && d->link_works) {
        travels(s, EVENT_ANNOUNCE, d->index, d->link_gen, text);
    }
}

static void published(struct sim *s, struct span text)
{
    for (size_t i = 0; i < s->daemon_count; i++) {
        struct sim_daemon *d = &s->daemons[i];

        if (d->engine != NULL && d->sub_works) {
            travels(s, EVENT_ANNOUNCED, i, d->sub_gen, text);
        }
    }
}

void peers_event(struct sim *s, struct sim_daemon *d, const struct event *e)
{
    struct span text = span_of(e->text, e->text_len);

    if (e->kind == EVENT_ANNOUNCE) {
        published(s, text);
        return;
    }
    TRACE(s, "d%zu: hears %.*s", d->index, S(text));
    engine_announced(sim_turn_begin(s, d), text);
    sim_turn_end(s, d);
}

void peers_tell_age(struct sim *s, struct engine *l)
{
    if (s->redis_began != 0 && s->now < s->redis_began + YOUNG_MS) {
        engine_store_is_young(l);
    }
}

bool peers_know_each_other(struct sim *s)
{
    size_t alive = 0;

    for (size_t i = 0; i < s->daemon_count; i++) {
        alive += s->daemons[i].engine != NULL ? 1 : 0;
    }
    for (size_t i = 0; i < s->daemon_count; i++) {
        const struct sim_daemon *d = &s->daemons[i];
        struct engine_stats stats;

        if (d->engine == NULL) {
            continue;
        }
        engine_stats(d->engine, &stats);
        if (stats.other_daemons + 1 < alive || !d->link_works || !d->told_up ||
            !stats.store_up || d->stalled_until > s->now) {
            return false;
        }
    }
    return true;
}
