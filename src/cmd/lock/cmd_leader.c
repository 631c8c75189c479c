/* LEADER: who holds a name alone, now or once that has changed. */
#include "cmd/handlers.h"

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
