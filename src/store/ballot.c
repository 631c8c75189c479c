#include "store/ballot_priv.h"
#include "util/alloc.h"

#include <stdlib.h>

struct ballot *ballot_new(const struct ballot_setup *setup)
{
    struct ballot *b = xcalloc(1, sizeof(*b));

    b->setup = *setup;
    b->need = setup->node_count / 2 + 1;
    b->now = setup->now_ms;
    b->dice = setup->seed;
    list_init(&b->calls);
    list_init(&b->done);
    list_init(&b->chore_order);
    list_init(&b->bare_order);
    list_init(&b->bares_due);
    heap_init(&b->bare_timers);
    heap_init(&b->call_timers);
    heap_init(&b->chore_timers);
    for (unsigned i = 0; i < setup->node_count; i++) {
        list_init(&b->nodes[i].sents);
        list_init(&b->nodes[i].errands);
    }
    return b;
}

void ballot_free(struct ballot *b)
{
    struct list *it, *tmp;
    struct table_walk walk;
    struct table_node *n;

    if (b == NULL) {
        return;
    }
    LIST_FOREACH_SAFE(it, tmp, &b->calls)
    {
        ballot_call_free(b, container_of(it, struct call, in_calls));
    }
    LIST_FOREACH_SAFE(it, tmp, &b->chore_order)
    {
        chore_free(b, container_of(it, struct chore, in_chores));
    }
    LIST_FOREACH_SAFE(it, tmp, &b->bare_order)
    {
        bare_free(b, container_of(it, struct bare, in_bares));
    }
    TABLE_FOREACH(n, &walk, &b->sents)
    {
        ballot_sent_free(b, container_of(n, struct sent, in_sents));
    }
    table_fini(&b->sents);
    table_fini(&b->chores);
    table_fini(&b->bares);
    heap_fini(&b->call_timers);
    heap_fini(&b->chore_timers);
    heap_fini(&b->bare_timers);
    free(b);
}

void ballot_configure(struct ballot *b, uint64_t timeout_ms, uint64_t quarantine_ms)
{
    b->setup.timeout_ms = timeout_ms;
    b->setup.quarantine_ms = quarantine_ms;
}

/* Results are told last of all: whoever hears them may come back with other ops. */
static void tell_results(struct ballot *b)
{
    struct list *it;

    while (!b->telling && (it = list_first(&b->done)) != NULL) {
        struct call *c = container_of(it, struct call, in_done);

        list_del(&c->in_done);
        b->telling = true;
        b->setup.events.done(b->setup.events.ctx, &c->result);
        b->telling = false;
        ballot_call_told(b, c);
    }
}

void ballot_submit(struct ballot *b, const struct op *op)
{
    ballot_call_begin(b, op);
}

void ballot_result(struct ballot *b, unsigned node, const struct op_result *result)
{
    ballot_deal(b, node, result);
    chores_flush(b, node);
    bares_flush(b);
    tell_results(b);
}

/* --- time ------------------------------------------------------------------------- */

static void fire(struct ballot *b)
{
    struct heap_node *node;

    while ((node = heap_min(&b->call_timers)) != NULL && node->at <= b->now) {
        heap_remove(&b->call_timers, node);
        ballot_call_on_timer(b, container_of(node, struct call, timer));
    }
    while ((node = heap_min(&b->chore_timers)) != NULL && node->at <= b->now) {
        chore_free(b, container_of(node, struct chore, timer));
    }
    while ((node = heap_min(&b->bare_timers)) != NULL && node->at <= b->now) {
        heap_remove(&b->bare_timers, node);
        bare_on_timer(b, container_of(node, struct bare, timer));
    }
}

void ballot_time(struct ballot *b, uint64_t now_ms, uint64_t wall_us)
{
    b->now = now_ms > b->now ? now_ms : b->now;
    b->wall_us = wall_us;
}

void ballot_tick(struct ballot *b, uint64_t now_ms, uint64_t wall_us)
{
    ballot_time(b, now_ms, wall_us);
    fire(b);
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        chores_flush(b, i);
    }
    bares_flush(b);
    tell_results(b);
}

static void earlier(uint64_t *at, uint64_t other)
{
    *at = other < *at ? other : *at;
}

uint64_t ballot_next_deadline(const struct ballot *b)
{
    const struct heap *heaps[] = { &b->call_timers, &b->chore_timers, &b->bare_timers };
    uint64_t at = UINT64_MAX;

    for (size_t i = 0; i < sizeof(heaps) / sizeof(heaps[0]); i++) {
        const struct heap_node *first = heap_min(heaps[i]);

        if (first != NULL) {
            earlier(&at, first->at);
        }
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct ballot_node *n = &b->nodes[i];

        if (n->up && !list_empty(&n->errands) && n->pause_until > b->now) {
            earlier(&at, n->pause_until);
        }
    }
    return at;
}

/* --- nodes ------------------------------------------------------------------------ */

void ballot_node_lost(struct ballot *b, unsigned node)
{
    b->nodes[node].abstains_until = b->now + b->setup.quarantine_ms;
}

void ballot_node_up(struct ballot *b, unsigned node, bool same, uint64_t running_ms)
{
    struct ballot_node *n = &b->nodes[node];

    if ((!same || !n->was_up) && running_ms < b->setup.quarantine_ms) {
        n->abstains_until = b->now + b->setup.quarantine_ms - running_ms;
    }
    n->up = n->was_up = true;
    n->pause_until = 0;
    chores_flush(b, node);
    bares_wake(b);
    bares_flush(b);
    tell_results(b);
}

void ballot_node_down(struct ballot *b, unsigned node)
{
    struct ballot_node *n = &b->nodes[node];
    struct list *it, *tmp;

    n->up = false;
    LIST_FOREACH_SAFE(it, tmp, &n->sents)
    {
        struct sent *s = container_of(it, struct sent, in_node);

        if (s->call != NULL) {
            ballot_call_on_silence(b, s->call, node);
        }
    }
    tell_results(b);
}

uint64_t ballot_abstains(const struct ballot *b, unsigned node)
{
    uint64_t until = b->nodes[node].abstains_until;

    return until > b->now ? until - b->now : 0;
}

bool ballot_is_up(const struct ballot *b)
{
    unsigned up = 0;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        up += b->nodes[i].up ? 1 : 0;
    }
    return up >= b->need;
}

void ballot_stats(const struct ballot *b, struct ballot_stats *ret)
{
    *ret = b->stats;
    ret->chores = b->chore_count;
    ret->open = b->sents.count;
}
