/* SHUTDOWN, DBSIZE, MEMORY USAGE, and what clients probe for that a lock service does
 * not have. */
#include "cmd/cmd_server.h"

#include "cmd/cmd_priv.h"

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
    struct client *client;

    if (is_hidden(ctx->command)) {
        return;
    }
    write_line(ctx, &line);
    LIST_EACH_SAFE(client, &c->monitors, monitors) {
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

/* CONFIG: passed on to the configuration, which is the daemon's. */

enum { CONFIG_REASON_MAX = 512 };

struct config_listing {
    struct command_ctx *ctx;
    size_t at; /* index of the pattern in the arguments */
    struct buf items;
    size_t pairs;
    struct buf patterns; /* all patterns in lower case, one after the other */
};

/* A pattern argument in lower case, as keys are. */
static struct span pattern_at(const struct config_listing *l, size_t at)
{
    size_t before = 0;

    for (size_t i = 2; i < at; i++) {
        before += l->ctx->argv[i].len;
    }
    return span_of(buf_span(&l->patterns).ptr + before, l->ctx->argv[at].len);
}

static void list_pair(void *arg, const char *key, const char *value)
{
    struct config_listing *l = arg;

    for (size_t i = 2; i < l->at; i++) {
        if (glob_match(pattern_at(l, i), span_str(key))) {
            return; /* an earlier pattern matched the key */
        }
    }
    resp_bulk_str(&l->items, key);
    resp_bulk_str(&l->items, value);
    l->pairs++;
}

void cmd_config_get(struct command_ctx *ctx)
{
    struct config_listing l = { .ctx = ctx };

    for (size_t i = 2; i < ctx->argc; i++) {
        for (size_t k = 0; k < ctx->argv[i].len; k++) {
            char ch = ctx->argv[i].ptr[k];

            ch = (char)(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
            buf_add(&l.patterns, &ch, 1);
        }
    }
    for (l.at = 2; l.at < ctx->argc; l.at++) {
        if (ctx->argv[l.at].len <= LATCHD_PATTERN_MAX) {
            ctx->cmd->env.config_each(ctx->cmd->env.ctx, pattern_at(&l, l.at),
                                      list_pair, &l);
        }
    }
    resp_map(ctx->out, ctx->proto, l.pairs);
    buf_add_span(ctx->out, buf_span(&l.items));
    buf_reset(&l.items);
    buf_reset(&l.patterns);
}

static void log_set(const struct command_ctx *ctx)
{
    for (size_t i = 2; i + 1 < ctx->argc; i += 2) {
        struct span value = redacted_arg(ctx, i + 1);

        log_about_client(ctx, LOG_NOTICE, SPAN_NONE, "CONFIG SET %.*s %.*s",
                         (int)ctx->argv[i].len, ctx->argv[i].ptr, (int)value.len,
                         value.ptr);
    }
}

void cmd_config_set(struct command_ctx *ctx)
{
    char reason[CONFIG_REASON_MAX] = "";

    if (ctx->argc % 2 != 0) {
        ctx_syntax_error(ctx);
    } else if (!ctx->cmd->env.config_set(ctx->cmd->env.ctx, ctx->argv + 2,
                                         (ctx->argc - 2) / 2, reason, sizeof(reason))) {
        ctx_error(ctx, LATCHD_ERR, "%s", reason);
    } else {
        log_set(ctx);
        resp_simple(ctx->out, "OK");
    }
}

void cmd_config_resetstat(struct command_ctx *ctx)
{
    cmd_reset_stats(ctx->cmd);
    if (ctx->cmd->env.reset_stats != NULL) {
        ctx->cmd->env.reset_stats(ctx->cmd->env.ctx);
    }
    resp_simple(ctx->out, "OK");
}

void cmd_config_rewrite(struct command_ctx *ctx)
{
    char reason[CONFIG_REASON_MAX] = "";

    if (!ctx->cmd->env.config_rewrite(ctx->cmd->env.ctx, reason, sizeof(reason))) {
        ctx_error(ctx, LATCHD_ERR, "%s", reason);
    } else {
        resp_simple(ctx->out, "OK");
    }
}

enum { SAMPLES_DEFAULT = 1000 }; /* holders and waiters that are looked at */

void cmd_shutdown(struct command_ctx *ctx)
{
    for (size_t i = 1; i < ctx->argc; i++) {
        if (ctx_arg_is(ctx, i, "ABORT") && ctx->argc == 2) {
            ctx_error(ctx, LATCHD_ERR, "No shutdown in progress.");
            return;
        }
        if (!ctx_arg_is(ctx, i, "SAVE") && !ctx_arg_is(ctx, i, "NOSAVE") &&
            !ctx_arg_is(ctx, i, "NOW") && !ctx_arg_is(ctx, i, "FORCE")) {
            ctx_syntax_error(ctx);
            return;
        }
    }
    /* As in Redis, the connection ends without a reply. */
    conn_suspend(ctx->conn);
    log_about_client(ctx, LOG_NOTICE, SPAN_NONE, "SHUTDOWN");
    ctx->cmd->env.shutdown(ctx->cmd->env.ctx);
}

void cmd_dbsize(struct command_ctx *ctx)
{
    struct engine_stats stats;

    engine_stats(ctx->cmd->env.engine, &stats);
    resp_int(ctx->out, (int64_t)stats.locks);
}

void cmd_cluster(struct command_ctx *ctx)
{
    ctx_error(ctx, LATCHD_ERR, "This instance has cluster support disabled");
}

void cmd_memory_usage(struct command_ctx *ctx)
{
    int64_t samples = SAMPLES_DEFAULT;
    size_t size;

    for (size_t at = 3; at < ctx->argc; at += 2) {
        if (!ctx_arg_is(ctx, at, "SAMPLES") || at + 1 == ctx->argc) {
            ctx_syntax_error(ctx);
            return;
        }
        if (!ctx_arg_int(ctx, at + 1, &samples)) {
            return;
        }
        if (samples < 0) {
            ctx_syntax_error(ctx);
            return;
        }
    }
    size = engine_memory(ctx->cmd->env.engine, ctx->argv[2],
                         samples == 0 ? SIZE_MAX : (size_t)samples);
    if (size == 0) {
        ctx_null(ctx);
    } else {
        resp_int(ctx->out, (int64_t)size);
    }
}
