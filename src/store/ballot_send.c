/* Ops on their way to the nodes, and what the nodes are like. */
#include "store/ballot_priv.h"
#include "util/alloc.h"
#include "util/hash.h"

#include "latchd/protocol.h"

#include <stdlib.h>

static uint64_t trip_ms(const struct ballot_node *n)
{
    return n->trip8 / 8 + 1;
}

bool ballot_usable(const struct ballot *b, unsigned node)
{
    const struct ballot_node *n = &b->nodes[node];
    const struct list *oldest = list_first(&n->sents);
    uint64_t most = 8 * trip_ms(n);

    if (!n->up || oldest == NULL) {
        return n->up;
    }
    most = most < STUCK_MS ? STUCK_MS : most;
    return b->now - container_of(oldest, struct sent, in_node)->at <= most;
}

uint64_t ballot_patience(const struct ballot *b)
{
    uint64_t most = PATIENCE_MIN_MS;

    for (unsigned i = 0; i < b->setup.node_count; i++) {
        const struct ballot_node *n = &b->nodes[i];
        uint64_t own =
            n->trip_known ? PATIENCE_MIN_MS + 4 * trip_ms(n) : b->setup.timeout_ms;

        if (n->up && own > most) {
            most = own;
        }
    }
    return most < b->setup.timeout_ms ? most : b->setup.timeout_ms;
}

struct sent *ballot_send(struct ballot *b, unsigned node, const struct op *op)
{
    struct sent *s = xcalloc(1, sizeof(*s));
    struct op one = *op;

    s->in_sents.key = one.id = ++b->next_id;
    s->node = node;
    s->at = b->now;
    list_append(&b->nodes[node].sents, &s->in_node);
    table_add(&b->sents, &s->in_sents);
    b->setup.events.send(b->setup.events.ctx, node, &one);
    return s;
}

void ballot_sent_free(struct ballot *b, struct sent *s)
{
    list_del(&s->in_node);
    table_remove(&b->sents, &s->in_sents);
    free(s);
}

static void learn_trip(struct ballot *b, struct ballot_node *n, uint64_t trip)
{
    trip = trip > b->setup.timeout_ms ? b->setup.timeout_ms : trip;
    n->trip8 = n->trip_known ? n->trip8 - n->trip8 / 8 + trip : 8 * trip;
    n->trip_known = true;
}

void ballot_deal(struct ballot *b, unsigned node, const struct op_result *result)
{
    struct table_node *n = table_find(&b->sents, result->id);
    struct sent *s = n == NULL ? NULL : container_of(n, struct sent, in_sents);
    struct call *c;
    struct errand *e;

    if (s == NULL || s->node != node) {
        return;
    }
    c = s->call;
    e = s->errand;
    if (result->status != OP_UNKNOWN) {
        learn_trip(b, &b->nodes[node], b->now - s->at);
    }
    ballot_sent_free(b, s);
    ballot_saw_token(b, result->token);
    if (c != NULL) {
        ballot_call_on_vote(b, c, node, result);
    } else if (e != NULL) {
        chore_on_result(b, e, result);
    }
}

uint64_t ballot_dice(struct ballot *b, uint64_t most)
{
    uint64_t z = (b->dice += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % (most + 1);
}

struct slot *ballot_slot(struct ballot *b, struct span name)
{
    return &b->slots[hash_bytes(name.ptr, name.len) % SLOTS];
}

void ballot_note_split(struct ballot *b, struct slot *slot, bool split)
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

void ballot_saw_token(struct ballot *b, uint64_t token)
{
    if (token > b->seen_token && token <= (uint64_t)LATCHD_TOKEN_MAX) {
        b->seen_token = token;
    }
}
