/* WATCH and UNWATCH: with them a transaction compares and deletes, or compares and
 * extends, as lock libraries do that have no script for it:
 *
 *   WATCH k -- GET k -- MULTI -- DEL k, EXPIRE k s or SET k v -- EXEC
 *
 * EXEC is not atomic otherwise, so this is all that a transaction may be that watches.
 */
#include "cmd/handlers.h"

#include "cmd/deferred_command.h"
#include "cmd/library/library_call.h"
#include "cmd/library/watch.h"

#include <string.h>

void cmd_watch(struct command_ctx *ctx)
{
    struct client *client = ctx->client;

    if (multi_is_open(client->multi)) {
        ctx_error(ctx, LATCHD_ERR, "WATCH inside MULTI is not allowed");
    } else if (!ctx->cmd->limits.lock_libraries) {
        ctx_error(ctx, LATCHD_ERR,
                  "WATCH is not supported: there are no values to watch, and EXEC is "
                  "not atomic");
    } else if (!multi_watch_keys(client, ctx->argv + 1, ctx->argc - 1)) {
        ctx_error(ctx, LATCHD_ERR_LIMIT, "a connection watches at most %d keys",
                  WATCH_KEYS_MAX);
    } else {
        library_begin_watch(ctx, ctx->argv + 1, ctx->argc - 1);
    }
}

void cmd_unwatch(struct command_ctx *ctx)
{
    multi_unwatch(ctx->client);
    resp_simple(ctx->out, "OK");
}

bool watch_admits(struct watch *watch, const struct deferred_command *command)
{
    static const char *const NAMES[] = { "del",     "unlink",   "expire",
                                         "pexpire", "expireat", "pexpireat" };

    if (strcmp(command->command->name, "set") == 0) {
        for (size_t i = 3; i < command->argc; i++) {
            if (span_eq_nocase(command->argv[i], SPAN("NX")) ||
                span_eq_nocase(command->argv[i], SPAN("XX"))) {
                return false;
            }
        }
        return watch_plain_set(watch, command->argv[1], command->argv[2]) !=
               PLAIN_SET_REFUSED;
    }
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        if (strcmp(command->command->name, NAMES[i]) == 0) {
            bool one_key = command->command->keys == KEYS_ONE || command->argc == 2;

            return one_key && watch_find(watch, command->argv[1]) != NULL;
        }
    }
    return false;
}
