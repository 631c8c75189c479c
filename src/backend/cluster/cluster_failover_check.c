/* Whether a failover lost anything. Nothing was lost, as after CLUSTER FAILOVER, if the
 * old master follows the new one and did not have to forget: Redis lets a master
 * continue as a replica from its own offset only if it had executed nothing that the
 * new one lacks. Then the history of both continues the one that the old master had
 * written while it was asked. A link to the old master that was never lost leads to the
 * same process, which is asked until that is so; if it cannot be shown, something may
 * be lost. */
#include "backend/cluster/cluster_priv.h"

#include "backend/redis/redis_link.h"
#include "util/clock.h"
#include "util/log.h"

#include <string.h>

void cluster_suspect(struct cluster *c, struct member *m, struct member *successor)
{
    struct redis_link *link = node_link(m->node);

    m->failover = ++c->failovers;
    m->successor = NULL;
    if (redis_link_is_ready(link)) {
        m->successor = successor;
        m->history = *redis_link_history(link);
        m->reconnects = redis_link_reconnects(link);
        m->prove_until_ms = clock_boot_ms() + CLUSTER_CHECK_MS;
        cluster_suspect_map(c); /* so the map is asked for soon */
    }
}

/* Whether the old master continued from the successor, with or without having to
 * forget. */
static bool history_follows(const struct redis_history *old,
                            const struct redis_history *now)
{
    return now->is_master && old->is_replica && now->id[0] != '\0' &&
           strcmp(old->id, now->id) == 0;
}

static bool lost_nothing(const struct member *m, const struct redis_history *old,
                         const struct redis_history *now)
{
    const char *id = m->history.id;

    return id[0] != '\0' && strcmp(old->before, id) == 0 &&
           strcmp(now->before, id) == 0 && old->before_end != 0 &&
           old->before_end <= now->before_end;
}

static bool was_theirs(void *ctx, uint32_t slot)
{
    const struct member *m = ctx;
    const struct cluster *c = m->cluster;

    return slot < SLOT_COUNT && c->failover_of[slot] == m->failover &&
           c->owners[slot] == m->successor;
}

/* Returns false if it is settled, one way or the other. */
static bool check_member(struct cluster *c, struct member *m)
{
    struct redis_link *link = node_link(m->node);
    struct redis_link *heirs = node_link(m->successor->node);

    if (!redis_link_is_ready(link) || redis_link_reconnects(link) != m->reconnects ||
        clock_boot_ms() > m->prove_until_ms) {
        return false;
    }
    if (!redis_link_is_ready(heirs)) {
        return true;
    }
    if (!history_follows(redis_link_history(link), redis_link_history(heirs))) {
        redis_link_ask_history(link);
        redis_link_ask_history(heirs);
        return true;
    }
    if (!lost_nothing(m, redis_link_history(link), redis_link_history(heirs))) {
        return false;
    }
    log_notice(
        "cluster",
        "%s:%s has passed on all that it had to %s:%s: the failover lost nothing",
        m->host, m->port, m->successor->host, m->successor->port);
    c->events.on_nothing_was_lost(c->events.ctx, was_theirs, m);
    return false;
}

void cluster_check_failover(struct cluster *c)
{
    for (size_t i = 0; i < c->member_count && !c->closed; i++) {
        struct member *m = c->members[i];

        if (m->successor != NULL && !check_member(c, m)) {
            m->successor = NULL;
        }
    }
}
