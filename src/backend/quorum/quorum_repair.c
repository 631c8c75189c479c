/* Holds that a node has lost, and that others have. */
#include "backend/quorum/quorum_coordinator_priv.h"

/* Restores the hold on that node, unless it was or may have been released since the
 * call was sent. A hold that no majority has is restored only on a node that has lost
 * no data: such a node would know of a later token, and that the hold has ended. */
void coordinator_repair_item(struct quorum_coordinator *b, const struct quorum_call *c,
                             unsigned node, const struct renew_item *item)
{
    struct restore_entry kept = { .entry = item->entry, .for_ms = item->lease_ms };
    struct op op = {
        .kind = OP_RESTORE,
        .name = item->name,
        .restore = {
.claim = { .lock_kind = item->lock_kind,
                   .kind = item->kind,
                   .field = item->field,
                   .entry = item->entry,
                   .lease_ms = item->lease_ms },
        .token = item->token,
        .raise_token = item->kind == OWNER_NAMED,
        .has_keeper_key = item->has_keeper_key,
        .entries = &kept,
        .entry_count = 1,
},
    };

    if (coordinator_slot(b, item->name)->changed <= c->seq &&
        coordinator_usable(b, node)) {
        (void)coordinator_send(b, node, &op);
        b->stats.healed++;
    }
}

bool coordinator_lacks(const struct quorum_coordinator *b, const struct quorum_call *c,
                       unsigned node, size_t item)
{
    const struct quorum_vote *v = &c->votes[node];

    if (v->state != VOTE_IN || v->r.status != OP_OK || item >= v->r.renew.count ||
        v->r.renew.items[item] != RENEW_GONE) {
        return false;
    }
    return c->items[item] == RENEW_OK ||
           (c->items[item] == RENEW_UNKNOWN && coordinator_abstains(b, node) == 0);
}

void coordinator_repair(struct quorum_coordinator *b, struct quorum_call *c,
                        unsigned node)
{
    for (size_t i = 0; c->op->kind == OP_RENEW && i < c->op->renew.count; i++) {
        if (coordinator_lacks(b, c, node, i)) {
            coordinator_repair_item(b, c, node, &c->op->renew.items[i]);
        }
    }
}

void coordinator_repair_attach(struct quorum_coordinator *b,
                               const struct quorum_call *c)
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
    item =
        (struct renew_item){ .name = c->op->name,
                             .kind = r->attach.entry.len != 0 ? OWNER_NAMED : OWNER_ID,
                             .field = r->attach.field,
                             .entry = r->attach.entry,
                             .token = r->token,
                             .lease_ms = c->op->attach.lease_ms,
                             .has_keeper_key = r->attach.entry.len == 0 };
    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct quorum_vote *v = &c->votes[i];

        if (v->state == VOTE_IN && v->r.status == OP_NOTHELD &&
            coordinator_abstains(b, i) == 0) {
            coordinator_repair_item(b, c, i, &item);
        }
    }
}
