/* Renewing: many holds in one call. */
#include "backend/script/script_call_priv.h"

#include <assert.h>

/* Of what is renewed most there is nothing to say but the token. */
static bool is_short(const struct renew_item *item)
{
    return item->kind == OWNER_ANONYMOUS && !item->exact && !item->fence &&
           !item->has_keeper_key && item->token != 0 &&
           script_field_token(item->field) == item->token;
}

/* How many of the first are, with one lease. */
static size_t count_short(const struct op *op)
{
    size_t count = 0;

    if (op->rw) {
        return 0; /* its script knows no such thing */
    }
    while (count < op->renew.count && is_short(&op->renew.items[count]) &&
           op->renew.items[count].lease_ms == op->renew.items[0].lease_ms) {
        count++;
    }
    return count;
}

static void add_item(struct buf *out, const struct renew_item *item)
{
    struct span letters[] = {
        script_kind_letter(item->kind),
        item->exact ? SPAN("x") : SPAN_NONE,
        item->fence ? SPAN("f") : SPAN_NONE,
        item->has_keeper_key ? SPAN("k") : SPAN_NONE,
        item->lock_kind == KIND_WRITE  ? SPAN("w")
        : item->lock_kind == KIND_READ ? SPAN("r")
                                       : SPAN_NONE,
    };

    command_join(out, letters, sizeof(letters) / sizeof(letters[0]));
    command_uint(out, item->lease_ms);
    command_word(out, item->field);
    command_uint(out, item->token);
    command_word(out, item->entry);
}

static void add_keys(struct buf *out, const struct op *op, size_t shorts)
{
    for (size_t i = 0; i < op->renew.count; i++) {
        const struct renew_item *item = &op->renew.items[i];

        command_word(out, item->name);
        if (i < shorts) {
            continue;
        }
        if (item->kind == OWNER_NAMED) {
            command_key(out, SCRIPT_ENTRIES, item->name, SPAN_NONE);
        } else {
            script_key_of(out, SCRIPT_KEEPER, item->name, item->field);
        }
    }
    script_keys_end(out, op, op->renew.items[0].name);
}

void script_call_renew(struct buf *out, const struct op *op, const char *instance,
                       struct op_times times)
{
    size_t shorts = count_short(op), others = op->renew.count - shorts;
    size_t args = (op->rw ? 3 : 5) + shorts + 5 * others;

    assert(op->renew.count <= OP_RENEW_MAX);
    script_begin(out, op, times, op->rw ? LUA_RW_RENEW : LUA_RENEW, shorts + 2 * others,
                 args);
    add_keys(out, op, shorts);
    command_uint(out, times.deadline_us);
    command_word(out, span_str(instance));
    command_uint(out, OP_FENCE_TTL_MS);
    if (!op->rw) {
        command_uint(out, shorts);
        command_uint(out, shorts > 0 ? op->renew.items[0].lease_ms : 0);
    }
    for (size_t i = 0; i < shorts; i++) {
        command_uint(out, op->renew.items[i].token);
    }
    for (size_t i = shorts; i < op->renew.count; i++) {
        add_item(out, &op->renew.items[i]);
    }
}
