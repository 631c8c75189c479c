#include "cmd/observe/monitor.h"

#include "cmd/handlers.h"
#include "cmd/observe/redaction.h"
#include "util/clock.h"
#include "util/text.h"

#include <inttypes.h>

/* As in Redis, commands of operators are hidden; commands on locks never are. */
static bool is_hidden(const struct command *command)
{
    return (command->flags & CMD_ADMIN) != 0 && command->keys == KEYS_NONE;
}

static void write_line(const struct command_ctx *ctx, struct buf *line)
{
    uint64_t now = clock_wall_us();
    char peer[REDACTED_PEER_ROOM];

    redacted_peer(ctx->conn, peer);
    buf_printf(line, "+%" PRIu64 ".%06" PRIu64 " [0 %s]", now / 1000000, now % 1000000,
               peer);
    for (size_t i = 0; i < ctx->argc; i++) {
        buf_add_str(line, " ");
        repr_add(line, redacted_arg(ctx, i));
    }
    buf_add_str(line, "\r\n");
}

void monitor_feed(const struct command_ctx *ctx)
{
    struct cmd *c = ctx->cmd;
    struct buf line = { 0 };
    struct list *node, *next;

    if (is_hidden(ctx->command)) {
        return;
    }
    write_line(ctx, &line);
    LIST_FOREACH_SAFE(node, next, &c->monitors)
    {
        struct client *client = container_of(node, struct client, monitors);
        struct conn *conn = net_find(c->env.net, client->id);

        if (conn != NULL && !conn_overflows(conn)) {
            buf_add_span(conn_out(conn), buf_span(&line));
        }
    }
    buf_reset(&line);
}

void cmd_monitor(struct command_ctx *ctx)
{
    if (list_empty(&ctx->client->monitors)) {
        list_append(&ctx->cmd->monitors, &ctx->client->monitors);
    }
    resp_simple(ctx->out, "OK");
}
