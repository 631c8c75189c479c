/* The fair queue: its own scripts, and what it adds to others. */
#include "backend/script/script_call_priv.h"

#include <assert.h>

const char SCRIPT_QUEUE[] = "redisson_lock_queue:";
const char SCRIPT_CHANNEL[] = "redisson_lock__channel:";
static const char SCORES[] = "redisson_lock_timeout:";
static const char MARKS[] = "latchd:fair:";

static void add_queue_keys(struct buf *out, struct span name)
{
    command_key(out, SCRIPT_QUEUE, name, SPAN_NONE);
    command_key(out, SCORES, name, SPAN_NONE);
    command_key(out, MARKS, name, SPAN_NONE);
}

static void call_acquire(struct buf *out, const struct op *op, const char *instance,
                         struct op_times times)
{
    const struct claim *c = &op->acquire.claim;

    script_begin(out, op, times, LUA_FAIR_ACQUIRE, c->kind == OWNER_ANONYMOUS ? 5 : 7,
                 15);
    command_word(out, op->name);
    command_key(out, SCRIPT_FENCE, op->name, SPAN_NONE);
    add_queue_keys(out, op->name);
    script_claim_keys(out, op->name, c);
    script_keys_end(out, op, op->name);
    script_acquire_args(out, op, instance, times);
    command_word(out, c->entry);
    command_word(out, c->member);
    command_uint(out, op->fair_wait_ms);
    command_uint(out, op->acquire.enqueue ? 1 : 0);
    command_key(out, SCRIPT_CHANNEL, op->name, SPAN_NONE);
    command_uint(out, op->acquire.was_queued > 0 ? 1 : 0);
}

/* Writes the arguments that queue.lua and leave.lua share; their own follow. */
static void begin_members(struct buf *out, enum lua_id script, size_t args,
                          const struct op *op, const char *instance,
                          struct op_times times)
{
    assert(op->queue.count <= OP_QUEUE_MAX);
    script_begin(out, op, times, script, 4, 4 + args + op->queue.count);
    command_word(out, op->name);
    add_queue_keys(out, op->name);
    script_keys_end(out, op, op->name);
    command_uint(out, times.deadline_us);
    command_word(out, span_str(instance));
    command_uint(out, op->fair_wait_ms);
    command_key(out, SCRIPT_CHANNEL, op->name, SPAN_NONE);
}

static void add_members(struct buf *out, const struct op *op)
{
    for (size_t i = 0; i < op->queue.count; i++) {
        command_word(out, op->queue.members[i]);
    }
}

/* Since when each waits, in Redis's time. */
static void add_since(struct buf *out, const struct op *op, struct op_times times)
{
    uint64_t now_ms = times.asked_us / 1000;

    for (size_t i = 0; i < op->queue.count && op->queue.waited_ms != NULL; i++) {
        uint64_t waited = op->queue.waited_ms[i];

        command_uint(out, waited < now_ms ? now_ms - waited : 0);
    }
}

static void call_queue(struct buf *out, const struct op *op, const char *instance,
                       struct op_times times)
{
    bool ordered = op->queue.waited_ms != NULL;

    begin_members(out, LUA_FAIR_QUEUE, 2 + (ordered ? op->queue.count : 0), op,
                  instance, times);
    command_uint(out, ordered ? 2 : op->queue.whole ? 1 : 0);
    command_uint(out, op->queue.known);
    add_members(out, op);
    add_since(out, op, times);
}

bool script_call_fair(struct buf *out, const struct op *op, const char *instance,
                      struct op_times times)
{
    switch (op->kind) {
    case OP_ACQUIRE:
        if (op->acquire.fair) {
            call_acquire(out, op, instance, times);
        }
        return op->acquire.fair;
    case OP_QUEUE:
        call_queue(out, op, instance, times);
        return true;
    case OP_LEAVE:
        begin_members(out, LUA_FAIR_LEAVE, 0, op, instance, times);
        add_members(out, op);
        return true;
    default:
        return false;
    }
}
