/* The scripts that do several simple ops in one call. */
#include "backend/script/script_batch.h"
#include "backend/script/script_call_priv.h"
#include "util/digits.h"

#include <assert.h>

/* Of the keys at which Redisson's RFencedLock counts its tokens. */
static const char COUNTER[] = "redisson_lock_token:";

static uint64_t highest_seen(const struct op *ops, size_t count)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < count; i++) {
        seen = ops[i].seen_token > seen ? ops[i].seen_token : seen;
    }
    return seen;
}

static bool lease_is_common(const struct batch_item *items, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (items[i].claim.lease_ms != items[0].claim.lease_ms) {
            return false;
        }
    }
    return true;
}

/* A number with a `-` before it, which says one thing more. */
static void add_dashed(struct buf *out, uint64_t number)
{
    char text[DIGITS_MAX];
    const char *from = digits_before(text + sizeof(text), number);
    struct span parts[] = { SPAN("-"),
                            span_of(from, (size_t)(text + sizeof(text) - from)) };

    command_join(out, parts, sizeof(parts) / sizeof(parts[0]));
}

/* Writes the items; `op` has what all of them have in common. */
static void acquire_items(struct buf *out, const struct op *op,
                          const struct batch_item *items, size_t count,
                          const char *instance, struct op_times times)
{
    bool common = lease_is_common(items, count);

    script_begin(out, op, times, LUA_ACQUIRE_BATCH, 4 * count,
                 3 + (common ? count : 2 * count));
    for (size_t i = 0; i < count; i++) {
        command_word(out, items[i].name);
    }
    for (size_t i = 0; i < count; i++) {
        command_key(out, SCRIPT_QUEUE, items[i].name, SPAN_NONE);
    }
    for (size_t i = 0; i < count; i++) {
        command_key(out, COUNTER, items[i].name, SPAN_NONE);
    }
    for (size_t i = 0; i < count; i++) {
        command_key(out, SCRIPT_FENCE, items[i].name, SPAN_NONE);
    }
    script_keys_end(out, op, items[0].name);
    script_stamp(out, op->seen_token, instance, times);
    (op->kind == OP_ACQUIRE_BATCH ? add_dashed : command_uint)(
        out, script_helper_ttl(items[0].claim.lease_ms));
    command_uint(out, items[0].claim.lease_ms);
    for (size_t i = 0; i < count; i++) {
        command_word(out, script_claim_word(&items[i].claim));
    }
    for (size_t i = 0; i < count && !common; i++) {
        command_uint(out, items[i].claim.lease_ms);
    }
}

static void acquire_some(struct buf *out, const struct op *ops, size_t count,
                         const char *instance, struct op_times times)
{
    struct batch_item items[SCRIPT_BATCH_MAX];
    struct op common = { .kind = OP_ACQUIRE, .seen_token = highest_seen(ops, count) };

    for (size_t i = 0; i < count; i++) {
        items[i] =
            (struct batch_item){ .name = ops[i].name, .claim = ops[i].acquire.claim };
    }
    acquire_items(out, &common, items, count, instance, times);
}

bool script_call_in_order(struct buf *out, const struct op *op, const char *instance,
                          struct op_times times)
{
    if (op->batch.reenter_only) {
        return false;
    }
    for (size_t i = 0; i < op->batch.count; i++) {
        if (op->batch.items[i].claim.kind != OWNER_ANONYMOUS) {
            return false;
        }
    }
    acquire_items(out, op, op->batch.items, op->batch.count, instance, times);
    return true;
}

/* The marks' times differ if the configuration changed between the ops. */
static uint64_t longest_tombstone(const struct op *ops, size_t count)
{
    uint64_t longest = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t ms = op_tombstone_ms(&ops[i]);

        longest = ms > longest ? ms : longest;
    }
    return longest;
}

static bool target_is_common(const struct op *ops, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct op_release *r = &ops[i].release;

        if (r->target.token != ops[0].release.target.token ||
            r->leave_tombstone != ops[0].release.leave_tombstone) {
            return false;
        }
    }
    return true;
}

static void release_some(struct buf *out, const struct op *ops, size_t count,
                         const char *instance, struct op_times times)
{
    size_t targets = target_is_common(ops, count) ? 1 : count;

    script_begin(out, ops, times, LUA_RELEASE_BATCH, 2 * count, 3 + targets);
    for (size_t i = 0; i < count; i++) {
        command_word(out, ops[i].name);
    }
    for (size_t i = 0; i < count; i++) {
        command_key(out, SCRIPT_QUEUE, ops[i].name, SPAN_NONE);
    }
    script_stamp(out, highest_seen(ops, count), instance, times);
    command_uint(out, longest_tombstone(ops, count));
    command_uint(out, ops[0].fair_wait_ms);
    for (size_t i = 0; i < targets; i++) {
        const struct op_release *r = &ops[i].release;

        (r->leave_tombstone ? command_uint : add_dashed)(out, r->target.token);
    }
}

void script_call_batch(struct buf *out, const struct op *ops, size_t count,
                       const char *instance, struct op_times times)
{
    assert(count > 1 && count <= SCRIPT_BATCH_MAX);
    if (ops->kind == OP_ACQUIRE) {
        acquire_some(out, ops, count, instance, times);
    } else {
        release_some(out, ops, count, instance, times);
    }
}
