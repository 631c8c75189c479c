/* A vote: the answer of one node to an op, and what that node may have granted. */
#include "backend/quorum/quorum_coordinator_priv.h"

#include <stdlib.h>

void vote_drop(struct quorum_vote *v)
{
    if (v->sent != NULL) {
        v->sent->call = NULL;
        v->sent = NULL;
    }
    free(v->memory);
    v->memory = NULL;
    v->r = (struct op_result){ 0 };
    v->state = VOTE_NONE;
}

/* A request may be sent through two daemons at once, and a hold that was granted to the
 * other one is not this one's to undo, even if it has been taken over since. */
static void note_granted(struct quorum_vote *v, const struct op_result *r)
{
    v->found = r->elsewhere || (v->found && r->attached);
    v->maybe_granted = !v->found;
}

void vote_count(struct quorum_vote *v, const struct op_result *r, enum op_kind kind)
{
    vote_drop(v);
    v->state = VOTE_IN;
    v->r = coordinator_copy_result(r, kind, &v->memory);
    if (kind != OP_ACQUIRE) {
        return;
    }
    switch (r->status) {
    case OP_OK:
        note_granted(v, r);
        break;
    case OP_UNKNOWN:
    case OP_ERROR:
        break;
    case OP_LATE:
    case OP_BEHIND:
        v->maybe_granted = v->was_maybe_granted; /* nothing happened */
        break;
    default:
        v->maybe_granted = v->found = false;
        break;
    }
}
