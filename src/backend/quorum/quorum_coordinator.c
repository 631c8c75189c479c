#include "backend/quorum/quorum_coordinator.h"

#include "backend/quorum/quorum_nodes.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/list.h"
#include "util/table.h"

#include <stdlib.h>

struct quorum_sub {
    struct table_node in_all;
    unsigned nodes; /* one bit for each that listens */
    bool told;
    enum lock_class lock_class;
    size_t len;
    char name[];
};

struct quorum_subs {
    struct table all;
    unsigned need;
};

static bool is_majority(const struct quorum_subs *h, unsigned nodes)
{
    return (unsigned)__builtin_popcount(nodes) >= h->need;
}

static struct quorum_sub *sub_new(struct span name, enum lock_class lock_class)
{
    struct quorum_sub *e = xcalloc(1, sizeof(*e) + name.len);

    e->lock_class = lock_class;
    e->len = name.len;
    memcpy(e->name, name.ptr, name.len);
    e->in_all.key = hash_bytes(name.ptr, name.len);
    return e;
}

static struct quorum_sub *heard_in(struct table_node *n)
{
    return container_of(n, struct quorum_sub, in_all);
}

static struct quorum_sub *find_sub(const struct quorum_subs *h, struct span name,
                                   enum lock_class lock_class)
{
    struct table_node *n = table_find(&h->all, hash_bytes(name.ptr, name.len));

    for (; n != NULL; n = table_next(n)) {
        struct quorum_sub *e = heard_in(n);

        if (e->lock_class == lock_class && span_eq(span_of(e->name, e->len), name)) {
            return e;
        }
    }
    return NULL;
}

struct quorum_subs *quorum_subs_new(unsigned node_count)
{
    struct quorum_subs *h = xcalloc(1, sizeof(*h));

    h->need = node_count / 2 + 1;
    return h;
}

void quorum_subs_free(struct quorum_subs *h)
{
    struct quorum_sub *sub;

    if (h == NULL) {
        return;
    }
    TABLE_EACH(sub, &h->all, in_all) {
        table_remove(&h->all, &sub->in_all);
        free(sub);
    }
    table_fini(&h->all);
    free(h);
}

void quorum_subs_add(struct quorum_subs *h, struct span name,
                     enum lock_class lock_class)
{
    struct quorum_sub *e = find_sub(h, name, lock_class);

    if (e == NULL) {
        e = sub_new(name, lock_class);
        table_add(&h->all, &e->in_all);
    }
    e->nodes = 0;
    e->told = false;
}

void quorum_subs_remove(struct quorum_subs *h, struct span name,
                        enum lock_class lock_class)
{
    struct quorum_sub *e = find_sub(h, name, lock_class);

    if (e != NULL) {
        table_remove(&h->all, &e->in_all);
        free(e);
    }
}

bool quorum_subs_on(struct quorum_subs *h, unsigned node, struct span name,
                    enum lock_class lock_class)
{
    struct quorum_sub *e = find_sub(h, name, lock_class);

    if (e == NULL) {
        return false;
    }
    e->nodes |= 1U << node;
    if (e->told || !is_majority(h, e->nodes)) {
        return false;
    }
    e->told = true;
    return true;
}

bool quorum_subs_off(struct quorum_subs *h, unsigned node)
{
    struct quorum_sub *e;
    struct quorum_sub *sub;
    bool below = false;

    TABLE_EACH(e, &h->all, in_all) {
        e->nodes &= ~(1U << node);
        below = below || (e->told && !is_majority(h, e->nodes));
    }
    if (below) {
        TABLE_EACH(sub, &h->all, in_all) {
            sub->told = false;
        }
    }
    return below;
}

void quorum_subs_tell(struct quorum_subs *h, quorum_subs_fn *fn, void *ctx)
{
    struct quorum_sub *e;

    TABLE_EACH(e, &h->all, in_all) {
        if (!e->told && is_majority(h, e->nodes)) {
            e->told = true;
            fn(ctx, span_of(e->name, e->len), e->lock_class);
        }
    }
}

static void saw_token(struct quorum_coordinator *b, uint64_t token)
{
    if (token > b->seen_token && token <= (uint64_t)LATCHD_TOKEN_MAX) {
        b->seen_token = token;
    }
}

/* The token that an ACQUIRE proposes to the nodes. */

/* Chooses the token that the ACQUIRE proposes to the nodes in its next round. */
static void call_propose_token(struct quorum_coordinator *b, struct quorum_call *c)
{
    if (c->keeps != 0) {
        c->propose = c->keeps;
        return;
    }
    c->propose = b->wall_us > b->seen_token ? b->wall_us : b->seen_token + 1;
    b->seen_token = c->propose; /* none is proposed twice */
    c->retract_from = c->retract_from != 0 ? c->retract_from : c->propose;
}

/* Whether the node has the hold by another call, whose client may have been told. */
static bool has_it_already(const struct quorum_call *c, const struct quorum_vote *v)
{
    return v->state == VOTE_IN && v->r.status == OP_OK && v->r.token != 0 &&
           (v->found || v->r.token < c->retract_from);
}

/* The highest token under which nodes had the hold already; 0: there is none. A lower
 * one is what an earlier call left where it could not be undone yet. */
static uint64_t find_given_token(const struct quorum_coordinator *b,
                                 const struct quorum_call *c)
{
    uint64_t token = 0;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct quorum_vote *v = &c->votes[i];

        if (has_it_already(c, v) && v->r.token > token) {
            token = v->r.token;
        }
    }
    return token;
}

/* Too few nodes have the hold under one token: all get one in the next round. */

/* An ID that is sent again keeps the token that its client was told, if that is
 * possible; or else all nodes give a new one. */
static void call_level_tokens(const struct quorum_coordinator *b, struct quorum_call *c)
{
    bool is_id =
        c->op->kind == OP_ACQUIRE && c->op->acquire.claim.owner_kind == OWNER_ID;

    c->keeps = is_id && !c->level ? find_given_token(b, c) : 0;
    c->level = true;
}

/* A vote: the answer of one node to an op, and what that node may have granted. */

/* Empties the vote; a result that is on its way is for nobody then. */
static void vote_drop(struct quorum_vote *v)
{
    if (v->sent != NULL) {
        v->sent->call = NULL;
        v->sent = NULL;
    }
    free(v->memory);
    v->memory = NULL;
    v->r = (struct op_result){ 0 };
    v->state = VOTE_NONE;
}

/* A request may be sent through two daemons at once, and a hold that was granted to the
 * other one is not this one's to undo, even if it has been taken over since. */
static void note_granted(struct quorum_vote *v, const struct op_result *r)
{
    v->found = r->elsewhere || (v->found && r->attached);
    v->maybe_granted = !v->found;
}

static void vote_count(struct quorum_vote *v, const struct op_result *r,
                       enum op_kind kind)
{
    vote_drop(v);
    v->state = VOTE_IN;
    v->r = op_result_copy(r, kind, &v->memory);
    if (kind != OP_ACQUIRE) {
        return;
    }
    switch (r->status) {
    case OP_OK:
        note_granted(v, r);
        break;
    case OP_UNKNOWN:
    case OP_ERROR:
        break;
    case OP_LATE:
    case OP_BEHIND:
        v->maybe_granted = v->was_maybe_granted; /* nothing happened */
        break;
    default:
        v->maybe_granted = v->found = false;
        break;
    }
}

/* A random number from 0 to `most`. */
static uint64_t roll_dice(struct quorum_coordinator *b, uint64_t most)
{
    uint64_t z = (b->dice += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % (most + 1);
}

/* --- calls: an op of the engine, asked of all nodes until its outcome is certain
 * ------ */

static void arm_timer(struct quorum_coordinator *b, struct quorum_call *c, uint64_t at)
{
    heap_set(&b->call_timers, &c->timer, at);
}

static void call_free(struct quorum_coordinator *b, struct quorum_call *c)
{
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        vote_drop(&c->votes[i]);
    }
    heap_remove(&b->call_timers, &c->timer);
    list_del(&c->in_calls);
    list_del(&c->in_done);
    free(c->items);
    free(c->op);
    free(c);
}

/* --- asking ----------------------------------------------------------------------- */

static bool is_open(const struct quorum_coordinator *b, const struct quorum_call *c)
{
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        if (c->votes[i].state == VOTE_OPEN) {
            return true;
        }
    }
    return false;
}

static struct op for_node(const struct quorum_coordinator *b,
                          const struct quorum_call *c, unsigned node)
{
    struct op op = *c->op;

    if (op.kind == OP_ACQUIRE) {
        struct op_acquire *a = &op.acquire;

        a->propose = c->propose;
        a->retract_from = c->retract_from;
        a->raise_token = c->level;
        a->leave_keeper = !(c->takes && c->votes[node].found);
        a->reenter_only = a->reenter_only || coordinator_abstains(b, node) != 0;
    } else if (op.kind == OP_RESTORE) {
        op.restore.raise_token = c->level;
    } else if (op.kind == OP_ATTACH && !c->level) {
        op.attach.lease_ms = PROBE_LEASE_MS;
        op.attach.exact = false;
    }
    return op;
}

static void ask_nodes(struct quorum_coordinator *b, struct quorum_call *c)
{
    bool acquires = c->op->kind == OP_ACQUIRE;

    c->state = CALL_ASKING;
    c->impatient = false;
    c->asked_at = b->now;
    if (acquires) {
        call_propose_token(b, c);
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        struct quorum_vote *v = &c->votes[i];

        vote_drop(v);
        v->was_maybe_granted = v->maybe_granted;
        v->state = quorum_node_usable(b, i) ? VOTE_OPEN : VOTE_SILENT;
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        struct quorum_vote *v = &c->votes[i];

        if (v->state == VOTE_OPEN) {
            struct op op = for_node(b, c, i);

            v->maybe_granted = acquires && !v->found;
            v->sent = quorum_node_send(b, i, &op);
            v->sent->call = c;
        }
    }
    /* If nobody can be asked, that is said at the next tick. */
    arm_timer(b, c, is_open(b, c) ? b->now + quorum_patience(b) : b->now);
}

/* The more often others asked at the same moment, the longer the pause may be. */
static uint64_t split_pause(struct quorum_coordinator *b, const struct name_slot *slot)
{
    unsigned doublings =
        slot->split_row > SPLIT_DOUBLINGS ? SPLIT_DOUBLINGS : slot->split_row;

    return 1 + roll_dice(b, (uint64_t)SPLIT_PAUSE_MS << doublings);
}

static void pause_call(struct quorum_coordinator *b, struct quorum_call *c)
{
    c->state = CALL_PAUSED;
    arm_timer(b, c, b->now + split_pause(b, c->slot));
}

/* To the nodes every owner has a field that is known beforehand, as an ID has. */
static void as_ids(struct op *op)
{
    struct claim *claim = op->kind == OP_ACQUIRE   ? &op->acquire.claim
                          : op->kind == OP_RESTORE ? &op->restore.claim
                                                   : NULL;
    /* the clone's own, which may be changed */
    struct renew_item *items =
        op->kind == OP_RENEW ? (struct renew_item *)op->renew.items : NULL;

    if (claim != NULL && claim->owner_kind == OWNER_ANONYMOUS) {
        claim->owner_kind = OWNER_ID;
        claim->entry = SPAN_NONE;
    }
    for (size_t i = 0; items != NULL && i < op->renew.count; i++) {
        if (items[i].owner_kind == OWNER_ANONYMOUS) {
            items[i].owner_kind = OWNER_ID;
        }
    }
}

static void adapt_release(struct op_release *release)
{
    /* A quorum has no hand-over: the first to ask gets the lock. */
    release->has_next = false;
    /* Without a tombstone a renewal might put the hold back. */
    release->leave_tombstone = release->leave_tombstone || !release->if_keeper;
    if (release->target.kind == TARGET_FIELD) {
        release->target.token = 0; /* a node may have that hold under an older one */
    }
}

static struct quorum_call *call_new(struct quorum_coordinator *b, const struct op *op)
{
    struct quorum_call *c = xcalloc(1, sizeof(*c));

    list_init(&c->in_done);
    list_append(&b->calls, &c->in_calls);
    c->seq = ++b->next_seq;
    c->op = op_clone(op);
    c->slot = name_slot_of(b, op->name);
    /* Only the nodes know the token of a grant that an anonymous claim finds again. */
    c->level =
        op->kind == OP_ACQUIRE && op->acquire.claim.owner_kind == OWNER_ANONYMOUS;
    if (op->kind == OP_RELEASE) {
        adapt_release(&c->op->release);
    }
    as_ids(c->op);
    if (op->kind == OP_RENEW) {
        c->items = xcalloc(op->renew.count, sizeof(*c->items));
    }
    return c;
}

static void call_probe(struct quorum_coordinator *b, const struct op *op)
{
    struct quorum_call *c = call_new(b, op);

    c->is_probe = true;
    ask_nodes(b, c);
}

/* An answer to an earlier op must not put back a hold that ends by this op, or sooner
 * because of it. */
static void note_changes(struct quorum_coordinator *b, const struct quorum_call *c)
{
    if (c->op->kind == OP_RELEASE || c->op->kind == OP_ATTACH) {
        c->slot->changed = c->seq;
        partial_hold_forget(b, c->op->name);
    }
    for (size_t i = 0; c->op->kind == OP_RENEW && i < c->op->renew.count; i++) {
        const struct renew_item *item = &c->op->renew.items[i];

        if (item->exact) {
            name_slot_of(b, item->name)->changed = c->seq;
            partial_hold_forget(b, item->name);
        }
    }
}

static void call_begin(struct quorum_coordinator *b, const struct op *op)
{
    struct quorum_call *c = call_new(b, op);

    saw_token(b, op->seen_token);
    note_changes(b, c);
    if (op->kind == OP_ACQUIRE) {
        deferred_op_absorb(b, c);
    }
    if (!quorum_tallies(op->kind)) {
        c->state = CALL_LINGERING;
        c->result = (struct op_result){ .status = OP_ERROR,
                                        .text = SPAN("a quorum has plain locks only") };
        arm_timer(b, c, b->now);
    } else if (op->kind == OP_ACQUIRE && c->slot->split_row > 0 &&
               b->now - c->slot->split_at < SPLIT_FORGET_MS) {
        pause_call(b, c);
    } else {
        ask_nodes(b, c);
    }
}

/* --- deciding --------------------------------------------------------------------- */

static void tell_result(struct quorum_coordinator *b, struct quorum_call *c)
{
    c->result.id = c->op->id;
    c->result.fair = false; /* nobody joins Redisson's queues here */
    c->state = CALL_DECIDED;
    heap_remove(&b->call_timers, &c->timer);
    list_append(&b->done, &c->in_done);
}

static void finish_call(struct quorum_coordinator *b, struct quorum_call *c)
{
    if (c->is_probe) {
        partial_hold_on_probe(b, c);
        call_free(b, c);
        return;
    }
    if (c->op->kind == OP_ACQUIRE && c->result.status == OP_OK) {
        name_slot_note_split(b, c->slot, false);
    } else if (c->op->kind == OP_ACQUIRE) {
        deferred_op_undo(b, c);
    } else if (c->op->kind == OP_RELEASE && c->result.status != OP_LATE &&
               c->result.status != OP_UNKNOWN && c->result.status != OP_ERROR) {
        deferred_op_release(b, c);
    }
    tell_result(b, c);
}

static void on_split(struct quorum_coordinator *b, struct quorum_call *c)
{
    name_slot_note_split(b, c->slot, true);
    deferred_op_undo(b, c);
    c->keeps = 0;
    if (c->rounds < QUORUM_ROUNDS_MAX) {
        pause_call(b, c);
        return;
    }
    if (c->result.ttl_ms == 0) {
        c->result.ttl_ms = (int64_t)split_pause(b, c->slot); /* all is free */
    }
    tell_result(b, c);
}

static struct quorum_votes poll_of(const struct quorum_coordinator *b,
                                   const struct quorum_call *c)
{
    struct quorum_votes p = {
        .op = c->op,
        .votes = c->votes,
        .count = b->setup.node_count,
        .need = b->need,
        .final = c->impatient || !is_open(b, c),
    };

    for (unsigned i = 0; i < p.count; i++) {
        p.abstains[i] = coordinator_abstains(b, i);
    }
    return p;
}

static void ask_again(struct quorum_coordinator *b, struct quorum_call *c)
{
    c->takes = true;
    if (++c->proposals < PROPOSALS_MAX) {
        ask_nodes(b, c);
        return;
    }
    c->result = (struct op_result){ .status = OP_LATE };
    finish_call(b, c);
}

/* An ATTACH of a hold that only a minority has would keep it alive there, and in the
 * way of others, for as long as its client tries: so first all nodes are asked who has
 * it. */
static bool op_looks(const struct quorum_call *c)
{
    return c->op->kind == OP_ATTACH && !c->level;
}

static void evaluate_votes(struct quorum_coordinator *b, struct quorum_call *c)
{
    struct quorum_votes p = poll_of(b, c);
    struct op_result result;

    /* A probe waits for late nodes, too. */
    if (c->state != CALL_ASKING || (c->is_probe && !p.final)) {
        return;
    }
    switch (quorum_tally(&p, &result, c->items)) {
    case TALLY_OPEN:
        break;
    case TALLY_DONE:
        if (op_looks(c) && result.status == OP_OK) {
            c->level = true;
            ask_nodes(b, c);
            break;
        }
        c->result = result;
        finish_call(b, c);
        break;
    case TALLY_AGAIN:
        call_level_tokens(b, c);
        ask_again(b, c);
        break;
    case TALLY_TAKE:
        ask_again(b, c);
        break;
    case TALLY_SPLIT:
        c->result = result;
        c->rounds++;
        on_split(b, c);
        break;
    case TALLY_LACK:
        c->result = result;
        if (op_looks(c)) {
            quorum_repair_attach(b, c);
        }
        if (!c->is_probe && b->now < c->asked_at + LACK_PAUSE_MS) {
            c->state = CALL_LINGERING;
            arm_timer(b, c, c->asked_at + LACK_PAUSE_MS);
        } else {
            finish_call(b, c);
        }
        break;
    }
}

/* --- what comes of it ------------------------------------------------------------- */

static bool is_well(const struct quorum_call *c, enum op_kind kind)
{
    return c->op->kind == kind && c->result.status == OP_OK;
}

/* Nodes that have not answered yet may need a repair as well. */
static void call_told(struct quorum_coordinator *b, struct quorum_call *c)
{
    bool renewed = is_well(c, OP_RENEW);
    bool granted = is_well(c, OP_ACQUIRE) || is_well(c, OP_ATTACH);

    for (unsigned i = 0; renewed && i < b->setup.node_count; i++) {
        quorum_repair(b, c, i);
    }
    if (renewed) {
        partial_hold_on_renewal(b, c);
    }
    if ((granted && partial_hold_note(b, c)) || !(renewed || granted) ||
        !is_open(b, c)) {
        call_free(b, c);
    } else if (renewed) {
        arm_timer(b, c, b->now + b->setup.timeout_ms);
    }
}

static void vote_is_late(struct quorum_coordinator *b, struct quorum_call *c,
                         unsigned node)
{
    bool renewed = c->op->kind == OP_RENEW;

    if (!list_empty(&c->in_done)) {
        return; /* it is not told yet, and then all are looked at */
    }
    if (renewed) {
        quorum_repair(b, c, node);
    }
    if ((!renewed && partial_hold_note(b, c)) || !is_open(b, c)) {
        call_free(b, c);
    }
}

static void call_on_vote(struct quorum_coordinator *b, struct quorum_call *c,
                         unsigned node, const struct op_result *r)
{
    struct quorum_vote *v = &c->votes[node];

    v->sent = NULL; /* it is freed by now */
    vote_count(v, r, c->op->kind);
    if (c->state == CALL_DECIDED) {
        vote_is_late(b, c, node);
    } else {
        evaluate_votes(b, c);
    }
}

static void call_on_silence(struct quorum_coordinator *b, struct quorum_call *c,
                            unsigned node)
{
    struct quorum_vote *v = &c->votes[node];

    vote_drop(v);
    v->state = VOTE_SILENT;
    if (c->state == CALL_DECIDED) {
        vote_is_late(b, c, node);
    } else {
        evaluate_votes(b, c);
    }
}

/* Silent nodes are waited for as long as no majority has answered. */
static void on_patience(struct quorum_coordinator *b, struct quorum_call *c)
{
    unsigned in = 0;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        in += c->votes[i].state == VOTE_IN ? 1 : 0;
    }
    if (in < b->need && is_open(b, c) && b->now < c->asked_at + b->setup.timeout_ms) {
        arm_timer(b, c, c->asked_at + b->setup.timeout_ms);
        return;
    }
    c->impatient = true;
    evaluate_votes(b, c);
}

static void call_on_timer(struct quorum_coordinator *b, struct quorum_call *c)
{
    switch (c->state) {
    case CALL_ASKING:
        on_patience(b, c);
        break;
    case CALL_PAUSED:
        deferred_op_absorb(b, c);
        c->takes = false;
        ask_nodes(b, c);
        break;
    case CALL_LINGERING:
        finish_call(b, c);
        break;
    case CALL_DECIDED:
        call_free(b, c);
        break;
    }
}

/* --- for the backend -------------------------------------------------------------- */

struct quorum_coordinator *coordinator_new(const struct coordinator_setup *setup)
{
    struct quorum_coordinator *b = xcalloc(1, sizeof(*b));

    b->setup = *setup;
    b->need = setup->node_count / 2 + 1;
    b->now = setup->now_ms;
    b->dice = setup->seed;
    list_init(&b->calls);
    list_init(&b->done);
    heap_init(&b->call_timers);
    quorum_nodes_init(b);
    return b;
}

void coordinator_free(struct quorum_coordinator *b)
{
    struct quorum_call *call;

    if (b == NULL) {
        return;
    }
    LIST_EACH_SAFE(call, &b->calls, in_calls) {
        call_free(b, call);
    }
    heap_fini(&b->call_timers);
    quorum_nodes_fini(b);
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
    struct quorum_call *c;

    while (!b->telling && LIST_POP(c, &b->done, in_done)) {
        b->telling = true;
        b->setup.events.done(b->setup.events.ctx, &c->result);
        b->telling = false;
        call_told(b, c);
    }
}

/* One probe is under way at a time. */
static void send_probes(struct quorum_coordinator *b)
{
    struct renew_item items[OP_RENEW_MAX];
    size_t count;

    while ((count = partial_holds_probe(b, items)) > 0) {
        call_probe(b, &(struct op){ .kind = OP_RENEW,
                                    .renew = { .items = items, .count = count } });
    }
}

void coordinator_submit(struct quorum_coordinator *b, const struct op *op)
{
    call_begin(b, op);
}

void coordinator_result(struct quorum_coordinator *b, unsigned node,
                        const struct op_result *result)
{
    struct quorum_call *c;
    struct deferred_send *e;

    if (quorum_take_sent(b, node, result, &c, &e)) {
        saw_token(b, result->token);
        if (c != NULL) {
            call_on_vote(b, c, node, result);
        } else if (e != NULL) {
            deferred_op_on_result(b, e, result);
        }
    }
    deferred_ops_flush(b, node);
    send_probes(b);
    tell_results(b);
}

/* --- time ------------------------------------------------------------------------- */

static void fire_timers(struct quorum_coordinator *b)
{
    struct heap_node *node;

    while ((node = heap_min(&b->call_timers)) != NULL && node->at <= b->now) {
        heap_remove(&b->call_timers, node);
        call_on_timer(b, container_of(node, struct quorum_call, timer));
    }
    deferred_ops_expire(b);
    partial_holds_fire(b);
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
    send_probes(b);
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
    send_probes(b);
    tell_results(b);
}

void coordinator_node_down(struct quorum_coordinator *b, unsigned node)
{
    struct coordinator_node *n = &b->nodes[node];
    struct sent_op *s;

    n->up = false;
    LIST_EACH_SAFE(s, &n->sents, in_node) {
        if (s->call != NULL) {
            call_on_silence(b, s->call, node);
        }
    }
    tell_results(b);
}

uint64_t coordinator_abstains(const struct quorum_coordinator *b, unsigned node)
{
    return quorum_node_abstains(b, node);
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
