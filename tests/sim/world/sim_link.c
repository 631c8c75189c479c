/* A daemon's command link: scripts out, answers back, and what breaks on the way. */
#include "sim/world/sim_world.h"

#include "engine/op.h"
#include "sim/world/sim_faults.h"
#include "util/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

/* --- an op on its way ---------------------------------------------------- */

static void copy_op(struct flight *f, const struct op *op)
{
    f->clone = op_clone(op);
    f->op = *f->clone;
}

void flight_free(struct flight *f)
{
    free(f->clone);
    if (f->ran != 0) {
        redis_reply_fini(&f->reply);
    }
    free(f);
}

uint64_t link_later(uint64_t at, uint64_t *last)
{
    *last = at > *last ? at : *last;
    return *last;
}

void link_submit(struct sim *s, struct sim_daemon *d, const struct op *op)
{
    struct flight *f = xmalloc(sizeof(*f));

    memset(f, 0, offsetof(struct flight, reply));
    f->daemon = d->index;
    memcpy(f->instance, d->instance, sizeof(f->instance));
    copy_op(f, op);
    f->sent_ms = s->now;
    f->sent = ++s->happened;
    f->times.asked_us = sim_redis_us(&s->redis, sim_redis_now(s)->now_ms);
    if (d->redis_ahead_ms > s->redis_ahead_ms) { /* it was set back, and nobody knows */
        f->times.asked_us += (uint64_t)(d->redis_ahead_ms - s->redis_ahead_ms) * 1000;
    }
    f->times.deadline_us = f->times.asked_us + d->config.redis_timeout_ms * 1000;
    f->event.daemon = d->index;
    f->event.flight = f;
    f->event.kind = EVENT_ARRIVE;
    list_append(&d->open, &f->node);
    if (s->traced) {
        sim_trace_op(s, "asks", f);
    }
    if (!d->told_up) {
        sim_fail(s, "d%zu: op %" PRIu64 " while Redis is down", d->index, op->id);
    }
    check_op_sent(s, d, f);
    f->event.flag = !d->link_works;
    /* An op sent to a process that is gone does not run at its successor. */
    if (d->failovers == s->failovers &&
        (d->link_works || (d->server == s->server && s->now < s->redis_paused_until))) {
        faults_op(s, f);
        sim_event_at(s, &f->event, link_later(s->now + sim_delay(s), &d->last_arrive));
    }
}

/* The master that the daemon talks to. */
static struct sim_redis *redis_of(struct sim *s, const struct sim_daemon *d)
{
    struct sim_redis *now = sim_redis_now(s);

    if (!d->isolated) {
        return now;
    }
    s->isolated->now_ms = now->now_ms;
    s->isolated->us = now->us;
    return s->isolated;
}

static bool is_about(const struct flight *f, struct span name)
{
    for (size_t i = 0; f->op.kind == OP_ACQUIRE_BATCH && i < f->op.batch.count; i++) {
        if (span_eq(f->op.batch.items[i].name, name)) {
            return true;
        }
    }
    return span_eq(f->op.name, name);
}

/* An earlier one of that name waits for the replicas. A renewal may be overtaken. */
static bool waits_behind(const struct sim_daemon *d, const struct flight *f)
{
    const struct flight *other;

    LIST_EACH(other, &d->open, node) {
        if (other == f) {
            break;
        }
        if (other->held && f->op.name.len > 0 && is_about(other, f->op.name)) {
            return true;
        }
    }
    return false;
}

static bool share_name(const struct flight *f, const struct flight *other)
{
    size_t items = op_item_count(&f->op);

    for (size_t i = 0; i < (items > 0 ? items : 1); i++) {
        if (is_about(other, op_name_at(&f->op, i))) {
            return true;
        }
    }
    return false;
}

/* An op that vouches is sent when earlier ops on the same names, renewals apart, have
 * been answered (backend/replica_ack.h). Here both run at once, and the answer comes
 * no earlier than those. */
static uint64_t names_answered_at(const struct sim_daemon *d, const struct flight *f)
{
    uint64_t at = 0;
    const struct flight *other;

    LIST_EACH(other, &d->open, node) {
        if (other == f) {
            break;
        }
        if (other->answered_ms > at && other->op.kind != OP_RENEW &&
            share_name(f, other)) {
            at = other->answered_ms;
        }
    }
    return at;
}

/* When the answer comes; what vouches has to be acknowledged first. */
static uint64_t answered_at(struct sim *s, struct sim_daemon *d, struct flight *f)
{
    uint64_t at = s->now + sim_delay(s);
    uint64_t before;

    if (!s->profile.min_replicas || s->profile.unheeded) {
        return link_later(at, &d->last_result);
    }
    if (!op_result_extends_lease(f->op.kind, &f->reply.result)) {
        return link_later(at, waits_behind(d, f) ? &d->last_acked : &d->last_result);
    }
    f->held = true;
    if (faults_acked(s, f)) {
        at += sim_delay(s);
    } else {
        f->reply.result.status = OP_NOREPLICAS;
        at += dice_below(&s->dice, d->config.redis_timeout_ms / 3);
    }
    before = names_answered_at(d, f);
    return link_later(at > before ? at : before, &d->last_acked);
}

void link_arrive(struct sim *s, struct flight *f)
{
    struct sim_daemon *d = &s->daemons[f->daemon];

    if (s->now < s->redis_paused_until) {
        sim_event_put_off(s, &f->event, s->redis_paused_until);
        return;
    }
    if (faults_refused(s, f)) {
        memset(&f->reply, 0, sizeof(f->reply));
        f->reply.result.id = f->op.id;
        f->reply.result.status = OP_ERROR;
        f->reply.result.text = SPAN("OOM command not allowed");
    } else {
        if (f->op.name.len > 0) {
            check_queue_before(s, sim_redis_name(sim_redis_now(s), f->op.name));
        }
        check_op_runs(s);
        sim_redis_run(redis_of(s, d), f->instance, &f->op, f->times, &f->reply);
    }
    f->ran = ++s->happened;
    if (s->traced) {
        sim_trace_op(s, "runs", f);
    }
    check_op_ran(s, f);
    check_data_ran(s, f);
    if (!d->isolated) {
        latches_ran(s, f);
    }
    if (f->orphan) {
        list_del(&f->node); /* a failover loses those that are on their way */
    }
    faults_ran(s);
    if (f->orphan) {
        flight_free(f);
    } else if (d->link_works && !f->event.flag) {
        f->event.kind = EVENT_RESULT;
        f->answered_ms = answered_at(s, d, f);
        sim_event_at(s, &f->event, f->answered_ms);
    }
}

void link_result(struct sim *s, struct flight *f)
{
    struct sim_daemon *d = &s->daemons[f->daemon];
    struct engine *l;

    if (f->settling) {
        memset(&f->reply.result, 0, sizeof(f->reply.result));
        f->reply.result.id = f->op.id;
        f->reply.result.status = OP_UNKNOWN;
    }
    list_del(&f->node);
    l = sim_turn_begin(s, d);
    if (s->traced) {
        sim_trace_op(s, "hears", f);
    }
    check_result(s, d, f);
    latches_heard(s, d, f);
    engine_on_op_result(l, &f->reply.result);
    sim_turn_end(s, d);
    flight_free(f);
}

/* --- the command link ---------------------------------------------------- */

void link_break(struct sim *s, struct sim_daemon *d, uint64_t notice_ms,
                uint64_t gone_ms, bool same_server)
{
    struct event *e;
    struct flight *f;
    bool arrives = same_server;

    if (!d->link_works || !d->told_up) {
        return;
    }
    TRACE(s, "d%zu: link breaks, noticed in %" PRIu64 ", back in %" PRIu64, d->index,
          notice_ms, gone_ms);
    d->link_works = false;
    d->link_gen++;
    watch_break(s, d);
    LIST_EACH(f, &d->open, node) {
        if (f->settling) {
            continue; /* reported by the store, whatever its new link does */
        }
        f->event.flag = true; /* whatever it answers is lost */
        if (f->event.kind == EVENT_RESULT) {
            heap_remove(&s->events, &f->event.node);
        } else if (heap_armed(&f->event.node)) {
            arrives = arrives && dice_chance(&s->dice, 700);
            if (arrives) {
                sim_event_at(
                    s, &f->event,
                    link_later(s->now + dice_below(&s->dice, notice_ms + gone_ms + 1),
                               &d->last_arrive));
            } else {
                heap_remove(&s->events, &f->event.node);
            }
        }
    }
    e = sim_event(s, EVENT_LINK_DOWN, s->now + notice_ms);
    e->daemon = d->index;
    e->gen = d->link_gen;
    e = sim_event(s, EVENT_LINK_UP, s->now + notice_ms + gone_ms);
    e->daemon = d->index;
    e->gen = d->link_gen;
    e->flag = same_server;
}

void link_lose_scripts(struct sim *s, struct sim_daemon *d)
{
    struct flight *f;

    LIST_EACH(f, &d->open, node) {
        if (!f->settling && f->event.kind == EVENT_ARRIVE) {
            heap_remove(&s->events, &f->event.node);
            f->event.flag = true;
        }
    }
    LIST_EACH_SAFE(f, &s->orphans, node) {
        heap_remove(&s->events, &f->event.node);
        list_del(&f->node);
        flight_free(f);
    }
}

void link_down(struct sim *s, struct sim_daemon *d)
{
    TRACE(s, "d%zu: told that Redis is down", d->index);
    d->told_up = false;
    latches_noticed(s, d);
    engine_on_store_down(sim_turn_begin(s, d));
    sim_turn_end(s, d);
}

/* The ops that the old link left open will not run any more: it is killed. */
static void settle(struct sim *s, struct sim_daemon *d, uint64_t after_ms)
{
    struct flight *f;

    LIST_EACH(f, &d->open, node) {
        if (!f->settling) {
            heap_remove(&s->events, &f->event.node);
            f->settling = true;
            f->event.kind = EVENT_RESULT;
            sim_event_at(s, &f->event, s->now + after_ms);
        }
    }
}

static bool is_group(void *ctx, unsigned group)
{
    return group == *(const unsigned *)ctx;
}

/* Of a Cluster: one master after the other. */
static void tell_failover(struct engine *l, const struct sim_daemon *d)
{
    for (unsigned group = 0; d->grouped && group < 2; group++) {
        engine_on_failover(l, is_group, &group);
    }
    if (!d->grouped) {
        engine_on_failover(l, NULL, NULL);
    }
}

void link_up(struct sim *s, struct sim_daemon *d, bool same_server)
{
    struct engine *l;

    same_server = same_server && d->server == s->server;
    d->server = s->server;
    if (d->told_up) {
        latches_noticed(s, d);
    }
    TRACE(s, "d%zu: told that Redis is up, %s server", d->index,
          same_server ? "same" : "another");
    d->link_works = true;
    d->told_up = true;
    d->last_arrive = d->last_result = d->last_acked = s->now;
    settle(s, d, dice_chance(&s->dice, 800) ? 0 : dice_below(&s->dice, 4));
    l = sim_turn_begin(s, d);
    if (d->failovers != s->failovers) {
        TRACE(s, "d%zu: told of a failover", d->index);
        d->failovers = s->failovers;
        tell_failover(l, d);
    }
    peers_tell_age(s, l);
    engine_on_store_up(l, same_server);
    sim_turn_end(s, d);
    if (!same_server) {
        check_all_uncertain(s, d, "another server");
    }
}

void link_forget_daemon(struct sim *s, struct sim_daemon *d)
{
    struct flight *f;

    LIST_EACH_SAFE(f, &d->open, node) {
        list_del(&f->node);
        if (f->event.kind == EVENT_ARRIVE && heap_armed(&f->event.node)) {
            f->orphan = true;
            list_append(&s->orphans, &f->node);
        } else {
            heap_remove(&s->events, &f->event.node);
            flight_free(f);
        }
    }
}
