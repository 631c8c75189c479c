/* Several independent masters, of which a majority decides: a node for each, and a
 * coordinator (quorum_coordinator.h) between them and the engine. Waiters wake on a
 * release that is published at any node; a release is published at every node that had
 * the lock, and a majority is subscribed (quorum_coordinator.h). */
#include "backend/backend.h"
#include "backend/quorum/quorum_coordinator.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

struct quorum;

struct member {
    struct quorum *quorum;
    unsigned index;
    bool up;
    bool failed_over; /* to a server that may lack the last grants, whatever its age */
    bool is_twin;     /* of a server that is up: it has no vote of its own */
};

struct quorum {
    struct store store; /* its nodes are those of the members */
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

/* --- from the coordinator --------------------------------------------------------- */

static void on_send(void *ctx, unsigned node, const struct op *op)
{
    struct quorum *q = ctx;

    node_submit(q->store.nodes[node], op);
}

static void on_done(void *ctx, const struct op_result *result)
{
    struct quorum *q = ctx;

    store_tell(&q->store.setup.events,
               &(struct store_event){ .kind = STORE_RESULT, .result = result });
}

/* --- from the nodes --------------------------------------------------------------- */

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
        store_tell(&q->store.setup.events,
                   &(struct store_event){ .kind = STORE_UP, .same_server = same });
    } else {
        log_warning(
            "quorum",
            "no majority of the servers can be asked: nothing is granted, and holds "
            "run out; start the servers, or mend the way to them");
        q->replaced = 0;
        store_tell(&q->store.setup.events, &(struct store_event){ .kind = STORE_DOWN });
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
        node_info(q->store.nodes[i], &other);
        if (info->run_id[0] != '\0' && strcmp(info->run_id, other.run_id) == 0) {
            log_error("quorum", "%s and %s are one server: it has one vote",
                      other.address, info->address);
            return true;
        }
    }
    return false;
}

static void on_up(struct member *m, bool same_server)
{
    struct quorum *q = m->quorum;
    struct store_info info = { 0 };
    uint64_t abstains;

    node_info(q->store.nodes[m->index], &info);
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

static void tell_subscribed(void *ctx, struct span name, enum lock_class lock_class)
{
    const struct quorum *q = ctx;

    store_tell(&q->store.setup.events,
               &(struct store_event){ .kind = STORE_SUBSCRIBED,
                                      .channel = { name, lock_class, SPAN_NONE } });
}

static void on_node_event(void *ctx, const struct store_event *ev)
{
    struct member *m = ctx;
    struct quorum *q = m->quorum;

    switch (ev->kind) {
    case STORE_RESULT:
        if ((ev->result->id & STORE_SCAN_ID) == 0) {
            coordinator_result(q->coordinator, m->index, ev->result);
            return;
        }
        break;
    case STORE_FAILED_OVER:
        m->failed_over = true;
        return;
    case STORE_UP:
        on_up(m, ev->same_server);
        return;
    case STORE_DOWN:
        m->up = false;
        coordinator_node_down(q->coordinator, m->index);
        tell_up(q);
        return;
    case STORE_CLOCK_JUMPED:
        coordinator_node_lost(q->coordinator, m->index);
        return;
    case STORE_CLOCK_BEHIND: /* does not matter here */
        return;
    case STORE_SUBSCRIBED:
        if (!quorum_subs_on(q->subs, m->index, ev->channel.name,
                            ev->channel.lock_class)) {
            return;
        }
        break;
    case STORE_UNSUBSCRIBED_ALL:
        if (quorum_subs_off(q->subs, m->index)) {
            store_tell(&q->store.setup.events, ev);
            quorum_subs_tell(q->subs, tell_subscribed, q);
        }
        return;
    default:
        break;
    }
    store_tell(&q->store.setup.events, ev);
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

static struct quorum *quorum_of(const struct store *store)
{
    return container_of(store, struct quorum, store);
}

static void make_member(struct quorum *q, unsigned i)
{
    const struct store_setup *setup = &q->store.setup;
    struct member *m = &q->members[i];
    struct node_setup node = {
        .store = setup,
        .url = &setup->config.urls[i],
        .seed = setup->seed + i * UINT64_C(0x9e3779b97f4a7c15),
        .events = { on_node_event, m },
    };

    m->quorum = q;
    m->index = i;
    (void)store_add_node(&q->store, &node);
}

static void quorum_init(struct store *store)
{
    struct quorum *q = quorum_of(store);
    const struct store_setup *setup = &store->setup;
    struct coordinator_setup coordinator = {
        .node_count = (unsigned)setup->config.url_count,
        .timeout_ms = setup->options.timeout_ms,
        .quarantine_ms = setup->options.quarantine_ms,
        .seed = setup->seed,
        .now_ms = clock_boot_ms(),
        .events = { .ctx = q, .send = on_send, .done = on_done },
    };

    q->count = coordinator.node_count;
    q->coordinator = coordinator_new(&coordinator);
    q->subs = quorum_subs_new(q->count);
    (void)uv_timer_init(setup->io->loop, &q->timer);
    q->timer.data = q;
    for (unsigned i = 0; i < q->count; i++) {
        make_member(q, i);
    }
}

static void quorum_configure(struct store *store)
{
    const struct store_options *options = &store->setup.options;

    coordinator_configure(quorum_of(store)->coordinator, options->timeout_ms,
                          options->quarantine_ms);
}

static void quorum_submit(struct store *store, const struct op *op)
{
    struct quorum *q = quorum_of(store);

    coordinator_time(q->coordinator, clock_boot_ms(), clock_wall_us());
    if (op->kind == OP_SCAN) {
        node_submit(store->nodes[op->group % q->count], op);
    } else {
        coordinator_submit(q->coordinator, op);
    }
}

/* A name that is held is held on a majority, so that one that is down hides none. */
static bool quorum_seek_part(const struct store *store, uint32_t *part)
{
    const struct quorum *q = quorum_of(store);

    while (*part < q->count && !q->members[*part].up) {
        ++*part;
    }
    return *part < q->count;
}

static void quorum_subscribe(struct store *store, struct span name,
                             enum lock_class lock_class, bool wanted)
{
    struct quorum *q = quorum_of(store);

    if (wanted) {
        quorum_subs_add(q->subs, name, lock_class);
    } else {
        quorum_subs_remove(q->subs, name, lock_class);
    }
    for (unsigned i = 0; i < q->count; i++) {
        node_subscribe(store->nodes[i], name, lock_class, wanted);
    }
}

/* The deadlines that have passed come first. */
static void quorum_begin_turn(struct store *store)
{
    coordinator_tick(quorum_of(store)->coordinator, clock_boot_ms(), clock_wall_us());
}

static void quorum_end_turn(struct store *store)
{
    arm_timer(quorum_of(store));
}

/* Sums the counters; the round trip is one that most nodes need at most. */
static void quorum_info(const struct store *store, struct store_info *ret)
{
    const struct quorum *q = quorum_of(store);
    struct coordinator_stats stats;
    unsigned refusing = 0;
    bool any = false;

    for (unsigned i = 0; i < q->count; i++) {
        struct store_info one = { 0 };

        node_info(q->store.nodes[i], &one);
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
        ret->evicting += one.evicting;
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

static void quorum_each_node(const struct store *store, store_node_fn *fn, void *ctx)
{
    const struct quorum *q = quorum_of(store);

    for (unsigned i = 0; i < q->count; i++) {
        bool abstains =
            q->members[i].is_twin || coordinator_abstains(q->coordinator, i) != 0;

        node_tell(q->store.nodes[i], abstains ? "abstains" : "master", fn, ctx);
    }
}

static void quorum_close(struct store *store)
{
    uv_close((uv_handle_t *)&quorum_of(store)->timer, NULL);
}

static void quorum_free(struct store *store)
{
    coordinator_free(quorum_of(store)->coordinator);
    quorum_subs_free(quorum_of(store)->subs);
}

const struct topology QUORUM_TOPOLOGY = {
    .name = "quorum",
    .size = sizeof(struct quorum),
    .init = quorum_init,
    .configure = quorum_configure,
    .submit = quorum_submit,
    .seek_part = quorum_seek_part,
    .subscribe = quorum_subscribe,
    .begin_turn = quorum_begin_turn,
    .end_turn = quorum_end_turn,
    .info = quorum_info,
    .each_node = quorum_each_node,
    .close = quorum_close,
    .free = quorum_free,
};
