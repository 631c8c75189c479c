/* Holds that a node has lost, and others have. */
#include "store/ballot_priv.h"

/* Not if it was released, or may have been, since this was asked. Where those who have
 * it are no majority, only a node that has lost nothing is asked: it knows of a later
 * token, and that the hold has ended. */
void ballot_heal_item(struct ballot *b, const struct call *c, unsigned node,
                      const struct renew_item *item)
{
    struct kept_item kept = { .entry = item->entry, .for_ms = item->lease_ms };
    struct op op = {
        .kind = OP_RESTORE,
        .name = item->name,
        .claim = { .lock_kind = item->lock_kind,
                   .kind = item->kind,
                   .field = item->field,
                   .entry = item->entry,
                   .lease_ms = item->lease_ms },
        .token = item->token,
        .level = item->kind == OWNER_NAMED,
        .keeper = item->kept,
        .kept = &kept,
        .kept_count = 1,
    };

    if (ballot_slot(b, item->name)->changed <= c->seq && ballot_usable(b, node)) {
        (void)ballot_send(b, node, &op);
        b->stats.healed++;
    }
}

bool ballot_lacks(const struct ballot *b, const struct call *c, unsigned node,
                  size_t item)
{
    const struct vote *v = &c->votes[node];

    if (v->state != VOTE_IN || v->r.status != OP_OK || item >= v->r.item_count ||
        v->r.items[item] != RENEW_GONE) {
        return false;
    }
    return c->items[item] == RENEW_OK ||
           (c->items[item] == RENEW_UNKNOWN && ballot_abstains(b, node) == 0);
}

void ballot_heal(struct ballot *b, struct call *c, unsigned node)
{
    for (size_t i = 0; i < c->op->item_count; i++) {
        if (ballot_lacks(b, c, node, i)) {
            ballot_heal_item(b, c, node, &c->op->items[i]);
        }
    }
}

void ballot_heal_attach(struct ballot *b, const struct call *c)
{
    const struct op_result *r = NULL;
    struct renew_item item;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct vote *v = &c->votes[i];

        if (v->state == VOTE_IN && v->r.status == OP_OK) {
            r = &v->r;
        }
    }
    if (r == NULL || r->token == 0) {
        return;
    }
    item = (struct renew_item){ .name = c->op->name,
                                .kind = r->entry.len != 0 ? OWNER_NAMED : OWNER_ID,
                                .field = r->owner,
                                .entry = r->entry,
                                .token = r->token,
                                .lease_ms = c->op->lease_ms,
                                .kept = r->entry.len == 0 };
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct vote *v = &c->votes[i];

        if (v->state == VOTE_IN && v->r.status == OP_NOTHELD &&
            ballot_abstains(b, i) == 0) {
            ballot_heal_item(b, c, i, &item);
        }
    }
}
