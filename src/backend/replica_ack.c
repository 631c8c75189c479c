#include "backend/replica_ack.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/fifo.h"
#include "util/hash.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdlib.h>

struct ordered_name {
    struct table_node in_names;
    struct list tickets; /* in the order in which their ops came */
    size_t held;
    size_t len;
    char text[];
};

void name_order_init(struct name_order *o)
{
    *o = (struct name_order){ 0 };
    list_init(&o->ready[0]);
    list_init(&o->ready[1]);
    list_init(&o->fresh);
}

void name_order_fini(struct name_order *o)
{
    struct ordered_op *op;

    TABLE_EACH(op, &o->ops, in_ops) {
        name_order_remove(o, op);
    }
    table_fini(&o->ops);
    table_fini(&o->names);
}

/* --- names ------------------------------------------------------------------------ */

static struct ordered_name *name_find(const struct name_order *o, struct span text,
                                      uint64_t key)
{
    struct table_node *n = table_find(&o->names, key);

    for (; n != NULL; n = table_next(n)) {
        struct ordered_name *name = container_of(n, struct ordered_name, in_names);

        if (span_eq(span_of(name->text, name->len), text)) {
            return name;
        }
    }
    return NULL;
}

static struct ordered_name *name_get(struct name_order *o, struct span text)
{
    uint64_t key = hash_bytes(text.ptr, text.len);
    struct ordered_name *name = name_find(o, text, key);

    if (name == NULL) {
        name = xcalloc(1, sizeof(*name) + text.len);
        name->in_names.key = key;
        memcpy(name->text, text.ptr, text.len);
        name->len = text.len;
        list_init(&name->tickets);
        table_add(&o->names, &name->in_names);
    }
    return name;
}

static struct ticket *next_of(const struct ticket *t)
{
    struct list *next = t->in_name.next;

    return next == &t->name->tickets ? NULL
                                     : container_of(next, struct ticket, in_name);
}

static bool is_clear(const struct ticket *t)
{
    const struct list *prev = t->in_name.prev;
    const struct ticket *before;

    if (prev == &t->name->tickets) {
        return true;
    }
    before = container_of(prev, const struct ticket, in_name);
    return before->op->way == t->op->way && before->op->may_go;
}

/* --- ops -------------------------------------------------------------------------- */

static void look_at(struct name_order *o, struct ticket *t)
{
    if (t == NULL || t->clear || !is_clear(t)) {
        return;
    }
    t->clear = true;
    if (--t->op->unclear == 0) {
        t->op->may_go = true;
        list_append(&o->fresh, &t->op->in_ready);
    }
}

/* An op that may leave lets the ops behind it leave that take the same way. */
static void spread_buckets(struct name_order *o)
{
    struct list *it;

    while ((it = list_first(&o->fresh)) != NULL) {
        struct ordered_op *op = container_of(it, struct ordered_op, in_ready);

        list_del(it);
        list_append(&o->ready[op->way], it);
        for (size_t i = 0; i < op->ticket_count; i++) {
            look_at(o, next_of(&op->tickets[i]));
        }
    }
}

static size_t count_names(const struct op *op)
{
    size_t count = op_item_count(op);

    return count > 0 ? count : 1;
}

/* A name may be there more than once: holds of many readers. */
static void stand_in_line(struct ordered_op *op, struct ordered_name *name)
{
    struct list *last = name->tickets.prev;
    struct ticket *t = &op->tickets[op->ticket_count];

    if (last != &name->tickets &&
        container_of(last, struct ticket, in_name)->op == op) {
        return;
    }
    op->ticket_count++;
    t->op = op;
    t->name = name;
    list_append(&name->tickets, &t->in_name);
}

void name_order_add(struct name_order *o, const struct op *op, int way)
{
    size_t count = count_names(op);
    struct ordered_op *added =
        xcalloc(1, sizeof(*added) + count * sizeof(added->tickets[0]));

    added->op = op_clone(op);
    added->way = way;
    list_init(&added->in_ready);
    added->in_ops.key = op->id;
    table_add(&o->ops, &added->in_ops);
    o->count[way]++;
    for (size_t i = 0; i < count; i++) {
        stand_in_line(added, name_get(o, op_name_at(op, i)));
    }
    added->unclear = added->ticket_count;
    for (size_t i = 0; i < added->ticket_count; i++) {
        look_at(o, &added->tickets[i]);
    }
    spread_buckets(o);
}

struct ordered_op *name_order_find(const struct name_order *o, uint64_t op_id)
{
    struct table_node *n = table_find(&o->ops, op_id);

    return n == NULL ? NULL : container_of(n, struct ordered_op, in_ops);
}

void name_order_leave(struct name_order *o, struct ordered_op *op)
{
    for (size_t i = 0; i < op->ticket_count; i++) {
        struct ticket *t = &op->tickets[i];
        struct ordered_name *name = t->name;
        struct ticket *next = next_of(t);

        name->held -= op->held;
        list_del(&t->in_name);
        look_at(o, next);
        if (list_empty(&name->tickets)) {
            table_remove(&o->names, &name->in_names);
            free(name);
        }
    }
    op->ticket_count = 0;
    op->held = false;
    spread_buckets(o);
}

void name_order_remove(struct name_order *o, struct ordered_op *op)
{
    name_order_leave(o, op);
    list_del(&op->in_ready);
    table_remove(&o->ops, &op->in_ops);
    o->count[op->way]--;
    free(op->op);
    free(op);
}

void name_order_hold(struct ordered_op *op)
{
    op->held = true;
    for (size_t i = 0; i < op->ticket_count; i++) {
        op->tickets[i].name->held++;
    }
}

bool name_order_is_behind_held(const struct ordered_op *op)
{
    for (size_t i = 0; i < op->ticket_count; i++) {
        if (op->tickets[i].name->held > 0) {
            return true;
        }
    }
    return false;
}

enum { FIRST, SECOND };

enum { TELL_EVERY_MS = 60000 };

/* Of the shortage of replicas that is logged; at most once a minute. */
struct replica_warning {
    bool lasts;
    bool told; /* logged, and its end not yet */
    uint64_t told_ms;
};

/* An answer that waits for the replicas. */
struct held {
    struct list in_held;
    struct redis_call call;
    redisReply *reply;
    bool vouches;
};

struct replica_ack {
    struct redis_link *first, *second;
    const char *instance;
    const struct replica_ack_events *events;
    void *ctx;
    unsigned replicas;
    uint64_t wait_ms;
    struct name_order order;
    size_t strangers; /* on the first link from before, in no order */
    struct list held;
    struct fifo lost; /* calls whose answers were held when the link went */
    bool waiting;     /* for `asked` replicas */
    unsigned asked;
    bool closed;
    struct replica_warning replica_warning;
    int64_t told; /* how many replicas the last WAIT found */
    uint64_t waits, short_waits;
    struct script_result scratch;
};

/* --- the log ---------------------------------------------------------------------- */

/* Warns if fewer than `wanted` replicas are connected when the link comes up. */
static void warn_connected(const struct replica_warning *s, unsigned replicas,
                           unsigned wanted)
{
    if (replicas < wanted && !s->lasts) {
        log_warning("redis",
                    "%u replicas are connected, and min-replicas is %u: nothing is "
                    "granted until there are as many; see why they are not connected "
                    "to this master, or lower min-replicas",
                    replicas, wanted);
    }
}

static void log_shortage(int64_t replicas, unsigned wanted, uint64_t wait_ms,
                         const char *text)
{
    if (replicas < 0) {
        log_warning("redis",
                    "min-replicas is %u, but Redis does not say how many replicas have "
                    "a grant: %s; let latchd's user run WAIT, and SET latchd:*",
                    wanted, text);
        return;
    }
    log_warning("redis",
                "%" PRId64 " of min-replicas %u acknowledged within %" PRIu64
                " ms: nothing is granted, and holds run out; see that enough replicas "
                "are connected to this master and keep up, or lower min-replicas",
                replicas, wanted, wait_ms);
}

/* Warns if fewer than `wanted` replicas acknowledged within `wait_ms`. `replicas` < 0:
 * Redis answered `text` instead of a number. */
static void warn_waited(struct replica_warning *s, int64_t replicas, unsigned wanted,
                        uint64_t wait_ms, const char *text)
{
    uint64_t now_ms = clock_boot_ms();

    s->lasts = replicas < (int64_t)wanted;
    if (s->lasts && (s->told_ms == 0 || now_ms - s->told_ms >= TELL_EVERY_MS)) {
        s->told_ms = now_ms;
        s->told = true;
        log_shortage(replicas, wanted, wait_ms, text);
    } else if (!s->lasts && s->told) {
        s->told = false;
        log_notice("redis", "%" PRId64 " replicas acknowledge again", replicas);
    }
}

/* --- answers ---------------------------------------------------------------------- */

/* Hands the answer on and forgets its op; ops behind it may go. */
static void hand_on(struct replica_ack *a, const struct redis_call *call,
                    const redisReply *reply, bool acked)
{
    struct ordered_op *op = name_order_find(&a->order, call->op_id);

    if (op != NULL) {
        name_order_remove(&a->order, op);
    } else if (a->strangers > 0) {
        a->strangers--;
    }
    a->events->on_reply(a->ctx, call, reply, acked);
}

static bool reply_extends_lease(struct replica_ack *a, const struct redis_call *call,
                                const redisReply *reply)
{
    bool yes;

    script_reply(reply, (enum op_kind)call->op_kind, call->item_count, &a->scratch);
    yes = op_result_extends_lease((enum op_kind)call->op_kind, &a->scratch.result);
    script_result_fini(&a->scratch);
    return yes;
}

static void hold_reply(struct replica_ack *a, const struct redis_call *call,
                       const redisReply *reply, bool yes)
{
    struct ordered_op *op = name_order_find(&a->order, call->op_id);
    struct held *h = xcalloc(1, sizeof(*h));

    h->call = *call;
    h->reply = (redisReply *)reply;
    h->vouches = yes;
    redis_link_take_reply(a->second);
    list_append(&a->held, &h->in_held);
    if (op != NULL && call->op_kind == OP_RENEW) {
        name_order_leave(&a->order, op);
    } else if (op != NULL) {
        name_order_hold(op);
    }
}

static void on_second_reply(void *ctx, const struct redis_call *call,
                            const redisReply *reply)
{
    struct replica_ack *a = ctx;
    const struct ordered_op *op = name_order_find(&a->order, call->op_id);
    bool yes = reply != NULL && reply_extends_lease(a, call, reply);

    if (reply != NULL && a->waiting &&
        (yes || (op != NULL && name_order_is_behind_held(op)))) {
        hold_reply(a, call, reply, yes);
    } else {
        hand_on(a, call, reply, !yes);
    }
}

static struct held *take_held(struct replica_ack *a)
{
    struct list *first = list_first(&a->held);

    if (first == NULL) {
        return NULL;
    }
    list_del(first);
    return container_of(first, struct held, in_held);
}

static void on_acked(void *ctx, int64_t replicas, const char *text)
{
    struct replica_ack *a = ctx;
    bool enough = replicas >= (int64_t)a->asked;
    struct list answers;
    struct held *h;

    a->waiting = false;
    a->told = replicas < 0 ? 0 : replicas;
    a->short_waits += !enough;
    warn_waited(&a->replica_warning, replicas, a->asked, a->wait_ms, text);
    list_init(&answers);
    list_splice(&answers, &a->held);
    while (LIST_POP(h, &answers, in_held)) {
        if (!a->closed) {
            hand_on(a, &h->call, h->reply, enough || !h->vouches);
        }
        freeReplyObject(h->reply);
        free(h);
    }
}

void replica_ack_on_reply(struct replica_ack *a, const struct redis_call *call,
                          const redisReply *reply)
{
    hand_on(a, call, reply, true);
}

/* --- the second link -------------------------------------------------------------- */

static const char *why_not(void *ctx, bool same_server)
{
    struct replica_ack *a = ctx;

    if (redis_link_is_ready(a->first) && redis_link_same_server(a->first, a->second)) {
        return NULL; /* as the first one could be used */
    }
    return a->events->why_not(a->ctx, same_server);
}

static void on_up(void *ctx, enum link_change change)
{
    struct replica_ack *a = ctx;
    struct redis_call call;

    (void)change; /* the first link says so */
    warn_connected(&a->replica_warning, redis_link_replicas(a->second), a->replicas);
    a->events->on_up(a->ctx);
    while (!a->closed && fifo_pop(&a->lost, &call)) {
        hand_on(a, &call, NULL, true);
    }
}

static void on_down(void *ctx)
{
    struct replica_ack *a = ctx;
    struct held *h;

    a->waiting = false;
    while ((h = take_held(a)) != NULL) {
        *(struct redis_call *)fifo_push(&a->lost, sizeof(h->call)) = h->call;
        freeReplyObject(h->reply);
        free(h);
    }
    a->events->on_down(a->ctx);
}

static const struct redis_link_events SECOND_EVENTS = {
    .why_not = why_not,
    .on_up = on_up,
    .on_down = on_down,
    .on_reply = on_second_reply,
    .on_acked = on_acked,
};

bool replica_ack_agree(struct replica_ack *a, bool second)
{
    if (!redis_link_is_ready(a->first) || !redis_link_is_ready(a->second)) {
        return false;
    }
    if (!redis_link_same_server(a->first, a->second)) {
        redis_link_drop(second ? a->first : a->second,
                        "another link there has found another server");
        return false;
    }
    return true;
}

/* --- asking ----------------------------------------------------------------------- */

static void send_op(struct replica_ack *a, struct redis_link *link, const struct op *op)
{
    struct op_times times;
    struct buf *out = redis_link_call(link, op, 1, &times);

    if (out != NULL) {
        script_call(out, op, 1, a->instance, times);
    }
}

static struct ordered_op *take_ready(struct replica_ack *a, int way)
{
    struct list *first = list_first(&a->order.ready[way]);

    if (first == NULL) {
        return NULL;
    }
    list_del(first);
    return container_of(first, struct ordered_op, in_ready);
}

static void send_all(struct replica_ack *a)
{
    struct span name = SPAN_NONE;
    struct ordered_op *op;

    while ((op = take_ready(a, FIRST)) != NULL) {
        send_op(a, a->first, op->op);
    }
    if (a->waiting || a->strangers > 0) {
        return; /* what comes meanwhile leaves together, in time for its deadlines */
    }
    while ((op = take_ready(a, SECOND)) != NULL) {
        send_op(a, a->second, op->op);
        name = op_name_at(op->op, 0);
    }
    if (name.len > 0 && redis_link_is_ready(a->second)) {
        /* With min-replicas 0 by now, what it was asked under counts still. */
        redis_link_wait(a->second, name, a->asked, a->wait_ms);
        a->waiting = true;
        a->waits++;
    }
}

void replica_ack_abandon(struct replica_ack *a, redis_group_fn *concerns, void *ctx,
                         bool sent_too)
{
    struct redis_call call;
    struct held *h;

    redis_link_abandon(a->second, concerns, ctx, sent_too);
    for (size_t i = a->lost.count; i > 0 && !a->closed; i--) {
        (void)fifo_pop(&a->lost, &call);
        if (concerns(ctx, call.group)) {
            hand_on(a, &call, NULL, true);
        } else {
            *(struct redis_call *)fifo_push(&a->lost, sizeof(call)) = call;
        }
    }
    LIST_EACH_SAFE(h, &a->held, in_held) {
        if (sent_too && !a->closed && concerns(ctx, h->call.group)) {
            list_del(&h->in_held);
            hand_on(a, &h->call, NULL, true);
            freeReplyObject(h->reply);
            free(h);
        }
    }
}

void replica_ack_submit(struct replica_ack *a, const struct op *op)
{
    name_order_add(&a->order, op,
                   a->replicas > 0 && op_extends_lease(op) ? SECOND : FIRST);
}

void replica_ack_end_turn(struct replica_ack *a)
{
    send_all(a);
    redis_link_flush(a->second);
}

/* --- for the node ----------------------------------------------------------------- */

struct replica_ack *replica_ack_new(const struct replica_ack_setup *setup)
{
    struct replica_ack *a = xcalloc(1, sizeof(*a));
    struct redis_link_setup link = setup->link;

    a->first = setup->first;
    a->instance = setup->instance;
    a->events = setup->events;
    a->ctx = setup->ctx;
    a->strangers = redis_link_in_flight(setup->first);
    name_order_init(&a->order);
    list_init(&a->held);
    link.conn.seed += 1;
    link.is_second = true;
    link.events = &SECOND_EVENTS;
    link.ctx = a;
    a->second = redis_link_new(&link);
    return a;
}

void replica_ack_start(struct replica_ack *a)
{
    redis_link_start(a->second);
}

void replica_ack_configure(struct replica_ack *a, const struct store_options *options)
{
    a->replicas = options->min_replicas;
    a->wait_ms = options->replica_timeout_ms;
    if (a->replicas > 0) {
        a->asked = a->replicas;
    }
    redis_link_set_timeout(a->second, options->timeout_ms);
}

void replica_ack_log_in(struct replica_ack *a)
{
    redis_link_log_in(a->second);
}

void replica_ack_move(struct replica_ack *a)
{
    redis_link_move(a->second);
}

bool replica_ack_is_over(const struct replica_ack *a)
{
    return a->replicas == 0 && a->order.count[SECOND] == 0 && !a->waiting &&
           list_empty(&a->held) && list_empty(&a->order.ready[FIRST]);
}

void replica_ack_info(const struct replica_ack *a, struct store_info *ret)
{
    ret->in_flight += a->order.count[SECOND];
    ret->reconnects += redis_link_reconnects(a->second);
    ret->up = ret->up && redis_link_is_ready(a->second);
    ret->waits += a->waits;
    ret->short_waits += a->short_waits;
    ret->replica_ack_replicas = a->told;
    if (ret->why_not == NULL && redis_link_lacks_replicas(a->first, a->replicas)) {
        ret->why_not = "fewer replicas are connected to it than min-replicas says";
    }
}

void replica_ack_close(struct replica_ack *a)
{
    a->closed = true;
    redis_link_close(a->second);
}

void replica_ack_free(struct replica_ack *a)
{
    struct held *h;

    if (a == NULL) {
        return;
    }
    while ((h = take_held(a)) != NULL) {
        freeReplyObject(h->reply);
        free(h);
    }
    fifo_fini(&a->lost);
    name_order_fini(&a->order);
    redis_link_free(a->second);
    free(a);
}
