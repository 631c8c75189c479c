/* Holds that some nodes lack: the sooner they get them, the sooner another node may
 * fail.
 *
 * A partial hold is found by its name. It is probed by a RENEW of all nodes that gives
 * no lease, a moment after it was granted and then less and less often: a node that
 * lacks the hold has to put it back. Probing ends when all have the hold, when no
 * majority has, when the engine does anything with the hold, or when its lease is over.
 * While the nodes that lack it cannot be asked, it waits for one to come back. */
#include "backend/quorum/quorum_coordinator_priv.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <assert.h>
#include <stdlib.h>

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

void partial_hold_free(struct quorum_coordinator *b, struct partial_hold *partial)
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
    struct list *it;

    while ((it = list_first(&b->partial_order)) != NULL) {
        struct partial_hold *partial =
            container_of(it, struct partial_hold, in_partial);

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
                                    .kind = r->attach.entry.len != 0 ? OWNER_NAMED
                                                                     : OWNER_ID,
                                    .field = r->attach.field,
                                    .entry = r->attach.entry,
                                    .token = r->token,
                                    .has_keeper_key = r->attach.entry.len == 0 };
    }
    assert(cl != NULL); /* what else leaves a hold has a claim */
    return (struct renew_item){ .name = c->op->name,
                                .kind = cl->kind,
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

void partial_hold_on_timer(struct quorum_coordinator *b, struct partial_hold *partial)
{
    list_append(&b->partial_due, &partial->in_due);
}

/* Probes as many as are due. */
static void send_look(struct quorum_coordinator *b)
{
    struct renew_item items[OP_RENEW_MAX];
    size_t count = 0;
    struct list *it;

    while (count < OP_RENEW_MAX && (it = list_first(&b->partial_due)) != NULL) {
        struct partial_hold *partial = container_of(it, struct partial_hold, in_due);

        list_del(it);
        if (partial->until <= b->now) {
            partial_hold_free(b, partial);
            continue;
        }
        partial->is_probed = true;
        items[count] = partial->item;
        items[count].has_keeper_key = false;
        items[count++].lease_ms = PROBE_LEASE_MS;
    }
    if (count > 0) {
        const struct op op = { .kind = OP_RENEW,
                               .renew = { .items = items, .count = count } };

        b->is_probing = true;
        coordinator_call_probe(b, &op);
    }
}

/* Sends the next probe; one is under way at a time. */
void partial_holds_flush(struct quorum_coordinator *b)
{
    while (!b->is_probing && !list_empty(&b->partial_due)) {
        send_look(b);
    }
}

/* Decides whether to probe again, and when. */
static void look_again(struct quorum_coordinator *b, struct partial_hold *partial,
                       const bool *has)
{
    unsigned doublings =
        partial->probes < PROBE_DOUBLINGS ? partial->probes : PROBE_DOUBLINGS;
    bool there = false;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        there = there || (!has[i] && coordinator_usable(b, i));
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
        if (coordinator_lacks(b, c, node, i)) {
            coordinator_repair_item(b, c, node, &item);
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
    struct list *it;

    LIST_FOREACH(it, &b->partial_order)
    {
        struct partial_hold *partial =
            container_of(it, struct partial_hold, in_partial);

        if (is_asleep(partial)) {
            partial->probes = 0;
            list_append(&b->partial_due, &partial->in_due);
        }
    }
}
