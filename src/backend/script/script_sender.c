#include "backend/script/script_sender.h"

#include "backend/script/script_codec.h"

static void send_ops(struct script_sender *s, const struct op *ops, size_t count)
{
    struct op_times times;
    struct buf *out;

    if (count == 0) {
        return;
    }
    out = redis_link_call_batch(s->link, ops, count, &times);
    if (out != NULL) {
        script_call(out, ops, count, s->instance, times);
    }
}

void script_sender_submit(struct script_sender *s, const struct op *op)
{
    bool simple =
        s->batches && script_batch_is_simple(op) && redis_link_takes_batch(s->link);

    if (script_batch_is_in_the_way(&s->batch, op, simple)) {
        script_sender_flush(s);
    }
    if (simple) {
        script_batch_add(&s->batch, op);
    } else {
        send_ops(s, op, 1);
    }
}

void script_sender_flush(struct script_sender *s)
{
    send_ops(s, s->batch.releases.ops, s->batch.releases.count);
    send_ops(s, s->batch.acquires.ops, s->batch.acquires.count);
    script_batch_clear(&s->batch);
}
