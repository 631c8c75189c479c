#include "backend/quorum/quorum_nodes.h"

#include "util/alloc.h"
#include "util/hash.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* --- ops on their way, and the state of the nodes -----------------------------------
 */

static uint64_t trip_ms(const struct coordinator_node *n)
{
    return n->trip8 / 8 + 1;
}

bool quorum_node_usable(const struct quorum_coordinator *b, unsigned node)
{
    const struct coordinator_node *n = &b->nodes[node];
    const struct list *oldest = list_first(&n->sents);
    uint64_t most = 8 * trip_ms(n);

    if (!n->up || oldest == NULL) {
        return n->up;
    }
    most = most < STUCK_MS ? STUCK_MS : most;
    return b->now - container_of(oldest, struct sent_op, in_node)->at <= most;
}

uint64_t quorum_patience(const struct quorum_coordinator *b)
{
    uint64_t most = PATIENCE_MIN_MS;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct coordinator_node *n = &b->nodes[i];
        uint64_t own =
            n->trip_known ? PATIENCE_MIN_MS + 4 * trip_ms(n) : b->setup.timeout_ms;

        if (n->up && own > most) {
            most = own;
        }
    }
    return most < b->setup.timeout_ms ? most : b->setup.timeout_ms;
}

struct sent_op *quorum_node_send(struct quorum_coordinator *b, unsigned node,
                                 const struct op *op)
{
    struct sent_op *s = xcalloc(1, sizeof(*s));
    struct op one = *op;

    s->in_sents.key = one.id = ++b->next_id;
    s->node = node;
    s->at = b->now;
    list_append(&b->nodes[node].sents, &s->in_node);
    table_add(&b->sents, &s->in_sents);
    b->setup.events.send(b->setup.events.ctx, node, &one);
    return s;
}

static void sent_op_free(struct quorum_coordinator *b, struct sent_op *s)
{
    list_del(&s->in_node);
    table_remove(&b->sents, &s->in_sents);
    free(s);
}

static void learn_trip(struct quorum_coordinator *b, struct coordinator_node *n,
                       uint64_t trip)
{
    trip = trip > b->setup.timeout_ms ? b->setup.timeout_ms : trip;
    n->trip8 = n->trip_known ? n->trip8 - n->trip8 / 8 + trip : 8 * trip;
    n->trip_known = true;
}

bool quorum_take_sent(struct quorum_coordinator *b, unsigned node,
                      const struct op_result *result, struct quorum_call **ret_call,
                      struct deferred_send **ret_send)
{
    struct table_node *n = table_find(&b->sents, result->id);
    struct sent_op *s = n == NULL ? NULL : container_of(n, struct sent_op, in_sents);

    if (s == NULL || s->node != node) {
        return false;
    }
    *ret_call = s->call;
    *ret_send = s->send;
    if (result->status != OP_UNKNOWN) {
        learn_trip(b, &b->nodes[node], b->now - s->at);
    }
    sent_op_free(b, s);
    return true;
}

struct name_slot *name_slot_of(struct quorum_coordinator *b, struct span name)
{
    return &b->slots[hash_bytes(name.ptr, name.len) % SLOTS];
}

void name_slot_note_split(struct quorum_coordinator *b, struct name_slot *slot,
                          bool split)
{
    if (!split || b->now - slot->split_at >= SPLIT_FORGET_MS) {
        slot->split_row = 0;
    }
    if (split) {
        slot->split_at = b->now;
        slot->split_row++;
        b->stats.splits++;
    }
}

uint64_t quorum_node_abstains(const struct quorum_coordinator *b, unsigned node)
{
    uint64_t until = b->nodes[node].abstains_until;

    return until > b->now ? until - b->now : 0;
}

/* Ops that nodes still have to do, sooner or later, after the engine has had its
 * answer. */

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

static void deferred_op_free(struct quorum_coordinator *b, struct deferred_op *ch)
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
            .retract_from = c->retract_from,
            .target = { .kind = cl->owner_kind == OWNER_NAMED ? TARGET_ENTRY : TARGET_FIELD,
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
    if (ch->op->release.retract_from != 0) {
        c->retract_from = ch->op->release.retract_from;
    }
    deferred_op_free(b, ch);
}

/* Whether the ACQUIRE that is to be undone has left something. */
static bool is_there(struct quorum_coordinator *b, const struct deferred_send *e,
                     const struct op_result *r)
{
    bool granted = r->status == OP_OK && !r->elsewhere;

    if (granted) {
        name_slot_note_split(b, name_slot_of(b, e->deferred->op->name), true);
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
    struct deferred_send *e;

    while (b->now >= n->pause_until && n->deferred_in_flight < DEFERRED_IN_FLIGHT &&
           quorum_node_usable(b, node) && LIST_POP(e, &n->sends, in_node)) {
        e->state = SEND_SENT;
        n->deferred_in_flight++;
        e->sent = quorum_node_send(b, node, e->deferred->op);
        e->sent->send = e;
    }
}

void deferred_ops_expire(struct quorum_coordinator *b)
{
    struct heap_node *node;

    while ((node = heap_min(&b->deferred_timers)) != NULL && node->at <= b->now) {
        deferred_op_free(b, container_of(node, struct deferred_op, timer));
    }
}

/* Holds that a node has lost, and that others have. */

/* Restores the hold on that node, unless it was or may have been released since the
 * call was sent. A hold that no majority has is restored only on a node that has lost
 * no data: such a node would know of a later token, and that the hold has ended. */
static void repair_item(struct quorum_coordinator *b, const struct quorum_call *c,
                        unsigned node, const struct renew_item *item)
{
    struct restore_entry kept = { .entry = item->entry, .for_ms = item->lease_ms };
    struct op op = {
        .kind = OP_RESTORE,
        .name = item->name,
        .restore = {
.claim = { .lock_kind = item->lock_kind,
                   .owner_kind = item->owner_kind,
                   .field = item->field,
                   .entry = item->entry,
                   .lease_ms = item->lease_ms },
        .token = item->token,
        .raise_token = item->owner_kind == OWNER_NAMED,
        .has_keeper_key = item->has_keeper_key,
        .entries = &kept,
        .entry_count = 1,
},
    };

    if (name_slot_of(b, item->name)->changed <= c->seq && quorum_node_usable(b, node)) {
        (void)quorum_node_send(b, node, &op);
        b->stats.healed++;
    }
}

/* Whether a node, by its answer to this decided RENEW, lacks the item, and has to put
 * it back. */
static bool lacks_item(const struct quorum_coordinator *b, const struct quorum_call *c,
                       unsigned node, size_t item)
{
    const struct quorum_vote *v = &c->votes[node];

    if (v->state != VOTE_IN || v->r.status != OP_OK || item >= v->r.renew.count ||
        v->r.renew.items[item] != RENEW_GONE) {
        return false;
    }
    return c->items[item] == RENEW_OK ||
           (c->items[item] == RENEW_UNKNOWN && quorum_node_abstains(b, node) == 0);
}

void quorum_repair(struct quorum_coordinator *b, struct quorum_call *c, unsigned node)
{
    for (size_t i = 0; c->op->kind == OP_RENEW && i < c->op->renew.count; i++) {
        if (lacks_item(b, c, node, i)) {
            repair_item(b, c, node, &c->op->renew.items[i]);
        }
    }
}

void quorum_repair_attach(struct quorum_coordinator *b, const struct quorum_call *c)
{
    const struct op_result *r = NULL;
    struct renew_item item;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct quorum_vote *v = &c->votes[i];

        if (v->state == VOTE_IN && v->r.status == OP_OK) {
            r = &v->r;
        }
    }
    if (r == NULL || r->token == 0) {
        return;
    }
    item = (struct renew_item){ .name = c->op->name,
                                .owner_kind =
                                    r->attach.entry.len != 0 ? OWNER_NAMED : OWNER_ID,
                                .field = r->attach.field,
                                .entry = r->attach.entry,
                                .token = r->token,
                                .lease_ms = c->op->attach.lease_ms,
                                .has_keeper_key = r->attach.entry.len == 0 };
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct quorum_vote *v = &c->votes[i];

        if (v->state == VOTE_IN && v->r.status == OP_NOTHELD &&
            quorum_node_abstains(b, i) == 0) {
            repair_item(b, c, i, &item);
        }
    }
}

/* Holds that some nodes lack: the sooner they get them, the sooner another node may
 * fail.
 *
 * A partial hold is found by its name. It is probed by a RENEW of all nodes that gives
 * no lease, a moment after it was granted and then less and less often: a node that
 * lacks the hold has to put it back. Probing ends when all have the hold, when no
 * majority has, when the engine does anything with the hold, or when its lease is over.
 * While the nodes that lack it cannot be asked, it waits for one to come back. */

static struct partial_hold *find_partial_hold(const struct quorum_coordinator *b,
                                              struct span name)
{
    struct table_node *n = NULL;

    if (b->partial_holds.count != 0 && name.len != 0) {
        n = table_find(&b->partial_holds, hash_bytes(name.ptr, name.len));
    }
    for (; n != NULL; n = table_next(n)) {
        struct partial_hold *partial = container_of(n, struct partial_hold, by_name);

        if (span_eq(partial->item.name, name)) {
            return partial;
        }
    }
    return NULL;
}

static void partial_hold_free(struct quorum_coordinator *b,
                              struct partial_hold *partial)
{
    table_remove(&b->partial_holds, &partial->by_name);
    list_del(&partial->in_partial);
    list_del(&partial->in_due);
    heap_remove(&b->partial_timers, &partial->timer);
    b->partial_count--;
    free(partial);
}

void partial_hold_forget(struct quorum_coordinator *b, struct span name)
{
    struct partial_hold *partial = find_partial_hold(b, name);

    if (partial != NULL) {
        partial_hold_free(b, partial);
    }
}

static bool is_asleep(const struct partial_hold *partial)
{
    return !partial->is_probed && !heap_armed(&partial->timer) &&
           list_empty(&partial->in_due);
}

static void make_room(struct quorum_coordinator *b)
{
    struct partial_hold *partial;

    while (LIST_FIRST(partial, &b->partial_order, in_partial)) {
        if (b->partial_count < QUORUM_PARTIAL_HOLDS_MAX &&
            !(is_asleep(partial) && partial->until <= b->now)) {
            break;
        }
        partial_hold_free(b, partial);
    }
}

static void add_partial_hold(struct quorum_coordinator *b,
                             const struct renew_item *item, uint64_t until)
{
    size_t bytes = item->name.len + item->field.len + item->entry.len;
    struct partial_hold *partial = xcalloc(1, sizeof(*partial) + bytes);
    char *at = partial->text;

    make_room(b);
    partial->item = *item;
    partial->item.name = span_put(&at, item->name);
    partial->item.field = span_put(&at, item->field);
    partial->item.entry = span_put(&at, item->entry);
    partial->until = until;
    list_init(&partial->in_due);
    partial->by_name.key = hash_bytes(partial->item.name.ptr, partial->item.name.len);
    table_add(&b->partial_holds, &partial->by_name);
    list_append(&b->partial_order, &partial->in_partial);
    b->partial_count++;
    heap_set(&b->partial_timers, &partial->timer, b->now + PROBE_PAUSE_MS);
}

/* The hold that the op has extended, as an item of a RENEW. */
static struct renew_item item_of(const struct quorum_call *c)
{
    const struct claim *cl = op_claim(c->op);
    const struct op_result *r = &c->result;

    if (c->op->kind == OP_ATTACH) {
        return (struct renew_item){ .name = c->op->name,
                                    .owner_kind = r->attach.entry.len != 0 ? OWNER_NAMED
                                                                           : OWNER_ID,
                                    .field = r->attach.field,
                                    .entry = r->attach.entry,
                                    .token = r->token,
                                    .has_keeper_key = r->attach.entry.len == 0 };
    }
    assert(cl != NULL); /* what else leaves a hold has a claim */
    return (struct renew_item){ .name = c->op->name,
                                .owner_kind = cl->owner_kind,
                                .field = cl->field,
                                .entry = cl->entry,
                                .token = r->token,
                                .has_keeper_key = r->attached };
}

/* Whether a node that is not asked any more gave no answer, or another one. */
static bool is_partial(const struct quorum_coordinator *b, const struct quorum_call *c)
{
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct quorum_vote *v = &c->votes[i];

        if (v->state != VOTE_OPEN && (v->state != VOTE_IN || v->r.status != OP_OK ||
                                      v->r.token != c->result.token)) {
            return true;
        }
    }
    return false;
}

bool partial_hold_note(struct quorum_coordinator *b, const struct quorum_call *c)
{
    const struct claim *cl = op_claim(c->op);
    uint64_t lease_ms = cl == NULL ? c->op->attach.lease_ms : cl->lease_ms;
    struct renew_item item = item_of(c);

    if (!is_partial(b, c)) {
        return false;
    }
    if (item.token != 0 && c->slot->changed <= c->seq) {
        partial_hold_forget(b, c->op->name);
        add_partial_hold(b, &item, c->asked_at + lease_ms);
    }
    return true;
}

void partial_hold_on_renewal(struct quorum_coordinator *b, const struct quorum_call *c)
{
    for (size_t i = 0; b->partial_holds.count != 0 && i < c->op->renew.count; i++) {
        const struct renew_item *item = &c->op->renew.items[i];
        struct partial_hold *partial = find_partial_hold(b, item->name);

        if (partial == NULL || partial->item.token != item->token ||
            c->items[i] == RENEW_UNKNOWN) {
            continue;
        }
        if (c->items[i] == RENEW_OK) {
            partial->until = c->asked_at + item->lease_ms;
        } else {
            partial_hold_free(b, partial);
        }
    }
}

/* --- probing ---------------------------------------------------------------------- */

void partial_holds_fire(struct quorum_coordinator *b)
{
    struct heap_node *node;

    while ((node = heap_min(&b->partial_timers)) != NULL && node->at <= b->now) {
        heap_remove(&b->partial_timers, node);
        list_append(&b->partial_due,
                    &container_of(node, struct partial_hold, timer)->in_due);
    }
}

size_t partial_holds_probe(struct quorum_coordinator *b,
                           struct renew_item items[static OP_RENEW_MAX])
{
    size_t count = 0;
    struct partial_hold *partial;

    while (!b->is_probing && count < OP_RENEW_MAX &&
           LIST_POP(partial, &b->partial_due, in_due)) {
        if (partial->until <= b->now) {
            partial_hold_free(b, partial);
            continue;
        }
        partial->is_probed = true;
        items[count] = partial->item;
        items[count].has_keeper_key = false;
        items[count++].lease_ms = PROBE_LEASE_MS;
    }
    b->is_probing = b->is_probing || count > 0;
    return count;
}

/* Decides whether to probe again, and when. */
static void look_again(struct quorum_coordinator *b, struct partial_hold *partial,
                       const bool *has)
{
    unsigned doublings =
        partial->probes < PROBE_DOUBLINGS ? partial->probes : PROBE_DOUBLINGS;
    bool there = false;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        there = there || (!has[i] && quorum_node_usable(b, i));
    }
    if (there && ++partial->probes >= PROBES_MAX) {
        partial_hold_free(b, partial);
    } else if (there) {
        heap_set(&b->partial_timers, &partial->timer,
                 b->now + ((uint64_t)PROBE_PAUSE_MS << doublings));
    }
}

static void on_look_result(struct quorum_coordinator *b, const struct quorum_call *c,
                           size_t i, struct partial_hold *partial)
{
    struct renew_item item = partial->item;
    bool has[QUORUM_NODES_MAX] = { false };
    bool all = true;

    partial->is_probed = false;
    if ((c->items[i] != RENEW_OK && c->items[i] != RENEW_UNKNOWN) ||
        partial->until <= b->now) {
        partial_hold_free(b, partial);
        return;
    }
    item.lease_ms = partial->until - b->now;
    for (unsigned node = 0; node < b->setup.node_count; node++) {
        const struct quorum_vote *v = &c->votes[node];

        has[node] = v->state == VOTE_IN && v->r.status == OP_OK &&
                    v->r.renew.items[i] == RENEW_OK;
        all = all && has[node];
        if (lacks_item(b, c, node, i)) {
            repair_item(b, c, node, &item);
        }
    }
    if (all) {
        partial_hold_free(b, partial);
    } else {
        look_again(b, partial, has);
    }
}

void partial_hold_on_probe(struct quorum_coordinator *b, const struct quorum_call *c)
{
    b->is_probing = false;
    for (size_t i = 0; i < c->op->renew.count; i++) {
        struct partial_hold *partial = find_partial_hold(b, c->op->renew.items[i].name);

        if (partial != NULL && partial->is_probed &&
            partial->item.token == c->op->renew.items[i].token) {
            on_look_result(b, c, i, partial);
        }
    }
}

void partial_holds_wake(struct quorum_coordinator *b)
{
    struct partial_hold *partial;

    LIST_EACH(partial, &b->partial_order, in_partial) {
        if (is_asleep(partial)) {
            partial->probes = 0;
            list_append(&b->partial_due, &partial->in_due);
        }
    }
}

/* --- for the coordinator ---------------------------------------------------------- */

void quorum_nodes_init(struct quorum_coordinator *b)
{
    list_init(&b->deferred_order);
    list_init(&b->partial_order);
    list_init(&b->partial_due);
    heap_init(&b->partial_timers);
    heap_init(&b->deferred_timers);
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        list_init(&b->nodes[i].sents);
        list_init(&b->nodes[i].sends);
    }
}

void quorum_nodes_fini(struct quorum_coordinator *b)
{
    struct deferred_op *op;
    struct partial_hold *hold;
    struct sent_op *sent;

    LIST_EACH_SAFE(op, &b->deferred_order, in_deferred) {
        deferred_op_free(b, op);
    }
    LIST_EACH_SAFE(hold, &b->partial_order, in_partial) {
        partial_hold_free(b, hold);
    }
    TABLE_EACH(sent, &b->sents, in_sents) {
        sent_op_free(b, sent);
    }
    table_fini(&b->sents);
    table_fini(&b->deferred_ops);
    table_fini(&b->partial_holds);
    heap_fini(&b->deferred_timers);
    heap_fini(&b->partial_timers);
}
