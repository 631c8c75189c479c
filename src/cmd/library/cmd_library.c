/* SET, SETNX, GET, EXISTS, TTL, PTTL, DEL, UNLINK, EXPIRE and the like: what lock
 * libraries send to a Redis. */
#include "cmd/handlers.h"
#include "cmd/library/library_args.h"
#include "cmd/library/library_call.h"
#include "cmd/library/watch.h"
#include "cmd/observe/refusals.h"
#include "cmd/redis_only.h"

bool ctx_serves_libraries(struct command_ctx *ctx)
{
    if (!ctx->cmd->limits.lock_libraries) {
        ctx_only_redis(ctx, redis_only_advice(ctx->argv[0]));
    }
    return ctx->cmd->limits.lock_libraries;
}

static enum plain_set plain_set_of(const struct command_ctx *ctx)
{
    const struct multi *multi = ctx->client->multi;
    struct watch *watch = multi_is_running(multi) ? multi_watch(multi) : NULL;

    return watch != NULL && ctx->argc > 2 && ctx_arg_is(ctx, 0, "SET")
               ? watch_plain_set(watch, ctx->argv[1], ctx->argv[2])
               : PLAIN_SET_REFUSED;
}

void cmd_library(struct command_ctx *ctx)
{
    char text[LIBRARY_ERROR_ROOM];
    struct lock_call call;

    if (!ctx_serves_libraries(ctx)) {
        return;
    }
    if (!library_args_parse(ctx->argv, ctx->argc, plain_set_of(ctx), &call, text)) {
        ctx_refuse(ctx, LATCHD_ERR, "%s", text);
        return;
    }
    library_begin(ctx, &call);
}

/* Some libraries read a key of their own when they connect, whatever the server is. */
void cmd_get(struct command_ctx *ctx)
{
    if (ctx->cmd->limits.lock_libraries) {
        cmd_library(ctx);
    } else {
        ctx_null(ctx);
    }
}

void cmd_exists(struct command_ctx *ctx)
{
    if (ctx->cmd->limits.lock_libraries) {
        cmd_library(ctx);
    } else {
        resp_int(ctx->out, 0);
    }
}
