/* MEMORY USAGE: the memory of a name. */
#include "cmd/handlers.h"

#include "util/parse.h"

enum { SAMPLES_DEFAULT = 1000 }; /* holders and waiters that are looked at */

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
