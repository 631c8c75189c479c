/* One op of a daemon, done by its script and by the model. */
#include "backend/script/script_batch.h"
#include "differ_claims.h"

#include <check.h>
#include <inttypes.h>

static const char *const OP_NAMES[] = {
    [OP_ACQUIRE] = "acquire", [OP_ACQUIRE_BATCH] = "acquire many",
    [OP_RELEASE] = "release", [OP_RENEW] = "renew",
    [OP_ATTACH] = "attach",   [OP_INSPECT] = "inspect",
    [OP_QUEUE] = "queue",     [OP_LEAVE] = "leave",
    [OP_RESTORE] = "restore",
};

static const char *const KINDS[] = { "plain", "fair", "read", "write" };
static const char *const TARGETS[] = {
    [TARGET_FIELD] = "field", [TARGET_REQUEST] = "request", [TARGET_TOKEN] = "token",
    [TARGET_ID] = "id",       [TARGET_ENTRY] = "entry",     [TARGET_OWNER] = "owner",
    [TARGET_VALUE] = "value", [TARGET_ANY] = "any",
};

#define S(span) (int)(span).len, ((span).len == 0 ? "" : (span).ptr)

/* --- telling -------------------------------------------------------------- */

static void say_target(struct differ *d, const struct target *t)
{
    differ_say(d, " target(%s %s '%.*s' '%.*s' %" PRIu64 ")", TARGETS[t->kind],
               KINDS[t->lock_kind], S(t->field), S(t->entry), t->token);
}

static void say_acquire(struct differ *d, const struct op_acquire *a)
{
    if (a->propose != 0) {
        differ_say(d, " propose %" PRIu64 "%s%s unsent from %" PRIu64, a->propose,
                   a->raise_token ? " raise_token" : "",
                   a->leave_keeper ? " leave_keeper" : "", a->unsent_from);
    }
    differ_say(d, "%s%s%s%s", a->reenter_only ? " reenter" : "", a->fair ? " fair" : "",
               a->enqueue ? " enqueue" : "", a->was_queued ? " was_queued" : "");
}

static void say_release(struct differ *d, const struct op_release *r)
{
    say_target(d, &r->target);
    differ_say(d, "%s%s%s%s%s yield %d unsent from %" PRIu64,
               r->if_keeper ? " if_keeper" : "", r->force ? " force" : "",
               r->leave_tombstone ? " leave_tombstone" : "",
               r->tombstone_if_missing ? " tombstone_if_missing" : "",
               r->subscribed ? " subscribed" : "", (int)r->yield, r->unsent_from);
}

static void say_renew(struct differ *d, const struct op_renew *renew)
{
    for (size_t i = 0; i < renew->count; i++) {
        const struct renew_item *it = &renew->items[i];

        differ_say(d, " item(%.*s %s '%.*s' '%.*s' %" PRIu64 "%s%s%s %" PRIu64 ")",
                   S(it->name), KINDS[it->lock_kind], S(it->field), S(it->entry),
                   it->token, it->exact ? " exact" : "", it->fence ? " fence" : "",
                   it->has_keeper_key ? " keeper key" : "", it->lease_ms);
    }
}

static void say_restore(struct differ *d, const struct op_restore *r)
{
    differ_say(d, " token %" PRIu64 "%s%s", r->token,
               r->has_keeper_key ? " keeper key" : "",
               r->raise_token ? " raise_token" : "");
    for (size_t i = 0; i < r->entry_count; i++) {
        differ_say(d, " entry('%.*s' %" PRIu64 ")", S(r->entries[i].entry),
                   r->entries[i].for_ms);
    }
}

static void say_queue(struct differ *d, const struct op_queue *q)
{
    for (size_t i = 0; i < q->count; i++) {
        differ_say(d, " %.*s", S(q->members[i]));
        if (q->waited_ms != NULL) {
            differ_say(d, " since %" PRIu64, q->waited_ms[i]);
        }
    }
    differ_say(d, " known %zu%s", q->known, q->whole ? " whole" : "");
}

static void say_op(struct differ *d, const char *instance, const struct op *op,
                   struct op_times times)
{
    const struct claim *cl = op_claim(op);

    differ_say(d, "%.1s %s %.*s%s%s", instance, OP_NAMES[op->kind], S(op->name),
               op->rw ? " rw" : "", times.asked_us < d->start_ms * 1000 ? " late" : "");
    if (cl != NULL) {
        differ_say(d, " claim(%s '%.*s' entry '%.*s' member '%.*s' %" PRIu64 ")",
                   KINDS[cl->lock_kind], S(cl->field), S(cl->entry), S(cl->member),
                   cl->lease_ms);
    }
    switch (op->kind) {
    case OP_ACQUIRE:
        say_acquire(d, &op->acquire);
        break;
    case OP_RELEASE:
        say_release(d, &op->release);
        break;
    case OP_RENEW:
        say_renew(d, &op->renew);
        break;
    case OP_ATTACH:
        say_target(d, &op->attach.target);
        differ_say(d, "%s", op->attach.exact ? " exact" : "");
        break;
    case OP_RESTORE:
        say_restore(d, &op->restore);
        break;
    case OP_QUEUE:
    case OP_LEAVE:
        say_queue(d, &op->queue);
        break;
    case OP_ACQUIRE_BATCH:
    case OP_INSPECT:
        break;
    }
}

/* --- comparing ------------------------------------------------------------ */

static bool near(int64_t a, int64_t b)
{
    return a == b || (a > 0 && b > 0 && llabs(a - b) <= DIFFER_SLACK_MS);
}

static void say_result(struct differ *d, const char *who, const struct op_result *r)
{
    differ_say(d,
               "\n    %s: status %d token %" PRIu64 " ttl %" PRId64 " count %" PRId64
               "%s%s%s%s%s%s%s%s kind %s owner '%.*s' entry '%.*s' text '%.*s'",
               who, (int)r->status, r->token, r->ttl_ms, r->count,
               r->attached ? " attached" : "", r->elsewhere ? " elsewhere" : "",
               r->moved ? " moved" : "", r->freed ? " freed" : "",
               r->fair ? " fair" : "", r->shared ? " shared" : "", r->rw ? " rw" : "",
               r->plain ? " plain" : "", KINDS[r->lock_kind], S(r->owner), S(r->entry),
               S(r->text));
}

static bool same_fields(const struct op_result *a, const struct op_result *b)
{
    size_t found = 0;

    for (size_t i = 0; i < a->field_count; i++) {
        for (size_t k = 0; k < b->field_count; k++) {
            const struct op_field *x = &a->fields[i];
            const struct op_field *y = &b->fields[k];

            found += span_eq(x->owner, y->owner) && x->count == y->count &&
                             x->token == y->token && x->lock_kind == y->lock_kind
                         ? 1
                         : 0;
        }
    }
    return a->field_count == b->field_count && found == a->field_count;
}

static bool same_lists(const struct op_result *a, const struct op_result *b)
{
    if (a->item_count != b->item_count || a->queue_count != b->queue_count) {
        return false;
    }
    for (size_t i = 0; i < a->item_count; i++) {
        if (a->items[i] != b->items[i]) {
            return false;
        }
    }
    for (size_t i = 0; i < a->queue_count; i++) {
        if (!span_eq(a->queue[i], b->queue[i])) {
            return false;
        }
    }
    return same_fields(a, b);
}

static bool same(const struct op_result *a, const struct op_result *b)
{
    return a->status == b->status && a->token == b->token &&
           near(a->ttl_ms, b->ttl_ms) && a->count == b->count &&
           a->attached == b->attached && a->elsewhere == b->elsewhere &&
           a->restored == b->restored && a->moved == b->moved && a->freed == b->freed &&
           a->fair == b->fair && a->shared == b->shared && a->rw == b->rw &&
           a->plain == b->plain && a->lock_kind == b->lock_kind &&
           span_eq(a->owner, b->owner) && span_eq(a->entry, b->entry) &&
           same_lists(a, b);
}

static void compare_results(struct differ *d, const char *name,
                            const struct op_result *real, const struct op_result *model)
{
    bool equal = same(real, model) && real->batch_count == model->batch_count;

    for (size_t i = 0; equal && i < real->batch_count; i++) {
        equal = same(&real->batch[i], &model->batch[i]);
    }
    if (equal) {
        return;
    }
    say_result(d, "Redis", real);
    say_result(d, "model", model);
    for (size_t i = 0; i < real->item_count && i < model->item_count; i++) {
        differ_say(d, "\n    item %zu: Redis %d, model %d", i, (int)real->items[i],
                   (int)model->items[i]);
    }
    for (size_t i = 0; i < real->batch_count && i < model->batch_count; i++) {
        say_result(d, "Redis, one", &real->batch[i]);
        say_result(d, "model, one", &model->batch[i]);
    }
    differ_fail(d, name, "the answers differ");
}

/* When it is asked, and as the model has it. */
struct asking {
    struct op_times real;
    struct redis_times model;
};

static struct asking some_asking(struct differ *d, bool late, bool over)
{
    uint64_t now_us = redis_time_us();
    uint64_t asked = late ? d->start_ms - 1000 : now_us / 1000;
    uint64_t deadline_us = over ? now_us - 1000000 : now_us + 60000000;

    return (struct asking){
        .real = { .asked_us = late ? asked * 1000 : now_us,
                  .deadline_us = deadline_us },
        .model = { asked, deadline_us / 1000 },
    };
}

/* The model does what a script has just done; `real` is its answer. */
static void compare_with_model(struct differ *d, const char *instance,
                               const struct op *op, struct asking asking,
                               const struct op_result *real)
{
    static struct redis_reply reply;
    static enum renew_result items[OP_RENEW_MAX];
    static struct op_result batch[OP_BATCH_MAX];
    const char *name = differ_text(d, "%.*s", S(op->name));

    (void)differ_name(d, name);
    reply.items = items;
    reply.batch = batch;
    sim_redis_run(&d->model, instance, op, asking.model, &reply);
    if (op->kind == OP_ATTACH) {
        reply.result.count = real->count; /* not promised */
    }
    if (reply.result.status == OP_ENDED) {
        reply.result.token = real->token; /* nor this */
    }
    compare_results(d, name, real, &reply.result);
}

static void run_both(struct differ *d, const char *instance, const struct op *op,
                     bool late, bool over)
{
    struct asking asking = some_asking(d, late, over);

    say_op(d, instance, op, asking.real);
    if (over) {
        differ_say(d, " over");
    }
    compare_with_model(d, instance, op, asking, run_times(instance, op, asking.real));
}

/* One call, as that of several ops in a row. */
static void run_gathered(struct differ *d, const char *instance, const struct op *ops,
                         size_t count, bool over)
{
    static struct script_batch g;
    struct asking asking = some_asking(d, false, over);
    bool acquire = ops->kind == OP_ACQUIRE;

    differ_say(d, "together%s: ", over ? " over" : "");
    for (size_t i = 0; i < count; i++) {
        say_op(d, instance, &ops[i], asking.real);
        script_batch_add(&g, &ops[i]);
    }
    run_some(instance, acquire ? g.acquires.ops : g.releases.ops, count, asking.real);
    script_batch_clear(&g);
    for (size_t i = 0; i < count; i++) {
        compare_with_model(d, instance, &ops[i], asking, some_result(i));
    }
}

/* --- making --------------------------------------------------------------- */

static void maybe_wait(struct differ *d, const char *instance, struct op *op)
{
    op->acquire.fair = op->acquire.claim.lock_kind == KIND_FAIR;
    if (op->acquire.fair) {
        op->acquire.enqueue = dice_chance(&d->dice, 700);
        op->acquire.was_queued = dice_chance(&d->dice, 150);
        op->acquire.claim.member =
            differ_member(d, instance, dice_below(&d->dice, DIFFER_MEMBERS));
    }
}

/* As a quorum asks, which has no fair locks: the token is proposed. */
static void maybe_propose(struct differ *d, struct op *op)
{
    if (d->mix.fair || op->acquire.claim.lock_kind != KIND_PLAIN ||
        op->acquire.claim.kind == OWNER_ANONYMOUS || !dice_chance(&d->dice, 300)) {
        return;
    }
    op->acquire.propose = op->seen_token + 1 - 2 * dice_below(&d->dice, 1500);
    op->acquire.raise_token = dice_chance(&d->dice, 300);
    op->acquire.leave_keeper = dice_chance(&d->dice, 500);
    op->acquire.unsent_from = op->acquire.propose - dice_below(&d->dice, 10000);
}

static void make_release(struct differ *d, struct redis_name *n, const char *instance,
                         struct op *op)
{
    op->release.force = dice_chance(&d->dice, 100);
    op->release.target = differ_target(d, n, op->rw, op->release.force);
    op->release.if_keeper = !op->release.force && dice_chance(&d->dice, 200);
    if (!d->mix.fair && op->release.if_keeper && dice_chance(&d->dice, 700)) {
        op->release.unsent_from = n->fence_token;
    }
    op->release.leave_tombstone = dice_chance(&d->dice, 700);
    op->release.tombstone_if_missing = op->release.leave_tombstone &&
                                       !op->release.if_keeper && !op->release.force &&
                                       d->step % 4 == 0 &&
                                       (op->release.target.kind == TARGET_ENTRY ||
                                        op->release.target.kind == TARGET_ID);
    op->release.subscribed = dice_chance(&d->dice, 300);
    op->release.has_next = dice_chance(&d->dice, 500);
    if (op->release.has_next) {
        op->release.next = differ_claim(d, instance, op->rw);
        op->release.yield = (enum yield)dice_below(&d->dice, 3);
        if (op->release.next.lock_kind == KIND_FAIR) {
            op->release.next.member =
                differ_member(d, instance, dice_below(&d->dice, DIFFER_MEMBERS));
        }
    }
}

static void make_members(struct differ *d, const char *instance, struct op *op)
{
    static struct span members[DIFFER_MEMBERS];
    static uint64_t waited[DIFFER_MEMBERS];
    size_t first = dice_below(&d->dice, DIFFER_MEMBERS);

    op->queue.count = dice_below(&d->dice, DIFFER_MEMBERS);
    for (size_t i = 0; i < op->queue.count; i++) {
        members[i] = differ_member(d, instance, (first + i) % DIFFER_MEMBERS);
        waited[i] = (first * 7 + i * 5 + d->serial) % 11 * 100;
    }
    op->queue.members = members;
    op->queue.known = dice_below(&d->dice, op->queue.count + 1);
    op->queue.whole = dice_chance(&d->dice, 600);
    op->queue.waited_ms = op->queue.whole && d->serial % 2 == 0 ? waited : NULL;
}

static void make_items(struct differ *d, struct op *op)
{
    static struct renew_item items[2 * DIFFER_NAMES];

    op->renew.count = dice_between(&d->dice, 1, 2 * DIFFER_NAMES);
    for (size_t i = 0; i < op->renew.count; i++) {
        items[i] =
            differ_item(d, DIFFER_NAME[dice_below(&d->dice, DIFFER_NAMES)], op->rw);
    }
    op->renew.items = items;
}

static void make_many(struct differ *d, const char *instance, struct op *op)
{
    static struct batch_item batch[DIFFER_NAMES];
    bool anonymous = dice_chance(&d->dice, 500);

    op->rw = false;
    for (size_t i = 0; i < DIFFER_NAMES; i++) {
        batch[i].name = span_str(DIFFER_NAME[i]);
        do {
            batch[i].claim = differ_claim(d, instance, false);
        } while (batch[i].claim.lock_kind != KIND_PLAIN ||
                 (anonymous && batch[i].claim.kind != OWNER_ANONYMOUS));
    }
    op->batch.items = batch;
    op->batch.count = dice_between(&d->dice, 1, DIFFER_NAMES);
}

static enum op_kind some_op(struct differ *d, bool rw)
{
    static const unsigned PLAIN[] = { 40, 4, 26, 6, 6, 3, 14, 12, 5 };
    static const unsigned RW[] = { 45, 0, 30, 10, 10, 5, 20, 0, 0 };
    static const enum op_kind KIND[] = { OP_ACQUIRE, OP_ACQUIRE_BATCH, OP_RELEASE,
                                         OP_RENEW,   OP_ATTACH,        OP_INSPECT,
                                         OP_RESTORE, OP_QUEUE,         OP_LEAVE };

    return KIND[dice_weighted(&d->dice, rw ? RW : PLAIN, d->mix.fair ? 9 : 7)];
}

/* With one of the same kind of each other name; in any order. */
static void script_batch_more(struct differ *d, const char *instance,
                              const struct op *op, bool over)
{
    struct op ops[DIFFER_NAMES];
    size_t first = dice_below(&d->dice, DIFFER_NAMES);

    for (size_t i = 0; i < DIFFER_NAMES; i++) {
        const char *name = DIFFER_NAME[(first + i) % DIFFER_NAMES];
        struct redis_name *n = differ_name(d, name);

        ops[i] = *op;
        if (span_eq(op->name, span_str(name))) {
            continue;
        }
        ops[i].name = span_str(name);
        if (op->kind == OP_ACQUIRE) {
            ops[i].acquire.claim.lease_ms = differ_lease(d);
        } else if (dice_chance(&d->dice, 700)) {
            ops[i].release.target.token = n->fence_token == 0 ? 7 : n->fence_token;
            ops[i].release.target.field = span_str(
                differ_text(d, "latchd:%" PRIu64, ops[i].release.target.token));
        }
    }
    run_gathered(d, instance, ops, DIFFER_NAMES, over);
}

void differ_op(struct differ *d, const char *name)
{
    const char *instance = differ_instance(d);
    struct redis_name *n = differ_name(d, name);
    struct op op = { .name = span_str(name), .fair_wait_ms = DIFFER_FAIR_WAIT };

    op.rw = differ_is_rw(d, n);
    op.kind = some_op(d, op.rw);
    /* Beyond what the clock says, so that both find the same token. */
    op.seen_token = (UINT64_C(1) << 52) + ++d->serial * 1000;
    switch (op.kind) {
    case OP_ACQUIRE:
        op.acquire.claim = differ_claim(d, instance, op.rw);
        op.acquire.reenter_only = dice_chance(&d->dice, 100);
        maybe_wait(d, instance, &op);
        maybe_propose(d, &op);
        break;
    case OP_ACQUIRE_BATCH:
        make_many(d, instance, &op);
        break;
    case OP_RELEASE:
        make_release(d, n, instance, &op);
        break;
    case OP_RENEW:
        make_items(d, &op);
        break;
    case OP_ATTACH:
        op.attach.target = differ_target(d, n, op.rw, false);
        if (op.attach.target.kind == TARGET_OWNER ||
            op.attach.target.kind == TARGET_VALUE) {
            op.attach.target.entry = SPAN_NONE; /* that is for a release */
        }
        op.attach.lease_ms = differ_lease(d);
        op.attach.exact = dice_chance(&d->dice, 300);
        break;
    case OP_RESTORE:
        differ_restore(d, n, instance, &op);
        break;
    case OP_QUEUE:
    case OP_LEAVE:
        make_members(d, instance, &op);
        break;
    case OP_INSPECT:
        break;
    }
    if (d->mix.plain && dice_chance(&d->dice, 300) && script_batch_is_simple(&op)) {
        script_batch_more(d, instance, &op, dice_chance(&d->dice, 20));
        return;
    }
    run_both(d, instance, &op, dice_chance(&d->dice, 100),
             op.kind != OP_INSPECT && dice_chance(&d->dice, 10));
}
