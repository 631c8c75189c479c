/* SHUTDOWN, DBSIZE, and what clients probe for that a lock service does not have. */
#include "cmd/handlers.h"
#include "cmd/who.h"

void cmd_shutdown(struct call *call)
{
    for (size_t i = 1; i < call->argc; i++) {
        if (call_arg_is(call, i, "ABORT") && call->argc == 2) {
            call_error(call, LATCHD_ERR, "No shutdown in progress.");
            return;
        }
        if (!call_arg_is(call, i, "SAVE") && !call_arg_is(call, i, "NOSAVE") &&
            !call_arg_is(call, i, "NOW") && !call_arg_is(call, i, "FORCE")) {
            call_syntax_error(call);
            return;
        }
    }
    /* As in Redis, the answer is the end of the connection. */
    conn_suspend(call->conn);
    who_did(call, LOG_NOTICE, SPAN_NONE, "SHUTDOWN");
    call->cmd->env.shutdown(call->cmd->env.ctx);
}

void cmd_dbsize(struct call *call)
{
    struct locks_stats stats;

    locks_stats(call->cmd->env.locks, &stats);
    resp_int(call->out, (int64_t)stats.locks);
}

/* Some libraries read a key of their own at connect time: it is not there. */
void cmd_get(struct call *call)
{
    call_null(call);
}

void cmd_exists(struct call *call)
{
    resp_int(call->out, 0);
}

void cmd_cluster(struct call *call)
{
    call_error(call, LATCHD_ERR, "This instance has cluster support disabled");
}
