/* Holds that some nodes have not: the sooner they get them, the sooner another may
 * fail.
 *
 * A bare is such a hold, found by its name. It is looked at, a RENEW of all nodes that
 * gives no lease, a moment after it was granted and then less and less often: who lacks
 * it is told to put it back. It is over when all have it, when no majority has, when
 * the engine does anything with the hold, or when its lease is over. While those that
 * lack it cannot be asked, it waits for one to come back. */
#include "store/ballot_priv.h"
#include "util/alloc.h"
#include "util/hash.h"

#include <stdlib.h>

static struct bare *find(const struct ballot *b, struct span name)
{
    struct table_node *n = NULL;

    if (b->bares.count != 0 && name.len != 0) {
        n = table_find(&b->bares, hash_bytes(name.ptr, name.len));
    }
    for (; n != NULL; n = table_next(n)) {
        struct bare *bare = container_of(n, struct bare, by_name);

        if (span_eq(bare->item.name, name)) {
            return bare;
        }
    }
    return NULL;
}

void bare_free(struct ballot *b, struct bare *bare)
{
    table_remove(&b->bares, &bare->by_name);
    list_del(&bare->in_bares);
    list_del(&bare->in_due);
    heap_remove(&b->bare_timers, &bare->timer);
    b->bare_count--;
    free(bare);
}

void bare_forget(struct ballot *b, struct span name)
{
    struct bare *bare = find(b, name);

    if (bare != NULL) {
        bare_free(b, bare);
    }
}

static bool sleeps(const struct bare *bare)
{
    return !bare->looked_at && !heap_armed(&bare->timer) && list_empty(&bare->in_due);
}

static void make_room(struct ballot *b)
{
    struct list *it;

    while ((it = list_first(&b->bare_order)) != NULL) {
        struct bare *bare = container_of(it, struct bare, in_bares);

        if (b->bare_count < BALLOT_BARES_MAX &&
            !(sleeps(bare) && bare->until <= b->now)) {
            break;
        }
        bare_free(b, bare);
    }
}

static void add(struct ballot *b, const struct renew_item *item, uint64_t until)
{
    size_t bytes = item->name.len + item->field.len + item->entry.len;
    struct bare *bare = xcalloc(1, sizeof(*bare) + bytes);
    char *at = bare->text;

    make_room(b);
    bare->item = *item;
    bare->item.name = span_put(&at, item->name);
    bare->item.field = span_put(&at, item->field);
    bare->item.entry = span_put(&at, item->entry);
    bare->until = until;
    list_init(&bare->in_due);
    bare->by_name.key = hash_bytes(bare->item.name.ptr, bare->item.name.len);
    table_add(&b->bares, &bare->by_name);
    list_append(&b->bare_order, &bare->in_bares);
    b->bare_count++;
    heap_set(&b->bare_timers, &bare->timer, b->now + LOOK_PAUSE_MS);
}

/* What that op vouched for. */
static struct renew_item item_of(const struct call *c)
{
    const struct claim *cl = &c->op->claim;
    const struct op_result *r = &c->result;

    if (c->op->kind == OP_ATTACH) {
        return (struct renew_item){ .name = c->op->name,
                                    .kind = r->entry.len != 0 ? OWNER_NAMED : OWNER_ID,
                                    .field = r->owner,
                                    .entry = r->entry,
                                    .token = r->token,
                                    .kept = r->entry.len == 0 };
    }
    return (struct renew_item){ .name = c->op->name,
                                .kind = cl->kind,
                                .field = cl->field,
                                .entry = cl->entry,
                                .token = r->token,
                                .kept = r->attached };
}

/* It has no answer, or another one, from a node that is not asked any more. */
static bool is_bare(const struct ballot *b, const struct call *c)
{
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct vote *v = &c->votes[i];

        if (v->state != VOTE_OPEN && (v->state != VOTE_IN || v->r.status != OP_OK ||
                                      v->r.token != c->result.token)) {
            return true;
        }
    }
    return false;
}

bool bare_note(struct ballot *b, const struct call *c)
{
    uint64_t lease_ms =
        c->op->kind == OP_ATTACH ? c->op->lease_ms : c->op->claim.lease_ms;
    struct renew_item item = item_of(c);

    if (!is_bare(b, c)) {
        return false;
    }
    if (item.token != 0 && c->slot->changed <= c->seq) {
        bare_forget(b, c->op->name);
        add(b, &item, c->asked_at + lease_ms);
    }
    return true;
}

void bare_renewed(struct ballot *b, const struct call *c)
{
    for (size_t i = 0; b->bares.count != 0 && i < c->op->item_count; i++) {
        const struct renew_item *item = &c->op->items[i];
        struct bare *bare = find(b, item->name);

        if (bare == NULL || bare->item.token != item->token ||
            c->items[i] == RENEW_UNKNOWN) {
            continue;
        }
        if (c->items[i] == RENEW_OK) {
            bare->until = c->asked_at + item->lease_ms;
        } else {
            bare_free(b, bare);
        }
    }
}

/* --- looking ---------------------------------------------------------------------- */

void bare_on_timer(struct ballot *b, struct bare *bare)
{
    list_append(&b->bares_due, &bare->in_due);
}

/* At as many as are due. */
static void look(struct ballot *b)
{
    struct renew_item items[OP_RENEW_MAX];
    struct op op = { .kind = OP_RENEW, .items = items };
    struct list *it;

    while (op.item_count < OP_RENEW_MAX && (it = list_first(&b->bares_due)) != NULL) {
        struct bare *bare = container_of(it, struct bare, in_due);

        list_del(it);
        if (bare->until <= b->now) {
            bare_free(b, bare);
            continue;
        }
        bare->looked_at = true;
        items[op.item_count] = bare->item;
        items[op.item_count].kept = false;
        items[op.item_count++].lease_ms = LOOK_LEASE_MS;
    }
    if (op.item_count > 0) {
        b->looks = true;
        ballot_call_look(b, &op);
    }
}

/* One look at a time. */
void bares_flush(struct ballot *b)
{
    while (!b->looks && !list_empty(&b->bares_due)) {
        look(b);
    }
}

/* Whether to look again, and when. */
static void again(struct ballot *b, struct bare *bare, const bool *has)
{
    unsigned doublings = bare->looks < LOOK_DOUBLINGS ? bare->looks : LOOK_DOUBLINGS;
    bool there = false;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        there = there || (!has[i] && ballot_usable(b, i));
    }
    if (there && ++bare->looks >= LOOKS_MAX) {
        bare_free(b, bare);
    } else if (there) {
        heap_set(&b->bare_timers, &bare->timer,
                 b->now + ((uint64_t)LOOK_PAUSE_MS << doublings));
    }
}

static void looked(struct ballot *b, const struct call *c, size_t i, struct bare *bare)
{
    struct renew_item item = bare->item;
    bool has[BALLOT_NODES_MAX] = { false };
    bool all = true;

    bare->looked_at = false;
    if ((c->items[i] != RENEW_OK && c->items[i] != RENEW_UNKNOWN) ||
        bare->until <= b->now) {
        bare_free(b, bare);
        return;
    }
    item.lease_ms = bare->until - b->now;
    for (unsigned node = 0; node < b->setup.node_count; node++) {
        const struct vote *v = &c->votes[node];

        has[node] =
            v->state == VOTE_IN && v->r.status == OP_OK && v->r.items[i] == RENEW_OK;
        all = all && has[node];
        if (ballot_lacks(b, c, node, i)) {
            ballot_heal_item(b, c, node, &item);
        }
    }
    if (all) {
        bare_free(b, bare);
    } else {
        again(b, bare, has);
    }
}

void bare_looked(struct ballot *b, const struct call *c)
{
    b->looks = false;
    for (size_t i = 0; i < c->op->item_count; i++) {
        struct bare *bare = find(b, c->op->items[i].name);

        if (bare != NULL && bare->looked_at &&
            bare->item.token == c->op->items[i].token) {
            looked(b, c, i, bare);
        }
    }
}

void bares_wake(struct ballot *b)
{
    struct list *it;

    LIST_FOREACH(it, &b->bare_order)
    {
        struct bare *bare = container_of(it, struct bare, in_bares);

        if (sleeps(bare)) {
            bare->looks = 0;
            list_append(&b->bares_due, &bare->in_due);
        }
    }
}
