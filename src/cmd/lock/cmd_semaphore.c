/* SEMAPHORE: commands about a semaphore as a whole. */
#include "cmd/handlers.h"
#include "latchd/protocol.h"
#include "util/text.h"

static const struct lock_syntax SYNTAX_INFO = { "SEMAPHORE INFO", 0, RULE_NAME };
static const struct lock_syntax SYNTAX_LIMIT = { "SEMAPHORE LIMIT", 0,
                                                 RULE_NAME | RULE_TAKES };
static const struct lock_syntax SYNTAX_DELETE = { "SEMAPHORE DELETE", 0, RULE_NAME };

/* The name, which stands behind the subcommand. False: the request has been answered.
 */
static bool read_semaphore(struct command_ctx *ctx, const struct lock_syntax *syntax,
                           struct lock_args *ret)
{
    char text[ARGS_ERROR_ROOM];

    if (!lock_args_parse(syntax, &ctx->cmd->limits, ctx->argv + 2, 1, ret, text)) {
        ctx_error(ctx, LATCHD_ERR, "%s", text);
        return false;
    }
    ctx->subject = subject_of(ret);
    return true;
}

void cmd_semaphore_info(struct command_ctx *ctx)
{
    struct lock_args args;

    if (read_semaphore(ctx, &SYNTAX_INFO, &args)) {
        engine_semaphore_info(ctx->cmd->env.engine, ctx_wait(ctx), args.name);
    }
}

void cmd_semaphore_limit(struct command_ctx *ctx)
{
    struct lock_args args;
    uint64_t limit;

    if (!read_semaphore(ctx, &SYNTAX_LIMIT, &args)) {
        return;
    }
    if (!parse_u64(ctx->argv[3], LATCHD_LIMIT_MAX, &limit) || limit == 0) {
        ctx_error(ctx, LATCHD_ERR, "the limit must be 1..%d", LATCHD_LIMIT_MAX);
        return;
    }
    engine_semaphore_limit(ctx->cmd->env.engine, ctx_wait(ctx), args.name,
                           (uint32_t)limit);
}

void cmd_semaphore_delete(struct command_ctx *ctx)
{
    struct lock_args args;

    if (read_semaphore(ctx, &SYNTAX_DELETE, &args)) {
        engine_semaphore_limit(ctx->cmd->env.engine, ctx_wait(ctx), args.name, 0);
    }
}
