/* The members of this instance in a fair queue: their sharded channels are subscribed
 * at the owner of the name's slot, as a pattern does not match sharded channels. */
#include "backend/cluster/cluster_priv.h"

#include "backend/cluster/slot.h"

void cluster_listen(struct member *m, const struct op *op)
{
    if (op->kind == OP_ACQUIRE && op->acquire.enqueue) {
        node_listen(m->node, op->name, op->acquire.claim.member);
    }
    if (op->kind == OP_QUEUE) {
        for (size_t i = 0; i < op->queue.count; i++) {
            node_listen(m->node, op->name, op->queue.members[i]);
        }
    }
}

void cluster_unlisten(void *cluster, struct span name, struct span member)
{
    struct cluster *c = cluster;
    struct member *m = c->owners[slot_of(name)];

    if (m != NULL) {
        node_unlisten(m->node, name, member);
    }
}
