/* dispatch: from a request to its handler: the row, whether this client may run it now,
 * and what is counted about it. */
#include "cmd/cmd_priv.h"

#include "cmd/observe/monitor.h"
#include "cmd/redis_only.h"
#include "util/clock.h"

/* Redis's words for a command that is not there, but for one that Redis has. */
static void reject_unknown(struct command_ctx *call)
{
    struct buf args = { 0 };
    struct span name = call->argv[0];
    const char *advice = redis_only_advice(name);

    if (advice != NULL) {
        ctx_error(call, LATCHD_ERR,
                  "latchd keeps locks, not data: '%.*s' is not served; %s",
                  span_shown(name), name.ptr, advice);
        return;
    }
    for (size_t i = 1; i < call->argc && buf_len(&args) < SPAN_SHOWN_MAX; i++) {
        size_t room = SPAN_SHOWN_MAX - buf_len(&args);

        buf_add_str(&args, "'");
        buf_add(&args, call->argv[i].ptr,
                call->argv[i].len < room ? call->argv[i].len : room);
        buf_add_str(&args, "' ");
    }
    ctx_error(call, LATCHD_ERR,
              "unknown command '%.*s', with args beginning with: %.*s",
              span_shown(name), name.ptr, (int)buf_len(&args), buf_span(&args).ptr);
    buf_reset(&args);
}

static void reject_unknown_sub(struct command_ctx *call,
                               const struct command *container)
{
    struct span sub = call->argv[1];
    struct buf upper = { 0 };

    buf_add_upper(&upper, container->name);
    ctx_error(call, LATCHD_ERR, "unknown subcommand '%.*s'. Try %.*s HELP.",
              span_shown(sub), sub.ptr, (int)buf_len(&upper), buf_ptr(&upper));
    buf_reset(&upper);
}

/* Finds the row; NULL: refused, and answered. */
static const struct command *look_up(struct command_ctx *call)
{
    const struct command *command = call->command;

    if (command != NULL) {
        return command; /* pipeline_begin() has found it */
    }
    command = command_find(call->argv[0]);
    if (command == NULL || command_is_sub(command)) {
        reject_unknown(call);
        return NULL;
    }
    call->command = command;
    if ((command->flags & CMD_CONTAINER) != 0 && call->argc > 1) {
        command = command_find_sub(command, call->argv[1]);
        if (command == NULL) {
            reject_unknown_sub(call, call->command);
            return NULL;
        }
        call->command = command;
    }
    return command;
}

/* Whether this client may run it now; if not, that has been answered. */
static bool admit_command(struct command_ctx *call)
{
    const struct command *command = call->command;
    struct client *client = call->client;

    if (!command_arity_fits(command, call->argc)) {
        ctx_arity_error(call);
        return false;
    }
    if ((command->flags & CMD_NO_AUTH) == 0 && client_needs_auth(call->cmd, client)) {
        ctx_error(call, LATCHD_ERR_NOAUTH, "Authentication required.");
        return false;
    }
    if (!acl_check_admits(call)) {
        return false;
    }
    if (client->multi != NULL && (command->flags & CMD_NO_MULTI) != 0) {
        ctx_error(call, LATCHD_ERR, "Command not allowed inside a transaction");
        return false;
    }
    if (client->proto == 2 && client_is_subscribed(client) &&
        (command->flags & CMD_PUBSUB) == 0) {
        ctx_error(call, LATCHD_ERR,
                  "Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
                  "QUIT / RESET are allowed in this context",
                  command->name);
        return false;
    }
    return true;
}

/* A grant that its client is never told about helps nobody. */
static bool is_of_use(const struct command_ctx *call)
{
    return (call->command->flags & CMD_NEEDS_REPLY) == 0 || !call->muted;
}

/* Runs the handler and counts it. A command that waits has not failed yet. */
static void execute_command(struct command_ctx *call)
{
    client_set_last(call->client, call->command);
    call->admitted = true;
    call->started_us = clock_boot_us();
    call->command->run(call);
    stats_ran(call);
    if (!list_empty(&call->cmd->monitors) && !call->counted) {
        monitor_feed(call);
    }
}

static void execute_if_of_use(struct command_ctx *call)
{
    if (is_of_use(call)) {
        execute_command(call);
    } else {
        stats_rejected(call);
    }
}

static bool is_queued(const struct command_ctx *call)
{
    return call->client->multi != NULL && (call->command->flags & CMD_AT_ONCE) == 0;
}

void dispatch(struct command_ctx *call)
{
    bool ok = look_up(call) != NULL && admit_command(call);

    if (ok && pause_holds(call)) {
        return;
    }
    if (ok && !is_queued(call)) {
        execute_if_of_use(call);
    } else if (!ok || !multi_queue(call)) {
        stats_rejected(call);
        multi_refused(call);
    }
}

void dispatch_queued(struct command_ctx *call)
{
    if (acl_check_still_admits(call)) {
        execute_if_of_use(call);
    } else {
        stats_rejected(call);
    }
}
