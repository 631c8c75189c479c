/* The answers of net/ about the connections of buffer_conn.h. */
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

bool conn_has_more(const struct conn *c)
{
    return c->more;
}

size_t conn_output_limit(const struct conn *c)
{
    return fake.output_limit;
}

void conn_close(struct conn *c)
{
    fake_close(c, false);
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

bool conn_tls_peer(const struct conn *c, char *ret, size_t room)
{
    (void)snprintf(ret, room, "%s", fake.cert == NULL ? "" : fake.cert);
    return fake.cert != NULL;
}
