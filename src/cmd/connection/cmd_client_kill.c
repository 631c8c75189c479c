/* CLIENT KILL. */
#include "cmd/handlers.h"
#include "cmd/observe/log_identity.h"

#include "util/alloc.h"
#include "util/parse.h"

#include <stdlib.h>

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
