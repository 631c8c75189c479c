/* The scripts that do several simple ops in one call. */
#include "store/gather.h"
#include "store/script_call_priv.h"
#include "util/digits.h"

#include <assert.h>

static uint64_t highest_seen(const struct op *ops, size_t count)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < count; i++) {
        seen = ops[i].seen_token > seen ? ops[i].seen_token : seen;
    }
    return seen;
}

static bool lease_is_common(const struct op *ops, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (ops[i].claim.lease_ms != ops[0].claim.lease_ms) {
            return false;
        }
    }
    return true;
}

static void keys(struct buf *out, const struct op *ops, size_t count,
                 const char *prefix)
{
    for (size_t i = 0; i < count; i++) {
        command_key(out, prefix, ops[i].name, SPAN_NONE);
    }
}

static void begin(struct buf *out, const struct op *ops, size_t count,
                  const char *instance, struct op_times times, enum lua_id script,
                  size_t args)
{
    bool acquires = script == LUA_ACQUIRE_SOME;

    script_begin(out, ops, times, script, (acquires ? 3 : 2) * count, args);
    for (size_t i = 0; i < count; i++) {
        command_word(out, ops[i].name);
    }
    keys(out, ops, count, SCRIPT_QUEUE);
    if (acquires) {
        keys(out, ops, count, SCRIPT_FENCE);
    }
    script_stamp(out, highest_seen(ops, count), instance, times);
}

static void acquire_some(struct buf *out, const struct op *ops, size_t count,
                         const char *instance, struct op_times times)
{
    bool common = lease_is_common(ops, count);

    begin(out, ops, count, instance, times, LUA_ACQUIRE_SOME,
          3 + (common ? count : 2 * count));
    command_uint(out, script_helper_ttl(0));
    command_uint(out, ops[0].claim.lease_ms);
    for (size_t i = 0; i < count; i++) {
        command_word(out, script_claim_word(&ops[i].claim));
    }
    for (size_t i = 0; i < count && !common; i++) {
        command_uint(out, ops[i].claim.lease_ms);
    }
}

/* A token, and that no mark is left. */
static void add_unmarked(struct buf *out, uint64_t token)
{
    char text[DIGITS_MAX];
    const char *from = digits_before(text + sizeof(text), token);
    struct span parts[] = { SPAN("-"),
                            span_of(from, (size_t)(text + sizeof(text) - from)) };

    command_join(out, parts, sizeof(parts) / sizeof(parts[0]));
}

/* They differ if the configuration has changed in between. */
static uint64_t longest_mark(const struct op *ops, size_t count)
{
    uint64_t longest = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t ms = op_ended_ms(&ops[i]);

        longest = ms > longest ? ms : longest;
    }
    return longest;
}

static void release_some(struct buf *out, const struct op *ops, size_t count,
                         const char *instance, struct op_times times)
{
    begin(out, ops, count, instance, times, LUA_RELEASE_SOME, 3 + count);
    command_uint(out, longest_mark(ops, count));
    command_uint(out, ops[0].fair_wait_ms);
    for (size_t i = 0; i < count; i++) {
        (ops[i].mark ? command_uint : add_unmarked)(out, ops[i].target.token);
    }
}

void script_call_some(struct buf *out, const struct op *ops, size_t count,
                      const char *instance, struct op_times times)
{
    assert(count > 1 && count <= GATHER_MAX);
    if (ops->kind == OP_ACQUIRE) {
        acquire_some(out, ops, count, instance, times);
    } else {
        release_some(out, ops, count, instance, times);
    }
}
