/* Which daemon keeps a hold that more than one of them was asked for. */
#include "sim/world/sim_world.h"

/* This op made its daemon the keeper of what another one had: that one is to forget it
 * silently. */
static bool takes_over(const struct flight *f, const struct op_result *res,
                       const struct claim *cl, const struct record *r)
{
    struct span entry = f->op.kind == OP_ATTACH ? res->attach.entry : cl->entry;

    if (r->token != res->token || r->daemon == f->daemon) {
        return false;
    }
    if (r->owner.len == 0) {
        return true;
    }
    return r->id.len == 0 ? f->op.kind == OP_ATTACH
                          : entry.len > 3 &&
                                rtext_is(&r->id, span_of(entry.ptr + 3, entry.len - 3));
}

static void remember_keeper(struct sim *s, const struct redis_name *n,
                            struct keeper keeper)
{
    struct keeper *all = s->check.keepers[check_name_index(s, n)];
    size_t i = 0;

    while (i < KEEPERS_KEPT - 1 && all[i].token != keeper.token) {
        i++;
    }
    memmove(&all[1], all, i * sizeof(*all));
    all[0] = keeper;
}

void check_keeper(struct sim *s, const struct flight *f, struct span in,
                  const struct op_result *res, const struct claim *cl)
{
    struct redis_name *n = sim_redis_name(&s->redis, in);

    if (f->op.kind == OP_ATTACH || cl->owner_kind == OWNER_ID || res->attached) {
        remember_keeper(s, n, (struct keeper){ res->token, f->daemon });
    }
    for (size_t i = 0; i < s->check.record_count; i++) {
        struct record *r = &s->check.records[i];

        if (r->name == n && takes_over(f, res, cl, r)) {
            r->moved = true;
        }
    }
}

/* NULL: nobody took that hold over from who was granted it, or long ago. */
static const struct keeper *keeper_of(struct sim *s, const struct redis_name *n,
                                      uint64_t token)
{
    const struct keeper *all = s->check.keepers[check_name_index(s, n)];

    for (size_t i = 0; i < KEEPERS_KEPT; i++) {
        if (all[i].token == token) {
            return &all[i];
        }
    }
    return NULL;
}

bool record_moved(struct sim *s, const struct record *r)
{
    const struct keeper *k = keeper_of(s, r->name, r->token);

    return k != NULL && k->daemon != r->daemon;
}

bool record_ended_by_keeper(struct sim *s, const struct record *r)
{
    const struct keeper *k = keeper_of(s, r->name, r->token);
    const struct belief *b =
        k == NULL ? NULL : belief_get(s, k->daemon, r->name, r->token);

    return b != NULL && k->daemon != r->daemon && b->told == TOLD_OVER;
}
