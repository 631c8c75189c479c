/* client_memory: counts the buffers of all connections, and closes the largest
 * connections when the sum exceeds the limit, so that those who behave do not pay for
 * the others. */
#include "net/net_priv.h"
#include "util/alloc.h"
#include "util/log.h"

#include <stdlib.h>

size_t conn_memory(struct conn *c)
{
    const struct conn_handler *handler = &c->net->handler;
    size_t bytes = stream_queued(c->stream) + conn_unwritten(c);

    if (c->in != NULL) {
        bytes += sizeof(*c->in) + c->in->bytes.room;
    }
    if (handler->keeps != NULL) {
        bytes += handler->keeps(handler->ctx, c);
    }
    return bytes;
}

/* The memory of an exempt conn does not count: otherwise all others could be closed
 * one by one, and nothing would be gained. Its own limits bound it. */
void conn_count(struct conn *c)
{
    struct net *n = c->net;
    size_t bytes;

    if (n->limits.memory == 0 || c->state == CONN_CLOSED) {
        return;
    }
    bytes = c->exempt ? 0 : conn_memory(c);
    bytes = bytes < UINT32_MAX ? bytes : UINT32_MAX;
    n->memory += bytes - c->counted;
    c->counted = (uint32_t)bytes;
}

void conn_uncount(struct conn *c)
{
    c->net->memory -= c->counted;
    c->counted = 0;
}

/* A candidate for eviction. */
struct heavy {
    struct conn **conns;
    size_t count;
};

static void weigh_conn(void *ctx, struct conn *c)
{
    struct heavy *h = ctx;

    conn_count(c); /* it may have sent something since */
    if (c->counted > 0) {
        h->conns[h->count++] = c;
    }
}

static int heaviest_first(const void *a, const void *b)
{
    const struct conn *x = *(struct conn *const *)a;
    const struct conn *y = *(struct conn *const *)b;

    return (x->counted < y->counted) - (x->counted > y->counted);
}

void net_evict(struct net *n)
{
    struct heavy h = { 0 };

    if (n->limits.memory == 0 || n->memory <= n->limits.memory) {
        return;
    }
    h.conns = xcalloc(n->stats.open + 1, sizeof(*h.conns));
    net_foreach(n, weigh_conn, &h);
    qsort(h.conns, h.count, sizeof(*h.conns), heaviest_first);
    for (size_t i = 0; i < h.count && n->memory > n->limits.memory; i++) {
        log_about(LOG_NOTICE, "net",
                  &(struct log_about){ .client = h.conns[i]->slot.key },
                  "clients have more than maxmemory-clients in their buffers, and the "
                  "one that has most is closed: see what it does");
        n->stats.evicted++;
        conn_set_end(h.conns[i], END_EVICTED);
        conn_close(h.conns[i]);
    }
    free(h.conns);
}

void conn_set_exempt(struct conn *c, bool exempt)
{
    c->exempt = exempt;
    conn_count(c);
}
