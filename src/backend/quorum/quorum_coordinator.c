#include "backend/quorum/quorum_coordinator_priv.h"
#include "util/alloc.h"

#include <stdlib.h>

struct quorum_coordinator *coordinator_new(const struct coordinator_setup *setup)
{
    struct quorum_coordinator *b = xcalloc(1, sizeof(*b));

    b->setup = *setup;
    b->need = setup->node_count / 2 + 1;
    b->now = setup->now_ms;
    b->dice = setup->seed;
    list_init(&b->calls);
    list_init(&b->done);
    list_init(&b->deferred_order);
    list_init(&b->partial_order);
    list_init(&b->partial_due);
    heap_init(&b->partial_timers);
    heap_init(&b->call_timers);
    heap_init(&b->deferred_timers);
    for (unsigned i = 0; i < setup->node_count; i++) {
        list_init(&b->nodes[i].sents);
        list_init(&b->nodes[i].sends);
    }
    return b;
}

void coordinator_free(struct quorum_coordinator *b)
{
    struct list *it, *tmp;
    struct table_walk walk;
    struct table_node *n;

    if (b == NULL) {
        return;
    }
    LIST_FOREACH_SAFE(it, tmp, &b->calls)
    {
        coordinator_call_free(b, container_of(it, struct quorum_call, in_calls));
    }
    LIST_FOREACH_SAFE(it, tmp, &b->deferred_order)
    {
        deferred_op_free(b, container_of(it, struct deferred_op, in_deferred));
    }
    LIST_FOREACH_SAFE(it, tmp, &b->partial_order)
    {
        partial_hold_free(b, container_of(it, struct partial_hold, in_partial));
    }
    TABLE_FOREACH(n, &walk, &b->sents)
    {
        coordinator_sent_free(b, container_of(n, struct sent_op, in_sents));
    }
    table_fini(&b->sents);
    table_fini(&b->deferred_ops);
    table_fini(&b->partial_holds);
    heap_fini(&b->call_timers);
    heap_fini(&b->deferred_timers);
    heap_fini(&b->partial_timers);
    free(b);
}

void coordinator_configure(struct quorum_coordinator *b, uint64_t timeout_ms,
                           uint64_t quarantine_ms)
{
    b->setup.timeout_ms = timeout_ms;
    b->setup.quarantine_ms = quarantine_ms;
}

/* Results are reported last of all: the receiver may submit other ops at once. */
static void tell_results(struct quorum_coordinator *b)
{
    struct list *it;

    while (!b->telling && (it = list_first(&b->done)) != NULL) {
        struct quorum_call *c = container_of(it, struct quorum_call, in_done);

        list_del(&c->in_done);
        b->telling = true;
        b->setup.events.done(b->setup.events.ctx, &c->result);
        b->telling = false;
        coordinator_call_told(b, c);
    }
}

void coordinator_submit(struct quorum_coordinator *b, const struct op *op)
{
    coordinator_call_begin(b, op);
}

void coordinator_result(struct quorum_coordinator *b, unsigned node,
                        const struct op_result *result)
{
    coordinator_deliver(b, node, result);
    deferred_ops_flush(b, node);
    partial_holds_flush(b);
    tell_results(b);
}

/* --- time ------------------------------------------------------------------------- */

static void fire_timers(struct quorum_coordinator *b)
{
    struct heap_node *node;

    while ((node = heap_min(&b->call_timers)) != NULL && node->at <= b->now) {
        heap_remove(&b->call_timers, node);
        coordinator_call_on_timer(b, container_of(node, struct quorum_call, timer));
    }
    while ((node = heap_min(&b->deferred_timers)) != NULL && node->at <= b->now) {
        deferred_op_free(b, container_of(node, struct deferred_op, timer));
    }
    while ((node = heap_min(&b->partial_timers)) != NULL && node->at <= b->now) {
        heap_remove(&b->partial_timers, node);
        partial_hold_on_timer(b, container_of(node, struct partial_hold, timer));
    }
}

void coordinator_time(struct quorum_coordinator *b, uint64_t now_ms, uint64_t wall_us)
{
    b->now = now_ms > b->now ? now_ms : b->now;
    b->wall_us = wall_us;
}

void coordinator_tick(struct quorum_coordinator *b, uint64_t now_ms, uint64_t wall_us)
{
    coordinator_time(b, now_ms, wall_us);
    fire_timers(b);
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        deferred_ops_flush(b, i);
    }
    partial_holds_flush(b);
    tell_results(b);
}

static void take_earlier(uint64_t *at, uint64_t other)
{
    *at = other < *at ? other : *at;
}

uint64_t coordinator_next_deadline(const struct quorum_coordinator *b)
{
    const struct heap *heaps[] = { &b->call_timers, &b->deferred_timers,
                                   &b->partial_timers };
    uint64_t at = UINT64_MAX;

    for (size_t i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i++) {
        const struct heap_node *first = heap_min(heaps[i]);

        if (first != NULL) {
            take_earlier(&at, first->at);
        }
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct coordinator_node *n = &b->nodes[i];

        if (n->up && !list_empty(&n->sends) && n->pause_until > b->now) {
            take_earlier(&at, n->pause_until);
        }
    }
    return at;
}

/* --- nodes ------------------------------------------------------------------------ */

void coordinator_node_lost(struct quorum_coordinator *b, unsigned node)
{
    b->nodes[node].abstains_until = b->now + b->setup.quarantine_ms;
}

void coordinator_node_up(struct quorum_coordinator *b, unsigned node, bool same,
                         uint64_t running_ms)
{
    struct coordinator_node *n = &b->nodes[node];

    if ((!same || !n->was_up) && running_ms < b->setup.quarantine_ms) {
        n->abstains_until = b->now + b->setup.quarantine_ms - running_ms;
    }
    n->up = n->was_up = true;
    n->pause_until = 0;
    deferred_ops_flush(b, node);
    partial_holds_wake(b);
    partial_holds_flush(b);
    tell_results(b);
}

void coordinator_node_down(struct quorum_coordinator *b, unsigned node)
{
    struct coordinator_node *n = &b->nodes[node];
    struct list *it, *tmp;

    n->up = false;
    LIST_FOREACH_SAFE(it, tmp, &n->sents)
    {
        struct sent_op *s = container_of(it, struct sent_op, in_node);

        if (s->call != NULL) {
            coordinator_call_on_silence(b, s->call, node);
        }
    }
    tell_results(b);
}

uint64_t coordinator_abstains(const struct quorum_coordinator *b, unsigned node)
{
    uint64_t until = b->nodes[node].abstains_until;

    return until > b->now ? until - b->now : 0;
}

bool coordinator_is_up(const struct quorum_coordinator *b)
{
    unsigned up = 0;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        up += b->nodes[i].up ? 1 : 0;
    }
    return up >= b->need;
}

void coordinator_stats(const struct quorum_coordinator *b,
                       struct coordinator_stats *ret)
{
    *ret = b->stats;
    ret->deferred_ops = b->deferred_count;
    ret->open = b->sents.count;
}
