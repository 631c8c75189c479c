/* Several independent masters, of which a majority decides: a node for each, and a
 * coordinator (quorum_coordinator.h) between them and the engine. Waiters wake on a
 * release that is published at any node; a release is published at every node that had
 * the lock, and a majority is subscribed (quorum_subs.h). */
#include "backend/backend.h"
#include "backend/node.h"
#include "backend/quorum/quorum_coordinator.h"
#include "backend/quorum/quorum_subs.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

struct quorum;

struct member {
    struct quorum *quorum;
    struct node *node;
    unsigned index;
    bool up;
    bool failed_over; /* to a server that may lack the last grants, whatever its age */
    bool is_twin;     /* of a server that is up: it has no vote of its own */
};

struct quorum {
    struct store_events events;
    struct store_listener listener;
    struct quorum_coordinator *coordinator;
    struct quorum_subs *subs;
    uv_timer_t timer;
    uint64_t armed_at; /* 0: not */
    bool told_up;
    bool was_up;
    unsigned replaced; /* members that came back without their data, since it was up */
    unsigned count;
    struct member members[QUORUM_NODES_MAX];
};

static void look_at_clock(struct quorum *q)
{
    coordinator_time(q->coordinator, clock_boot_ms(), clock_wall_us());
}

/* --- from the coordinator --------------------------------------------------------- */

static void on_send(void *ctx, unsigned node, const struct op *op)
{
    struct quorum *q = ctx;

    node_submit(q->members[node].node, op);
}

static void on_done(void *ctx, const struct op_result *result)
{
    struct quorum *q = ctx;

    q->events.on_result(q->events.ctx, result);
}

/* --- from the nodes --------------------------------------------------------------- */

static void on_result(void *ctx, const struct op_result *result)
{
    struct member *m = ctx;

    if ((result->id & STORE_SCAN_ID) != 0) {
        m->quorum->events.on_result(m->quorum->events.ctx, result);
        return;
    }
    coordinator_result(m->quorum->coordinator, m->index, result);
}

/* The store is up while a majority is. */
static void tell_up(struct quorum *q)
{
    bool up = coordinator_is_up(q->coordinator);
    bool lost = (unsigned)__builtin_popcount(q->replaced) > q->count / 2;

    if (up == q->told_up) {
        return;
    }
    q->told_up = up;
    if (up) {
        bool same = q->was_up && !lost;

        q->was_up = true;
        q->replaced = 0;
        q->events.on_up(q->events.ctx, same);
    } else {
        log_warning("quorum", "no majority of the servers can be asked");
        q->replaced = 0;
        q->events.on_down(q->events.ctx);
    }
}

/* Two addresses may be one server, which would then be a majority of three alone. */
static bool is_twin(const struct member *m, const struct store_info *info)
{
    const struct quorum *q = m->quorum;

    for (unsigned i = 0; i < q->count; i++) {
        struct store_info other = { 0 };

        if (!q->members[i].up || i == m->index) {
            continue;
        }
        node_info(q->members[i].node, &other);
        if (info->run_id[0] != '\0' && strcmp(info->run_id, other.run_id) == 0) {
            log_error("quorum", "%s and %s are one server: it has one vote",
                      other.address, info->address);
            return true;
        }
    }
    return false;
}

static void on_failed_over(void *ctx, store_concerns_fn *concerns, void *arg)
{
    struct member *m = ctx;

    m->failed_over = true;
}

static void on_up(void *ctx, bool same_server)
{
    struct member *m = ctx;
    struct quorum *q = m->quorum;
    struct store_info info = { 0 };
    uint64_t abstains;

    node_info(m->node, &info);
    m->is_twin = is_twin(m, &info);
    if (m->is_twin) {
        return;
    }
    m->up = true;
    coordinator_node_up(q->coordinator, m->index, same_server,
                        m->failed_over ? 0 : info.running_ms);
    m->failed_over = false;
    if (!same_server) {
        q->replaced |= 1U << m->index;
    }
    abstains = coordinator_abstains(q->coordinator, m->index);
    if (abstains != 0) {
        log_notice("quorum",
                   "%s was restarted or replaced, and may have lost what it "
                   "granted: it has no vote for another %" PRIu64 " ms",
                   info.address, abstains);
    }
    tell_up(q);
}

static void on_down(void *ctx)
{
    struct member *m = ctx;

    m->up = false;
    coordinator_node_down(m->quorum->coordinator, m->index);
    tell_up(m->quorum);
}

static void on_clock_jumped(void *ctx)
{
    struct member *m = ctx;

    coordinator_node_lost(m->quorum->coordinator, m->index);
}

static void on_subscribed(void *ctx, struct span name, enum lock_class lock_class)
{
    struct member *m = ctx;
    struct quorum *q = m->quorum;

    if (quorum_subs_on(q->subs, m->index, name, lock_class)) {
        q->listener.on_subscribed(q->listener.ctx, name, lock_class);
    }
}

static void tell_subscribed(void *ctx, struct span name, enum lock_class lock_class)
{
    struct quorum *q = ctx;

    q->listener.on_subscribed(q->listener.ctx, name, lock_class);
}

static void on_unsubscribed_all(void *ctx)
{
    struct member *m = ctx;
    struct quorum *q = m->quorum;

    if (quorum_subs_off(q->subs, m->index)) {
        q->listener.on_unsubscribed_all(q->listener.ctx);
        quorum_subs_tell(q->subs, tell_subscribed, q);
    }
}

static void on_message(void *ctx, struct span name, enum lock_class lock_class,
                       struct span payload)
{
    struct member *m = ctx;

    m->quorum->listener.on_message(m->quorum->listener.ctx, name, lock_class, payload);
}

/* --- time ------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
    struct quorum *q = timer->data;

    q->armed_at = 0; /* the turn has begun with it */
}

static void arm_timer(struct quorum *q)
{
    uint64_t at = coordinator_next_deadline(q->coordinator);
    uint64_t now;

    if (at == UINT64_MAX || at == q->armed_at) {
        return; /* one that comes too early does no harm */
    }
    now = clock_boot_ms();
    q->armed_at = at;
    uv_update_time(q->timer.loop);
    (void)uv_timer_start(&q->timer, on_timer, at > now ? at - now : 0, 0);
}

/* --- for the store ---------------------------------------------------------------- */

static void make_member(struct quorum *q, unsigned i, const struct store_setup *setup)
{
    struct member *m = &q->members[i];
    struct node_setup node = {
        .store = setup,
        .url = &setup->config.urls[i],
        .seed = setup->seed + i * UINT64_C(0x9e3779b97f4a7c15),
        .events = { .ctx = m,
                    .on_result = on_result,
                    .on_failed_over = on_failed_over,
                    .on_up = on_up,
                    .on_down = on_down },
        .listener = { .ctx = m,
                      .on_clock_jumped = on_clock_jumped,
                      .on_subscribed = on_subscribed,
                      .on_unsubscribed_all = on_unsubscribed_all,
                      .on_message = on_message },
    };

    m->quorum = q;
    m->index = i;
    m->node = node_new(&node);
}

static void *quorum_make(const struct store_setup *setup)
{
    struct quorum *q = xcalloc(1, sizeof(*q));
    struct coordinator_setup coordinator = {
        .node_count = (unsigned)setup->config.url_count,
        .timeout_ms = setup->options.timeout_ms,
        .quarantine_ms = setup->options.quarantine_ms,
        .seed = setup->seed,
        .now_ms = clock_boot_ms(),
        .events = { .ctx = q, .send = on_send, .done = on_done },
    };

    q->events = setup->events;
    q->listener = setup->listener;
    q->count = coordinator.node_count;
    q->coordinator = coordinator_new(&coordinator);
    q->subs = quorum_subs_new(q->count);
    (void)uv_timer_init(setup->io->loop, &q->timer);
    q->timer.data = q;
    for (unsigned i = 0; i < q->count; i++) {
        make_member(q, i, setup);
    }
    return q;
}

static void quorum_start(void *backend)
{
    struct quorum *q = backend;

    for (unsigned i = 0; i < q->count; i++) {
        node_start(q->members[i].node);
    }
}

static void quorum_set_tls(void *backend, struct tls *tls)
{
    struct quorum *q = backend;

    for (unsigned i = 0; i < q->count; i++) {
        node_set_tls(q->members[i].node, tls);
    }
}

static void quorum_set_login(void *backend, const struct backend_config *config)
{
    struct quorum *q = backend;

    for (unsigned i = 0; i < q->count; i++) {
        node_set_login(q->members[i].node, &config->urls[i]);
    }
}

static void quorum_configure(void *backend, const struct store_options *options)
{
    struct quorum *q = backend;

    coordinator_configure(q->coordinator, options->timeout_ms, options->quarantine_ms);
    for (unsigned i = 0; i < q->count; i++) {
        node_configure(q->members[i].node, options);
    }
}

static void quorum_submit(void *backend, const struct op *op)
{
    struct quorum *q = backend;

    look_at_clock(q);
    if (op->kind == OP_SCAN) {
        node_submit(q->members[op->group % q->count].node, op);
    } else {
        coordinator_submit(q->coordinator, op);
    }
}

/* A name that is held is held on a majority, so that one that is down hides none. */
static bool quorum_seek_part(const void *backend, uint32_t *part)
{
    const struct quorum *q = backend;

    while (*part < q->count && !q->members[*part].up) {
        ++*part;
    }
    return *part < q->count;
}

static void quorum_subscribe(void *backend, struct span name,
                             enum lock_class lock_class)
{
    struct quorum *q = backend;

    quorum_subs_add(q->subs, name, lock_class);
    for (unsigned i = 0; i < q->count; i++) {
        node_subscribe(q->members[i].node, name, lock_class);
    }
}

static void quorum_unsubscribe(void *backend, struct span name,
                               enum lock_class lock_class)
{
    struct quorum *q = backend;

    quorum_subs_remove(q->subs, name, lock_class);
    for (unsigned i = 0; i < q->count; i++) {
        node_unsubscribe(q->members[i].node, name, lock_class);
    }
}

/* The deadlines that have passed come first. */
static void quorum_begin_turn(void *backend)
{
    struct quorum *q = backend;

    for (unsigned i = 0; i < q->count; i++) {
        node_begin_turn(q->members[i].node);
    }
    coordinator_tick(q->coordinator, clock_boot_ms(), clock_wall_us());
}

static void quorum_end_turn(void *backend)
{
    struct quorum *q = backend;

    for (unsigned i = 0; i < q->count; i++) {
        node_end_turn(q->members[i].node);
    }
    arm_timer(q);
}

/* Sums the counters; the round trip is one that most nodes need at most. */
static void quorum_info(const void *backend, struct store_info *ret)
{
    const struct quorum *q = backend;
    struct coordinator_stats stats;
    unsigned refusing = 0;
    bool any = false;

    for (unsigned i = 0; i < q->count; i++) {
        struct store_info one = { 0 };

        node_info(q->members[i].node, &one);
        refusing += one.why_not != NULL;
        if (2 * refusing > q->count) { /* the others are no majority */
            ret->why_not = one.why_not;
        }
        ret->calls += one.calls;
        ret->unknown += one.unknown;
        ret->late += one.late;
        ret->errors += one.errors;
        ret->reconnects += one.reconnects;
        ret->in_flight += one.in_flight;
        if (one.up && !any) {
            any = true;
            memcpy(ret->product, one.product, sizeof(ret->product));
            memcpy(ret->version, one.version, sizeof(ret->version));
            memcpy(ret->run_id, one.run_id, sizeof(ret->run_id));
            memcpy(ret->address, one.address, sizeof(ret->address));
            ret->clock_offset_us = one.clock_offset_us;
        }
        if (one.up && one.round_trip_us > ret->round_trip_us) {
            ret->round_trip_us = one.round_trip_us;
        }
    }
    coordinator_stats(q->coordinator, &stats);
    ret->up = q->told_up;
    ret->quorum = (struct store_quorum_info){ .servers = q->count,
                                              .splits = stats.splits,
                                              .undone = stats.undone,
                                              .healed = stats.healed,
                                              .deferred_ops = stats.deferred_ops,
                                              .forgotten = stats.forgotten };
}

static void quorum_each_node(const void *backend, store_node_fn *fn, void *ctx)
{
    const struct quorum *q = backend;

    for (unsigned i = 0; i < q->count; i++) {
        bool abstains =
            q->members[i].is_twin || coordinator_abstains(q->coordinator, i) != 0;

        node_tell(q->members[i].node, abstains ? "abstains" : "master", fn, ctx);
    }
}

static void quorum_close(void *backend)
{
    struct quorum *q = backend;

    for (unsigned i = 0; i < q->count; i++) {
        node_close(q->members[i].node);
    }
    uv_close((uv_handle_t *)&q->timer, NULL);
}

static void quorum_free(void *backend)
{
    struct quorum *q = backend;

    for (unsigned i = 0; i < q->count; i++) {
        node_free(q->members[i].node);
    }
    coordinator_free(q->coordinator);
    quorum_subs_free(q->subs);
    free(q);
}

const struct store_backend QUORUM_BACKEND = {
    .name = "quorum",
    .make = quorum_make,
    .start = quorum_start,
    .set_tls = quorum_set_tls,
    .set_login = quorum_set_login,
    .configure = quorum_configure,
    .submit = quorum_submit,
    .seek_part = quorum_seek_part,
    .subscribe = quorum_subscribe,
    .unsubscribe = quorum_unsubscribe,
    .begin_turn = quorum_begin_turn,
    .end_turn = quorum_end_turn,
    .info = quorum_info,
    .each_node = quorum_each_node,
    .close = quorum_close,
    .free = quorum_free,
};
