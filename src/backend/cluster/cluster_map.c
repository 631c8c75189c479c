/* Which member of the cluster has which slots, and what follows when that changes. */
#include "backend/cluster/cluster_priv.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <stdlib.h>

/* --- members --------------------------------------------------------------------- */

static struct member *member_find(const struct cluster *c, const struct slot_node *at)
{
    for (size_t i = 0; i < c->member_count; i++) {
        struct member *m = c->members[i];

        if (strcmp(m->host, at->host) == 0 && strcmp(m->port, at->port) == 0) {
            return m;
        }
    }
    return NULL;
}

static struct member *member_new(struct cluster *c, const struct slot_node *at)
{
    struct member *m = xcalloc(1, sizeof(*m));
    struct backend_url url;
    struct node_setup setup = {
        .store = &c->setup,
        .url = &url,
        .seed = c->seed += 0x9e3779b97f4a7c15,
        .events = CLUSTER_MEMBER_EVENTS,
        .listener = CLUSTER_MEMBER_LISTENER,
        .publish = c->setup.config.cluster.publish,
        .hears_daemons = true,
        .backoff_max_ms = CLUSTER_SUSPECT_MAP_MS / 2,
        .on_moved = cluster_on_moved,
    };

    m->cluster = c;
    memcpy(m->host, at->host, sizeof(m->host));
    memcpy(m->port, at->port, sizeof(m->port));
    backend_url_copy(&url, &c->setup.config.urls[0]);
    backend_url_set_server(&url, span_str(m->host), span_str(m->port));
    setup.events.ctx = m;
    setup.listener.ctx = m;
    m->node = node_new(&setup);
    backend_url_fini(&url);
    node_start(m->node);
    c->members = xrealloc(c->members, (c->member_count + 1) * sizeof(struct member *));
    c->members[c->member_count++] = m;
    return m;
}

/* The member is no master any more, and is asked nothing. */
static void close_member(struct cluster *c, size_t at)
{
    struct member *m = c->members[at];

    log_notice("cluster", "%s:%s has no slots any more", m->host, m->port);
    node_close(m->node);
    for (size_t i = 0; i < c->member_count; i++) {
        if (c->members[i]->successor == m) {
            c->members[i]->successor = NULL;
        }
    }
    memmove(&c->members[at], &c->members[at + 1],
            (--c->member_count - at) * sizeof(struct member *));
    c->gone = xrealloc(c->gone, (c->gone_count + 1) * sizeof(struct member *));
    c->gone[c->gone_count++] = m;
}

void cluster_retire(struct cluster *c)
{
    for (size_t i = 0; i < c->gone_count; i++) {
        node_free(c->gone[i]->node);
        free(c->gone[i]);
    }
    c->gone_count = 0;
}

/* --- slots that change their owner ----------------------------------------------- */

static bool has_failed(void *ctx, uint32_t slot)
{
    const struct cluster *c = ctx;

    return slot < SLOT_COUNT && c->failed[slot];
}

/* A move of slots from one member to another (NULL: to any). */
struct move {
    const struct cluster *cluster;
    const struct member *from, *to;
};

static bool is_moved(void *ctx, uint32_t slot)
{
    const struct move *move = ctx;
    const struct cluster *c = move->cluster;

    return slot < SLOT_COUNT && c->before[slot] == move->from &&
           c->owners[slot] != move->from &&
           (move->to == NULL || c->owners[slot] == move->to);
}

static bool is_moved_by_failover(void *ctx, uint32_t slot)
{
    const struct move *move = ctx;

    return is_moved(ctx, slot) && move->cluster->failed[slot];
}

static bool is_elsewhere(void *ctx, uint32_t slot)
{
    const struct move *move = ctx;

    return slot < SLOT_COUNT && move->cluster->owners[slot] != move->from;
}

/* Ops that are open at the old owner of a resharded slot are still answered there, if
 * there is a link; the link of a dead one may never come back. */
static void abandon_member(struct cluster *c, struct member *m, bool changed)
{
    struct move move = { c, m, NULL };

    if (changed) {
        node_abandon(m->node, is_moved_by_failover, &move, true);
    }
    node_abandon(m->node, is_elsewhere, &move, false);
}

static size_t in_flight(const struct member *m)
{
    struct store_info info = { 0 };

    node_info(m->node, &info);
    return info.in_flight;
}

static void move_channels(struct cluster *c, struct member *from)
{
    for (size_t i = 0; i < c->member_count; i++) {
        struct move move = { c, from, c->members[i] };

        if (c->members[i] != from) {
            node_adopt(c->members[i]->node, from->node, is_moved, &move);
        }
    }
}

static size_t count_failed(const struct cluster *c)
{
    size_t count = 0;

    for (size_t i = 0; i < SLOT_COUNT; i++) {
        count += c->failed[i];
    }
    return count;
}

/* The old owners and the new: usually one each. */
static void suspect_failovers(struct cluster *c)
{
    for (size_t i = 0; i < c->member_count; i++) {
        struct member *m = c->members[i];
        bool any = false;

        for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
            if (!c->failed[slot] || c->before[slot] != m) {
                continue;
            }
            if (!any) {
                cluster_suspect(c, m, c->owners[slot] == m ? NULL : c->owners[slot]);
                any = true;
            }
            c->failover_of[slot] = m->failover;
        }
    }
}

static void tell_failed(struct cluster *c)
{
    size_t count = count_failed(c);

    if (count > 0) {
        log_warning("cluster",
                    "%zu slots failed over: writes to their old owners may be lost",
                    count);
        suspect_failovers(c);
        c->events.on_failed_over(c->events.ctx, has_failed, c);
    }
}

void cluster_failed_over(struct cluster *c, struct member *m)
{
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        c->failed[i] = c->owners[i] == m;
        c->before[i] = c->owners[i];
    }
    tell_failed(c);
}

/* --- taking over a view ---------------------------------------------------------- */

/* Fills `before`, `failed` and the new `owners`; returns false if nothing changes. */
static bool assign_slots(struct cluster *c, const struct slot_map *now)
{
    bool changed = false;

    memcpy(c->before, c->owners, sizeof(c->before));
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        const struct slot_node *owner = slot_map_owner(now, slot);
        const struct slot_node *old = slot_map_owner(&c->map, slot);
        struct member *m;

        c->failed[slot] = false;
        if (owner == NULL) {
            continue;
        }
        m = c->owners[slot];
        if (m == NULL || strcmp(m->host, owner->host) != 0 ||
            strcmp(m->port, owner->port) != 0) {
            m = member_find(c, owner);
            m = m == NULL ? member_new(c, owner) : m;
            c->owners[slot] = m;
            changed = true;
            /* The same node elsewhere is another process. */
            c->failed[slot] =
                old != NULL && (strcmp(old->id, owner->id) == 0 ||
                                slot_map_fate(&c->map, now, slot) == SLOT_FAILED_OVER);
        }
    }
    /* Whoever is asked for what nobody has says so. */
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        c->owners[slot] = c->owners[slot] == NULL ? c->members[0] : c->owners[slot];
    }
    return changed;
}

static void count_slots(struct cluster *c)
{
    for (size_t i = 0; i < c->member_count; i++) {
        c->members[i]->slots = 0;
    }
    for (uint32_t slot = 0; slot < SLOT_COUNT; slot++) {
        c->owners[slot]->slots++;
    }
}

/* A master whose slots were all moved away may still have to answer. */
static bool is_master(const struct slot_map *map, const struct member *m)
{
    for (size_t i = 0; i < map->node_count; i++) {
        const struct slot_node *n = &map->nodes[i];

        if (n->is_master && !n->is_failing && strcmp(n->host, m->host) == 0 &&
            strcmp(n->port, m->port) == 0) {
            return true;
        }
    }
    return false;
}

static void take_over(struct cluster *c, struct slot_map *now)
{
    bool changed = assign_slots(c, now);

    if (changed) {
        count_slots(c);
        tell_failed(c); /* before anybody else asks the new owners for anything */
    }
    for (size_t i = 0; i < c->member_count; i++) {
        if (changed) {
            move_channels(c, c->members[i]);
        }
        abandon_member(c, c->members[i], changed);
    }
    slot_map_fini(&c->map);
    c->map = *now;
    for (size_t i = c->member_count; i > 0; i--) {
        struct member *m = c->members[i - 1];

        if (m->slots == 0 && !is_master(&c->map, m) && in_flight(m) == 0 &&
            m->successor == NULL) {
            close_member(c, i - 1);
        } else {
            node_resubscribe(m->node);
        }
    }
}

bool cluster_on_view(void *cluster, struct span text, const char *host)
{
    struct cluster *c = cluster;
    uint64_t now_ms = clock_boot_ms();
    struct slot_map now;
    bool has_slots = false;

    if (c->closed || !slot_map_parse(text, host, &now)) {
        return false;
    }
    for (uint32_t slot = 0; slot < SLOT_COUNT && !has_slots; slot++) {
        has_slots = slot_map_owner(&now, slot) != NULL;
    }
    /* Unless the cluster was made anew, under other epochs. */
    if (!has_slots || (slot_map_is_older(&now, &c->map) &&
                       now_ms - c->believed_ms < CLUSTER_REFUSE_MS)) {
        slot_map_fini(&now);
        return has_slots;
    }
    c->believed_ms = now_ms;
    take_over(c, &now);
    return true;
}
