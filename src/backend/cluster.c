/* A Redis Cluster: one node for each master, found and kept by the map (cluster.c)
 * that discovery brings.
 *
 * The store is up as soon as the map is known and a master can be asked. The ops of
 * other masters wait for their link, or for the map to name another owner. An op that a
 * node refuses, as it does not have that slot (now), did nothing: OP_LATE, reported a
 * bit later, when the map may be better. */
#include "backend/backend.h"
#include "backend/redis/redis_conn.h"
#include "backend/redis/redis_link.h"
#include "backend/slot_map.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/fifo.h"
#include "util/list.h"
#include "util/log.h"
#include "util/span.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    TIMEOUT_MAX_MS = 1000,
    BACKOFF_MAX_MS = 500,
    CLUSTER_DISCOVERIES = 3,
    CLUSTER_REFRESH_MS = 1000,     /* how often the map is asked for.. */
    CLUSTER_HURRY_MS = 100,        /* ..and while something is wrong */
    CLUSTER_SUSPECT_MAP_MS = 1000, /* how long a refusal makes the map suspect */
    CLUSTER_REFUSE_MS = 5000,      /* how long views older than the last are refused */
    CLUSTER_CHECK_MS = 10000,      /* how long it may turn out that nothing was lost */
    CLUSTER_LATER_MS = 30,         /* a refused op is not sent again before */
    CLUSTER_LATER_MAX_MS = 500,
    CLUSTER_LATER_EACH = 50, /* and a millisecond more for each so many refused ops */
};

/* Asks the nodes, one after the other, how they see the cluster. Has a connection of
 * its own, to one node at a time, so that a silent node delays no op. */
struct discovery {
    struct cluster *cluster;
    struct redis_conn *conn;
    struct backend_url url;
    bool is_open;
    bool is_ready;
    bool is_asking;
    bool is_lost; /* needs another node */
    bool moving;  /* by discovery_go() */
    bool closed;
};

/* A master: a node that has slots, or had some. */
struct member {
    struct cluster *cluster;
    struct node *node;
    char host[SLOT_HOST_MAX + 1];
    char port[6];
    size_t slots;
    bool up;
    bool was_up;
    uint64_t watch_limit; /* 0: it has no watch */
    bool listens;         /* to what daemons announce; all nodes pass it on */
    /* The node's last failover, see cluster.c: */
    uint32_t failover;
    struct member *successor;     /* NULL: the failover is settled */
    struct redis_history history; /* as it was when the failover was noticed */
    uint64_t reconnects;          /* the same */
    uint64_t prove_until_ms;
};

/* An op that a node refused, which is reported later (boot clock). */
struct refused_op {
    uint64_t id;
    uint64_t due_ms;
};

struct cluster {
    struct store store; /* its nodes are those of the members, in their order */
    uv_timer_t timer;
    struct discovery discoveries[CLUSTER_DISCOVERIES];
    size_t next_server;  /* where a discovery goes next */
    struct slot_map map; /* the last view that was believed */
    struct member *owners[SLOT_COUNT];
    struct member *before[SLOT_COUNT]; /* while a view is taken over */
    bool failed[SLOT_COUNT];           /* the same */
    /* the last failover that took the slot away; 0: none */
    uint32_t failover_of[SLOT_COUNT];
    uint32_t failovers;
    struct member **members;
    size_t member_count;
    struct member **gone; /* closed, to be freed a bit later */
    size_t gone_count;
    struct fifo later; /* struct refused_op each */
    bool up, was_up;
    uint64_t map_suspect_ms; /* when the map last seemed wrong */
    uint64_t asked_ms;       /* when the discoveries last asked */
    uint64_t believed_ms;    /* the last view that was believed */
    uint64_t seed;
};

static bool cluster_on_view(struct cluster *c, struct span text, const char *host);
static void cluster_suspect_map(struct cluster *c);

static void on_nodes(void *ctx, void *of, const redisReply *reply)
{
    struct discovery *s = ctx;

    s->is_asking = false;
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(s->conn, "%s", reply->str);
        return;
    }
    if (reply->type != REDIS_REPLY_STRING ||
        !cluster_on_view(s->cluster, span_of(reply->str, (size_t)reply->len),
                         s->url.host)) {
        redis_conn_fail(s->conn, "it gives no map of a cluster");
        return;
    }
    if (!s->is_ready && !s->closed) {
        s->is_ready = true;
        redis_conn_ready(s->conn, "for the map");
    }
}

/* Asks the node, unless a question is due anyway. */
static void discovery_ask(struct discovery *s)
{
    if (!s->closed && s->is_open && !s->is_asking) {
        s->is_asking = true;
        redis_conn_ask(s->conn, 2, (const char *const[]){ "CLUSTER", "NODES" },
                       on_nodes, NULL);
        redis_conn_flush(s->conn);
    }
}

/* --- the connection -------------------------------------------------------------- */

static void on_open(void *ctx)
{
    struct discovery *s = ctx;

    s->is_open = true;
    discovery_ask(s);
}

static void on_gone(void *ctx)
{
    struct discovery *s = ctx;

    s->is_open = s->is_ready = s->is_asking = false;
    if (!s->moving) {
        s->is_lost = true;
        cluster_suspect_map(s->cluster);
    }
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_open = on_open,
    .on_lost = on_gone,
    .on_refused = on_gone,
};

/* --- for the cluster ------------------------------------------------------------- */

static uint64_t limit_timeout(uint64_t timeout_ms)
{
    return timeout_ms < TIMEOUT_MAX_MS ? timeout_ms : TIMEOUT_MAX_MS;
}

static void discovery_init(struct discovery *s, struct cluster *c, size_t i)
{
    const struct store_setup *setup = &c->store.setup;
    struct redis_conn_setup conn = {
        .io = setup->io,
        .url = &s->url,
        .module = "cluster",
        .is_quiet = i != 0,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .timeout_ms = limit_timeout(setup->options.timeout_ms),
        .seed = setup->seed + i,
        .events = &CONN_EVENTS,
        .ctx = s,
    };

    backend_url_copy(&s->url, &setup->config.urls[i % setup->config.url_count]);
    s->cluster = c;
    s->is_lost = true;
    s->conn = redis_conn_new(&conn);
}

/* Connects to that node at once. */
static void discovery_go(struct discovery *s, const char *host, const char *port)
{
    backend_url_set_server(&s->url, span_str(host), span_str(port));
    s->moving = true;
    redis_conn_move(s->conn);
    s->moving = false;
}

static struct cluster *cluster_of(const struct store *store)
{
    return container_of(store, struct cluster, store);
}

static bool is_master(const struct slot_map *map, const struct member *m);
static void on_node_event(void *ctx, const struct store_event *ev);

/* All nodes pass on an announcement that a daemon made to one. */
static void on_listening(struct member *m, const struct store_event *listening)
{
    struct cluster *c = m->cluster;
    bool any = false;

    for (size_t i = 0; i < c->member_count; i++) {
        any = any || c->members[i]->listens;
    }
    m->listens = true;
    if (!any) {
        store_tell(&c->store.setup.events, listening);
    }
}

/* The members of this instance in a fair queue: their sharded channels are subscribed
 * at the owner of the name's slot, as a pattern does not match sharded channels. */

/* Listens to the members that the op puts into a fair queue. */
static void cluster_listen(struct member *m, const struct op *op)
{
    if (op->kind == OP_ACQUIRE && op->acquire.enqueue) {
        node_listen(m->node, op->name, op->acquire.claim.member, true);
    }
    if (op->kind == OP_QUEUE) {
        for (size_t i = 0; i < op->queue.count; i++) {
            node_listen(m->node, op->name, op->queue.members[i], true);
        }
    }
}

static void cluster_unlisten(struct store *store, struct span name, struct span member)
{
    struct member *m = cluster_of(store)->owners[slot_of(name)];

    if (m != NULL) {
        node_listen(m->node, name, member, false);
    }
}

/* Whether a failover lost anything. Nothing was lost, as after CLUSTER FAILOVER, if the
 * old master follows the new one and did not have to forget: Redis lets a master
 * continue as a replica from its own offset only if it had executed nothing that the
 * new one lacks. Then the history of both continues the one that the old master had
 * written while it was asked. A link to the old master that was never lost leads to the
 * same process, which is asked until that is so; if it cannot be shown, something may
 * be lost. */

/* Notes that the member's slots failed over to the successor (NULL: to itself). */
static void cluster_suspect(struct cluster *c, struct member *m,
                            struct member *successor)
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
    store_tell(&c->store.setup.events,
               &(struct store_event){ .kind = STORE_LOST_NOTHING,
                                      .groups = { was_theirs, m } });
    return false;
}

/* Checks whether failovers lost nothing, and reports it. */
static void cluster_check_failover(struct cluster *c)
{
    for (size_t i = 0; i < c->member_count && !c->store.closed; i++) {
        struct member *m = c->members[i];

        if (m->successor != NULL && !check_member(c, m)) {
            m->successor = NULL;
        }
    }
}

/* Which member of the cluster has which slots, and what follows when that changes. */

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
    struct node_setup setup = {
        .store = &c->store.setup,
        .url = &c->store.setup.config.urls[0],
        .host = m->host,
        .port = m->port,
        .seed = c->seed += 0x9e3779b97f4a7c15,
        .events = { on_node_event, m },
        .publish = c->store.setup.config.cluster.publish,
        .watches = true,
        .hears_daemons = true,
        .backoff_max_ms = CLUSTER_SUSPECT_MAP_MS / 2,
    };

    m->cluster = c;
    memcpy(m->host, at->host, sizeof(m->host));
    memcpy(m->port, at->port, sizeof(m->port));
    m->node = store_add_node(&c->store, &setup);
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
    store_remove_node(&c->store, at);
    memmove(&c->members[at], &c->members[at + 1],
            (--c->member_count - at) * sizeof(struct member *));
    c->gone = xrealloc(c->gone, (c->gone_count + 1) * sizeof(struct member *));
    c->gone[c->gone_count++] = m;
}

static void cluster_retire(struct cluster *c)
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
        store_tell(&c->store.setup.events,
                   &(struct store_event){ .kind = STORE_FAILED_OVER,
                                          .groups = { has_failed, c } });
    }
}

/* Reports that whatever the member had may be lost. */
static void cluster_failed_over(struct cluster *c, struct member *m)
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
    /* The first member is asked for a slot that nobody has, and says so. */
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

/* Takes what some node answered to CLUSTER NODES; returns false if that is no map. */
static bool cluster_on_view(struct cluster *c, struct span text, const char *host)
{
    uint64_t now_ms = clock_boot_ms();
    struct slot_map now;
    bool has_slots = false;

    if (c->store.closed || !slot_map_parse(text, host, &now)) {
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

/* --- time ------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

/* Whether something is wrong with the map, or with the owners of slots. */
static bool in_hurry(const struct cluster *c)
{
    if (clock_boot_ms() - c->map_suspect_ms < CLUSTER_SUSPECT_MAP_MS ||
        c->member_count == 0) {
        return true;
    }
    for (size_t i = 0; i < c->member_count; i++) {
        if ((!c->members[i]->up && c->members[i]->slots != 0) ||
            c->members[i]->successor != NULL) {
            return true;
        }
    }
    return false;
}

static void arm_timer(struct cluster *c)
{
    const struct refused_op *first = fifo_first(&c->later);
    uint64_t now = clock_boot_ms();
    uint64_t at = c->asked_ms + (in_hurry(c) ? CLUSTER_HURRY_MS : CLUSTER_REFRESH_MS);

    if (first != NULL && first->due_ms < at) {
        at = first->due_ms;
    }
    uv_update_time(c->store.setup.io->loop);
    (void)uv_timer_start(&c->timer, on_timer, at > now ? at - now : 1, 0);
}

/* The map may be wrong: asks for it soon. */
static void cluster_suspect_map(struct cluster *c)
{
    c->map_suspect_ms = clock_boot_ms();
    arm_timer(c);
}

/* Sends the discovery to the next node of the map, or server of the configuration. */
static void send_elsewhere(struct cluster *c, struct discovery *discovery)
{
    const struct backend_config *config = &c->store.setup.config;
    size_t count = c->map.node_count + config->url_count;

    for (size_t i = 0; i < count; i++) {
        size_t at = c->next_server++ % count;

        if (at >= c->map.node_count) {
            const struct backend_url *url = &config->urls[at - c->map.node_count];

            discovery_go(discovery, url->host, url->port);
            return;
        }
        if (!c->map.nodes[at].is_failing) {
            discovery_go(discovery, c->map.nodes[at].host, c->map.nodes[at].port);
            return;
        }
    }
}

static void refresh_map(struct cluster *c)
{
    c->asked_ms = clock_boot_ms();
    cluster_retire(c);
    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        struct discovery *s = &c->discoveries[i];

        if (s->is_lost) {
            s->is_lost = false;
            send_elsewhere(c, s);
        } else {
            discovery_ask(s);
        }
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct cluster *c = container_of(timer, struct cluster, timer);
    uint64_t wait_ms = in_hurry(c) ? CLUSTER_HURRY_MS : CLUSTER_REFRESH_MS;
    const struct refused_op *first;
    struct refused_op op;

    while (!c->store.closed && (first = fifo_first(&c->later)) != NULL &&
           first->due_ms <= clock_boot_ms()) {
        (void)fifo_pop(&c->later, &op);
        store_tell(&c->store.setup.events,
                   &(struct store_event){ .kind = STORE_RESULT,
                                          .result = &(struct op_result){
                                              .id = op.id, .status = OP_LATE } });
    }
    if (c->store.closed) {
        return;
    }
    if (clock_boot_ms() >= c->asked_ms + wait_ms) {
        cluster_check_failover(c);
        refresh_map(c);
    }
    arm_timer(c);
}

/* --- from the members ------------------------------------------------------------ */

/* The more ops wait, the longer they wait, so that they do not ask all the time. */
static void tell_later(struct cluster *c, uint64_t op_id)
{
    uint64_t wait_ms = CLUSTER_LATER_MS + c->later.count / CLUSTER_LATER_EACH;
    struct refused_op *op;

    wait_ms = wait_ms > CLUSTER_LATER_MAX_MS ? CLUSTER_LATER_MAX_MS : wait_ms;
    op = fifo_push(&c->later, sizeof(*op));
    op->id = op_id;
    op->due_ms = clock_boot_ms() + wait_ms;
    cluster_suspect_map(c);
}

static void on_up(struct member *m, bool same_server)
{
    struct cluster *c = m->cluster;

    m->up = true;
    if (!same_server && m->was_up) {
        cluster_failed_over(c, m);
    }
    m->was_up = true;
    if (!c->up) {
        bool again = c->was_up;

        c->up = c->was_up = true;
        store_tell(&c->store.setup.events,
                   &(struct store_event){ .kind = STORE_UP, .same_server = again });
    }
}

static void on_down(struct member *m, const struct store_event *down)
{
    struct cluster *c = m->cluster;
    bool any = false;

    m->up = false;
    for (size_t i = 0; i < c->member_count; i++) {
        any = any || c->members[i]->up;
    }
    cluster_suspect_map(c);
    if (c->up && !any) {
        c->up = false;
        store_tell(&c->store.setup.events, down);
    }
}

static bool is_kept_by(void *ctx, unsigned group)
{
    const struct member *m = ctx;

    return m->cluster->owners[group % SLOT_COUNT] == m;
}

/* Any name of that member may have been changed. */
static void tell_touched(struct member *m)
{
    store_tell(
        &m->cluster->store.setup.events,
        &(struct store_event){ .kind = STORE_TOUCHED,
                               .touched = { .concerns = is_kept_by, .ctx = m } });
}

/* No name of that member is watched any more. */
static void on_watch_changed(struct member *m, uint64_t limit)
{
    struct cluster *c = m->cluster;
    uint64_t least = 0;

    m->watch_limit = limit;
    for (size_t i = 0; i < c->member_count; i++) {
        limit = c->members[i]->watch_limit;
        least = limit != 0 && (least == 0 || limit < least) ? limit : least;
    }
    store_tell(&c->store.setup.events,
               &(struct store_event){
                   .kind = STORE_WATCH_CHANGED,
                   .watch = { .limit = least, .concerns = is_kept_by, .ctx = m } });
}

static void on_node_event(void *ctx, const struct store_event *ev)
{
    struct member *m = ctx;
    struct cluster *c = m->cluster;

    switch (ev->kind) {
    case STORE_RESULT:
        if (ev->result->status == OP_LATE && ev->result->text.len != 0) {
            tell_later(c, ev->result->id);
            return;
        }
        break;
    case STORE_UP:
        on_up(m, ev->same_server);
        return;
    case STORE_DOWN:
        on_down(m, ev);
        return;
    case STORE_FAILED_OVER: /* the map tells */
        return;
    case STORE_UNSUBSCRIBED_ALL:
        /* The member's names are subscribed to again, here or elsewhere, and their
         * waiters ask once more. */
        m->listens = false;
        return;
    case STORE_MESSAGE:
        /* Every node hears what is published to plain channels. */
        if (c->owners[slot_of(ev->channel.name)] != m) {
            return;
        }
        break;
    case STORE_LISTENING:
        on_listening(m, ev);
        return;
    case STORE_TOUCHED:
        if (ev->touched.name.len == 0) {
            tell_touched(m);
            return;
        }
        break;
    case STORE_MOVED:
        cluster_suspect_map(c);
        return;
    case STORE_WATCH_CHANGED:
        on_watch_changed(m, ev->watch.limit);
        return;
    default:
        break;
    }
    store_tell(&c->store.setup.events, ev);
}

/* --- for the store --------------------------------------------------------------- */

static void cluster_init(struct store *store)
{
    struct cluster *c = cluster_of(store);

    c->seed = store->setup.seed;
    (void)uv_timer_init(store->setup.io->loop, &c->timer);
    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        discovery_init(&c->discoveries[i], c, i);
    }
}

static void cluster_start(struct store *store)
{
    struct cluster *c = cluster_of(store);

    refresh_map(c);
    arm_timer(c);
}

static void cluster_configure(struct store *store)
{
    struct cluster *c = cluster_of(store);

    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        struct discovery *s = &c->discoveries[i];

        /* login and TLS of later connections */
        backend_url_set_tls(&s->url, store->setup.config.urls[0].tls);
        (void)backend_url_set_login(&s->url, &store->setup.config.urls[0]);
        redis_conn_set_timeout(s->conn, limit_timeout(store->setup.options.timeout_ms));
    }
}

static void cluster_submit(struct store *store, const struct op *op)
{
    struct cluster *c = cluster_of(store);
    struct member *m = c->owners[op->group % SLOT_COUNT];

    if (m == NULL) {
        tell_later(c, op->id); /* no map yet */
    } else {
        cluster_listen(m, op);
        node_submit(m->node, op);
    }
}

/* A member is named by its first slot. */
static bool cluster_seek_part(const struct store *store, uint32_t *part)
{
    const struct cluster *c = cluster_of(store);

    for (uint32_t slot = *part; slot < SLOT_COUNT; slot++) {
        const struct member *m = c->owners[slot];
        uint32_t first = 0;

        if (m == NULL || (slot > 0 && c->owners[slot - 1] == m)) {
            continue;
        }
        while (c->owners[first] != m) {
            first++;
        }
        if (first == slot) {
            *part = slot;
            return true;
        }
    }
    return false;
}

static void cluster_subscribe(struct store *store, struct span name,
                              enum lock_class lock_class, bool wanted)
{
    struct member *m = cluster_of(store)->owners[slot_of(name)];

    if (m != NULL) {
        node_subscribe(m->node, name, lock_class, wanted);
    }
}

static void cluster_watch(struct store *store, struct span name)
{
    struct member *m = cluster_of(store)->owners[slot_of(name)];

    if (m != NULL) {
        node_watch(m->node, name);
    }
}

static void cluster_info(const struct store *store, struct store_info *ret)
{
    const struct cluster *c = cluster_of(store);
    bool grants = false;

    for (size_t i = store->node_count; i > 0; i--) {
        node_info(store->nodes[i - 1], ret);
        grants = grants || ret->why_not == NULL;
    }
    ret->why_not = grants ? NULL : ret->why_not;
    ret->in_flight += c->later.count;
    ret->up = c->up && !store->closed;
}

static void cluster_close(struct store *store)
{
    struct cluster *c = cluster_of(store);

    uv_close((uv_handle_t *)&c->timer, NULL);
    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        c->discoveries[i].closed = true;
        redis_conn_close(c->discoveries[i].conn);
    }
}

static void cluster_free(struct store *store)
{
    struct cluster *c = cluster_of(store);

    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        backend_url_fini(&c->discoveries[i].url);
    }
    for (size_t i = 0; i < c->member_count; i++) {
        free(c->members[i]);
    }
    cluster_retire(c);
    slot_map_fini(&c->map);
    fifo_fini(&c->later);
    free(c->members);
    free(c->gone);
}

const struct topology CLUSTER_TOPOLOGY = {
    .name = "cluster",
    .size = sizeof(struct cluster),
    .init = cluster_init,
    .start = cluster_start,
    .configure = cluster_configure,
    .submit = cluster_submit,
    .seek_part = cluster_seek_part,
    .subscribe = cluster_subscribe,
    .unlisten = cluster_unlisten,
    .watch = cluster_watch,
    .info = cluster_info,
    .close = cluster_close,
    .free = cluster_free,
};
