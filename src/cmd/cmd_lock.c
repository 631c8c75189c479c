/* LOCK, UNLOCK, RENEW, CANCEL, FORCEUNLOCK, MLOCK: from arguments to requests of the
 * engine. */
#include "cmd/cmd_lock.h"

#include "cmd/cmd_priv.h"

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

/* Whether the lock may be granted from a loan: the client says so, or `local-names`
 * does.
 */
static bool may_be_local(const struct command_ctx *ctx, const struct lock_args *args)
{
    struct span rest = span_str(ctx->cmd->limits.local_names);

    if ((args->terms.has & OPT_LOCAL) != 0) {
        return true;
    }
    if (rest.len == 0 || (args->terms.has & NOT_WITH_LOCAL) != 0) {
        return false;
    }
    while (rest.len > 0) {
        if (glob_match(span_next(&rest, ' '), args->name)) {
            return true;
        }
    }
    return false;
}

bool ctx_lock_request(struct command_ctx *ctx, struct lock_req *ret)
{
    struct lock_args args;

    if (!ctx_lock_args(ctx, &SYNTAX_LOCK, &args)) {
        return false;
    }
    *ret = (struct lock_req){ .name = args.name,
                              .terms = args.terms,
                              .trace = args.trace };
    ret->terms.user = ctx->client->user->id;
    ret->terms.has |= may_be_local(ctx, &args) ? OPT_LOCAL : 0;
    ctx->subject = subject_of(&args);
    return true;
}

void cmd_lock(struct command_ctx *ctx)
{
    struct lock_req req;

    if (ctx_lock_request(ctx, &req) &&
        !(req.terms.lock_kind == KIND_PLAIN && ctx_gathers(ctx))) {
        req.from = ctx_wait(ctx);
        engine_lock(ctx->cmd->env.engine, &req);
    }
}

/* Somebody will ask who took the lock away. */
static void log_force(struct command_ctx *ctx, const struct lock_args *args)
{
    if ((args->terms.has & OPT_ANY) != 0) {
        log_about_client(ctx, LOG_NOTICE, args->name, "FORCEUNLOCK of any holder");
    } else if (args->token != 0) {
        log_about_client(ctx, LOG_NOTICE, args->name, "FORCEUNLOCK of token %" PRIu64,
                         args->token);
    } else {
        log_about_client(ctx, LOG_NOTICE, args->name, "FORCEUNLOCK of owner %.*s",
                         (int)args->terms.owner.len, args->terms.owner.ptr);
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
    if ((args.terms.has & OPT_VALUE) != 0) {
        buf_add_str(&value, VALUE_ANY_ORIGIN);
        value_escape(&value, args.value);
    }
    req = (struct hold_req){
        .from = fn == engine_unlock ? ctx_wait_beside(ctx) : ctx_wait(ctx),
        .lock_kind = args.terms.lock_kind,
        .name = args.name,
        .owner = args.terms.owner,
        .id = args.terms.id,
        .to = args.to,
        .value = buf_span(&value),
        .token = args.token,
        .tells_token = (args.terms.has & OPT_VALUE) != 0,
        .lease_ms = args.terms.lease_ms,
        .any = (args.terms.has & OPT_ANY) != 0,
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
                             .owner = args.terms.owner,
                             .id = args.terms.id,
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
        struct mlock_req req = { .terms = args.terms,
                                 .names = args.names,
                                 .name_count = args.name_count,
                                 .trace = args.trace };

        req.terms.user = ctx->client->user->id;
        ctx->subject = subject_of(&args);
        req.from = ctx_wait(ctx);
        engine_mlock(ctx->cmd->env.engine, &req);
    }
}

/* LATCH: what is counted down, and who waits for that. */

static const struct lock_syntax SYNTAX_SET = { "LATCH SET", FOR_LATCH_SET,
                                               RULE_NAME | RULE_TAKES | RULE_NO_BRACE |
                                                   RULE_LATCH_COUNT };
static const struct lock_syntax SYNTAX_COUNT = { "LATCH COUNT", FOR_LATCH_COUNT,
                                                 RULE_NAME | RULE_NO_BRACE };
const struct lock_syntax SYNTAX_LATCH_AWAIT = {
    "LATCH AWAIT", FOR_LATCH_AWAIT, RULE_NAME | RULE_NO_BRACE | RULE_MAX_WAIT
};
static const struct lock_syntax SYNTAX_LATCH_DELETE = { "LATCH DELETE", 0,
                                                        RULE_NAME | RULE_NO_BRACE };
static const struct lock_syntax SYNTAX_LATCH_INFO = { "LATCH INFO", 0,
                                                      RULE_NAME | RULE_NO_BRACE };

/* Runs the command, whose arguments stand behind the subcommand. */
static void run_latch(struct command_ctx *ctx, const struct lock_syntax *syntax,
                      enum latch_word word)
{
    struct lock_args args;
    struct latch_req req;

    if (!ctx_lock_args(ctx, syntax, &args)) {
        return;
    }
    req = (struct latch_req){
        .word = word,
        .name = args.name,
        .id = args.terms.id,
        .count = args.latch_count,
        .wait_ms = args.terms.wait_ms,
        .has_wait = (args.terms.has & OPT_WAIT) != 0,
    };
    ctx->subject = subject_of(&args);
    req.from = ctx_wait(ctx);
    engine_latch(ctx->cmd->env.engine, &req);
}

void cmd_latch_set(struct command_ctx *ctx)
{
    run_latch(ctx, &SYNTAX_SET, LATCH_SETS);
}

void cmd_latch_count(struct command_ctx *ctx)
{
    run_latch(ctx, &SYNTAX_COUNT, LATCH_COUNTS);
}

void cmd_latch_await(struct command_ctx *ctx)
{
    run_latch(ctx, &SYNTAX_LATCH_AWAIT, LATCH_AWAITS);
}

void cmd_latch_delete(struct command_ctx *ctx)
{
    run_latch(ctx, &SYNTAX_LATCH_DELETE, LATCH_DELETES);
}

void cmd_latch_info(struct command_ctx *ctx)
{
    run_latch(ctx, &SYNTAX_LATCH_INFO, LATCH_INFO);
}

/* LEADER: who holds a name alone, now or once that has changed. */

void cmd_leader(struct command_ctx *ctx)
{
    struct lock_args args;

    if (ctx_lock_args(ctx, &SYNTAX_LEADER, &args)) {
        struct leader_req req = {
            .name = args.name,
            .after = args.after,
            .wait_ms = args.terms.wait_ms,
            .has_after = (args.terms.has & OPT_AFTER) != 0,
            .has_wait = (args.terms.has & OPT_WAIT) != 0,
        };

        ctx->subject = subject_of(&args);
        req.from = ctx_wait(ctx);
        engine_leader(ctx->cmd->env.engine, &req);
    }
}

/* SEMAPHORE: commands about a semaphore as a whole. */

static const struct lock_syntax SYNTAX_SEM_INFO = { "SEMAPHORE INFO", 0, RULE_NAME };
static const struct lock_syntax SYNTAX_LIMIT = { "SEMAPHORE LIMIT", 0,
                                                 RULE_NAME | RULE_TAKES };
static const struct lock_syntax SYNTAX_SEM_DELETE = { "SEMAPHORE DELETE", 0,
                                                      RULE_NAME };

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

    if (read_semaphore(ctx, &SYNTAX_SEM_INFO, &args)) {
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

    if (read_semaphore(ctx, &SYNTAX_SEM_DELETE, &args)) {
        engine_semaphore_limit(ctx->cmd->env.engine, ctx_wait(ctx), args.name, 0);
    }
}
