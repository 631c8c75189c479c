/* ATLEAST: nobody is granted the name before that time after the grant is over. */
#include "sim/world/sim_faults.h"
#include "sim/world/sim_world.h"

#include <inttypes.h>

static struct sim_rest *rest_of(struct sim *s, const struct redis_name *n)
{
    return &s->check.rests[check_name_index(s, n)];
}

/* Which of two holds is the later one, nobody knows where tokens may have gone back. */
static bool is_due(const struct sim *s, const struct sim_rest *r)
{
    return r->token != 0 && !r->excused && s->now + 1 < r->until &&
           !(r->lost && check_tokens_may_repeat(s));
}

static const struct claim *granted_claim(const struct flight *f)
{
    return f->op.kind == OP_ACQUIRE ? &f->op.acquire.claim
           : f->reply.result.moved  ? &f->op.release.next
                                    : NULL;
}

/* After a failover another daemon may be about to put back a hold with a later token.
 */
static bool is_disputed(const struct sim *s)
{
    return s->daemon_count > 1 && s->check.fences_lost;
}

static void begin_rest(struct sim *s, const struct flight *f, struct redis_name *n)
{
    const struct claim *claim = granted_claim(f);
    struct sim_rest *r = rest_of(s, n);

    /* A hold of an earlier request is found with its end in Redis, or with none after
     * a jump of Redis's clock. */
    if (claim == NULL || claim->atleast_ms == 0 || !f->minted ||
        f->reply.result.token == r->token) {
        return;
    }
    *r = (struct sim_rest){ .token = f->reply.result.token,
                            .until = s->now + claim->atleast_ms,
                            .daemon = f->daemon,
                            .changed = f->daemon,
                            .excused = is_disputed(s) };
    s->check.rest_count++;
}

/* By force, and where nobody was told of the hold, the name does not rest. */
static void end_rest(struct sim *s, const struct flight *f, struct redis_name *n)
{
    const struct op_release *release = &f->op.release;
    struct sim_rest *r = rest_of(s, n);

    if (f->reply.result.release.rest_ms > 0) {
        r->told_until = s->now + f->reply.result.release.rest_ms;
        r->changed = f->daemon; /* which hears of the rest now, or not */
        r->heard = false;
    } else if ((release->force || release->skips_rest) &&
               f->reply.result.token != r->token) {
        r->token = 0; /* unless its hold was found there, by who asked for it again */
    }
}

void check_rest_ran(struct sim *s, const struct flight *f)
{
    struct redis_name *n;

    if (f->op.name.len == 0) {
        return;
    }
    n = sim_redis_name(&s->redis, f->op.name);
    if (f->reply.result.status == OP_WRONGTYPE &&
        (f->op.kind == OP_RESTORE ||
         (f->op.kind == OP_RELEASE && rest_of(s, n)->lost))) {
        rest_of(s, n)->excused = true; /* a failover left another kind of lock there */
    }
    if (f->reply.result.status != OP_OK) {
        return;
    }
    if (f->op.kind == OP_RELEASE) {
        end_rest(s, f, n);
    } else if (f->op.kind == OP_ATTACH || f->reply.result.attached) {
        rest_of(s, n)->changed = f->daemon;
        rest_of(s, n)->heard = false;
    }
    begin_rest(s, f, n);
}

void check_rest_heard(struct sim *s, const struct flight *f)
{
    struct redis_name *n;

    if (f->op.name.len > 0 && f->reply.result.status == OP_OK) {
        n = sim_redis_name(&s->redis, f->op.name);
        rest_of(s, n)->heard =
            rest_of(s, n)->heard || (f->reply.result.token == rest_of(s, n)->token &&
                                     f->daemon == rest_of(s, n)->changed);
    }
}

void check_rest_external(struct sim *s, const struct redis_name *n)
{
    for (size_t i = 0; i < s->redis.name_count; i++) {
        if (n == NULL || n == &s->redis.names[i]) {
            s->check.rests[i].token = 0;
        }
    }
}

/* Else it is taken back, as soon as its daemon can. */
static bool is_told(const struct sim *s, const struct redis_name *n,
                    const struct sim_rest *r)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        if (s->check.records[i].name == n && s->check.records[i].token == r->token) {
            return true;
        }
    }
    return false;
}

/* A daemon that knows of it, and of what has become of it, puts it back before others
 * are granted the name: unless Redisson is, which asks nobody, or another daemon that
 * does not wait for that. */
void check_rests_lost(struct sim *s, bool others_wait)
{
    for (size_t i = 0; i < s->redis.name_count; i++) {
        struct sim_rest *r = &s->check.rests[i];

        r->lost = true;
        r->excused = r->excused || !is_told(s, &s->redis.names[i], r) || !r->heard ||
                     !others_wait ||
                     (s->profile.faults & (FAULT_FOREIGN | FAULT_STRING)) != 0 ||
                     s->daemons[r->changed].engine == NULL || r->died;
    }
}

void check_rest_daemon_died(struct sim *s, const struct sim_daemon *d)
{
    for (size_t i = 0; i < s->redis.name_count; i++) {
        struct sim_rest *r = &s->check.rests[i];

        r->died = r->died || r->daemon == d->index || r->changed == d->index;
        r->excused = r->excused || (r->lost && r->died);
    }
}

void check_rests(struct sim *s)
{
    for (size_t i = 0; i < s->redis.name_count; i++) {
        struct redis_name *n = &s->redis.names[i];
        const struct sim_rest *r = &s->check.rests[i];
        uint64_t token;

        if (!is_due(s, r)) {
            continue;
        }
        redis_refresh(n);
        token = n->field_count == 0 ? 0 : redis_token_of(n, &n->fields[0].owner);
        if (r->lost ? token > r->token : token != r->token) {
            sim_fail(s,
                     "%s is %s %" PRIu64 ", though taken by %" PRIu64
                     " for another %" PRIu64 " ms",
                     n->name.s, token == 0 ? "free" : "held by", token, r->token,
                     r->until - s->now);
        }
    }
}
