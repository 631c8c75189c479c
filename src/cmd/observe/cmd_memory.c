/* MEMORY: the memory of names, and the allocator's totals. */
#include "cmd/handlers.h"

#include "util/parse.h"

#include <inttypes.h>
#include <malloc.h>

enum {
    SAMPLES_DEFAULT = 1000,       /* holders and waiters that MEMORY USAGE looks at */
    WASTE_MIN = 64 * 1024 * 1024, /* less free memory is not worth reporting */
};

void cmd_memory_usage(struct command_ctx *ctx)
{
    int64_t samples = SAMPLES_DEFAULT;
    size_t size;

    for (size_t at = 3; at < ctx->argc; at += 2) {
        if (!ctx_arg_is(ctx, at, "SAMPLES") || at + 1 == ctx->argc) {
            ctx_syntax_error(ctx);
            return;
        }
        if (!ctx_arg_int(ctx, at + 1, &samples)) {
            return;
        }
        if (samples < 0) {
            ctx_syntax_error(ctx);
            return;
        }
    }
    size = engine_memory(ctx->cmd->env.engine, ctx->argv[2],
                         samples == 0 ? SIZE_MAX : (size_t)samples);
    if (size == 0) {
        ctx_null(ctx);
    } else {
        resp_int(ctx->out, (int64_t)size);
    }
}

static size_t count_allocated(const struct mallinfo2 *heap)
{
    return heap->uordblks + heap->hblkhd;
}

static void add_field(struct command_ctx *ctx, const char *name, uint64_t value)
{
    resp_bulk_str(ctx->out, name);
    resp_int(ctx->out, (int64_t)value);
}

/* Redis's fields, those that mean something here. */
void cmd_memory_stats(struct command_ctx *ctx)
{
    struct mallinfo2 heap = mallinfo2();
    struct engine_stats locks;
    struct net_stats net;

    engine_stats(ctx->cmd->env.engine, &locks);
    net_stats(ctx->cmd->env.net, &net);
    resp_map(ctx->out, ctx->proto, 6);
    add_field(ctx, "total.allocated", count_allocated(&heap));
    add_field(ctx, "keys.count", locks.locks);
    add_field(ctx, "clients.count", net.open);
    add_field(ctx, "allocator.allocated", count_allocated(&heap));
    add_field(ctx, "allocator.resident", heap.arena + heap.hblkhd);
    add_field(ctx, "allocator.free", heap.fordblks);
}

void cmd_memory_doctor(struct command_ctx *ctx)
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
    resp_verbatim(ctx->out, ctx->proto, buf_span(&text));
    buf_reset(&text);
}

void cmd_memory_malloc_stats(struct command_ctx *ctx)
{
    struct mallinfo2 heap = mallinfo2();
    struct buf text = { 0 };

    buf_printf(&text, "arena:%zu\nmapped:%zu\nmapped_blocks:%zu\n", heap.arena,
               heap.hblkhd, heap.hblks);
    buf_printf(&text, "used:%zu\nfree:%zu\nfree_blocks:%zu\nfree_at_top:%zu\n",
               heap.uordblks, heap.fordblks, heap.ordblks, heap.keepcost);
    resp_verbatim(ctx->out, ctx->proto, buf_span(&text));
    buf_reset(&text);
}

void cmd_memory_purge(struct command_ctx *ctx)
{
    (void)malloc_trim(0);
    resp_simple(ctx->out, "OK");
}
