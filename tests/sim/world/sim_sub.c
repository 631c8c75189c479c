/* A daemon's pub/sub link. */
#include "sim/world/sim_world.h"

#include "sim/world/sim_faults.h"

#include <stdlib.h>

static const char *family(enum lock_class lock_class)
{
    return lock_class == CLASS_RW ? " (rw)" : "";
}

static void sub_send(struct sim *s, struct sim_daemon *d, enum event_kind kind,
                     struct redis_name *n, enum lock_class lock_class)
{
    struct event *e =
        sim_event(s, kind, link_later(s->now + sim_delay(s), &d->last_sub_out));

    e->daemon = d->index;
    e->gen = d->sub_gen;
    e->name = n;
    e->lock_class = lock_class;
    e->epoch = d->sub_epoch[lock_class][check_name_index(s, n)];
}

void sub_subscribe(struct sim *s, struct sim_daemon *d, struct span name,
                   enum lock_class lock_class)
{
    struct redis_name *n = sim_redis_name(sim_redis_now(s), name);
    size_t i = check_name_index(s, n);

    TRACE(s, "d%zu: subscribes %.*s%s", d->index, S(name), family(lock_class));
    if (d->wanted[lock_class][i]) {
        sim_fail(s, "d%zu subscribes %.*s%s twice", d->index, S(name),
                 family(lock_class));
    }
    d->wanted[lock_class][i] = true;
    d->sub_epoch[lock_class][i]++;
    if (d->sub_works) {
        sub_send(s, d, EVENT_SUBSCRIBE, n, lock_class);
    }
}

void sub_unsubscribe(struct sim *s, struct sim_daemon *d, struct span name,
                     enum lock_class lock_class)
{
    struct redis_name *n = sim_redis_name(sim_redis_now(s), name);
    size_t i = check_name_index(s, n);

    TRACE(s, "d%zu: unsubscribes %.*s%s", d->index, S(name), family(lock_class));
    if (!d->wanted[lock_class][i]) {
        sim_fail(s, "d%zu unsubscribes %.*s%s, which it had not", d->index, S(name),
                 family(lock_class));
    }
    d->wanted[lock_class][i] = false;
    if (d->sub_works) {
        sub_send(s, d, EVENT_UNSUBSCRIBE, n, lock_class);
    }
}

void sub_published(void *ctx, const struct redis_message *m)
{
    struct sim *s = ctx;

    if (m->name->field_count == 0 && m->lock_class != CLASS_LATCH) {
        check_freed(s, m);
    }
    for (size_t i = 0; i < s->daemon_count; i++) {
        struct sim_daemon *d = &s->daemons[i];

        if (redis_hears(&s->redis, i, m) && d->sub_works && !faults_message_lost(s)) {
            struct event *e = sim_event(
                s, EVENT_MESSAGE, link_later(s->now + sim_delay(s), &d->last_sub_in));

            e->daemon = i;
            e->gen = d->sub_gen;
            e->name = m->name;
            e->lock_class = m->lock_class;
            e->payload = m->payload;
        }
    }
    if (m->lock_class != CLASS_LATCH) {
        foreign_hears(s, m);
    }
}

void sub_greets(struct sim *s, struct sim_daemon *d)
{
    d->sub_works = true;
    d->last_sub_in = d->last_sub_out = s->now;
    redis_add_subscriber(&s->redis, d->index, d->instance);
}

void sub_break(struct sim *s, struct sim_daemon *d, uint64_t notice_ms,
               uint64_t gone_ms)
{
    struct event *e;

    if (!d->sub_works) {
        return;
    }
    TRACE(s, "d%zu: pub/sub link breaks", d->index);
    d->sub_works = false;
    d->sub_gen++;
    watch_break(s, d); /* no die for that alone, which would make others of all */
    redis_drop_subscriber(&s->redis, d->index);
    e = sim_event(s, EVENT_SUB_DOWN, s->now + notice_ms);
    e->daemon = d->index;
    e->gen = d->sub_gen;
    e = sim_event(s, EVENT_SUB_UP, s->now + notice_ms + gone_ms);
    e->daemon = d->index;
    e->gen = d->sub_gen;
}

static void sub_up(struct sim *s, struct sim_daemon *d)
{
    sub_greets(s, d);
    engine_listening(sim_turn_begin(s, d));
    sim_turn_end(s, d);
    for (size_t i = 0; i < s->redis.name_count; i++) {
        for (enum lock_class lock_class = 0; lock_class < LOCK_CLASSES; lock_class++) {
            if (d->wanted[lock_class][i]) {
                sub_send(s, d, EVENT_SUBSCRIBE, &s->redis.names[i], lock_class);
            }
        }
    }
}

void sub_event(struct sim *s, struct sim_daemon *d, const struct event *e)
{
    size_t i = e->name == NULL ? 0 : check_name_index(s, e->name);
    enum lock_class lock_class = e->lock_class;
    struct event *back;

    switch (e->kind) {
    case EVENT_SUBSCRIBE:
        e->name->subscribed[lock_class][d->index] = true;
        back = sim_event(s, EVENT_SUBSCRIBED,
                         link_later(s->now + sim_delay(s), &d->last_sub_in));
        back->daemon = d->index;
        back->gen = e->gen;
        back->name = e->name;
        back->lock_class = lock_class;
        back->epoch = e->epoch;
        break;
    case EVENT_UNSUBSCRIBE:
        e->name->subscribed[lock_class][d->index] = false;
        break;
    case EVENT_SUBSCRIBED:
        if (d->wanted[lock_class][i] && e->epoch == d->sub_epoch[lock_class][i]) {
            TRACE(s, "d%zu: subscribed to %s%s", d->index, e->name->name.s,
                  family(lock_class));
            engine_on_subscribed(sim_turn_begin(s, d), rtext_span(&e->name->name),
                                 lock_class);
            sim_turn_end(s, d);
        }
        break;
    case EVENT_MESSAGE:
        TRACE(s, "d%zu: message for %s%s", d->index, e->name->name.s,
              family(lock_class));
        engine_on_message(sim_turn_begin(s, d), rtext_span(&e->name->name), lock_class,
                          span_of(&e->payload, 1));
        sim_turn_end(s, d);
        break;
    case EVENT_SUB_DOWN:
        TRACE(s, "d%zu: told that the pub/sub link is gone", d->index);
        engine_on_subscriptions_lost(sim_turn_begin(s, d));
        sim_turn_end(s, d);
        break;
    case EVENT_SUB_UP:
        sub_up(s, d);
        break;
    default:
        abort();
    }
}
