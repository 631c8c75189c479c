/* A daemon's pub/sub link. */
#include "sim/sim_world.h"

#include "sim/sim_faults.h"

#include <stdlib.h>

static void sub_send(struct sim *s, struct sim_daemon *d, enum event_kind kind,
                     struct redis_name *n)
{
    struct event *e =
        sim_event(s, kind, link_later(s->now + sim_delay(s), &d->last_sub_out));

    e->daemon = d->index;
    e->gen = d->sub_gen;
    e->name = n;
    e->epoch = d->sub_epoch[check_name_index(s, n)];
}

void sub_subscribe(struct sim *s, struct sim_daemon *d, struct span name)
{
    struct redis_name *n = sim_redis_name(sim_redis_now(s), name);
    size_t i = check_name_index(s, n);

    TRACE(s, "d%zu: subscribes %.*s", d->index, S(name));
    if (d->wanted[i]) {
        sim_fail(s, "d%zu subscribes %.*s twice", d->index, S(name));
    }
    d->wanted[i] = true;
    d->sub_epoch[i]++;
    if (d->sub_works) {
        sub_send(s, d, EVENT_SUBSCRIBE, n);
    }
}

void sub_unsubscribe(struct sim *s, struct sim_daemon *d, struct span name)
{
    struct redis_name *n = sim_redis_name(sim_redis_now(s), name);
    size_t i = check_name_index(s, n);

    TRACE(s, "d%zu: unsubscribes %.*s", d->index, S(name));
    if (!d->wanted[i]) {
        sim_fail(s, "d%zu unsubscribes %.*s, which it had not", d->index, S(name));
    }
    d->wanted[i] = false;
    if (d->sub_works) {
        sub_send(s, d, EVENT_UNSUBSCRIBE, n);
    }
}

void sub_published(void *ctx, struct redis_name *n)
{
    struct sim *s = ctx;

    check_freed(s, n);
    for (size_t i = 0; i < s->daemon_count; i++) {
        struct sim_daemon *d = &s->daemons[i];

        if (n->subscribed[i] && d->sub_works && !faults_message_lost(s)) {
            struct event *e = sim_event(
                s, EVENT_MESSAGE, link_later(s->now + sim_delay(s), &d->last_sub_in));

            e->daemon = i;
            e->gen = d->sub_gen;
            e->name = n;
        }
    }
    faults_foreign_hears(s, n);
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
    d->sub_works = true;
    d->last_sub_in = d->last_sub_out = s->now;
    for (size_t i = 0; i < s->redis.name_count; i++) {
        if (d->wanted[i]) {
            sub_send(s, d, EVENT_SUBSCRIBE, &s->redis.names[i]);
        }
    }
}

void sub_event(struct sim *s, struct sim_daemon *d, const struct event *e)
{
    size_t i = e->name == NULL ? 0 : check_name_index(s, e->name);
    struct event *back;

    switch (e->kind) {
    case EVENT_SUBSCRIBE:
        e->name->subscribed[d->index] = true;
        back = sim_event(s, EVENT_SUBSCRIBED,
                         link_later(s->now + sim_delay(s), &d->last_sub_in));
        back->daemon = d->index;
        back->gen = e->gen;
        back->name = e->name;
        back->epoch = e->epoch;
        break;
    case EVENT_UNSUBSCRIBE:
        e->name->subscribed[d->index] = false;
        break;
    case EVENT_SUBSCRIBED:
        if (d->wanted[i] && e->epoch == d->sub_epoch[i]) {
            TRACE(s, "d%zu: subscribed to %s", d->index, e->name->name.s);
            locks_subscribed(sim_turn_begin(s, d), rtext_span(&e->name->name), false);
            sim_turn_end(s, d);
        }
        break;
    case EVENT_MESSAGE:
        TRACE(s, "d%zu: message for %s", d->index, e->name->name.s);
        locks_message(sim_turn_begin(s, d), rtext_span(&e->name->name), false);
        sim_turn_end(s, d);
        break;
    case EVENT_SUB_DOWN:
        TRACE(s, "d%zu: told that the pub/sub link is gone", d->index);
        locks_unsubscribed_all(sim_turn_begin(s, d));
        sim_turn_end(s, d);
        break;
    case EVENT_SUB_UP:
        sub_up(s, d);
        break;
    default:
        abort();
    }
}
