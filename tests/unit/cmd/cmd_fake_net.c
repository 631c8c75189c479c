/* Connections that are buffers, in place of net/. */
#include "unit/cmd/cmd_fake.h"

#include <stdio.h>

struct conn *net_find(struct net *n, uint64_t id)
{
    for (size_t i = 0; i < FAKE_CONNS; i++) {
        if (id != 0 && fake.conns[i].id == id) {
            return &fake.conns[i];
        }
    }
    return NULL;
}

void net_foreach(struct net *n, conn_fn *fn, void *ctx)
{
    for (size_t i = 0; i < FAKE_CONNS; i++) {
        if (fake.conns[i].id != 0) {
            fn(ctx, &fake.conns[i]);
        }
    }
}

void net_stats(const struct net *n, struct net_stats *ret)
{
    *ret = (struct net_stats){ .open = 1 };
}

uint64_t conn_id(const struct conn *c)
{
    return c->id;
}

void conn_set_data(struct conn *c, void *data)
{
    c->data = data;
}

void *conn_data(const struct conn *c)
{
    return c->data;
}

struct buf *conn_out(struct conn *c)
{
    return &c->out;
}

bool conn_overflows(const struct conn *c)
{
    return buf_len(&c->out) > FAKE_OUT_MAX;
}

size_t conn_memory(struct conn *c)
{
    return buf_len(&c->out);
}

void conn_set_exempt(struct conn *c, bool spared)
{
}

void conn_set_end(struct conn *c, enum conn_end why)
{
}

const char *conn_end_text(const struct conn *c)
{
    return "closed";
}

bool conn_has_more(const struct conn *c)
{
    return c->more;
}

void conn_suspend(struct conn *c)
{
    c->suspended = true;
}

void conn_await(struct conn *c)
{
    c->suspended = false;
    c->awaited = true;
}

void conn_resume(struct conn *c)
{
    c->awaited = false;
    c->suspended = false;
}

void conn_again(struct conn *c)
{
    c->again = true;
}

size_t conn_output_limit(const struct conn *c)
{
    return fake.output_limit;
}

void conn_set_trusted(struct conn *c, bool trusted)
{
    c->trusted = trusted;
}

void conn_drain(struct conn *c)
{
    c->draining = true;
}

void conn_close(struct conn *c)
{
    fake_close(c, false);
}

uint64_t conn_input_count(const struct conn *c)
{
    return c->input;
}

void conn_info(const struct conn *c, struct conn_info *ret)
{
    *ret = (struct conn_info){ .fd = 7 };
    if (fake.peer[0] != '\0') {
        (void)snprintf(ret->peer, sizeof(ret->peer), "%s", fake.peer);
    } else {
        (void)snprintf(ret->peer, sizeof(ret->peer), "127.0.0.1:%d", (int)c->id);
    }
    (void)snprintf(ret->local, sizeof(ret->local), "127.0.0.1:5625");
}

bool conn_is_local(const struct conn *c)
{
    return true;
}

bool conn_tls_peer(const struct conn *c, char *ret, size_t room)
{
    (void)snprintf(ret, room, "%s", fake.cert == NULL ? "" : fake.cert);
    return fake.cert != NULL;
}
