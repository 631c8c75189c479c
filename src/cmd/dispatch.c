/* dispatch: from a request to its handler: finds the row, checks whether the client
 * may run it now, and counts it. */
#include "cmd/cmd_priv.h"

#include "cmd/observe/monitor.h"
#include "cmd/redis_only.h"
#include "util/clock.h"

/* Redis's error for an unknown command, and advice for a command that only Redis has.
 */
static void reject_unknown(struct command_ctx *ctx)
{
    struct buf args = { 0 };
    struct span name = ctx->argv[0];
    const char *advice = redis_only_advice(name);

    if (advice != NULL) {
        ctx_only_redis(ctx, advice);
        return;
    }
    for (size_t i = 1; i < ctx->argc && buf_len(&args) < SPAN_QUOTED_MAX; i++) {
        size_t room = SPAN_QUOTED_MAX - buf_len(&args);

        buf_add_str(&args, "'");
        buf_add(&args, ctx->argv[i].ptr,
                ctx->argv[i].len < room ? ctx->argv[i].len : room);
        buf_add_str(&args, "' ");
    }
    ctx_error(ctx, LATCHD_ERR, "unknown command '%.*s', with args beginning with: %.*s",
              span_quoted_len(name), name.ptr, (int)buf_len(&args),
              buf_span(&args).ptr);
    buf_reset(&args);
}

static void reject_unknown_sub(struct command_ctx *ctx, const struct command *container)
{
    struct span sub = ctx->argv[1];
    struct buf upper = { 0 };

    buf_add_upper(&upper, container->name);
    ctx_error(ctx, LATCHD_ERR, "unknown subcommand '%.*s'. Try %.*s HELP.",
              span_quoted_len(sub), sub.ptr, (int)buf_len(&upper), buf_ptr(&upper));
    buf_reset(&upper);
}

/* Finds the row of a command. NULL: an error reply was written. */
static const struct command *look_up(struct command_ctx *ctx)
{
    const struct command *command = ctx->command;

    if (command != NULL) {
        return command; /* pipeline_begin() has found the row */
    }
    command = command_find(ctx->argv[0]);
    if (command == NULL || command_is_sub(command)) {
        reject_unknown(ctx);
        return NULL;
    }
    ctx->command = command;
    if ((command->flags & CMD_CONTAINER) != 0 && ctx->argc > 1) {
        command = command_find_sub(command, ctx->argv[1]);
        if (command == NULL) {
            reject_unknown_sub(ctx, ctx->command);
            return NULL;
        }
        ctx->command = command;
    }
    return command;
}

/* Whether the client may run the command now. False: an error reply was written. */
static bool admit_command(struct command_ctx *ctx)
{
    const struct command *command = ctx->command;
    struct client *client = ctx->client;

    if (!command_arity_fits(command, ctx->argc)) {
        ctx_arity_error(ctx);
        return false;
    }
    if ((command->flags & CMD_NO_AUTH) == 0 && client_needs_auth(ctx->cmd, client)) {
        ctx_error(ctx, LATCHD_ERR_NOAUTH, "Authentication required.");
        return false;
    }
    if (!acl_check_admits(ctx)) {
        return false;
    }
    if (multi_is_open(client->multi) && (command->flags & CMD_NO_MULTI) != 0) {
        ctx_error(ctx, LATCHD_ERR, "Command not allowed inside a transaction");
        return false;
    }
    if (client->proto == 2 && client_is_subscribed(client) &&
        (command->flags & CMD_PUBSUB) == 0) {
        ctx_error(ctx, LATCHD_ERR,
                  "Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                  "QUIT / RESET are allowed in this context",
                  command->name);
        return false;
    }
    return true;
}

/* A command whose reply is dropped must not take locks: nobody would know of the
 * grant. */
static bool is_of_use(const struct command_ctx *ctx)
{
    return (ctx->command->flags & CMD_NEEDS_REPLY) == 0 || !ctx->muted;
}

/* Runs the handler, and counts the command. A command that waits has not failed yet. */
static void execute_command(struct command_ctx *ctx)
{
    client_set_last(ctx->client, ctx->command);
    ctx->admitted = true;
    if (ctx->started_us == 0) {
        ctx->started_us = clock_boot_us();
    }
    ctx->command->run(ctx);
    stats_ran(ctx);
    if (!list_empty(&ctx->cmd->monitors) && !ctx->counted) {
        monitor_feed(ctx);
    }
}

static void execute_if_of_use(struct command_ctx *ctx)
{
    if (is_of_use(ctx)) {
        execute_command(ctx);
    } else {
        stats_rejected(ctx);
    }
}

static bool is_queued(const struct command_ctx *ctx)
{
    return multi_is_open(ctx->client->multi) &&
           (ctx->command->flags & CMD_AT_ONCE) == 0;
}

void dispatch_command(struct command_ctx *ctx)
{
    bool ok = look_up(ctx) != NULL && admit_command(ctx);

    if (ok && pause_holds(ctx)) {
        return;
    }
    if (ok && !is_queued(ctx)) {
        execute_if_of_use(ctx);
    } else if (!ok || !multi_queue(ctx)) {
        stats_rejected(ctx);
        multi_refused(ctx);
    }
}

void dispatch_queued(struct command_ctx *ctx)
{
    if (acl_check_still_admits(ctx)) {
        execute_if_of_use(ctx);
    } else {
        stats_rejected(ctx);
    }
}
