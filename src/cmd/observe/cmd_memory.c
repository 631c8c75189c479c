/* MEMORY: what names take here, and what the allocator says about the whole. */
#include "cmd/handlers.h"

#include "util/parse.h"

#include <inttypes.h>
#include <malloc.h>

enum {
    SAMPLES_DEFAULT = 1000,       /* holders and waiters that MEMORY USAGE looks at */
    WASTE_MIN = 64 * 1024 * 1024, /* what is free below this is not worth a word */
};

void cmd_memory_usage(struct command_ctx *call)
{
    int64_t samples = SAMPLES_DEFAULT;
    size_t size;

    for (size_t at = 3; at < call->argc; at += 2) {
        if (!ctx_arg_is(call, at, "SAMPLES") || at + 1 == call->argc) {
            ctx_syntax_error(call);
            return;
        }
        if (!ctx_arg_int(call, at + 1, &samples)) {
            return;
        }
        if (samples < 0) {
            ctx_syntax_error(call);
            return;
        }
    }
    size = engine_memory(call->cmd->env.engine, call->argv[2],
                         samples == 0 ? SIZE_MAX : (size_t)samples);
    if (size == 0) {
        ctx_null(call);
    } else {
        resp_int(call->out, (int64_t)size);
    }
}

static size_t count_allocated(const struct mallinfo2 *heap)
{
    return heap->uordblks + heap->hblkhd;
}

static void add_field(struct command_ctx *call, const char *name, uint64_t value)
{
    resp_bulk_str(call->out, name);
    resp_int(call->out, (int64_t)value);
}

/* Redis's fields, those that mean something here. */
void cmd_memory_stats(struct command_ctx *call)
{
    struct mallinfo2 heap = mallinfo2();
    struct engine_stats locks;
    struct net_stats net;

    engine_stats(call->cmd->env.engine, &locks);
    net_stats(call->cmd->env.net, &net);
    resp_map(call->out, call->proto, 6);
    add_field(call, "total.allocated", count_allocated(&heap));
    add_field(call, "keys.count", locks.locks);
    add_field(call, "clients.count", net.open);
    add_field(call, "allocator.allocated", count_allocated(&heap));
    add_field(call, "allocator.resident", heap.arena + heap.hblkhd);
    add_field(call, "allocator.free", heap.fordblks);
}

void cmd_memory_doctor(struct command_ctx *call)
{
    struct mallinfo2 heap = mallinfo2();
    struct buf text = { 0 };

    if (heap.fordblks > WASTE_MIN && heap.fordblks > count_allocated(&heap)) {
        buf_printf(&text,
                   "The allocator keeps %zu bytes that nobody uses, for %zu that are "
                   "in use. MEMORY PURGE gives back what it can.\n",
                   heap.fordblks, count_allocated(&heap));
    } else {
        buf_printf(&text, "No problem was found: %zu bytes are in use, %zu are free.\n",
                   count_allocated(&heap), heap.fordblks);
    }
    resp_verbatim(call->out, call->proto, buf_span(&text));
    buf_reset(&text);
}

void cmd_memory_malloc_stats(struct command_ctx *call)
{
    struct mallinfo2 heap = mallinfo2();
    struct buf text = { 0 };

    buf_printf(&text, "arena:%zu\nmapped:%zu\nmapped_blocks:%zu\n", heap.arena,
               heap.hblkhd, heap.hblks);
    buf_printf(&text, "used:%zu\nfree:%zu\nfree_blocks:%zu\nfree_at_top:%zu\n",
               heap.uordblks, heap.fordblks, heap.ordblks, heap.keepcost);
    resp_verbatim(call->out, call->proto, buf_span(&text));
    buf_reset(&text);
}

void cmd_memory_purge(struct command_ctx *call)
{
    (void)malloc_trim(0);
    resp_simple(call->out, "OK");
}
