/* A Redis Cluster: one node for each master, found and kept by the map (cluster_map.c)
 * that discovery brings.
 *
 * The store is up as soon as the map is known and a master can be asked. The ops of
 * other masters wait for their link, or for the map to name another owner. An op that a
 * node refuses, as it does not have that slot (now), did nothing: OP_LATE, reported a
 * bit later, when the map may be better. */
#include "backend/cluster/cluster_priv.h"

#include "util/alloc.h"
#include "util/clock.h"

#include <stdlib.h>

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
    const struct redis_call *first = call_fifo_first(&c->later);
    uint64_t now = clock_boot_ms();
    uint64_t at = c->asked_ms + (in_hurry(c) ? CLUSTER_HURRY_MS : CLUSTER_REFRESH_MS);

    if (first != NULL && first->deadline_us / 1000 < at) {
        at = first->deadline_us / 1000;
    }
    uv_update_time(c->setup.io->loop);
    (void)uv_timer_start(&c->timer, on_timer, at > now ? at - now : 1, 0);
}

void cluster_suspect_map(struct cluster *c)
{
    c->map_suspect_ms = clock_boot_ms();
    arm_timer(c);
}

/* Sends the discovery to the next node of the map, or server of the configuration. */
static void send_elsewhere(struct cluster *c, struct cluster_discovery *discovery)
{
    const struct backend_config *config = &c->setup.config;
    size_t count = c->map.node_count + config->url_count;

    for (size_t i = 0; i < count; i++) {
        size_t at = c->next_server++ % count;

        if (at >= c->map.node_count) {
            const struct backend_url *url = &config->urls[at - c->map.node_count];

            cluster_discovery_go(discovery, url->host, url->port);
            return;
        }
        if (!c->map.nodes[at].is_failing) {
            cluster_discovery_go(discovery, c->map.nodes[at].host,
                                 c->map.nodes[at].port);
            return;
        }
    }
}

static void refresh_map(struct cluster *c)
{
    c->asked_ms = clock_boot_ms();
    cluster_retire(c);
    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        if (c->lost[i]) {
            c->lost[i] = false;
            send_elsewhere(c, c->discoveries[i]);
        } else {
            cluster_discovery_ask(c->discoveries[i]);
        }
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct cluster *c = container_of(timer, struct cluster, timer);
    uint64_t wait_ms = in_hurry(c) ? CLUSTER_HURRY_MS : CLUSTER_REFRESH_MS;
    const struct redis_call *first;
    struct redis_call call;

    c->events.on_event(c->events.ctx);
    while (!c->closed && (first = call_fifo_first(&c->later)) != NULL &&
           first->deadline_us <= clock_boot_us()) {
        (void)call_fifo_pop(&c->later, &call);
        c->events.on_result(c->events.ctx,
                            &(struct op_result){ .id = call.op_id, .status = OP_LATE });
    }
    if (c->closed) {
        return;
    }
    if (clock_boot_ms() >= c->asked_ms + wait_ms) {
        cluster_check_failover(c);
        refresh_map(c);
    }
    arm_timer(c);
}

/* --- from the discoveries -------------------------------------------------------- */

static void discovery_on_wake(void *ctx)
{
    struct cluster *c = ctx;

    c->events.on_event(c->events.ctx);
}

static void discovery_on_failed(void *ctx, struct cluster_discovery *discovery)
{
    struct cluster *c = ctx;

    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        c->lost[i] = c->lost[i] || c->discoveries[i] == discovery;
    }
    cluster_suspect_map(c);
}

static const struct cluster_discovery_events DISCOVERY_EVENTS = {
    .on_wake = discovery_on_wake,
    .on_view = cluster_on_view,
    .on_failed = discovery_on_failed,
};

/* --- from the members ------------------------------------------------------------ */

static void on_event(void *ctx)
{
    struct cluster *c = ((struct member *)ctx)->cluster;

    c->events.on_event(c->events.ctx);
}

/* The more ops wait, the longer they wait, so that they do not ask all the time. */
static void tell_later(struct cluster *c, uint64_t op_id)
{
    uint64_t wait_ms = CLUSTER_LATER_MS + c->later.count / CLUSTER_LATER_EACH;
    uint64_t at_us;
    struct redis_call *call;

    wait_ms = wait_ms > CLUSTER_LATER_MAX_MS ? CLUSTER_LATER_MAX_MS : wait_ms;
    at_us = clock_boot_us() + wait_ms * 1000;
    call = call_fifo_push(&c->later);
    call->op_id = op_id;
    call->deadline_us = at_us;
    cluster_suspect_map(c);
}

static void on_result(void *ctx, const struct op_result *result)
{
    struct cluster *c = ((struct member *)ctx)->cluster;

    if (result->status == OP_LATE && result->text.len != 0) {
        tell_later(c, result->id);
    } else {
        c->events.on_result(c->events.ctx, result);
    }
}

static void on_up(void *ctx, bool same_server)
{
    struct member *m = ctx;
    struct cluster *c = m->cluster;

    m->up = true;
    if (!same_server && m->was_up) {
        cluster_failed_over(c, m);
    }
    m->was_up = true;
    if (!c->up) {
        bool again = c->was_up;

        c->up = c->was_up = true;
        c->events.on_up(c->events.ctx, again);
    }
}

static void on_down(void *ctx)
{
    struct member *m = ctx;
    struct cluster *c = m->cluster;
    bool any = false;

    m->up = false;
    for (size_t i = 0; i < c->member_count; i++) {
        any = any || c->members[i]->up;
    }
    cluster_suspect_map(c);
    if (c->up && !any) {
        c->up = false;
        c->events.on_down(c->events.ctx);
    }
}

static void on_clock_jumped(void *ctx)
{
    struct cluster *c = ((struct member *)ctx)->cluster;

    c->listener.on_clock_jumped(c->listener.ctx);
}

static void on_clock_behind(void *ctx, uint64_t us)
{
    struct cluster *c = ((struct member *)ctx)->cluster;

    if (c->listener.on_clock_behind != NULL) {
        c->listener.on_clock_behind(c->listener.ctx, us);
    }
}

static void on_subscribed(void *ctx, struct span name, enum lock_class lock_class)
{
    struct cluster *c = ((struct member *)ctx)->cluster;

    c->listener.on_subscribed(c->listener.ctx, name, lock_class);
}

/* The member's names are subscribed to again, here or elsewhere, and their waiters ask
 * once more. */
static void on_unsubscribed_all(void *ctx)
{
    ((struct member *)ctx)->listens = false;
}

/* Every node hears what is published to plain channels. */
static void on_message(void *ctx, struct span name, enum lock_class lock_class,
                       struct span payload)
{
    struct member *m = ctx;
    struct cluster *c = m->cluster;

    if (c->owners[slot_of(name)] == m) {
        c->listener.on_message(c->listener.ctx, name, lock_class, payload);
    }
}

void cluster_on_moved(void *member)
{
    cluster_suspect_map(((struct member *)member)->cluster);
}

const struct store_events CLUSTER_MEMBER_EVENTS = {
    .on_event = on_event,
    .on_result = on_result,
    .on_up = on_up,
    .on_down = on_down,
};

const struct store_listener CLUSTER_MEMBER_LISTENER = {
    .on_clock_jumped = on_clock_jumped,
    .on_clock_behind = on_clock_behind,
    .on_subscribed = on_subscribed,
    .on_unsubscribed_all = on_unsubscribed_all,
    .on_message = on_message,
    .on_listening = cluster_on_listening,
    .on_announced = cluster_on_announced,
};

/* --- for the store --------------------------------------------------------------- */

static void *cluster_make(const struct store_setup *setup)
{
    struct cluster *c = xcalloc(1, sizeof(*c));

    c->setup = *setup;
    backend_config_copy(&c->setup.config, &setup->config);
    c->events = setup->events;
    c->listener = setup->listener;
    c->seed = setup->seed;
    (void)uv_timer_init(setup->io->loop, &c->timer);
    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        struct cluster_discovery_setup discovery = {
            .io = setup->io,
            .url = &setup->config.urls[i % setup->config.url_count],
            .is_quiet = i != 0,
            .timeout_ms = setup->options.timeout_ms,
            .seed = setup->seed + i,
            .events = &DISCOVERY_EVENTS,
            .ctx = c,
        };

        c->discoveries[i] = cluster_discovery_new(&discovery);
        c->lost[i] = true;
    }
    return c;
}

static void cluster_start(void *backend)
{
    struct cluster *c = backend;

    refresh_map(c);
    arm_timer(c);
}

static void cluster_set_tls(void *backend, struct tls *tls)
{
    struct cluster *c = backend;

    backend_config_set_tls(&c->setup.config, tls);
    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        cluster_discovery_set_tls(c->discoveries[i], tls);
    }
    for (size_t i = 0; i < c->member_count; i++) {
        node_set_tls(c->members[i]->node, tls);
    }
}

static void cluster_set_login(void *backend, const struct backend_config *config)
{
    struct cluster *c = backend;

    backend_config_set_login(&c->setup.config, config);
    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        cluster_discovery_set_login(c->discoveries[i], &config->urls[0]);
    }
    for (size_t i = 0; i < c->member_count; i++) {
        node_set_login(c->members[i]->node, &config->urls[0]);
    }
}

static void cluster_configure(void *backend, const struct store_options *options)
{
    struct cluster *c = backend;

    c->setup.options = *options;
    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        cluster_discovery_set_timeout(c->discoveries[i], options->timeout_ms);
    }
    for (size_t i = 0; i < c->member_count; i++) {
        node_configure(c->members[i]->node, options);
    }
}

static void cluster_submit(void *backend, const struct op *op)
{
    struct cluster *c = backend;
    struct member *m = c->owners[op->group % SLOT_COUNT];

    if (m == NULL) {
        tell_later(c, op->id); /* no map yet */
    } else {
        cluster_listen(m, op);
        node_submit(m->node, op);
    }
}

/* A member is named by its first slot. */
static bool cluster_seek_part(const void *backend, uint32_t *part)
{
    const struct cluster *c = backend;

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

static void cluster_subscribe(void *backend, struct span name,
                              enum lock_class lock_class)
{
    struct cluster *c = backend;
    struct member *m = c->owners[slot_of(name)];

    if (m != NULL) {
        node_subscribe(m->node, name, lock_class);
    }
}

static void cluster_unsubscribe(void *backend, struct span name,
                                enum lock_class lock_class)
{
    struct cluster *c = backend;
    struct member *m = c->owners[slot_of(name)];

    if (m != NULL) {
        node_unsubscribe(m->node, name, lock_class);
    }
}

static void cluster_end_turn(void *backend)
{
    struct cluster *c = backend;

    for (size_t i = 0; i < c->member_count; i++) {
        node_end_turn(c->members[i]->node);
    }
}

static void cluster_info(const void *backend, struct store_info *ret)
{
    const struct cluster *c = backend;

    bool grants = false;

    for (size_t i = c->member_count; i > 0; i--) {
        node_info(c->members[i - 1]->node, ret);
        grants = grants || ret->why_not == NULL;
    }
    ret->why_not = grants ? NULL : ret->why_not;
    ret->in_flight += c->later.count;
    ret->up = c->up && !c->closed;
}

static void cluster_each_node(const void *backend, store_node_fn *fn, void *ctx)
{
    const struct cluster *c = backend;

    for (size_t i = 0; i < c->member_count; i++) {
        node_tell(c->members[i]->node, "master", fn, ctx);
    }
}

static void cluster_close(void *backend)
{
    struct cluster *c = backend;

    c->closed = true;
    uv_close((uv_handle_t *)&c->timer, NULL);
    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        cluster_discovery_close(c->discoveries[i]);
    }
    for (size_t i = 0; i < c->member_count; i++) {
        node_close(c->members[i]->node);
    }
}

static void cluster_free(void *backend)
{
    struct cluster *c = backend;

    for (size_t i = 0; i < CLUSTER_DISCOVERIES; i++) {
        cluster_discovery_free(c->discoveries[i]);
    }
    for (size_t i = 0; i < c->member_count; i++) {
        node_free(c->members[i]->node);
        free(c->members[i]);
    }
    cluster_retire(c);
    slot_map_fini(&c->map);
    call_fifo_fini(&c->later);
    backend_config_fini(&c->setup.config);
    free(c->members);
    free(c->gone);
    free(c);
}

const struct store_backend CLUSTER_BACKEND = {
    .name = "cluster",
    .make = cluster_make,
    .start = cluster_start,
    .set_tls = cluster_set_tls,
    .set_login = cluster_set_login,
    .configure = cluster_configure,
    .submit = cluster_submit,
    .seek_part = cluster_seek_part,
    .subscribe = cluster_subscribe,
    .unsubscribe = cluster_unsubscribe,
    .unlisten = cluster_unlisten,
    .announce = cluster_announce,
    .end_turn = cluster_end_turn,
    .info = cluster_info,
    .each_node = cluster_each_node,
    .close = cluster_close,
    .free = cluster_free,
};
