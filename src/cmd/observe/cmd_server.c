/* SHUTDOWN, DBSIZE, MEMORY USAGE, and what clients probe for that a lock service does
 * not have. */
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"

enum { SAMPLES_DEFAULT = 1000 }; /* holders and waiters that are looked at */

void cmd_shutdown(struct command_ctx *ctx)
{
    for (size_t i = 1; i < ctx->argc; i++) {
        if (ctx_arg_is(ctx, i, "ABORT") && ctx->argc == 2) {
            ctx_error(ctx, LATCHD_ERR, "No shutdown in progress.");
            return;
        }
        if (!ctx_arg_is(ctx, i, "SAVE") && !ctx_arg_is(ctx, i, "NOSAVE") &&
            !ctx_arg_is(ctx, i, "NOW") && !ctx_arg_is(ctx, i, "FORCE")) {
            ctx_syntax_error(ctx);
            return;
        }
    }
    /* As in Redis, the connection ends without a reply. */
    conn_suspend(ctx->conn);
    log_about_client(ctx, LOG_NOTICE, SPAN_NONE, "SHUTDOWN");
    ctx->cmd->env.shutdown(ctx->cmd->env.ctx);
}

void cmd_dbsize(struct command_ctx *ctx)
{
    struct engine_stats stats;

    engine_stats(ctx->cmd->env.engine, &stats);
    resp_int(ctx->out, (int64_t)stats.locks);
}

void cmd_cluster(struct command_ctx *ctx)
{
    ctx_error(ctx, LATCHD_ERR, "This instance has cluster support disabled");
}

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
