/* From an op to the script that does it. */
#include "sim/sim_redis_run.h"

/* Not the kind of lock that the op is about: nothing was touched. */
static bool wrong_type(struct run *c)
{
    if (c->n->is_string) {
        c->result->status = OP_WRONGTYPE;
        return true;
    }
    return false;
}

static void run_nothing(struct run *c)
{
    c->result->status = OP_ERROR;
    c->result->text = SPAN("not there yet");
}

void sim_redis_run(struct sim_redis *r, const char *instance, const struct op *op,
                   struct redis_times times, struct redis_reply *ret)
{
    static void (*const RUN[])(struct run *) = {
        [OP_ACQUIRE] = run_acquire, [OP_ACQUIRE_MANY] = run_nothing,
        [OP_RELEASE] = run_release, [OP_RENEW] = run_renew,
        [OP_ATTACH] = run_attach,   [OP_INSPECT] = run_inspect,
        [OP_QUEUE] = run_queue,     [OP_LEAVE] = run_leave,
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
    if (op->kind != OP_RENEW) {
        c.n = sim_redis_name(r, op->name);
        if (wrong_type(&c)) {
            return;
        }
    }
    RUN[op->kind](&c);
}
