#include "cmd/connection/client_pause.h"

#include "cmd/deferred_command.h"
#include "cmd/handlers.h"
#include "util/text.h"

/* Commands of operators and health checks work during a pause. */
static bool is_never_put_off(const struct command *command)
{
    return strcmp(command->group, "connection") == 0 ||
           strcmp(command->group, "server") == 0;
}

static bool changes_something(const struct command_ctx *ctx)
{
    return (ctx->command->flags & CMD_WRITE) != 0 ||
           (ctx->command->run == cmd_exec && multi_writes(ctx->client->multi));
}

bool pause_concerns(const struct command_ctx *ctx)
{
    const struct pause *pause = &ctx->cmd->pause;

    return pause->until_ms != 0 && !is_never_put_off(ctx->command) &&
           (pause->all || changes_something(ctx));
}

void pause_end(struct cmd *c)
{
    struct list *node;

    c->pause.until_ms = 0;
    while ((node = list_first(&c->pause.deferred)) != NULL) {
        const struct deferred_command *deferred =
            container_of(node, struct deferred_command, in_pause);
        struct conn *conn = net_find(c->env.net, deferred->conn);

        list_del(node);
        conn_again(conn);
        conn_resume(conn);
    }
}

void pause_tick(struct cmd *c, uint64_t now_ms)
{
    if (c->pause.until_ms != 0 && now_ms >= c->pause.until_ms) {
        pause_end(c);
    }
}

/* A pause that is on can only become longer and stricter, as in Redis. */
static void pause_begin(struct cmd *c, uint64_t ms, bool all)
{
    uint64_t until = c->env.now_ms(c->env.ctx) + ms;

    c->pause.all = all || (c->pause.until_ms != 0 && c->pause.all);
    if (until > c->pause.until_ms) {
        c->pause.until_ms = until;
    }
}

void cmd_client_pause(struct command_ctx *ctx)
{
    bool all = ctx->argc == 3 || ctx_arg_is(ctx, 3, "ALL");
    int64_t ms;

    if (ctx->argc > 4) {
        ctx_subcommand_error(ctx);
    } else if (!all && !ctx_arg_is(ctx, 3, "WRITE")) {
        ctx_error(ctx, LATCHD_ERR, "CLIENT PAUSE mode must be WRITE or ALL");
    } else if (!parse_i64(ctx->argv[2], &ms)) {
        ctx_error(ctx, LATCHD_ERR, "timeout is not an integer or out of range");
    } else if (ms < 0) {
        ctx_error(ctx, LATCHD_ERR, "timeout is negative");
    } else {
        pause_begin(ctx->cmd, (uint64_t)ms, all);
        resp_simple(ctx->out, "OK");
    }
}

void cmd_client_unpause(struct command_ctx *ctx)
{
    pause_end(ctx->cmd);
    resp_simple(ctx->out, "OK");
}
