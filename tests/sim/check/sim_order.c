/* The fair queue as Redis has it: who joins, who leaves, and whose turn it is. Looked
 * at before and after each script. */
#include "sim/redis/sim_redisson.h"
#include "sim/world/sim_world.h"

#include <inttypes.h>

static bool of_instance(const struct rtext *member, const char *instance)
{
    return redis_member_of(rtext_span(member), instance);
}

static bool is_ours(const struct rtext *member)
{
    return span_starts(rtext_span(member), SPAN("latchd:"));
}

/* The living daemon whose member this is. */
static struct sim_daemon *daemon_of(struct sim *s, const struct rtext *member)
{
    for (size_t i = 0; i < s->daemon_count; i++) {
        struct sim_daemon *d = &s->daemons[i];

        if (d->engine != NULL && of_instance(member, d->instance)) {
            return d;
        }
    }
    return NULL;
}

static size_t place(const struct rtext *list, size_t count, const struct rtext *member)
{
    size_t i = 0;

    while (i < count && !rtext_is(&list[i], rtext_span(member))) {
        i++;
    }
    return i;
}

void check_queue_before(struct sim *s, const struct redis_name *n)
{
    struct queue_seen *seen = &s->check.seen;

    seen->token = n->fence_token;
    seen->known = n->queue_count <= QUEUE_SEEN_MAX;
    seen->count = seen->known ? n->queue_count : 0;
    for (size_t i = 0; i < seen->count; i++) {
        seen->members[i] = n->queue[i];
    }
}

/* It was in the queue before: a grant that came too late was undone, and it goes back
 * to its place at the head. */
static bool comes_back(struct sim *s, const struct rtext *member)
{
    struct queue_seen *seen = &s->check.seen;
    size_t count =
        seen->been_count < QUEUE_SEEN_MAX ? seen->been_count : QUEUE_SEEN_MAX;

    if (place(seen->been, count, member) < count) {
        return true;
    }
    seen->been[seen->been_count++ % QUEUE_SEEN_MAX] = *member;
    return false;
}

/* NULL: since when it waits is not known. */
static const struct redis_wait *since_of(const struct redis_name *n, size_t i)
{
    for (size_t k = 0; k < n->wait_count && is_ours(&n->queue[i]); k++) {
        if (rtext_is(&n->waits[k].member, rtext_span(&n->queue[i]))) {
            return &n->waits[k];
        }
    }
    return NULL;
}

static bool was_put_back(const struct redis_name *n, size_t i)
{
    const struct redis_wait *w = since_of(n, i);

    return w != NULL && w->put_back;
}

/* A daemon has just named all its waiters: a lost one stands before later ones of any
 * daemon, but for those that join only now. A script that came too late has named
 * nobody. */
static void check_put_back(struct sim *s, const struct redis_name *n,
                           const struct flight *f)
{
    const struct queue_seen *seen = &s->check.seen;
    bool named = f->op.kind == OP_QUEUE && f->op.queue.waited_ms != NULL &&
                 f->reply.result.status == OP_OK;

    for (size_t i = 0; i < n->queue_count && named; i++) {
        for (size_t k = i + 1; k < n->queue_count && was_put_back(n, i); k++) {
            const struct redis_wait *w = since_of(n, k);

            if (!is_ours(&n->queue[k])) {
                break;
            }
            if (w != NULL && w->since < since_of(n, i)->since &&
                (w->put_back ||
                 place(seen->members, seen->count, &n->queue[k]) < seen->count)) {
                sim_fail(s, "%s was put back before %s, who came first to %s",
                         n->queue[i].s, n->queue[k].s, n->name.s);
            }
        }
    }
}

/* A member that stayed keeps its place, if that was never lost; a new one stands
 * behind. */
static void check_places(struct sim *s, const struct redis_name *n)
{
    const struct queue_seen *seen = &s->check.seen;
    size_t last = 0;
    bool joined = false;

    for (size_t i = 0; i < n->queue_count; i++) {
        size_t before = place(seen->members, seen->count, &n->queue[i]);

        if (before == seen->count) {
            joined = !comes_back(s, &n->queue[i]) || joined;
        } else if (!is_ours(&n->queue[i]) || was_put_back(n, i)) {
            /* Redisson's own may have purged itself, and come back at the end. */
        } else if (before < last) {
            sim_fail(s, "%s has changed its place in the queue of %s", n->queue[i].s,
                     n->name.s);
        } else if (joined && s->orderly) {
            sim_fail(s, "%s was passed by one who came later to the queue of %s",
                     n->queue[i].s, n->name.s);
        } else {
            last = before;
        }
    }
}

/* A Redisson that waits for longer than its usual 5 minutes does not say for how long:
 * its score shows the less the longer it has waited. Until its daemon names them again,
 * Redisson may throw out who stood behind it. */
void check_scores_fell(struct sim *s, const struct redis_name *n, uint64_t by_ms)
{
    const struct engine_config *cfg = &s->daemons[0].config;

    if (by_ms > REDISSON_FAIR_WAIT_MS) {
        s->check.overtaken_until[check_name_index(s, n)] =
            s->now + cfg->fair_wait_ms / 3 + cfg->redis_timeout_ms;
    }
}

/* Nobody throws out a living daemon's waiter, while nothing fails. */
static void check_thrown_out(struct sim *s, const struct redis_name *n,
                             const char *instance)
{
    const struct queue_seen *seen = &s->check.seen;
    bool excused =
        instance == NULL && s->now < s->check.overtaken_until[check_name_index(s, n)];

    for (size_t i = 0; i < seen->count; i++) {
        const struct rtext *m = &seen->members[i];
        const struct sim_daemon *d = daemon_of(s, m);
        bool gone = place(n->queue, n->queue_count, m) == n->queue_count;

        if (gone && d != NULL &&
            (instance == NULL || strcmp(instance, d->instance) != 0)) {
            TRACE(s, "d%zu: %s was thrown out of the queue of %s", d->index, m->s,
                  n->name.s);
            s->check.thrown_out++;
            if (s->orderly && !excused) {
                sim_fail(s, "%s was thrown out of the queue of %s", m->s, n->name.s);
            }
        }
    }
}

/* A script gave a lock that was free, or had just become free: was it their turn? */
static void check_turn_of(struct sim *s, const struct redis_name *n,
                          const struct flight *f)
{
    const struct rtext *head = &s->check.seen.members[0];
    const struct claim *claim = op_claim(&f->op);
    struct rtext member = rtext_of(claim == NULL ? SPAN_NONE : claim->member);

    if (s->check.seen.count == 0 || f->op.lock_class != CLASS_PLAIN ||
        f->op.kind == OP_RESTORE || f->reply.result.status != OP_OK ||
        n->fence_token == s->check.seen.token || of_instance(head, f->instance)) {
        return;
    }
    if (f->op.kind == OP_ACQUIRE && f->op.acquire.was_queued &&
        comes_back(s, &member)) {
        return; /* it had lost its place at the head, and got it back in this script */
    }
    if (place(n->queue, n->queue_count, head) < n->queue_count) {
        sim_fail(s, "d%zu got %s, but it is the turn of %s", f->daemon, n->name.s,
                 head->s);
    }
}

static int64_t score_of(const struct redis_name *n, const struct rtext *member)
{
    for (size_t i = 0; i < n->score_count; i++) {
        if (rtext_is(&n->scores[i].member, rtext_span(member))) {
            return n->scores[i].score;
        }
    }
    return 0;
}

/* Each with the time it has left. */
static void trace_queue(struct sim *s, const struct redis_name *n)
{
    for (size_t i = 0; i < n->queue_count; i++) {
        sim_trace(s, "  queue of %s: %s %" PRId64, n->name.s, n->queue[i].s,
                  score_of(n, &n->queue[i]) - (int64_t)s->redis.now_ms);
    }
}

void check_queue_after(struct sim *s, const struct redis_name *n, struct flight *f)
{
    if (f != NULL) {
        f->minted = n->fence_token != s->check.seen.token;
    }
    if (f != NULL && (f->minted || f->reply.result.attached) &&
        (f->op.kind == OP_ACQUIRE
             ? f->op.acquire.enqueue
             : f->op.kind == OP_RELEASE && f->op.release.has_next)) {
        struct rtext member = rtext_of(op_claim(&f->op)->member);

        (void)comes_back(s, &member); /* granted without a place, perhaps too late */
    }
    if (!s->check.seen.known || (s->check.seen.count == 0 && n->queue_count == 0)) {
        return;
    }
    if (s->traced) {
        trace_queue(s, n);
    }
    check_places(s, n);
    check_thrown_out(s, n, f == NULL ? NULL : f->instance);
    if (f != NULL) {
        check_put_back(s, n, f);
        check_turn_of(s, n, f);
    }
}

/* No living daemon's member is left, and nothing that has no end of its own. */
void check_queue_end(struct sim *s, const struct redis_name *n)
{
    if (s->check.resurrected || s->failovers > 0) {
        return; /* places that were left already may have come back */
    }
    for (size_t i = 0; i < n->queue_count; i++) {
        if (daemon_of(s, &n->queue[i]) != NULL) {
            sim_fail(s, "%s is left in the queue of %s", n->queue[i].s, n->name.s);
        }
    }
    for (size_t i = 0; i < n->score_count; i++) {
        const struct rtext *m = &n->scores[i].member;

        if (is_ours(m) && place(n->queue, n->queue_count, m) == n->queue_count) {
            sim_fail(s, "the score of %s is left in %s", m->s, n->name.s);
        }
    }
    if (n->hold_key_count > 0) {
        sim_fail(s, "%zu keys of readers are left of %s", n->hold_key_count, n->name.s);
    }
}

/* --- who stands there for nobody ------------------------------------------ */

static void count_waiter(void *ctx, const struct waiter_info *info)
{
    (void)info;
    ++*(size_t *)ctx;
}

static void check_surplus(struct sim *s, struct sim_daemon *d,
                          const struct redis_name *n)
{
    uint64_t *since = &d->surplus_since[check_name_index(s, n)];
    size_t members = 0;
    size_t waiters = 0;

    for (size_t i = 0; i < n->queue_count; i++) {
        members += of_instance(&n->queue[i], d->instance) ? 1 : 0;
    }
    if (members > 0) {
        engine_waiters(d->engine, rtext_span(&n->name), SIZE_MAX, count_waiter,
                       &waiters);
    }
    if (members <= waiters) {
        *since = 0;
    } else if (*since == 0) {
        *since = s->now;
    } else if (s->now > *since + 10 * s->profile.rtt_ms + SIM_TICK_MS) {
        sim_fail(s, "d%zu has %zu members in the queue of %s for %zu waiters", d->index,
                 members, n->name.s, waiters);
    }
}

void check_queues(struct sim *s, struct sim_daemon *d)
{
    for (size_t i = 0; i < s->redis.name_count; i++) {
        check_surplus(s, d, &s->redis.names[i]);
    }
}
