/* From an op to the script that does it. */
#include "sim/sim_redis_rw.h"

/* The mark that answers a release which is sent again. */
static struct redis_mark *mark_of(struct run *c)
{
    const struct target *t = &c->op->release.target;

    return c->op->kind != OP_RELEASE ? NULL
           : c->op->rw               ? rw_find_mark(c->n, t)
                                     : find_mark(c->n, t);
}

/* Not the kind of lock that the op is about: nothing is touched. */
static bool wrong_type(struct run *c)
{
    bool is_rw = c->n->mode != MODE_NONE;
    struct redis_mark *m;

    if (c->op->kind == OP_LEAVE) {
        return false; /* whatever the lock has become: nobody else takes them out */
    }
    if (!c->n->is_string &&
        (c->n->field_count == 0 || is_rw == c->op->rw || c->op->kind == OP_INSPECT)) {
        return false;
    }
    c->result->status = OP_WRONGTYPE;
    if (c->n->is_string) {
        return true;
    }
    if (c->op->kind == OP_RESTORE && run_restore_is_over(c)) {
        c->result->status = OP_ENDED;
        return true;
    }
    m = mark_of(c);
    if (m != NULL) {
        c->result->status = OP_ENDED;
        c->result->count = m->left;
        return true;
    }
    c->result->rw = is_rw;
    c->result->plain = !is_rw;
    return true;
}

static void acquire(struct run *c)
{
    if (c->op->rw) {
        run_acquire_rw(c);
    } else {
        run_acquire(c);
    }
}

static void acquire_many(struct run *c)
{
    const struct op *op = c->op;
    bool granted = true;

    for (size_t i = 0; i < op->batch.count && granted; i++) {
        struct op one = *op;
        struct run of_one = *c;

        one.kind = OP_ACQUIRE;
        one.name = op->batch.items[i].name;
        one.acquire = (struct op_acquire){ .claim = op->batch.items[i].claim,
                                           .reenter_only = op->batch.reenter_only };
        of_one.op = &one;
        of_one.n = sim_redis_name(c->r, one.name);
        of_one.result = &c->reply->batch[i];
        *of_one.result = (struct op_result){ .id = op->id };
        if (!wrong_type(&of_one)) {
            acquire(&of_one);
        }
        granted = of_one.result->status == OP_OK;
        c->result->batch_count = i + 1;
    }
    c->result->batch = c->reply->batch;
    c->result->status = OP_OK;
}

static void release(struct run *c)
{
    if (c->op->rw) {
        run_release_rw(c);
    } else {
        run_release(c);
    }
}

static void attach(struct run *c)
{
    if (c->op->rw) {
        run_attach_rw(c);
    } else {
        run_attach(c);
    }
}

void sim_redis_run(struct sim_redis *r, const char *instance, const struct op *op,
                   struct redis_times times, struct redis_reply *ret)
{
    static void (*const RUN[])(struct run *) = {
        [OP_ACQUIRE] = acquire,     [OP_ACQUIRE_BATCH] = acquire_many,
        [OP_RELEASE] = release,     [OP_RENEW] = run_renew,
        [OP_ATTACH] = attach,       [OP_INSPECT] = run_inspect,
        [OP_QUEUE] = run_queue,     [OP_LEAVE] = run_leave,
        [OP_RESTORE] = run_restore,
    };
    struct run c = { r, NULL, instance, op, ret, &ret->result, times, false };

    memset(&ret->result, 0, sizeof(ret->result));
    ret->result.id = op->id;
    r->scripts++;
    r->us += r->us < 999 ? 1 : 0;
    r->acquires += op->kind == OP_ACQUIRE ? 1 : 0;
    r->releases += op->kind == OP_RELEASE ? 1 : 0;
    if (r->now_ms > times.deadline) {
        ret->result.status = OP_LATE;
        return;
    }
    if (op->kind != OP_RENEW && op->kind != OP_ACQUIRE_BATCH) {
        c.n = sim_redis_name(r, op->name);
        if (wrong_type(&c)) {
            return;
        }
    }
    RUN[op->kind](&c);
}
