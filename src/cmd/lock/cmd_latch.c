/* LATCH: what is counted down, and who waits for that. */
#include "cmd/handlers.h"

static const struct lock_syntax SYNTAX_SET = { "LATCH SET", FOR_LATCH_SET,
                                               RULE_NAME | RULE_TAKES | RULE_NO_BRACE |
                                                   RULE_LATCH_COUNT };
static const struct lock_syntax SYNTAX_COUNT = { "LATCH COUNT", FOR_LATCH_COUNT,
                                                 RULE_NAME | RULE_NO_BRACE };
const struct lock_syntax SYNTAX_LATCH_AWAIT = {
    "LATCH AWAIT", FOR_LATCH_AWAIT, RULE_NAME | RULE_NO_BRACE | RULE_MAX_WAIT
};
static const struct lock_syntax SYNTAX_DELETE = { "LATCH DELETE", 0,
                                                  RULE_NAME | RULE_NO_BRACE };
static const struct lock_syntax SYNTAX_INFO = { "LATCH INFO", 0,
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
    run_latch(ctx, &SYNTAX_DELETE, LATCH_DELETES);
}

void cmd_latch_info(struct command_ctx *ctx)
{
    run_latch(ctx, &SYNTAX_INFO, LATCH_INFO);
}
