/* Ops that nodes still have to do, sooner or later, after the engine has had its
 * answer. */
#include "backend/quorum/quorum_coordinator_priv.h"
#include "engine/op_clone.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEY_MAX = 4096 + 2 * 512 + 64 };

static bool is_named(struct span field)
{
    return !span_starts(field, SPAN("latchd:"));
}

static bool tells_nothing(enum op_status status)
{
    return status == OP_LATE || status == OP_UNKNOWN || status == OP_ERROR;
}

/* The key of a deferred op: name, NUL, and what it ends. 0: it is never looked up. */
static size_t make_key(char *out, size_t room, struct span name, struct span field,
                       struct span entry, uint64_t token)
{
    char number[24];
    int len = snprintf(number, sizeof(number), "%llu", (unsigned long long)token);
    struct span parts[] = { name, field, is_named(field) ? entry : SPAN_NONE,
                            field.len == 0 ? span_of(number, (size_t)len) : SPAN_NONE };
    size_t at = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (at + parts[i].len + 1 > room) {
            return 0;
        }
        if (parts[i].len != 0) {
            memcpy(out + at, parts[i].ptr, parts[i].len);
        }
        at += parts[i].len;
        out[at++] = '\0';
    }
    return at;
}

static struct deferred_op *find_deferred(const struct quorum_coordinator *b,
                                         const char *key, size_t len)
{
    struct table_node *n =
        len == 0 ? NULL : table_find(&b->deferred_ops, hash_bytes(key, len));

    for (; n != NULL; n = table_next(n)) {
        struct deferred_op *ch = container_of(n, struct deferred_op, by_key);

        if (span_eq(span_of(ch->key, ch->key_len), span_of(key, len))) {
            return ch;
        }
    }
    return NULL;
}

static void deferred_send_drop(struct quorum_coordinator *b, struct deferred_send *e,
                               unsigned node)
{
    if (e->sent != NULL) {
        e->sent->send = NULL;
    }
    b->nodes[node].deferred_in_flight -= e->state == SEND_SENT ? 1 : 0;
    list_del(&e->in_node);
    e->state = SEND_NONE;
    e->sent = NULL;
}

void deferred_op_free(struct quorum_coordinator *b, struct deferred_op *ch)
{
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        deferred_send_drop(b, &ch->sends[i], i);
    }
    table_remove(&b->deferred_ops, &ch->by_key);
    list_del(&ch->in_deferred);
    heap_remove(&b->deferred_timers, &ch->timer);
    b->deferred_count--;
    free(ch->op);
    free(ch);
}

static struct deferred_op *deferred_op_new(struct quorum_coordinator *b,
                                           const struct op *op, uint64_t keep_ms)
{
    char key[KEY_MAX];
    const struct target *t = &op->release.target;
    size_t len = make_key(key, sizeof(key), op->name, t->field, t->entry, t->token);
    struct deferred_op *ch = find_deferred(b, key, len);

    if (ch != NULL) {
        deferred_op_free(b,
                         ch); /* the new one does the same, at all that may have it */
    }
    if (b->deferred_count >= QUORUM_DEFERRED_OPS_MAX) {
        deferred_op_free(b, container_of(list_first(&b->deferred_order),
                                         struct deferred_op, in_deferred));
        b->stats.forgotten++;
    }
    ch = xcalloc(1, sizeof(*ch) + len);
    memcpy(ch->key, key, len);
    ch->key_len = len;
    ch->op = op_clone(op);
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        ch->sends[i].deferred = ch;
        list_init(&ch->sends[i].in_node);
    }
    ch->by_key.key = hash_bytes(ch->key, ch->key_len);
    table_add(&b->deferred_ops, &ch->by_key);
    list_append(&b->deferred_order, &ch->in_deferred);
    heap_set(&b->deferred_timers, &ch->timer, b->now + keep_ms);
    b->deferred_count++;
    return ch;
}

static void wait_for_turn(struct quorum_coordinator *b, struct deferred_send *e,
                          unsigned node)
{
    e->state = SEND_WAITS;
    list_append(&b->nodes[node].sends, &e->in_node);
}

/* Makes what `v` has on its way the deferred send's, in state `as`. */
static void add_deferred_send(struct quorum_coordinator *b, struct deferred_op *ch,
                              unsigned node, struct quorum_vote *v,
                              enum deferred_send_state as)
{
    struct deferred_send *e = &ch->sends[node];

    ch->left++;
    e->was_maybe_granted = v->was_maybe_granted;
    e->sent = v->sent;
    if (v->sent == NULL) {
        wait_for_turn(b, e, node);
        return;
    }
    e->state = as;
    b->nodes[node].deferred_in_flight += as == SEND_SENT ? 1 : 0;
    v->sent->call = NULL;
    v->sent->send = e;
    v->sent = NULL;
}

/* Sends what can be sent; a deferred op without a send is done. */
static void begin_deferred(struct quorum_coordinator *b, struct deferred_op *ch)
{
    if (ch->left == 0) {
        deferred_op_free(b, ch);
        return;
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        deferred_ops_flush(b, i);
    }
}

void deferred_op_undo(struct quorum_coordinator *b, struct quorum_call *c)
{
    const struct claim *cl = &c->op->acquire.claim;
    struct op op = {
        .kind = OP_RELEASE,
        .name = c->op->name,
        .release = {
            .if_keeper = true,
            .unsent_from = c->unsent_from,
            .target = { .kind = cl->kind == OWNER_NAMED ? TARGET_ENTRY : TARGET_FIELD,
                        .field = cl->field,
                        .entry = cl->entry },
        },
    };
    struct deferred_op *ch = NULL;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        if (c->votes[i].maybe_granted) {
            ch = ch != NULL ? ch : deferred_op_new(b, &op, cl->lease_ms + SLACK_MS);
            add_deferred_send(b, ch, i, &c->votes[i], SEND_WATCHES);
            c->votes[i].maybe_granted = false;
        }
    }
    if (ch != NULL) {
        begin_deferred(b, ch);
    }
}

/* Sent late, the op might end a hold that was taken since. */
static bool is_vague(const struct target *t)
{
    return t->kind == TARGET_OWNER || t->kind == TARGET_VALUE || t->kind == TARGET_ANY;
}

static bool is_done_there(const struct quorum_vote *v)
{
    return v->state == VOTE_IN && !tells_nothing(v->r.status);
}

void deferred_op_release(struct quorum_coordinator *b, struct quorum_call *c)
{
    uint64_t ends_in_ms = c->op->release.ends_in_ms;
    uint64_t keep_ms = ends_in_ms == 0 ? DEFERRED_KEEP_MS : ends_in_ms;
    struct deferred_op *ch = NULL;

    if (is_vague(&c->op->release.target)) {
        return;
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        struct quorum_vote *v = &c->votes[i];

        if (!is_done_there(v)) {
            ch = ch != NULL ? ch : deferred_op_new(b, c->op, keep_ms + SLACK_MS);
            add_deferred_send(b, ch, i, v, SEND_SENT);
        }
    }
    if (ch != NULL) {
        begin_deferred(b, ch);
    }
}

void deferred_op_absorb(struct quorum_coordinator *b, struct quorum_call *c)
{
    const struct claim *cl = &c->op->acquire.claim;
    char key[KEY_MAX];
    size_t len = make_key(key, sizeof(key), c->op->name, cl->field, cl->entry, 0);
    struct deferred_op *ch = find_deferred(b, key, len);

    if (ch == NULL) {
        return;
    }
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        c->votes[i].maybe_granted =
            c->votes[i].maybe_granted || ch->sends[i].state != SEND_NONE;
    }
    if (ch->op->release.unsent_from != 0) {
        c->unsent_from = ch->op->release.unsent_from;
    }
    deferred_op_free(b, ch);
}

/* Whether the ACQUIRE that is to be undone has left something. */
static bool is_there(struct quorum_coordinator *b, const struct deferred_send *e,
                     const struct op_result *r)
{
    bool granted = r->status == OP_OK && !r->elsewhere;

    if (granted) {
        coordinator_note_split(b, coordinator_slot(b, e->deferred->op->name), true);
    }
    return granted || r->status == OP_UNKNOWN || r->status == OP_ERROR ||
           (e->was_maybe_granted && (r->status == OP_LATE || r->status == OP_BEHIND));
}

static void hold_up(struct quorum_coordinator *b, struct coordinator_node *n,
                    enum op_status status)
{
    uint64_t pause = status == OP_ERROR  ? ERROR_PAUSE_MS
                     : status == OP_LATE ? LATE_PAUSE_MS
                                         : 0;

    if (n->pause_until < b->now + pause) {
        n->pause_until = b->now + pause;
    }
}

void deferred_op_on_result(struct quorum_coordinator *b, struct deferred_send *e,
                           const struct op_result *r)
{
    struct deferred_op *ch = e->deferred;
    unsigned node = (unsigned)(e - ch->sends);
    enum deferred_send_state was = e->state;

    e->sent = NULL;
    e->state = SEND_NONE;
    if (was == SEND_WATCHES && is_there(b, e, r)) {
        wait_for_turn(b, e, node);
        return;
    }
    if (was == SEND_SENT) {
        b->nodes[node].deferred_in_flight--;
        if (tells_nothing(r->status)) {
            wait_for_turn(b, e, node);
            hold_up(b, &b->nodes[node], r->status);
            return;
        }
        b->stats.undone++;
    }
    if (--ch->left == 0) {
        deferred_op_free(b, ch);
    }
}

void deferred_ops_flush(struct quorum_coordinator *b, unsigned node)
{
    struct coordinator_node *n = &b->nodes[node];
    struct list *it;

    while (b->now >= n->pause_until && n->deferred_in_flight < DEFERRED_IN_FLIGHT &&
           coordinator_usable(b, node) && (it = list_first(&n->sends)) != NULL) {
        struct deferred_send *e = container_of(it, struct deferred_send, in_node);

        list_del(it);
        e->state = SEND_SENT;
        n->deferred_in_flight++;
        e->sent = coordinator_send(b, node, e->deferred->op);
        e->sent->send = e;
    }
}
