/* The answers of net/ about the connections of buffer_conn.h. */
#include "core_world.h"

#include "resp/parser.h"
#include "resp/writer.h"

#include <stdio.h>

enum { QUERY_MAX = 1 << 20, REQUESTS_MAX = 256 };

struct conn *net_find(struct net *n, uint64_t id)
{
    for (size_t i = 0; i < WORLD_CONNS; i++) {
        struct conn *c = &world.conns[i];

        if (id != 0 && c->id == id && !c->closed) {
            return c;
        }
    }
    return NULL;
}

void net_foreach(struct net *n, conn_fn *fn, void *ctx)
{
    for (size_t i = 0; i < WORLD_CONNS; i++) {
        if (world.conns[i].id != 0 && !world.conns[i].closed) {
            fn(ctx, &world.conns[i]);
        }
    }
}

void net_stats(const struct net *n, struct net_stats *ret)
{
    *ret = (struct net_stats){ .open = WORLD_CONNS };
}

size_t conn_output_limit(const struct conn *c)
{
    return BUFFER_CONN_OUT_MAX;
}

bool conn_has_more(const struct conn *c)
{
    return buf_len(&c->in) > 0;
}

static void close_conn(struct conn *c, bool unread)
{
    if (c->id == 0 || c->closed) {
        return;
    }
    c->closed = true;
    cmd_on_close(world.cmd, c, unread);
}

void conn_close(struct conn *c)
{
    close_conn(c, buf_len(&c->out) > 0);
}

void conn_info(const struct conn *c, struct conn_info *ret)
{
    *ret = (struct conn_info){ .fd = 7, .in_buffered = buf_len(&c->in) };
    (void)snprintf(ret->peer, sizeof(ret->peer), "127.0.0.1:%d", (int)c->id);
    (void)snprintf(ret->local, sizeof(ret->local), "127.0.0.1:5625");
}

bool conn_tls_peer(const struct conn *c, char *ret, size_t room)
{
    (void)snprintf(ret, room, "%s", "");
    return false;
}

/* --- bytes in --------------------------------------------------------------------- */

static void open_conn(struct conn *c)
{
    if (c->id != 0 || world.over) {
        return;
    }
    *c = (struct conn){ .id = ++world.next_conn };
    if (!cmd_on_open(world.cmd, c)) {
        c->closed = true;
    }
}

void world_send(size_t conn, struct span bytes)
{
    struct conn *c = &world.conns[conn];

    open_conn(c);
    if (c->id == 0 || c->closed) {
        return;
    }
    buf_add_span(&c->in, bytes);
    c->input++;
    if (buf_len(&c->in) > QUERY_MAX) {
        close_conn(c, false);
    }
}

/* As net/ does it. */
static bool run_one(struct conn *c)
{
    struct resp_limits limits = { c->trusted ? RESP_ARGS_MAX : RESP_ARGS_MAX_UNAUTH,
                                  c->trusted ? QUERY_MAX : RESP_BULK_MAX_UNAUTH,
                                  !c->trusted };
    struct resp_request req;
    struct buf copy = { 0 };
    enum resp_status status;
    size_t used = 0;

    if (c->again) {
        c->again = false;
        cmd_on_again(world.cmd, c);
        return true;
    }
    if (buf_len(&c->in) == 0) {
        return false;
    }
    buf_add_span(&copy, buf_span(&c->in)); /* in memory that ends with it */
    status = resp_parse(world.parser, &limits, buf_span(&copy), &c->hint, &used, &req);
    if (status == RESP_BROKEN) {
        cmd_on_ran(world.cmd, c);
    }
    if (status == RESP_BROKEN && (c->suspended || c->awaited)) {
        c->hint = 0;
    } else if (status == RESP_BROKEN) {
        resp_errorf(conn_out(c), "ERR", "Protocol error: %s",
                    resp_parser_error(world.parser));
        c->draining = true;
    } else if (status == RESP_DONE) {
        buf_drop(&c->in, used);
        if (req.argc > 0) {
            cmd_on_request(world.cmd, c, &req);
        }
    }
    buf_reset(&copy);
    return status == RESP_DONE;
}

bool world_run_conns(void)
{
    bool ran = false;

    for (size_t i = 0; i < WORLD_CONNS; i++) {
        struct conn *c = &world.conns[i];

        for (int n = 0; n < REQUESTS_MAX && c->id != 0 && !c->closed && !c->draining &&
                        !c->suspended && run_one(c);
             n++) {
            ran = true;
        }
        if (c->id != 0 && !c->closed && !c->draining) {
            cmd_on_ran(world.cmd, c);
        }
    }
    return ran;
}

/* --- bytes out -------------------------------------------------------------------- */

static void free_conn(struct conn *c)
{
    buf_reset(&c->in);
    buf_reset(&c->out);
    *c = (struct conn){ 0 };
}

void world_flush_conns(void)
{
    for (size_t i = 0; i < WORLD_CONNS; i++) {
        struct conn *c = &world.conns[i];

        if (c->id != 0 && resp_values(buf_span(&c->out)) < 0) {
            world_fail("a reply is none");
        }
        buf_clear(&c->out);
        if (c->draining) {
            close_conn(c, false);
        }
        if (c->closed) {
            free_conn(c);
        }
    }
}

void world_close(size_t conn, bool unread)
{
    close_conn(&world.conns[conn], unread);
}

void world_free_conns(void)
{
    for (size_t i = 0; i < WORLD_CONNS; i++) {
        free_conn(&world.conns[i]);
    }
}
