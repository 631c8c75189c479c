/* The token that an ACQUIRE proposes to the nodes. */
#include "backend/quorum/quorum_coordinator_priv.h"

void call_propose_token(struct quorum_coordinator *b, struct quorum_call *c)
{
    if (c->keeps != 0) {
        c->propose = c->keeps;
        return;
    }
    c->propose = b->wall_us > b->seen_token ? b->wall_us : b->seen_token + 1;
    b->seen_token = c->propose; /* none is proposed twice */
    c->unsent_from = c->unsent_from != 0 ? c->unsent_from : c->propose;
}

/* Whether the node has the hold by another call, whose client may have been told. */
static bool has_it_already(const struct quorum_call *c, const struct quorum_vote *v)
{
    return v->state == VOTE_IN && v->r.status == OP_OK && v->r.token != 0 &&
           (v->found || v->r.token < c->unsent_from);
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

/* An ID that is sent again keeps the token that its client was told, if that is
 * possible; or else all nodes give a new one. */
void call_level_tokens(const struct quorum_coordinator *b, struct quorum_call *c)
{
    bool is_id = c->op->kind == OP_ACQUIRE && c->op->acquire.claim.kind == OWNER_ID;

    c->keeps = is_id && !c->level ? find_given_token(b, c) : 0;
    c->level = true;
}
