/* SHUTDOWN, DBSIZE, and what clients probe for that a lock service does not have. */
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"

void cmd_shutdown(struct command_ctx *call)
{
    for (size_t i = 1; i < call->argc; i++) {
        if (ctx_arg_is(call, i, "ABORT") && call->argc == 2) {
            ctx_error(call, LATCHD_ERR, "No shutdown in progress.");
            return;
        }
        if (!ctx_arg_is(call, i, "SAVE") && !ctx_arg_is(call, i, "NOSAVE") &&
            !ctx_arg_is(call, i, "NOW") && !ctx_arg_is(call, i, "FORCE")) {
            ctx_syntax_error(call);
            return;
        }
    }
    /* As in Redis, the answer is the end of the connection. */
    conn_suspend(call->conn);
    log_about_client(call, LOG_NOTICE, SPAN_NONE, "SHUTDOWN");
    call->cmd->env.shutdown(call->cmd->env.ctx);
}

void cmd_dbsize(struct command_ctx *call)
{
    struct engine_stats stats;

    engine_stats(call->cmd->env.engine, &stats);
    resp_int(call->out, (int64_t)stats.locks);
}

/* Some libraries read a key of their own at connect time: it is not there. */
void cmd_get(struct command_ctx *call)
{
    ctx_null(call);
}

void cmd_exists(struct command_ctx *call)
{
    resp_int(call->out, 0);
}

void cmd_cluster(struct command_ctx *call)
{
    ctx_error(call, LATCHD_ERR, "This instance has cluster support disabled");
}
