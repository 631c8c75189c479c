#include "store/sender.h"

#include "store/script_call.h"

static void send_ops(struct sender *s, const struct op *ops, size_t count)
{
    struct op_times times;
    struct buf *out;

    if (count == 0) {
        return;
    }
    out = redis_link_call_some(s->link, ops, count, &times);
    if (out != NULL && count == 1) {
        script_call(out, ops, s->instance, times);
    } else if (out != NULL) {
        script_call_some(out, ops, count, s->instance, times);
    }
}

void sender_submit(struct sender *s, const struct op *op)
{
    bool simple = s->gathers && gather_is_simple(op) && redis_link_takes_some(s->link);

    if (gather_is_in_the_way(&s->gather, op, simple)) {
        sender_flush(s);
    }
    if (simple) {
        gather_add(&s->gather, op);
    } else {
        send_ops(s, op, 1);
    }
}

void sender_flush(struct sender *s)
{
    send_ops(s, s->gather.releases.ops, s->gather.releases.count);
    send_ops(s, s->gather.acquires.ops, s->gather.acquires.count);
    gather_clear(&s->gather);
}
