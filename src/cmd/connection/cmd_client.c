/* CLIENT: this connection and the others. KILL is in cmd_client_kill.c. */
#include "cmd/handlers.h"

#include "util/parse.h"

/* --- this connection -------------------------------------------------- */

bool ctx_set_name(struct command_ctx *ctx, struct span name)
{
    if (name.len > CLIENT_NAME_MAX) {
        ctx_error(ctx, LATCHD_ERR, "Client names cannot be longer than %d bytes.",
                  CLIENT_NAME_MAX);
        return false;
    }
    if (!client_text_ok(name)) {
        ctx_error(
            ctx, LATCHD_ERR,
            "Client names cannot contain spaces, newlines or special characters.");
        return false;
    }
    client_set_text(ctx->client, CLIENT_NAME, name);
    return true;
}

void cmd_client_setname(struct command_ctx *ctx)
{
    if (ctx_set_name(ctx, ctx->argv[2])) {
        resp_simple(ctx->out, "OK");
    }
}

void cmd_client_getname(struct command_ctx *ctx)
{
    const char *name = client_text(ctx->client, CLIENT_NAME);

    if (name == NULL) {
        ctx_null(ctx);
    } else {
        resp_bulk_str(ctx->out, name);
    }
}

void cmd_client_setinfo(struct command_ctx *ctx)
{
    bool is_name = ctx_arg_is(ctx, 2, "LIB-NAME");
    const char *what = is_name ? "lib-name" : "lib-ver";
    struct span value = ctx->argv[3];

    if (!is_name && !ctx_arg_is(ctx, 2, "LIB-VER")) {
        ctx_error(ctx, LATCHD_ERR, "Unrecognized option '%.*s'",
                  span_quoted_len(ctx->argv[2]), ctx->argv[2].ptr);
    } else if (value.len > CLIENT_LIB_MAX) {
        ctx_error(ctx, LATCHD_ERR, "%s cannot be longer than %d bytes.", what,
                  CLIENT_LIB_MAX);
    } else if (!client_text_ok(value)) {
        ctx_error(ctx, LATCHD_ERR,
                  "%s cannot contain spaces, newlines or special characters.", what);
    } else {
        client_set_text(ctx->client, is_name ? CLIENT_LIB_NAME : CLIENT_LIB_VER, value);
        resp_simple(ctx->out, "OK");
    }
}

void cmd_client_id(struct command_ctx *ctx)
{
    resp_int(ctx->out, (int64_t)ctx->client->id);
}

void cmd_client_info(struct command_ctx *ctx)
{
    struct buf line = { 0 };

    client_write_line(ctx->cmd, ctx->conn, &line);
    resp_verbatim(ctx->out, ctx->proto, buf_span(&line));
    buf_reset(&line);
}

void cmd_client_reply(struct command_ctx *ctx)
{
    struct client *client = ctx->client;

    if (ctx_arg_is(ctx, 2, "ON")) {
        client->reply_off = client->skip = false;
        ctx->out = conn_out(ctx->conn);
        resp_simple(ctx->out, "OK");
    } else if (ctx_arg_is(ctx, 2, "OFF")) {
        client->reply_off = true;
    } else if (ctx_arg_is(ctx, 2, "SKIP")) {
        client->skip_next = !client->reply_off;
    } else {
        ctx_syntax_error(ctx);
    }
}

void cmd_client_capa(struct command_ctx *ctx)
{
    resp_simple(ctx->out, "OK");
}

/* Reads ON or OFF into *ret, and replies. */
static bool read_on_off(struct command_ctx *ctx, bool *ret)
{
    bool on = ctx_arg_is(ctx, 2, "ON");

    if (!on && !ctx_arg_is(ctx, 2, "OFF")) {
        ctx_syntax_error(ctx);
        return false;
    }
    *ret = on;
    resp_simple(ctx->out, "OK");
    return true;
}

/* Exempts the connection from eviction over maxmemory-clients; keys are never evicted.
 */
void cmd_client_no_evict(struct command_ctx *ctx)
{
    bool on;

    if (read_on_off(ctx, &on)) {
        ctx->client->exempt = on;
        conn_set_exempt(ctx->conn, on);
    }
}

/* Keys have no access times here. */
void cmd_client_no_touch(struct command_ctx *ctx)
{
    bool on;

    (void)read_on_off(ctx, &on);
}

/* --- other connections ------------------------------------------------ */

void cmd_client_unblock(struct command_ctx *ctx)
{
    bool with_error = ctx_arg_is(ctx, 3, "ERROR");
    int64_t id;

    if (ctx->argc > 4) {
        ctx_subcommand_error(ctx);
        return;
    }
    if (ctx->argc == 4 && !with_error && !ctx_arg_is(ctx, 3, "TIMEOUT")) {
        ctx_error(ctx, LATCHD_ERR, "CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        return;
    }
    if (!ctx_arg_int(ctx, 2, &id)) {
        return;
    }
    resp_int(ctx->out,
             id > 0 && engine_unblock(ctx->cmd->env.engine, (uint64_t)id, with_error));
}

struct list_filter {
    struct command_ctx *ctx;
    struct buf lines;
    bool by_type;
    bool pubsub; /* if by_type: only subscribers, or only the others */
};

static void list_conn(void *ctx, struct conn *conn)
{
    struct list_filter *f = ctx;
    const struct client *client = conn_data(conn);

    if (client == NULL || (f->by_type && client_is_subscribed(client) != f->pubsub)) {
        return;
    }
    client_write_line(f->ctx->cmd, conn, &f->lines);
}

static bool list_ids(struct command_ctx *ctx, struct list_filter *f)
{
    int64_t id;

    for (size_t i = 3; i < ctx->argc; i++) {
        struct conn *conn;

        if (!parse_i64(ctx->argv[i], &id)) {
            ctx_error(ctx, LATCHD_ERR, "Invalid client ID");
            return false;
        }
        conn = id <= 0 ? NULL : net_find(ctx->cmd->env.net, (uint64_t)id);
        if (conn != NULL) {
            list_conn(f, conn);
        }
    }
    return true;
}

/* Masters and replicas are valid types that no client ever has. */
bool ctx_client_type(struct command_ctx *ctx, struct span type, bool *ret_any,
                     bool *ret_pubsub)
{
    *ret_pubsub = span_eq_nocase(type, SPAN("pubsub"));
    *ret_any = *ret_pubsub || span_eq_nocase(type, SPAN("normal"));
    if (!*ret_any && !span_eq_nocase(type, SPAN("master")) &&
        !span_eq_nocase(type, SPAN("replica")) &&
        !span_eq_nocase(type, SPAN("slave"))) {
        ctx_error(ctx, LATCHD_ERR, "Unknown client type '%.*s'", span_quoted_len(type),
                  type.ptr);
        return false;
    }
    return true;
}

void cmd_client_list(struct command_ctx *ctx)
{
    struct list_filter f = { .ctx = ctx };
    bool any = true, ok = true;

    if (ctx->argc == 4 && ctx_arg_is(ctx, 2, "TYPE")) {
        f.by_type = true;
        ok = ctx_client_type(ctx, ctx->argv[3], &any, &f.pubsub);
    } else if (ctx->argc > 3 && ctx_arg_is(ctx, 2, "ID")) {
        any = false;
        ok = list_ids(ctx, &f);
    } else if (ctx->argc != 2) {
        ctx_syntax_error(ctx);
        ok = false;
    }
    if (ok) {
        if (any) {
            net_foreach(ctx->cmd->env.net, list_conn, &f);
        }
        resp_verbatim(ctx->out, ctx->proto, buf_span(&f.lines));
    }
    buf_reset(&f.lines);
}
