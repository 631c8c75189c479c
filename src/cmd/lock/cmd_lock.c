/* LOCK, UNLOCK, RENEW, CANCEL, FORCEUNLOCK, MLOCK: from arguments to requests of the
 * engine. */
#include "cmd/handlers.h"
#include "cmd/library/value_text.h"
#include "cmd/observe/log_identity.h"
#include "util/glob.h"

#include <inttypes.h>

bool ctx_lock_args(struct command_ctx *ctx, const struct lock_syntax *syntax,
                   struct lock_args *ret)
{
    char text[ARGS_ERROR_ROOM];

    size_t head = command_is_sub(ctx->command) ? 2 : 1;

    if (!lock_args_parse(syntax, &ctx->cmd->limits, ctx->argv + head, ctx->argc - head,
                         ret, text)) {
        ctx_error(ctx, LATCHD_ERR, "%s", text);
        return false;
    }
    return true;
}

static unsigned given_terms(const struct lock_args *args)
{
    return ((args->has & OPT_WAIT) != 0 ? LOCK_HAS_WAIT : 0U) |
           ((args->has & OPT_LEASE) != 0 ? LOCK_HAS_LEASE : 0U) |
           ((args->has & OPT_KEEP) != 0 ? LOCK_HAS_KEEP : 0U) |
           ((args->has & OPT_GRACE) != 0 ? LOCK_HAS_GRACE : 0U) |
           ((args->has & OPT_QUEUE) != 0 ? LOCK_HAS_QUEUE : 0U);
}

/* Whether the lock may be granted from a loan: the client says so, or `local-names`
 * does.
 */
static bool may_be_local(const struct command_ctx *ctx, const struct lock_args *args)
{
    struct span rest = span_str(ctx->cmd->limits.local_names);

    if ((args->has & OPT_LOCAL) != 0) {
        return true;
    }
    if (rest.len == 0 || (args->has & OPT_NOT_LOCAL) != 0) {
        return false;
    }
    while (rest.len > 0) {
        if (glob_match(span_next(&rest, ' '), args->name)) {
            return true;
        }
    }
    return false;
}

static struct lock_req lock_request(struct command_ctx *ctx,
                                    const struct lock_args *args)
{
    return (struct lock_req){
        .kind = args->kind,
        .name = args->name,
        .permits = args->permits,
        .limit = args->limit,
        .owner = args->owner,
        .id = args->id,
        .data = args->data,
        .wait_ms = args->wait_ms,
        .lease_ms = args->lease_ms,
        .atleast_ms = args->atleast_ms,
        .keep_ms = args->keep_ms,
        .grace_ms = args->grace_ms,
        .heartbeat_ms = (uint32_t)args->heartbeat_ms,
        .queue_max = args->queue_max,
        .priority = args->priority,
        .has = given_terms(args),
        .user = ctx->client->user->id,
    };
}

bool ctx_lock_request(struct command_ctx *ctx, struct lock_req *ret)
{
    struct lock_args args;

    if (!ctx_lock_args(ctx, &SYNTAX_LOCK, &args)) {
        return false;
    }
    *ret = lock_request(ctx, &args);
    ret->has |= may_be_local(ctx, &args) ? LOCK_IS_LOCAL : 0U;
    ctx->subject = subject_of(&args);
    return true;
}

void cmd_lock(struct command_ctx *ctx)
{
    struct lock_req req;

    if (ctx_lock_request(ctx, &req) && !(req.kind == KIND_PLAIN && ctx_gathers(ctx))) {
        req.from = ctx_wait(ctx);
        engine_lock(ctx->cmd->env.engine, &req);
    }
}

/* Somebody will ask who took the lock away. */
static void log_force(struct command_ctx *ctx, const struct lock_args *args)
{
    if ((args->has & OPT_ANY) != 0) {
        log_about_client(ctx, LOG_NOTICE, args->name, "FORCEUNLOCK of whoever holds");
    } else if (args->token != 0) {
        log_about_client(ctx, LOG_NOTICE, args->name, "FORCEUNLOCK of token %" PRIu64,
                         args->token);
    } else {
        log_about_client(ctx, LOG_NOTICE, args->name, "FORCEUNLOCK of owner %.*s",
                         (int)args->owner.len, args->owner.ptr);
    }
}

typedef void hold_fn(struct engine *l, const struct hold_req *req);

static void run_on_hold(struct command_ctx *ctx, const struct lock_syntax *syntax,
                        hold_fn *fn)
{
    struct lock_args args;
    struct buf value = { 0 };
    struct hold_req req;

    if (!ctx_lock_args(ctx, syntax, &args)) {
        return;
    }
    if ((ctx->command->flags & CMD_ADMIN) != 0) {
        log_force(ctx, &args);
    }
    ctx->subject = subject_of(&args);
    if ((args.has & OPT_VALUE) != 0) {
        buf_add_str(&value, VALUE_ANY_ORIGIN);
        value_escape(&value, args.value);
    }
    req = (struct hold_req){
        .from = fn == engine_unlock ? ctx_wait_beside(ctx) : ctx_wait(ctx),
        .kind = args.kind,
        .name = args.name,
        .owner = args.owner,
        .id = args.id,
        .to = args.to,
        .value = buf_span(&value),
        .token = args.token,
        .tells_token = (args.has & OPT_VALUE) != 0,
        .lease_ms = args.lease_ms,
        .any = (args.has & OPT_ANY) != 0,
        .user = ctx->client->user->id,
        .overrides = ctx_overrides(ctx),
    };
    fn(ctx->cmd->env.engine, &req);
    buf_reset(&value);
}

void cmd_unlock(struct command_ctx *ctx)
{
    run_on_hold(ctx, &SYNTAX_UNLOCK, engine_unlock);
}

void cmd_renew(struct command_ctx *ctx)
{
    run_on_hold(ctx, &SYNTAX_RENEW, engine_renew);
}

void cmd_forceunlock(struct command_ctx *ctx)
{
    run_on_hold(ctx, &SYNTAX_FORCEUNLOCK, engine_force_unlock);
}

void cmd_cancel(struct command_ctx *ctx)
{
    struct lock_args args;
    struct hold_req req;
    bool others;
    size_t count;

    if (!ctx_lock_args(ctx, &SYNTAX_CANCEL, &args)) {
        return;
    }
    req = (struct hold_req){ .name = args.name,
                             .owner = args.owner,
                             .id = args.id,
                             .user = ctx->client->user->id,
                             .overrides = ctx_overrides(ctx) };
    count = engine_cancel(ctx->cmd->env.engine, &req, &others);
    if (count == 0 && others) {
        ctx_error(ctx, LATCHD_ERR_NOPERM, "that owner or ID is another user's");
    } else {
        resp_int(ctx->out, (int64_t)count);
    }
}

void cmd_mlock(struct command_ctx *ctx)
{
    struct lock_args args;

    if (ctx_lock_args(ctx, &SYNTAX_MLOCK, &args)) {
        struct mlock_req req = {
            .one = lock_request(ctx, &args),
            .names = args.names,
            .name_count = args.name_count,
        };

        ctx->subject = subject_of(&args);
        req.one.from = ctx_wait(ctx);
        engine_mlock(ctx->cmd->env.engine, &req);
    }
}
