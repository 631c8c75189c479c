/* Names that are lent to daemons, and grants from memory. */
#include "sim/world/sim_world.h"

#include <inttypes.h>

enum { WINDOWS_MAX = 3 }; /* for which a name is lent in one piece */

void check_lent(struct sim *s, const struct flight *f, struct span name,
                const struct op_result *r, uint64_t lease_ms)
{
    struct sim_check *c = &s->check;

    if (r->loan_token == 0) {
        return;
    }
    c->loans[c->loan_count++ % LOANS_KEPT] = (struct sim_loan){
        .daemon = f->daemon,
        .life = s->daemons[f->daemon].life,
        .name = sim_redis_name(&s->redis, name),
        .first = r->token,
        .token = r->loan_token,
        .sent = f->sent,
        .ran = f->ran,
        .sent_ms = f->sent_ms,
        .taken_ms = f->sent_ms,
        .heard_ms = s->now,
        .lease_ms = lease_ms,
    };
}

static const struct sim_loan *find_loan(const struct sim *s, const struct redis_name *n,
                                        uint64_t token, size_t daemon)
{
    const struct sim_check *c = &s->check;

    /* The newest first: what an earlier one did not give is in the next one again. */
    for (size_t i = 0; i < LOANS_KEPT && i < c->loan_count; i++) {
        const struct sim_loan *l = &c->loans[(c->loan_count - 1 - i) % LOANS_KEPT];

        if (l->name == n && token >= l->first && token < l->token &&
            (daemon == REDIS_DAEMONS_MAX ||
             (l->daemon == daemon && l->life == s->daemons[daemon].life))) {
            return l;
        }
    }
    return NULL;
}

const struct sim_loan *loan_of(const struct sim *s, size_t daemon,
                               const struct redis_name *n, uint64_t token)
{
    return find_loan(s, n, token, daemon);
}

const struct sim_loan *loan_with_field(const struct sim *s, const struct redis_name *n,
                                       uint64_t token)
{
    return find_loan(s, n, token, REDIS_DAEMONS_MAX);
}

void check_loans_renewed(struct sim *s, const struct flight *f)
{
    const struct op_renew *renew = &f->op.renew;

    for (size_t i = 0; i < renew->count && f->reply.result.status == OP_OK; i++) {
        const struct renew_item *item = &renew->items[i];
        const struct sim_loan *old = loan_of(
            s, f->daemon, sim_redis_name(&s->redis, item->name), item->token - 1);
        struct sim_loan *l;

        if (f->reply.script.items[i] != RENEW_OK || old == NULL) {
            continue;
        }
        s->check.loans_renewed++;
        l = &s->check.loans[old - s->check.loans];
        l->sent = f->sent;
        l->ran = f->ran;
        l->sent_ms = f->sent_ms;
        l->heard_ms = s->now;
    }
}

void check_lends(struct sim *s, const struct sim_loan *l, uint64_t token)
{
    uint64_t window_ms = s->daemons[l->daemon].config.local_window_ms;
    uint64_t most_ms = WINDOWS_MAX * window_ms;

    if (s->now >= l->sent_ms + window_ms || s->now >= l->taken_ms + most_ms ||
        s->now >= l->taken_ms + LOCAL_WINDOW_MAX_MS) {
        sim_fail(s, "d%zu grants %s %" PRIu64 " from a loan whose window is over",
                 l->daemon, l->name->name.s, token);
    }
}

bool check_stands_in_loan(const struct sim *s, const struct record *r)
{
    const struct sim_loan *l = loan_of(s, r->daemon, r->name, r->token);

    for (size_t i = 0; l != NULL && i < r->name->field_count; i++) {
        if (redis_token_of(r->name, &r->name->fields[i].owner) == l->token) {
            return true;
        }
    }
    return false;
}

void check_gone(struct sim *s, const struct sim_conn *c, const struct record *r)
{
    const struct belief *b = belief_get(s, r->daemon, r->name, r->token);
    struct rtext field;

    if (r->kind != KIND_PLAIN || r->id.len > 0 || r->value.len > 0 ||
        c->ask.token == 0 || b == NULL || b->excused || check_tokens_may_repeat(s)) {
        return;
    }
    if (s->failovers > 0 && r->daemon != c->daemon) {
        return; /* its daemon has not heard of that, and may put back what was lost */
    }
    field = rtext_printf("latchd:%" PRIu64, r->token);
    redis_refresh(r->name);
    if (redis_field(r->name, rtext_span(&field)) != NULL) {
        sim_fail(s, "%s %" PRIu64 " was unlocked, and Redis has it still",
                 r->name->name.s, r->token);
    }
}
