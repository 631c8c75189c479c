#include "engine/timer.h"
#include "engine/engine_priv.h"

void timer_set(struct engine *eng, struct timer *t, enum timer_kind kind, uint64_t at)
{
    t->node.tag = kind;
    heap_set(&eng->heap, &t->node, at);
}

void timer_stop(struct engine *eng, struct timer *t)
{
    heap_remove(&eng->heap, &t->node);
}

bool tick_is_too_late(const struct engine *eng, uint64_t deadline)
{
    return eng->now > deadline && eng->before < deadline;
}

/* While other daemons are asked first, Redis can be reached. */
uint64_t answer_deadline(const struct engine *eng, uint64_t deadline)
{
    uint64_t given_up = eng->down_at + eng->cfg.redis_timeout_ms;

    if (eng->up || eng->peers.asking || deadline <= given_up) {
        return deadline;
    }
    return given_up > eng->now ? given_up : eng->now;
}
