/* CLIENT: this connection and the others. */
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"
#include "util/alloc.h"
#include "util/text.h"

#include <stdlib.h>

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

/* Reads a client type. *ret_any: latchd can have clients of this type; it never has
 * masters or replicas. False: there is no such type, and an error reply was written. */
static bool ctx_client_type(struct command_ctx *ctx, struct span type, bool *ret_any,
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

/* --- KILL ------------------------------------------------------------- */

struct kill_filter {
    struct command_ctx *ctx;
    uint64_t id; /* 0: any */
    struct span addr;
    struct span laddr;
    const struct acl_user *user; /* NULL: any */
    bool by_type;
    bool any_of_type;
    bool pubsub;
    bool skip_me;
    uint64_t *hits; /* collected first, as closing changes the list of conns */
    size_t count;
    size_t room;
};

static void collect_matching(void *ctx, struct conn *conn)
{
    struct kill_filter *f = ctx;
    const struct client *client = conn_data(conn);
    struct conn_info info;

    if (client == NULL || (f->id != 0 && client->id != f->id) ||
        (f->skip_me && client == f->ctx->client) ||
        (f->user != NULL && client->user != f->user) ||
        (f->by_type &&
         (!f->any_of_type || client_is_subscribed(client) != f->pubsub))) {
        return;
    }
    if (f->addr.ptr != NULL || f->laddr.ptr != NULL) {
        conn_info(conn, &info);
        if ((f->addr.ptr != NULL && !span_eq(f->addr, span_str(info.peer))) ||
            (f->laddr.ptr != NULL && !span_eq(f->laddr, span_str(info.local)))) {
            return;
        }
    }
    if (f->count == f->room) {
        f->room = f->room == 0 ? 16 : f->room * 2;
        f->hits = xrealloc(f->hits, f->room * sizeof(*f->hits));
    }
    f->hits[f->count++] = client->id;
}

static size_t kill_matching(struct kill_filter *f)
{
    struct net *net = f->ctx->cmd->env.net;

    net_foreach(net, collect_matching, f);
    if (f->count > 0) {
        log_about_client(f->ctx, LOG_NOTICE, SPAN_NONE,
                         "CLIENT KILL closes %zu connection%s", f->count,
                         f->count == 1 ? "" : "s");
    }
    for (size_t i = 0; i < f->count; i++) {
        struct conn *conn = net_find(net, f->hits[i]);

        if (f->hits[i] == f->ctx->client->id) {
            conn_set_end(f->ctx->conn, END_KILLED);
            ctx_close_after(f->ctx);
        } else if (conn != NULL) {
            conn_set_end(conn, END_KILLED);
            conn_close(conn);
        }
    }
    free(f->hits);
    return f->count;
}

static bool read_filter(struct kill_filter *f, size_t at)
{
    struct command_ctx *ctx = f->ctx;
    struct span value = ctx->argv[at + 1];

    if (ctx_arg_is(ctx, at, "ID")) {
        if (!parse_u64(value, UINT64_MAX, &f->id) || f->id == 0) {
            ctx_error(ctx, LATCHD_ERR, "client-id should be greater than 0");
            return false;
        }
    } else if (ctx_arg_is(ctx, at, "TYPE")) {
        f->by_type = true;
        return ctx_client_type(ctx, value, &f->any_of_type, &f->pubsub);
    } else if (ctx_arg_is(ctx, at, "ADDR")) {
        f->addr = value;
    } else if (ctx_arg_is(ctx, at, "LADDR")) {
        f->laddr = value;
    } else if (ctx_arg_is(ctx, at, "USER")) {
        f->user = acl_find(ctx->cmd->users.acl, value);
        if (f->user == NULL) {
            ctx_error(ctx, LATCHD_ERR, "No such user '%.*s'", span_quoted_len(value),
                      value.ptr);
            return false;
        }
    } else if (ctx_arg_is(ctx, at, "SKIPME") &&
               (ctx_arg_is(ctx, at + 1, "yes") || ctx_arg_is(ctx, at + 1, "no"))) {
        f->skip_me = ctx_arg_is(ctx, at + 1, "yes");
    } else {
        ctx_syntax_error(ctx);
        return false;
    }
    return true;
}

void cmd_client_kill(struct command_ctx *ctx)
{
    struct kill_filter f = { .ctx = ctx, .skip_me = true };

    if (ctx->argc == 3) { /* the old form: one address, which may be the caller's own */
        f.addr = ctx->argv[2];
        f.skip_me = false;
        if (kill_matching(&f) == 0) {
            ctx_error(ctx, LATCHD_ERR, "No such client");
        } else {
            resp_simple(ctx->out, "OK");
        }
        return;
    }
    if (ctx->argc % 2 != 0) {
        ctx_syntax_error(ctx);
        return;
    }
    for (size_t at = 2; at < ctx->argc; at += 2) {
        if (!read_filter(&f, at)) {
            return;
        }
    }
    resp_int(ctx->out, (int64_t)kill_matching(&f));
}
