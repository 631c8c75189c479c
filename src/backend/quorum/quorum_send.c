/* Ops on their way to the nodes, and the state of the nodes. */
#include "backend/quorum/quorum_coordinator_priv.h"
#include "util/alloc.h"
#include "util/hash.h"

#include "latchd/protocol.h"

#include <stdlib.h>

static uint64_t trip_ms(const struct coordinator_node *n)
{
    return n->trip8 / 8 + 1;
}

bool coordinator_usable(const struct quorum_coordinator *b, unsigned node)
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

uint64_t coordinator_patience(const struct quorum_coordinator *b)
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

struct sent_op *coordinator_send(struct quorum_coordinator *b, unsigned node,
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

void coordinator_sent_free(struct quorum_coordinator *b, struct sent_op *s)
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

void coordinator_deliver(struct quorum_coordinator *b, unsigned node,
                         const struct op_result *result)
{
    struct table_node *n = table_find(&b->sents, result->id);
    struct sent_op *s = n == NULL ? NULL : container_of(n, struct sent_op, in_sents);
    struct quorum_call *c;
    struct deferred_send *e;

    if (s == NULL || s->node != node) {
        return;
    }
    c = s->call;
    e = s->send;
    if (result->status != OP_UNKNOWN) {
        learn_trip(b, &b->nodes[node], b->now - s->at);
    }
    coordinator_sent_free(b, s);
    coordinator_saw_token(b, result->token);
    if (c != NULL) {
        coordinator_call_on_vote(b, c, node, result);
    } else if (e != NULL) {
        deferred_op_on_result(b, e, result);
    }
}

uint64_t coordinator_dice(struct quorum_coordinator *b, uint64_t most)
{
    uint64_t z = (b->dice += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % (most + 1);
}

struct name_slot *coordinator_slot(struct quorum_coordinator *b, struct span name)
{
    return &b->slots[hash_bytes(name.ptr, name.len) % SLOTS];
}

void coordinator_note_split(struct quorum_coordinator *b, struct name_slot *slot,
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

void coordinator_saw_token(struct quorum_coordinator *b, uint64_t token)
{
    if (token > b->seen_token && token <= (uint64_t)LATCHD_TOKEN_MAX) {
        b->seen_token = token;
    }
}
